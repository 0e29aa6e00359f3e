#!/usr/bin/env python3
"""PSNR, SSIM and MS-SSIM of tessera compare against scikit-image and sewar (PyPI).

usage: likeness.py [--every N] BIN IMAGE...    BIN: the folder of tessera and tessera-rivals; images of 8 bits, at most
                                               1024 x 1024

Each lossy cell of `tessera compare --json`, or every Nth beginning with another one for each image, is coded once more
by tessera-rivals, whose decoded samples are compared with the image here. sewar 0.4 halves a picture by samples (i - 1, i) instead of (i, i + 1), as the definition's authors
do (their msssim.m), and filters across channels; so its filter is shifted here, and channels are compared one by one.
Ends with 1 if a PSNR differs by more than 0.01 dB, or an SSIM or MS-SSIM by more than 0.0005.
"""

import argparse
import json
import math
import subprocess
import sys
import warnings

import numpy as np
import scipy.ndimage
import sewar.full_ref
from PIL import Image
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

warnings.filterwarnings("ignore")
sewar.full_ref.uniform_filter = lambda image, _: scipy.ndimage.uniform_filter(
    image.astype(float), size=(2, 2, 1), origin=(-1, -1, 0))


class Helper:
    """tessera-rivals with a picture."""

    def __init__(self, path, picture):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        rows, columns = picture.shape[:2]
        self.bytes = picture.size
        channels = picture.size // (rows * columns)
        self.process.stdin.write(f"picture {columns} {rows} {channels} 8\n".encode() + picture.tobytes())

    def decode(self, codec, setting):
        self.process.stdin.write(f"code {codec} {setting}\ndecoded\n".encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode().split("\t")
        assert answer[0] == "done", answer
        return int(answer[1]), self.process.stdout.read(self.bytes)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(a, b):
    """PSNR, SSIM, MS-SSIM; NaN where the picture is too small."""
    channel_axis = 2 if a.ndim == 3 else None
    side = min(a.shape[:2])
    ssim = structural_similarity(a, b, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255,
                                 channel_axis=channel_axis) if side >= 11 else math.nan
    planes = [(a, b)] if a.ndim == 2 else [(a[..., c], b[..., c]) for c in range(a.shape[2])]
    ms_ssim = np.mean([sewar.full_ref.msssim(x, y, MAX=255) for x, y in planes]) if side >= 161 else math.nan
    return peak_signal_noise_ratio(a, b, data_range=255), ssim, ms_ssim


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("bin")
    parser.add_argument("images", nargs="+")
    options = parser.parse_args()
    folder, names = options.bin, options.images
    worst, cells = [0.0, 0.0, 0.0], 0
    for number, name in enumerate(names):
        picture = np.array(Image.open(name))
        lines = subprocess.run([f"{folder}/tessera", "compare", "--json", name], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        image = json.loads(lines[0])
        helper = Helper(f"{folder}/tessera-rivals", np.ascontiguousarray(picture))
        lossy = [c for c in image["cells"] if c["psnr_db"] is not None and c["setting"] is not None]
        for cell in lossy[number % options.every :: options.every]:
            size, samples = helper.decode(cell["codec"], cell["setting"])
            assert size == cell["bytes"], (name, cell, size)
            theirs = measure(picture, np.frombuffer(samples, np.uint8).reshape(picture.shape))
            ours = [cell["psnr_db"], cell["ssim"], cell["ms_ssim"]]
            for i in range(3):
                if ours[i] is not None or not math.isnan(theirs[i]):
                    worst[i] = max(worst[i], abs(ours[i] - theirs[i]))
            cells += 1
        helper.close()
    print(f"{len(names)} images, {cells} cells: largest differences: PSNR {worst[0]:.6f} dB, SSIM {worst[1]:.7f}, "
          f"MS-SSIM {worst[2]:.7f}")
    return 0 if cells > 0 and worst[0] <= 0.01 and worst[1] <= 0.0005 and worst[2] <= 0.0005 else 1


if __name__ == "__main__":
    sys.exit(main())
