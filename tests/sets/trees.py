"""What the scripts of sets and clusters share: trees of files, generated and compared, and faults that are counted."""
import hashlib
import os
import subprocess
import sys

faults = 0


def bad(text):
    global faults
    faults += 1
    print("FAILED:", text, flush=True)


def make(folder, count):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "make_files.py")
    subprocess.run([sys.executable, script, folder, str(count)], check=True)


def tree(folder):
    """Path, mode, time and hash of each file."""
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            status = os.stat(path)
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(path, folder)] = (status.st_mode, status.st_mtime_ns, digest)
    return found
