#!/bin/sh
# Builds Tessera and runs its tests. usage: run.sh [BUILD]    the build folder, default "build"
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
sh tests/prepare.sh "$build"
ctest --test-dir "$build" --output-on-failure -j "$(nproc)"
