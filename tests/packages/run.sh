#!/bin/sh
# Makes the Debian packages, has lintian and blhc look at them, and installs, tries and removes them in a clean Debian 12 root.
# usage: run.sh BUILD WORK [DATA]
# BUILD: the build folder of the packages. WORK: a folder of its own, in which root.sh keeps the clean root. DATA: the folder of
# images to try with; default: a few are written here.
# Exit status 77: skipped, since a root cannot be had (no root rights, no mmdebstrap, no mirror).
set -u
here=$(cd "$(dirname "$0")" && pwd)
root_of_sources=$(cd "$here/../.." && pwd)
mkdir -p "$1" "$2" || exit 2
build=$(cd "$1" && pwd) work=$(cd "$2" && pwd) data=${3:-}
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }
for tool in dpkg-buildpackage dh mmdebstrap lintian blhc; do
    command -v $tool >/dev/null || skip "$tool is missing (Debian: dpkg-dev debhelper mmdebstrap lintian blhc)"
done
[ "$(id -u)" = 0 ] || skip "only root can make a clean root"

# Orthanc's plugin is under the GPL, and a package of its own.
count=3
if [ -f /usr/include/orthanc/OrthancCPlugin.h ]; then
    count=4
else
    echo "left out: orthanc-tessera, since Orthanc's SDK is missing (Debian: orthanc-dev)"
    export DEB_BUILD_PROFILES=pkg.tessera.noorthanc
fi
export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-} noautodbgsym"
sh "$root_of_sources/app/packages/make.sh" "$build" >"$work/make.log" 2>&1 || {
    status=$?
    tail -30 "$work/make.log"
    [ $status -ne 77 ] || skip "what make.sh needs is missing"
    fail "make.sh"
}
# shellcheck disable=SC2012 # plain names
[ "$(ls "$build/deb"/*.deb | wc -l)" -eq $count ] || fail "there are not $count packages: $(ls "$build/deb")"

# Debian's own tools, with Debian's own judgement: of the source package and the packages, and of each call of the compiler.
lintian --allow-root --fail-on error,warning --profile debian "$build"/deb/*.changes >"$work/lintian.log" 2>&1 ||
    { cat "$work/lintian.log"; fail "lintian"; }
blhc --all --debian "$build/deb/log" >"$work/blhc.log" 2>&1 || { head -20 "$work/blhc.log"; fail "blhc: a call of the compiler is not hardened"; }
sed '0,/-fstack-protector-strong/s/-fstack-protector-strong//' "$build/deb/log" >"$work/log"
blhc --all --debian "$work/log" >/dev/null 2>&1 && fail "blhc does not see a call without a stack protector"
sh "$here/parts.sh" "$build"/deb/*.deb || exit 1
for part in "tessera_*:libtessera2 (= " "tessera_*:libssl3" "libtessera2_*:libdcmtk17" "libtessera2_*:libzstd1 " "libtessera-dev_*:libtessera2 (= "; do
    dpkg-deb -f "$build"/deb/${part%%:*}.deb Depends | grep -qF "${part#*:}" || fail "${part%%:*} does not depend on ${part#*:}"
done
if [ $count -eq 4 ]; then
    for part in "orthanc (>= 1.9.0)" "libtessera2 (= "; do
        dpkg-deb -f "$build"/deb/orthanc-tessera_*.deb Depends | grep -qF "$part" || fail "orthanc-tessera does not depend on $part"
    done
    for package in tessera libtessera2 libtessera-dev; do
        dpkg-deb -c "$build"/deb/${package}_*.deb | grep -qi orthanc && fail "$package has files of Orthanc's plugin"
    done
    dpkg-deb --fsys-tarfile "$build"/deb/orthanc-tessera_*.deb | tar -xO ./usr/share/doc/orthanc-tessera/sbom.spdx | grep -q '^PackageLicenseConcluded: GPL-3.0-or-later' ||
        fail "orthanc-tessera does not say that it is under the GPL"
fi

sh "$here/root.sh" bookworm "$build/deb" "$work" "$data"
