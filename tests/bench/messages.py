#!/usr/bin/env python3
"""Prints every sentence that the program and the library can say, with its place: for reading them as an editor would.

    messages.py [FOLDER...]     default: app/cli app/library io transform kernels
"""
import os
import re
import sys

CALLS = r"\b(?:refuse|tsr_fail|tsr_fail_at|tsr_fail_call|fail|usage|talk|say|add_skipped|add_task|fprintf|printf)\s*\("
STRING = r'"(?:[^"\\]|\\.)*"'


def sentences(path):
    text = open(path, encoding="utf-8").read()
    for call in re.finditer(CALLS, text):
        depth, at = 1, call.end()
        while at < len(text) and depth:
            string = re.compile(STRING).match(text, at)
            if string:
                at = string.end()
                continue
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        words = re.findall(STRING, text[call.end():at])
        joined = "".join(re.sub(r'"\s*$|^"', "", word) for word in words)
        if re.search(r"[a-z]{3}", joined):
            yield text.count("\n", 0, call.start()) + 1, joined
    for match in re.finditer(r'(?:reason|kept|status)\s*=[^;"]*(' + STRING + ")", text):
        yield text.count("\n", 0, match.start()) + 1, match.group(1).strip('"')


def main():
    for folder in sys.argv[1:] or ["app/cli", "app/library", "io", "transform", "kernels"]:
        for base, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                if name.endswith((".c", ".cc", ".h", ".cu", ".cuh")):
                    path = os.path.join(base, name)
                    for line, words in sentences(path):
                        print(f"{path}:{line}: {words}")


main()
