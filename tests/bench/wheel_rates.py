#!/usr/bin/env python3
"""Compares two builds of the shared library: processor time to code and to decode, on one thread, in turns.

wheel_rates.py ONE OTHER FILE... [--rounds N]    the libraries; files that both code; rounds of each, default 9
It prints the median of the time of ONE over that of OTHER, with quartiles, for each file and way, and whether both write the same
bytes."""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "app" / "python"
WAYS = {"-1": {"effort": 1}, "-5": {"effort": 5}, "-7": {"effort": 7}, "QP 24": {"qp": 24.0, "allow_lossy": True}}


def serve() -> None:
    """A process with one of the libraries: a line with a way and a file is answered by seconds, and a hash of the bytes."""
    import hashlib
    import time

    sys.path.insert(0, str(PACKAGE))
    import tessera

    engine = tessera.engine(threads=1)
    for line in sys.stdin:
        way, path = line.rstrip("\n").split("\t")
        data = Path(path).read_bytes()
        began = time.process_time()
        made = tessera.compress(data, engine=engine, verify="none", **WAYS[way])
        coded = time.process_time()
        with tessera.open(made, engine=engine) as reader:
            for frame in range(reader.frames):
                reader[frame]
        print(coded - began, time.process_time() - coded, hashlib.sha256(made).hexdigest(), flush=True)


def main() -> None:
    if sys.argv[1:] == ["--serve"]:
        serve()
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("libraries", nargs=2)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    servers = [subprocess.Popen([sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env={**os.environ, "TESSERA_LIBRARY": str(Path(library).resolve())}) for library in options.libraries]

    def ask(server, way: str, path: str) -> list:
        server.stdin.write(f"{way}\t{path}\n")
        server.stdin.flush()
        coded, decoded, told = server.stdout.readline().split()
        return [float(coded), float(decoded), told]

    is_same = True
    for path in options.files:
        for way in WAYS:
            answers = [[ask(server, way, path) for server in servers] for _ in range(options.rounds + 1)][1:]
            is_same &= all(one[2] == other[2] for one, other in answers)
            parts = []
            for i, name in enumerate(("code", "decode")):
                low, middle, high = statistics.quantiles([one[i] / other[i] for one, other in answers], n=4)
                parts.append(f"{name} {middle:.2f} ({low:.2f} to {high:.2f}), {statistics.median(other[i] for _, other in answers) * 1000:.1f} ms")
            print(f"{Path(path).name}, {way}: {'; '.join(parts)}", flush=True)
    for server in servers:
        server.stdin.close()
        server.wait()
    print("same bytes" if is_same else "OTHER BYTES")
    sys.exit(not is_same)


if __name__ == "__main__":
    main()
