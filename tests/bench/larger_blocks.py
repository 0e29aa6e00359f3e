#!/usr/bin/env python3
"""What path T would take with larger blocks, a plane of DCs, prediction from blocks beside, or smoothed borders: decision 041.

usage: larger_blocks.py BUILD FRAMES [--groups luma,window] [--variants WORD,...] [--tunes psnr,ssim] [--weights FILE] [--files]
       larger_blocks.py BUILD FRAMES --smoothing [--groups luma,window]

BUILD   a build folder with bin/libtessera_bench.so (target bench_library)
FRAMES  a folder of PGM and PPM files, as for lossless.py

A variant is a prototype, larger_blocks.c, which this compiles: ideal lengths of adaptive codes, no stream. The table has BD-rates in
percent by PSNR (30 to 55 dB) and by SSIM (8 to 25 dB of -10 log10(1 - SSIM), Gaussian of 11 x 11) against the first variant,
which is path T as it is, prototyped; the row `product` is what the library writes (rANS, -5, with --tune as the column says). Weights of
the energies are learnt on other frames, and kept in the file of --weights. Needs gcc, numpy, scipy and imagecodecs."""
import argparse
import ctypes
import os
import pickle
import subprocess
import tempfile

import numpy
import scipy.ndimage
import scipy.optimize

from bd_rate import CODERS, FEW_KODAK, FEW_MEDICAL, Lossy, bd_rate, frames_of, psnr

HERE = os.path.dirname(os.path.abspath(__file__))
QPS = (4, 10, 16, 22, 28, 34, 40)
LEARN = {"luma": ("kodim01", "kodim07", "kodim10", "kodim22"),
         "window": ("CT_lidc-0314-chest_002", "CT_philips-S21610-S2010_004", "MR_adi-memprage_045", "MR_wg04-MR3", "MR_fo-dicom-MOVEKNEE_001",
                    "photo_medical", "CR_wg04-RG3")}
CORE4 = numpy.array([[1, 1, 1, 1], [2, 1, -1, -2], [1, -1, -1, 1], [1, -2, 2, -1]], float)
CORE8 = numpy.array([[8] * 8, [12, 10, 6, 3, -3, -6, -10, -12], [8, 4, -4, -8, -8, -4, 4, 8], [10, -3, -12, -6, 6, 12, 3, -10],
                     [8, -8, -8, 8, 8, -8, -8, 8], [6, -12, 3, 10, -10, -3, 12, -6], [4, -8, 8, -4, -4, 8, -8, 4],
                     [3, -6, 10, -12, 12, -10, 6, -3]], float)
NARROW = numpy.array([[46, -26], [8, 44]]) / 64  # FORMAT.md 8.7
# The most coding gain at a correlation of 0.95 with 8 x 8 and four samples on each side: 9.60 dB; NARROW has 9.30, none 8.78.
WIDE = numpy.array([[0.7072, -0.5708, 0.102, -0.0773], [0.389, 0.5516, -0.5077, 0.0346], [0.0685, 0.312, 0.6826, -0.3375],
                    [-0.0056, -0.0316, 0.1526, 0.793]])
