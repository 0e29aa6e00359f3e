#!/usr/bin/env python3
"""Size and speed of the lossless efforts, compared with other coders, in one run.

usage: lossless.py BUILD FRAMES [--efforts 1,5,9] [--path predict|transform] [--coder huffman|cavlc|rans] [--repeats N]
                   [--anchors TSV] [--cjxl] [--by-frame] [--only NAME,...] [--speed-group GROUP] [--speed-frames N]
                   [--jxl] [--no-speed] [--isa plain,avx2,avx512]

BUILD   a build folder with bin/tessera and bin/libtessera_bench.so (target bench_library)
FRAMES  a folder of PGM and PPM files whose names begin with their modality and an underscore, as
        research/raw_frames.py or `tessera_testdata FOLDER drawn` writes them

Sizes are whole .tsr files, one frame each, against whole streams of JPEG-LS and JPEG XL effort 7: with --anchors those of
research/anchors_lossless.tsv, otherwise JPEG-LS as this run encodes it (imagecodecs takes 12 bits for 16) and, with --cjxl, JPEG XL by `cjxl -d 0 -e 7`.
--by-frame adds a line for each frame, --only takes the frames whose names contain one of these. GEO is the geometric
mean of the ratios of CR, CT, MG, MR, NM, PT and XA (16 bits). Speeds are of one thread, in CPU time, samples in memory to payload in memory,
on CLINICAL16 (--speed-group: another group, or "all") or N frames of it spread evenly: the sum over frames of each frame's median of the interleaved repeats. Output
buffers are reused if the library can do that. --isa measures speeds once for each instruction set (TESSERA_ISA), each beside
CharLS in its own run, as a table. --jxl times JPEG XL effort 7, too (once a frame, because it is slow). Needs
numpy and imagecodecs."""
import argparse
import csv
import ctypes
import functools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import imagecodecs
import numpy

import machine

SPEED_GROUP = "CLINICAL16"
GEO = [modality + "16" for modality in ("CR", "CT", "MG", "MR", "NM", "PT", "XA")]
CODERS = {None: 0, "huffman": 1, "cavlc": 2, "rans": 3}  # enum tsr_coder; 0: the effort chooses


def read_frame(path):
    """The samples, rows x columns (x 3), and the number of bits that they use."""
    with open(path, "rb") as file:
        data = file.read()
    fields, at = [], 0
    while len(fields) < 4:
        while data[at : at + 1].isspace():
            at += 1
        if data[at : at + 1] == b"#":
            at = data.index(b"\n", at)
            continue
        end = at
        while not data[end : end + 1].isspace():
            end += 1
        fields.append(data[at:end])
        at = end
    columns, rows, top = (int(field) for field in fields[1:4])
    components = 3 if fields[0] == b"P6" else 1
    kind = numpy.dtype(">u2") if top > 255 else numpy.dtype("u1")
    samples = numpy.frombuffer(data, kind, columns * rows * components, at + 1).astype(kind.newbyteorder("="))
    shape = (rows, columns, 3) if components == 3 else (rows, columns)
    return numpy.ascontiguousarray(samples.reshape(shape)), top.bit_length()


class Tessera:
    """The coder of libtessera_bench.so on an engine with this number of threads."""

    def __init__(self, library, threads):
        self.library = ctypes.CDLL(library)
        self.library.bench_engine.restype = ctypes.c_void_p
        self.library.bench_bound.restype = ctypes.c_size_t
        self.library.bench_encode.restype = self.library.bench_decode.restype = ctypes.c_double
        self.engine = ctypes.c_void_p(self.library.bench_engine(ctypes.c_uint32(threads)))

    @staticmethod
    def image(samples, bits):
        components = samples.shape[2] if samples.ndim == 3 else 1
        return [ctypes.c_uint32(v) for v in (samples.shape[1], samples.shape[0], components, bits)]

    def bound(self, samples, bits):
        return self.library.bench_bound(*self.image(samples, bits))

    def encode(self, samples, bits, path, coder, effort, payload):
        image = self.image(samples, bits)
        size = ctypes.c_size_t()
        taken = self.library.bench_encode(
            self.engine, *image, ctypes.c_uint32(path), ctypes.c_uint32(coder),
            ctypes.c_uint32(effort), samples.ctypes.data_as(ctypes.c_void_p),
            payload.ctypes.data_as(ctypes.c_void_p), ctypes.byref(size))
        if taken < 0:
            raise RuntimeError("tsr_encode_frame fails")
        return payload[: size.value], taken

    def decode(self, payload, samples, bits, decoded):
        taken = self.library.bench_decode(
            self.engine, *self.image(samples, bits), payload.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_size_t(payload.size), decoded.ctypes.data_as(ctypes.c_void_p))
        if taken < 0 or not numpy.array_equal(decoded, samples):
            raise RuntimeError("tsr_decode_frame does not give the samples back")
        return taken


