#!/usr/bin/env python3
"""Deflate streams of real files, made again: deflate_streams.py BUILD PATH... [--repeat] [--limit N] [--most BYTES]
Noise beside zlib: deflate_streams.py BUILD --noise BYTES [--turns N] [--kind random|bell]

Finds PNG and gzip files in files and folders, and by --made the streams that python's zlib makes at all parameters. For
each group of streams: how many come back exactly, the residue's share of the stream, and MB/s of plain bytes each way
(CPU time of this process). --repeat also tells how many streams zlib itself repeats, at any level x memLevel x strategy.
--noise: random bytes, or sums of four (bell), by zlib at all levels and strategies, memLevels 1, 8, 9 and windows of 9, 12, 15
bits; the least CPU times of the turns over those of zlib. Of each level: the median and the worst, with its parameters.
Needs `ninja bench_library`."""
import argparse, collections, ctypes, itertools, os, random, struct, sys, time, zlib

import machine


class Bytes(ctypes.Structure):
    _fields_ = [("bytes", ctypes.POINTER(ctypes.c_uint8)), ("size", ctypes.c_size_t), ("capacity", ctypes.c_size_t),
                ("limit", ctypes.c_size_t)]


class Coder:
    def __init__(self, build):
        self.library = ctypes.CDLL(os.path.join(build, "bin", "libtessera_bench.so"))

    def read(self, stream):
        """(plain, residue, used, seconds), or None if the stream is refused."""
        plain, residue = Bytes(limit=1 << 31), Bytes(limit=1 << 31)
        used = ctypes.c_size_t()
        begin = time.process_time()
        status = self.library.bench_deflate_read(stream, ctypes.c_size_t(len(stream)), ctypes.byref(used), ctypes.byref(plain),
                                                 ctypes.byref(residue))
        seconds = time.process_time() - begin
        result = (self.take(plain), self.take(residue), used.value, seconds)
        return None if status else result

    def write(self, plain, residue):
        """(stream, seconds)"""
        stream = Bytes(limit=1 << 31)
        begin = time.process_time()
        status = self.library.bench_deflate_write(plain, ctypes.c_size_t(len(plain)), residue, ctypes.c_size_t(len(residue)),
                                                ctypes.byref(stream))
        seconds = time.process_time() - begin
        made = self.take(stream)
        return (None if status else made, seconds)

    def take(self, bytes_):
        taken = ctypes.string_at(bytes_.bytes, bytes_.size) if bytes_.size else b""
        self.library.bench_bytes_free(ctypes.byref(bytes_))
        return taken


def png_stream(data):
    at, parts, software = 8, [], ""
    while at + 12 <= len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IDAT":
            parts.append(body)
        if kind == b"tEXt" and body.startswith(b"Software\0"):
            software = body[9:].decode("latin1").split()[0][:16] if body[9:].split() else ""
        at += 12 + size
    stream = b"".join(parts)
    head = "%02x" % stream[1] if len(stream) > 1 else ""
    return "png %s %s" % (head, software), stream[2:]


def gzip_stream(data):
    flags, at = data[3], 10
    if flags & 4:
        at += 2 + struct.unpack("<H", data[at:at + 2])[0]
    for flag in (8, 16):
        if flags & flag:
            at = data.index(b"\0", at) + 1
    if flags & 2:
        at += 2
    return "gzip xfl %d" % data[8], data[at:]


def streams(paths):
    for path in paths:
        if os.path.isdir(path):
            yield from streams(sorted(os.path.join(path, name) for name in os.listdir(path)))
        elif os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                data = file.read(1 << 28)
            try:
                if data[:8] == b"\x89PNG\r\n\x1a\n":
                    group, stream = png_stream(data)
                elif data[:3] == b"\x1f\x8b\x08":
                    group, stream = gzip_stream(data)
                else:
                    continue
            except (ValueError, IndexError, struct.error):
                continue
            yield path, group, stream


def made_streams(paths):
    """Each file's bytes through python's zlib at all parameters."""
    for path in paths:
        with open(path, "rb") as file:
            data = file.read()
        for level in range(10):
            for memory in range(1, 10):
                for strategy in range(5):
                    for window in ((15, 12, 9) if memory in (1, 8, 9) else (15,)):
                        made = zlib.compressobj(level, 8, -window, memory, strategy)
                        yield (path, "zlib level %d" % level, made.compress(data) + made.flush())