LAMBDA, LAPPED = 0.11, 0.076  # what a bit is worth, in squared steps: blocks that are not lapped, those that are
PLACES = (16, 15, 64, 63, 60, 16)  # of the kinds of blocks in larger_blocks.c
FEATURES = 67
# Lapping (0: none, 1: all, 2: by tile, 3: by squares of 16); plane of DCs (1: those of 4 x 4 blocks, 2: of 8 x 8); size (48: 4 or 8 by
# squares of 8, 416: by squares of 16, 480: as 48, by a rough cost); prediction instead of lapping (1: five modes, 2: 15); smoothing, as an
# offset of QP (-99: none); filter across borders of squares of 8; the step of DCs' DCs and ACs over that of ACs.
VARIANTS = {
    "4": (2, 0, 4, 0, -99, NARROW, 1),
    "4-lapped": (1, 0, 4, 0, -99, NARROW, 1),
    "4-squares": (3, 0, 4, 0, -99, NARROW, 1),
    "4-squares-dc": (3, 1, 4, 0, -99, NARROW, 1.4),
    "4-dc": (2, 1, 4, 0, -99, NARROW, 1.4),
    "4-dc-equal": (2, 1, 4, 0, -99, NARROW, 1),
    "4-dc-2": (2, 1, 4, 0, -99, NARROW, 2),
    "8": (2, 0, 8, 0, -99, NARROW, 1),
    "8-dc": (2, 1, 8, 0, -99, NARROW, 1.4),
    "8-dc8": (2, 2, 8, 0, -99, NARROW, 1.2),
    "8-wide-dc": (2, 1, 8, 0, -99, WIDE, 1.4),
    "4/8-dc": (2, 1, 48, 0, -99, NARROW, 1.4),
    "4/8-16-dc": (2, 1, 416, 0, -99, NARROW, 1.4),
    "4/8-rough-dc": (2, 1, 480, 0, -99, NARROW, 1.4),
    "4-plain": (0, 0, 4, 0, -99, NARROW, 1),
    "4-plain-smooth": (0, 0, 4, 0, -3, NARROW, 1),
    "4-plain-dc": (0, 1, 4, 0, -99, NARROW, 1),
    "4-plain-dc-smooth": (0, 1, 4, 0, -3, NARROW, 1),
    "4/8-plain-dc": (0, 1, 48, 0, -99, NARROW, 1),
    "4/8-plain-dc-smooth": (0, 1, 48, 0, -3, NARROW, 1),
    "4-pred": (0, 0, 4, 2, -99, NARROW, 1),
    "4-pred-smooth": (0, 0, 4, 2, -3, NARROW, 1),
    "8-pred": (0, 0, 8, 2, -99, NARROW, 1),
    "4/8-pred5": (0, 0, 48, 1, -99, NARROW, 1),
    "4/8-pred": (0, 0, 48, 2, -99, NARROW, 1),
    "4/8-pred-smooth": (0, 0, 48, 2, -3, NARROW, 1),
}


class Params(ctypes.Structure):
    _fields_ = [(n, ctypes.c_double) for n in ("qp", "lam", "lam_lapped", "dc_step")] + [
        (n, ctypes.c_int) for n in ("lap", "dc_plane", "size", "predict", "classes", "train", "lap_half")] + [
        ("forward", ctypes.c_double * 16), ("inverse", ctypes.c_double * 16), ("weight4", ctypes.c_double * 16),
        ("weight8", ctypes.c_double * 64)]


def error_weights(core, matrix, count=6):
    """What an error of each coefficient weighs in lapped samples: products of the synthesis' squared norms."""
    side, half = len(core), len(matrix)
    filters = numpy.eye(side * count)
    for border in range(side, side * count, side):
        after, before = border + numpy.arange(half), border - 1 - numpy.arange(half)
        change = (matrix - numpy.eye(half)) @ (numpy.eye(side * count)[after] - numpy.eye(side * count)[before]) / 2
        filters[after] += change
        filters[before] -= change
    core = core / numpy.linalg.norm(core, axis=1)[:, None]
    synthesis = filters @ numpy.kron(numpy.eye(count), core).T
    norms = (synthesis**2).sum(0)[side * 2 : side * 3]
    return numpy.outer(norms, norms).ravel()


class Likeness:
    """SSIM as decision 035 has it."""

    def __init__(self, plane):
        taps = numpy.exp(-0.5 * (numpy.arange(-5, 6) / 1.5) ** 2)
        self.taps, self.plane = taps / taps.sum(), plane.astype(float)
        self.mean = self.blur(self.plane)
        self.variance = self.blur(self.plane**2) - self.mean**2

    def blur(self, plane):
        return scipy.ndimage.convolve1d(scipy.ndimage.convolve1d(plane, self.taps, 0), self.taps, 1)

    def decibels(self, other):
        other = other.astype(float)
        mean = self.blur(other)
        both = (2 * self.mean * mean + 6.5025) * (2 * (self.blur(self.plane * other) - self.mean * mean) + 58.5225)
        each = (self.mean**2 + mean**2 + 6.5025) * (self.variance + self.blur(other**2) - mean**2 + 58.5225)
        return -10 * numpy.log10(max(1 - (both / each)[5:-5, 5:-5].mean(), 1e-9))


