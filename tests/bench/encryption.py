#!/usr/bin/env python3
"""What encryption costs on one core: compress with its proof, and decompress, with a key and without, by turns.

usage: encryption.py LIBRARY FILE... [--efforts 5] [--turns 40] [--program TESSERA]
LIBRARY is build/lib/libtessera.so. Each file is compressed and restored in memory by an engine of one thread, TURNS
times each way in turn; of each way the least processor time of the process counts, which other jobs on the machine
disturb least. Prints a line for each effort: the sums over all files, and by how much they grow.
--program: also the instructions of `compress`, `test` and `decompress` of all files by valgrind's callgrind. Its
processor has no AVX-512, and libsodium takes a slower form there than on most processors.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "app", "python"))


def seconds(work, *words, **more):
    start = time.process_time()
    result = work(*words, **more)
    return time.process_time() - start, result


def measure(tessera, engine, data, key, effort, turns):
    """The least seconds of compress and decompress, without a key and with it; and the bytes of the .tsr."""
    least = {}
    made = {}
    for _ in range(turns):
        for name, more in ("plain", {}), ("sealed", {"key": key}):
            took, made[name] = seconds(tessera.compress, data, effort=effort, engine=engine, **more)
            least["compress", name] = min(took, least.get(("compress", name), took))
            took, back = seconds(tessera.decompress, made[name], engine=engine, **more)
            least["decompress", name] = min(took, least.get(("decompress", name), took))
            assert back == data
    return least, len(made["plain"])


def instructions(program, folder, *words):
    """Of one run, in user space."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, *words, "-q", "-r", "-T", "1"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return int(re.search(r"refs:\s+([\d,]+)", done.stderr).group(1).replace(",", ""))


def growth(plain, sealed):
    return f"{100 * (sealed / plain - 1):+.1f} %"


def count(program, files, effort):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "in"))
        for i, file in enumerate(files):
            os.symlink(os.path.abspath(file), os.path.join(folder, "in", f"{i}_{os.path.basename(file)}"))
        with open(os.path.join(folder, "key"), "wb") as out:
            out.write(os.urandom(32))
        compress = ["compress", "--engine", "cpu", f"-{effort}", "--dereference", "in", "-o"]
        for verb, plain, sealed in (
            ("compress", [*compress, "plain"], [*compress, "sealed", "--encrypt", "key"]),
            ("test", ["test", "plain"], ["test", "sealed", "--key", "key"]),
            ("decompress", ["decompress", "plain", "-o", "a"], ["decompress", "sealed", "-o", "b", "--key", "key"]),
        ):
            counts = [instructions(program, folder, *words) for words in (plain, sealed)]
            print(f"-{effort} {verb}: {counts[0]} to {counts[1]} instructions, {growth(*counts)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--efforts", default="5")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--program")
    options = parser.parse_args()
    os.environ["TESSERA_LIBRARY"] = os.path.abspath(options.library)
    import tessera

    key = tessera.Key(os.urandom(32))
    for effort in map(int, options.efforts.split(",")):
        sums, size = {}, 0
        with tessera.engine("cpu", threads=1) as engine:
            for name in options.files:
                with open(name, "rb") as file:
                    data = file.read()
                least, bytes_out = measure(tessera, engine, data, key, effort, options.turns)
                size += bytes_out
                for what, took in least.items():
                    sums[what] = sums.get(what, 0) + took
        for verb in "compress", "decompress":
            plain, sealed = sums[verb, "plain"], sums[verb, "sealed"]
            print(
                f"-{effort} {verb}: {1000 * plain:.2f} to {1000 * sealed:.2f} ms, {growth(plain, sealed)};"
                f" {1e9 * (sealed - plain) / size:.2f} ns for a byte of {size}",
                flush=True,
            )
        if options.program:
            count(os.path.abspath(options.program), options.files, effort)


if __name__ == "__main__":
    main()
