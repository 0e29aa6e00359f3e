#!/usr/bin/env python3
"""Roads of PNG: CPU time of one thread with loss, of samples alone and exact, beside the same pixels as PPM.

usage: roads.py PICTURES PROGRAM [PROGRAM...] [--runs 5] [--only "qp 20,samples alone"] [--zlib]
PICTURES: a folder of PNG or PPM files, which Pillow writes anew as PNG (level 6) and as PPM to a folder of its own. All
programs, roads and both sets take turns; the table has medians. Ratio: PNG to PPM of the same program and road.
--zlib: the PNG files as they are, exact, and beside them zlib -9 (Python's) of their rows in the same run. Ratio: to that.
"""
import argparse
import os
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import machine

ROADS = (("qp 20", ["--qp", "20"]), ("samples alone", ["--samples-only"]), ("exact", []))
VERBS = ("compress", "test", "decompress")


def cpu_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def bytes_of(folder):
    return sum(os.path.getsize(os.path.join(path, name)) for path, _, names in os.walk(folder) for name in names)


def make_sets(pictures, work):
    from PIL import Image

    for kind in ("png", "ppm"):
        os.mkdir(os.path.join(work, kind))
    for name in sorted(os.listdir(pictures)):
        if not name.endswith((".png", ".ppm")):
            continue
        with Image.open(os.path.join(pictures, name)) as image:
            for kind, options in (("png", {"compress_level": 6}), ("ppm", {})):
                image.convert("RGB").save(os.path.join(work, kind, name[:-3] + kind), **options)


def rows_of(path):
    """The filtered rows of a PNG file."""
    with open(path, "rb") as file:
        data = file.read()
    at, stream = 8, b""
    while at + 12 <= len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        stream += data[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += 12 + size
    return zlib.decompress(stream)


def beside_zlib(pictures, programs, runs):
    """PNG files as they are: ratios of CPU times of the whole program to zlib -9 of their rows."""
    results = {program: [] for program in programs}
    zlib_s = []
    with tempfile.TemporaryDirectory() as work:
        os.mkdir(os.path.join(work, "png"))
        for name in sorted(name for name in os.listdir(pictures) if name.endswith(".png")):
            shutil.copy(os.path.join(pictures, name), os.path.join(work, "png", name))
        rows = [rows_of(os.path.join(work, "png", name)) for name in sorted(os.listdir(os.path.join(work, "png")))]
        plain = sum(map(len, rows))
        for _ in range(runs):
            start = time.process_time()
            for row in rows:
                zlib.compress(row, 9)
            zlib_s.append(time.process_time() - start)
            for program in programs:
                results[program].append(take_road(program, "png", [], work)[0])
    print(f"{machine.model()}; {len(rows)} PNG files, {plain / 1e6:.1f} MB of rows, one thread, {runs} turns")
    print(f"zlib -9: {1e9 * statistics.median(zlib_s) / plain:.0f} ns a plain byte")
    for program, taken in results.items():
        for i, verb in enumerate(VERBS):
            ratios = sorted(run[i] / z for run, z in zip(taken, zlib_s))
            ns = 1e9 * statistics.median(run[i] for run in taken) / plain
            print(f"{verb:10} {ns:6.0f} ns a plain byte, over zlib -9 {statistics.median(ratios):.2f} "
                  f"({ratios[0]:.2f} to {ratios[-1]:.2f})  {program}")
    return 0


def take_road(program, kind, options, work):
    coded, back = os.path.join(work, "coded"), os.path.join(work, "back")
    for folder in (coded, back):
        shutil.rmtree(folder, ignore_errors=True)
    common = ["-rq", "--threads", "1", "--engine", "cpu"]
    seconds = (cpu_seconds([program, "compress", *common, *options, os.path.join(work, kind), "-o", coded]),
               cpu_seconds([program, "test", *common, coded]),
               cpu_seconds([program, "decompress", *common, coded, "-o", back]))
    return seconds, bytes_of(coded), bytes_of(back)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pictures")
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="", help="these roads, separated by commas: " + ", ".join(name for name, _ in ROADS))
    parser.add_argument("--zlib", action="store_true")
    arguments = parser.parse_args()
    if arguments.zlib:
        return beside_zlib(arguments.pictures, arguments.programs, arguments.runs)
    results = {}
    with tempfile.TemporaryDirectory() as work:
        make_sets(arguments.pictures, work)
        megabytes = bytes_of(os.path.join(work, "ppm")) / 1e6
        for _ in range(arguments.runs):
            for road, options in ROADS:
                if arguments.only and road not in arguments.only.split(","):
                    continue
                for program in arguments.programs:
                    for kind in ("png", "ppm"):
                        taken = take_road(program, kind, options, work)
                        results.setdefault((road, program, kind), []).append(taken)
    print(f"{megabytes:.1f} MB of pixels, one thread, CPU seconds (plain MB/s; ratio to PPM), medians of {arguments.runs}")
    for (road, program, kind), taken in results.items():
        cells = []
        for i, verb in enumerate(VERBS):
            seconds = statistics.median(run[0][i] for run in taken)
            cell = f"{verb} {seconds:.3f} ({megabytes / seconds:.0f}"
            if kind == "png":
                beside = statistics.median(run[0][i] for run in results[road, program, "ppm"])
                cell += f"; {seconds / beside:.2f} x"
            cells.append(cell + ")")
        print(f"{road:14} {kind}  {'  '.join(cells)}  .tsr {taken[0][1]}, restored {taken[0][2]}  {program}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
