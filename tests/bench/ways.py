#!/usr/bin/env python3
"""How each file of a folder is restored, and which grow: ways.py BUILD FOLDER... [--files FILE] [--threads N]

Every file counts, also one whose content stands there twice; links and empty folders do not. One `tessera compress`, one
`tessera info`, one `tessera decompress`, all of the whole folder; then each file that came back is compared with its
original. Prints, for each kind of file: files, exact, by way of restoring, bytes before and after, .tsr files that are over
their original plus 64 bytes; then the reasons of what is stored. --files writes a line for each file. Exit status 1 if a
file does not come back as it was."""
import argparse
import filecmp
import json
import os
import subprocess
import sys
import tempfile
import time

import archive_classes
import machine

GROWTH = 64


def lines(command):
    """The JSON lines that name a file, by that name. Their exit status tells of files that are not images, too."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    return {item["file"]: item for item in map(json.loads, done.stdout.splitlines()) if "file" in item}


def files_of(folder):
    for where, inner, names in os.walk(folder):
        inner.sort()
        for name in sorted(names):
            path = os.path.join(where, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield os.path.relpath(path, folder)


def measure(program, folder, threads, work):
    """(kind, way, size, .tsr size, exact, reason, path) of each file"""
    packed, restored = os.path.join(work, "packed"), os.path.join(work, "restored")
    common = ["-r", "-q", "-T", str(threads)]
    told = lines([program, "compress", "--json", *common, folder, "-o", packed])
    subprocess.run([program, "decompress", *common, packed, "-o", restored], capture_output=True)
    infos = lines([program, "info", "-r", "--json", packed])
    for path in files_of(folder):
        original, tsr, back = (os.path.join(top, path) for top in (folder, packed, restored))
        tsr += ".tsr"
        item, info = told.get(original, {}), infos.get(tsr, {})
        exact = os.path.exists(back) and filecmp.cmp(original, back, shallow=False)
        yield (info.get("kind", "?"), info.get("restore", "failed"), os.path.getsize(original),
               os.path.getsize(tsr) if os.path.exists(tsr) else 0, exact,
               info.get("reason") or item.get("reason") or item.get("error") or "", path)


def report(folder, rows):
    ways = sorted({row[1] for row in rows})
    print("\n### %s\n\n| kind | files | exact | %s | bytes | .tsr bytes | ratio | over +%d |" % (folder, " | ".join(ways), GROWTH))
    print("|%s" % ("---|" * (7 + len(ways))))
    for kind in sorted({row[0] for row in rows}) + ["all"]:
        some = [row for row in rows if kind in (row[0], "all")]
        before, after = sum(row[2] for row in some), sum(row[3] for row in some)
        cells = [kind, len(some), sum(row[4] for row in some)] + [sum(row[1] == way for row in some) for way in ways]
        cells += [before, after, "%.3f" % (after / before) if before else "-", sum(row[3] > row[2] + GROWTH for row in some)]
        print("| " + " | ".join(map(str, cells)) + " |")
    archive_classes.print_reasons(
        "stored, why", ((row[5], row[2], row[3]) for row in rows if row[1] in ("stored", "failed")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--files", metavar="FILE", help="a line for each file")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print("%s, %s" % (machine.model(), time.strftime("%Y-%m-%d")))
    listed = open(options.files, "w", encoding="utf-8", errors="replace") if options.files else None
    differ = 0
    for folder in options.folders:
        with tempfile.TemporaryDirectory() as work:
            program = os.path.join(options.build, "bin", "tessera")
            rows = list(measure(program, os.path.normpath(folder), options.threads, work))
        report(folder, rows)
        differ += sum(not row[4] for row in rows)
        for row in rows if listed else ():
            listed.write("\t".join(map(str, row)) + "\n")
    sys.exit(1 if differ else 0)


main()
