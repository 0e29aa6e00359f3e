#!/usr/bin/env python3
"""Where the CPU engine's instructions go: callgrind's counts by stage, for a sample.

usage: stages.py BUILD FRAMES [--efforts 1,2,3,5,7,9] [--isa plain|avx2] [--frames 24] [--png] [--options "..."]

BUILD    a build folder whose tessera has debug symbols: cmake -DCMAKE_C_FLAGS_RELEASE="-O3 -DNDEBUG -g"; preset release
         otherwise. It needs no CUDA.
FRAMES   a folder of PGM files as research/raw_frames.py writes them; --frames of the 94 clinical ones, spread evenly

Each frame is compressed with --verify none, and decompressed, by one thread under valgrind. What a function executes
itself counts for the folder of kernels/ that its file lies in; a header's step that was not inlined counts for the
header. What is outside of kernels/, transform/ and entropy/ is left out. valgrind has no AVX-512.

--png    FRAMES has PNG files. All of the program counts, in percent: files of io/, folders of the codec, libraries
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

STAGES = ("planes", "training", "residuals", "tables", "lanes", "blocks", "slices", "measure", "engine_cpu", "pool")


def stage_of(path):
    """The folder of kernels/ that a file lies in; None: not of the codec."""
    found = re.search(r"(kernels|transform|entropy)/(.*)$", path)
    if not found:
        return None
    folder, rest = found.groups()
    if folder == "kernels":
        return rest.split("/")[0]
    return f"{folder}/{os.path.basename(rest)}"


def place_of(path, library):
    """The same for all of the program: the codec is one, a file of io/ or app/ its path, what is else its library."""
    own = re.search(r"\b(io|app)/.*$", path)
    return "the codec" if stage_of(path) else own.group() if own else os.path.basename(library).partition(".so")[0]


def files_of_functions(program):
    """The file that each function is defined in. callgrind names that of its first instruction, which may be inlined."""
    files = {}
    for line in subprocess.run(["nm", "--line-numbers", program], capture_output=True, text=True, check=True).stdout.splitlines():
        symbol, _, place = line.partition("\t")
        if place and symbol.split()[-2] in "tT":
            files[symbol.split()[-1]] = place.rpartition(":")[0]
    return files


def read_counts(path, defined_in, takes_all):
    """Instructions that functions execute themselves: by stage, and by function."""
    names, files, libraries = {}, {}, {}
    stages, functions = collections.Counter(), collections.Counter()
    function = file = library = ""
    after_call = False

    def resolve(table, text):
        number, _, name = text.partition(" ")
        if name:
            table[number] = name
        return table[number]

    for line in open(path, encoding="utf-8", errors="replace"):
        if line.startswith("fl="):
            file = resolve(files, line[3:].strip())
        elif line.startswith(("fi=", "fe=", "cfi=", "cfl=")):
            resolve(files, line.split("=", 1)[1].strip())
        elif line.startswith("ob="):
            library = resolve(libraries, line[3:].strip())
        elif line.startswith("cob="):
            resolve(libraries, line[4:].strip())
        elif line.startswith("fn="):
            function = resolve(names, line[3:].strip())
        elif line.startswith("cfn="):
            resolve(names, line[4:].strip())
        elif line.startswith("calls="):
            after_call = True
        elif line[:1].isdigit() or line[:1] in "+-*":
            if after_call:
                after_call = False
                continue
            place = defined_in.get(function.partition("'")[0], file)
            stage = place_of(place, library) if takes_all else stage_of(place)
            if stage:
                count = int(line.split()[1])
                stages[stage] += count
                functions[f"{stage}: {function}"] += count
    return stages, functions


def run(options, folder, arguments):
    out = f"{folder}/callgrind.out"
    environment = dict(os.environ, TESSERA_ISA=options.isa)
    subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"{options.build}/bin/tessera", *arguments],
                   check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return read_counts(out, options.defined_in, options.png)


def describe(path):
    """The samples of a PGM file of 16 bits; 0 of another one."""
    with open(path, "rb") as file:
        fields = file.read(64).split()
    return int(fields[1]) * int(fields[2]) if fields[0] == b"P5" and int(fields[3]) > 255 else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("images")
    parser.add_argument("--efforts", default="1,2,3,5,7,9")
    parser.add_argument("--isa", default="avx2")
    parser.add_argument("--frames", type=int, default=24)
    parser.add_argument("--png", action="store_true", help="PNG files, and all of the program")
    parser.add_argument("--options", default="", help="more options of compress, as '--qp 20 --coder cavlc'")
    parser.add_argument("--functions", type=int, default=0, help="also the functions that execute most")
    options = parser.parse_args()
    options.defined_in = files_of_functions(f"{options.build}/bin/tessera")
    paths = [str(path) for path in sorted(pathlib.Path(options.images).glob("*.png" if options.png else "*.pgm"))
             if options.png or (not path.name.startswith("photo") and describe(path))]
    paths = paths[:: max(1, len(paths) // options.frames)]
    samples = 0 if options.png else sum(map(describe, paths))
    columns, most = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for effort in options.efforts.split(","):
            made = f"{folder}/{effort}"
            for verb, arguments in (
                ("encode", ["compress", "-q", "-T1", "--verify", "none", f"-{effort}", "--flat", *options.options.split(),
                            "-o", made, *paths]),
                ("decode", ["test", "-q", "-T1", "-r", made])):
                columns[f"-{effort} {verb}"], most[f"-{effort} {verb}"] = run(options, folder, arguments)
    rows = sorted({stage for column in columns.values() for stage in column},
                  key=lambda s: (STAGES.index(s) if s in STAGES else len(STAGES), s))
    shares = {name: samples or sum(column.values()) / 100 for name, column in columns.items()}
    what = "Percent of instructions" if options.png else f"Instructions a sample, {samples} samples"
    print(f"{what}, {len(paths)} frames, TESSERA_ISA={options.isa} {options.options}\n")
    print("| stage | " + " | ".join(columns) + " |\n|---|" + "---|" * len(columns))
    for row in rows:
        cells = [column[row] / shares[name] for name, column in columns.items()]
        if max(cells) >= (0.5 if options.png else 0.05):
            print(f"| {row} | " + " | ".join(f"{c:.1f}" for c in cells) + " |")
    print("| all | " + " | ".join(f"{sum(column.values()) / shares[name]:.1f}" for name, column in columns.items()) + " |")
    for name, functions in most.items() if options.functions else ():
        print(f"\n{name}: " + ", ".join(f"{f} {n / shares[name]:.1f}" for f, n in functions.most_common(options.functions)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
