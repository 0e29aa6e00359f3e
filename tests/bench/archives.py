#!/usr/bin/env python3
"""What archives hold, by stream class: share exact, sizes, speed, beside zstd -19 and libjxl in the same run.

usage: archives.py BUILD [NAME=]FOLDER... [--pydicom] [--png FOLDER] [--no-rivals] [--reasons FILE] [--keep FOLDER]

Each file of the folders goes to one class by what it is (archive_classes.py), each content once. Then, for each class, one
`tessera compress -T 1` (which verifies), one `tessera info`, one `tessera decompress -T 1`, and every restored file is
compared with its original, byte by byte. zstd -19 gets the same files; libjxl gets the JPEG streams in them (lossless
transcoding) and the pixels of the PNGs (without loss, effort 7, another PNG comes back). All on one thread, MB/s of the
original's bytes by CPU time. --pydicom adds the test files of the installed packages pydicom and pydicom-data, --png
png_set.py's set, which it fetches into FOLDER if it is not there. Prints the tables of results/archives.md; --reasons writes a line for each
file that is stored or that grows. Needs numpy, imagecodecs, zstandard, pydicom, pydicom-data (pip)."""
import argparse
import collections
import filecmp
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import archive_classes
import archive_rivals
import machine

GROWTH = 64  # bytes that a .tsr may be over its original


def children_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command):
    """(lines of stdout, CPU seconds, exit status)"""
    before = children_seconds()
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    return done.stdout.splitlines(), children_seconds() - before, done.returncode


def pydicom_folders():
    folders = []
    for package, part in (("pydicom", "data/test_files"), ("data_store", "data")):
        found = importlib.util.find_spec(package)
        if found:
            folders.append(os.path.join(os.path.dirname(found.origin), part))
    return folders


