#!/usr/bin/env python3
"""Streams of JPEG 2000 (io/J2K.md) against OpenJPEG, in both directions:

    python3 tests/bench/streams_j2k.py BUILD FOLDER [--count 6]

1. OpenJPEG decodes the streams of the unit test's generator to the same samples.
2. opj_compress codes crops of FOLDER's PGM and PPM files with many options. Each stream must come back, or be refused.
3. Speed: reading and writing beside opj_decompress and opj_compress, one thread each, MB/s of samples.

It wants imagecodecs, numpy, and opj_compress of libopenjp2-tools."""
import argparse
import collections
import glob
import os
import re
import subprocess
import tempfile
import time

import imagecodecs
import numpy

OPTIONS = """-n 6
-n 1
-n 3 -b 32,32
-n 7 -b 4,4
-b 1024,4
-b 4,1024
-p RLCP -r 20,5,1
-p RPCL -r 40,20,10,5,2,1
-p PCRL -c [64,64],[32,32]
-p CPRL -c [128,128] -r 10,1
-p RPCL -c [32,64],[16,16] -t 110,90
-t 128,128
-t 50,70 -T 3,5 -d 13,21
-d 17,9 -n 5
-SOP -EPH
-SOP -EPH -r 10,1 -t 160,160 -TP R
-TP L -r 30,10,1
-TP C -p CPRL
-PLT -TLM -t 128,128
-M 2
-M 8
-M 32
-M 42
-mct 0
-r 1
-r 2""".splitlines()


def read_pnm(path):
    data = open(path, "rb").read()
    match = re.match(rb"(P[56])\s+(?:#[^\n]*\n)*(\d+)\s+(\d+)\s+(\d+)\s", data)
    columns, rows, most = map(int, match.groups()[1:])
    components = 3 if match[1] == b"P6" else 1
    samples = numpy.frombuffer(data, ">u2" if most > 255 else "u1", columns * rows * components, match.end())
    return samples.reshape(rows, columns, components), most


def write_pnm(path, samples, most):
    rows, columns, components = samples.shape
    with open(path, "wb") as file:
        file.write(b"P%d\n%d %d\n%d\n" % (6 if components == 3 else 5, columns, rows, most))
        file.write(numpy.ascontiguousarray(samples).tobytes())


def generated(build, folder):
    """How many streams of the generator OpenJPEG decodes to the raster."""
    program = glob.glob(os.path.join(build, "**", "test_stream_j2k"), recursive=True)[0]
    subprocess.run([program, folder], check=True)
    counts = collections.Counter()
    for path in sorted(glob.glob(os.path.join(folder, "*.j2k"))):
        _, bits, planar = os.path.basename(path)[:-4].split("_")
        raster = numpy.fromfile(path[:-3] + "raw", "<u1" if bits == "8" else "<u2")
        try:
            decoded = imagecodecs.jpeg2k_decode(open(path, "rb").read(), planar=False, verbose=0)
        except Exception as error:  # what the library cannot do
            counts[f"not decoded: {str(error)[:60]}"] += 1
            continue
        if planar == "1" and decoded.ndim == 3:
            decoded = numpy.moveaxis(decoded, 2, 0)
        same = numpy.array_equal(decoded.reshape(-1).astype(raster.dtype), raster)
        counts["same samples" if same else "other samples"] += 1
        if not same:
            print("other samples:", path)
    print("decoded by OpenJPEG:", dict(counts))


def probe(build, jobs):
    lines = "".join(f"jpeg-2000 {c} {r} {n} {b} 0 {t} {p}\n" for c, r, n, b, t, p in jobs)
    run = subprocess.run([os.path.join(build, "bin", "stream_probe")], input=lines, capture_output=True, text=True)
    return run.stdout.splitlines()


def coded(build, folder, images):
    """What becomes of streams of opj_compress."""
    jobs = []
    for number, (samples, most) in enumerate(images):
        rows, columns, components = samples.shape
        crop = samples[rows // 4:rows // 4 + 203, columns // 4:columns // 4 + 301]
        name = os.path.join(folder, "in.ppm" if components == 3 else "in.pgm")
        write_pnm(name, crop, most)
        for option, words in enumerate(OPTIONS):
            out = os.path.join(folder, f"{number}_{option}.j2k")
            subprocess.run(["opj_compress", "-i", name, "-o", out, *words.split()], capture_output=True)
            if os.path.exists(out):
                jobs.append((crop.shape[1], crop.shape[0], components, 16 if most > 255 else 8, 1, out))
    counts, sums = collections.Counter(), [0, 0]
    for line in probe(build, jobs):
        words = line.split()
        counts[words[0] if words[0] != "refused" else line] += 1
        if words[0] == "exact":
            sums[0] += int(words[1])
            sums[1] += int(words[2])
    print("streams of opj_compress:", dict(counts))
    print(f"residues: {sums[1]} of {sums[0]} bytes, {sums[1] / max(1, sums[0]):.4f}")


def speed(build, folder, images):
    jobs, theirs, total = [], [0.0, 0.0], 0
    for number, (samples, most) in enumerate(images):
        samples = samples.astype("u2" if most > 255 else "u1").squeeze()
        begin = time.process_time()
        stream = imagecodecs.jpeg2k_encode(samples, level=0, codecformat="j2k", numthreads=1)
        middle = time.process_time()
        imagecodecs.jpeg2k_decode(stream, numthreads=1)
        theirs[0] += middle - begin
        theirs[1] += time.process_time() - middle
        path = os.path.join(folder, f"speed_{number}.j2k")
        open(path, "wb").write(stream)
        components = 1 if samples.ndim == 2 else samples.shape[2]
        jobs.append((samples.shape[1], samples.shape[0], components, 8 * samples.itemsize, 2, path))
        total += samples.nbytes
    lines = [line.split() for line in probe(build, jobs)]
    if any(line[0] != "exact" for line in lines):
        print("speed: not all streams came back:", lines)
        return
    read, write = (sum(float(line[i]) for line in lines) for i in (4, 5))
    mb = total / 1e6
    print(f"read (decode, encode) {mb / read:.1f} MB/s, write (encode) {mb / write:.1f} MB/s; "
          f"OpenJPEG decodes {mb / theirs[1]:.1f}, encodes {mb / theirs[0]:.1f} MB/s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("--count", type=int, default=6)
    arguments = parser.parse_args()
    paths = sorted(glob.glob(os.path.join(arguments.folder, "*.p[gp]m")))
    step = max(1, len(paths) // arguments.count)
    images = [read_pnm(path) for path in paths[::step][:arguments.count]]
    with tempfile.TemporaryDirectory() as folder:
        generated(arguments.build, folder)
    with tempfile.TemporaryDirectory() as folder:
        coded(arguments.build, folder, images)
        speed(arguments.build, folder, images)


main()
