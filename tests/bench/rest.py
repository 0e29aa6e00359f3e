#!/usr/bin/env python3
"""What a lossy base and the rest take in one file, beside no loss and beside two files (decisions/058).

usage: rest.py TESSERA IMAGE... [--effort N] [--db 40,45,50]
Prints, in bytes of no loss: the base alone, two files, and one file of both (--lossless-rest).
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile


def compress(program, image, output, *options):
    subprocess.run([program, "compress", "-q", "-f", *options, image, "-o", output], check=True)
    return os.path.getsize(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("images", nargs="+")
    parser.add_argument("--effort", type=int, default=5)
    parser.add_argument("--db", default="40,45,50")
    options = parser.parse_args()
    sums = {}
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "a.tsr")
        for image in options.images:
            effort = f"-{options.effort}"
            lossless = compress(options.program, image, out, effort)
            line = []
            for db in options.db.split(","):
                base = compress(options.program, image, out, effort, "--psnr", db)
                both = compress(options.program, image, out, effort, "--psnr", db, "--lossless-rest")
                sums.setdefault(db, []).append((base / lossless, 1 + base / lossless, both / lossless))
                line.append(f"{db} dB {base / lossless:.3f} {1 + base / lossless:.3f} {both / lossless:.3f}")
            print(f"{os.path.basename(image)[:40]:40}", " | ".join(line), flush=True)
    for db, rows in sums.items():
        means = [math.exp(sum(math.log(row[i]) for row in rows) / len(rows)) for i in range(3)]
        print(f"{db} dB, geometric means of {len(rows)}: base {means[0]:.4f}, two files {means[1]:.4f}, one {means[2]:.4f}")


if __name__ == "__main__":
    sys.exit(main())
