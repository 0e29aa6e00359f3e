#!/usr/bin/env python3
"""Compresses a set as shards: by a Slurm array, by Open MPI; tasks are killed, and go on.

    run.py TESSERA WORK [FILES [KILLS]]

Writes FILES (800) generated images below WORK. Compresses them once in one process; then by slurm.sh as an array of 8, of
which one task is killed amid its work and requeued; then by mpirun with 4 ranks, KILLS (6) times with one rank killed at a
random moment of its work, and once to the end. A rank that is to be killed writes its lines to a pipe that nobody reads:
it waits when that is full. Each time the tree must be that of the one process, no temporary file may be left, and
`tessera summary` must find every file reported. Exit status 77: neither Slurm nor Open MPI is installed.
"""
import contextlib
import fcntl
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import time

RANKS = 4  # of mpi.sh
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "sets"))
import trees  # noqa: E402
from trees import bad, tree  # noqa: E402

program, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
files = int(sys.argv[3]) if len(sys.argv) > 3 else 800
kills = int(sys.argv[4]) if len(sys.argv) > 4 else 6


def check(what, folder, wanted, lines):
    """The tree; and that the runs' lines report all files, and without those of part 0 not all."""
    if tree(folder) != wanted:
        bad(f"{what}: another tree: {sorted(set(tree(folder)) ^ set(wanted))[:5]}")
    summary = subprocess.run([program, "summary", *lines], capture_output=True, text=True)
    print(summary.stdout.splitlines()[0] if summary.stdout else summary.stderr, flush=True)
    if summary.returncode != 0:
        bad(f"{what}: summary ends with {summary.returncode}: {summary.stdout[-500:]} {summary.stderr}")
    if f"{files} files done" not in summary.stdout:
        bad(f"{what}: summary: {summary.stdout[:200]}")
    others = [path for path in lines if not os.path.basename(path).startswith("0-")]
    fewer = subprocess.run([program, "summary", *others], capture_output=True, text=True)
    if fewer.returncode != 75:
        bad(f"{what}: summary misses nothing where a run's lines are missing")


def run_slurm(wanted):
    place = os.path.join(work, "slurm")
    if subprocess.run(["sh", os.path.join(here, "slurm.sh"), program, os.path.join(work, "in"), place]).returncode:
        bad("slurm.sh")
        return
    check("Slurm", os.path.join(place, "out"), wanted, sorted(glob.glob(os.path.join(place, "json", "*.json"))))


def pids_of_ranks(parent):
    """Processes of the program below mpirun."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            text = open(path).read()
        except OSError:
            continue
        name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        if name == "tessera" and int(rest[1]) == parent:
            found.append(int(text.split()[0]))
    return found


@contextlib.contextmanager
def small_pipes(folder, count):
    """FIFOs 0, 1, ... that nobody reads, with room for a page."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    ends = []
    for number in range(count):
        path = os.path.join(folder, str(number))
        os.mkfifo(path)
        ends.append(os.open(path, os.O_RDWR | os.O_CLOEXEC))
        fcntl.fcntl(ends[-1], fcntl.F_SETPIPE_SZ, 4096)
    try:
        yield folder
    finally:
        for end in ends:
            os.close(end)


def start_mpi(place, attempt, *pipes):
    return subprocess.Popen(["sh", os.path.join(here, "mpi.sh"), program, os.path.join(work, "in"), place, str(attempt),
                             *pipes], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run_mpi(wanted, seconds):
    place, killed = os.path.join(work, "mpi"), 0
    rng = random.Random()
    for attempt in range(kills):
        with small_pipes(os.path.join(work, "pipes"), RANKS) as pipes:
            process = start_mpi(place, attempt, pipes)
            while len(ranks := pids_of_ranks(process.pid)) < RANKS and process.poll() is None:
                time.sleep(0.005)
            time.sleep(rng.uniform(0, seconds / kills))
            for pid in ranks[:1]:
                os.kill(pid, signal.SIGKILL)
            killed += process.wait() != 0
    print(f"mpirun: a rank killed in {killed} of {kills} runs", flush=True)
    if killed < kills:
        bad("a run went on though a rank was killed")
    if status := start_mpi(place, kills).wait():
        bad(f"mpirun ends with {status}")
    check("MPI", os.path.join(place, "out"), wanted, sorted(glob.glob(os.path.join(place, "json", "*.json"))))


def main():
    has_slurm = shutil.which("slurmctld", path=os.environ["PATH"] + ":/usr/sbin") and os.getuid() == 0
    has_mpi = shutil.which("mpirun")
    if not has_slurm and not has_mpi:
        print("skipped: neither Slurm (as root) nor Open MPI")
        sys.exit(77)
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    trees.make(os.path.join(work, "in"), files)
    start = time.monotonic()
    subprocess.run([program, "compress", "-q", "-r", os.path.join(work, "in"), "-o", os.path.join(work, "one")], check=True)
    wanted, seconds = tree(os.path.join(work, "one")), time.monotonic() - start
    print(f"{len(wanted)} files in one process, {seconds:.2f} s", flush=True)
    if len(wanted) != files:
        bad("not all files")
    if has_slurm:
        run_slurm(wanted)
    else:
        print("skipped: no Slurm, or not root")
    if has_mpi:
        run_mpi(wanted, seconds)
    else:
        print("skipped: no Open MPI")
    if not trees.faults:
        shutil.rmtree(work)
    sys.exit(1 if trees.faults else 0)


main()
