#!/usr/bin/env python3
"""Images that formulas make, and whether loss makes their files larger than no loss does.

usage: computed.py PROGRAM WORK [--images FOLDER] [--options "--quality diagnostic"] [--files]

PROGRAM   bin/tessera
WORK      a folder that does not exist yet: images and outputs
--images  these images instead, such as those of tessera_testdata

168 images: 14 formulas (waves, ramps, planes, rings, squares) in 8, 12 and 16 bits, of 64 x 64 to 1024 x 768 samples. Prints how many
files with loss take more bytes than without, by how many bytes, and the bytes of all; --files: which. Needs numpy."""
import argparse
import json
import os
import subprocess

import numpy

SIDES = {"s": (64, 64), "m": (256, 256), "l": (512, 512), "x": (1024, 768)}


def formulas(width, height, top):
    y, x = numpy.mgrid[0:height, 0:width].astype(float)
    yield "sine", (numpy.sin(x / 17) * numpy.sin(y / 23) / 2 + 0.5) * top
    yield "sinefast", (numpy.sin(x / 3) * numpy.sin(y / 5) / 2 + 0.5) * top
    yield "sine1", (numpy.sin((x + y) / 11) / 2 + 0.5) * top
    yield "plane", (3 * x + 7 * y) % (top + 1)
    yield "plane2", (37 * x + 91 * y) % (top + 1)
    yield "ramp", x * top / (width - 1)
    yield "rampy", y * top / (height - 1)
    yield "rampd", (x + y) * top / (width + height - 2)
    yield "rampp", x * y * top / ((width - 1) * (height - 1))
    yield "rings", numpy.clip(numpy.hypot(x - width / 2, y - height / 2) * top / (height * 0.7), 0, top)
    yield "zone", (numpy.cos((x * x + y * y) / width / 2) / 2 + 0.5) * top
    yield "xor", (x.astype(int) ^ y.astype(int)) % (top + 1)
    yield "squares", ((x // 8 + y // 8) % 2 * top * 0.8 + 10 * ((x // 32) % 5)).clip(0, top)
    yield "gauss", numpy.exp(-((x - width / 2) ** 2 + (y - height / 2) ** 2) / (height * height / 16)) * top


def make(folder):
    os.makedirs(folder)
    for size, (width, height) in SIDES.items():
        for bits in (8, 12, 16):
            top = (1 << bits) - 1
            for name, samples in formulas(width, height, top):
                with open(os.path.join(folder, "%s_%s%d.pgm" % (name, size, bits)), "wb") as file:
                    file.write(b"P5\n%d %d\n%d\n" % (width, height, top) + samples.astype("u1" if bits == 8 else ">u2").tobytes())


def code(program, images, out, options):
    command = [program, "compress", "-r", "--json", "--verify", "none", "-T", "1", *options, images, "-o", out]
    lines = [json.loads(line) for line in subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True).stdout.splitlines()]
    return {line["output"][len(out):]: (line["bytes_out"], line["lossless"]) for line in lines if "lossless" in line and line.get("output")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("work")
    parser.add_argument("--images")
    parser.add_argument("--options", default="--quality diagnostic")
    parser.add_argument("--files", action="store_true")
    o = parser.parse_args()
    os.makedirs(o.work)
    images = o.images or os.path.join(o.work, "images")
    if not o.images:
        make(images)
    words = o.options.split()
    exact = code(o.program, images, os.path.join(o.work, "exact"), [w for w in words if w[1:].isdigit() and w[0] == "-"])
    lossy = code(o.program, images, os.path.join(o.work, "lossy"), words + ["--allow-lossy"])
    worse = [(name, size, exact[name][0]) for name, (size, lossless) in sorted(lossy.items())
             if not lossless and name in exact and size > exact[name][0]]
    for name, size, best in worse if o.files else []:
        print("  %s: %d bytes, without loss %d" % (name, size, best))
    print("%s: %d files, %d bytes; %d larger than without loss, by %d bytes" % (
        o.options, len(lossy), sum(size for size, _ in lossy.values()), len(worse), sum(b - e for _, b, e in worse)))


if __name__ == "__main__":
    main()
