#!/usr/bin/env python3
"""Proves that definitions are what the engines call: changes each one a little, and looks at the bytes of every form.

usage: change_definitions.py [--list FILE] [--some N] [--seed N] [--work FOLDER] [--jobs N] [--only WORD] [--check]

definitions.txt lists the changes: file, pattern, replacement and what it is, with tabs between them. A pattern stands
exactly once in its file. One change at a time is made in a copy of the tree. Then the CPU program and the emulated CUDA
program are built, and a few small images are encoded by three forms: plain C, AVX2 (both by TESSERA_ISA) and CUDA.

  alike      all forms write other bytes than before, and the same ones: they share the definition
  caught     the forms write different bytes: a form has its own copy, and the comparison of engines finds it
  refused    the change does not build: a static_assert knows it
  nothing    no form writes other bytes: the definition is dead, or the images do not reach it

--some N   N changes, taken at random (--seed)
--only W   changes whose file or description contains W
--work F   the folder of the copy and its builds, which are kept for the next time (default: a folder in /tmp)
--check    only looks whether each pattern stands exactly once in its file; takes no time

The exit status is 1 if a change is "nothing" or the list is wrong. A change takes about a minute on two cores: ccache
helps with what no change reaches. Needs Python 3.8, cmake, ninja, and a CPU with AVX2 for the second form."""

import argparse
import concurrent.futures
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FORMS = [("plain", "cpu", "cpu"), ("avx2", "cpu", "cpu"), ("cuda", "emulated", "cuda")]  # name, build, --engine
CODINGS = [
    [f"--path={path}", f"--coder={coder}"] + loss
    for path, losses in (("predict", [[], ["--max-error=3"]]), ("transform", [[], ["--qp=20"]]))
    for coder in ("huffman", "cavlc", "rans")
    for loss in losses
    if not (coder == "cavlc" and loss == ["--max-error=3"])
]
CODINGS.append(["--path=transform", "--coder=cavlc", "--qp=20", "-9"])  # the choice by CAVLC's own bits


def read_list(path):
    changes = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            parts = line.split("\t")
            if len(parts) != 4:
                sys.exit(f"{path}:{number}: {len(parts)} fields, not 4")
            changes.append(tuple(parts))
    return changes


def wrong_entries(changes):
    wrong = []
    for file, pattern, replacement, _ in changes:
        try:
            with open(os.path.join(ROOT, file), encoding="utf-8") as source:
                count = source.read().count(pattern)
        except OSError as error:
            wrong.append(str(error))
            continue
        if count != 1:
            wrong.append(f"{file}: {pattern!r} stands there {count} times")
        if pattern == replacement:
            wrong.append(f"{file}: {pattern!r} is replaced by itself")
    return wrong


