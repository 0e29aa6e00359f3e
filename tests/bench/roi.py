#!/usr/bin/env python3
"""What a region that comes back as it was takes, and whether it does (decisions/063).

usage: roi.py TESSERA PNM... [--effort N] [--db 40] [--regions 5] [--seed 1] [--auto]
Of each image some rectangles are drawn, of a 64th to a quarter of its samples; with --auto its body is taken instead.
Prints, of each: the share of the samples that come back exactly, the largest error inside and outside, the PSNR
outside by the range that the file names, and the bytes of the file as a part of those of the base and of a .tsr of the
box of the region alone, without loss, together. Samples are compared here, not by the program. It ends with 1 where a
sample inside differs.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import numpy as np


def read_pnm(path):
    with open(path, "rb") as file:
        data = file.read()
    fields, at = [], 0
    while len(fields) < 4:
        while data[at : at + 1].isspace():
            at += 1
        if data[at : at + 1] == b"#":
            at = data.index(b"\n", at)
            continue
        end = at
        while not data[end : end + 1].isspace():
            end += 1
        fields.append(data[at:end])
        at = end
    columns, rows, most = (int(f) for f in fields[1:])
    kind = np.dtype(">u2") if most > 255 else np.dtype("u1")
    samples = np.frombuffer(data, kind, offset=at + 1)
    return samples.reshape(rows, columns, -1).astype(np.int64), most


def write_pnm(path, samples, most):
    rows, columns, components = samples.shape
    kind = ">u2" if most > 255 else "u1"
    with open(path, "wb") as file:
        file.write(b"P%d\n%d %d\n%d\n" % (5 if components == 1 else 6, columns, rows, most))
        file.write(samples.astype(kind).tobytes())


def run(program, *words):
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


def compress(program, image, output, *options):
    run(program, "compress", "-q", "-f", *options, image, "-o", output)
    return os.path.getsize(output)


def draw(random_numbers, columns, rows):
    share = 2 ** -random_numbers.uniform(2, 6)
    width = min(columns, max(1, round(columns * math.sqrt(share) * 2 ** random_numbers.uniform(-1, 1))))
    height = min(rows, max(1, round(share * columns * rows / width)))
    return random_numbers.randint(0, columns - width), random_numbers.randint(0, rows - height), width, height


def measure(options, folder, image, region):
    out, back, part = (os.path.join(folder, name) for name in ("a.tsr", "b.pnm", "part.pnm"))
    effort, loss = f"-{options.effort}", ["--psnr", str(options.db)]
    words = "auto" if region is None else ",".join(map(str, region))
    size = compress(options.program, image, out, effort, *loss, "--roi", words)
    info = json.loads(run(options.program, "info", "--json", out))
    if "exact" not in info:
        return None
    run(options.program, "decompress", "-q", "-f", out, "-o", back)
    original, most = read_pnm(image)
    error = np.abs(original - read_pnm(back)[0])
    inside = np.zeros(error.shape[:2], bool)
    for x, y, w, h in info["exact"]["list"]:
        inside[y : y + h, x : x + w] = True
    if region is not None:
        x, y, w, h = region
        assert inside[y : y + h, x : x + w].all(), f"{image}: a part of {region} is not told to be exact"
    assert inside.sum() == info["exact"]["samples"]
    outside = error[~inside]
    square = float((outside.astype(float) ** 2).mean()) if outside.size else 0.0
    psnr = 20 * math.log10(info["range"]) - 10 * math.log10(square) if square else math.inf
    x, y, w, h = info["exact"]["box"]
    write_pnm(part, original[y : y + h, x : x + w], most)
    alone = compress(options.program, part, os.path.join(folder, "part.tsr"), effort)
    return {
        "words": words,
        "share": inside.mean(),
        "inside": int(error[inside].max()),
        "outside": int(outside.max()) if outside.size else 0,
        "psnr": psnr,
        "ratio": size / (info["base_bytes"] + alone),
        "base": info["base_bytes"],
        "size": size,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("images", nargs="+")
    parser.add_argument("--effort", type=int, default=5)
    parser.add_argument("--db", type=float, default=40)
    parser.add_argument("--regions", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--auto", action="store_true")
    options = parser.parse_args()
    random_numbers = random.Random(options.seed)
    rows, whole = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for image in options.images:
            samples, _ = read_pnm(image)
            for _ in range(1 if options.auto else options.regions):
                region = None if options.auto else draw(random_numbers, samples.shape[1], samples.shape[0])
                found = measure(options, folder, image, region)
                name = os.path.basename(image)[:40]
                if found is None:
                    whole += 1
                    print(f"{name:40} {'auto' if region is None else region}: no loss at all", flush=True)
                    continue
                rows.append(found)
                print(
                    f"{name:40} {found['words']:18} {100 * found['share']:5.1f} % exact, errors {found['inside']} inside,"
                    f" {found['outside']} outside, {found['psnr']:.2f} dB outside, {found['size']} bytes,"
                    f" {found['ratio']:.3f} of base and region",
                    flush=True,
                )
    if rows:
        ratios = [row["ratio"] for row in rows]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(
            f"{len(rows)} regions, {whole} without loss: {sum(row['inside'] > 0 for row in rows)} with errors inside;"
            f" {sum(row['psnr'] < options.db for row in rows)} below {options.db} dB outside, the least"
            f" {min(row['psnr'] for row in rows):.2f}; of base and region together {mean:.3f}, at most {max(ratios):.3f},"
            f" {sum(r > 1.1 for r in ratios)} above 1.1"
        )
    return any(row["inside"] > 0 for row in rows)


if __name__ == "__main__":
    sys.exit(main())
