#!/usr/bin/env python3
"""What a lossy base and the rest take in one file, beside no loss and beside two files (decisions/058).

usage: rest.py TESSERA PGM... [--effort N] [--db 40,45,50] [--by-depth] [--rivals]
Prints, in bytes of no loss: the base alone, two files, and one file of both (--lossless-rest). With --by-depth a PSNR
counts by the largest number of the depth (4095 for 12 bits), as other codecs count it, in place of the range of the
values. With --rivals also what other codecs take for a picture of about the same error first and for all of it in one
file, each in bytes of its own file without loss in one layer, which stands beside ours: JPEG 2000 of OpenJPEG with
two layers (5/3), and JPEG XL of libjxl (progressive, of which the shortest beginning that gives a picture of at least
this PSNR counts as the base).
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

from roi import read_pnm, write_pnm



def psnr(one, other, most):
    square = float(np.mean((one - other) ** 2))
    return 20 * math.log10(most) - 10 * math.log10(square) if square else math.inf


def range_of(program, image, output):
    """What the PSNR of a lossy file counts by."""
    compress(program, image, output, "-1", "--psnr", "50")
    told = subprocess.run([program, "info", "--json", output], check=True, capture_output=True, text=True).stdout
    return json.loads(told).get("range")


def quietly(*command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def openjpeg(image, samples, most, folder, dbs):
    """Bytes of one layer without loss, and for each PSNR the shares of the layers up to it, and of all layers."""
    file, back = (os.path.join(folder, name) for name in ("a.j2k", "b.pgm"))
    quietly("opj_compress", "-i", image, "-o", file)
    alone, rows = os.path.getsize(file), []
    for db in dbs:
        asked, reached = db, 0.0
        while reached < db:  # what it asks for is not what it reaches
            quietly("opj_compress", "-i", image, "-o", file, "-q", f"{asked:.2f}")
            first = os.path.getsize(file)
            quietly("opj_decompress", "-i", file, "-o", back)
            reached = psnr(read_pnm(back)[0], samples, most)
            asked += 0.25
        quietly("opj_compress", "-i", image, "-o", file, "-q", f"{asked - 0.25:.2f},0")
        rows.append((first / alone, os.path.getsize(file) / alone))
    return alone, rows


def libjxl(image, samples, most, folder, dbs):
    """The same of JPEG XL: the progressive file is the same for all PSNRs."""
    file, part, back, deep = (os.path.join(folder, name) for name in ("a.jxl", "p.jxl", "b.pgm", "deep.pgm"))
    write_pnm(deep, samples, 65535)  # cjxl 0.7 loses something of other depths between 8 and 16 bits
    image = deep
    quietly("cjxl", "-d", "0", "-e", "7", image, file)
    quietly("djxl", file, back)
    assert (read_pnm(back)[0] == samples).all(), "cjxl is not without loss"
    alone, rows = os.path.getsize(file), []
    quietly("cjxl", "-d", "0", "-e", "7", "-p", image, file)
    with open(file, "rb") as stream:
        data = stream.read()
    for db in dbs:
        low, high = 64, len(data)
        while high - low > len(data) // 500:
            middle = (low + high) // 2
            with open(part, "wb") as stream:
                stream.write(data[:middle])
            if os.path.exists(back):
                os.remove(back)
            good = quietly("djxl", "--allow_partial_files", part, back) and os.path.exists(back)
            reached = good and psnr(read_pnm(back)[0], samples, most) >= db
            low, high = (low, middle) if reached else (middle, high)
        rows.append((high / alone, len(data) / alone))
    return alone, rows


def compress(program, image, output, *options):
    subprocess.run([program, "compress", "-q", "-f", *options, image, "-o", output], check=True)
    return os.path.getsize(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("images", nargs="+")
    parser.add_argument("--effort", type=int, default=5)
    parser.add_argument("--db", default="40,45,50")
    parser.add_argument("--by-depth", action="store_true")
    parser.add_argument("--rivals", action="store_true")
    options = parser.parse_args()
    sums = {}
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "a.tsr")
        for image in options.images:
            effort = f"-{options.effort}"
            lossless = compress(options.program, image, out, effort)
            line, name, by_depth = [], os.path.basename(image)[:40], 0.0
            samples, most = read_pnm(image)
            if options.by_depth or options.rivals:
                values = range_of(options.program, image, out)
                by_depth = 20 * math.log10(most / values) if values else 0.0
            less = by_depth if options.by_depth else 0.0
            for db in options.db.split(","):
                target = f"{float(db) - less:.2f}"
                base = compress(options.program, image, out, effort, "--psnr", target)
                both = compress(options.program, image, out, effort, "--psnr", target, "--lossless-rest")
                sums.setdefault(db, []).append((base / lossless, 1 + base / lossless, both / lossless))
                line.append(f"{db} dB {base / lossless:.3f} {1 + base / lossless:.3f} {both / lossless:.3f}")
            print(f"{name:40} {lossless} bytes:", " | ".join(line), flush=True)
            if not options.rivals:
                continue
            dbs = [float(db) + by_depth - less for db in options.db.split(",")]
            for rival, name in (openjpeg, "JPEG 2000, layers"), (libjxl, "JPEG XL, progressive"):
                alone, rows = rival(image, samples, most, folder, dbs)
                told = (f"{db} dB {first:.3f} {all_of_it:.3f}" for db, (first, all_of_it) in zip(options.db.split(","), rows))
                print(f"{name:40} {alone} bytes:", " | ".join(told), flush=True)
    for db, rows in sums.items():
        means = [math.exp(sum(math.log(row[i]) for row in rows) / len(rows)) for i in range(3)]
        print(f"{db} dB, geometric means of {len(rows)}: base {means[0]:.4f}, two files {means[1]:.4f}, one {means[2]:.4f}")


if __name__ == "__main__":
    sys.exit(main())
