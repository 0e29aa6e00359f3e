#!/bin/sh
# Installs, tries and removes Debian packages in a clean root. usage: root.sh RELEASE DEB WORK [DATA]
# RELEASE: of Debian, for which the packages in the folder DEB were built. WORK: a folder of its own, kept as a cache: the clean
# root with the packages that ours depend on is made once. DATA: the folder of images to try with; default: a few are written here.
# Exit status 77: skipped, since a root cannot be had (no root rights, no mmdebstrap, no mirror).
set -u
here=$(cd "$(dirname "$0")" && pwd)
root_of_sources=$(cd "$here/../.." && pwd)
mkdir -p "$3" || exit 2
release=$1 deb=$(cd "$2" && pwd) work=$(cd "$3" && pwd) data=${4:-}
fail() { echo "FAILED: $*"; exit 1; }

# The clean root, with the archives of what is installed later in its cache: an installation then needs no network.
tools="gcc libc6-dev libsodium-dev libxxhash-dev libzstd-dev pkg-config" # those of debian/tests
depends=$(sh "$here/depends.sh" "$deb"/*.deb | tr '\n' ' ')$tools
root=$work/root
trap 'rm -rf "$root"' EXIT
# shellcheck disable=SC2016 # the shell of the hook expands it
sh "$here/unpack.sh" "$work/$release.tar" "$root" "$release" --variant=minbase --skip=cleanup/apt \
    --customize-hook='chroot "$1" apt-get install -y -qq --no-install-recommends --download-only '"$depends" || exit $?
mkdir -p "$root/try/source/tests/api" && cp "$deb"/*.deb "$here/try.sh" "$root/try/"
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
[ $status -eq 0 ] || { cat "$work/try.log"; fail "in the clean root of $release: status $status"; }
echo "$release: $(tail -n 1 "$work/try.log")"