def timed(function, *arguments):
    start = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - start


def groups_of(name, samples):
    modality = name.split("_")[0]
    groups = [modality + ("-rgb" if samples.ndim == 3 else str(8 * samples.dtype.itemsize))]
    if modality != "photo" and samples.ndim == 2 and samples.dtype.itemsize == 2:
        groups.append(SPEED_GROUP)
    return groups


def read_anchors(path):
    """The bytes of JPEG-LS and JPEG XL, by frame."""
    if not path:
        return {}
    with open(path, encoding="utf-8") as file:
        return {
            row["file"]: (int(row["charls_jpegls"]), int(row["jxl_e7"])) for row in csv.DictReader(file, delimiter="\t")
        }


def read_rivals(options, names):
    """The bytes of JPEG-LS and JPEG XL, by frame: those of the anchors, others measured."""
    rivals = read_anchors(options.anchors)
    for name in names:
        if name in rivals:
            continue
        path, jxl = os.path.join(options.frames, name), 0
        if options.cjxl:
            with tempfile.NamedTemporaryFile(suffix=".jxl") as file:
                command = ["cjxl", "-d", "0", "-e", "7", "--num_threads=1", path, file.name]
                subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
                jxl = os.path.getsize(file.name)
        rivals[name] = len(imagecodecs.jpegls_encode(read_frame(path)[0])), jxl
    return rivals


def measure_sizes(options, effort, names, rivals):
    """By group and by frame: frames, pixels, and the bytes of our files, JPEG-LS and JPEG XL."""
    command = [os.path.join(options.build, "bin/tessera"), "compress", "-q", "-r", "-%d" % effort, "--path", options.path]
    if options.coder:
        command += ["--coder", options.coder]
    table = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, "-o", folder, *(os.path.join(options.frames, name) for name in names)], check=True)
        for name in names:
            samples, _ = read_frame(os.path.join(options.frames, name))
            theirs = rivals[name]
            pixels = samples.shape[0] * samples.shape[1]
            for group in groups_of(name, samples) + ["all"] + [name] * options.by_frame:
                row = table.setdefault(group, [0, 0, 0, 0, 0])
                size = os.path.getsize(os.path.join(folder, name + ".tsr"))
                for i, value in enumerate((1, pixels, size, *theirs)):
                    row[i] += value
    return table


def geometric_mean(table, column):
    if any(group not in table or not table[group][column] for group in GEO):
        return math.nan
    return math.exp(sum(math.log(table[g][2] / table[g][column]) for g in GEO) / len(GEO))


def print_sizes(tables):
    print("Bits per pixel of whole files; in brackets over JPEG-LS / over JPEG XL effort 7")
    efforts = sorted(tables)
    width = max(11, *map(len, tables[efforts[0]]))
    print("%-*s %6s %8s %8s" % (width, "group", "frames", "JPEG-LS", "JXL e7") + "".join("%22s" % ("effort %d" % l) for l in efforts))
    for group in sorted(tables[efforts[0]]):
        frames, pixels, _, jpegls, jxl = tables[efforts[0]][group]
        line = "%-*s %6d %8.3f %8.3f" % (width, group, frames, 8 * jpegls / pixels, 8 * jxl / pixels)
        for effort in efforts:
            ours = tables[effort][group][2]
            line += "%8.3f (%.3f/%s)" % (8 * ours / pixels, ours / jpegls, "%.3f" % (ours / jxl) if jxl else "-")
        print(line)
    print("%-*s %24s" % (width, "GEO", "") + "".join(
        "%8s (%.3f/%.3f)" % ("", geometric_mean(tables[l], 3), geometric_mean(tables[l], 4)) for l in efforts))


