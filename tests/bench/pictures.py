#!/usr/bin/env python3
"""Pictures beside the coders of the web: BD-rate against libjpeg-turbo by what people see, and rates, all in one run.

usage: pictures.py BUILD FRAMES [--few | --all] [--groups luma,window,rgb] [--coders WORD,...] [--files] [--ssimulacra]
                   [--points FILE] [--again WORD,...] [--plot SVG] [--jobs N]
       pictures.py --from FILE [--plot SVG] [--groups ...] [--coders WORD,...] [--files]

BUILD   a build folder with lib/libtessera.so, which the Python package of this tree loads (target libtessera.so)
FRAMES  a folder of PGM and PPM files, as for lossless.py

Groups: luma (Kodak's luma), window (medical frames in a window of 8 bits, the list of pictures_windows.txt), rgb (Kodak).
--few: 6 lumas, 10 windows, 6 RGB images; --all: 24, 48 and 24. Frames above 1 million samples are cut to their middle.

BD-rate: the mean difference of log size between two curves of quality and size, over the qualities that JPEG has from its 30 to
its 95 (where a coder has only a part of them, over that part: the table marks it by *). Curves as in bd_rate.py. Qualities: PSNR of
all samples; SSIM of luma (Gaussian of 11 x 11, sigma 1.5, K1 0.01, K2 0.03, windows inside of the picture), MS-SSIM of luma (where
both sides have 176 samples or more), rgb-SSIM (mean of R, G and B), each SSIM as -10 log10(1 - SSIM). With --ssimulacra also
SSIMULACRA 2 (PyPI's ssimulacra2; Debian's libjxl 0.7 has it not) and the 3-norm of butteraugli_main (Debian's libjxl-devtools).
Sizes are whole files: a .tsr, a JPEG with its header, a codestream of JPEG XL or JPEG 2000, WebP, AVIF, and x264's stream without the
SEI that names x264's settings.

Coders: JPEG is libjpeg-turbo (Pillow's), progressive, optimised, 4:4:4. JPEG XL is libjxl, effort 7. WebP is libwebp, method 4; it has
4:2:0 alone. AVIF is libaom by libavif (Pillow's), speeds 9 and 6, 4:4:4 or 4:0:0, its default tune. JPEG 2000 is OpenJPEG's
irreversible 9/7. x264 is Debian's: --preset veryslow --tune ssim --keyint 1 --crf; RGB as full-range YCbCr 4:4:4.

Rates: CPU time of encoding and decoding with one thread, of each frame at the point whose SSIM is nearest to JPEG's at its 75. x264's
is the process, which writes what it decodes, too; no decoder of it is here.

--points FILE keeps all points, a line of JSON a frame and coder, as they are measured: a run that was stopped goes on. What it has is
not measured again, if the coder, its options and settings, and the samples are the same. --again WORD,... measures the coders of these
words anew, and their lines take the place of the old ones: "--again rANS,CAVLC" is all that Tessera's rows need after a change.
Needs numpy, scipy, imagecodecs, Pillow, and matplotlib for --plot."""
import argparse
import concurrent.futures
import functools
import hashlib
import io
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import typing

import imagecodecs
import numpy
import scipy.ndimage
from PIL import Image

import machine
from bd_rate import FEW_KODAK, FEW_MEDICAL, bd_rate, frames_of, psnr

HERE = os.path.dirname(os.path.abspath(__file__))
GROUPS = ("luma", "window", "rgb")
WEIGHTS = numpy.array([0.299, 0.587, 0.114])
SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)  # Wang, Simoncelli and Bovik 2003
TAPS = numpy.exp(-0.5 * (numpy.arange(-5, 6) / 1.5) ** 2)
TAPS /= TAPS.sum()
REFERENCE = "JPEG"
ORDER = (REFERENCE, "rANS -5", "rANS -5, ssim", "rANS -9", "rANS -9, ssim", "CAVLC -1", "JPEG XL e7", "WebP m4", "AVIF s9", "AVIF s6", "JPEG 2000",
         "x264 intra")
