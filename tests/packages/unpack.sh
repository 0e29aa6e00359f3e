#!/bin/sh
# Makes the folder ROOT anew from TAR, a root of Debian: with devices, and without services.
# usage: unpack.sh TAR ROOT [RELEASE WORD...]
# RELEASE: mmdebstrap makes TAR first, with these words, unless TAR was made with the same ones. Exit status 77: it cannot be had (no
# root rights, no mmdebstrap, no mirror).
set -eu
tar=$1 root=$2
shift 2
skip() { echo "skipped: $*"; exit 77; }
if [ $# -gt 0 ] && { [ ! -f "$tar" ] || [ "$(cat "$tar.words" 2>/dev/null)" != "$*" ]; }; then
    release=$1
    command -v mmdebstrap >/dev/null || skip "mmdebstrap is missing"
    [ "$(id -u)" = 0 ] || skip "only root can make a clean root"
    words=$*
    shift
    mmdebstrap "$@" "$release" "$tar.part.tar" >"$tar.log" 2>&1 || { rm -f "$tar.part.tar"; tail -3 "$tar.log"; skip "a root of $release cannot be had"; }
    mv "$tar.part.tar" "$tar"
    echo "$words" >"$tar.words"
fi
rm -rf "$root"
mkdir "$root"
tar -xf "$tar" -C "$root" --exclude='./dev/*'
for name in null zero full random urandom tty; do [ -e "$root/dev/$name" ] || cp -a "/dev/$name" "$root/dev/"; done
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
