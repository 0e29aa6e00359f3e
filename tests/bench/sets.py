#!/usr/bin/env python3
"""What a set costs besides its files' coding.

    sets.py NEW OLD WORK [TURNS]

Small files (2000 generated images of 1 to 7 kB): the time of compress -r by NEW and by OLD, in turns. Large files (24 of
4 MB): the time of the run, and the sum of the files' encode_s and verify_s over the threads. Prints medians and ratios.
"""
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

new, old, work = (os.path.abspath(path) for path in sys.argv[1:4])
turns = int(sys.argv[4]) if len(sys.argv) > 4 else 9
here = os.path.dirname(os.path.abspath(__file__))
os.makedirs(work)
threads = len(os.sched_getaffinity(0))


def run(program, folder):
    out = os.path.join(work, "out")
    shutil.rmtree(out, ignore_errors=True)
    os.sync()
    start = time.monotonic()
    lines = subprocess.run([program, "compress", "-r", "--json", folder, "-o", out], stdout=subprocess.PIPE, check=True,
                           text=True).stdout.splitlines()
    return time.monotonic() - start, [json.loads(line) for line in lines]


small, large = os.path.join(work, "small"), os.path.join(work, "large")
subprocess.run([sys.executable, os.path.join(here, "..", "sets", "make_files.py"), small, "2000"], check=True)
os.makedirs(large)
rng = random.Random(1)
for number in range(24):
    noise = rng.randbytes(1024 * 2048)
    samples = bytearray(4 * 1024 * 1024)
    samples[0::2] = bytes(4 + (at >> 19) % 8 for at in range(2 * 1024 * 1024))
    samples[1::2] = noise
    with open(os.path.join(large, f"{number}.pgm"), "wb") as file:
        file.write(b"P5\n1024 2048\n4095\n" + samples)

times = {new: [], old: []}
ratios = []
for turn in range(turns):
    for program in (new, old) if turn % 2 else (old, new):
        times[program].append(run(program, small)[0])
    ratios.append(times[new][-1] / times[old][-1])
print(f"small files: new {statistics.median(times[new]):.3f} s, old {statistics.median(times[old]):.3f} s, "
      f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f} in a turn)")
shares = []
for _ in range(turns):
    wall, lines = run(new, large)
    coding = sum(line["encode_s"] + line["verify_s"] for line in lines if "summary" not in line)
    shares.append(wall * threads / coding)
print(f"files of 4 MB: the run takes {statistics.median(shares):.3f} of their coding on {threads} threads "
      f"({min(shares):.3f} to {max(shares):.3f})")
shutil.rmtree(work)
