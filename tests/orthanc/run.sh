#!/bin/sh
# Orthanc's plugin with the real Orthanc: all that drive.py checks, and a table of what it costs. Before that, what fake.c checks.
# usage: run.sh [--quick] BUILD [OUT [CHECK...]]    OUT: a folder of this script, default BUILD/orthanc/work
# --quick: 50 files instead of 500, and no table, as .ci/run does. CHECK: only these checks of drive.py.
# BUILD is configured with TSR_ORTHANC=on and built. Exit status 77: Orthanc, its SDK or DCMTK's tools are missing.
set -eu
quick=
[ "${1:-}" != --quick ] || { quick=--quick; shift; }
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd) out=${2:-$1/orthanc/work}
[ $# -lt 2 ] || shift
shift
for tool in Orthanc storescu python3; do
    command -v $tool >/dev/null || { echo "skipped: $tool is missing (Debian: orthanc dcmtk python3)"; exit 77; }
done
[ -f /usr/include/orthanc/OrthancCPlugin.h ] || { echo "skipped: Orthanc's SDK is missing (Debian: orthanc-dev)"; exit 77; }
cmake -S "$root" -B "$build" -DTSR_ORTHANC=on >"$build/orthanc.log" || { cat "$build/orthanc.log"; exit 1; }
cmake --build "$build" --target orthanc_tessera tessera tessera_testdata >"$build/orthanc.log" || { tail -n 40 "$build/orthanc.log"; exit 1; }
mkdir -p "$out"
out=$(cd "$out" && pwd)
rm -rf "$out/set"
"$build/bin/tessera_testdata" "$out/set" >/dev/null
rm "$out/set/dicom/forms/rle_fragments.dcm" # Orthanc shows another picture of it now and then, with its own store, too
only=
for check in "$@"; do only="$only --only $check"; done
data=
for part in cr ct enhanced forms mg mr nm samples sizes us; do data="$data $out/set/dicom/$part"; done
real=$root/../shared/data/medical
[ -n "$quick" ] || [ ! -d "$real" ] || data="$data $real"
# shellcheck disable=SC2086 # lists of words
python3 "$root/tests/orthanc/drive.py" "$build/orthanc/libOrthancTessera.so" "$build/bin/tessera" "$out" $data $quick $only
