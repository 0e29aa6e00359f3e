#!/usr/bin/env python3
"""Peak memory on a multi-frame DICOM of 600 frames and 315 MB, or on one large frame.

usage: memory.py BUILD [--frames N] [--side N] [--efforts 5,1]

Writes a CT-like series as one DICOM file, and prints peak resident memory (looked up every millisecond) and time of
compress, test, decompress and info. Then it overwrites the payload of the .tsr file with zeros: info must print the same, since
it does not read the payload. --side: one frame of N x N instead, as DICOM and as PGM (whose words are swapped), by one thread
at each effort, with the hash of what is written, by which two builds are compared. Needs numpy."""
import argparse
import hashlib
import os
import struct
import subprocess
import tempfile
import time

import numpy

import machine

SIDE = 512


def element(group, number, vr, value):
    if isinstance(value, str):
        value = value.encode() + (b" " if vr not in ("UI",) else b"\0") * (len(value) % 2)
    head = struct.pack("<HH", group, number) + vr.encode()
    if vr in ("OB", "OW"):
        return head + b"\0\0" + struct.pack("<I", len(value)) + value
    return head + struct.pack("<H", len(value)) + value


def short(value):
    return struct.pack("<H", value)


def write_series(path, frames, side=SIDE):
    """A disc with noise, 12 bits in 16, signed."""
    meta = element(2, 1, "OB", b"\0\1") + element(2, 2, "UI", "1.2.840.10008.5.1.4.1.1.2") + element(2, 3, "UI", "2.25.1")
    meta += element(2, 0x10, "UI", "1.2.840.10008.1.2.1")
    y, x = numpy.mgrid[0:side, 0:side]
    random = numpy.random.default_rng(1)
    with open(path, "wb") as file:
        file.write(bytes(128) + b"DICM" + element(2, 0, "UL", struct.pack("<I", len(meta))) + meta)
        file.write(element(8, 0x16, "UI", "1.2.840.10008.5.1.4.1.1.2") + element(8, 0x18, "UI", "2.25.1"))
        file.write(element(8, 0x60, "CS", "CT") + element(0x28, 2, "US", short(1)) + element(0x28, 4, "CS", "MONOCHROME2"))
        file.write(element(0x28, 8, "IS", str(frames)) + element(0x28, 0x10, "US", short(side)))
        file.write(element(0x28, 0x11, "US", short(side)) + element(0x28, 0x100, "US", short(16)))
        file.write(element(0x28, 0x101, "US", short(12)) + element(0x28, 0x102, "US", short(11)))
        file.write(element(0x28, 0x103, "US", short(1)))
        file.write(struct.pack("<HH2sHI", 0x7FE0, 0x10, b"OW", 0, 2 * side * side * frames))
        for frame in range(frames):
            distance = numpy.hypot(x - side // 2 + 20 * numpy.sin(frame / 50), y - side // 2) * SIDE / side
            image = numpy.where(distance < 200, 40 + 300 * (distance % 60 < 20), -1000)
            image = image + random.normal(0, 12, image.shape) * (distance < 240)
            file.write(numpy.clip(image, -1024, 2047).astype("<i2").tobytes())


def write_pgm(path, series, side):
    """The frame of a series of one as PGM: the samples are not signed there."""
    with open(series, "rb") as file:
        file.seek(-2 * side * side, os.SEEK_END)
        samples = numpy.frombuffer(file.read(), "<i2")
    with open(path, "wb") as file:
        file.write(b"P5\n%d %d\n4095\n" % (side, side) + (samples + 1024).astype(">u2").tobytes())


def run(what, *command):
    """Runs a command and prints its peak of memory. The kernel's figure would count this process's memory before the exec."""
    start = time.perf_counter()
    peak = 0
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            try:
                with open("/proc/%d/status" % process.pid, encoding="ascii") as status:
                    peak = max([peak] + [int(line.split()[1]) for line in status if line.startswith("VmHWM")])
            except ProcessLookupError:
                pass
            time.sleep(0.001)
        if process.returncode != 0:
            raise SystemExit("%s fails with status %d" % (what, process.returncode))
        print("%-12s %8.1f MiB  %7.2f s" % (what, peak / 1024, time.perf_counter() - start), flush=True)
        output.seek(0)
        return output.read()


def measure_frame(program, side, efforts):
    with tempfile.TemporaryDirectory() as folder:
        dicom, pgm, packed, back = (os.path.join(folder, name) for name in ("frame.dcm", "frame.pgm", "frame.tsr", "back"))
        write_series(dicom, 1, side)
        write_pgm(pgm, dicom, side)
        for frame in (dicom, pgm):
            for effort in efforts:
                print("%s, %d x %d, %d bytes, -%s" % (os.path.basename(frame), side, side, os.path.getsize(frame), effort))
                common = ("-q", "-f", "-T", "1", "--engine", "cpu")
                run("compress", program, "compress", *common, "-" + effort, frame, "-o", packed)
                run("test", program, "test", "-q", "-T", "1", "--engine", "cpu", packed)
                run("decompress", program, "decompress", *common, packed, "-o", back)
                with open(packed, "rb") as file:
                    data = file.read()
                print("%12d bytes, SHA-256 %s..." % (len(data), hashlib.sha256(data).hexdigest()[:16]))
                if subprocess.run(["cmp", frame, back]).returncode != 0:
                    raise SystemExit("the restored file differs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--frames", type=int, default=600)
    parser.add_argument("--side", type=int)
    parser.add_argument("--efforts", default="5,1")
    options = parser.parse_args()
    program = os.path.join(options.build, "bin/tessera")
    print(machine.model())
    if options.side:
        measure_frame(program, options.side, options.efforts.split(","))
        return
    with tempfile.TemporaryDirectory() as folder:
        series, packed, back = (os.path.join(folder, name) for name in ("series.dcm", "series.dcm.tsr", "back.dcm"))
        write_series(series, options.frames)
        print("%d frames, %d bytes" % (options.frames, os.path.getsize(series)))
        run("compress", program, "compress", "-q", series)
        run("test", program, "test", "-q", packed)
        run("decompress", program, "decompress", "-q", "-o", back, packed)
        if subprocess.run(["cmp", series, back]).returncode != 0:
            raise SystemExit("the restored file differs")
        said = run("info", program, "info", packed)
        size = os.path.getsize(packed)
        with open(packed, "r+b") as file:
            file.seek(size // 10)
            file.write(bytes(size * 8 // 10))
        if run("info, zeroed", program, "info", packed) != said:
            raise SystemExit("info says something else once the payload is gone")
        print("payload gone: info says the same")


if __name__ == "__main__":
    main()