def smooth(r, columns, rows, top, channels):
    """Samples with slopes, edges and noise, so that all contexts and classes have something to do."""
    values = []
    for y in range(rows):
        for x in range(columns):
            for c in range(channels):
                value = top * (x * (c + 2) + 3 * y) // (8 * (columns + rows))
                value += top // 3 if (x - columns // 2) ** 2 + (y - rows // 3) ** 2 < columns * rows // 9 else 0
                value += r.randrange(1 + top // (400 if x < columns // 2 else 40))
                values.append(min(top, value))
    return values


def write_images(folder):
    r = random.Random(20)
    for name, kind, columns, rows, top, channels in (
        ("gray8", "P5", 64, 64, 255, 1), ("gray12", "P5", 72, 56, 4095, 1), ("colour", "P6", 40, 36, 255, 3)):
        size = 2 if top > 255 else 1
        with open(os.path.join(folder, name + (".pgm" if channels == 1 else ".ppm")), "wb") as out:
            out.write(f"{kind}\n{columns} {rows}\n{top}\n".encode())
            out.write(b"".join(v.to_bytes(size, "big") for v in smooth(r, columns, rows, top, channels)))


class Proof:
    def __init__(self, work, jobs):
        self.work, self.jobs = work, jobs
        self.tree, self.images = os.path.join(work, "tree"), os.path.join(work, "images")
        os.makedirs(self.tree, exist_ok=True)
        os.makedirs(self.images, exist_ok=True)
        write_images(self.images)

    def copy_tree(self):
        """Copies what differs, so that a kept build only makes that anew."""
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
        for name in listed.decode().split("\0"):
            source, target = os.path.join(ROOT, name), os.path.join(self.tree, name)
            if not os.path.isfile(source):
                continue
            with open(source, "rb") as file:
                content = file.read()
            if os.path.isfile(target):
                with open(target, "rb") as file:
                    if file.read() == content:
                        continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(source, target)

    def configure(self):
        for build, cuda in (("cpu", "off"), ("emulated", "emulated")):
            words = ["cmake", "-S", self.tree, "-B", os.path.join(self.work, build), "-G", "Ninja", f"-DTSR_CUDA={cuda}",
                     "-DCMAKE_BUILD_TYPE=Change", "-DCMAKE_C_FLAGS=-O1", "-DCMAKE_CXX_FLAGS=-O1",
                     "-DBUILD_TESTING=OFF", "-DTSR_BUILD_BENCH=OFF", "-DTSR_BUILD_TESTDATA=OFF"]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    def build(self):
        for build in ("cpu", "emulated"):
            words = ["ninja", "-C", os.path.join(self.work, build), f"-j{self.jobs}", "tessera"]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode != 0:
                return done.stdout
        return None

    def encode(self, form, number):
        """The hash of what one form writes of all images by one coding; the exit status where it fails."""
        name, build, engine = form
        out = os.path.join(self.work, "out", f"{name}_{number}")
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        program = os.path.join(self.work, build, "bin", "tessera")
        words = [program, "compress", "-f", "-q", "-r", "-T1", "--verify=none", f"--engine={engine}", *CODINGS[number],
                 self.images, "-o", out]
        environment = dict(os.environ, TESSERA_ISA=name if name != "cuda" else "plain")
        try:
            status = subprocess.run(words, env=environment, capture_output=True, timeout=120).returncode
        except subprocess.TimeoutExpired:
            return "timeout"
        if status != 0:
            return f"exit {status}"
        sum_of = hashlib.sha256()
        for folder, _, files in sorted(os.walk(out)):
            for file in sorted(files):
                with open(os.path.join(folder, file), "rb") as content:
                    sum_of.update(content.read())
        return sum_of.hexdigest()

    def encode_all(self):
        """By form: the hash of each coding."""
        tasks = [(form, number) for form in FORMS for number in range(len(CODINGS))]
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            sums = list(pool.map(lambda task: self.encode(*task), tasks))
        return {form[0]: sums[i * len(CODINGS):(i + 1) * len(CODINGS)] for i, form in enumerate(FORMS)}

    def replace(self, file, pattern, replacement):
        path = os.path.join(self.tree, file)
        with open(path, encoding="utf-8") as source:
            text = source.read()
        with open(path, "w", encoding="utf-8") as target:
            target.write(text.replace(pattern, replacement, 1))
        return path, text


def verdict(before, after):
    names = [form[0] for form in FORMS]
    changed = {name: [i for i in range(len(CODINGS)) if after[name][i] != before[name][i]] for name in names}
    touched = sorted(set().union(*changed.values()))
    if not touched:
        return "nothing", ""
    words = ", ".join(" ".join(word[2:].split("=")[-1] for word in CODINGS[i]) for i in touched[:3])
    words += f" and {len(touched) - 3} more" if len(touched) > 3 else ""
    if all(len({after[name][i] for name in names}) == 1 for i in touched):
        return "alike", words
    own = {name: f"{len(changed[name])}" for name in names}
    return "caught", words + "; codings changed: " + ", ".join(f"{name} {count}" for name, count in own.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", default=os.path.join(ROOT, "tests", "equality", "definitions.txt"))
    parser.add_argument("--some", type=int, default=0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--work", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    changes = read_list(options.list)
    wrong = wrong_entries(changes)
    if wrong:
        sys.exit("\n".join(wrong))
    if options.check:
        print(f"{len(changes)} changes, each pattern stands once in its file")
        return 0
    changes = [change for change in changes if options.only in change[0] or options.only in change[3]]
    if options.some > 0:
        changes = random.Random(options.seed).sample(changes, min(options.some, len(changes)))
    proof = Proof(options.work or tempfile.mkdtemp(prefix="definitions"), options.jobs)
    proof.copy_tree()
    proof.configure()
    problem = proof.build()
    if problem:
        sys.exit(problem)
    before = proof.encode_all()
    for i, words in enumerate(CODINGS):
        sums = {before[form[0]][i] for form in FORMS}
        if len(sums) != 1 or any(s.startswith(("exit", "timeout")) for s in sums):
            sys.exit(f"before any change the forms differ or fail: {words}: {[before[form[0]][i] for form in FORMS]}")
    counts = {"alike": 0, "caught": 0, "refused": 0, "nothing": 0}
    for file, pattern, replacement, what in changes:
        start = time.monotonic()
        path, text = proof.replace(file, pattern, replacement)
        problem = proof.build()
        if problem:
            found, words = "refused", next((line for line in problem.splitlines() if "error" in line), "")[:160]
        else:
            found, words = verdict(before, proof.encode_all())
        with open(path, "w", encoding="utf-8") as target:
            target.write(text)
        counts[found] += 1
        print(f"{found:8} {file}: {what} ({time.monotonic() - start:.0f} s; {words})", flush=True)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    if not options.work:
        shutil.rmtree(proof.work)
    return 1 if counts["nothing"] > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
