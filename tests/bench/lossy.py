#!/usr/bin/env python3
"""Checks the lossy coding on a folder of images: the PSNR of restored files must not rise with QP.

usage: lossy.py BUILD FOLDER [--qp 10,20,30,40] [--coder huffman|cavlc]

For each file that is coded with loss it takes the samples of the original and of the restored file (both compressed without
loss and decoded by the reference decoder), and the PSNR between them. The reference decoder's samples of the lossy file must
be those of the restored file. Prints PSNR and size by top folder and in total, and every violation: per folder, and per image
of 64 x 64 or more that is not flat. Needs numpy."""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout


def samples_of(raster, image):
    """The sample values of a raster that tsr_reference wrote."""
    kind = "u1" if image["bits_allocated"] == 8 else ">u2" if image["big_endian"] else "<u2"
    words = numpy.frombuffer(raster, kind).astype(numpy.int64)
    bits = image["bits_stored"]
    values = (words >> (image["high_bit"] + 1 - bits)) & ((1 << bits) - 1)
    if image["signed"]:
        values ^= 1 << (bits - 1)
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("--qp", default="10,20,30,40")
    parser.add_argument("--coder", default="huffman")
    options = parser.parse_args()
    program, reference = (os.path.join(options.build, "bin", name) for name in ("tessera", "tsr_reference"))
    qps = options.qp.split(",")
    groups, checked, violations = {}, 0, 0
    with tempfile.TemporaryDirectory() as work:
        lines = {}
        for qp in ["lossless"] + qps:
            how = [] if qp == "lossless" else ["--qp", qp, "--allow-lossy", "--coder", options.coder]
            out = run(program, "compress", "-r", "--json", *how, "-o", os.path.join(work, qp), options.folder)
            lines[qp] = {line["file"]: line for line in map(json.loads, out.splitlines()) if "summary" not in line}
        for qp in qps:
            run(program, "decompress", "-q", "-r", "-o", os.path.join(work, "out" + qp), os.path.join(work, qp))
            run(program, "compress", "-q", "-r", "-o", os.path.join(work, "again" + qp), os.path.join(work, "out" + qp))
        raster = os.path.join(work, "raster")

        def rasters(path):
            run(reference, "--rasters", path, raster)
            with open(raster, "rb") as file:
                return file.read()

        for name in sorted(lines[qps[0]]):
            if lines[qps[0]][name]["status"] != "ok" or lines[qps[0]][name]["lossless"]:
                continue
            plain = lines["lossless"][name]["output"]
            image = json.loads(run(program, "info", "--json", plain).splitlines()[0])
            original = samples_of(rasters(plain), image)
            big = image["columns"] >= 64 and image["rows"] >= 64 and original.min() != original.max()
            group = os.path.relpath(name, options.folder).split(os.sep)
            group = "/".join(group[:2]) if len(group) > 2 else group[0]
            previous = math.inf
            for qp in qps:
                coded = lines[qp][name]["output"]
                again = os.path.join(work, "again" + qp, os.path.relpath(coded, os.path.join(work, qp)))
                decoded = rasters(again)
                if decoded != rasters(coded):
                    print("%s: at QP %s the reference decoder gives other samples" % (name, qp))
                    violations += 1
                error = samples_of(decoded, image) - original
                peak = (1 << image["bits_stored"]) - 1
                mean = float(numpy.mean(error * error)) / peak / peak
                psnr = -10 * math.log10(mean) if mean > 0 else math.inf
                if big and psnr > previous:
                    print("%s: PSNR rises to %.3f dB at QP %s from %.3f" % (name, psnr, qp, previous))
                    violations += 1
                previous = psnr
                entry = groups.setdefault(group, {}).setdefault(qp, [0.0, 0, 0])
                entry[0] += mean * error.size
                entry[1] += error.size
                entry[2] += lines[qp][name]["payload_bytes"]
            checked += 1
    print("%-24s" % "folder" + "".join("%18s" % ("QP " + qp) for qp in qps) + "   PSNR in dB, bits/sample")
    for group in sorted(groups):
        row, previous = "%-24s" % group, math.inf
        for qp in qps:
            error, count, size = groups[group][qp]
            psnr = -10 * math.log10(error / count) if error > 0 else math.inf
            violations += psnr > previous
            row += "%9.2f %8.3f" % (psnr, 8 * size / count) + ("!" if psnr > previous else "")
            previous = psnr
        print(row)
    print("%d images at %d QPs, %d violations" % (checked, len(qps), violations))
    sys.exit(violations > 0 or checked == 0)


if __name__ == "__main__":
    main()
