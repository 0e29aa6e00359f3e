#!/bin/sh
# Builds Tessera and runs its tests. usage: run.sh [BUILD [ARGUMENT...]]    the build folder, default "build"; of ctest
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
[ $# -eq 0 ] || shift
sh tests/prepare.sh "$build"
status=0
ctest --test-dir "$build" --output-on-failure -j "$(nproc)" "$@" || status=$?
# A test of many checks says which of them this machine cannot run; ctest itself tells only of whole tests.
sed -n -e '/^skipped: /p' -e 's/^\[ *SKIPPED *\] \([a-z_0-9]*\)$/skipped: \1/p' "$build/Testing/Temporary/LastTest.log" | sort -u
exit $status
