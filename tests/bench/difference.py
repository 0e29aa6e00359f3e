#!/usr/bin/env python3
"""Measuring a frame's differences and SSIM (kernels/measure/): picoseconds a sample of each form, and the gain over plain C.

usage: difference.py BUILD [--isa plain,avx2,avx512] [--turns 200]

BUILD  a build folder with bin/libtessera_bench.so (target bench_library)

One frame of 512 x 512 samples that it makes, of which most differ a little; CPU time of one thread, the least of all turns.
Each instruction set (TESSERA_ISA) has a process of its own, since the library asks once.
"""

import argparse
import ctypes
import os
import random
import subprocess
import sys

COLUMNS = ROWS = 512
# Name, components, bits, windows, kept ranges, range of the values (0: no SSIM).
CASES = (("12 of 16 bits", 1, 12, 0, 0, 0), ("12 of 16 bits, 2 windows", 1, 12, 2, 0, 0),
         ("12 of 16 bits, 2 windows, 1 kept range", 1, 12, 2, 1, 0), ("8 bits, RGB", 3, 8, 0, 0, 0),
         ("SSIM, 12 of 16 bits", 1, 12, 0, 0, 1000), ("SSIM, 12 of 16 bits, 2 windows", 1, 12, 2, 0, 1000),
         ("SSIM, 8 bits, RGB", 3, 8, 0, 0, 255))


def measure(build, turns):
    """Seconds of a frame, by case, with the instruction set of the environment."""
    library = ctypes.CDLL(os.path.join(build, "bin", "libtessera_bench.so"))
    library.bench_difference.restype = ctypes.c_double
    r, times = random.Random(7), []
    for _, components, bits, windows, kept, value_range in CASES:
        size = 1 if bits <= 8 else 2
        first, second = bytearray(), bytearray()
        for _ in range(COLUMNS * ROWS * components):
            value = r.randrange(8, min(1000, 2 ** bits - 8))
            first += value.to_bytes(size, "little")
            second += (value + r.randrange(-7, 8)).to_bytes(size, "little")
        numbers = [ctypes.c_uint32(v) for v in (COLUMNS, ROWS, components, bits, windows, kept, value_range, turns)]
        times.append(library.bench_difference(*numbers, bytes(first), bytes(second)))
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--isa", default="plain,avx2,avx512")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        print(*measure(options.build, options.turns))
        return 0
    isas, times = options.isa.split(","), []
    for isa in isas:
        run = subprocess.run([sys.executable, __file__, options.build, "--here", "--turns", str(options.turns)],
                             env=dict(os.environ, TESSERA_ISA=isa), stdout=subprocess.PIPE, text=True, check=True)
        times.append(list(map(float, run.stdout.split())))
    print("| 512 x 512, ps a sample | %s |\n|---|%s" % (" | ".join(isas), "---|" * len(isas)))
    for i, (name, components, *_) in enumerate(CASES):
        samples = COLUMNS * ROWS * components
        cells = ["%.0f (%.1f x)" % (t[i] / samples * 1e12, times[0][i] / t[i]) for t in times]
        print("| %s | %s |" % (name, " | ".join(cells)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
