#!/usr/bin/env python3
"""Checks --psnr and --size on a folder of images: their promises, and the number of codings that they took.

usage: targets.py BUILD FOLDER [--psnr 33,42,50] [--size 10:1,30:1,20000]

Prints, for each target, the files that were coded with loss, a histogram of the tries, the mean distance to the target,
and every file that misses it: a PSNR under the target, or more than 0.1 dB over it; a size over the target, or more than
1 percent under it. And the files that were refused."""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile


def compress(tessera, folder, *options):
    with tempfile.TemporaryDirectory() as out:
        command = [tessera, "compress", "-r", "--json", "--allow-lossy", *options, folder, "-o", os.path.join(out, "o")]
        lines = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    return [json.loads(line) for line in lines.decode().splitlines()[:-1]]


def say(target, lossy, distances, misses):
    tries = collections.Counter(line["tries"] for line in lossy)
    mean = sum(line["tries"] for line in lossy) / max(1, len(lossy))
    print(f"{target}: {len(lossy)} files, tries {dict(sorted(tries.items()))}, mean {mean:.2f}; "
          f"mean distance {sum(distances) / max(1, len(distances)):.4f}; {len(misses)} miss")
    for miss in misses:
        print("   ", miss)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("--psnr", default="33,42,50")
    parser.add_argument("--size", default="10:1,30:1,20000")
    arguments = parser.parse_args()
    tessera = os.path.join(arguments.build, "bin", "tessera")
    under = False
    for target in filter(None, arguments.psnr.split(",")):
        lines = compress(tessera, arguments.folder, "--psnr", target)
        lossy = [line for line in lines if line["lossless"] is False]
        over = {line["file"]: line["psnr_db"] - float(target) for line in lossy if line["psnr_db"] is not None}
        misses = [f"{d:+.3f} dB {name}" for name, d in over.items() if not 0 <= d <= 0.1]
        under = under or any(d < 0 for d in over.values())
        say(f"{target} dB", lossy, [d for d in over.values() if d <= 0.1], misses)
    for target in filter(None, arguments.size.split(",")):
        lines = compress(tessera, arguments.folder, "--size", target)
        lossy = [line for line in lines if line["lossless"] is False]
        short, misses = [], [line["error"] for line in lines if line["status"] == "failed"]
        for line in lossy:
            limit = int(line["bytes_in"] / float(target[:-2])) if target.endswith(":1") else int(target)
            short.append(1 - line["bytes_out"] / limit)
            if not 0 <= short[-1] <= 0.01:
                misses.append(f"{line['bytes_out']} of {limit} bytes {line['file']}")
                under = True
        say(target, lossy, short, misses)
    return 1 if under else 0


if __name__ == "__main__":
    sys.exit(main())
