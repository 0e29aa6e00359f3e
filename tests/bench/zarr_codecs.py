#!/usr/bin/env python3
"""Codecs of Zarr chunks on a volume of DICOM slices: sizes and speeds in one run, as a table.

usage: zarr_codecs.py LIBRARY FOLDER [--planes 16] [--repeats 5] [--slow-repeats 1] [--only WORD,...] [--no-stacks]
                      [--crop SIDE]

LIBRARY  libtessera.so of a build
FOLDER   DICOM files of one size; they are sorted by their position

Each codec is called through its numcodecs form, as Zarr calls it, on chunks of one slice or of --planes slices. All that it
encodes is decoded and compared. Times are CPU time on one core, from array to bytes and back: of each repeat the sum over all
chunks, and of the repeats, which take turns, the median. A codec of which a repeat takes more than 20 s has --slow-repeats.
A row has bytes as a share of the raw ones, bits a sample, bytes as a ratio to those of tessera, effort 5, chunks of --planes
slices; MB of samples a second to bytes and back, and both as ratios to that of the same tessera. A second table has bits a
sample of chunks of 1 to 32 slices; with --repeats 0 it is alone. --crop takes the middle of each slice. JPEG-LS is also measured by CharLS itself with the volume's number of bits, which
imagecodecs does not let one choose. Needs numpy, numcodecs, imagecodecs, pydicom; for that row libcharls.so.2.
"""
import argparse
import ctypes
import os
import statistics
import sys
import time
import warnings
from pathlib import Path

import machine

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before any library counts processors

import imagecodecs  # noqa: E402
import numcodecs  # noqa: E402
import numpy  # noqa: E402
import pydicom  # noqa: E402
from imagecodecs import numcodecs as image_codecs  # noqa: E402

SLOW_S = 20


def read_volume(folder):
    warnings.simplefilter("ignore")
    slices = []
    for path in sorted(Path(folder).iterdir()):
        try:
            slices.append(pydicom.dcmread(path))
        except pydicom.errors.InvalidDicomError:
            continue
    slices.sort(key=lambda data: float(data.ImagePositionPatient[2]) if "ImagePositionPatient" in data else 0)
    return numpy.stack([data.pixel_array for data in slices])


class Charls:
    """CharLS by its C functions, which take the number of bits of a sample."""

    class Frame(ctypes.Structure):
        _fields_ = [("width", ctypes.c_uint32), ("height", ctypes.c_uint32), ("bits", ctypes.c_int32), ("count", ctypes.c_int32)]

    def __init__(self, bits):
        self.bits = bits
        self.library = ctypes.CDLL("libcharls.so.2")
        for name in ("encoder", "decoder"):
            create = getattr(self.library, f"charls_jpegls_{name}_create")
            create.restype = ctypes.c_void_p

    def call(self, name, *arguments):
        if getattr(self.library, "charls_jpegls_" + name)(*arguments):
            raise RuntimeError("CharLS: " + name)

    def encode(self, chunk):
        rows, columns = chunk.shape
        encoder = ctypes.c_void_p(self.library.charls_jpegls_encoder_create())
        out, written = numpy.empty(chunk.nbytes * 2 + 1024, "u1"), ctypes.c_size_t()
        frame = self.Frame(columns, rows, self.bits, 1)
        self.call("encoder_set_frame_info", encoder, ctypes.byref(frame))
        self.call("encoder_set_destination_buffer", encoder, out.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(out.size))
        self.call("encoder_encode_from_buffer", encoder, chunk.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(chunk.nbytes), 0)
        self.call("encoder_get_bytes_written", encoder, ctypes.byref(written))
        self.library.charls_jpegls_encoder_destroy(encoder)
        return out[: written.value].tobytes()

    def decode(self, data):
        decoder, frame = ctypes.c_void_p(self.library.charls_jpegls_decoder_create()), self.Frame()
        self.call("decoder_set_source_buffer", decoder, data, ctypes.c_size_t(len(data)))
        self.call("decoder_read_header", decoder)
        self.call("decoder_get_frame_info", decoder, ctypes.byref(frame))
        out = numpy.empty((frame.height, frame.width), "u2")
        self.call("decoder_decode_to_buffer", decoder, out.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(out.nbytes), 0)
        self.library.charls_jpegls_decoder_destroy(decoder)
        return out


class Coder:
    def __init__(self, name, planes, codec):
        self.name, self.planes, self.codec = name, planes, codec
        self.size, self.encode_s, self.decode_s = 0, [], []

    def run(self, volume):
        size, encode_s, decode_s = 0, 0.0, 0.0
        for first in range(0, len(volume), self.planes):
            chunk = volume[first] if self.planes == 1 else volume[first : first + self.planes]
            begin = time.process_time()
            data = self.codec.encode(chunk)
            middle = time.process_time()
            back = self.codec.decode(data)
            end = time.process_time()
            if numpy.asarray(back).tobytes() != chunk.tobytes():
                sys.exit(f"{self.name}: what was decoded is not what was encoded")
            size += len(data)
            encode_s += middle - begin
            decode_s += end - middle
        self.size = size
        self.encode_s.append(encode_s)
        self.decode_s.append(decode_s)


