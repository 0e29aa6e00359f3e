#!/usr/bin/env python3
"""CPU time of compressing and restoring small PNG files: small_pngs.py PROGRAM... [--set FOLDER] [--data FOLDER] [--turns N]

PROGRAM    one or more builds of bin/tessera, oldest first: they run by turns, so that two commits are compared in one run
--set      what png_set.py made. Else the PNG files of --data (default: /work/shared/data) are taken
--turns    default: 5

All PNG files of at most 32 KB count, each content once. Each turn runs `tessera compress -r -T 1` and `tessera decompress -r
-T 1` of each program, and `zstd -19 -T1` and `zstd -d`. Prints medians of user and system seconds, with the lowest and the
highest, the sum of the files' bytes, and ratios to the first program. Ends with exit status 1 if a file does not come back,
or if the programs do not write the same bytes. Needs Python, and zstd for its rows."""
import argparse
import filecmp
import hashlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

import machine

LARGEST = 32 << 10


def copy_set(folder, target):
    """Copies the files; returns their number and bytes."""
    seen, total = set(), 0
    paths = sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names if name.endswith(".png"))
    for path in paths:
        if os.path.islink(path) or os.path.getsize(path) > LARGEST:
            continue
        with open(path, "rb") as file:
            data = file.read()
        digest = hashlib.sha256(data).digest()
        if digest in seen:
            continue
        with open(os.path.join(target, "%05d.png" % len(seen)), "wb") as file:
            file.write(data)
        seen.add(digest)
        total += len(data)
    return len(seen), total


def cpu(command):
    """User and system seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def files_of(folder):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def turn(way, program, originals, work):
    """Compresses and restores; returns both times and the folder of compressed files."""
    packed, back = os.path.join(work, "packed"), os.path.join(work, "back")
    for folder in packed, back:
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
    if way == "zstd":
        times = (cpu(["zstd", "-q", "-19", "-T1", *files_of(originals), "--output-dir-flat", packed]),
                 cpu(["zstd", "-q", "-d", *files_of(packed), "--output-dir-flat", back]))
    else:
        times = (cpu([program, "compress", "-q", "-f", "-r", "-T", "1", originals, "-o", packed]),
                 cpu([program, "decompress", "-q", "-f", "-r", "-T", "1", packed, "-o", back]))
    names = os.listdir(originals)
    if sorted(os.listdir(back)) != sorted(names) or filecmp.cmpfiles(originals, back, names, shallow=False)[0] != names:
        sys.exit("%s: a file does not come back" % program)
    return times, packed


def hash_of(folder):
    digest = hashlib.sha256()
    for path in files_of(folder):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.digest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--set")
    parser.add_argument("--data", default="/work/shared/data")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    ways = [("tessera", program) for program in options.programs] + ([("zstd", "zstd -19")] if shutil.which("zstd") else [])
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as work:
        originals = os.path.join(work, "originals")
        os.mkdir(originals)
        count, total = copy_set(os.path.join(options.set, "set") if options.set else options.data, originals)
        times, sizes, hashes = [[] for _ in ways], [0] * len(ways), set()
        for _ in range(options.turns):
            for number, (way, program) in enumerate(ways):
                taken, packed = turn(way, program, originals, work)
                times[number].append(taken)
                sizes[number] = sum(map(os.path.getsize, files_of(packed)))
                if way == "tessera":
                    hashes.add(hash_of(packed))
    print("%s; %d files, %d bytes; %d turns; user and system seconds" % (machine.model(), count, total, options.turns))
    for (way, program), both, size in zip(ways, times, sizes):
        line = "%-40s %9d bytes" % (program[-40:], size)
        for verb, taken, first in zip(("compress", "restore"), zip(*both), zip(*times[0])):
            middle = statistics.median(taken)
            line += "  %s %.2f (%.2f to %.2f), %.3f x" % (verb, middle, min(taken), max(taken), middle / statistics.median(first))
        print(line)
    if len(hashes) > 1:
        sys.exit("the programs write different bytes")


if __name__ == "__main__":
    main()
