#!/bin/sh
# Tessera on other machines: builds it by Debian's cross compilers, and runs it under qemu-user, or as it is where this machine
# runs such programs (i386 on x86-64). The machine must pass its unit tests and the golden files, write the same bytes as this
# machine's program, and restore what that one wrote. Libraries come from this system's package sources to BUILD-MACHINE/root;
# nothing foreign is installed. Debian only: Ubuntu keeps most machines' packages on another server.
# usage: run.sh [--quick] [BUILD [MACHINE...]]    the build folder, default "build"; machines, default arm64 s390x i386.
# --quick: some of the unit tests and of the options, of a build with -O1, which is made in half of the time
set -eu
cd "$(dirname "$0")/../.."
quick=
[ "${1:-}" != --quick ] || { quick=1; shift; }
build=${1:-build}
[ $# -eq 0 ] || shift
machines=${*:-arm64 s390x i386}
jobs=$(nproc)

tools=qemu-user
for machine in $machines; do
  triple=$(sed -n 's/^set(machine_triple \(.*\))/\1/p' "tests/machines/$machine.cmake")
  tools="$tools gcc-$triple g++-$triple"
done
# shellcheck disable=SC2086 # words
[ -n "${TSR_MACHINES_PREPARED:-}" ] || sh tests/prepare.sh "$build" $tools
build=$(cd "$build" && pwd)

failed=
wrong() { echo "$machine: $*"; failed=1; }

# The same set, the same options: the same .tsr; and what this machine's program wrote comes back.
both_ways() { # OPTION...
  rm -rf "$work/here" "$work/there" "$work/back" "$work/back_there"
  "$build/bin/tessera" compress --engine cpu -q -r -o "$work/here" "$@" "$work/set" || wrong "compress $* fails here"
  "$there/tessera" compress -q -r -o "$work/there" "$@" "$work/set" || wrong "compress $* fails"
  diff -r "$work/here" "$work/there" || wrong "compress $* writes other bytes"
  "$build/bin/tessera" decompress --engine cpu -q -r -o "$work/back" "$work/here" || wrong "decompress ($*) fails here"
  "$there/tessera" decompress -q -r -o "$work/back_there" "$work/here" || wrong "decompress ($*) fails"
  diff -r "$work/back" "$work/back_there" || wrong "decompress ($*) writes other bytes"
}

for machine in $machines; do
  began=$(date +%s)
  untried=
  folder=$build-$machine
  root=$folder/root work=$folder/work there=$folder/run
  mkdir -p "$work" "$there"
  sh tests/machines/root.sh "$machine" "$root" libxxhash-dev libzstd-dev zlib1g-dev libpng-dev libdcmtk-dev libcjson-dev libssl-dev \
    libjpeg-dev libcmocka-dev
  say() { sed -n "s/^set(machine_$1 \(.*\))/\1/p" "tests/machines/$machine.cmake"; }
  emulator=$(say emulator)
  ! "$root$(say loader)" --version >/dev/null 2>&1 || emulator=
  echo "== $machine ${emulator:-without an emulator}"
  if [ -n "$quick" ]; then # with -O1, gcc follows values less far, and warns of what is no fault
    set -- -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -Wno-maybe-uninitialized" -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1
  else
    set -- -DCMAKE_BUILD_TYPE=Release
  fi
  cmake -S . -B "$folder" -G Ninja "$@" --toolchain "tests/machines/$machine.cmake" -DTSR_MACHINE_ROOT="$root" \
    -DCMAKE_CROSSCOMPILING_EMULATOR="$emulator" -DTSR_CUDA=off -DTSR_BUILD_BENCH=OFF -DTSR_WERROR=ON >"$work/log"
  # shellcheck disable=SC2046 # names
  ninja -C "$folder" -j "$jobs" $([ -z "$quick" ] || cat tests/machines/quick.txt) >"$work/log" || { cat "$work/log"; exit 1; }
  for program in tessera tsr_reference tessera_testdata; do
    printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$emulator" "$folder/bin/$program" >"$there/$program"
    chmod +x "$there/$program"
  done
  if [ -n "$quick" ]; then
    tests="^($(grep '^test_' tests/machines/quick.txt | tr '\n' '|')none)\$"
  else
    tests='^(test|api)_' # but not those that run other programs of the build, nor the rules
  fi
  [ -z "$emulator" ] || untried='^test_(memory_limit|engine|memory|output)$|'
  # The first limits the address space, of which qemu takes more; the others take 750 s under qemu, and i386 runs them.
  ctest --test-dir "$folder" -j "$jobs" --output-on-failure -R "$tests|^io_data\$" -LE 'rules|vectors|cli|bench|attack|report' \
    -E "$untried^api_installed\$|rivals" >"$work/log" || { cat "$work/log"; wrong "tests fail"; }
  tail -4 "$work/log"
  sh tests/vectors/test_vectors.sh "$there/tessera" "$there/tsr_reference" "$there/tessera_testdata" || wrong "golden files"
  rm -rf "$work/set"
  "$build/bin/tessera_testdata" "$work/set" >/dev/null
  # Small files of every form.
  (cd "$work/set" && find . -type f -size "+$([ -n "$quick" ] && echo 12 || echo 40)k" -delete)
  both_ways
  both_ways --qp 24
  if [ -z "$quick" ]; then
    both_ways -1
    both_ways -9 --coder rans
    both_ways --path transform --coder cavlc
    both_ways -7 --path transform
    both_ways --max-error 2
    both_ways --psnr 41.3
  fi
  echo "$machine took $(($(date +%s) - began)) s"
done
[ -z "$failed" ]
