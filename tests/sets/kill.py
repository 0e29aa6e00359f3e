#!/usr/bin/env python3
"""Kills runs over a set, goes on with --update, and compares the end with an undisturbed run.

    kill.py TESSERA WORK [FILES [KILLS]]

Writes FILES generated images (2000) below WORK, compresses them once in peace, and once with KILLS (20) runs that end by
SIGKILL at random moments. The two trees, their times and permissions, the manifests and the totals must be the same, and
no temporary file may be left. Then --rm: killed as often, no file may be lost. Last lines: RSS and times. Exit status 1:
something differs.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import trees
from trees import bad, tree

program, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
files = int(sys.argv[3]) if len(sys.argv) > 3 else 2000
kills = int(sys.argv[4]) if len(sys.argv) > 4 else 20


def left_over(folder):
    return [name for name in tree(folder) if not name.endswith((".tsr", ".pgm"))]


def totals(lines):
    """Bytes and counts over the JSON lines of one run or of several."""
    last = {}
    for line in lines:
        try:
            one = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed
        if "summary" not in one and one.get("status") != "failed":
            last[one["file"]] = (one["bytes_in"], one["bytes_out"], one["identical"])
    return last


def run_to_end(*arguments):
    """Lines, seconds, and the largest RSS in KiB after a quarter of the time and at all."""
    start = time.monotonic()
    process = subprocess.Popen([program, "compress", *arguments], stdout=subprocess.PIPE, text=True)
    lines, early, peak = [], 0, 0
    for number, line in enumerate(process.stdout):
        lines.append(line)
        if number % 50 == 0:
            with open(f"/proc/{process.pid}/status") as status:
                rss = [int(text.split()[1]) for text in status if text.startswith("VmRSS")]
            peak = max([peak, *rss])
            if number <= files // 4:
                early = peak
    if process.wait() != 0:
        bad(f"status {process.returncode}: {' '.join(arguments)}")
    return lines, time.monotonic() - start, early, peak


def run_killed(seconds, *arguments):
    process = subprocess.Popen([program, "compress", *arguments], stdout=subprocess.PIPE, text=True)
    try:
        lines = process.communicate(timeout=seconds)[0].splitlines()
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        lines = process.communicate()[0].splitlines()
    return lines, process.returncode == -signal.SIGKILL


def main():
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    os.chdir(work)
    trees.make("in", files)
    rng = random.Random()
    seed = rng.randrange(1 << 32)
    rng.seed(seed)
    print("seed", seed)

    peace, seconds, early, peak = run_to_end("-r", "--json", "--manifest", "peace.txt", "in", "-o", "peace")
    wanted = tree("peace")
    if len(wanted) != files:
        bad(f"{len(wanted)} of {files} files")

    lines, killed = [], 0
    for _ in range(kills):
        more, was_killed = run_killed(rng.uniform(0, 2 * seconds / kills), "-r", "--json", "--update", "in", "-o", "killed")
        lines += more
        killed += was_killed
    more, *_ = run_to_end("-r", "--json", "--update", "--manifest", "killed.txt", "in", "-o", "killed")
    lines += more
    if tree("killed") != wanted:
        bad("other trees after kills")
    if totals(lines) != totals(peace):
        bad("other totals after kills")
    if open("peace.txt").read() != open("killed.txt").read():
        bad("other manifests after kills")
    if left_over("."):
        unexpected = [name for name in left_over(".") if name not in ("peace.txt", "killed.txt")]
        if unexpected:
            bad(f"files are left: {unexpected[:5]}")
    check = subprocess.run(["sha256sum", "--quiet", "-c", "../killed.txt"], cwd="in")
    if check.returncode != 0:
        bad("sha256sum does not accept the manifest")

    start = time.monotonic()
    again, *_ = run_to_end("-r", "--json", "--update", "in", "-o", "killed")
    update_s = time.monotonic() - start
    if {json.loads(line).get("status") for line in again[:-1]} != {"current"}:
        bad("an update of what is done does something")

    originals = tree("in")
    shutil.copytree("in", "removed")
    removals = 0
    for _ in range(kills):
        _, was_killed = run_killed(rng.uniform(0, 2 * seconds / kills), "-r", "-q", "--rm", "--update", "--manifest",
                                    "removed.txt", "removed", "-o", "moved")
        removals += was_killed
    subprocess.run([program, "compress", "-r", "-q", "--rm", "--update", "--manifest", "removed.txt", "removed", "-o",
                    "moved"])
    if open("peace.txt").read() != open("removed.txt").read():
        bad("the manifest lacks originals that were removed before a kill")
    if os.path.exists("removed.txt.part"):
        bad("an unfinished manifest is left")
    rest = tree("removed")
    if rest:
        bad(f"{len(rest)} originals are left, as {sorted(rest)[:3]}")
    subprocess.run([program, "decompress", "-r", "-q", "moved", "-o", "back"], check=True)
    if tree("back") != originals:
        bad("the originals do not come back as they were")

    print(f"{files} files, {killed} and {removals} of {kills} runs killed; {seconds:.2f} s in peace, "
          f"{update_s:.2f} s to see that nothing is to be done; RSS {early} KiB after a quarter, {peak} KiB at most")
    os.chdir("/")
    if not trees.faults:
        shutil.rmtree(work)
    sys.exit(1 if trees.faults else 0)


main()
