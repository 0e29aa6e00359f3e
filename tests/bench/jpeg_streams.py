#!/usr/bin/env python3
"""Lossy JPEG streams, packed (io/nodes/jpeg/jpeg.h), beside libjxl's lossless transcoding in the same run.

usage: jpeg_streams.py BUILD [FOLDER...]

FOLDER: where JPEG and DICOM files are looked for; without one, ../shared/data. From Kodak's images, if they are among
them, cjpeg (libjpeg-turbo-progs) makes further sets. Needs pydicom and imagecodecs (pip), a C compiler and
BUILD/libtessera.a. Prints a line a set: streams, exact ones, refused ones, bytes, the ratio, libjxl's ratio over the streams
that it takes and ours over the same, MB of streams a second of CPU time each way, one thread.
"""
import os
import subprocess
import sys
import tempfile
import time

import machine

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "io/nodes/jpeg/jpeg.h"
#include "tests/unit/io/streams/by_node.h"
static double now(void) { return (double)clock() / CLOCKS_PER_SEC; }
int main(int count, char **name)
{
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(name[i], "rb");
        fseek(file, 0, SEEK_END);
        const size_t size = (size_t)ftell(file);
        uint8_t *bytes = malloc(size + 1);
        rewind(file);
        if (fread(bytes, 1, size, file) != size) return 1;
        fclose(file);
        struct tsr_error error = {.status = TSR_OK};
        struct tsr_bytes packed = {.limit = (size_t)1 << 30}, again = {.limit = size};
        const double start = now();
        const int refused = split_by(&tsr_node_jpeg, bytes, size, &packed, NULL, &error) != TSR_OK;
        const double middle = now();
        const struct tsr_node_parts parts = {.plain = packed.bytes, .plain_size = packed.size};
        const int bad = refused || join_by(&tsr_node_jpeg, parts, 0, &again, &error) != TSR_OK;
        const double end = now();
        const int exact = !bad && again.size == size && memcmp(again.bytes, bytes, size) == 0;
        printf("%zu %zu %d %d %.6f %.6f\t%s\n", size, packed.size, refused, exact, middle - start, end - middle,
               exact ? "" : error.text);
        free(bytes);
        tsr_bytes_free(&packed);
        tsr_bytes_free(&again);
    }
    return 0;
}
"""


def link(build, root, folder):
    source = os.path.join(folder, "pack.c")
    with open(source, "w", encoding="ascii") as file:
        file.write(PROGRAM)
    program = os.path.join(folder, "pack")
    units = [os.path.join(root, "io/nodes/jpeg", n) for n in os.listdir(os.path.join(root, "io/nodes/jpeg"))]
    subprocess.run(["cc", "-std=c11", "-O3", "-D_POSIX_C_SOURCE=200809L", "-I" + root, "-o", program, source]
                   + sorted(u for u in units if u.endswith(".c"))
                   + [os.path.join(build, "libtessera.a"), "-lzstd", "-lpng", "-lz", "-lxxhash", "-lstdc++", "-ldl", "-lm", "-lpthread"],
                   check=True)
    return program


def dicom_streams(path):
    import pydicom
    from pydicom.encaps import generate_frames
    try:
        data = pydicom.dcmread(path, force=True)
        if data.file_meta.TransferSyntaxUID not in ["1.2.840.10008.1.2.4.%d" % n for n in (50, 51, 53, 55)]:
            return []
        return list(generate_frames(data.PixelData, number_of_frames=int(data.get("NumberOfFrames", 1) or 1)))
    except Exception:  # not DICOM, or not with frames
        return []


def kodak_sets(images, folder, sets):
    from PIL import Image
    kinds = {"75 4:2:0": ["-quality", "75"], "85 progressive": ["-quality", "85", "-progressive"],
             "90 4:4:4 optimised": ["-quality", "90", "-sample", "1x1", "-optimize"],
             "80 4:2:2 restart": ["-quality", "80", "-sample", "2x1", "-restart", "1"],
             "95 gray": ["-quality", "95", "-grayscale"]}
    for image in images:
        ppm = os.path.join(folder, "image.ppm")
        Image.open(image).convert("RGB").save(ppm)
        for kind, options in kinds.items():
            sets.setdefault("Kodak " + kind, []).append(
                subprocess.run(["cjpeg"] + options + [ppm], check=True, capture_output=True).stdout)


def collect(folders, folder):
    sets, seen, kodak = {}, set(), []
    for top in folders:
        for where, _, names in os.walk(top):
            for name in sorted(names):
                path = os.path.join(where, name)
                if name.startswith("kodim") and name.endswith(".png"):
                    kodak.append(path)
                found, kind = [], "files"
                if name.lower().endswith((".jpg", ".jpeg")):
                    with open(path, "rb") as file:
                        found = [file.read()]
                elif not name.lower().endswith((".png", ".y4m", ".yuv", ".md", ".txt")):
                    found, kind = dicom_streams(path), "DICOM"
                for stream in found:
                    if stream not in seen:
                        seen.add(stream)
                        sets.setdefault(kind, []).append(stream)
    kodak_sets(sorted(kodak), folder, sets)
    return sets


def measure(program, streams, folder):
    import imagecodecs
    names = []
    for i, stream in enumerate(streams):
        names.append(os.path.join(folder, "%d.jpg" % i))
        with open(names[-1], "wb") as file:
            file.write(stream)
    lines = subprocess.run([program] + names, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [line.split("\t")[0].split() for line in lines]
    for line in lines:
        if line.split("\t")[1]:
            print("    its stream", line.split("\t")[1])
    taken = [r for r in rows if r[2] == "0"]
    size, packed = sum(int(r[0]) for r in taken), sum(int(r[1]) for r in taken)
    pack, unpack = sum(float(r[4]) for r in taken), sum(float(r[5]) for r in taken)
    theirs, both, ours, there, back = 0, 0, 0, 0.0, 0.0
    for stream, row in zip(streams, rows):
        try:
            start = time.process_time()
            coded = imagecodecs.jpegxl_encode_jpeg(stream, numthreads=1)
            middle = time.process_time()
            same = imagecodecs.jpegxl_decode_jpeg(coded, numthreads=1) == stream
            end = time.process_time()
        except Exception:
            continue
        if same and row[2] == "0":
            both, theirs, ours = both + len(stream), theirs + len(coded), ours + int(row[1])
            there, back = there + middle - start, back + end - middle
    return {"streams": len(rows), "exact": sum(int(r[3]) for r in rows), "refused": len(rows) - len(taken),
            "bytes": size, "ratio": packed / size, "libjxl": theirs / both, "same": ours / both,
            "pack": size / 1e6 / pack, "unpack": size / 1e6 / unpack, "there": both / 1e6 / there, "back": both / 1e6 / back}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
    folders = sys.argv[2:] or [os.path.join(root, "../shared/data")]
    print(machine.model())
    print("| set | streams | exact | refused | bytes | ratio | libjxl | ours on those that libjxl takes | pack, unpack MB/s | libjxl MB/s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        program = link(sys.argv[1], root, folder)
        for kind, streams in collect(folders, folder).items():
            r = measure(program, streams, folder)
            print("| %s | %d | %d | %d | %d | %.4f | %.4f | %.4f | %.1f, %.1f | %.1f, %.1f |" % (
                kind, r["streams"], r["exact"], r["refused"], r["bytes"], r["ratio"], r["libjxl"], r["same"],
                r["pack"], r["unpack"], r["there"], r["back"]), flush=True)


if __name__ == "__main__":
    main()
