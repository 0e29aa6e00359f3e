#!/bin/sh
# Runs the attack kit against old trees with known flaws, and reports which of them it finds: one of format version 2, with
# twelve flaws, and ada2d66. The kit for the first one is the newest one that builds with that tree's interface; for the
# other one it is this tree's. usage: prove_old.sh WORK      WORK: a folder of its own.
# It needs the commits below and takes some minutes.
set -eu
tree=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)
rm -rf "$work/old" "$work/mutants"
mkdir -p "$work/old" "$work/mutants"
flawed=8d47f44 kit=781c83f
git -C "$tree" archive $flawed | tar -x -C "$work/old"
git -C "$tree" archive $kit tests/attack tests/sections | tar -x -C "$work/old"
sed -i '/add_executable(tsr_sign_again/,$d' "$work/old/tests/sections/CMakeLists.txt" # the old tree has its own
printf 'add_subdirectory(sections)\nadd_subdirectory(attack)\n' >>"$work/old/tests/CMakeLists.txt"
cmake -S "$work/old" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTSR_CUDA=off >/dev/null
cmake --build "$work/build" --target tessera tessera_testdata tsr_attack_files tsr_attack_faults tsr_attack_shim tsr_attack_limits >"$work/build.log"
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

faults() # LOG ARGUMENTS...
{
  log=$1
  shift
  "$bin/tsr_attack_faults" "$bin/tessera" "$bin/tsr_attack_shim.so" "$work/data" "$work/mutants" "$@" >"$log" 2>&1 || true
}
faults "$work/exchange.log" 120 scenario=dicom_lossy deed=exchange
point 2 "a lossy DICOM is opened again" "$work/exchange.log" '^WRONG: an output is what neither input gives'
faults "$work/fread.log" 40 scenario=dicom_lossy call=fread deed=fail
point 3 "an error within DCMTK loses elements" "$work/fread.log" '^WRONG: .*neither old nor right.*status 0'
faults "$work/readdir.log" 20 scenario=folder call=readdir deed=fail
point 4 "errors of readdir are ignored" "$work/readdir.log" '^WRONG: .*status 0'
faults "$work/kill.log" 60 scenario=in_place deed=kill
point 9 "parts are left, and taken as inputs" "$work/kill.log" '^WRONG: '
"$bin/tsr_attack_limits" "$bin/tessera" "$bin/tsr_attack_shim.so" "$work/data" "$work/mutants" >"$work/limits.log" 2>&1 || true
point 6 "outputs that are no files" "$work/limits.log" 'a FIFO as output: status 0'
point 6 "links below -o" "$work/limits.log" 'a link below -o: status 0'
point 7 "what becomes larger" "$work/limits.log" 'words.dcm: status 0, .* become'
point 8 "memory is not bounded" "$work/limits.log" 'bombs in'
point 9 "signals leave parts" "$work/limits.log" 'a part is left behind'
point 10 "quadratic time" "$work/limits.log" 'elements take'
point 11 "folders are not synced" "$work/limits.log" 'calls of fsync'
point 11 "read from the page cache" "$work/limits.log" 'page cache'
point 12 "descriptors" "$work/limits.log" 'descriptors of .*status 60'
point 12 "control characters" "$work/limits.log" 'control characters'

# ada2d66. Files that are replaced under readers and mounts; lists without end; small stacks.
opened=ada2d66
rm -rf "$work/opened" "$work/limited"
mkdir -p "$work/opened" "$work/replaced"
git -C "$tree" archive $opened | tar -x -C "$work/opened"
cp "$tree"/tests/attack/*.[ch] "$tree/tests/attack/CMakeLists.txt" "$work/opened/tests/attack"
cmake -S "$work/opened" -B "$work/build_opened" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTSR_CUDA=off >/dev/null
cmake --build "$work/build_opened" --target tessera tessera_testdata tsr_attack_replaced tsr_attack_limits tsr_attack_shim >"$work/build_opened.log"
bin=$work/build_opened/bin
"$bin/tessera_testdata" "$work/data_opened" >/dev/null
for part in readers mounts; do
  "$bin/tsr_attack_replaced" "$bin/tessera" "$work/data_opened" "$work/replaced" 400 part=$part >"$work/$part.log" 2>&1 || true
done
point 13 "a reader restores another file than it has open" "$work/readers.log" '^WRONG: .*: restore tells something else, status 0'
if grep -q '^skipped: mounts' "$work/mounts.log"; then
  echo "points 14 and 15, mounts: skipped: no FUSE here"
else
  point 14 "a mount mixes originals" "$work/mounts.log" '^WRONG: (an open file gives other bytes|a file .* is another|a file is of two states)'
  point 15 "a mount hides lost files" "$work/mounts.log" '^WRONG: a folder of which files are lost looks whole'
fi

# Names that are one file.
if cc -std=c11 -O1 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 "$tree/tests/cli/fold_fs.c" -o "$work/fold_fs" $(pkg-config --cflags --libs fuse3) 2>/dev/null; then
  rm -rf "$work/names"
  sh "$tree/tests/attack/attack_names.sh" "$bin/tessera" "$work/fold_fs" "$work/names" 40 >"$work/names.log" 2>&1 || true
  if grep -q '^skipped' "$work/names.log"; then
    cat "$work/names.log"
  else
    point 16 "names that are one file: an original" "$work/names.log" "^WRONG: '.*' is lost"
    point 16 "names that are one file: status 0" "$work/names.log" '^WRONG: status 0, and . outputs'
    point 16 "names that are one file: decompress" "$work/names.log" '^WRONG: status 0, and . files'
    point 17 "a part is known by its name alone" "$work/names.log" "^WRONG: a user's file is removed"
  fi
else
  echo "skipped: names that are one file (libfuse3 is missing)"
fi

mkdir "$work/limited"
"$bin/tsr_attack_limits" "$bin/tessera" "$bin/tsr_attack_shim.so" "$work/data_opened" "$work/limited" >"$work/limited.log" 2>&1 || true
point 18 "lists without end: names" "$work/limited.log" 'an endless list, compress .*: [0-9]{4} MiB'
point 18 "lists without end: lines of JSON" "$work/limited.log" 'an endless list, summary .*: [0-9]{4} MiB'
point 19 "small stacks" "$work/limited.log" 'a stack of [0-9]* bytes: status -1, signal 11'
[ "$missed" -eq 0 ] || exit 1
