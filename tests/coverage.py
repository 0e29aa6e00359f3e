#!/usr/bin/env python3
"""Coverage of lines by folder, from what gcc's --coverage left: coverage.py BUILD [--list FILE] [--least PERCENT FOLDER...]

A line of a header is run if any object that holds it ran it. --list writes the lines that did not run, a file a line, and the
files that no object holds are not counted. Status 1: one of the FOLDERs is below PERCENT."""
import argparse
import collections
import json
import os
import subprocess
import sys

FOLDERS = ("transform", "entropy", "kernels", "io", "app")


def counts_of(build, root):
    """{file: {line: times}} of the sources below the root"""
    data = [os.path.join(folder, name) for folder, _, names in os.walk(build) for name in names if name.endswith(".gcno")]
    counts = collections.defaultdict(lambda: collections.defaultdict(int))
    for start in range(0, len(data), 50):
        done = subprocess.run(["gcov", "--json-format", "--stdout", *data[start:start + 50]], check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for line in done.stdout.splitlines():
            said = json.loads(line)
            for file in said["files"]:
                path = os.path.relpath(os.path.join(said["current_working_directory"], file["file"]), root)
                if path.split(os.sep)[0] in FOLDERS:
                    for one in file["lines"]:
                        counts[path][one["line_number"]] += one["count"]
    return counts


def spans(lines):
    """Line numbers as "3, 7-9" """
    parts = []
    for line in sorted(lines):
        if parts and parts[-1][1] == line - 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--list")
    parser.add_argument("--least", type=float, default=0)
    a = parser.parse_intermixed_args()
    counts = counts_of(os.path.abspath(a.build), os.getcwd())
    low = False
    for folder in FOLDERS:
        files = [lines for path, lines in counts.items() if path.split(os.sep)[0] == folder]
        total, run = sum(map(len, files)), sum(count > 0 for lines in files for count in lines.values())
        percent = 100 * run / total if total else 0
        is_low = folder in a.folders and percent < a.least
        low = low or is_low
        print(f"{folder}/: {percent:.1f} % of {total} lines" + (f": FAILS: below {a.least:g} %" if is_low else ""))
    if a.list:
        with open(a.list, "w", encoding="utf-8") as file:
            for path, lines in sorted(counts.items()):
                missed = [number for number, count in lines.items() if count == 0]
                if missed:
                    file.write(f"{path}: {len(missed)} of {len(lines)}: {spans(missed)}\n")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
