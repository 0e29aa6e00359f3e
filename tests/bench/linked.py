#!/usr/bin/env python3
"""What linked frames save of volumes, and what they cost (decisions/072).

usage: linked.py TESSERA VOLUME... [--effort N] [--runs N]
       linked.py --build OUT NAME=FOLDER...

Volumes are files of several frames. For each, prints the bytes with --independent, those that links save, and what it takes to
compress, to decompress and to read one frame, by what that takes with --independent: user time of one thread, the least of
N runs in turns (3). --build makes OUT/NAME.nii of the DICOM slices in a folder: of the longest stretch without a gap, in the
order of their positions. It needs numpy and pydicom.
"""

import argparse
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile

FRAME = 5  # the sixth of the first group, if no frame is equal to another
TYPES = {"uint8": 2, "int16": 4, "uint16": 512}


def user_time(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


class Way:
    def __init__(self, program, volume, folder, name, options):
        self.program, self.volume, self.options = program, volume, options
        self.tsr, self.back, self.frame = (os.path.join(folder, name + end) for end in (".tsr", ".back", ".npy"))
        self.times = []

    def run(self):
        quiet = ("-q", "-f", "-T", "1")
        compress = user_time(
            self.program, "compress", *quiet, "--verify", "none", *self.options, self.volume, "-o", self.tsr
        )
        info = subprocess.run([self.program, "info", "--json", self.tsr], check=True, capture_output=True, text=True)
        self.info = json.loads(info.stdout.splitlines()[0])
        decompress = user_time(self.program, "decompress", *quiet, self.tsr, "-o", self.back)
        region = f"0,0,{self.info['columns']},{self.info['rows']}"
        frame = str(min(FRAME, self.info["frames"] - 1))
        one = user_time(
            self.program, "decompress", *quiet, "--frame", frame, "--region", region, self.tsr, "-o", self.frame
        )
        self.times.append((compress, decompress, one))

    def least(self):
        return [max(min(times), 1e-3) for times in zip(*self.times)]


def measure(program, volume, effort, runs):
    with tempfile.TemporaryDirectory() as folder:
        alone = Way(program, volume, folder, "alone", (f"-{effort}", "--independent"))
        linked = Way(program, volume, folder, "linked", (f"-{effort}",))
        for _ in range(runs):
            alone.run()
            linked.run()
        before, after = os.path.getsize(alone.tsr), os.path.getsize(linked.tsr)
        ratios = [b / a for a, b in zip(alone.least(), linked.least())]
        word = "linked" if linked.info.get("linked") else "not linked"
        print(
            f"| {os.path.basename(volume)} | {linked.info['frames']} | {before} | {after} | {100 * (after / before - 1):+.2f} % | "
            f"{ratios[0]:.2f} | {ratios[1]:.2f} | {ratios[2]:.2f} | {word} |",
            flush=True,
        )


def position(slice_):
    import numpy

    right, down = (numpy.array(slice_.ImageOrientationPatient[k : k + 3], float) for k in (0, 3))
    return float(numpy.dot(numpy.cross(right, down), numpy.array(slice_.ImagePositionPatient, float)))


def longest_stretch(places):
    gaps = [after - before for before, after in zip(places, places[1:])]
    step = min(gap for gap in gaps if gap > 1e-3)
    best, begin = (0, 0), 0
    for end in range(1, len(places) + 1):
        if end == len(places) or abs(gaps[end - 1] - step) > step / 4:
            best, begin = max(best, (end - begin, begin)), end
    return best[1], best[1] + best[0]


def build(out, name, folder):
    import pydicom

    slices = sorted((pydicom.dcmread(os.path.join(folder, file)) for file in os.listdir(folder)), key=position)
    begin, end = longest_stretch([position(slice_) for slice_ in slices])
    samples = [slice_.pixel_array for slice_ in slices[begin:end]]
    rows, columns = samples[0].shape
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, columns, rows, len(samples), 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, TYPES[samples[0].dtype.name], 8 * samples[0].dtype.itemsize)
    struct.pack_into("<8f", header, 76, *[1.0] * 8)
    struct.pack_into("<3f", header, 108, 352, 1, 0)
    header[344:348] = b"n+1\0"
    with open(os.path.join(out, name + ".nii"), "wb") as file:
        file.write(header + b"".join(sample.tobytes() for sample in samples))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", metavar="OUT")
    parser.add_argument("--effort", type=int, default=9)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("what", nargs="+")
    options = parser.parse_args()
    if options.build:
        for pair in options.what:
            build(options.build, *pair.split("=", 1))
        return
    program, *volumes = options.what
    print("| volume | frames | --independent | linked | bytes | compress | decompress | one frame | |")
    print("|---|---|---|---|---|---|---|---|---|")
    for volume in volumes:
        measure(program, volume, options.effort, options.runs)


if __name__ == "__main__":
    sys.exit(main())
