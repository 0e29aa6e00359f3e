#!/bin/sh
# Runs the kit against the tree at 8d47f44, of format version 2, in which twelve flaws are known, and tells which of them it
# finds. usage: prove_old.sh WORK      WORK: a folder of its own. It needs that commit, and some minutes.
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
rm -rf "$work/old" "$work/mutants"
mkdir -p "$work/old" "$work/mutants"
git -C "$tree" archive 8d47f44 | tar -x -C "$work/old"
cp -r "$tree/tests/attack" "$tree/tests/sections" "$work/old/tests/"
sed -i '/add_executable(tsr_sign_again/,$d' "$work/old/tests/sections/CMakeLists.txt" # the old tree has its own
printf 'add_subdirectory(sections)\nadd_subdirectory(attack)\n' >>"$work/old/tests/CMakeLists.txt"
cmake -S "$work/old" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTSR_CUDA=off >/dev/null
cmake --build "$work/build" --target tessera tessera_testdata tsr_attack_files >"$work/build.log"
bin=$work/build/bin
"$bin/tessera_testdata" "$work/data" >/dev/null
missed=0

# point NUMBER WHAT FILE PATTERN: found if the file has the pattern.
point()
{
  if grep -q -E "$4" "$3"; then
    echo "point $1, $2: found: $(grep -m 1 -E "$4" "$3" | cut -c 1-120)"
  else
    echo "point $1, $2: NOT FOUND"
    missed=$((missed + 1))
  fi
}

"$bin/tsr_attack_files" "$work/data" "$work/mutants" 50 kind=lossy >"$work/mutants.log" 2>&1 || true
point 1 "parts are not bound together" "$work/mutants.log" '^WRONG: status 0, and another file'
"$bin/tsr_attack_files" "$work/data" "$work/mutants" bits >"$work/bits.log" 2>&1 || true
point 5 "one bit kills a series" "$work/bits.log" 'more [1-9]'
[ "$missed" -eq 0 ] || exit 1
