"""Makes long files of streams and elements: what is packed while pieces are written (PACKED.md).
usage: long_files.py KIND MIB OUT.  KIND: avi (JPEG frames), tiff (JPEG tiles, BigTIFF), pdf (pages of text, JPEG
pictures), rtstruct (contours), nii.gz and dcm.gz (noise on gradients), zip (DICOM files). Needs numpy and Pillow."""

import gzip
import random
import struct
import sys
import zipfile
import zlib

import numpy as np
from slide import encode, smooth


def pictures():
    state = np.random.default_rng(3)
    base = 128 + sum(smooth(state, step) * weight for step, weight in ((256, 30), (64, 25), (16, 18), (6, 10)))
    picture = np.clip(np.stack([base + 20, base, base - 20], -1) + state.normal(0, 3, (*base.shape, 3)), 0, 255).astype("u1")
    while True:
        y, x = state.integers(0, picture.shape[0] - 640, 2)
        yield encode(picture[y : y + 480, x : x + 640], "jpeg")


def make_jpegs(out, size, begin):
    out.write(begin)
    for jpeg in pictures():
        out.write(b"00dc" + struct.pack("<I", len(jpeg)) + jpeg + b"\0" * (len(jpeg) % 2))
        if out.tell() > size:
            break


def make_pdf(out, size):
    words, jpegs = random.Random(2), pictures()
    out.write(b"%PDF-1.4\n")
    for k in range(1 << 30):
        text = "".join(f"BT /F1 12 Tf 72 712 Td ({words.randrange(10**9)} some words of a page) Tj ET\n" for _ in range(3000))
        for name, data in (("Flate", zlib.compress(text.encode(), 6)), ("DCT", next(jpegs))):
            out.write(b"%d 0 obj << /Filter /%sDecode >>\nstream\n" % (k, name.encode()) + data + b"\nendstream endobj\n")
        if out.tell() > size:
            break


def element(group, number, vr, value):
    value += b" " * (len(value) % 2)
    head = struct.pack("<HH2s", group, number, vr)
    return head + (struct.pack("<HI", 0, len(value)) if vr in (b"SQ", b"OW") else struct.pack("<H", len(value))) + value


def item(content):
    return struct.pack("<HHI", 0xFFFE, 0xE000, len(content)) + content


def begin_dicom(rest):
    meta = element(2, 0x10, b"UI", b"1.2.840.10008.1.2.1\0")
    return bytes(128) + b"DICM" + element(2, 0, b"UL", struct.pack("<I", len(meta))) + meta + rest


def make_rtstruct(out, size):
    walk = random.Random(3)
    out.write(begin_dicom(element(8, 0x60, b"CS", b"RTSTRUCT")))
    out.write(struct.pack("<HH2sHI", 0x3006, 0x39, b"SQ", 0, 0xFFFFFFFF))
    while out.tell() < size:
        contours = b""
        for plane in range(60):
            x, y, values = 100 * walk.random(), 100 * walk.random(), []
            for _ in range(120):
                x, y = x + walk.gauss(0, 0.8), y + walk.gauss(0, 0.8)
                values.append(f"{x:.2f}\\{y:.2f}\\{-300 + 2.5 * plane:.1f}")
            contours += item(
                element(0x3006, 0x42, b"CS", b"CLOSED_PLANAR")
                + element(0x3006, 0x46, b"IS", b"120")
                + element(0x3006, 0x50, b"DS", "\\".join(values).encode())
            )
        out.write(item(element(0x3006, 0x40, b"SQ", contours)))
    out.write(struct.pack("<HHI", 0xFFFE, 0xE0DD, 0))


def slices(size, side=512):
    state, edge = np.random.default_rng(5), np.arange(side)
    for k in range(size // (2 * side * side)):
        yield (np.add.outer(edge, edge * 2) // 4 + state.normal(300 + k, 9, (side, side))).astype("<i2").tobytes()


def dicom(frames):
    pixels = b"".join(frames)
    numbers = ((2, 1), (0x10, 512), (0x11, 512), (0x100, 16), (0x101, 16), (0x102, 15), (0x103, 1))
    tags = {n: element(0x28, n, b"US", struct.pack("<H", v)) for n, v in numbers}
    tags[4] = element(0x28, 4, b"CS", b"MONOCHROME2")
    tags[8] = element(0x28, 8, b"IS", str(len(frames)).encode())
    return begin_dicom(element(8, 0x60, b"CS", b"CT") + b"".join(tags[n] for n in sorted(tags)) + element(0x7FE0, 0x10, b"OW", pixels))


def make(kind, size, path):
    with open(path, "wb") as out:
        if kind in ("avi", "tiff"):
            make_jpegs(out, size, b"RIFF\0\0\0\0AVI LIST" if kind == "avi" else b"II+\0\x08\0\0\0" + bytes(8))
        elif kind == "pdf":
            make_pdf(out, size)
        elif kind == "rtstruct":
            make_rtstruct(out, size)
        elif kind == "zip":
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
                for k, frame in enumerate(slices(size)):
                    z.writestr(f"{k:05d}.dcm", dicom([frame]))
        elif kind == "dcm.gz":
            with gzip.open(out, "wb", 6) as z:
                z.write(dicom(list(slices(size))))
        elif kind == "nii.gz":
            count = size // (2 * 512 * 512)
            head = struct.pack("<i36x8h14xhh34xf", 348, 3, 512, 512, count, 1, 1, 1, 1, 4, 16, 352.0)
            with gzip.open(out, "wb", 6) as z:
                z.write(head + bytes(344 - len(head)) + b"n+1\0" + bytes(4))
                for frame in slices(size):
                    z.write(frame)
        else:
            sys.exit(__doc__)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    make(sys.argv[1], int(sys.argv[2]) << 20, sys.argv[3])
