#!/usr/bin/env python3
"""Size and speed of the lossless path beside JPEG-LS (CharLS, through imagecodecs), in one run.

usage: lossless.py BUILD FRAMES [--repeats N] [--path predict|transform] [--coder huffman|cavlc] [--no-speed]
                   [--anchors TSV]

BUILD   a build folder with bin/tessera and bin/libtessera_bench.so (target bench_library)
FRAMES  a folder of PGM and PPM files whose names begin with their modality and an underscore, as
        research/raw_frames.py writes them

Sizes are whole .tsr files, one frame each, against whole JPEG-LS streams: those that this run encodes (imagecodecs takes
12 bits for 16), or, with --anchors, those of the column charls_jpegls of research/anchors_lossless.tsv. Speeds are of one
thread, samples in memory to payload in memory; of each frame the median of N
interleaved repeats, then the sum; output buffers are reused where the library can. Needs numpy and imagecodecs."""
import argparse
import csv
import ctypes
import functools
import os
import statistics
import subprocess
import tempfile
import time

import imagecodecs
import numpy

SPEED_GROUP = "CLINICAL16"


def read_frame(path):
    """The samples, rows x columns (x 3), and the bits that they use."""
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
    """The coder of libtessera_bench.so on an engine of so many threads."""

    def __init__(self, library, threads):
        self.library = ctypes.CDLL(library)
        self.library.tsr_engine_create.restype = ctypes.c_void_p
        self.library.bench_bound.restype = ctypes.c_size_t
        self.library.bench_encode.restype = self.library.bench_decode.restype = ctypes.c_double
        self.engine = ctypes.c_void_p(self.library.tsr_engine_create(1, threads, None))  # 1: the CPU engine

    @staticmethod
    def image(samples, bits):
        components = samples.shape[2] if samples.ndim == 3 else 1
        return [ctypes.c_uint32(v) for v in (samples.shape[1], samples.shape[0], components, bits)]

    def bound(self, samples, bits):
        return self.library.bench_bound(*self.image(samples, bits))

    def encode(self, samples, bits, path, coder, payload):
        image = self.image(samples, bits)
        size = ctypes.c_size_t()
        taken = self.library.bench_encode(
            self.engine, *image, ctypes.c_uint32(path), ctypes.c_uint32(coder), samples.ctypes.data_as(ctypes.c_void_p),
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
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def groups_of(name, samples):
    modality = name.split("_")[0]
    groups = [modality]
    if modality != "photo" and samples.ndim == 2 and samples.dtype.itemsize == 2:
        groups.append(SPEED_GROUP)
        if modality not in ("OT", "US"):
            groups.append(SPEED_GROUP + " without OT, US")
    return groups


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("frames")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--path", choices=("predict", "transform"), default="predict")
    parser.add_argument("--coder", choices=("huffman", "cavlc"), default="huffman")
    parser.add_argument("--anchors")
    parser.add_argument("--no-speed", action="store_true")
    options = parser.parse_args()
    path, coder = int(options.path == "transform"), int(options.coder == "cavlc")
    names = sorted(name for name in os.listdir(options.frames) if name.endswith((".pgm", ".ppm")))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [os.path.join(options.build, "bin/tessera"), "compress", "-q", "-r", "-o", folder, "--path", options.path,
             "--coder", options.coder, options.frames], check=True)
        whole = {name: os.path.getsize(os.path.join(folder, name + ".tsr")) for name in names}
    tessera = Tessera(os.path.abspath(os.path.join(options.build, "bin/libtessera_bench.so")), 1)
    anchors = {}
    if options.anchors:
        with open(options.anchors, encoding="utf-8") as file:
            anchors = {row["file"]: int(row["charls_jpegls"]) for row in csv.DictReader(file, delimiter="\t")}
    table, speed = {}, [0.0] * 4
    raw_bytes = 0
    for name in names:
        samples, bits = read_frame(os.path.join(options.frames, name))
        jpegls = imagecodecs.jpegls_encode(samples)
        groups = groups_of(name, samples)
        for group in groups:
            row = table.setdefault(group, [0, 0, 0, 0])
            for i, value in enumerate((1, samples.size, whole[name], anchors.get(name, len(jpegls)))):
                row[i] += value
        if options.no_speed or SPEED_GROUP not in groups:
            continue
        raw_bytes += samples.nbytes
        runs = []
        room, decoded = numpy.empty(tessera.bound(samples, bits), numpy.uint8), numpy.empty_like(samples)
        theirs_decoded = numpy.empty_like(samples)
        for _ in range(options.repeats):
            payload, ours_encode = tessera.encode(samples, bits, path, coder, room)
            jpegls, theirs_encode = timed(imagecodecs.jpegls_encode, samples)
            ours_decode = tessera.decode(payload, samples, bits, decoded)
            _, theirs_decode = timed(functools.partial(imagecodecs.jpegls_decode, out=theirs_decoded), jpegls)
            runs.append((ours_encode, theirs_encode, ours_decode, theirs_decode))
        speed = [s + statistics.median(column) for s, column in zip(speed, zip(*runs))]
    print("Sizes: %s, %s; bits per sample of whole files" % (options.path, options.coder))
    print("%-28s %6s %9s %9s %7s" % ("group", "frames", "tessera", "JPEG-LS", "ratio"))
    for group in sorted(table):
        frames, count, ours, theirs = table[group]
        print("%-28s %6d %9.3f %9.3f %7.3f" % (group, frames, 8 * ours / count, 8 * theirs / count, ours / theirs))
    if raw_bytes:
        print("\nSpeed of one thread on %s, MB/s of samples (10^6 bytes)" % SPEED_GROUP)
        print("%-8s %9s %9s %7s" % ("", "tessera", "CharLS", "ratio"))
        for i, what in ((0, "encode"), (2, "decode")):
            ours, theirs = (raw_bytes / 1e6 / speed[i + j] for j in (0, 1))
            print("%-8s %9.1f %9.1f %7.2f" % (what, ours, theirs, ours / theirs))


if __name__ == "__main__":
    main()