LOSSLESS = 99.0
TOOLS = ("SSIMULACRA 2", "Butteraugli")
QUALITIES = (15, 30, 45, 60, 75, 85, 90, 95, 98)


def smooth(plane):
    """The Gaussian's means of all windows inside of the plane."""
    for axis in (0, 1):
        plane = scipy.ndimage.correlate1d(plane, TAPS, axis)
    return plane[5:-5, 5:-5]


class Plane:
    """A plane of the original at each scale, with the terms of SSIM that are its own."""

    def __init__(self, plane):
        self.scales = []
        count = 5 if min(plane.shape) >= 176 else 1
        plane = plane.astype(numpy.float64)
        for _ in range(count):
            mean = smooth(plane)
            self.scales.append((plane, mean, smooth(plane * plane) - mean * mean))
            plane = halve(plane)

    def likeness(self, other, scales=True):
        """SSIM, and MS-SSIM or None."""
        other, product, first = other.astype(numpy.float64), 1.0, None
        count = len(self.scales) if scales else 1
        for scale in range(count):
            plane, mean, variance = self.scales[scale]
            theirs = smooth(other)
            contrast = (2 * (smooth(plane * other) - mean * theirs) + 58.5225) / (
                variance + smooth(other * other) - theirs * theirs + 58.5225)
            whole = numpy.mean(contrast * (2 * mean * theirs + 6.5025) / (mean * mean + theirs * theirs + 6.5025))
            first = whole if scale == 0 else first
            part = whole if scale == len(self.scales) - 1 else numpy.mean(contrast)
            product *= max(part, 1e-6) ** SCALES[scale]
            other = halve(other)
        return first, product if count == 5 else None


def halve(plane):
    rows, columns = plane.shape[0] // 2 * 2, plane.shape[1] // 2 * 2
    plane = plane[:rows, :columns]
    return (plane[::2, ::2] + plane[1::2, ::2] + plane[::2, 1::2] + plane[1::2, 1::2]) / 4


def decibels(likeness):
    return None if likeness is None else round(float(-10 * numpy.log10(max(1e-9, 1 - likeness))), 5)


def luma(samples):
    return samples @ WEIGHTS if samples.ndim == 3 else samples


class Original:
    """What the decoded frames are compared with."""

    def __init__(self, samples, tools):
        self.samples, self.tools = samples, tools
        self.luma = Plane(luma(samples))
        self.planes = [Plane(samples[..., i]) for i in range(3)] if samples.ndim == 3 else []
        self.folder = tempfile.TemporaryDirectory() if tools else None
        if tools:
            Image.fromarray(samples).convert("RGB").save(self.path("a"), compress_level=1)

    def path(self, name):
        return os.path.join(self.folder.name, name + ".png")

    def compare(self, decoded):
        ssim, ms_ssim = self.luma.likeness(luma(decoded))
        quality = {"PSNR": min(LOSSLESS, psnr(self.samples, decoded, 8)), "SSIM": decibels(ssim), "MS-SSIM": decibels(ms_ssim)}
        if self.planes:
            of_planes = [plane.likeness(decoded[..., i], False)[0] for i, plane in enumerate(self.planes)]
            quality["rgb-SSIM"] = decibels(numpy.mean(of_planes))
        if self.tools:
            Image.fromarray(decoded).convert("RGB").save(self.path("b"), compress_level=1)
            import ssimulacra2

            score = ssimulacra2.compute_ssimulacra2(self.path("a"), self.path("b"))
            text = subprocess.run(["butteraugli_main", self.path("a"), self.path("b")], capture_output=True, text=True).stdout
            distance = float(re.search(r"3-norm: ([\d.]+)", text).group(1))
            quality[TOOLS[0]] = round(float(score), 4)
            quality[TOOLS[1]] = round(float(-10 * numpy.log10(max(1e-6, distance))), 5)
        return quality


