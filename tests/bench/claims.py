#!/usr/bin/env python3
"""What files claim of --memory, and what they use, for every kind of file.

usage: claims.py BUILD [--megabytes N] [--threads 1,2,8] [--ways ...] [--only WORD,...] [--quick] [--check]
                 [--keep FOLDER]

Writes files of each kind of about N MB of samples, and runs compress, test, decompress and export by
BUILD/bin/tessera_claims (tests/cli/claims.c), which counts memory. Columns, in MB:

  claim     the most that files had claimed of the engine's budget at a time, without what they can do without
  use       the most that the heap held at a time, besides what the engine keeps
  ratio     claim to use
  excess    the most by which the heap was above the claims at a time
  resident  the growth of the resident set
  promise   what a file was said to take before it was begun
  child     the memory of a process that was started, to decode HTJ2K, which is claimed, too

--check ends with status 1 where a use is above its claims, or a claim above 1.3 times its use and 5 MB. Some kinds may
have more, since nobody knows what they will take before they are read: see UNFORESEEN. --quick runs most kinds, each by its first
way and by that of a target, one file with two threads, several with one. Needs no package."""
import argparse
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

MB = 1000000
CONSTANT = 5 * MB  # that a claim may be above 1.3 times the use
OWN = 10 << 20     # of a thread, which no file claims (app/library/budget.c)
HEAP_SHARE = 32    # of what the heap holds, it may hold one part more

# What may be claimed besides, in MB. Tokens of a block of deflate, of which most streams have few. zstd's best compressor,
# which a PNG gets only if packing makes it smaller.
TOKENS = 40
UNFORESEEN = {"deflate": {"compress": TOKENS, "test": TOKENS, "decompress": TOKENS, "verify": TOKENS},
              "png": {"compress": 70, "test": 24, "decompress": 24, "verify": 24}}


# ---- Samples ------------------------------------------------------------------------------------------------------

