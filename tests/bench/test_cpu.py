"""CPU seconds of each test of a build, user and system, with all its processes. Times of the clock mislead where
several tests share processors. Tests run one after the other: test_cpu.py BUILD [options of ctest].
"""

import json
import os
import resource
import subprocess
import sys


def cpu():
    """Seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    build, *options = sys.argv[1:]
    listed = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1", *options], stdout=subprocess.PIPE, check=True)
    total, log = 0.0, open(os.path.join(build, "test_cpu.log"), "wb")
    for test in json.loads(listed.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        environment = dict(os.environ, **dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", [])))
        before = cpu()
        ended = subprocess.run(
            test["command"], cwd=properties.get("WORKING_DIRECTORY", build), env=environment, stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, check=False)
        seconds = cpu() - before
        total += seconds
        skipped = ended.returncode == properties.get("SKIP_RETURN_CODE")
        said = "skipped" if skipped else "" if ended.returncode == 0 else f"status {ended.returncode}"
        print(f"{seconds:8.1f} {test['name']} {said}".rstrip(), flush=True)
    print(f"{total:8.1f} of all")


main()
