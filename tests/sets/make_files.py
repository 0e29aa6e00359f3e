#!/usr/bin/env python3
"""Writes a tree of generated images: make_files.py FOLDER COUNT [SEED].

Files are 16-bit PGM images of 24 to 60 pixels a side, 1 to 7 kB, in folders of 100. Their content depends on their
number and on SEED alone.
"""
import os
import random
import sys


def image(rng):
    columns, rows = rng.randint(24, 60), rng.randint(24, 60)
    level, samples = rng.randint(200, 3000), bytearray()
    noise = rng.randbytes(columns * rows)
    for at, byte in enumerate(noise):
        value = level + 3 * (at % columns) + (byte >> 3)
        samples += bytes((value >> 8, value & 255))
    return b"P5\n%d %d\n4095\n" % (columns, rows) + bytes(samples)


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    for number in range(count):
        below = os.path.join(folder, f"{number // 100:04d}")
        if number % 100 == 0:
            os.makedirs(below, exist_ok=True)
        rng = random.Random(seed * 1000003 + number)
        path = os.path.join(below, f"{number:06d}.pgm")
        with open(path, "wb") as file:
            file.write(image(rng))
        os.utime(path, ns=(0, 10**18 + number * 1000003))


main()
