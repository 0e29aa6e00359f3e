#!/usr/bin/env python3
"""Makes the README's picture of a report: the first screen of a comparison of the generated set.

usage: picture.py TESSERA TESTDATA OUT.png    the programs tessera and tessera_testdata
Needs Debian's chromium, and playwright and Pillow from PyPI.
"""

import glob
import pathlib
import subprocess
import sys
import tempfile

from PIL import Image
from playwright.sync_api import sync_playwright

# Those of app/demo.sh.
PATTERNS = ["dicom/ct/slice_0*.dcm", "dicom/mr/brain_01.dcm", "dicom/cr/chest.dcm", "dicom/mg/breast.dcm",
            "dicom/us/sector_rgb.dcm", "png/landscape_rgb.png", "png/texture_grey.png", "png/screen_rgb.png"]


def main() -> int:
    tessera, testdata, out = sys.argv[1:4]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([testdata, f"{folder}/images"], check=True)
        files = [name for pattern in PATTERNS for name in sorted(glob.glob(f"{folder}/images/{pattern}"))]
        page = pathlib.Path(folder) / "compare.html"
        subprocess.run([tessera, "compare", "-q", "--html", str(page), *files], check=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            view = browser.new_page(viewport={"width": 1200, "height": 900})
            view.goto(page.as_uri())
            view.screenshot(path=out)
            browser.close()
    Image.open(out).convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(out, optimize=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
