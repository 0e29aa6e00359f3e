#!/bin/sh
# Makes the Debian packages, has lintian and blhc look at them, and installs, tries and removes them in a clean Debian 12 root.
# usage: run.sh BUILD WORK [DATA]
# BUILD: the build folder of the packages. WORK: a folder of its own for the roots, kept as a cache: the clean root with the
# packages that ours depend on is made once. DATA: the folder of images to try with; default: a few are written here.
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

# The clean root, with the archives of what is installed later in its cache: an installation then needs no network.
base=$work/base.tar
tools="gcc libc6-dev libxxhash-dev libzstd-dev pkg-config" # those of debian/tests
depends=$(for package in "$build"/deb/*.deb; do dpkg-deb -f "$package" Depends; echo ,; done |
    sed -e 's/([^)]*)//g' -e 's/|[^,]*//g' | tr ', ' '\n\n' | grep -v '^$\|^libtessera2$' | sort -u)
depends=$(echo $depends $tools)
if [ ! -f "$base" ] || [ "$(cat "$work/base.depends" 2>/dev/null)" != "$depends" ]; then
    # shellcheck disable=SC2086,SC2016 # words; the shell of the hook expands it
    mmdebstrap --variant=minbase --skip=cleanup/apt --customize-hook='chroot "$1" apt-get install -y -qq --no-install-recommends --download-only '"$depends" \
        bookworm "$base.part.tar" >"$work/mmdebstrap.log" 2>&1 || { rm -f "$base.part.tar"; tail -3 "$work/mmdebstrap.log"; skip "a clean root cannot be had"; }
    mv "$base.part.tar" "$base"
    echo "$depends" >"$work/base.depends"
fi
root=$work/root
trap 'rm -rf "$root"' EXIT
rm -rf "$root"
mkdir "$root" && tar -xf "$base" -C "$root" --exclude='./dev/*' || fail "the root cannot be unpacked"
for name in null zero full random urandom tty; do [ -e "$root/dev/$name" ] || cp -a "/dev/$name" "$root/dev/"; done
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
mkdir -p "$root/try/source/tests/api" && cp "$build"/deb/*.deb "$here/try.sh" "$root/try/"
(cd "$root_of_sources" && cp -r debian testdata "$root/try/source/" && cp -r tests/vectors "$root/try/source/tests/" &&
    cp tests/api/example.c "$root/try/source/tests/api/") || fail "what debian/tests needs is missing"
if [ -n "$data" ]; then
    cp -r "$data" "$root/try/scans"
else
    mkdir -p "$root/try/scans"
    printf 'P5\n300 200\n255\n' >"$root/try/scans/picture.pgm"
    head -c 60000 /dev/urandom >>"$root/try/scans/picture.pgm"
    echo text >"$root/try/scans/text.txt"
fi
# /proc is mounted for this command alone. Where root may not, what needs it (tessera compare) is left out.
# shellcheck disable=SC2016 # the inner shell expands it
if unshare -m sh -c 'mount -t proc proc "$1/proc"' sh "$root" 2>/dev/null; then
    unshare -m sh -c 'mount -t proc proc "$1/proc" && exec chroot "$1" /bin/sh /try/try.sh' sh "$root" >"$work/try.log" 2>&1
else
    chroot "$root" /bin/sh /try/try.sh >"$work/try.log" 2>&1
fi
status=$?
tail -n 5 "$work/try.log"
[ $status -eq 0 ] || { cat "$work/try.log"; fail "in the clean root: status $status"; }
