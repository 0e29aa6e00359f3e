#!/usr/bin/env python3
"""Compares two builds of the program: the sizes of their files, their instructions and their times.

usage: builds.py OLD NEW INPUTS [--sizes] [--instructions] [--each PERCENT] [--times PAIRS] [--user PAIRS] [--work FOLDER]
                 [--files N] [--only WORD,...] [--options "..."]

OLD, NEW   the two programs (bin/tessera)
INPUTS     a folder of images
--sizes         the sum of all .tsr files, one for each input
--instructions  in user space, as valgrind's callgrind counts them, on N inputs spread evenly (default 6): `compress
                --verify none`, then `test`; a run on an empty file is subtracted, so that start and end of the program do not
                count
--each PERCENT  the same of each input, NEW / OLD with start and end of the program and without, and the number of inputs
                that are within so many percent
--only WORD,... inputs whose names have one of these words
--times PAIRS   PAIRS interleaved pairs of runs of the programs on all inputs, `compress` with its verification and `test`;
                the median of the pairs' ratios NEW / OLD, and the upper end of its 95 % interval (bootstrap, 10000 draws)
--user PAIRS    the same of the user time of `compress -r -T 1` of INPUTS and what lies below: medians of both, and their ratio
--work          the folder of outputs (default: the system's folder for temporary files); /dev/shm is in memory
Needs only Python, and valgrind for --instructions."""
import argparse
import concurrent.futures
import math
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import time


def run(command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **more)


def inputs_of(folder):
    return sorted(os.path.join(folder, name) for name in os.listdir(folder))


def compress(program, inputs, output, options, *more):
    return [program, "compress", "-q", "-f", *options, *more, *inputs, "-o", output]


def sizes(programs, inputs, work, options):
    totals = []
    for number, program in enumerate(programs):
        folder = os.path.join(work, f"sizes{number}") + "/"
        os.mkdir(folder)
        run(compress(program, inputs, folder, options))
        totals.append(sum(os.path.getsize(path) for path in inputs_of(folder)))
        shutil.rmtree(folder)
    old, new = totals
    print(f"sizes: {len(inputs)} files, {old} -> {new} bytes, {100 * (new - old) / old:+.4f} %")


def count(command, work):
    log = os.path.join(work, "callgrind")
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={log}", *command]
    said = subprocess.run(valgrind, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
    return int(re.search(r"Collected\s*:\s*(\d+)", said).group(1))


def counts(program, name, options, work):
    """Instructions of `compress` and of `test`; the file is removed"""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        output = os.path.join(folder, "one.tsr")
        coded = count(compress(program, [name], output, options, "-T", "1", "--verify", "none"), folder)
        return coded, count([program, "test", "-q", "-T", "1", output], folder)


def each(programs, inputs, work, options, percent):
    empty = os.path.join(work, "empty")
    open(empty, "wb").close()
    start = [counts(program, empty, options, work) for program in programs]
    within, sums = {}, {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = pool.map(lambda name: [counts(program, name, options, work) for program in programs], inputs)
        for name, found in zip(inputs, rows):
            line = f"{os.path.basename(name):56}"
            for verb in (0, 1):
                for less in (0, 1):
                    old, new = (found[i][verb] - less * start[i][verb] for i in (0, 1))
                    line += f" {new / old:.4f}"
                    within[verb, less] = within.get((verb, less), 0) + (new <= old * (1 + percent / 100))
                    sums.setdefault((verb, less), []).append((old, new))
            print(line, flush=True)
    for (verb, less), number in sorted(within.items()):
        old, new = (sum(pair[i] for pair in sums[verb, less]) for i in (0, 1))
        print(f"{('compress', 'test')[verb]}, {('with start', 'without start')[less]}: {number} of {len(inputs)} at most"
              f" {percent:g} % more; their sum {new / old:.4f}")


def instructions(programs, inputs, work, options, files):
    some = [inputs[len(inputs) * i // files] for i in range(min(files, len(inputs)))]
    empty = os.path.join(work, "empty")
    open(empty, "wb").close()
    totals = {"compress": [], "test": []}
    for program in programs:
        total = {"compress": 0, "test": 0}
        for name in some + [empty]:
            sign = -len(some) if name == empty else 1
            for verb, found in zip(total, counts(program, name, options, work)):
                total[verb] += sign * found
        for verb in totals:
            totals[verb].append(total[verb])
    for verb, (old, new) in totals.items():
        print(f"instructions: {verb}, {len(some)} files, {old:.4g} -> {new:.4g}, {100 * (new - old) / old:+.2f} %")


def upper_bound(ratios):
    draw = random.Random(1)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(10000))
    return medians[9749]


def times(programs, inputs, work, options, pairs):
    folders = [os.path.join(work, f"times{number}") + "/" for number in range(2)]
    verbs = {
        "compress": lambda i: compress(programs[i], inputs, folders[i], options),
        "test": lambda i: [programs[i], "test", "-q", "-r", folders[i]],
    }
    ratios = {verb: [] for verb in verbs}
    for i in range(2):
        os.mkdir(folders[i])
        run(verbs["compress"](i))
    for pair in range(pairs):
        for verb, command in verbs.items():
            seconds = [0, 0]
            for i in (0, 1) if pair % 2 else (1, 0):
                begun = time.monotonic()
                run(command(i))
                seconds[i] = time.monotonic() - begun
            ratios[verb].append(seconds[1] / seconds[0])
    for verb, found in ratios.items():
        spread = math.exp(statistics.stdev([math.log(ratio) for ratio in found]))
        print(
            f"times: {verb}, {len(inputs)} files, {pairs} pairs: new / old {statistics.median(found):.3f} (median),"
            f" at most {upper_bound(found):.3f} (95 %), spread {spread:.2f}"
        )


def user_time(programs, folder, work, options, pairs):
    out, seconds = os.path.join(work, "user"), [[], []]
    for pair in range(pairs):
        for i in (0, 1) if pair % 2 else (1, 0):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            done = subprocess.run([programs[i], "compress", "-q", "-r", "-T", "1", *options, folder, "-o", out],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            seconds[i].append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
            if not os.path.isdir(out):
                raise SystemExit(f"{programs[i]} writes nothing: status {done.returncode}")
            shutil.rmtree(out)
    old, new = map(statistics.median, seconds)
    print(f"user time: {' '.join(options)}, {pairs} pairs: {old:.3f} s and {new:.3f} s (medians), new / old {new / old:.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("inputs")
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--each", type=float)
    parser.add_argument("--only", default="")
    parser.add_argument("--times", type=int, default=0)
    parser.add_argument("--user", type=int, default=0)
    parser.add_argument("--work")
    parser.add_argument("--files", type=int, default=6)
    parser.add_argument("--options", default="")
    a = parser.parse_args()
    inputs, programs, options = inputs_of(a.inputs), [os.path.abspath(a.old), os.path.abspath(a.new)], a.options.split()
    inputs = [path for path in inputs if any(word in os.path.basename(path) for word in a.only.split(","))]
    with tempfile.TemporaryDirectory(dir=a.work) as work:
        if a.each is not None:
            each(programs, inputs, work, options, a.each)
        if a.sizes:
            sizes(programs, inputs, work, options)
        if a.instructions:
            instructions(programs, inputs, work, options, a.files)
        if a.times:
            times(programs, inputs, work, options, a.times)
        if a.user:
            user_time(programs, a.inputs, work, options, a.user)


if __name__ == "__main__":
    main()
