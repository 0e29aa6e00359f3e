#!/usr/bin/env python3
"""Which frames and groups are larger than their goal, as shares of JPEG XL effort 7: the page results/sizes.md.

usage: sizes.py BUILD FRAMES [--anchors TSV] [--efforts 5,9] [--only NAME,...] [--output PAGE]

BUILD   a build folder with bin/tessera and bin/tessera_testdata, whose drawn frames are added as "generated"
FRAMES  a folder of PGM and PPM files, as lossless.py takes it

Sizes are whole .tsr files, one frame each. JPEG XL's are those of --anchors (research/anchors_lossless.tsv), or what
`cjxl -d 0 -e 7` makes here. A group is all frames of a modality and a type; its share is the quotient of sums. Frames
stand in no other group but "drawn" and "clinical 16", which are made of others. Goals are those of issue 46."""
import argparse
import os
import subprocess
import sys
import tempfile

import lossless

DRAWN = ("dcm4che", "TestPattern", "SC-rgb", "mlut-18", "vlut-04")
CLINICAL = ("CR16", "CT16", "MG16", "MR16", "NM16", "PT16", "XA16")
GOALS = {  # at -5, at -9; others: 1.02, 1.00
    "photo-rgb": (1.00, 0.985), "drawn": (0.65, 0.65), "US8": (0.99, 0.99), "US-rgb": (0.99, 0.99),
    "clinical 16": (0.973, 0.953), "generated text": (0.75, 0.75), "generated squares": (0.75, 0.75),
}
DERIVED = (1.10, 1.10)  # frames of derived maps (eCT)


def goal_of(group, name=""):
    if "eCT" in name:
        return DERIVED
    return GOALS.get(group, (1.00, 1.00) if group.startswith("generated") else (1.02, 1.00))


def groups_of(path, is_generated):
    name, samples = os.path.basename(path), lossless.read_frame(path)[0]
    if is_generated:
        return ["generated " + name.split("_")[0]]
    groups = [lossless.groups_of(name, samples)[0]]
    if any(part in name for part in DRAWN):
        groups.append("drawn")
    if groups[0] in CLINICAL:
        groups.append("clinical 16")
    return groups


def sizes_of(program, effort, paths):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "compress", "-q", "-%d" % effort, "-o", folder, *paths], check=True)
        return {path: os.path.getsize(os.path.join(folder, os.path.basename(path) + ".tsr")) for path in paths}


def rivals_of(anchors, paths):
    known, sizes = lossless.read_anchors(anchors), {}
    for path in paths:
        name = os.path.basename(path)
        if name in known:
            sizes[path] = known[name][1]
            continue
        with tempfile.NamedTemporaryFile(suffix=".jxl") as file:
            command = ["cjxl", "-d", "0", "-e", "7", "--num_threads=1", path, file.name]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            sizes[path] = os.path.getsize(file.name)
    return sizes


def rows_of(table, efforts, rivals, goals):
    """(how far above the goal, cells), worst first."""
    rows = []
    for name, paths in table.items():
        rival = sum(rivals[path] for path in paths)
        ours = [sum(sizes[path] for path in paths) / rival for sizes in efforts]
        goal = goals(name)
        above = max(our / limit for our, limit in zip(ours, goal))
        rows.append((above, name, len(paths), rival, ours, goal))
    return sorted(rows, reverse=True)


def print_table(rows, what, out, only_above):
    print("| %s | JPEG XL | -5 | -9 | goals |\n|---|---|---|---|---|" % what, file=out)
    for above, name, count, rival, ours, goal in rows:
        if only_above and above <= 1.00005:
            continue
        cells = ["%s%.3f%s" % ("**" if our > limit + 5e-5 else "", our, "**" if our > limit + 5e-5 else "")
                 for our, limit in zip(ours, goal)]
        label = "%s (%d)" % (name, count) if what == "group" else name
        print("| %s | %d | %s | %.3g / %.3g |" % (label, rival, " | ".join(cells), *goal), file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("frames")
    parser.add_argument("--anchors")
    parser.add_argument("--only", default="", type=lambda names: names.split(","))
    parser.add_argument("--output")
    options = parser.parse_args()
    program = os.path.abspath(os.path.join(options.build, "bin/tessera"))
    with tempfile.TemporaryDirectory() as drawn:
        subprocess.run([os.path.join(options.build, "bin/tessera_testdata"), drawn, "drawn"], check=True,
                       stdout=subprocess.DEVNULL)
        folders = [options.frames, os.path.join(drawn, "drawn")]
        paths = [os.path.join(folder, name) for folder in folders for name in sorted(os.listdir(folder))
                 if name.endswith((".pgm", ".ppm")) and any(part in name for part in options.only or [""])]
        rivals = rivals_of(options.anchors, paths)
        efforts = [sizes_of(program, effort, paths) for effort in (5, 9)]
        groups, frames, group = {}, {}, {}
        for path in paths:
            names = groups_of(path, path.startswith(drawn))
            label = os.path.basename(path)
            frames[label], group[label] = [path], names[0]
            for name in names:
                groups.setdefault(name, []).append(path)
            if "drawn" in names:
                group[label] = "drawn"
        out = open(options.output, "w", encoding="utf-8") if options.output else sys.stdout
        print("# Sizes beside JPEG XL\n", file=out)
        print("Whole .tsr files of one frame each, as shares of `cjxl -d 0 -e 7`. Bold: above the goal. Each table "
              "begins\nwith what is furthest above its goal. Command: `sizes.py BUILD FRAMES --anchors TSV`.\n", file=out)
        print("## Groups\n", file=out)
        print_table(rows_of(groups, efforts, rivals, goal_of), "group", out, False)
        rows = rows_of(frames, efforts, rivals, lambda name: goal_of(group[name], name))
        count = sum(1 for row in rows if row[0] > 1.00005)
        print("\n## Frames above their goal: %d of %d\n" % (count, len(rows)), file=out)
        print_table(rows, "frame", out, True)


if __name__ == "__main__":
    main()
