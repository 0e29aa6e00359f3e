#!/bin/sh
# Orthanc's plugin with the real Orthanc: all that drive.py checks, and a table of what it costs. Before that, what fake.c checks.
# usage: run.sh [--quick] [--packages RELEASE DEB] BUILD [OUT [CHECK...]]    OUT: a folder of this script, default BUILD/orthanc/work
# --quick: 50 files instead of 500, and no table, as .ci/run does. CHECK: only these checks of drive.py.
# --packages: with the Orthanc of a release of Debian, in a root that has it, and with the packages in the folder DEB that were built
# for that release (WORK/RELEASE of tests/packages/clean.sh). OUT keeps the root. It takes root rights and mmdebstrap.
# BUILD has the test data; without --packages, it is configured with TSR_ORTHANC=on and built.
# Exit status 77: Orthanc, its SDK or DCMTK's tools are missing, or a root cannot be had.
set -eu
quick='' release='' deb=''
while :; do
    case ${1:-} in
    --quick) quick=--quick && shift ;;
    --packages) release=$2 deb=$(cd "$3" && pwd) && shift 3 ;;
    *) break ;;
    esac
done
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd) out=${2:-$1/orthanc/work}
[ $# -lt 2 ] || shift
shift
targets=tessera_testdata
if [ -z "$release" ]; then
    for tool in Orthanc storescu python3; do
        command -v $tool >/dev/null || { echo "skipped: $tool is missing (Debian: orthanc dcmtk python3)"; exit 77; }
    done
    [ -f /usr/include/orthanc/OrthancCPlugin.h ] || { echo "skipped: Orthanc's SDK is missing (Debian: orthanc-dev)"; exit 77; }
    cmake -S "$root" -B "$build" -DTSR_ORTHANC=on >"$build/orthanc.log" || { cat "$build/orthanc.log"; exit 1; }
    targets="$targets orthanc_tessera tessera"
fi
# shellcheck disable=SC2086 # a list of words
cmake --build "$build" --target $targets >"$build/orthanc.log" || { tail -n 40 "$build/orthanc.log"; exit 1; }
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
[ -z "$quick" ] && [ -d "$real" ] || real=
data="$data $real"
if [ -z "$release" ]; then
    # shellcheck disable=SC2086 # lists of words
    exec python3 "$root/tests/orthanc/drive.py" "$build/orthanc/libOrthancTessera.so" "$build/bin/tessera" "$out" $data $quick $only
fi

packages="$deb/libtessera2_*.deb $deb/tessera_*.deb $deb/orthanc-tessera_*.deb"
there=$out/$release
trap 'rm -rf "$there"' EXIT
# shellcheck disable=SC2086 # patterns
depends=$(sh "$root/tests/packages/depends.sh" $packages | tr '\n' ,)
sh "$root/tests/packages/unpack.sh" "$out/$release.tar" "$there" "$release" --variant=apt --include="${depends}orthanc-dicomweb,dcmtk,mount,python3"
mkdir "$there/packages"
# shellcheck disable=SC2086 # patterns
cp $packages "$there/packages/"
chroot "$there" sh -c 'dpkg -i /packages/*.deb' >"$out/$release.log" 2>&1 || { tail "$out/$release.log"; echo "FAILED: the packages cannot be installed in $release"; exit 1; }
echo "$release: $(chroot "$there" dpkg-query -W orthanc orthanc-dicomweb orthanc-tessera | tr '\n\t' ', ')"
# What the tests need of this machine stands at the same places in the root, until this command ends.
# shellcheck disable=SC2016,SC2086 # the inner shell expands it; lists of words
unshare -m sh -euc 'there=$1
    mount --bind "$there" "$there" # so that commands in the root can mount, too
    mount -t proc proc "$there/proc"
    for place in $2; do mkdir -p "$there$place" && mount --bind "$place" "$there$place"; done
    shift 2
    exec chroot "$there" "$@"' sh "$there" "$root/tests/orthanc $out $real" python3 "$root/tests/orthanc/drive.py" \
    /usr/share/orthanc/plugins/libOrthancTessera.so /usr/bin/tessera "$out" $data $quick $only --store-sh /usr/share/orthanc-tessera/store.sh
