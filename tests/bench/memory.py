#!/usr/bin/env python3
"""Peak memory on a multi-frame DICOM of 600 frames and 315 MB.

usage: memory.py BUILD [--frames N]

Writes a CT-like series as one DICOM file, and prints peak resident memory (looked up every millisecond) and time of
compress, test, decompress and info. Then it overwrites the payload of the .tsr file with zeros: info must print the same, since
it does not read the payload. Needs numpy."""
import argparse
import os
import struct
import subprocess
import tempfile
import time

import numpy

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


def write_series(path, frames):
    """A disc with noise, 12 bits in 16, signed."""
    meta = element(2, 1, "OB", b"\0\1") + element(2, 2, "UI", "1.2.840.10008.5.1.4.1.1.2") + element(2, 3, "UI", "2.25.1")
    meta += element(2, 0x10, "UI", "1.2.840.10008.1.2.1")
    y, x = numpy.mgrid[0:SIDE, 0:SIDE]
    random = numpy.random.default_rng(1)
    with open(path, "wb") as file:
        file.write(bytes(128) + b"DICM" + element(2, 0, "UL", struct.pack("<I", len(meta))) + meta)
        file.write(element(8, 0x16, "UI", "1.2.840.10008.5.1.4.1.1.2") + element(8, 0x18, "UI", "2.25.1"))
        file.write(element(8, 0x60, "CS", "CT") + element(0x28, 2, "US", short(1)) + element(0x28, 4, "CS", "MONOCHROME2"))
        file.write(element(0x28, 8, "IS", str(frames)) + element(0x28, 0x10, "US", short(SIDE)))
        file.write(element(0x28, 0x11, "US", short(SIDE)) + element(0x28, 0x100, "US", short(16)))
        file.write(element(0x28, 0x101, "US", short(12)) + element(0x28, 0x102, "US", short(11)))
        file.write(element(0x28, 0x103, "US", short(1)))
        file.write(struct.pack("<HH2sHI", 0x7FE0, 0x10, b"OW", 0, 2 * SIDE * SIDE * frames))
        for frame in range(frames):
            distance = numpy.hypot(x - 256 + 20 * numpy.sin(frame / 50), y - 256)
            image = numpy.where(distance < 200, 40 + 300 * (distance % 60 < 20), -1000)
            image = image + random.normal(0, 12, image.shape) * (distance < 240)
            file.write(numpy.clip(image, -1024, 2047).astype("<i2").tobytes())


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--frames", type=int, default=600)
    options = parser.parse_args()
    program = os.path.join(options.build, "bin/tessera")
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
