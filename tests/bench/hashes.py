#!/usr/bin/env python3
"""Hashes of the bytes that a program writes. They show that a change of the code leaves every .tsr file as it was.

usage: hashes.py PROGRAM FOLDER OUTPUT [--work FOLDER] [--efforts 1,3,5,7,9] [--program-options "..."]
       hashes.py --compare A B

PROGRAM    the program (bin/tessera)
FOLDER     images; all files below it are compressed, `-r`
OUTPUT     receives a line for each .tsr: hash, coding, path; and each coding's exit status
--compare  says whether two such lists are the same, and names the first differences
The codings: each effort without loss with both paths and three coders, with QP 20 and three coders, with a largest error of 3,
and as a series. 55 codings of ../shared/data take six minutes on two cores with AVX-512. Needs Python, and its package xxhash
for XXH3; without it, lines have SHA-256 instead."""
import argparse
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

try:
    import xxhash
except ImportError:
    xxhash = None


def hash_of(path):
    with open(path, "rb") as f:
        data = f.read()
    return xxhash.xxh3_128_hexdigest(data) if xxhash else hashlib.sha256(data).hexdigest()


def codings(efforts):
    coders = ("huffman", "cavlc", "rans")
    for effort in efforts:
        for path in ("predict", "transform"):
            for coder in coders:
                yield f"-{effort} --path {path} --coder {coder}"
        for coder in coders:
            yield f"-{effort} --qp 20 --coder {coder}"
        yield f"-{effort} --max-error 3"
        yield f"-{effort} --series"


def lines_of(program, more, folder, work, coding):
    output = os.path.join(work, "out")
    target = output + ".tsr" if "--series" in coding else output
    command = [program, "compress", "-r", "-q", "-f", "--verify", "none", *more, *coding.split(), "-o", target, folder]
    status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    yield f"status {status}  {coding}"
    if os.path.isfile(target):
        yield f"{hash_of(target)}  {coding}"
        os.remove(target)
    for where, folders, names in os.walk(output):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(where, name)
            yield f"{hash_of(path)}  {coding}  {os.path.relpath(path, output)}"
    shutil.rmtree(output, ignore_errors=True)


def compare(a, b):
    with open(a) as f, open(b) as g:
        one, other = f.read().splitlines(), g.read().splitlines()
    differences = [(x, y) for x, y in zip(one, other) if x != y]
    if not one or len(one) != len(other) or differences:
        print(f"{len(one)} and {len(other)} lines, {len(differences)} of them differ")
        for x, y in differences[:10]:
            print(f"< {x}\n> {y}")
        return 1
    print(f"{len(one)} lines, all the same")
    return 0


def main():
    if sys.argv[1:2] == ["--compare"] and len(sys.argv) == 4:
        return compare(sys.argv[2], sys.argv[3])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("output")
    parser.add_argument("--work")
    parser.add_argument("--efforts", default="1,3,5,7,9")
    parser.add_argument("--program-options", default="")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as work, open(options.output, "w") as out:
        for coding in codings([int(e) for e in options.efforts.split(",")]):
            for line in lines_of(options.program, shlex.split(options.program_options), options.folder, work, coding):
                print(line, file=out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
