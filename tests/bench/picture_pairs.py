#!/usr/bin/env python3
"""Pictures beside each other at equal bytes: the original, Tessera tuned for PSNR and for SSIM, JPEG XL and JPEG.

usage: picture_pairs.py BUILD FOLDER OUT [--generated] [--count 10] [--quality 30] [--list]

BUILD   a build folder with lib/libtessera.so (target libtessera.so)
FOLDER  PGM, PPM, PNG and DICOM files, of 8 bits or in the window of bd_rate.py; evenly spread COUNT of them are taken
OUT     a new folder: for each image a row of crops, and pairs.md, a page with all of them and their sizes

--generated: FOLDER is what `tessera_testdata FOLDER` made. Ten of its images are taken, the ones of results/pictures/pairs, whose
rows are JPEGs of crops in their own size. Else the rows are PNGs of crops in double size. Crops have 256 x 256 samples. All coders
of an image get the bytes that JPEG takes at the quality, within 2 % where their settings allow. The crop is the one of the most high
frequencies, so that losses are seen. pairs.md names files with --list and --generated alone. Do not commit pictures of
../shared/data. Needs numpy, scipy, imagecodecs and Pillow; pydicom for DICOM."""
import argparse
import os

import numpy
from PIL import Image, ImageDraw

import pictures
from bd_rate import middle
from lossless import read_frame

SIDE, SCALE, HEAD = 256, 2, 18
SHOWN = ("rANS -5", "rANS -5, ssim", "JPEG XL e7", pictures.REFERENCE)
GENERATED = (
    "dicom/cr/chest.dcm", "dicom/ct/slice_03.dcm", "dicom/mg/breast.dcm", "dicom/mr/brain_02.dcm", "dicom/sizes/275x384.dcm",
    "dicom/us/sector_rgb.dcm", "png/landscape_grey.png", "png/landscape_rgb.png", "png/screen_rgb.png", "png/texture_grey.png")
RANGES = {"rANS -5": (2, 46), "rANS -5, ssim": (2, 46), "JPEG XL e7": (0.1, 20)}


def read(path):
    """Samples of 8 bits; None: no picture of one or three components."""
    if path.endswith((".pgm", ".ppm")):
        samples, bits = read_frame(path)
    elif path.endswith(".dcm"):
        import pydicom

        samples = pydicom.dcmread(path).pixel_array
        bits = 8 if samples.dtype == numpy.uint8 else 16
    else:
        samples = numpy.array(Image.open(path))
        bits = 8 if samples.dtype == numpy.uint8 else 16
    if samples.ndim == 3 and (samples.shape[2] != 3 or bits != 8) or min(samples.shape[:2]) < SIDE:
        return None
    if bits != 8:
        low, high = numpy.percentile(samples, [0.5, 99.5])
        samples = ((samples - low) * 255 / max(high - low, 1)).round().clip(0, 255).astype(numpy.uint8)
    return numpy.ascontiguousarray(middle(samples))


def busiest(samples):
    """The corner of the crop whose rows and columns differ most from those beside them."""
    plane = pictures.luma(samples).astype(float)
    work = numpy.zeros_like(plane)
    work[1:, 1:] = numpy.abs(plane[1:, 1:] - plane[:-1, 1:]) + numpy.abs(plane[1:, 1:] - plane[1:, :-1])
    sums = numpy.pad(work.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    inside = sums[SIDE:, SIDE:] - sums[:-SIDE, SIDE:] - sums[SIDE:, :-SIDE] + sums[:-SIDE, :-SIDE]
    return numpy.unravel_index(inside.argmax(), inside.shape)


def to_size(coder, name, samples, wanted):
    """The stream whose size is nearest to the wanted one, by bisection over the coder's setting."""
    low, high = RANGES[name]
    best = None
    for _ in range(10):
        setting = (low + high) / 2
        stream = coder.encode(samples, round(8 * setting) / 8 if name.startswith("rANS") else setting)
        if best is None or abs(len(stream) - wanted) < abs(len(best) - wanted):
            best = stream
        if len(stream) > wanted:
            low = setting  # both settings are larger where the loss is
        else:
            high = setting
    return len(best), coder.decode(best, samples)


def draw(corner, rows, scale):
    """One picture: the crops of all rows, with what they are above."""
    side = SIDE * scale
    canvas = Image.new("RGB", (len(rows) * (side + 4) - 4, side + HEAD), "white")
    pen = ImageDraw.Draw(canvas)
    top, left = corner
    for number, (text, shown) in enumerate(rows):
        crop = Image.fromarray(shown[top : top + SIDE, left : left + SIDE]).convert("RGB")
        at = number * (side + 4)
        canvas.paste(crop.resize((side, side), Image.Resampling.NEAREST), (at, HEAD))
        pen.text((at + 2, 3), text, fill="black")
    return canvas


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--generated", action="store_true")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--quality", type=int, default=30)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    os.mkdir(options.out)
    names = GENERATED if options.generated else sorted(os.listdir(options.folder))
    found = [n for n in names if n.endswith((".pgm", ".ppm", ".png", ".dcm"))]
    good = [(n, s) for n, s in ((n, read(os.path.join(options.folder, n))) for n in found) if s is not None]
    step = max(1, len(good) / options.count)
    taken = [good[int(i * step)] for i in range(min(options.count, len(good)))]
    table = pictures.coders(options.build)
    with open(os.path.join(options.out, "pairs.md"), "w", encoding="utf-8") as page:
        page.write("# Pictures at equal bytes\n\nFrom left to right: the original, then the coders in the order of the tables.\n")
        for number, (name, samples) in enumerate(taken, 1):
            original = pictures.Original(samples, False)
            wanted = len(table[pictures.REFERENCE].encode(samples, options.quality))
            rows = [("original", samples)]
            file = "pair_%02d.%s" % (number, "jpg" if options.generated else "png")
            shown = name if options.list or options.generated else "pair %d" % number
            page.write("\n## %s\n\n![%s](%s)\n\n| coder | bytes | PSNR | SSIM |\n|---|---|---|---|\n" % (shown, shown, file))
            for coder in SHOWN:
                if coder not in table:
                    continue
                if coder == pictures.REFERENCE:
                    stream = table[coder].encode(samples, options.quality)
                    size, decoded = len(stream), table[coder].decode(stream, samples)
                else:
                    size, decoded = to_size(table[coder], coder, samples, wanted)
                quality = original.compare(decoded)
                ssim = 1 - 10 ** (-quality["SSIM"] / 10)
                rows.append(("%s: %d bytes, SSIM %.4f" % (coder, size, ssim), decoded))
                page.write("| %s | %d | %.2f | %.4f |\n" % (coder, size, quality["PSNR"], ssim))
            picture = draw(busiest(samples), rows, 1 if options.generated else SCALE)
            picture.save(os.path.join(options.out, file), optimize=True, **({"quality": 93, "subsampling": 0} if options.generated else {}))
            print("%d of %d" % (number, len(taken)), flush=True)


if __name__ == "__main__":
    main()
