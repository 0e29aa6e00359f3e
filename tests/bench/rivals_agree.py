#!/usr/bin/env python3
"""Compares the bytes of tessera-rivals with those of the codecs' own command-line tools.

usage: rivals_agree.py [--rivals PROGRAM] [--side SAMPLES] IMAGE...

IMAGE is a PNG or a DICOM file; its first frame is cropped to SAMPLES x SAMPLES (default 512). Needs numpy, pydicom
and imagecodecs (to read files), and of the tools cjxl, opj_compress, ojph_compress, cjpeg, cwebp, zstd, dcmcrle,
dcmcjpeg, dcmcjpls, and a C compiler with CharLS, those of the codecs to be compared. A codec without its tool is not
in the table. Of Debian 12: libjxl-tools, libopenjp2-tools, openjph-tools, libjpeg-turbo-progs, webp, zstd, dcmtk,
libcharls-dev.

Sizes are equal to the byte, but for dcmcjpls, whose fragments are padded to an even count of bytes: a JPEG-LS stream
of the helper has no padding. dcmcjpls is compared on grey pictures of 8 and 16 bits: it codes 9 to 15 bits as 16. cjxl
0.7 takes samples of 9 to 15 bits as if they had 16, so it gets 16 bits and --override_bitdepth. Exit status 1: any
other size, or nothing was compared.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import imagecodecs
import numpy
import pydicom
from pydicom.encaps import generate_fragments

CHARLS = r"""
#include <charls/charls.h>
#include <stdio.h>
#include <stdlib.h>
/* usage: charls COLUMNS ROWS CHANNELS BITS INTERLEAVE TRANSFORM <samples; prints bytes */
int main(int c, char **v)
{
    unsigned w = atoi(v[1]), h = atoi(v[2]), n = atoi(v[3]), bits = atoi(v[4]);
    size_t size = (size_t)w * h * n * (bits > 8 ? 2 : 1), got;
    char *in = malloc(size), *out = malloc(2 * size + 4096);
    charls_frame_info info = {w, h, bits, n};
    charls_jpegls_encoder *e = charls_jpegls_encoder_create();
    if (c != 7 || fread(in, 1, size, stdin) != size || charls_jpegls_encoder_set_frame_info(e, &info) ||
        charls_jpegls_encoder_set_interleave_mode(e, atoi(v[5])) ||
        charls_jpegls_encoder_set_color_transformation(e, atoi(v[6])) ||
        charls_jpegls_encoder_set_destination_buffer(e, out, 2 * size + 4096) ||
        charls_jpegls_encoder_encode_from_buffer(e, in, size, 0) || charls_jpegls_encoder_get_bytes_written(e, &got))
        return 1;
    printf("%zu\n", got);
    return 0;
}
"""


class Helper:
    """A process of tessera-rivals (app/rivals/protocol.h)."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def line(self):
        return self.process.stdout.readline().decode().rstrip("\n").split("\t")

    def send(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def codecs(self):
        self.send(b"codecs\n")
        return [self.line() for _ in range(int(self.line()[0]))]

    def show(self, picture):
        rows, columns, channels = picture.samples.shape
        self.send(f"picture {columns} {rows} {channels} {picture.bits}\n".encode() + picture.native())

    def code(self, key, setting):
        self.send(f"code {key} {setting}".rstrip().encode() + b"\n")
        answer = self.line()
        return answer[0], int(answer[1]), answer[9]


class Picture:
    """Unsigned samples, rows x columns x channels."""

    def __init__(self, name, samples, bits):
        self.name, self.samples, self.bits = name, samples if samples.ndim == 3 else samples[:, :, None], bits

    def native(self):
        return numpy.ascontiguousarray(self.samples, numpy.uint16 if self.bits > 8 else numpy.uint8).tobytes()

    def write_pnm(self, path, as_colour=False):
        samples = numpy.repeat(self.samples, 3, 2) if as_colour and self.samples.shape[2] == 1 else self.samples
        rows, columns, channels = samples.shape
        kind = "P5" if channels == 1 else "P6"
        with open(path, "wb") as file:
            file.write(f"{kind}\n{columns} {rows}\n{(1 << self.bits) - 1}\n".encode())
            file.write(numpy.ascontiguousarray(samples, ">u2" if self.bits > 8 else "u1").tobytes())

    def write_dicom(self, path):
        rows, columns, channels = self.samples.shape
        meta = pydicom.dataset.FileMetaDataset()
        meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        meta.MediaStorageSOPClassUID = pydicom.uid.SecondaryCaptureImageStorage
        meta.MediaStorageSOPInstanceUID = "1.2.3.4"
        data = pydicom.Dataset()
        data.file_meta = meta
        data.SOPClassUID, data.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
        data.Rows, data.Columns, data.SamplesPerPixel = rows, columns, channels
        data.PhotometricInterpretation = "MONOCHROME2" if channels == 1 else "RGB"
        if channels > 1:
            data.PlanarConfiguration = 0
        data.BitsAllocated = 16 if self.bits > 8 else 8
        data.BitsStored, data.HighBit, data.PixelRepresentation = self.bits, self.bits - 1, 0
        raw = self.native()
        data.add_new(0x7FE00010, "OW" if self.bits > 8 else "OB", raw + b"\0" * (len(raw) % 2))
        data.save_as(path, enforce_file_format=True)


def read_dicom(path):
    data = pydicom.dcmread(path, force=True)
    samples = data.pixel_array
    samples = samples[0] if int(getattr(data, "NumberOfFrames", 1) or 1) > 1 else samples
    samples = samples.astype(numpy.int64)
    if data.PixelRepresentation:
        samples += 1 << (data.BitsStored - 1)
    return samples & ((1 << data.BitsStored) - 1), int(data.BitsStored)


def read_picture(path, side):
    with open(path, "rb") as file:
        head = file.read(132)
    if head[128:] == b"DICM" or path.endswith(".dcm"):
        samples, bits = read_dicom(path)
    else:
        samples = imagecodecs.imread(path)
        bits = 16 if samples.dtype == numpy.uint16 else 8
        if samples.ndim == 3 and samples.shape[2] != 3:
            samples = samples[:, :, : 3 if samples.shape[2] > 3 else 1]
    return Picture(os.path.basename(path), samples[:side, :side].astype(numpy.uint16), bits)


# ---- The tools: each returns the bytes of its file ---------------------------------------------------------------


class Tools:
    def __init__(self, folder):
        self.folder = folder
        self.charls = self.path("charls")
        source = self.path("charls.c")
        with open(source, "w", encoding="ascii") as file:
            file.write(CHARLS)
        built = subprocess.run(["cc", "-o", self.charls, source, "-lcharls"], capture_output=True, check=False)
        self.charls = self.charls if built.returncode == 0 else None

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, words, output):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return os.path.getsize(output)

    def pnm(self, picture, as_colour=False):
        path = self.path("x.pgm" if picture.samples.shape[2] == 1 and not as_colour else "x.ppm")
        picture.write_pnm(path, as_colour)
        return path

    def jxl(self, picture, effort, distance):
        """cjxl 0.7 takes the samples of a PNM of another depth as if they had 16 bits: it gets them with 16 bits."""
        out, depth = self.path("x.jxl"), []
        if picture.bits not in (8, 16):
            most, full = (1 << picture.bits) - 1, 65535 if picture.bits > 8 else 255
            scaled = (picture.samples.astype(numpy.int64) * full + most // 2) // most
            depth = [f"--override_bitdepth={picture.bits}"]
            picture = Picture(picture.name, scaled.astype(numpy.uint16), 16 if picture.bits > 8 else 8)
        return self.run(["cjxl", self.pnm(picture), out, "-d", distance, "-e", effort, "--num_threads=0",
                         "--container=0", *depth], out)

    def opj(self, picture, *options):
        out = self.path("x.j2k")
        return self.run(["opj_compress", "-i", self.pnm(picture), "-o", out, *options], out)

    def ojph(self, picture, *options):
        out = self.path("x.j2c")
        return self.run(["ojph_compress", "-i", self.pnm(picture), "-o", out, *options], out)

    def jpeg(self, picture, quality, *options):
        out = self.path("x.jpg")
        return self.run(["cjpeg", "-quality", quality, *options, "-outfile", out, self.pnm(picture)], out)

    def webp(self, picture, *options):
        out = self.path("x.webp")
        return self.run(["cwebp", *options, self.pnm(picture, True), "-o", out], out)

    def zstd(self, picture):
        raw, out = self.path("x.raw"), self.path("x.zst")
        with open(raw, "wb") as file:
            file.write(picture.native())
        return self.run(["zstd", "-19", "--no-check", "--single-thread", "-q", "-f", raw, "-o", out], out)

    def dicom(self, picture, *words):
        plain, out = self.path("x.dcm"), self.path("y.dcm")
        picture.write_dicom(plain)
        subprocess.run([*words, plain, out], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        fragments = list(generate_fragments(pydicom.dcmread(out).PixelData))
        return sum(len(fragment) for fragment in fragments[1:])  # the first is the offset table

    def jpeg_ls(self, picture, note):
        rows, columns, channels = picture.samples.shape
        interleave = "2" if "sample" in note else "1" if "line" in note else "0"
        transform = next((n for n in "123" if f"HP{n}" in note), "0")
        words = [self.charls, str(columns), str(rows), str(channels), str(picture.bits), interleave, transform]
        return int(subprocess.run(words, input=picture.native(), check=True, capture_output=True).stdout)


def comparisons(tools, picture, key, setting, note):
    """Pairs of a tool and a function that gives its bytes."""
    number = setting.split()[-1] if setting else ""
    reversible = ("-reversible", "true")
    one = ("-sample", "1x1")
    table = {
        "zstd": [("zstd", lambda: tools.zstd(picture))],
        "jpeg-ls": [(tools.charls, lambda: tools.jpeg_ls(picture, note))],
        "jpeg-2000": [("opj_compress", lambda: tools.opj(picture))],
        "htj2k": [("ojph_compress", lambda: tools.ojph(picture, *reversible))],
        "jxl-1": [("cjxl", lambda: tools.jxl(picture, "1", "0"))],
        "jxl-3": [("cjxl", lambda: tools.jxl(picture, "3", "0"))],
        "jxl-7": [("cjxl", lambda: tools.jxl(picture, "7", "0"))],
        "webp": [("cwebp", lambda: tools.webp(picture, "-lossless", "-exact", "-z", "8"))],
        "dicom-rle": [("dcmcrle", lambda: tools.dicom(picture, "dcmcrle"))],
        "jpeg-lossless": [("dcmcjpeg", lambda: tools.dicom(picture, "dcmcjpeg", "+e1"))],
        "jpeg": [("cjpeg", lambda: tools.jpeg(picture, number, *one))],
        "jpeg-optimised": [("cjpeg", lambda: tools.jpeg(picture, number, *one, "-optimize"))],
        "jpeg-420-optimised": [("cjpeg", lambda: tools.jpeg(picture, number, "-sample", "2x2", "-optimize"))],
        "jpeg-2000-lossy": [("opj_compress", lambda: tools.opj(picture, "-I", "-q", number))],
        "htj2k-lossy": [("ojph_compress", lambda: tools.ojph(picture, "-qstep", number))],
        "jxl-lossy": [("cjxl", lambda: tools.jxl(picture, "7", number))],
        "webp-lossy": [("cwebp", lambda: tools.webp(picture, "-q", number))],
    }
    pairs = table.get(key, [])
    if key == "jpeg-ls" and picture.samples.shape[2] == 1 and picture.bits in (8, 16):  # else it codes 16 bits
        pairs.append(("dcmcjpls", lambda: tools.dicom(picture, "dcmcjpls")))
    return pairs


class Tally:
    """For each codec and tool: how many sizes were compared, and which differ."""

    def __init__(self):
        self.rows = {}

    def add(self, key, tool, picture, setting, ours, theirs):
        row = self.rows.setdefault((key, os.path.basename(tool)), [0, 0, []])
        padding = ours % 2 if tool == "dcmcjpls" else 0
        row[0] += 1
        row[1] += theirs == ours
        if theirs is None or theirs - ours != padding:
            row[2].append(f"{picture.name} {setting}: {ours}, the tool {theirs}")

    def print(self):
        print(f"{'codec':20} {'tool':14} {'compared':>8} {'equal':>6} {'padded':>6} {'disagree':>8}")
        for (key, tool), (compared, equal, wrong) in self.rows.items():
            print(f"{key:20} {tool:14} {compared:8} {equal:6} {compared - equal - len(wrong):6} {len(wrong):8}")
            for line in wrong:
                print(f"    {line}")
        return bool(self.rows) and not any(row[2] for row in self.rows.values())


def compare_picture(helper, tools, codecs, picture, tally):
    helper.show(picture)
    for key, _, _, _, _, flags, settings in codecs:
        if "o" in flags or "m" in flags:
            continue
        for setting in settings.split(",") if "l" in flags else [""]:
            outcome, ours, note = helper.code(key, setting)
            if outcome != "done":
                if outcome != "cannot":
                    tally.add(key, outcome, picture, setting, -1, None)
                continue
            for tool, measure in comparisons(tools, picture, key, setting, note):
                if not tool or not shutil.which(tool):
                    continue
                try:
                    theirs = measure()
                except subprocess.CalledProcessError:
                    theirs = None
                tally.add(key, tool, picture, setting, ours, theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rivals", default="build/bin/tessera-rivals")
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("images", nargs="+")
    options = parser.parse_args()
    helper = Helper(options.rivals)
    codecs = helper.codecs()
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(folder)
        for path in options.images:
            picture = read_picture(path, options.side)
            rows, columns, channels = picture.samples.shape
            print(f"{picture.name}: {columns} x {rows}, {channels} channels, {picture.bits} bits", flush=True)
            compare_picture(helper, tools, codecs, picture, tally)
    return 0 if tally.print() else 1


if __name__ == "__main__":
    sys.exit(main())
