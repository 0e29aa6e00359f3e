#!/usr/bin/env python3
"""Lossy coding beside JPEG: BD-rate in percent (less is better), and speed beside OpenJPH, in one run.

usage: bd_rate.py BUILD FRAMES [--all] [--groups luma,window,rgb,native] [--coders rans,huffman,cavlc] [--efforts 1,5]
                  [--kinds cavlc-1,rans-5] [--speed] [--against OLD] [--no-rates] [--repeats N] [--files]

BUILD   a build folder with bin/libtessera_bench.so (target bench_library)
FRAMES  a folder of PGM and PPM files, as for lossless.py

Groups: luma (Kodak's luma, 8 bits) and window (medical frames in an 8-bit window: the percentiles 0.5 and 99.5 of deeper ones),
both against libjpeg-turbo with its default tables; rgb (Kodak, and medical RGB) against JPEG 4:4:4; native (9 to 12 bits) against
12-bit JPEG, which has optimised tables. JPEG has nothing for deeper frames, so they are left out. Without --all a few frames of
each group. Frames above 1 million samples are cut to their middle.

BD-rate: the mean difference of log rate between two curves of PSNR and rate, over the PSNRs that both have within 30 to 55
dB. Curves are monotone cubics (PCHIP) through the points. The result is the mean over frames. Sizes are a frame's payload
(model and tiles, without a file's header and hashes) and JPEG's whole stream. --speed: the group's frames at 40 dB, which
both coders reach by search, with one thread, from samples in memory to a payload in memory and back, beside OpenJPH 9/7 with
its defaults. All take turns. --against: the same of two builds of Tessera, each at its own 40 dB, as new / old. Of each frame the least CPU time of the thread counts (neither has more than one thread). Needs
numpy and imagecodecs."""
import argparse
import ctypes
import os
import sys
import time

import imagecodecs
import numpy

from lossless import Tessera, read_frame

CODERS = {"huffman": 1, "cavlc": 2, "rans": 3}  # enum tsr_coder
QPS = range(0, 46, 3)
FEW_KODAK = ("kodim03", "kodim05", "kodim08", "kodim13", "kodim19", "kodim23")
FEW_MEDICAL = (
    "CR_dwv-gdcm-CR-MONO1", "CT_dwv-gdcm-CT-MONO2", "CT_lidc-0314-chest_011", "CT_philips-S21610-S2010_022",
    "CT_wg04-CT1", "MR_adi-memprage_025", "MR_fo-dicom-MOVEKNEE_009", "MR_wg04-MR4", "NM_wg04-NM1", "XA_wg04-XA1")
FEW_RGB = ("kodim03", "kodim05", "kodim13", "kodim23", "OT_wg04-VL3", "US_wg04-US1")


def middle(samples, most=1000000):
    rows, columns = samples.shape[:2]
    if rows * columns <= most:
        return samples
    scale = (most / (rows * columns)) ** 0.5
    height, width = int(rows * scale) // 8 * 8, int(columns * scale) // 8 * 8
    top, left = (rows - height) // 2, (columns - width) // 2
    return numpy.ascontiguousarray(samples[top : top + height, left : left + width])


def frames_of(folder, group, wanted=None):
    """Name, samples and bits of the group's frames, or of those whose names have one of the wanted parts."""
    for name in sorted(os.listdir(folder)):
        kodak, colour = "kodak" in name, name.endswith(".ppm")
        if not name.endswith((".pgm", ".ppm")):
            continue
        if group == "luma" and not kodak or group in ("window", "native") and (colour or name.startswith("photo")):
            continue
        if group == "rgb" and not colour:
            continue
        if wanted and not any(part in name for part in wanted):
            continue
        samples, bits = read_frame(os.path.join(folder, name))
        samples = middle(samples)
        if group == "rgb":
            if bits == 8:
                yield name, samples, 8
        elif group == "luma":
            weights = numpy.array([0.299, 0.587, 0.114])
            yield name, (samples @ weights).round().clip(0, 255).astype(numpy.uint8), 8
        elif group == "native":
            bits = max(9, int(samples.max()).bit_length())
            if samples.dtype == numpy.uint16 and bits <= 12:
                yield name, samples, bits
        elif samples.dtype == numpy.uint8:
            yield name, samples, 8
        else:
            low, high = numpy.percentile(samples, [0.5, 99.5])
            high = max(high, low + 1)
            window = (samples.astype(numpy.float64) - low) * 255 / (high - low)
            yield name, window.round().clip(0, 255).astype(numpy.uint8), 8


