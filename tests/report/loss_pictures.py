#!/usr/bin/env python3
"""Makes the three pictures of app/cli/LOSS.md: a region of a generated CT slice, what comes back of it, and the difference.

usage: loss_pictures.py TESSERA TESTDATA FOLDER    the programs tessera and tessera_testdata
Needs pydicom, numpy and Pillow from PyPI. Prints the figures that the page states.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import pydicom
from PIL import Image

SLICE, LEVELS = "dicom/ct/slice_05.dcm", ("diagnostic", "web")
LEFT, TOP, SIDE, SCALE = 40, 64, 128, 2
CENTER, WIDTH = 40, 400
GAIN = 4  # of the differences: grey is none, black and white are 32 Hounsfield units and more


def shown(values):
    """In 8 bits, as PS3.3, C.11.2.1.2.1 has it."""
    low = CENTER - 0.5 - (WIDTH - 1) / 2
    return ((values - low) / (WIDTH - 1) * 255).round().clip(0, 255).astype(numpy.uint8)


def save(path, *pictures):
    gap = numpy.full((SIDE * SCALE, 8), 255, numpy.uint8)
    parts = []
    for picture in pictures:
        parts += [gap] * bool(parts) + [picture.repeat(SCALE, 0).repeat(SCALE, 1)]
    Image.fromarray(numpy.hstack(parts)).save(path, optimize=True)
    print(path, path.stat().st_size, "bytes")


def region(path):
    data = pydicom.dcmread(path)
    values = data.pixel_array * float(data.get("RescaleSlope", 1)) + float(data.get("RescaleIntercept", 0))
    return values[TOP:TOP + SIDE, LEFT:LEFT + SIDE]


def main() -> int:
    tessera, testdata, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([testdata, f"{work}/images"], check=True)
        name = f"{work}/images/{SLICE}"
        original, results = region(name), []
        for level in LEVELS:
            made = subprocess.run([tessera, "compress", "--json", "--quality", level, name, "-o", f"{work}/{level}.tsr"],
                                  check=True, capture_output=True, text=True)
            line = json.loads(made.stdout.splitlines()[0])
            window = line["windows"][0]
            print(f"{level}: ratio {line['ratio']:.1f}, window {window['center']}/{window['width']}: {window['psnr_db']:.2f} dB, "
                  f"RMSE {window['rmse']:.1f}, largest error {line['max_error']}")
            subprocess.run([tessera, "decompress", "-q", f"{work}/{level}.tsr", "-o", f"{work}/{level}.dcm"], check=True)
            results.append(region(f"{work}/{level}.dcm"))
        exact = subprocess.run([tessera, "compress", "--json", name, "-o", f"{work}/exact.tsr"], check=True,
                               capture_output=True, text=True)
        print(f"lossless: ratio {json.loads(exact.stdout.splitlines()[0])['ratio']:.1f}")
    save(folder / "loss_original.png", shown(original))
    save(folder / "loss_results.png", *map(shown, results))
    save(folder / "loss_difference.png",
         *((128 + GAIN * (result - original)).round().clip(0, 255).astype(numpy.uint8) for result in results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
