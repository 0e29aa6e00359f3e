#!/usr/bin/env python3
"""DICOM files without pixels, beside zstd -19 and xz -9e: elements.py BUILD FOLDER... [--copies N] [--list]

Takes the files of the FOLDERs of which `tessera info` says that they have no pixel data. Prints bytes of all, and MB/s of
one thread; compressing counts the proof that a piece comes back. The time is that of N copies of all in one run less that of
one copy, so that starting a program is no part of it. --list writes a line for each file."""
import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time

import machine


def lines(command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    return [item for item in map(json.loads, done.stdout.splitlines()) if "file" in item]


def packed_files(program, folder, work):
    """Paths of the files, and bytes of their .tsr"""
    made = os.path.join(work, "made")
    lines([program, "compress", "--json", "-r", "-q", folder, "-o", made])
    for item in lines([program, "info", "-r", "--json", made]):
        if item.get("kind") == "dicom" and item.get("reason") == "it has no pixel data":
            original = os.path.join(folder, os.path.relpath(item["file"], made)[:-len(".tsr")])
            yield original, os.path.getsize(item["file"])
    shutil.rmtree(made)


def copy_all(paths, copies, to):
    names = []
    os.mkdir(to)
    for copy in range(copies):
        for number, path in enumerate(paths):
            names.append(os.path.join(to, "%d_%d" % (copy, number)))
            shutil.copyfile(path, names[-1])
    return names


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def there_and_back(coder, program, paths, copies, work):
    """Seconds of compressing and restoring, and bytes made"""
    there, made, back = (os.path.join(work, name) for name in ("there", "made", "back"))
    names = copy_all(paths, copies, there)
    if coder == "tessera":
        times = [seconds([program, "compress", "-r", "-q", "-T", "1", "--verify", "none", there, "-o", made]),
                 seconds([program, "decompress", "-r", "-q", "-T", "1", made, "-o", back])]
        size = sum(os.path.getsize(os.path.join(made, name)) for name in os.listdir(made))
    else:
        ending = {"zstd": ".zst", "xz": ".xz"}[coder]
        packs = {"zstd": ["zstd", "-19", "-q", "--rm", "--single-thread"], "xz": ["xz", "-9e", "-T1"]}[coder]
        times = [seconds(packs + names)]
        size = sum(os.path.getsize(name + ending) for name in names)
        times.append(seconds([coder, "-d", "-q"] + [name + ending for name in names]))
    for folder in (there, made, back):
        shutil.rmtree(folder, ignore_errors=True)
    return times, size // copies


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--copies", type=int, default=9)
    parser.add_argument("--list", action="store_true", help="a line for each file")
    options = parser.parse_args()
    program = os.path.join(options.build, "bin", "tessera")
    with tempfile.TemporaryDirectory() as work:
        files = [file for folder in options.folders for file in packed_files(program, os.path.normpath(folder), work)]
        paths = [path for path, _ in files]
        whole = sum(map(os.path.getsize, paths))
        for path, size in files if options.list else ():
            print("%9d %9d %s" % (os.path.getsize(path), size, path))
        print("%s, %s; %d files, %d bytes\n" % (machine.model(), time.strftime("%Y-%m-%d"), len(files), whole))
        print("| coder | bytes | compress, MB/s | restore, MB/s |\n|---|---|---|---|")
        for coder in ("tessera", "zstd", "xz"):
            few, size = there_and_back(coder, program, paths, 1, work)
            many, _ = there_and_back(coder, program, paths, options.copies, work)
            speeds = [(options.copies - 1) * whole / 1e6 / max(b - a, 1e-9) for a, b in zip(few, many)]
            print("| %s | %d | %.2f | %.2f |" % (coder, size, *speeds))


main()
