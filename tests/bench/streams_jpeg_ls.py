#!/usr/bin/env python3
"""Our JPEG-LS beside CharLS and libjpeg: streams_jpeg_ls.py BUILD [--cases N] [--frames FOLDER] [--speed-frames N]

1. jpeg_ls_agreement compares with CharLS in both directions.
2. Streams of parameters that CharLS does not have (any MAXVAL, any RESET, restart intervals, 2 components) are decoded
   by libjpeg of Thomas Richter (pip install pylibjpeg-libjpeg).
3. Speed beside Debian's CharLS by jpeg_ls_agreement, and beside that of imagecodecs (pip), on PGM and PPM frames. CPU
   time, one thread, MB of samples a second, geometric means of the ratios.

Build `ninja jpeg_ls_agreement` first."""
import argparse
import math
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import numpy


def read_pnm(path):
    data = Path(path).read_bytes()
    match = re.match(rb"P([56])\s+(\d+)\s+(\d+)\s+(\d+)\s", data)
    channels = 3 if match[1] == b"6" else 1
    columns, rows, maximum = (int(match[i]) for i in (2, 3, 4))
    samples = numpy.frombuffer(data, ">u2" if maximum > 255 else "u1", offset=match.end(), count=columns * rows * channels)
    samples = samples.astype("u2" if maximum > 255 else "u1")
    return samples.reshape((rows, columns, channels) if channels == 3 else (rows, columns))


def check_libjpeg(program, cases):
    try:
        import libjpeg
    except ImportError:
        print("libjpeg is not installed: not compared")
        return 0
    counts = {"agree": 0, "differ": 0, "refused": 0}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "--write", folder, str(cases), "1"], check=True)
        for i in range(cases):
            stream, raw = Path(folder, f"{i}.jls").read_bytes(), Path(folder, f"{i}.raw").read_bytes()
            try:
                samples = numpy.asarray(libjpeg.decode(stream))
            except (RuntimeError, NotImplementedError, ValueError) as error:
                counts["refused"] += 1
                print(f"{i}: {len(stream)} bytes: {str(error)[:90]}")
                continue
            same = samples.tobytes() == raw
            counts["agree" if same else "differ"] += 1
            if not same:
                print(f"{i}: differs: {stream[:60].hex()}")
    print("libjpeg:", ", ".join(f"{n} {what}" for what, n in counts.items()))
    return counts["differ"]


def best_time(call, repeats=5):
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def compare_speed(program, frames):
    import imagecodecs
    ratios = {}
    for frame in frames:
        line = subprocess.run([program, frame], check=True, capture_output=True, text=True).stdout
        debian_encode, encode, debian_decode, decode = map(float, re.findall(r"(?:encode|decode) (\S+) (\S+)", line)[0]
                                                           + re.findall(r"(?:encode|decode) (\S+) (\S+)", line)[1])
        samples = read_pnm(frame)
        stream = imagecodecs.jpegls_encode(samples)
        wheel_encode = samples.nbytes / 1e6 / best_time(lambda: imagecodecs.jpegls_encode(samples))
        wheel_decode = samples.nbytes / 1e6 / best_time(lambda: imagecodecs.jpegls_decode(stream))
        print(f"{os.path.basename(frame)}: encode {encode:.0f}, Debian {debian_encode:.0f}, imagecodecs {wheel_encode:.0f}; "
              f"decode {decode:.0f}, Debian {debian_decode:.0f}, imagecodecs {wheel_decode:.0f} MB/s")
        for name, ours, theirs in (("encode / Debian's CharLS", encode, debian_encode),
                                   ("encode / imagecodecs", encode, wheel_encode),
                                   ("decode / Debian's CharLS", decode, debian_decode),
                                   ("decode / imagecodecs", decode, wheel_decode)):
            ratios.setdefault(name, []).append(math.log(ours / theirs))
    for name, logs in ratios.items():
        print(f"{name}: {math.exp(sum(logs) / len(logs)):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--frames")
    parser.add_argument("--speed-frames", type=int, default=16)
    options = parser.parse_args()
    program = os.path.join(options.build, "bin", "jpeg_ls_agreement")
    failed = subprocess.run([program, str(options.cases)], check=False).returncode
    failed |= check_libjpeg(program, options.cases // 4) > 0
    if options.frames:
        frames = sorted(str(f) for f in Path(options.frames).iterdir() if f.suffix in (".pgm", ".ppm"))
        compare_speed(program, frames[::max(1, len(frames) // options.speed_frames)])
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
