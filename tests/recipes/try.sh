#!/bin/sh
# Follows a recipe of CONTRIBUTING.md in a copy of the tree, builds the copy for the CPU and checks that it works.
# usage: try.sh WORK [RECIPE...]     WORK: a folder of its own; RECIPE: toy_format, toy_feature (default: all)
# A recipe is RECIPE.patch and RECIPE.sh, which gets the folders of the programs and of its work. Two lines of RECIPE.sh
# say how many files the patch may touch (# files: at most N) and what else to build (# targets: NAME...).
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- toy_format toy_feature
for recipe in "$@"; do
  rm -rf "$work/$recipe"
  mkdir -p "$work/$recipe/tree" "$work/$recipe/files"
  (cd "$tree" && git ls-files -z | tar -c --null -T - -f -) | tar -x -C "$work/$recipe/tree"
  patch -s -p1 -d "$work/$recipe/tree" <"$tree/tests/recipes/$recipe.patch"
  files=$(grep -c '^+++ ' "$tree/tests/recipes/$recipe.patch")
  limit=$(sed -n 's/^# files: at most \([0-9]*\).*/\1/p' "$tree/tests/recipes/$recipe.sh")
  [ "$files" -le "$limit" ] || { echo "$recipe touches $files files, and should touch at most $limit" >&2; exit 1; }
  targets=$(sed -n 's/^# targets: //p' "$tree/tests/recipes/$recipe.sh")
  cmake -S "$work/$recipe/tree" -B "$work/$recipe/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTSR_CUDA=off -DTSR_WERROR=ON >/dev/null
  ninja -C "$work/$recipe/build" tessera tsr_reference tessera_testdata $targets >"$work/$recipe/log" 2>&1 || { tail -n 30 "$work/$recipe/log"; exit 1; }
  sh "$work/$recipe/tree/tests/unit/test_rooms.sh" "$work/$recipe/tree"
  sh "$tree/tests/recipes/$recipe.sh" "$work/$recipe/build/bin" "$work/$recipe/files"
  echo "$recipe: $files files, works"
done