def measure_speed(options, efforts, names):
    """MB/s of samples: by effort (encode, decode), then CharLS, OpenJPH, JPEG XL e7."""
    tessera = Tessera(os.path.abspath(os.path.join(options.build, "bin/libtessera_bench.so")), 1)
    path, coder = int(options.path == "transform"), CODERS[options.coder]
    frames = []
    for name in names:
        samples, bits = read_frame(os.path.join(options.frames, name))
        if options.speed_group in groups_of(name, samples) + ["all"]:
            frames.append((samples, bits))
    if options.speed_frames:
        frames = frames[:: max(1, len(frames) // options.speed_frames)]
    total, raw_bytes = {}, 0
    for samples, bits in frames:
        raw_bytes += samples.nbytes
        room, decoded = numpy.empty(tessera.bound(samples, bits), numpy.uint8), numpy.empty_like(samples)
        runs = {}
        for repeat in range(options.repeats):
            for effort in efforts:
                payload, encode = tessera.encode(samples, bits, path, coder, effort, room)
                runs.setdefault("effort %d" % effort, []).append((encode, tessera.decode(payload, samples, bits, decoded)))
            jpegls, encode = timed(imagecodecs.jpegls_encode, samples)
            _, decode = timed(functools.partial(imagecodecs.jpegls_decode, out=decoded), jpegls)
            runs.setdefault("CharLS", []).append((encode, decode))
            htj2k, encode = timed(functools.partial(imagecodecs.htj2k_encode, reversible=True), samples)
            _, decode = timed(imagecodecs.htj2k_decode, htj2k)
            runs.setdefault("OpenJPH", []).append((encode, decode))
            if options.jxl and repeat == 0:
                jxl, encode = timed(
                    functools.partial(imagecodecs.jpegxl_encode, lossless=True, effort=7, numthreads=1), samples)
                _, decode = timed(functools.partial(imagecodecs.jpegxl_decode, numthreads=1), jxl)
                runs.setdefault("JPEG XL e7", []).append((encode, decode))
        for what, pairs in runs.items():
            sums = total.setdefault(what, [0.0, 0.0])
            for i in (0, 1):
                sums[i] += statistics.median(pair[i] for pair in pairs)
    return {what: [raw_bytes / 1e6 / seconds for seconds in sums] for what, sums in total.items()}, len(frames)


def measure_sets(isas):
    """What measure_speed returns, by instruction set: each in a process of its own, since the library asks once."""
    results = {}
    for isa in isas:
        process = subprocess.run([sys.executable, *sys.argv, "--no-sizes", "--isa", "", "--as-json"], check=True,
                                 env=dict(os.environ, TESSERA_ISA=isa), stdout=subprocess.PIPE)
        results[isa] = json.loads(process.stdout)
    return results


def print_sets(results, group):
    count = next(iter(results.values()))[1]
    codecs = [what for what in next(iter(results.values()))[0] if what != "CharLS"]
    print("\nOne thread, %d frames of %s, rates over CharLS in the same run, %s\n" % (count, group, machine.model()))
    print("| | CharLS MB/s | " + " | ".join(codecs) + " |\n|---|---|" + "---|" * len(codecs))
    for side, verb in enumerate(("encode", "decode")):
        for isa, (speeds, _) in results.items():
            charls = speeds["CharLS"][side]
            print("| %s, %s | %.0f | " % (verb, isa, charls) +
                  " | ".join("%.2f" % (speeds[what][side] / charls) for what in codecs) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("frames")
    parser.add_argument("--efforts", default="1,5,9")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--path", choices=("predict", "transform"), default="predict")
    parser.add_argument("--coder", choices=tuple(c for c in CODERS if c))
    parser.add_argument("--anchors")
    parser.add_argument("--cjxl", action="store_true")
    parser.add_argument("--by-frame", action="store_true")
    parser.add_argument("--only", default="", type=lambda names: names.split(","))
    parser.add_argument("--speed-group", default=SPEED_GROUP)
    parser.add_argument("--speed-frames", type=int, default=0)
    parser.add_argument("--jxl", action="store_true")
    parser.add_argument("--no-speed", action="store_true")
    parser.add_argument("--no-sizes", action="store_true")
    parser.add_argument("--isa", default="")
    parser.add_argument("--as-json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    efforts = [int(effort) for effort in options.efforts.split(",")]
    names = sorted(name for name in os.listdir(options.frames) if name.endswith((".pgm", ".ppm")) and any(part in name for part in options.only or [""]))
    if not options.no_sizes:
        rivals = read_rivals(options, names)
        print_sizes({effort: measure_sizes(options, effort, names, rivals) for effort in efforts})
    if options.isa:
        print_sets(measure_sets(options.isa.split(",")), options.speed_group)
    elif options.as_json:
        print(json.dumps(measure_speed(options, efforts, names)))
    elif not options.no_speed:
        speeds, count = measure_speed(options, efforts, names)
        print("\nOne thread, %d frames of %s, MB/s of samples (10^6 bytes); over CharLS" % (count, options.speed_group))
        for what, (encode, decode) in speeds.items():
            print("%-12s encode %7.1f (%.2f)  decode %7.1f (%.2f)" % (
                what, encode, encode / speeds["CharLS"][0], decode, decode / speeds["CharLS"][1]))


if __name__ == "__main__":
    main()