def pillow(settings):
    def encode(samples, setting):
        file = io.BytesIO()
        gray = samples.ndim == 2
        chosen = {key: value(gray) if callable(value) else value for key, value in settings.items()}
        Image.fromarray(samples).save(file, quality=setting, **chosen)
        return file.getvalue()

    return encode


def pillow_decode(stream, samples):
    return numpy.array(Image.open(io.BytesIO(stream)).convert("L" if samples.ndim == 2 else "RGB"))


def webp_encode(samples, setting):
    three = numpy.repeat(samples[..., None], 3, 2) if samples.ndim == 2 else samples
    return imagecodecs.webp_encode(three, setting, lossless=False, method=4, numthreads=1)


def webp_decode(stream, samples):
    decoded = imagecodecs.webp_decode(stream)[..., :3]
    return numpy.ascontiguousarray(decoded[..., 1]) if samples.ndim == 2 else decoded


class Tessera:
    """The package of this tree over the build's library, with one thread."""

    def __init__(self, build, **options):
        os.environ["TESSERA_LIBRARY"] = os.path.join(os.path.abspath(build), "lib", "libtessera.so")
        sys.path.insert(0, os.path.join(HERE, "..", "..", "app", "python"))
        import tessera

        self.tessera, self.options, self.engine = tessera, options, tessera.engine("cpu", threads=1)

    def encode(self, samples, setting):
        return self.tessera.compress(
            samples, qp=setting, path="transform", verify="none", allow_lossy=True, engine=self.engine, **self.options)

    def decode(self, stream, samples):
        raster = self.tessera.decompress(stream, engine=self.engine)
        return numpy.frombuffer(raster, numpy.uint8).reshape(samples.shape)


def has_tune():
    with open(os.path.join(HERE, "..", "..", "app", "python", "tessera", "_options.py"), encoding="utf-8") as file:
        return re.search(r"^    tune:", file.read(), re.M) is not None


class X264:
    """The stream without SEI, and what x264 says that a decoder makes of it."""

    def __init__(self):
        self.shown = None

    def encode(self, samples, setting):
        rows, columns = samples.shape[:2]
        kind = "i400" if samples.ndim == 2 else "i444"
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("in.yuv", "out.264", "seen.yuv")]
            planes = samples if samples.ndim == 2 else to_ycbcr(samples)
            planes.tofile(paths[0])
            subprocess.run(
                ["x264", "--preset", "veryslow", "--tune", "ssim", "--keyint", "1", "--crf", str(setting), "--threads", "1",
                 "--demuxer", "raw", "--input-csp", kind, "--output-csp", kind, "--input-res", "%dx%d" % (columns, rows),
                 "--range", "pc", "--input-range", "pc", "--colormatrix", "smpte170m", "--quiet", "--no-progress",
                 "--dump-yuv", paths[2], "-o", paths[1], paths[0]], check=True, capture_output=True)
            with open(paths[1], "rb") as file:
                units = re.split(b"\0?\0\0\1", file.read())
            self.shown = numpy.fromfile(paths[2], numpy.uint8)
        return b"".join(b"\0\0\1" + unit for unit in units[1:] if unit[0] & 31 != 6)

    def decode(self, _, samples):
        return self.shown.reshape(samples.shape) if samples.ndim == 2 else to_rgb(self.shown.reshape(3, *samples.shape[:2]))


def to_ycbcr(samples):
    """JFIF's, one plane after the other."""
    y = samples @ WEIGHTS
    chroma = [(samples[..., 2] - y) / 1.772 + 128, (samples[..., 0] - y) / 1.402 + 128]
    return numpy.stack([y, *chroma]).round().clip(0, 255).astype(numpy.uint8)