class Row:
    """The figures of one class."""

    def __init__(self):
        self.files = self.exact = self.grown = self.bytes_in = self.bytes_out = 0
        self.compress_s = self.restore_s = 0.0
        self.coded = collections.Counter()
        self.rivals = {}
        self.notes = []  # (reason, original, .tsr, name)

    def add(self, other):
        for name in ("files", "exact", "grown", "bytes_in", "bytes_out", "compress_s", "restore_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.coded.update(other.coded)
        self.notes += other.notes


def stage(paths, folder):
    """Copies under numbers, so that names cannot meet; .tsr files stand at the same number."""
    os.makedirs(folder)
    copies = []
    for number, path in enumerate(paths):
        copies.append(os.path.join(folder, "%05d%s" % (number, os.path.splitext(path)[1])))
        shutil.copyfile(path, copies[-1])
    return copies


def measure(program, paths, work):
    row = Row()
    originals, packed, restored = (os.path.join(work, name) for name in ("originals", "packed", "restored"))
    copies = stage(paths, originals)
    lines, row.compress_s, _ = run([program, "compress", "-r", "-T", "1", "--json", "-q", originals, "-o", packed])
    told = {item["file"]: item for item in map(json.loads, lines) if "file" in item}
    _, row.restore_s, _ = run([program, "decompress", "-r", "-T", "1", "-q", packed, "-o", restored])
    lines, _, _ = run([program, "info", "-r", "--json", packed])
    kinds = {item["file"]: item.get("restore") for item in map(json.loads, lines) if "file" in item}
    found = {os.path.basename(name): os.path.join(where, name) for top in (packed, restored)
             for where, _, names in os.walk(top) for name in names}
    for path, copy in zip(paths, copies):
        base, item = os.path.basename(copy), told.get(copy, {})
        tsr, back = found.get(base + ".tsr"), found.get(base)
        size, out = os.path.getsize(copy), os.path.getsize(tsr) if tsr else 0
        exact = bool(tsr and back) and filecmp.cmp(copy, back, shallow=False)
        way = kinds.get(tsr) or "failed"
        row.files += 1
        row.exact += exact
        row.bytes_in, row.bytes_out = row.bytes_in + size, row.bytes_out + out
        row.coded["failed" if not tsr else "stored" if way == "stored" else "coded"] += 1
        row.grown += out > size + GROWTH
        if way in ("stored", "failed") or out > size + GROWTH or not exact:
            why = item.get("reason") or item.get("error") or ("grows" if out > size + GROWTH else way)
            row.notes.append((("" if exact else "NOT EXACT ") + str(why), size, out, path))
    return row


def share(part, whole):
    return "%.3f" % (part / whole) if whole else "-"


def rate(size, seconds):
    return "%.1f" % (size / 1e6 / seconds) if seconds > 0.02 else "-"


def line(name, row):
    cells = [name, row.files, row.exact, row.coded["coded"], row.bytes_in, row.bytes_out,
             share(row.bytes_out, row.bytes_in), rate(row.bytes_in, row.compress_s), rate(row.bytes_in, row.restore_s)]
    for rival in archive_rivals.NAMES:
        made = row.rivals.get(rival)
        cells.append(share(made.bytes_out, made.bytes_in) if made and made.taken else "-")
        cells.append("%s, %s" % (rate(made.work, made.compress_s), rate(made.work, made.restore_s))
                     if made and made.taken else "-")
    return "| " + " | ".join(map(str, cells)) + " |"


HEAD = ["stream", "files", "exact", "coded", "bytes", ".tsr bytes", "ratio", "MB/s in", "out", "zstd -19", "MB/s", "libjxl",
        "MB/s"]


def report_set(name, folders, options, work, reasons):
    classes = archive_classes.sort_files(folders)
    total = Row()
    print("\n### %s\n\n| %s |\n|%s" % (name, " | ".join(HEAD), "---|" * len(HEAD)))
    for number, stream in enumerate(sorted(classes, key=archive_classes.order)):
        place = os.path.join(work, "%s-%d" % ("".join(filter(str.isalnum, name)), number))
        row = measure(os.path.join(options.build, "bin", "tessera"), classes[stream], place)
        if not options.no_rivals:
            row.rivals = archive_rivals.measure(stream, classes[stream])
        if not options.keep:
            shutil.rmtree(place)
        total.add(row)
        print(line(stream, row), flush=True)
    print(line("all", total))
    print("\n%d of %d files exact; %d coded, %d stored, %d failed; %d .tsr over the original + %d bytes." % (
        total.exact, total.files, total.coded["coded"], total.coded["stored"],
        total.coded["failed"], total.grown, GROWTH))
    for reason, size, out, path in total.notes if reasons else ():
        reasons.write("%s\t%s\t%d\t%d\t%s\n" % (name, reason, size, out, path))
    archive_classes.print_reasons("stored or grown, why", (note[:3] for note in total.notes))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("sets", nargs="*", metavar="[NAME=]FOLDER")
    parser.add_argument("--pydicom", action="store_true", help="also the test files of pydicom and pydicom-data")
    parser.add_argument("--png", metavar="FOLDER", help="also png_set.py's set in FOLDER, which is fetched if not there")
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--reasons", metavar="FILE", help="a line for each stored or grown file")
    parser.add_argument("--keep", metavar="FOLDER", help="a new folder that keeps all files made")
    options = parser.parse_args()
    sets = [(item.split("=", 1) if "=" in item else (os.path.basename(os.path.normpath(item)), item))
            for item in options.sets]
    sets = [(name, [folder]) for name, folder in sets]
    if options.pydicom:
        sets.append(("pydicom and pydicom-data", pydicom_folders()))
    if options.png:
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "png_set.py")
        if not os.path.isdir(os.path.join(options.png, "set")):
            subprocess.run([sys.executable, script, options.png], check=True)
        sets.append(("PNG set", [os.path.join(options.png, "set")]))
    if options.keep:
        os.makedirs(options.keep)
    print("%s, %s" % (machine.model(), time.strftime("%Y-%m-%d")))
    reasons = open(options.reasons, "w", encoding="utf-8", errors="replace") if options.reasons else None
    with tempfile.TemporaryDirectory() as temporary:
        for name, folders in sets:
            report_set(name, folders, options, options.keep or temporary, reasons)
    if reasons:
        reasons.close()


if __name__ == "__main__":
    main()
