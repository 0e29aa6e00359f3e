#!/bin/sh
# Builds the source package in a root of a release of Debian that has nothing but what debian/control names; then installs, tries
# and removes the packages in another one (root.sh), and runs debian/tests by autopkgtest in a third. usage: clean.sh RELEASE DEB WORK
# By hand: it compiles everything. RELEASE: bookworm or trixie. DEB: the folder with the source package, BUILD/deb of make.sh.
# WORK: a folder of its own; the tarballs of the roots, and the built packages in WORK/RELEASE, are kept. Exit status 77: skipped.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
release=$1 deb=$(cd "$2" && pwd)
mkdir -p "$3"
work=$(cd "$3" && pwd)
# What control names, without versions and profiles; debhelper-compat is debhelper's.
needs=$(sed -n 's/^Build-Depends: //p' "$deb"/*.dsc | sed -e 's/([^)]*)//g; s/<[^>]*>//g; s/debhelper-compat/debhelper/; s/ //g')
root=$work/$release-build
trap 'rm -rf "$root"' EXIT
sh "$here/unpack.sh" "$work/$release-build.tar" "$root" "$release" --variant=buildd --include="lintian,$needs"
mkdir "$root/build"
cp "$deb"/*.dsc "$deb"/*.orig.tar.gz "$deb"/*.debian.tar.xz "$root/build/"
chroot "$root" sh -euc 'cd /build; export LC_ALL=C HOME=/nowhere DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS:-}"; dpkg-source -x ./*.dsc source
    cd source; dpkg-buildpackage -us -uc; lintian --allow-root --fail-on error ../*.changes' >"$work/$release.log" 2>&1 ||
    { tail -30 "$work/$release.log"; echo "FAILED: it is not built in $release"; exit 1; }
rm -rf "${work:?}/$release"
mkdir "$work/$release"
cp "$root/build"/*.deb "$work/$release/"
echo "built in $release; lintian of $release says: $(grep '^[EWI]: ' "$work/$release.log" | tr '\n' ';')"
sh "$here/root.sh" "$release" "$work/$release" "$work"

command -v autopkgtest >/dev/null || { echo "left out: autopkgtest is missing"; exit 0; }
sh "$here/unpack.sh" "$work/$release-autopkgtest.tar" "$root" "$release" --variant=apt --skip=cleanup/apt --include=apt-utils,build-essential,procps
cp /etc/resolv.conf "$root/etc/" # it installs what debian/tests/control names
rm -rf "$work/$release-autopkgtest"
autopkgtest -o "$work/$release-autopkgtest" "$deb"/*.dsc "$work/$release"/*.deb -- chroot "$root" >"$work/$release-autopkgtest.log" 2>&1 ||
    { tail -30 "$work/$release-autopkgtest.log"; echo "FAILED: autopkgtest in $release"; exit 1; }
echo "autopkgtest in $release: $(tr -s ' ' <"$work/$release-autopkgtest/summary" | tr '\n' ';')"
