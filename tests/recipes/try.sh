#!/bin/sh
# Follows a recipe of CONTRIBUTING.md in a copy of the tree, builds the copy for the CPU and checks that it works.
# usage: try.sh WORK [RECIPE...]     WORK: a folder of its own; RECIPE: toy_format, toy_node, toy_feature (default: all)
# A recipe is RECIPE.patch and RECIPE.sh, which gets the folders of the programs and of its work. Two lines of RECIPE.sh
# say the recipe's heading in CONTRIBUTING.md (# recipe: HEADING), and what else to build (# targets: NAME...). The
# patch must touch as many files as the heading says, and the recipe must name each of them; "toy" is its NAME.
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- toy_format toy_node toy_feature

# check_files RECIPE: sets $files.
check_files() {
  patch=$tree/tests/recipes/$1.patch
  heading=$(sed -n 's/^# recipe: //p' "$tree/tests/recipes/$1.sh")
  awk -v start="### $heading (" 'index($0, start) == 1 { on = 1; print; next } /^#/ { on = 0 } on' "$tree/CONTRIBUTING.md" >"$work/$1/text"
  files=$(grep -c '^+++ ' "$patch")
  limit=$(sed -n '1s/.*(\([0-9]*\) files)$/\1/p' "$work/$1/text")
  [ "$files" = "$limit" ] || { echo "$1 touches $files files, and CONTRIBUTING.md says ${limit:-nothing} ($heading)" >&2; exit 1; }
  sed -n 's/^+++ b\///p' "$patch" | sed 's/toy/NAME/g' | while read -r file; do
    grep -qF "\`$file\`" "$work/$1/text" || { echo "$1: the recipe of CONTRIBUTING.md does not name $file" >&2; exit 1; }
  done
}

for recipe in "$@"; do
  rm -rf "$work/$recipe"
  mkdir -p "$work/$recipe/tree" "$work/$recipe/files"
  check_files "$recipe"
  (cd "$tree" && git ls-files -z | tar -c --null -T - -f -) | tar -x -C "$work/$recipe/tree"
  patch -s -p1 -d "$work/$recipe/tree" <"$tree/tests/recipes/$recipe.patch"
  targets=$(sed -n 's/^# targets: //p' "$tree/tests/recipes/$recipe.sh")
  cmake -S "$work/$recipe/tree" -B "$work/$recipe/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTSR_CUDA=off -DTSR_WERROR=ON >/dev/null
  ninja -C "$work/$recipe/build" tessera tsr_reference tessera_testdata $targets >"$work/$recipe/log" 2>&1 || { tail -n 30 "$work/$recipe/log"; exit 1; }
  sh "$work/$recipe/tree/tests/unit/test_rooms.sh" "$work/$recipe/tree"
  sh "$tree/tests/recipes/$recipe.sh" "$work/$recipe/build/bin" "$work/$recipe/files"
  echo "$recipe: $files files, works"
done
