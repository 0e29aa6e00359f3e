#!/bin/sh
# Builds the Debian packages twice and compares each byte: in folders with names of other lengths, at another time, in another
# time zone and language, with another umask, on another number of threads. usage: reproduce.sh WORK
# By hand: it compiles everything twice, without the compiler's cache. The clock is not set: the builds are minutes apart, and the
# date in the packages is that of debian/changelog.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
git -C "$root" diff --quiet HEAD || { echo "commit first: a tarball of changes has the time of the call" >&2; exit 2; }
mkdir -p "$1"
work=$(cd "$1" && pwd)
export CCACHE_DISABLE=1
rm -rf "$work/one" "$work/another_folder"
umask 022
TZ=UTC LC_ALL=C DEB_BUILD_OPTIONS=parallel=2 sh "$root/app/packages/make.sh" "$work/one"
umask 002
TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 DEB_BUILD_OPTIONS=parallel=3 sh "$root/app/packages/make.sh" "$work/another_folder"
count=0
for file in "$work"/one/deb/*.deb "$work"/one/deb/*.tar.*; do
    cmp "$file" "$work/another_folder/deb/${file##*/}" || { echo "FAILED: ${file##*/} is not reproducible (diffoscope shows why)"; exit 1; }
    count=$((count + 1))
done
[ $count -ge 6 ] || { echo "FAILED: only $count files"; exit 1; }
echo "$count files are the same, byte for byte"
