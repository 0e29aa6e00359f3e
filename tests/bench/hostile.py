#!/usr/bin/env python3
"""CPU time of one thread on hostile inputs: files on which a reader could spend far more time than on usual ones.

usage: hostile.py BUILD [--program PROGRAM] [--sizes 0.5,1,2] [--only WORD,...] [--work FOLDER] [--limit SECONDS]
                  [--slow S] [--tsv FILE]

BUILD      a build folder with bin/tsr_hostile, which makes the inputs, and bin/tessera
--program  another tessera
--sizes    megabytes (10^6) of each input, or of its content
--only     inputs whose name has one of these words
--limit    a run that takes longer is stopped and counts as that long (default 100)
--slow     prints only rows with that many CPU seconds a megabyte, or more
--tsv      also writes all rows to a file
A row: input, size, megabytes of the file or of its content, whichever is more; CPU seconds a megabyte of that of
`compress` (with its verification) and of `test`, `decompress` and `info` of what it made; what became of the file.
Needs only Python."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading


def cpu_seconds(command, limit):
    """CPU seconds of a process, its exit status and what it printed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    timer = threading.Timer(limit, process.kill)
    timer.start()
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, process.returncode, said.decode("utf-8", "replace")


def became(said):
    for line in said.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if "file" in row:
            way = "coded" if row.get("pixel_bytes") else "no image"
            return f"{row.get('bytes_out')} {way}: {row.get('reason') or row.get('error') or '-'}"
    return "?"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--program")
    parser.add_argument("--sizes", default="0.5,1,2")
    parser.add_argument("--only", default="")
    parser.add_argument("--work")
    parser.add_argument("--limit", type=float, default=100)
    parser.add_argument("--slow", type=float, default=0)
    parser.add_argument("--tsv")
    given = parser.parse_args()
    maker = os.path.join(given.build, "bin", "tsr_hostile")
    program = given.program or os.path.join(given.build, "bin", "tessera")
    words = [word for word in given.only.split(",") if word]
    names = [line.split() for line in subprocess.run([maker], check=True, capture_output=True, text=True).stdout.splitlines()]
    names = [(name, ending) for name, ending in names if not words or any(word in name for word in words)]
    table = open(given.tsv, "w") if given.tsv else None
    print(f"{'input':28} {'size':>5} {'MB':>7} {'compress':>9} {'test':>7} {'decompr.':>8} {'info':>6}  became")
    with tempfile.TemporaryDirectory(dir=given.work) as work:
        for name, ending in names:
            for size in given.sizes.split(","):
                path = os.path.join(work, "input." + ending)
                with open(path, "wb") as f:
                    made = subprocess.run([maker, name, str(int(float(size) * 1e6))], check=True, stdout=f, stderr=subprocess.PIPE)
                megabytes = max(os.path.getsize(path), int(made.stderr)) / 1e6
                tsr, back = path + ".tsr", os.path.join(work, "back")
                seconds, status, said = cpu_seconds([program, "compress", "-T", "1", "-f", "--json", path, "-o", tsr], given.limit)
                rows, what = [seconds], became(said)
                for verb in (["test"], ["decompress", "-o", back], ["info"]):
                    if status == 0:
                        taken, code, _ = cpu_seconds([program, verb[0], "-q"[:2 if verb[0] != "info" else 0] or "--json",
                                                      *(["-T", "1"] if verb[0] != "info" else []),
                                                      *(["-f"] if verb[0] == "decompress" else []), tsr, *verb[1:]], given.limit)
                        rows.append(taken)
                        what += f" ({verb[0]}: status {code})" if code else ""
                same = status == 0 and os.path.exists(back) and open(back, "rb").read() == open(path, "rb").read()
                if status != 0 or not same:
                    what += f" (status {status}{'' if same or status else ', not the same'})"
                rows += [float("nan")] * (4 - len(rows))
                rates = [row / megabytes for row in rows]
                line = (f"{name:28} {size:>5} {megabytes:7.2f} {rates[0]:9.2f} {rates[1]:7.2f} {rates[2]:8.2f} {rates[3]:6.2f}  "
                        f"{what[:110]}")
                if table:
                    table.write("\t".join([name, size, f"{megabytes:.3f}", *(f"{row:.3f}" for row in rows), what]) + "\n")
                    table.flush()
                if max(rates[0], *(rate for rate in rates[1:] if rate == rate), 0) >= given.slow:
                    print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
