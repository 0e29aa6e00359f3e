#!/usr/bin/env python3
"""Large PNGs, for builds.py --sizes and threads.py --png: large_pngs.py FOLDER OUT [--levels 1,3,6,9]

FOLDER has photographs in RGB of at least 768 x 512, as /work/shared/data/photo/kodak. In OUT, which must not exist, each of
tile/LEVEL/ and up/LEVEL/ gets one PNG of 3840 x 2160 that Pillow writes at this level of zlib: the photographs side by side
in the order of their names, and the first of them enlarged. Needs Pillow; other versions of it or of zlib may write others."""
import argparse
import os

from PIL import Image

COLUMNS, ROWS = 3840, 2160


def tile(pictures):
    made, number = Image.new("RGB", (COLUMNS, ROWS)), 0
    for top in range(0, ROWS, 512):
        for left in range(0, COLUMNS, 768):
            made.paste(pictures[number % len(pictures)].crop((0, 0, 768, 512)), (left, top))
            number += 1
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--levels", default="1,3,6,9")
    options = parser.parse_args()
    names = sorted(name for name in os.listdir(options.folder) if name.endswith(".png"))
    pictures = [Image.open(os.path.join(options.folder, name)).convert("RGB") for name in names]
    images = {"tile": tile(pictures), "up": pictures[0].resize((COLUMNS, ROWS), Image.BICUBIC)}
    for what, image in images.items():
        for level in options.levels.split(","):
            os.makedirs(os.path.join(options.out, what, level))
            image.save(os.path.join(options.out, what, level, f"{what}{level}.png"), compress_level=int(level))


if __name__ == "__main__":
    main()
