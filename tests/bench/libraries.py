#!/usr/bin/env python3
"""Two builds of the frame coder by turns: ns a sample of encoding and decoding, path P without loss.

usage: libraries.py OLD NEW FRAMES [--efforts 1,2,3,5,7,9] [--turns 5] [--colour] [--other-bytes]

OLD, NEW  two libtessera_bench.so (target bench_library); TESSERA_ISA limits the instruction sets of both
FRAMES    a folder of PGM files of 16 bits, as research/raw_frames.py writes them; with --colour, of PPM files of 8 bits

One thread, CPU time, samples in memory to payload and back. Each frame's least time of all turns counts, so that other
processes disturb little. Ends with an error if a frame does not come back, or, without --other-bytes, if the sizes
differ.
"""

import argparse
import array
import ctypes
import glob
import sys

HUFFMAN, RANS = 1, 3  # enum tsr_coder
RANS_EFFORT = 7       # efforts from this one on use rANS


def load(path):
    library = ctypes.CDLL(path)
    library.bench_engine.restype = ctypes.c_void_p
    library.bench_bound.restype = ctypes.c_size_t
    library.bench_encode.restype = library.bench_decode.restype = ctypes.c_double
    return library, ctypes.c_void_p(library.bench_engine(1))


def read_frames(folder, in_colour):
    frames = []
    for path in sorted(glob.glob(folder + ("/*.ppm" if in_colour else "/*.pgm"))):
        with open(path, "rb") as file:
            data = file.read()
        columns, rows, top = map(int, data.split(None, 4)[1:4])
        if in_colour != (top < 256):
            continue
        size = columns * rows * (3 if in_colour else 2)
        samples = array.array("B" if in_colour else "H", data[len(data) - size:])
        if sys.byteorder == "little":
            samples.byteswap()
        frames.append((columns, rows, 3 if in_colour else 1, top.bit_length(), samples))
    return frames


def measure(libraries, effort, frame, turns, other_bytes):
    """The least seconds: by library, of encoding and of decoding."""
    *image, samples = frame
    size = samples.itemsize * len(samples)
    raster = (ctypes.c_uint8 * size).from_buffer(samples)
    image = [ctypes.c_uint32(v) for v in image]
    coding = [ctypes.c_uint32(v) for v in (0, RANS if effort >= RANS_EFFORT else HUFFMAN, effort)]
    bound = libraries[0][0].bench_bound(*image)
    payload, back = (ctypes.c_uint8 * bound)(), (ctypes.c_uint8 * size)()
    least, sizes = [[1e9, 1e9], [1e9, 1e9]], [0, 0]
    for turn in range(turns):
        for which in (0, 1) if turn % 2 else (1, 0):
            library, engine = libraries[which]
            coded = ctypes.c_size_t(bound)
            times = (library.bench_encode(engine, *image, *coding, raster, payload, ctypes.byref(coded)),
                     library.bench_decode(engine, *image, payload, coded, back))
            if min(times) < 0 or bytes(back) != bytes(raster):
                raise RuntimeError("a frame does not come back")
            sizes[which] = coded.value
            least[which] = [min(a, b) for a, b in zip(least[which], times)]
    if sizes[0] != sizes[1] and not other_bytes:
        raise RuntimeError("the sizes differ: %d, %d" % tuple(sizes))
    return least


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("frames")
    parser.add_argument("--efforts", default="1,2,3,5,7,9")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--colour", action="store_true")
    parser.add_argument("--other-bytes", action="store_true")
    options = parser.parse_args()
    libraries, frames = [load(options.old), load(options.new)], read_frames(options.frames, options.colour)
    samples = sum(len(frame[-1]) for frame in frames)
    print("| %d frames | encode, ns a sample | gain | decode | gain |\n|---|---|---|---|---|" % len(frames))
    for effort in map(int, options.efforts.split(",")):
        sums = [[0.0, 0.0], [0.0, 0.0]]
        for frame in frames:
            for which, times in enumerate(measure(libraries, effort, frame, options.turns, options.other_bytes)):
                for side in (0, 1):
                    sums[which][side] += times[side] / samples * 1e9
        cells = ["%.2f → %.2f | %.2f" % (sums[0][s], sums[1][s], sums[0][s] / sums[1][s]) for s in (0, 1)]
        print("| -%d | %s |" % (effort, " | ".join(cells)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