def to_rgb(planes):
    y, blue, red = planes[0].astype(numpy.float64), planes[1] - 128.0, planes[2] - 128.0
    green = y - 0.344136 * blue - 0.714136 * red
    return numpy.stack([y + 1.402 * red, green, y + 1.772 * blue], 2).round().clip(0, 255).astype(numpy.uint8)


class Coder(typing.NamedTuple):
    """settings go from much loss to little. options says how the coder is called: points of other options are not its."""

    encode: typing.Callable  # (samples, setting) -> stream
    decode: typing.Callable  # (stream, samples) -> samples
    settings: typing.Sequence
    options: str


def coders(build):
    """A Coder by name."""
    avif = {"format": "AVIF", "codec": "aom", "max_threads": 1, "subsampling": lambda gray: "4:0:0" if gray else "4:4:4"}
    jpeg = {"format": "JPEG", "progressive": True, "optimize": True, "subsampling": lambda gray: -1 if gray else 0}
    ours = {"rANS -5": {"effort": 5, "coder": "rans"}, "CAVLC -1": {"effort": 1, "coder": "cavlc"}}
    if has_tune():
        ours["rANS -5"]["tune"] = ours["CAVLC -1"]["tune"] = "psnr"
        ours["rANS -5, ssim"] = {"effort": 5, "coder": "rans", "tune": "ssim"}
        ours["rANS -9"] = {"effort": 9, "coder": "rans", "tune": "psnr"}
        ours["rANS -9, ssim"] = {"effort": 9, "coder": "rans", "tune": "ssim"}
    table = {REFERENCE: Coder(pillow(jpeg), pillow_decode, QUALITIES, "progressive, optimised, 4:4:4")}
    for name, options in ours.items():
        coder = Tessera(build, **options)
        table[name] = Coder(coder.encode, coder.decode, range(42, 5, -4), json.dumps(options))
    table["JPEG XL e7"] = Coder(
        lambda samples, setting: imagecodecs.jpegxl_encode(samples, effort=7, distance=setting, numthreads=1),
        lambda stream, _: imagecodecs.jpegxl_decode(stream, numthreads=1),
        (10, 6, 4, 2.8, 1.9, 1.3, 0.8, 0.45, 0.2), "effort 7")
    table["WebP m4"] = Coder(webp_encode, webp_decode, (10, 30, 50, 68, 80, 88, 94, 98, 100), "method 4")
    for speed in (9, 6):
        table["AVIF s%d" % speed] = Coder(
            pillow({**avif, "speed": speed}), pillow_decode, (28, 40, 50, 60, 70, 78, 86, 92, 97),
            "libaom, speed %d, 4:4:4" % speed)
    table["JPEG 2000"] = Coder(
        lambda samples, setting: imagecodecs.jpeg2k_encode(
            samples, setting, codecformat="j2k", reversible=False, numthreads=1),
        lambda stream, _: imagecodecs.jpeg2k_decode(stream, numthreads=1), range(24, 55, 3), "irreversible")
    x264 = X264()
    table["x264 intra"] = Coder(x264.encode, x264.decode, range(40, 0, -4), "veryslow, tune ssim, crf, 4:4:4")
    return table


def cpu_seconds():
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def timed(function, *arguments):
    start = cpu_seconds() if function.__qualname__.startswith("X264") else time.process_time()
    result = function(*arguments)
    return result, (cpu_seconds() if function.__qualname__.startswith("X264") else time.process_time()) - start


def points_of(original, encode, decode, settings):
    """[size, seconds of encoding, seconds of decoding, {quality: dB}] by setting."""
    points = []
    for setting in settings:
        stream, encoding = timed(encode, original.samples, setting)
        decoded, decoding = timed(decode, stream, original.samples)
        points.append([len(stream), encoding, decoding, original.compare(decoded)])
    return points