def classes_of(padded):
    """Steps by square: entropy/textures.h, in floating point."""
    rows, columns = padded.shape
    parts = padded.astype(float).reshape(rows // 8, 8, columns // 8, 8)
    texture = numpy.log2(16 * (parts.var((1, 3)) + 29))
    texture = texture.reshape(rows // 16, 2, columns // 16, 2).mean((1, 3))
    return numpy.clip(numpy.floor(texture - texture.mean() + 3.5), 0, 6).astype(numpy.uint8)


class Prototype:
    def __init__(self, path):
        self.folder = tempfile.TemporaryDirectory()
        library = os.path.join(self.folder.name, "larger_blocks.so")
        subprocess.run(["gcc", "-O3", "-march=native", "-ffast-math", "-shared", "-fPIC", "-o", library,
                        os.path.join(HERE, "larger_blocks.c"), "-lm"], check=True)
        self.library = ctypes.CDLL(library)
        self.library.code_frame.restype = ctypes.c_double
        self.done = {}
        self.path, self.weights = path, pickle.load(open(path, "rb")) if path and os.path.exists(path) else {}

    def code(self, variant, samples, qp, classes=False, train=0):
        lap, dc_plane, size, predict, smoothing, matrix, dc_step = VARIANTS[variant]
        half = len(matrix)
        less, lap = 0.75 if classes else 1, min(lap, 1) if train else lap
        p = Params(qp, less * LAMBDA, less * LAPPED, dc_step, lap, dc_plane, size, predict, classes, train, half)
        p.inverse[: half * half] = matrix.ravel()
        p.forward[: half * half] = numpy.linalg.inv(matrix).ravel()
        p.weight4[:] = error_weights(CORE4, NARROW)
        p.weight8[:] = error_weights(CORE8, matrix)
        rows, columns = samples.shape
        unit = 32 if dc_plane == 2 else 16
        padded = numpy.pad(samples, ((0, -rows % unit), (0, -columns % unit)), "edge")
        squares = classes_of(padded) if classes else None
        squares_at = squares.ctypes.data_as(ctypes.c_void_p) if classes else None
        key = (variant.replace("-smooth", ""), id(samples), qp, classes)
        if train or key not in self.done:
            restored, eights = numpy.empty_like(padded), numpy.empty(padded.size // 64, numpy.uint8)
            bits = self.library.code_frame(ctypes.byref(p), padded.ctypes.data_as(ctypes.c_void_p), padded.shape[1], padded.shape[0],
                                           squares_at, restored.ctypes.data_as(ctypes.c_void_p), eights.ctypes.data_as(ctypes.c_void_p))
            self.done[key] = bits, restored, eights
        bits, restored, eights = self.done[key]
        if smoothing > -50:
            restored = restored.copy()
            self.library.smooth_frame(ctypes.c_double(qp + smoothing), restored.ctypes.data_as(ctypes.c_void_p), padded.shape[1],
                                      padded.shape[0], squares_at, eights.ctypes.data_as(ctypes.c_void_p))
        return bits / 8, restored[:rows, :columns], eights.mean()

    def set_weights(self, weights):
        for kind, w in enumerate(weights):
            self.library.set_weights(kind, numpy.ascontiguousarray(w, numpy.float32).ctypes.data_as(ctypes.c_void_p))

    def use(self, variant, frames):
        """The variant's weights: from a plain start, two rounds of coding and least squares without negative weights."""
        lap, dc_plane, size, predict, _, matrix, _ = VARIANTS[variant]
        key = (min(lap, 1), dc_plane, 48 if size == 480 else size, predict, len(matrix))
        if key not in self.weights:
            weights = [numpy.zeros((64, FEATURES)) for _ in PLACES]
            for w, n in zip(weights, PLACES):
                w[:n, :3] = 0.25, 0.25, 0.1
                for p in range(n):
                    w[p, 4 + p : 3 + n] = 0.5 / (n - p)
            for _ in range(2):
                self.set_weights(weights)
                for frame in frames:
                    for qp in (12, 22, 32):
                        self.code(variant, frame, qp, train=1)
                weights = [self.solve(kind, w) for kind, w in enumerate(weights)]
            self.weights[key] = weights
            if self.path:
                pickle.dump(self.weights, open(self.path, "wb"))
        self.set_weights(self.weights[key])

    def solve(self, kind, weights):
        products, targets = numpy.zeros((64, FEATURES, FEATURES)), numpy.zeros((64, FEATURES))
        self.library.get_products(kind, products.ctypes.data_as(ctypes.c_void_p), targets.ctypes.data_as(ctypes.c_void_p))
        for p in range(PLACES[kind]):
            a = products[p] + 1e-3 * (numpy.trace(products[p]) / FEATURES + 1e-9) * numpy.eye(FEATURES)
            if products[p].any():
                root = numpy.linalg.cholesky(a).T
                weights[p] = scipy.optimize.nnls(root, numpy.linalg.solve(root.T, targets[p]))[0]
        return weights


def product_points(tessera, samples, like, tune):
    room, restored, points = numpy.empty(tessera.bound(samples, 8), numpy.uint8), numpy.empty_like(samples), []
    for qp in QPS:
        size = ctypes.c_size_t()
        taken = tessera.library.bench_encode_lossy(
            tessera.engine, *tessera.image(samples, 8), ctypes.c_uint32(CODERS["rans"]), ctypes.c_uint32(5 | (tune == "ssim") << 8),
            ctypes.c_int32(8 * qp), samples.ctypes.data_as(ctypes.c_void_p), room.ctypes.data_as(ctypes.c_void_p), ctypes.byref(size))
        assert taken >= 0
        tessera.decode_lossy(room[: size.value], samples, 8, restored)
        points.append((size.value, psnr(samples, restored, 8), like.decibels(restored)))
    return points


def rates(points, base):
    return [bd_rate([(p[0], p[at]) for p in points], [(p[0], p[at]) for p in base], low, high) for at, low, high in ((1, 30, 55), (2, 8, 25))]


def print_smoothing(tessera, library, group, few):
    """What smoothing would give where path T is not lapped: the product's own frames of effort 1, and its bytes."""
    for coder in ("cavlc", "huffman"):
        every = {offset: [] for offset in (None, -6, -3, 0, 3)}
        for _, samples, like in few:
            room, restored = numpy.empty(tessera.bound(samples, 8), numpy.uint8), numpy.empty_like(samples)
            points = {offset: [] for offset in every}
            for qp in QPS:
                payload, _ = tessera.encode_lossy(samples, 8, coder, 1, qp, room)
                tessera.decode_lossy(payload, samples, 8, restored)
                for offset in every:
                    rows, columns = samples.shape
                    shown = numpy.pad(restored, ((0, -rows % 16), (0, -columns % 16)), "edge")
                    if offset is not None:
                        library.smooth_frame(ctypes.c_double(qp + offset), shown.ctypes.data_as(ctypes.c_void_p), shown.shape[1],
                                             shown.shape[0], None, bytes(shown.size // 64))
                    shown = shown[:rows, :columns]
                    points[offset].append((payload.size, psnr(samples, shown, 8), like.decibels(shown)))
            for offset in every:
                every[offset].append(rates(points[offset], points[None]))
        for offset, row in every.items():
            means = [numpy.mean([r[i] for r in row if r[i] is not None]) for i in (0, 1)]
            print("%-7s %s-1, smoothed by QP %s: PSNR %+6.2f  SSIM %+6.2f" % (group, coder, offset, *means), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("frames")
    parser.add_argument("--groups", default="luma,window")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--tunes", default="psnr,ssim")
    parser.add_argument("--weights")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--smoothing", action="store_true")
    options = parser.parse_args()
    tessera = Lossy(os.path.abspath(os.path.join(options.build, "bin/libtessera_bench.so")))
    prototype = Prototype(options.weights)
    for group in options.groups.split(","):
        prototype.done.clear()
        learn = [s for _, s, _ in frames_of(options.frames, group, LEARN[group])]
        few = [(n, s, Likeness(s)) for n, s, _ in frames_of(options.frames, group, FEW_KODAK if group == "luma" else FEW_MEDICAL)]
        if options.smoothing:
            print_smoothing(tessera, prototype.library, group, few)
            continue
        for tune in options.tunes.split(","):
            base = None
            for variant in options.variants.split(",") + ["product"]:
                eights, every = 0, []
                if variant != "product":
                    prototype.use(variant, learn)
                for name, samples, like in few:
                    if variant == "product":
                        every.append(product_points(tessera, samples, like, tune))
                        continue
                    points = []
                    for qp in QPS:
                        size, restored, share = prototype.code(variant, samples, qp, tune == "ssim")
                        points.append((size, psnr(samples, restored, 8), like.decibels(restored)))
                        eights += share / len(few) / len(QPS)
                    every.append(points)
                base = base or every
                row = [rates(p, b) for p, b in zip(every, base)]
                if options.files:
                    for (name, _, _), r, p in zip(few, row, every):
                        print("    %-28s" % name[:28], *("%7.2f" % v if v is not None else "      -" for v in r),
                              " ".join("%d/%.2f" % q[:2] for q in p))
                means = [numpy.mean([r[i] for r in row if r[i] is not None]) for i in (0, 1)]
                print("%-7s %-5s %-20s PSNR %+6.2f  SSIM %+6.2f   8x8 %3.0f %%" % (group, tune, variant, *means, 100 * eights), flush=True)


if __name__ == "__main__":
    main()
