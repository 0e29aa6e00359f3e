#!/bin/sh
# Follows recipes of CONTRIBUTING.md in a copy of the tree, builds the copy for the CPU and checks that they work.
# usage: try.sh [--apply] WORK [RECIPE...]     WORK: a folder of its own; RECIPE: toy_format, toy_node, toy_feature (default:
#        all); --apply: only sees whether the patches fit the tree, in a second
# A recipe is RECIPE.patch and RECIPE.sh, which gets the folders of the programs and of its work. Two lines of RECIPE.sh
# say the recipe's heading in CONTRIBUTING.md (# recipe: HEADING), and what else to build (# targets: NAME...). The
# patch must touch as many files as the heading says, and the recipe must name each of them; "toy" or "TOY" is its NAME.
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
apply_only=
[ "$1" != --apply ] || { apply_only=yes; shift; }
mkdir -p "$1"
work=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- toy_format toy_node toy_feature

rm -rf "$work/tree" "$work/files"
mkdir -p "$work/tree" "$work/files"
if [ ! -e "$tree/.git" ] || ! command -v git >/dev/null || ! command -v patch >/dev/null; then
  echo "skipped: this takes git, patch and a clone" >&2
  exit 77
fi
(cd "$tree" && git ls-files -z | tar -c --null -T - -f -) | tar -x -C "$work/tree"

# follow RECIPE: applies the patch, and says how many files it touches.
follow() {
  patch=$tree/tests/recipes/$1.patch
  heading=$(sed -n 's/^# recipe: //p' "$tree/tests/recipes/$1.sh")
  text=$work/files/$1.text
  awk -v start="### $heading (" 'index($0, start) == 1 { on = 1; print; next } /^#/ { on = 0 } on' "$tree/CONTRIBUTING.md" >"$text"
  files=$(grep -c '^+++ ' "$patch")
  limit=$(sed -n '1s/.*(\([0-9]*\) files)$/\1/p' "$text")
  [ "$files" = "$limit" ] || { echo "$1 touches $files files, and CONTRIBUTING.md says ${limit:-nothing} ($heading)" >&2; exit 1; }
  for file in $(sed -n 's/^+++ b\///p' "$patch" | sed 's/toy/NAME/g; s/TOY/NAME/g'); do
    grep -qF "\`$file\`" "$text" || { echo "$1: the recipe of CONTRIBUTING.md does not name $file" >&2; exit 1; }
  done
  patch -s -p1 -d "$work/tree" <"$patch" || { echo "$1 does not fit the tree: make $1.patch anew" >&2; exit 1; }
  echo "$1: $files files"
}

targets=
for recipe in "$@"; do
  follow "$recipe"
  targets="$targets $(sed -n 's/^# targets: //p' "$tree/tests/recipes/$recipe.sh")"
done
[ -z "$apply_only" ] || exit 0
# -O1: nearly all objects are compiled for this alone, since recipes change tessera.h.
cmake -S "$work/tree" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 \
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -DTSR_CUDA=off >/dev/null
# shellcheck disable=SC2086 # names of targets
ninja -C "$work/build" tessera tsr_reference tessera_testdata $targets >"$work/log" 2>&1 || { tail -n 30 "$work/log"; exit 1; }
sh "$work/tree/tests/unit/test_rooms.sh" "$work/tree"
for recipe in "$@"; do
  mkdir -p "$work/files/$recipe"
  sh "$tree/tests/recipes/$recipe.sh" "$work/build/bin" "$work/files/$recipe"
  echo "$recipe: works"
done