def frames(folder, group, few):
    names = {"luma": FEW_KODAK, "rgb": FEW_KODAK, "window": FEW_MEDICAL}[group] if few else None
    if group == "rgb":
        names = names or ("kodak",)
    if group == "window" and not few:
        with open(os.path.join(HERE, "pictures_windows.txt"), encoding="ascii") as file:
            names = tuple(line.strip() for line in file if line.strip())
    return frames_of(folder, group, names)


def measure_frame(build, key, samples, tools):
    """The record of a key: group, frame, coder, options and image."""
    coder = coders(build)[key["coder"]]
    points = points_of(Original(samples, tools), coder.encode, coder.decode, coder.settings)
    return {**key, "raw": samples.nbytes, "settings": list(coder.settings), "points": points}


def names_of(record):
    return record["group"], record["frame"], record["coder"]


def is_it(record, key, settings, tools):
    """Whether a record of the same names is still true, and has the qualities that are asked for."""
    return (all(record.get(name) == value for name, value in key.items()) and record["settings"] == list(settings)
            and (not tools or TOOLS[0] in record["points"][0][3]))


def measure(options, had):
    """All records by their names: those had, and new ones, each of which is added to the file of points as it comes."""
    table = coders(options.build)
    jobs = concurrent.futures.ProcessPoolExecutor(options.jobs)
    waiting, records = [], {}
    for group in options.groups.split(","):
        for name, samples, _ in frames(options.frames, group, not options.all):
            image = hashlib.sha256(samples.tobytes()).hexdigest()[:16]
            for word, coder in table.items():
                key = {"group": group, "frame": name, "coder": word, "options": coder.options, "image": image}
                record = had.get(names_of(key))
                again = any(part in word for part in options.again.split(",") if part)
                if chosen(options, word) and (again or not record or not is_it(record, key, coder.settings, options.ssimulacra)):
                    waiting.append(jobs.submit(measure_frame, options.build, key, samples, options.ssimulacra))
                elif record:
                    records[names_of(record)] = record
    for number, job in enumerate(concurrent.futures.as_completed(waiting), 1):
        record = job.result()
        records[names_of(record)] = record
        print("%d of %d: %s, %s, %s" % (number, len(waiting), *names_of(record)), file=sys.stderr, flush=True)
        if options.points:
            with open(options.points, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
    return records


def in_order(records):
    """Groups, coders and frames in one order, whichever was measured first."""
    return sorted(records, key=lambda r: (GROUPS.index(r["group"]), ORDER.index(r["coder"]), r["frame"]))


def chosen(options, coder):
    return coder == REFERENCE or not options.coders or any(word in coder for word in options.coders.split(","))


def curve(points, quality):
    return [(p[0], p[3][quality]) for p in points if p[3].get(quality) is not None and p[3]["PSNR"] < LOSSLESS]


def at_setting(record, setting):
    return record["points"][record["settings"].index(setting)]


def gain(record, reference, quality):
    """BD-rate in percent, and whether the record has all qualities that it is taken over. None without enough of them."""
    ours, theirs = curve(record["points"], quality), curve(reference["points"], quality)
    if not ours or not theirs:
        return None
    low, high = (at_setting(reference, q)[3][quality] for q in (30, 95))
    rate = bd_rate(ours, theirs, low, high)
    whole = min(q for _, q in ours) <= low + 0.2 and max(q for _, q in ours) >= high - 0.2
    return None if rate is None else (rate, whole)


def rates(records, reference):
    """MB/s of encoding and decoding at the points that are as good as JPEG at 75 by SSIM."""
    raw, encoding, decoding = 0, 0.0, 0.0
    for frame, record in records.items():
        aim = at_setting(reference[frame], 75)[3]["SSIM"]
        near = min(record["points"], key=lambda point: abs(point[3]["SSIM"] - aim))
        raw, encoding, decoding = raw + record["raw"], encoding + near[1], decoding + near[2]
    return raw / 1e6 / max(encoding, 1e-9), raw / 1e6 / max(decoding, 1e-9)


def print_group(group, by_coder, files):
    reference = by_coder[REFERENCE]
    qualities = [q for q in ("PSNR", "SSIM", "MS-SSIM", "rgb-SSIM", *TOOLS)
                 if any(q in r["points"][0][3] for r in reference.values())]
    print("\n%s, %d frames: BD-rate against %s in %%, MB/s of one core\n" % (group, len(reference), REFERENCE))
    print("| coder | " + " | ".join(qualities) + " | encode | decode |")
    print("|---" * (len(qualities) + 3) + "|")
    for coder, records in by_coder.items():
        cells = []
        for quality in qualities:
            gains = [gain(r, reference[f], quality) for f, r in records.items() if f in reference]
            gains = [g for g in gains if g is not None]
            mark = "*" if not all(whole for _, whole in gains) else ""
            cells.append("%+.1f%s" % (numpy.mean([rate for rate, _ in gains]), mark) if gains else "-")
        encode, decode = rates(records, reference)
        cells += ["%.3g" % encode, "-" if coder.startswith("x264") else "%.3g" % decode]
        print("| %s | %s |" % (coder, " | ".join(cells)))
        if files:
            for frame, record in records.items():
                row = [gain(record, reference[frame], quality) for quality in qualities]
                print("  %-44s" % frame[:44] + "".join("%9s" % ("-" if g is None else "%.1f" % g[0]) for g in row))
    sys.stdout.flush()


def plot(groups, path):
    """For each group, mean SSIM in dB over mean bits a sample at each setting."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "pictures"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(groups), figsize=(4.2 * len(groups), 4.2), squeeze=False)
    colours = ("#888888", "#0b62a8", "#7fb2dd", "#d1495b", "#e58e26", "#3a8f5c", "#8a5aa8", "#b0892f", "#444444", "#c774b2")
    for axis, (group, by_coder) in zip(axes[0], groups.items()):
        for number, (coder, records) in enumerate(by_coder.items()):
            count = min(len(r["points"]) for r in records.values())
            bits = [numpy.mean([8 * r["points"][i][0] / r["raw"] for r in records.values()]) for i in range(count)]
            shown = [numpy.mean([r["points"][i][3]["SSIM"] for r in records.values()]) for i in range(count)]
            axis.plot(bits, shown, color=colours[number % len(colours)], label=coder, linewidth=2.2 if number == 1 else 1.2,
                      linestyle="--" if number == 0 else "-")
        axis.set(title=group, xlabel="bits a sample", xlim=(0, 2.5 if group != "rgb" else 1.2), ylim=(7, 25))
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("SSIM of luma, -10 log10(1 - SSIM)")
    axes[0][-1].legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?")
    parser.add_argument("frames", nargs="?")
    parser.add_argument("--few", action="store_true", help="the default")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--coders", default="")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--ssimulacra", action="store_true")
    parser.add_argument("--points")
    parser.add_argument("--again", default="")
    parser.add_argument("--from", dest="source")
    parser.add_argument("--plot")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if not options.source and not options.frames:
        parser.error("BUILD and FRAMES, or --from FILE")
    return options


def read_points(path):
    """Records by their names; the last line of several counts."""
    if not path or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return {names_of(record): record for record in map(json.loads, file)}


def main():
    options = parse()
    had = read_points(options.source or options.points)
    records = had if options.source else measure(options, had)
    groups = {}
    for record in in_order(records.values()):
        if record["group"] in options.groups.split(",") and chosen(options, record["coder"]):
            groups.setdefault(record["group"], {}).setdefault(record["coder"], {})[record["frame"]] = record
    print("%s; %s" % (machine.model(), imagecodecs.version().split(",")[0]))
    for group, by_coder in groups.items():
        print_group(group, by_coder, options.files)
    if options.plot:
        plot(groups, options.plot)


if __name__ == "__main__":
    main()