def noise(count, low, high, seed=1):
    """Bytes from low to high - 1 at random."""
    table = bytes(low + i * (high - low) // 256 for i in range(256))
    return random.Random(seed).randbytes(count).translate(table)


def smooth(columns, rows, seed=1):
    """Samples of 8 bits: a ramp with noise."""
    ramp = bytes(x * 200 // columns for x in range(columns)) * rows
    total = int.from_bytes(ramp, "little") + int.from_bytes(noise(columns * rows, 0, 12, seed), "little")
    return total.to_bytes(columns * rows, "little")


def words(columns, rows, seed=1):
    """Samples of 12 bits in 16, little endian: a ramp with noise."""
    both = bytearray(2 * columns * rows)
    both[0::2] = noise(columns * rows, 0, 64, seed)
    both[1::2] = bytes(x * 15 // columns for x in range(columns)) * rows
    return bytes(both)


def side_of(samples):
    return max(16, int(samples ** 0.5) // 16 * 16)


# ---- PNG ----------------------------------------------------------------------------------------------------------

def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(side, depth, colour, rows, level=6, interlace=0, idat=1 << 16, before=b""):
    stream = zlib.compress(rows, level)
    chunks = [chunk(b"IDAT", stream[at:at + idat]) for at in range(0, len(stream), idat)]
    return b"".join([b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, depth, colour, 0, 0, interlace)),
                     before] + chunks + [chunk(b"IEND", b"")])


def with_filter(raster, row_bytes, kind=0):
    rows = len(raster) // row_bytes
    return b"".join(bytes([kind]) + raster[y * row_bytes:(y + 1) * row_bytes] for y in range(rows))


def gray_png(samples, **options):
    side = side_of(samples)
    return png(side, 8, 0, with_filter(smooth(side, side), side), **options)


def rgb_png(samples):
    side = side_of(samples / 3)
    return png(side, 8, 2, with_filter(smooth(3 * side, side), 3 * side), 1)


def deep_png(samples):
    side = side_of(samples)
    raster = bytearray(2 * side * side)
    little = words(side, side)
    raster[0::2], raster[1::2] = little[1::2], little[0::2]
    return png(side, 16, 0, with_filter(bytes(raster), 2 * side), 1)


def palette_png(samples):
    side = side_of(samples)
    palette = chunk(b"PLTE", noise(3 * 256, 0, 256, 3))
    return png(side, 8, 3, with_filter(noise(side * side, 0, 16), side), 6, before=palette)


def interlaced_png(samples):
    side = side_of(samples)
    raster, rows = smooth(side, side), []
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        for y in range(y0, side, dy):
            rows.append(b"\0" + raster[y * side + x0:(y + 1) * side:dx])
    return png(side, 8, 0, b"".join(rows), 6, 1)


def drawn_rows(side):
    """Rows of a drawing in which zstd finds more than predictors do: words from a small list, far apart."""
    tiles = [noise(256, 0, 256, 100 + i) for i in range(64)]
    pick = random.Random(7)
    return with_filter(b"".join(pick.choice(tiles) for _ in range(side * side // 256 + 1))[:side * side], side)


def packed_png(samples):
    side = side_of(samples)
    return png(side, 8, 0, drawn_rows(side), 9)


def animated_png(samples):
    side = side_of(samples)
    control = chunk(b"acTL", struct.pack(">II", 1, 0))
    return png(side, 8, 0, drawn_rows(side), 6, before=control)


def black_png(samples):
    side = side_of(samples)
    return png(side, 8, 0, bytes(side * (side + 1)), 9)


def stored_png(samples):
    side = side_of(samples)
    return png(side, 8, 0, with_filter(smooth(side, side), side), 0)


# ---- PNM, NIfTI ---------------------------------------------------------------------------------------------------

def pgm(samples):
    side = side_of(samples)
    return b"P5\n%d %d\n255\n" % (side, side) + smooth(side, side)


def noisy_pgm(samples):
    side = side_of(samples)
    return b"P5\n%d %d\n255\n" % (side, side) + noise(side * side, 0, 256)


def deep_pgm(samples):
    side = side_of(samples)
    little, raster = words(side, side), bytearray(2 * side * side)
    raster[0::2], raster[1::2] = little[1::2], little[0::2]
    return b"P5\n%d %d\n4095\n" % (side, side) + raster


def ppm(samples):
    side = side_of(samples / 3)
    return b"P6\n%d %d\n255\n" % (side, side) + smooth(3 * side, side)


def nifti(samples):
    side, depth = 256, max(1, int(samples) // 65536)
    head = bytearray(352)
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, 3, side, side, depth, 1, 1, 1, 1)
    struct.pack_into("<hh", head, 70, 4, 16)
    struct.pack_into("<8f", head, 76, *[1.0] * 8)
    struct.pack_into("<f", head, 108, 352.0)
    head[344:348] = b"n+1\0"
    return bytes(head) + words(side, side * depth)


def gzipped(plain, level=6):
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    return packer.compress(plain) + packer.flush()


def text(samples):
    pick = random.Random(5)
    vocabulary = ["".join(pick.choice("etaoinshrdlu") for _ in range(pick.randint(2, 9))) for _ in range(4000)]
    page = " ".join(pick.choice(vocabulary) for _ in range(200000)).encode()
    pages = [page[pick.randint(0, 5000):] for _ in range(int(samples) // len(page) + 1)]
    return b"\n".join(pages)[:int(samples)]


# ---- JPEG ---------------------------------------------------------------------------------------------------------

class Bits:
    def __init__(self):
        self.value = self.count = 0

    def put(self, value, count):
        self.value, self.count = self.value << count | value, self.count + count


def magnitude(bits, value):
    size = abs(value).bit_length()
    return size, (value if value > 0 else value + (1 << size) - 1)


# Codes of 4 bits for sizes of DC, and for a few symbols of AC: end of block, and sizes 1 to 6 after 0 or 1 zeros.
DC_SYMBOLS = list(range(8))
AC_SYMBOLS = [0] + [run << 4 | size for run in (0, 1) for size in range(1, 7)]


def put_dc(bits, value):
    size, rest = magnitude(bits, value) if value else (0, 0)
    bits.put(DC_SYMBOLS.index(size), 4)
    if size:
        bits.put(rest, size)


def put_ac(bits, pick, count):
    for _ in range(count):
        size, rest = magnitude(bits, pick.choice([-1, 1]) * pick.randint(1, 40))
        bits.put(AC_SYMBOLS.index(pick.randint(0, 1) << 4 | size), 4)
        bits.put(rest, size)
    bits.put(0, 4)


def unit_of(pick, components, dc, ac):
    """Two MCUs in whole bytes without 0xff, after which the predictions are what they were."""
    while True:
        bits = Bits()
        steps = [pick.randint(-60, 60) for _ in range(components)]
        for sign in (1, -1):
            for step in steps:
                if dc:
                    put_dc(bits, sign * step)
                if ac:
                    put_ac(bits, pick, pick.randint(4, 12))
        if bits.count % 8 == 0:
            made = bits.value.to_bytes(bits.count // 8, "big")
            if 0xff not in made:
                return made


def scan(components, mcus, dc, ac, spectrum, seed):
    pick = random.Random(seed)
    units = [unit_of(pick, components, dc, ac) for _ in range(512)]
    head = bytes([components]) + b"".join(bytes([c + 1, 0]) for c in range(components)) + spectrum
    return segment(0xda, head) + b"".join(pick.choices(units, k=mcus // 2))


def segment(marker, content):
    return bytes([0xff, marker]) + struct.pack(">H", len(content) + 2) + content


def huffman(which, symbols):
    return segment(0xc4, bytes([which]) + bytes([0, 0, 0, len(symbols)] + [0] * 12) + bytes(symbols))


def jpeg(samples, components=1, progressive=False):
    side = side_of(samples / components)
    mcus = (side // 8) ** 2
    frame = struct.pack(">BHHB", 8, side, side, components) + b"".join(bytes([c + 1, 0x11, 0]) for c in range(components))
    made = [b"\xff\xd8", segment(0xdb, b"\0" + bytes([4] * 64)), segment(0xc2 if progressive else 0xc0, frame),
            huffman(0x00, DC_SYMBOLS), huffman(0x10, AC_SYMBOLS)]
    if progressive:
        made.append(scan(components, mcus, True, False, b"\0\0\0", 1))
        made.append(scan(1, mcus, False, True, b"\1\x3f\0", 2))
    else:
        made.append(scan(components, mcus, True, True, b"\0\x3f\0", 1))
    return b"".join(made + [b"\xff\xd9"])


# ---- DICOM --------------------------------------------------------------------------------------------------------

def element(group, number, vr, value):
    if isinstance(value, str):
        value = value.encode() + (b"\0" if vr == "UI" else b" ") * (len(value) % 2)
    head = struct.pack("<HH", group, number) + vr.encode()
    long = vr in ("OB", "OW")
    return head + (b"\0\0" + struct.pack("<I", len(value)) if long else struct.pack("<H", len(value))) + value


def meta(syntax):
    rest = element(2, 1, "OB", b"\0\1") + element(2, 2, "UI", "1.2.840.10008.5.1.4.1.1.7") + element(2, 3, "UI", "2.25.1")
    rest += element(2, 0x10, "UI", syntax)
    return bytes(128) + b"DICM" + element(2, 0, "UL", struct.pack("<I", len(rest))) + rest


def dataset(side, frames, components, allocated, stored, pixels, planar=0, more=b""):
    short = lambda value: struct.pack("<H", value)
    colour = "RGB" if components == 3 else "MONOCHROME2"
    made = element(8, 0x16, "UI", "1.2.840.10008.5.1.4.1.1.7") + element(8, 0x18, "UI", "2.25.1") + element(8, 0x60, "CS", "OT")
    made += more + element(0x28, 2, "US", short(components)) + element(0x28, 4, "CS", colour)
    if components == 3:
        made += element(0x28, 6, "US", short(planar))
    made += element(0x28, 8, "IS", str(frames)) + element(0x28, 0x10, "US", short(side)) + element(0x28, 0x11, "US", short(side))
    made += element(0x28, 0x100, "US", short(allocated)) + element(0x28, 0x101, "US", short(stored))
    return made + element(0x28, 0x102, "US", short(stored - 1)) + element(0x28, 0x103, "US", short(0)) + pixels


def native(samples, frame_side=0, components=1, allocated=16, stored=12, syntax="1.2.840.10008.1.2.1"):
    side = frame_side or side_of(samples / components)
    frames = max(1, int(samples // (side * side * components))) if frame_side else 1
    rows = side * frames
    if allocated == 1:
        raster = noise(side * rows // 8, 0, 256)
    elif allocated == 8:
        raster = smooth(components * side, rows)
    elif allocated == 16:
        raster = words(components * side, rows)
    else:
        raster = bytearray(4 * side * rows)
        raster[0::4], raster[1::4] = noise(side * rows, 0, 256), noise(side * rows, 0, 256, 2)
    content = dataset(side, frames, components, allocated, stored,
                      element(0x7fe0, 0x10, "OB" if allocated <= 8 else "OW", bytes(raster)))
    if syntax.endswith(".99"):
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        content = packer.compress(content) + packer.flush()
    return meta(syntax) + content


def encapsulated(syntax, side, components, streams):
    items = [b""] + [s + b"\0" * (len(s) % 2) for s in streams]
    pixels = struct.pack("<HH2sHI", 0x7fe0, 0x10, b"OB", 0, 0xffffffff)
    pixels += b"".join(struct.pack("<HHI", 0xfffe, 0xe000, len(i)) + i for i in items) + struct.pack("<HHI", 0xfffe, 0xe0dd, 0)
    return meta(syntax) + dataset(side, len(streams), components, 8, 8, pixels)


def jpeg_dicom(samples, frame_side=0):
    side = frame_side or side_of(samples)
    frames = max(1, int(samples) // (side * side))
    return encapsulated("1.2.840.10008.1.2.4.50", side, 1, [jpeg(side * side)] * frames)


def report(samples):
    """A DICOM file without pixels: elements."""
    items, code = bytearray(), random.Random(1)
    while len(items) < samples - 100:
        item = element(8, 0x100, "SH", "%06d" % code.randrange(1000000)) + element(8, 0x102, "SH", "DCM")
        item += element(8, 0x104, "LO", "Finding %08x of some kind" % code.randrange(1 << 32))
        items += struct.pack("<HHI", 0xfffe, 0xe000, len(item)) + item
    return meta("1.2.840.10008.1.2.1") + struct.pack("<HH2sHI", 0x40, 0xa730, b"SQ", 0, len(items)) + bytes(items)


# ---- The kinds ----------------------------------------------------------------------------------------------------

LOSSLESS = ("-1", "-5", "-9")
LOSSY = ("--qp 20", "--qp 20 -9", "--psnr 45", "--size 10:1", "--max-error 2", "--coder cavlc")


class Kind:
    def __init__(self, name, ending, make, ways=("-5",), export="", of="", share=1.0, many=0):
        self.name, self.ending, self.make, self.ways = name, ending, make, ways
        self.export, self.of, self.share, self.many = export, of, share, many

    def unforeseen(self, verb, way, size):
        """Bytes that a claim may be above what is used otherwise. size: of the file."""
        coder = "png" if self.ending == "png" else "deflate" if "gz" in self.ending or "deflated" in self.name else ""
        more = UNFORESEEN.get(coder, {}).get(verb, 0) * MB
        if coder == "deflate" and verb == "compress":
            more += size  # the residue of a stream may be as long as the stream
        lossy = any(word in way for word in ("--qp", "--psnr", "--size", "--max-error"))
        if coder == "png" and verb == "test" and lossy:
            more += 2 * size  # the PNG that is made may be as long as its pixels, and is read again
        if "16" in self.name and verb == "compress" and lossy:
            more += 2 * size  # the base and the masks of a background, which few files have
        return more

    def quick_ways(self):
        if self.of == "dicom rgb":
            return []
        return [way for way in self.ways if way == self.ways[0] or way.startswith("--psnr")]


def kinds():
    deep = lambda syntax: (lambda n: native(n, syntax=syntax))
    listed = [
        Kind("png gray", "png", gray_png, LOSSLESS + LOSSY),
        Kind("png large", "png", lambda n: gray_png(n, level=1), share=10),
        Kind("png rgb", "png", rgb_png, LOSSLESS + ("--qp 20", "--samples-only")),
        Kind("png 16", "png", deep_png, LOSSLESS + ("--qp 20", "--samples-only")),
        Kind("png palette", "png", palette_png),
        Kind("png interlaced", "png", interlaced_png, ("-5", "--qp 20", "--samples-only")),
        Kind("png packed", "png", packed_png, LOSSLESS),
        Kind("png animated", "png", animated_png, LOSSLESS),
        Kind("png black", "png", black_png),
        Kind("png stored", "png", stored_png),
        Kind("png one idat", "png", lambda n: gray_png(n, idat=1 << 30)),
        Kind("pgm", "pgm", pgm, LOSSLESS + LOSSY),
        Kind("pgm noise", "pgm", noisy_pgm, LOSSLESS),
        Kind("pgm 16", "pgm", deep_pgm, LOSSLESS + LOSSY),
        Kind("ppm", "ppm", ppm, LOSSLESS + LOSSY),
        Kind("nii", "nii", nifti, LOSSLESS + ("--qp 20",)),
        Kind("nii.gz", "nii.gz", lambda n: gzipped(nifti(n)), LOSSLESS),
        Kind("dicom 8", "dcm", lambda n: native(n, 0, 1, 8, 8), LOSSLESS + ("--qp 20",), "jpeg-ls"),
        Kind("dicom 16", "dcm", native, LOSSLESS + LOSSY, "native"),
        Kind("dicom rgb", "dcm", lambda n: native(n, 0, 3, 8, 8), LOSSLESS + ("--qp 20",), "rle"),
        Kind("dicom 1 bit", "dcm", lambda n: native(8 * n, 0, 1, 1, 1), ("-5",)),
        Kind("dicom 32", "dcm", lambda n: native(n, 0, 1, 32, 16), ("-5",), "rle"),
        Kind("dicom frames 512", "dcm", lambda n: native(n, 512), LOSSLESS + ("--qp 20",), "jpeg-lossless"),
        Kind("dicom frames 64", "dcm", lambda n: native(n, 64), LOSSLESS + ("--qp 20",), "jpeg-ls"),
        Kind("dicom frames 2048", "dcm", lambda n: native(n, 2048), LOSSLESS + ("--qp 20",), "j2k"),
        Kind("dicom deflated", "dcm", deep("1.2.840.10008.1.2.1.99"), LOSSLESS + ("--qp 20",), "native"),
        Kind("dicom report", "dcm", lambda n: report(min(n, 60000))),
        Kind("dicom report large", "dcm", report),
        Kind("dicom jpeg", "dcm", jpeg_dicom),
        Kind("dicom jpeg frames", "dcm", lambda n: jpeg_dicom(n, 512)),
        Kind("dicom video", "dcm", lambda n: encapsulated("1.2.840.10008.1.2.4.102", 512, 3, [noise(int(n), 0, 256)])),
        Kind("dicom unknown", "dcm", lambda n: encapsulated("1.2.3.4.5", 512, 1, [noise(int(n), 0, 256)])),
        Kind("jpeg", "jpg", jpeg),
        Kind("jpeg rgb", "jpg", lambda n: jpeg(n, 3)),
        Kind("jpeg progressive", "jpg", lambda n: jpeg(n, 1, True)),
        Kind("gzip", "gz", lambda n: gzipped(text(n))),
        Kind("gzip members", "gz", lambda n: b"".join(gzipped(text(n / 16)) for _ in range(16))),
        Kind("gzip noise", "gz", lambda n: gzipped(noise(int(n), 0, 256))),
        Kind("text", "txt", text, LOSSLESS),
        Kind("random", "bin", lambda n: noise(int(n), 0, 256)),
        Kind("small files", "pgm", pgm, ("-5",), share=0.001, many=64),
        Kind("series", "dcm", native, LOSSLESS, share=0.05, many=20),
        Kind("series of large", "dcm", native, ("-5",), share=0.5, many=3),
        Kind("series frames", "dcm", lambda n: native(n, 128), ("-5",), share=0.1, many=8),
    ]
    for syntax in ("rle", "jpeg-ls", "jpeg-lossless", "j2k", "htj2k"):
        ways = ("-5", "--samples-only") if syntax != "htj2k" else ("--samples-only",)
        for base in ("dicom 16", "dicom rgb", "dicom frames 512"):
            listed.append(Kind("%s of %s" % (syntax, base), "dcm", syntax, ways, of=base, export="native"))
    return listed


# ---- Running ------------------------------------------------------------------------------------------------------

class Failure(Exception):
    pass


class Runner:
    def __init__(self, build, folder):
        self.program = os.path.join(build, "bin", "tessera_claims")
        self.folder = folder

    def run(self, threads, verb, *words):
        """Returns the numbers of a run."""
        numbers = os.path.join(self.folder, "numbers")
        if os.path.exists(numbers):
            os.remove(numbers)
        command = [self.program, verb, "--engine", "cpu", "-q", "-T", str(threads)] + list(words)
        done = subprocess.run(command, env=dict(os.environ, TESSERA_CLAIMS=numbers), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              check=False)
        if done.returncode != 0:
            raise Failure("%s: %d: %s" % (" ".join(command[1:]), done.returncode, done.stderr.decode(errors="replace").strip()))
        with open(numbers, encoding="ascii") as file:
            return [int(word) for word in file.read().split()]


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def make_inputs(runner, kind, megabytes, by_name):
    """Returns the input's path: a file, or a folder of many."""
    path = os.path.join(runner.folder, kind.name.replace(" ", "_") + ("" if kind.many else "." + kind.ending))
    if os.path.exists(path):
        return path
    if kind.of:
        base = make_inputs(runner, by_name[kind.of], megabytes, by_name)
        packed = os.path.join(runner.folder, "base.tsr")
        runner.run(2, "compress", "-f", "-1", base, "-o", packed)
        runner.run(2, "export", "-f", packed, "--to", kind.make, "-o", path)
        return path
    samples = megabytes * MB * kind.share
    if not kind.many:
        write(path, kind.make(samples))
        return path
    os.mkdir(path)
    content = kind.make(samples)
    for i in range(kind.many):
        write(os.path.join(path, "%03d.%s" % (i, kind.ending)), content[:-1] + bytes([i]))
    return path


def measure(runner, kind, path, way, threads):
    """Yields a verb and its numbers."""
    packed, back = os.path.join(runner.folder, "packed"), os.path.join(runner.folder, "back")
    options = way.split()
    for place in (packed, back, packed + ".tsr"):
        if os.path.isdir(place):
            shutil.rmtree(place)
        elif os.path.exists(place):
            os.remove(place)
    if kind.name.startswith("series"):
        yield "compress", runner.run(threads, "compress", "-r", *options, path, "--series", packed + ".tsr")
        packed += ".tsr"
        yield "test", runner.run(threads, "test", packed)
        yield "decompress", runner.run(threads, "decompress", packed, "-o", back)
        return
    many = ["-r"] if kind.many else []
    yield "compress", runner.run(threads, "compress", *many, *options, path, "-o", packed)
    yield "test", runner.run(threads, "test", *many, packed)
    yield "decompress", runner.run(threads, "decompress", *many, packed, "-o", back)
    if way == kind.ways[0] and not kind.many and way != "--samples-only":
        yield "verify", runner.run(threads, "verify", path, packed)
    if kind.export and way == kind.ways[0]:
        yield "export", runner.run(threads, "export", "-f", packed, "--to", kind.export, "-o", back)


def is_wrong(kind, verb, way, size, numbers, threads):
    claim, use, excess, _, _, child = numbers
    return excess > OWN * threads + use / HEAP_SHARE or claim > 1.3 * (use + child) + CONSTANT + kind.unforeseen(verb, way, size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--megabytes", type=float, default=4)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--only", default="", help="words, one of which a kind's name has")
    parser.add_argument("--ways", default="", help="instead of all ways of a kind, those of these that it has")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--keep", help="a folder for the files, which stay")
    options = parser.parse_args()
    by_name = {kind.name: kind for kind in kinds()}
    wrong = failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        runner = Runner(options.build, folder)
        print("%-26s %-16s %2s %-10s %8s %8s %6s %8s %8s %8s %8s" %
              ("kind", "way", "T", "verb", "claim", "use", "ratio", "excess", "resident", "promise", "child"), flush=True)
        for kind in by_name.values():
            if options.only and not any(word in kind.name for word in options.only.split(",")):
                continue
            ways = [way for way in (kind.quick_ways() if options.quick else kind.ways)
                    if not options.ways or way in options.ways.split(",")]
            path = make_inputs(runner, kind, options.megabytes, by_name) if ways else runner.folder
            size = 0 if os.path.isdir(path) else os.path.getsize(path)
            for way in ways:
                quick_threads = 1 if kind.many else 2  # files at once claim at once, and may not use at once
                for threads in [quick_threads] if options.quick else map(int, options.threads.split(",")):
                    try:
                        for verb, numbers in measure(runner, kind, path, way, threads):
                            claim, use, excess, resident, promise, child = numbers
                            bad = is_wrong(kind, verb, way, size, numbers, threads)
                            wrong += bad
                            print("%-26s %-16s %2d %-10s %8.2f %8.2f %6.2f %8.2f %8.2f %8.2f %8.2f%s" %
                                  (kind.name, way, threads, verb, claim / MB, use / MB, claim / max(use, 1), excess / MB, resident / MB,
                                   promise / MB, child / MB, "  !" if bad else ""), flush=True)
                    except Failure as failure:
                        failed += 1
                        print("%-26s %-16s %2d %s" % (kind.name, way, threads, failure), flush=True)
    print("%d wrong, %d failed" % (wrong, failed))
    sys.exit(1 if options.check and (wrong or failed) else 0)


if __name__ == "__main__":
    main()