def make_coders(volume, planes, bits):
    from tessera.numcodecs import Tessera

    def ours(effort, count, **options):
        shape = volume.shape[1:] if count == 1 else (count, *volume.shape[1:])
        chunk = f"{count} slices" if count > 1 else "1 slice"
        depth = f", depth {options['depth']}" if options else ""
        return Coder(f"tessera, effort {effort}{depth} | {chunk}", count,
                     Tessera(shape=shape, dtype=volume.dtype, effort=effort, **options))

    blosc = numcodecs.Blosc
    coders = [ours(5, planes)]
    coders += [ours(effort, planes) for effort in (1, 7, 9)]
    coders += [ours(effort, 1) for effort in (1, 5, 9)]
    coders += [ours(effort, planes, depth=4) for effort in (5, 9)]
    for level, shuffle, word in ((5, blosc.SHUFFLE, "shuffle"), (9, blosc.SHUFFLE, "shuffle"), (9, blosc.BITSHUFFLE, "bitshuffle")):
        for count in (1, planes):
            coders.append(Coder(f"blosc-zstd {level}, {word} | {count} slice{'s' * (count > 1)}", count,
                                blosc("zstd", level, shuffle)))
    coders.append(Coder("JPEG-LS (imagecodecs: 16 bits) | 1 slice", 1, image_codecs.Jpegls()))
    try:
        coders.append(Coder(f"JPEG-LS (CharLS: {bits} bits) | 1 slice", 1, Charls(bits)))
    except OSError:
        print("libcharls.so.2 is not here: CharLS is left out", file=sys.stderr)
    for resolutions in (None, 3):
        word = f", {resolutions} resolutions" if resolutions else ""
        coders.append(Coder(f"HTJ2K, reversible{word} | 1 slice", 1,
                            image_codecs.Htj2k(reversible=True, resolutions=resolutions)))
    for effort in (1, 3, 7, 9):
        coders.append(Coder(f"JPEG XL, lossless, effort {effort} | 1 slice", 1,
                            image_codecs.Jpegxl(lossless=True, effort=effort, bitspersample=bits, numthreads=1)))
    return coders


def print_table(volume, coders):
    best = coders[0]
    print("| codec | chunk | of raw | bits | size | MB/s in | out | speed in | out |")
    print("|" + "---|" * 9)
    for coder in sorted(coders, key=lambda coder: coder.size):
        encode, decode = (volume.nbytes / 1e6 / statistics.median(times) for times in (coder.encode_s, coder.decode_s))
        encode_ours, decode_ours = (volume.nbytes / 1e6 / statistics.median(times) for times in (best.encode_s, best.decode_s))
        print(f"| {coder.name} | {coder.size / volume.nbytes:.4f} | {coder.size * 8 / volume.size:.3f} |"
              f" {coder.size / best.size:.3f} | {encode:.1f} | {decode:.1f} | {encode / encode_ours:.3f} |"
              f" {decode / decode_ours:.3f} |", flush=True)


def print_stacks(volume):
    """Bits per sample of chunks of so many slices."""
    from tessera import _chunks

    counts = [count for count in (1, 2, 4, 8, 16, 32) if count <= len(volume)]
    print("\n| effort, depth |" + "".join(f" {count} |" for count in counts))
    print("|---|" + "---|" * len(counts))
    for effort, depth in ((1, 1), (5, 1), (9, 1), (5, 2), (5, 4), (9, 4)):
        settings = _chunks.Configuration(effort, 0, 1, depth)
        cells = []
        for count in counts:
            whole = len(volume) // max(counts) * max(counts)
            size = sum(len(_chunks.encode(volume[first : first + count], settings)) for first in range(0, whole, count)) \
                if count % depth == 0 else 0
            cells.append(f" {size * 8 / volume[:whole].size:.3f} |" if size else " - |")
        print(f"| {effort}, {depth} |" + "".join(cells), flush=True)


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("library")
    options.add_argument("folder")
    options.add_argument("--planes", type=int, default=16)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--slow-repeats", type=int, default=1)
    options.add_argument("--only", default="")
    options.add_argument("--no-stacks", action="store_true")
    options.add_argument("--crop", type=int)
    given = options.parse_args()
    os.environ["TESSERA_LIBRARY"] = os.path.abspath(given.library)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "app" / "python"))
    numcodecs.blosc.set_nthreads(1)

    volume = read_volume(given.folder)
    if given.crop:
        row, column = ((side - given.crop) // 2 for side in volume.shape[1:])
        volume = volume[:, row : row + given.crop, column : column + given.crop]
    volume = numpy.ascontiguousarray(volume[: len(volume) // given.planes * given.planes])
    bits = int(volume.max()).bit_length()
    coders = make_coders(volume, given.planes, bits)
    words = [word for word in given.only.split(",") if word]
    coders = [coder for coder in coders if coder is coders[0] or not words or any(word in coder.name for word in words)]
    print(f"{machine.model()}, one core; numcodecs {numcodecs.__version__}, {imagecodecs.version().split(',')[0]};"
          f" {volume.shape} of {volume.dtype}, {bits} bits, {volume.nbytes / 1e6:.1f} MB\n")
    for repeat in range(given.repeats):
        for coder in coders:
            is_slow = repeat > 0 and coder.encode_s[0] + coder.decode_s[0] > SLOW_S
            if not is_slow or repeat < given.slow_repeats:
                coder.run(volume)
                print(f"  {repeat}: {coder.name}: {coder.encode_s[-1]:.2f} s, {coder.decode_s[-1]:.2f} s", file=sys.stderr)
    if given.repeats:
        print_table(volume, coders)
    if not given.no_stacks:
        print_stacks(volume)


if __name__ == "__main__":
    main()
