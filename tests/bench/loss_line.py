#!/usr/bin/env python3
"""What of an image can be shown when a line loses packets, beside JPEG, JPEG 2000 and JPEG XL (decisions/065).

usage: loss_line.py TESSERA PNM... [--draws 5] [--seed 1] [--packet 1400]
Each image is sent with 8 bits a sample (others are shifted down), so that all codecs get the same. A file is cut into
packets. Each is lost with a probability; the receiver has the others at their places, and zeros in between. That is a
line that numbers its packets, and neither sends again nor corrects. Of each codec, its own tool decodes what has come.
Prints a table: the bytes, and for each rate of losses two figures, averages of all images and draws: the share of the
samples that are the same as without a loss, and the PSNR of the whole against the picture without a loss, at most
99 dB; a file that does not decode counts as a picture of zeros. Tessera marks the samples that it holds: the program
ends with 1 where one of these is another.

The codecs: Tessera without loss and with a PSNR of 42 dB; JPEG of libjpeg-turbo at quality 90, with a restart marker
for each row of blocks, and without; JPEG 2000 of OpenJPEG without loss and at 42 dB, with SOP and EPH markers,
precincts of 128 x 128 and five levels, and with tiles of 256 x 256; JPEG XL of libjxl without loss, by --allow_partial_files.
"""

import argparse
import math
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

from machine import model
from roi import read_pnm, write_pnm

RATES = (0, 0.01, 0.02, 0.05, 0.1, 0.2)
J2K = ["-SOP", "-EPH", "-c", "[128,128],[128,128],[128,128],[128,128],[128,128]", "-n", "6"]


class Codec:
    """A name, the ending of its files, and the command lines of encoding and decoding."""

    def __init__(self, name, ending, encode, decode):
        self.name, self.ending, self.encode, self.decode = name, ending, encode, decode


def codecs(tessera):
    def t(*options):
        return lambda image, file: [tessera, "compress", "-q", "-f", *options, image, "-o", file]

    def j2k(*options):
        return lambda image, file: ["opj_compress", "-i", image, "-o", file, *J2K, *options]

    salvage = lambda file, picture: [tessera, "decompress", "-q", "-f", "--salvage", file, "-o", picture]
    jpeg = lambda file, picture: ["djpeg", "-pnm", "-outfile", picture, file]
    open_jpeg = lambda file, picture: ["opj_decompress", "-allow-partial", "-i", file, "-o", picture]
    return [
        Codec("Tessera, lossless", "tsr", t(), salvage),
        Codec("Tessera, lossless, tiles of 128", "tsr", t("--tile", "128"), salvage),
        Codec("Tessera, lossless, tiles of 64", "tsr", t("--tile", "64"), salvage),
        Codec("Tessera, 42 dB", "tsr", t("--psnr", "42"), salvage),
        Codec("Tessera, 42 dB, tiles of 128", "tsr", t("--psnr", "42", "--tile", "128"), salvage),
        Codec("Tessera, 42 dB, tiles of 64", "tsr", t("--psnr", "42", "--tile", "64"), salvage),
        Codec("JPEG, restart markers", "jpg", lambda i, f: ["cjpeg", "-quality", "90", "-optimize", "-restart", "1",
                                                            "-outfile", f, i], jpeg),
        Codec("JPEG", "jpg", lambda i, f: ["cjpeg", "-quality", "90", "-optimize", "-outfile", f, i], jpeg),
        Codec("JPEG 2000, lossless", "j2k", j2k(), open_jpeg),
        Codec("JPEG 2000, tiles, lossless", "j2k", j2k("-t", "256,256"), open_jpeg),
        Codec("JPEG 2000, 42 dB", "j2k", j2k("-q", "42", "-I"), open_jpeg),
        Codec("JPEG XL, lossless", "jxl", lambda i, f: ["cjxl", "-q", "100", i, f],
              lambda f, p: ["djxl", "--allow_partial_files", f, p]),
    ]


def decode(codec, file, picture, shape):
    """What a tool makes of a file, and the samples that it holds; zeros where it makes nothing."""
    mask = picture.rsplit(".", 1)[0] + ".mask.pgm"
    for name in (picture, mask):
        if os.path.exists(name):
            os.remove(name)
    try:
        subprocess.run(codec.decode(file, picture), capture_output=True, timeout=60, check=False)
        if not os.path.exists(picture) or os.path.getsize(picture) < 16:
            return np.zeros(shape, np.int64), None
        samples, _ = read_pnm(picture)
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        return np.zeros(shape, np.int64), None
    held = read_pnm(mask)[0] == 255 if os.path.exists(mask) else None
    if samples.shape != shape:
        return np.zeros(shape, np.int64), held
    return samples, held


def lose(data, rate, packet, draw):
    got = bytearray(data)
    for at in range(0, len(data), packet):
        if draw.random() < rate:
            end = min(at + packet, len(data))
            got[at:end] = bytes(end - at)
    return got


def psnr(one, other):
    square = float(np.mean((one - other) ** 2))
    return min(99.0, 10 * math.log10(255 * 255 / square)) if square else 99.0


def measure(codec, image, options, sums):
    whole, _ = read_pnm(image)
    ending = ".pgm" if whole.shape[2] == 1 else ".ppm"
    folder = os.path.dirname(image)
    file, hurt, picture = (os.path.join(folder, n) for n in ("f." + codec.ending, "h." + codec.ending, "p" + ending))
    subprocess.run(codec.encode(image, file), check=True, capture_output=True)
    with open(file, "rb") as f:
        data = f.read()
    sums["bytes"] += len(data)
    perfect, _ = decode(codec, file, picture, whole.shape)
    for rate in RATES:
        draw = random.Random(f"{options.seed} {len(data)} {rate}")
        for _ in range(options.draws if rate else 1):
            with open(hurt, "wb") as f:
                f.write(lose(data, rate, options.packet, draw))
            samples, held = decode(codec, hurt, picture, whole.shape)
            if held is not None and not (samples == perfect)[np.broadcast_to(held, samples.shape)].all():
                sys.exit(f"{codec.name}: a sample that is held is another one")
            same = float(np.mean(samples == perfect)) if held is None else float(np.mean(held))
            sums[rate].append((same, psnr(samples, perfect)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tessera")
    parser.add_argument("images", nargs="+")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--packet", type=int, default=1400)
    options = parser.parse_args()
    print(f"{len(options.images)} images, {options.draws} draws, packets of {options.packet} bytes, {model()}\n")
    print("| codec | bytes | " + " | ".join(f"{100 * r:g} %" for r in RATES) + " |")
    print("|---|---|" + "---|" * len(RATES))
    with tempfile.TemporaryDirectory() as folder:
        for codec in codecs(os.path.abspath(options.tessera)):
            sums = {"bytes": 0, **{rate: [] for rate in RATES}}
            for name in options.images:
                samples, most = read_pnm(name)
                shift = max(0, int(most).bit_length() - 8)
                image = os.path.join(folder, "i.ppm" if samples.shape[2] == 3 else "i.pgm")
                write_pnm(image, samples >> shift, 255)
                measure(codec, image, options, sums)
            cells = []
            for rate in RATES:
                same, decibels = (float(np.mean(v)) for v in zip(*sums[rate]))
                cells.append(f"{100 * same:.1f} %, {decibels:.1f} dB")
            print(f"| {codec.name} | {sums['bytes']} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