def zlib_repeats(plain, stream):
    for level in range(10):
        for memory in (8, 9, 7, 6):
            for strategy in range(5):
                made = zlib.compressobj(level, 8, -15, memory, strategy)
                if made.compress(plain) + made.flush() == stream:
                    return True
    return False


def least_times(coder, plain, parameters, turns):
    """Seconds of zlib, of reading its stream, and of writing it."""
    times = [1e9] * 3
    for _ in range(turns):
        begin = time.process_time()
        made = zlib.compressobj(*parameters)
        stream = made.compress(plain) + made.flush()
        seconds = time.process_time() - begin
        read, residue, _, reading = coder.read(stream)
        again, writing = coder.write(read, residue)
        if read != plain or again != stream:
            print("OTHER BYTES", parameters)
        times = [min(pair) for pair in zip(times, (seconds, reading, writing))]
    return times


def beside_zlib(coder, size, turns, kind):
    rng = random.Random(1)
    plain = rng.randbytes(size) if kind == "random" else bytes(sum(rng.choices(range(16), k=4)) for _ in range(size))
    print(f"{machine.model()}; {size} bytes, {kind}, {turns} turns; over zlib's time: median, worst (memLevel, window, strategy)")
    for level in range(10):
        ratios = ([], [])
        for memory, window, strategy in itertools.product((1, 8, 9), (9, 12, 15), range(5)):
            by_zlib, *ours = least_times(coder, plain, (level, 8, -window, memory, strategy), turns)
            for list_, seconds in zip(ratios, ours):
                list_.append((seconds / by_zlib, (memory, window, strategy)))
        cells = []
        for what, list_ in zip(("read", "write"), ratios):
            worst, where = max(list_)
            over = sum(ratio > 1.2 for ratio, _ in list_)
            cells.append(f"{what} {sorted(list_)[len(list_) // 2][0]:.2f}, {worst:.2f} {where}, {over} of {len(list_)} above 1.2")
        print(f"level {level}: " + "; ".join(cells), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--noise", type=int, default=0, help="bytes")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--kind", choices=("random", "bell"), default="random")
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--repeat", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--limit", type=int, default=1 << 30, help="streams")
    parser.add_argument("--most", type=int, default=1 << 26, help="bytes of a stream")
    options = parser.parse_args()
    coder = Coder(options.build)
    if options.noise:
        beside_zlib(coder, options.noise, options.turns, options.kind)
        return
    groups = collections.defaultdict(lambda: [0] * 9)
    found = made_streams(options.paths) if options.made else streams(options.paths)
    for number, (path, group, stream) in enumerate(found):
        if number >= options.limit:
            break
        if len(stream) > options.most:
            continue
        sums = groups[group]
        sums[0] += 1
        result = coder.read(stream)
        if result is None:
            sums[1] += 1
            print("refused", path)
            continue
        plain, residue, used, seconds = result
        check = zlib.decompressobj(-15)
        if check.decompress(stream) + check.flush() != plain or len(stream) - len(check.unused_data) != used:
            print("OTHER PLAIN BYTES", path)
        made, back = coder.write(plain, residue)
        if made != stream[:used]:
            sums[2] += 1
            print("OTHER BYTES", path, group, len(stream), made is None)
        small = len(residue) <= 16
        repeated = options.repeat and zlib_repeats(plain, stream[:used])
        for index, value in ((3, used), (4, len(residue)), (5, len(plain)), (6, seconds), (7, back), (8, small)):
            sums[index] += value
        if options.repeat:
            sums.append(0) if len(sums) == 9 else None
            sums[9] += repeated
            if repeated and not small:
                print("zlib repeats it, the model does not:", path, len(residue))
        if options.verbose:
            print(path, group, used, len(residue), residue[:2].hex(), "%.3f %.3f" % (seconds, back), repeated)
    total = [sum(column) for column in zip(*groups.values())]
    print("%-28s %6s %7s %5s %6s %12s %10s %8s %6s %6s %6s" % ("group", "files", "refused", "other", "as one", "stream",
                                                             "residue", "share", "MB/s", "back", "zlib"))
    for group, sums in sorted(groups.items(), key=lambda item: -item[1][3]) + [("all", total)]:
        print("%-28s %6d %7d %5d %6d %12d %10d %7.3f%% %6.1f %6.1f %6s" % (
            group, sums[0], sums[1], sums[2], sums[8], sums[3], sums[4], 100 * sums[4] / max(sums[3], 1),
            sums[5] / 1e6 / max(sums[6], 1e-6), sums[5] / 1e6 / max(sums[7], 1e-6), sums[9] if len(sums) > 9 else "-"))


main()
