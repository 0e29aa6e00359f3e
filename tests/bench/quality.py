#!/usr/bin/env python3
"""What --quality gives on real images: ratios, windows and largest errors, by modality.

usage: quality.py PROGRAM FOLDER [--levels diagnostic,visually-lossless,web]

A modality is a folder in FOLDER (../shared/data/medical is laid out so). Each file is compressed without loss at -5 and by
each level. Of the files that are coded with loss it prints, by modality: their number; the ratio of all their bytes without
loss and by each level; the least PSNR and SSIM in a window that is judged, and over all; the largest error over the whole
image, in stored values and as a part of the narrowest judged window (of the range, where there is none); the largest RMSE in a
window, in the units of the values (Hounsfield units of a CT); the ratio of their pixels, and how many files are above the one
that is published for their modality. Last, the files that a level makes larger than no loss does, and those that a level makes
no smaller than the level before it."""
import argparse
import collections
import json
import os
import subprocess
import tempfile


def compress(program, folder, out, *how):
    done = subprocess.run([program, "compress", "-r", "--json", *how, folder, "-o", out], stdout=subprocess.PIPE, check=False)
    lines = (json.loads(line) for line in done.stdout.splitlines())
    return {line["file"]: line for line in lines if "file" in line and line["status"] == "ok"}


def least(values, digits=2):
    return f"{min(values):.{digits}f}" if values else "-"


def narrowest(line):
    """The width that the largest error of a file is measured by. Windows are in units, errors in stored values, which are the
    same where the slope is 1."""
    widths = [window["width"] for window in line["windows"] or [] if window["judged"]]
    return min(widths) if widths else line["range"]


def is_over(line):
    return line["ratio_limit"] is not None and line["pixel_bytes"] > line["ratio_limit"] * line["payload_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--levels", default="diagnostic,visually-lossless,web")
    options = parser.parse_args()
    levels = options.levels.split(",")
    with tempfile.TemporaryDirectory() as work:
        exact = compress(options.program, options.folder, os.path.join(work, "exact"))
        lossy = {level: compress(options.program, options.folder, os.path.join(work, level), "--quality", level, "--allow-lossy") for level in levels}
    print("modality\tlevel\tfiles\tlossless\tratio\tdB in windows\tdB over all\tSSIM in windows\tSSIM over all"
          "\tlargest error\t% of window\tRMSE in windows\tratio of pixels\tabove published")
    larger = []
    for level in levels:
        groups = collections.defaultdict(list)
        for file, line in lossy[level].items():
            if line["lossless"] is False:
                groups[os.path.relpath(file, options.folder).split(os.sep)[0]].append(file)
        for group in sorted(groups):
            lines = [lossy[level][file] for file in groups[group]]
            sizes = sum(line["bytes_in"] for line in lines)
            windows = [window for line in lines for window in line["windows"] or [] if window["judged"]]
            before, after = (sum(one[file]["bytes_out"] for file in groups[group]) for one in (exact, lossy[level]))
            print(group, level, len(lines), f"{sizes / before:.2f}", f"{sizes / after:.2f}",
                  least([window["psnr_db"] for window in windows if window["psnr_db"] is not None]),
                  least([line["psnr_db"] for line in lines if line["psnr_db"] is not None]),
                  least([window["ssim"] for window in windows if window["ssim"] is not None], 4),
                  least([line["ssim"] for line in lines if line["ssim"] is not None], 4),
                  max(line["max_error"] for line in lines), f"{100 * max(line['max_error'] / narrowest(line) for line in lines):.1f}",
                  f"{max(window['rmse'] for window in windows):.2f}" if windows else "-",
                  f"{sum(line['pixel_bytes'] for line in lines) / sum(line['payload_bytes'] for line in lines):.1f}",
                  sum(map(is_over, lines)), sep="\t", flush=True)
            larger += [(level, file) for file in groups[group] if lossy[level][file]["bytes_out"] >= exact[file]["bytes_out"]]
    print(f"{len(larger)} files are larger than without loss: {', '.join(f'{level} {os.path.basename(file)}' for level, file in larger[:8])}")
    disordered = [(level, file) for before, level in zip(levels, levels[1:]) for file in exact
                  if lossy[level][file]["bytes_out"] >= lossy[before][file]["bytes_out"] and not lossy[level][file]["lossless"]]
    print(f"{len(disordered)} files are no smaller than by the level before: "
          f"{', '.join(f'{level} {os.path.basename(file)}' for level, file in disordered[:8])}")


if __name__ == "__main__":
    main()
