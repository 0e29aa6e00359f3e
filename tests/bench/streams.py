#!/usr/bin/env python3
"""Streams inside DICOM files as samples and residue: how many come back, what the residues cost, how fast.

streams.py BUILD FOLDER... [--repeats 3] [--frames 8] [--check] [--list]

Walks through FOLDERs for encapsulated DICOM files, and gives each frame's stream to stream_probe (`ninja -C BUILD
stream_probe`). A line for each kind and folder: files, frames, streams that come back, refused ones with the reasons,
bytes of residues by bytes of streams (as they are, and all of a kind by one zstd -19), MB/s of samples by CPU time.
--check compares the samples with pydicom's (all its plugins). --list names what does not come back.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile

import pydicom
from pydicom.encaps import generate_frames

# Transfer syntaxes by kind of stream (io/FORMAT.md 4.5). Another kind needs a line here.
KINDS = {
    "1.2.840.10008.1.2.5": "rle",
    "1.2.840.10008.1.2.4.57": "jpeg-lossless",
    "1.2.840.10008.1.2.4.70": "jpeg-lossless",
    "1.2.840.10008.1.2.4.80": "jpeg-ls",
}


def walk(folder):
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            yield os.path.join(place, name)


def encapsulated(path):
    """The data set of a file whose streams have a kind, or None."""
    try:
        head = pydicom.dcmread(path, stop_before_pixels=True)
        if str(head.file_meta.TransferSyntaxUID) not in KINDS:
            return None
        data = pydicom.dcmread(path)
        return data if "PixelData" in data else None
    except Exception:
        return None


def streams_of(data, most):
    frames = int(data.get("NumberOfFrames", 1) or 1)
    for number, stream in enumerate(generate_frames(data.PixelData, number_of_frames=frames)):
        if number == most:
            return
        yield number, stream


def samples_of(data, number):
    """The frame as pydicom decodes it: bytes, components in turn; None if no plugin can."""
    try:
        from pydicom.pixels import pixel_array

        return pixel_array(data, index=number, raw=True).tobytes()
    except Exception:
        return None


def zstd_size(blob):
    try:
        return len(subprocess.run(["zstd", "-19", "-c"], input=blob, capture_output=True, check=True).stdout)
    except (OSError, subprocess.CalledProcessError):
        return None


class Total:
    def __init__(self):
        self.files = self.frames = self.exact = self.stream = self.residue = self.raster = 0
        self.read = self.write = 0.0
        self.same = self.compared = 0
        self.why = collections.Counter()
        self.residues = b""


def gather(folder, most, repeats, temporary):
    """A job for each stream: (kind, path, number, data, line for stream_probe)."""
    jobs = []
    for path in walk(folder):
        data = encapsulated(path)
        if data is None:
            continue
        kind = KINDS[str(data.file_meta.TransferSyntaxUID)]
        try:
            for number, stream in streams_of(data, most):
                name = os.path.join(temporary, f"{len(jobs)}.stream")
                with open(name, "wb") as file:
                    file.write(stream)
                line = (f"{kind} {data.Columns} {data.Rows} {data.SamplesPerPixel} {data.BitsAllocated} 0 {repeats} {name}")
                jobs.append((kind, path, number, data, line))
        except Exception as error:
            print(f"{path}: {error}", file=sys.stderr)
    return jobs


def measure(options, folder, totals):
    with tempfile.TemporaryDirectory() as temporary:
        jobs = gather(folder, options.frames, options.repeats, temporary)
        probe = os.path.join(options.build, "bin", "stream_probe")
        known = set(subprocess.run([probe, "--kinds"], capture_output=True, text=True, check=True).stdout.split())
        jobs = [job for job in jobs if job[0] in known]
        answers = subprocess.run([probe, temporary], input="".join(job[4] + "\n" for job in jobs), capture_output=True,
                                 text=True, check=True).stdout.splitlines()
        seen = set()
        for at, ((kind, path, number, data, _), answer) in enumerate(zip(jobs, answers, strict=True)):
            total = totals[kind]
            total.files += (path, kind) not in seen
            seen.add((path, kind))
            total.frames += 1
            what, *rest = answer.split()
            if what == "refused":
                total.why[" ".join(rest)] += 1
            elif what == "different":
                total.why["another stream came back"] += 1
            if what != "exact":
                if options.list:
                    print(f"  {path} frame {number}: {answer}")
                continue
            total.exact += 1
            total.stream += int(rest[0])
            total.residue += int(rest[1])
            total.raster += int(rest[2])
            total.read += float(rest[3])
            total.write += float(rest[4])
            with open(os.path.join(temporary, f"{at}.residue"), "rb") as file:
                total.residues += file.read()
            if options.check:
                compare(total, os.path.join(temporary, f"{at}.raster"), samples_of(data, number), options, path)


def compare(total, raster, samples, options, path):
    if samples is None:
        return
    with open(raster, "rb") as file:
        ours = file.read()
    total.compared += 1
    total.same += ours == samples
    if options.list and ours != samples:
        print(f"  {path}: other samples than pydicom's")


def report(kind, total, check):
    if total.frames == 0:
        return
    line = f"{kind}: {total.files} files, {total.frames} frames, {total.exact} exact"
    if total.exact:
        zstd = zstd_size(total.residues)
        line += (f"; residue {100 * total.residue / total.stream:.3f} % of the stream"
                 + (f" ({100 * zstd / total.stream:.3f} % by zstd -19)" if zstd else "")
                 + f"; read {total.raster / total.read / 1e6:.0f} MB/s, write {total.raster / total.write / 1e6:.0f} MB/s")
    if check:
        line += f"; samples as pydicom's {total.same} of {total.compared}"
    print(line)
    for why, count in total.why.most_common():
        print(f"  {count} refused: {why}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--frames", type=int, default=8, help="of a file")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    for folder in options.folders:
        totals = collections.defaultdict(Total)
        print(folder)
        measure(options, folder, totals)
        for kind in sorted(totals):
            report(kind, totals[kind], options.check)


if __name__ == "__main__":
    main()