def psnr(samples, decoded, bits):
    error = numpy.mean((samples.astype(numpy.float64) - decoded) ** 2)
    return 10 * numpy.log10(((1 << bits) - 1) ** 2 / error) if error > 0 else numpy.inf


def slopes(x, y):
    """PCHIP's slopes (Fritsch and Carlson 1980, weighted harmonic means)."""
    h, d = numpy.diff(x), numpy.diff(y) / numpy.diff(x)
    m = numpy.zeros(len(x))
    for i in range(1, len(x) - 1):
        if d[i - 1] * d[i] > 0:
            a, b = 2 * h[i] + h[i - 1], h[i] + 2 * h[i - 1]
            m[i] = (a + b) / (a / d[i - 1] + b / d[i])
    m[0], m[-1] = d[0], d[-1]
    return m


def interpolate(x, y, at):
    m, h = slopes(x, y), numpy.diff(x)
    i = numpy.clip(numpy.searchsorted(x, at) - 1, 0, len(x) - 2)
    t = (at - x[i]) / h[i]
    return (y[i] * (1 + 2 * t) * (1 - t) ** 2 + h[i] * m[i] * t * (1 - t) ** 2 + y[i + 1] * t * t * (3 - 2 * t)
            + h[i] * m[i + 1] * t * t * (t - 1))


def curve(points):
    """Rising PSNRs and their log rates. A point is dropped if a smaller one is as good."""
    kept = []
    for size, quality in sorted(points):
        if numpy.isfinite(quality) and (not kept or quality > kept[-1][0] + 1e-6):
            kept.append((quality, numpy.log(size)))
    return numpy.array(kept).T


def bd_rate(ours, theirs, low=30.0, high=55.0):
    """Percent. None if the curves share no PSNRs."""
    (x, y), (u, v) = curve(ours), curve(theirs)
    low, high = max(low, x[0], u[0]), min(high, x[-1], u[-1])
    if len(x) < 3 or len(u) < 3 or high - low < 1:
        return None
    at = numpy.linspace(low, high, 400)
    return 100 * (numpy.exp(numpy.mean(interpolate(x, y, at) - interpolate(u, v, at))) - 1)


def jpeg_points(samples, bits):
    points = []
    for quality in (20, 35, 50, 65, 75, 85, 90, 95, 98, 100) if bits == 8 else (1, 3, 8, 15, 30, 50, 75, 90, 95, 98, 100):
        if bits == 8:
            stream = imagecodecs.jpeg8_encode(samples, level=quality, **({"subsampling": "444"} if samples.ndim == 3 else {}))
        else:  # coded as 12-bit samples; those of fewer bits keep their values
            stream = imagecodecs.jpeg8_encode(samples, level=quality, bitspersample=12, optimize=True)
        points.append((len(stream), psnr(samples, imagecodecs.jpeg8_decode(stream), bits)))
    return points


class Lossy(Tessera):
    def __init__(self, library):
        super().__init__(library, 1)
        self.library.bench_encode_lossy.restype = ctypes.c_double

    def encode_lossy(self, samples, bits, coder, effort, qp, payload):
        size = ctypes.c_size_t()
        taken = self.library.bench_encode_lossy(
            self.engine, *self.image(samples, bits), ctypes.c_uint32(CODERS[coder]), ctypes.c_uint32(effort),
            ctypes.c_int32(round(8 * qp)), samples.ctypes.data_as(ctypes.c_void_p),
            payload.ctypes.data_as(ctypes.c_void_p), ctypes.byref(size))
        if taken < 0:
            raise RuntimeError("tsr_encode_frame fails")
        return payload[: size.value], taken

    def decode_lossy(self, payload, samples, bits, decoded):
        taken = self.library.bench_decode(
            self.engine, *self.image(samples, bits), payload.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(payload.size), decoded.ctypes.data_as(ctypes.c_void_p))
        if taken < 0:
            raise RuntimeError("tsr_decode_frame fails")
        return taken

    def points(self, samples, bits, coder, effort):
        room, decoded, points = numpy.empty(self.bound(samples, bits), numpy.uint8), numpy.empty_like(samples), []
        for qp in QPS:
            payload, _ = self.encode_lossy(samples, bits, coder, effort, qp, room)
            self.decode_lossy(payload, samples, bits, decoded)
            points.append((payload.size, psnr(samples, decoded, bits), qp))
        if any(a[1] < b[1] for a, b in zip(points, points[1:])):
            print("PSNR rises with QP:", coder, effort, samples.shape, bits, ["%.3f" % p[1] for p in points], file=sys.stderr)
        return points


