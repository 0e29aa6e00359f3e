#!/bin/sh
# Coverage of lines by the unit tests, the golden files and the tests of the interface: a number a folder, and what is not run.
# usage: coverage.sh [BUILD]      the build folder, default "build-coverage", built with gcc's --coverage
# Status 1: io/, entropy/ or transform/ is below 92 %. BUILD/uncovered.txt lists the lines that no test runs.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-coverage}
# Threads may lose counts of each other, and a line that ran keeps one: exact counts would take 20 times as long.
flags='-O1 -g1 --coverage'
CC=gcc CXX=g++ cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DTSR_CUDA=off -DTSR_BUILD_BENCH=OFF \
  -DCMAKE_C_FLAGS_DEBUG="$flags" -DCMAKE_CXX_FLAGS_DEBUG="$flags" >"$build.log" || { cat "$build.log"; exit 1; }
mv "$build.log" "$build/log"
ninja -C "$build" >"$build/log" || { tail -n 40 "$build/log"; exit 1; }
find "$build" -name '*.gcda' -delete
# Not those of rivals, which run other people's codecs, nor of an installed copy and of Python, which run another library.
ctest --test-dir "$build" -j "$(nproc)" -L 'unit|io|vectors|api' -E 'rivals|^(api_installed|python_package)$' --output-on-failure >"$build/log" ||
  { cat "$build/log"; exit 1; }
python3 tests/coverage.py "$build" --list "$build/uncovered.txt" --least 92 io entropy transform
