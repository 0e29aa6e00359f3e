#!/usr/bin/env python3
"""How many bytes of a file a reader needs before a region is whole: --first, and JPEG 2000 (decisions/070).

usage: first.py TESSERA PNM... [--share 0.15]
The region is a square of so much of either side, a third of the way in from the left and from the top. A file is cut
after N bytes, and decoded by the codec's own tool (tessera decompress --salvage; opj_decompress -allow-partial). The
least N is searched, in steps of 64 bytes, at which all samples of the region are those of the whole file. Samples of
more than 8 bits stay as they are. Prints a row for each image and coding: the bytes, and those that are needed.

JPEG 2000: OpenJPEG without loss, five levels; as it is (by layers), by position (PCRL) with precincts of 128 x 128, with
tiles of 256 x 256, and with its region of interest by upshift (-ROI), which OpenJPEG has for whole components alone:
so it orders nothing, and is not run.
"""

import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

from machine import model
from roi import read_pnm

PRECINCTS = ["-c", "[128,128],[128,128],[128,128],[128,128],[128,128]", "-n", "6"]


def codings(tessera, region):
    text = ",".join(str(n) for n in region)

    def t(*options):
        return "tsr", lambda i, o: [tessera, "compress", "-q", "-f", *options, i, "-o", o]

    def j(*options):
        return "j2k", lambda i, o: ["opj_compress", "-i", i, "-o", o, *options]

    return {
        "in order": t(),
        "--first": t("--first", text),
        "--first --tile 128": t("--first", text, "--tile", "128"),
        "--first --tile 64": t("--first", text, "--tile", "64"),
        "J2K": j("-n", "6"),
        "J2K, PCRL": j("-p", "PCRL", *PRECINCTS),
        "J2K, tiles": j("-n", "6", "-t", "256,256"),
    }


def decode(ending, tessera, file, picture):
    if os.path.exists(picture):
        os.remove(picture)
    if ending == "tsr":
        command = [tessera, "decompress", "-q", "-f", "--salvage", file, "-o", picture]
    else:
        command = ["opj_decompress", "-allow-partial", "-i", file, "-o", picture]
    subprocess.run(command, capture_output=True, check=False, timeout=120)
    try:
        return read_pnm(picture)[0]
    except (OSError, ValueError, IndexError):
        return None


def needed(ending, tessera, data, folder, suffix, part):
    """The least bytes, by halving: what is there of more bytes is there of no fewer samples."""
    file, picture = os.path.join(folder, "cut." + ending), os.path.join(folder, "cut" + suffix)

    def has_all(size, wanted):
        with open(file, "wb") as f:
            f.write(data[:size])
        got = decode(ending, tessera, file, picture)
        return got is not None and got.shape == wanted.shape and np.array_equal(got[part], wanted[part])

    with open(file, "wb") as f:
        f.write(data)
    whole = decode(ending, tessera, file, picture)
    if whole is None:
        sys.exit(f"a {ending} file does not decode")
    low, high = 0, len(data)
    while high - low > 64:
        middle = (low + high) // 2
        low, high = (low, middle) if has_all(middle, whole) else (middle, high)
    return high


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tessera")
    parser.add_argument("images", nargs="+")
    parser.add_argument("--share", type=float, default=0.15)
    options = parser.parse_args()
    tessera = os.path.abspath(options.tessera)
    print(f"{model()}\n\n| image | coding | bytes | needed | share |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for image in options.images:
            samples, _ = read_pnm(image)
            rows, columns = samples.shape[:2]
            region = (columns // 3, rows // 3, int(columns * options.share), int(rows * options.share))
            part = np.s_[region[1] : region[1] + region[3], region[0] : region[0] + region[2]]
            for name, (ending, encode) in codings(tessera, region).items():
                file = os.path.join(folder, "whole." + ending)
                subprocess.run(encode(image, file), check=True, capture_output=True)
                with open(file, "rb") as f:
                    data = f.read()
                size = needed(ending, tessera, data, folder, os.path.splitext(image)[1], part)
                label = os.path.splitext(os.path.basename(image))[0]
                print(f"| {label} | {name} | {len(data)} | {size} | {100 * size / len(data):.1f} % |", flush=True)


if __name__ == "__main__":
    main()
