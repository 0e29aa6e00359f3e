#!/usr/bin/env python3
"""Lossy coding beside JPEG: BD-rate in percent (less is better), and speed beside OpenJPH, in one run.

usage: bd_rate.py BUILD FRAMES [--all] [--groups luma,window,rgb,native] [--coders rans,huffman,cavlc] [--levels 1,5]
                  [--speed] [--files]

BUILD   a build folder with bin/libtessera_bench.so (target bench_library)
FRAMES  a folder of PGM and PPM files, as for lossless.py

Groups: luma (Kodak's luma, 8 bits), window (medical frames in an 8-bit window: the percentiles 0.5 and 99.5 of deeper ones),
both against libjpeg-turbo with its default tables; rgb (Kodak, and medical RGB) against JPEG 4:4:4; native (9 to 12 bits) against
12-bit JPEG, which has optimised tables; deeper frames have no rival in it and are left out. Without --all a few frames of
each. Frames above 1 million samples are cut to their middle.

BD-rate: the mean difference of log rate between two curves of PSNR and rate over the PSNRs that both have, within 30 to 55
dB; curves are monotone cubics (PCHIP) through the points; the mean over frames. Sizes are a frame's payload (model and
tiles, without a file's header and hashes) and JPEG's whole stream. --speed: at about 40 dB on the group's
frames, one thread, the least time of interleaved repeats, beside OpenJPH 9/7. Needs numpy and imagecodecs."""
import argparse
import ctypes
import os
import sys

import imagecodecs
import numpy

from lossless import Tessera, read_frame, timed

CODERS = {"huffman": 0, "cavlc": 1, "rans": 2}
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


def frames_of(folder, group, every):
    """Name, samples and bits of the group's frames."""
    for name in sorted(os.listdir(folder)):
        kodak, colour = "kodak" in name, name.endswith(".ppm")
        if not name.endswith((".pgm", ".ppm")):
            continue
        if group == "luma" and not kodak or group in ("window", "native") and (colour or name.startswith("photo")):
            continue
        if group == "rgb" and not colour:
            continue
        few = {"luma": FEW_KODAK, "rgb": FEW_RGB}.get(group, FEW_MEDICAL)
        if not every and not any(part in name for part in few):
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
    """PSNR, rising, and log rate; of points that are no better than a smaller one only the smaller stays."""
    kept = []
    for size, quality in sorted(points):
        if numpy.isfinite(quality) and (not kept or quality > kept[-1][0] + 1e-6):
            kept.append((quality, numpy.log(size)))
    return numpy.array(kept).T


def bd_rate(ours, theirs, low=30.0, high=55.0):
    """Percent; None where the curves share no PSNR."""
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
        else:  # 12-bit samples: shallower ones keep their values
            stream = imagecodecs.jpeg8_encode(samples, level=quality, bitspersample=12, optimize=True)
        points.append((len(stream), psnr(samples, imagecodecs.jpeg8_decode(stream), bits)))
    return points


class Lossy(Tessera):
    def __init__(self, library):
        super().__init__(library, 1)
        self.library.bench_encode_lossy.restype = ctypes.c_double

    def encode_lossy(self, samples, bits, coder, level, qp, payload):
        size = ctypes.c_size_t()
        taken = self.library.bench_encode_lossy(
            self.engine, *self.image(samples, bits), ctypes.c_uint32(CODERS[coder]), ctypes.c_uint32(level),
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

    def points(self, samples, bits, coder, level):
        room, decoded, points = numpy.empty(self.bound(samples, bits), numpy.uint8), numpy.empty_like(samples), []
        for qp in QPS:
            payload, _ = self.encode_lossy(samples, bits, coder, level, qp, room)
            self.decode_lossy(payload, samples, bits, decoded)
            points.append((payload.size, psnr(samples, decoded, bits), qp))
        if any(a[1] < b[1] for a, b in zip(points, points[1:])):
            print("PSNR rises with QP:", coder, level, samples.shape, bits, ["%.3f" % p[1] for p in points], file=sys.stderr)
        return points


def speeds(tessera, frames, coder, level, repeats=9):
    """MB/s of encode, decode and OpenJPH's, each at about 40 dB."""
    total, raw = [0.0] * 4, 0
    for samples, bits, points in frames:
        qp = min(points, key=lambda p: abs(p[1] - 40))[2]
        steps = (0.15, 0.07, 0.03, 0.015, 0.007, 0.0035)

        def theirs(step):
            return imagecodecs.htj2k_encode(samples, level=step * 2.0 ** (bits - 8 * samples.itemsize), reversible=False)

        step = min(steps, key=lambda s: abs(psnr(samples, imagecodecs.htj2k_decode(theirs(s)), bits) - 40))
        room, decoded, runs = numpy.empty(tessera.bound(samples, bits), numpy.uint8), numpy.empty_like(samples), []
        for _ in range(repeats):
            payload, encode = tessera.encode_lossy(samples, bits, coder, level, qp, room)
            stream, their_encode = timed(theirs, step)
            decode = tessera.decode_lossy(payload, samples, bits, decoded)
            _, their_decode = timed(imagecodecs.htj2k_decode, stream)
            runs.append((encode, decode, their_encode, their_decode))
        total = [t + min(column) for t, column in zip(total, zip(*runs))]
        raw += samples.nbytes
    return [raw / 1e6 / t for t in total]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("frames")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--groups", default="luma,window,rgb,native")
    parser.add_argument("--coders", default="rans,huffman,cavlc")
    parser.add_argument("--levels", default="5")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--files", action="store_true")
    options = parser.parse_args()
    tessera = Lossy(os.path.abspath(os.path.join(options.build, "bin/libtessera_bench.so")))
    kinds = [(coder, int(level)) for level in options.levels.split(",") for coder in options.coders.split(",")]
    print("%-8s %6s" % ("group", "frames") + "".join("%15s" % ("%s -%d" % kind) for kind in kinds) + "   BD-rate, %")
    for group in options.groups.split(","):
        rates, timed_frames = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}
        for name, samples, bits in frames_of(options.frames, group, options.all):
            theirs = jpeg_points(samples, bits)
            row = []
            for kind in kinds:
                points = tessera.points(samples, bits, *kind)
                rate = bd_rate([p[:2] for p in points], theirs)
                row.append(rate)
                if rate is not None:
                    rates[kind].append(rate)
                timed_frames[kind].append((samples, bits, points))
            if options.files:
                print("  %-40s" % name[:40] + "".join("%10s" % ("-" if r is None else "%.1f" % r) for r in row))
        count = max((len(r) for r in rates.values()), default=0)
        print("%-8s %6d" % (group, count) + "".join("%15.1f" % (sum(rates[k]) / max(1, len(rates[k]))) for k in kinds), flush=True)
        if options.speed:
            for kind in kinds:
                ours = speeds(tessera, timed_frames[kind], *kind)
                print("  %-8s -%d encode %6.1f, OpenJPH %6.1f (%.2f x)   decode %6.1f, OpenJPH %6.1f (%.2f x)" % (
                    *kind, ours[0], ours[2], ours[0] / ours[2], ours[1], ours[3], ours[1] / ours[3]), flush=True)


if __name__ == "__main__":
    main()
