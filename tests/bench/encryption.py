#!/usr/bin/env python3
"""What --encrypt and --key cost: user and system time of one thread, by turns, the least of ROUNDS.
usage: encryption.py TESSERA FOLDER [ROUNDS]    the images in FOLDER are only read"""

import os
import resource
import subprocess
import sys
import tempfile

tessera, folder, rounds = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int((sys.argv + ["14"])[3])


def seconds(*words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([tessera, *words, "-q", "-f", "-r", "-T", "1"], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    with open("key", "wb") as file:
        file.write(os.urandom(32))
    for effort in "-1", "-5":
        runs = {
            "compress": ("compress", "--engine", "cpu", effort, "-o", "plain", folder),
            "compress, encrypted": ("compress", "--engine", "cpu", effort, "--encrypt", "key", "-o", "sealed", folder),
            "decompress": ("decompress", "-o", "a", "plain"),
            "decompress, encrypted": ("decompress", "--key", "key", "-o", "b", "sealed"),
        }
        least = dict.fromkeys(runs, float("inf"))
        for _ in range(rounds):
            for name, words in runs.items():
                least[name] = min(least[name], seconds(*words))
        for verb in "compress", "decompress":
            plain, sealed = least[verb], least[verb + ", encrypted"]
            print(f"{effort} {verb}: {plain:.3f} to {sealed:.3f} s, {100 * (sealed / plain - 1):+.1f} %", flush=True)