def cpu_timed(function, *arguments):
    """CPU time of this thread: other jobs on the machine disturb it less than wall time."""
    start = time.thread_time_ns()
    result = function(*arguments)
    return result, 1e-9 * (time.thread_time_ns() - start)


def bisect(low, high, quality_at, steps=12):
    """The place where the falling function quality_at is 40 dB."""
    for _ in range(steps):
        middle = (low + high) / 2
        if quality_at(middle) > 40:
            low = middle
        else:
            high = middle
    return low


def rival_encode(samples, step):
    return imagecodecs.htj2k_encode(samples, level=step, reversible=False)


def rival_psnr(samples, bits, step):
    """imagecodecs lets values outside the samples' type wrap around; OpenJPH's own tools clip them. So this counts them as
    clipped. (If counted as they come, 40 dB would need up to about 6 times the bits.)"""
    whole = 1 << 8 * samples.itemsize
    error = imagecodecs.htj2k_decode(rival_encode(samples, step)).astype(numpy.int64) - samples
    error = (error + whole // 2) % whole - whole // 2
    return psnr(samples, numpy.clip(samples + error, 0, (1 << bits) - 1), bits)


def rival_step(samples, bits):
    """OpenJPH's base step at 40 dB in the unit of imagecodecs: 1 is the range of the samples' type."""
    scale = 2.0 ** (bits - 8 * samples.itemsize)
    return scale * 2.0 ** bisect(-9, -1, lambda e: rival_psnr(samples, bits, scale * 2.0**e))


def speeds(tessera, frames, kinds, repeats):
    """For each of our kinds, MB/s of our encoder and decoder and of OpenJPH's, all at 40 dB, and the mean PSNRs of both. All
    kinds and OpenJPH take turns. Of each frame the least time of all repeats counts."""
    total, quality, raw = {kind: [0.0] * 4 for kind in kinds}, {kind: [0.0] * 2 for kind in kinds}, 0
    for samples, bits, step in frames:
        room, decoded = numpy.empty(tessera.bound(samples, bits), numpy.uint8), numpy.empty_like(samples)
        qps, least, shown = {}, {kind: [1e9] * 4 for kind in kinds}, numpy.empty_like(samples)
        for kind in kinds:

            def ours(qp):
                payload, _ = tessera.encode_lossy(samples, bits, *kind, qp, room)
                tessera.decode_lossy(payload, samples, bits, decoded)
                return psnr(samples, decoded, bits)

            qps[kind] = bisect(0, 51, ours, 9)
            quality[kind][0] += ours(qps[kind])
            quality[kind][1] += rival_psnr(samples, bits, step)
        for _ in range(repeats):
            stream, their_encode = cpu_timed(rival_encode, samples, step)
            _, their_decode = cpu_timed(lambda: imagecodecs.htj2k_decode(stream, out=shown))
            for kind in kinds:
                (payload, _), encode = cpu_timed(tessera.encode_lossy, samples, bits, *kind, qps[kind], room)
                _, decode = cpu_timed(tessera.decode_lossy, payload, samples, bits, decoded)
                least[kind] = [min(a, b) for a, b in zip(least[kind], (encode, decode, their_encode, their_decode))]
        for kind in kinds:
            total[kind] = [a + b for a, b in zip(total[kind], least[kind])]
        raw += samples.nbytes
    return {kind: [raw / 1e6 / t for t in total[kind]] + [q / len(frames) for q in quality[kind]] for kind in kinds}


def print_speeds(tessera, frames, kinds, repeats):
    frames = [(samples, bits, rival_step(samples, bits)) for samples, bits in frames]
    for kind, s in speeds(tessera, frames, kinds, repeats).items():
        print("  %-8s -%d encode %6.1f, OpenJPH %6.1f (%.2f x)   decode %6.1f, OpenJPH %6.1f (%.2f x)   MB/s at %.2f, %.2f dB" % (
            *kind, s[0], s[2], s[0] / s[2], s[1], s[3], s[1] / s[3], s[4], s[5]), flush=True)


def against(new, old, frames, kinds, repeats):
    """Prints by how much the new build is faster, or slower, than the old one."""
    for kind in kinds:
        total = numpy.zeros((2, 2))
        for samples, bits in frames:
            room, decoded, least, qps = numpy.empty(new.bound(samples, bits), numpy.uint8), numpy.empty_like(samples), numpy.full((2, 2), 1e9), []
            for build in (new, old):

                def ours(qp):
                    build.decode_lossy(build.encode_lossy(samples, bits, *kind, qp, room)[0], samples, bits, decoded)
                    return psnr(samples, decoded, bits)

                qps.append(bisect(0, 51, ours, 9))
            for _ in range(repeats):
                for i, build in enumerate((new, old)):
                    (payload, _), encode = cpu_timed(build.encode_lossy, samples, bits, *kind, qps[i], room)
                    _, decode = cpu_timed(build.decode_lossy, payload, samples, bits, decoded)
                    least[i] = numpy.minimum(least[i], (encode, decode))
            total += least
        print("  %-8s -%d new / old: encode %.2f, decode %.2f" % (*kind, *(total[1] / total[0])), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("frames")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--groups", default="luma,window,rgb,native")
    parser.add_argument("--coders", default="rans,huffman,cavlc")
    parser.add_argument("--efforts", default="5")
    parser.add_argument("--kinds", help="instead of the last two: cavlc-1,rans-5")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--against")
    parser.add_argument("--no-rates", action="store_true")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--files", action="store_true")
    options = parser.parse_args()
    tessera = Lossy(os.path.abspath(os.path.join(options.build, "bin/libtessera_bench.so")))
    old = Lossy(os.path.abspath(os.path.join(options.against, "bin/libtessera_bench.so"))) if options.against else None
    kinds = [(coder, int(effort)) for effort in options.efforts.split(",") for coder in options.coders.split(",")]
    if options.kinds:
        kinds = [(kind.split("-")[0], int(kind.split("-")[1])) for kind in options.kinds.split(",")]
    print("%-8s %6s" % ("group", "frames") + "".join("%15s" % ("%s -%d" % kind) for kind in kinds) + "   BD-rate, %")
    for group in options.groups.split(","):
        rates, frames = {kind: [] for kind in kinds}, []
        few = {"luma": FEW_KODAK, "rgb": FEW_RGB}.get(group, FEW_MEDICAL)
        for name, samples, bits in frames_of(options.frames, group, None if options.all else few):
            frames.append((samples, bits))
            if options.no_rates:
                continue
            theirs = jpeg_points(samples, bits)
            row = []
            for kind in kinds:
                points = tessera.points(samples, bits, *kind)
                rate = bd_rate([p[:2] for p in points], theirs)
                row.append(rate)
                if rate is not None:
                    rates[kind].append(rate)
            if options.files:
                print("  %-40s" % name[:40] + "".join("%10s" % ("-" if r is None else "%.1f" % r) for r in row))
        if not options.no_rates:
            count = max(len(r) for r in rates.values())
            print("%-8s %6d" % (group, count) + "".join("%15.1f" % (sum(rates[k]) / max(1, len(rates[k]))) for k in kinds), flush=True)
        if old:
            print("%-8s %6d" % (group, len(frames)))
            against(tessera, old, frames, kinds, options.repeats)
        if options.speed:
            print("%-8s %6d" % (group, len(frames)))
            print_speeds(tessera, frames, kinds, options.repeats)


if __name__ == "__main__":
    main()
