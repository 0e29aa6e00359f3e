#!/bin/sh
# Makes the release tarball, Debian's source package and the packages of this clone. usage: make.sh [BUILD]
# BUILD: a folder, default "build-packages"; all of it is in BUILD/deb, and the build's log is BUILD/deb/log. Changes that are
# not committed count, but for new files that git does not know. DEB_BUILD_PROFILES and DEB_BUILD_OPTIONS are obeyed
# (debian/README.source). Exit status 77: what a build needs is missing.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "${1:-build-packages}"
deb=$(cd "${1:-build-packages}" && pwd)/deb
command -v dpkg-buildpackage >/dev/null || { echo "dpkg-buildpackage is missing (Debian: dpkg-dev)" >&2; exit 77; }
dpkg-checkbuilddeps debian/control 2>"$deb.missing" || { cat "$deb.missing" >&2; exit 77; }
rm -rf "$deb" "$deb.missing"
commit=$(git -c user.name=tessera -c user.email=tessera stash create)
tarball=$(sh app/packages/tarball.sh "$deb" "${commit:-HEAD}")
name=${tarball##*/} name=${name%.tar.gz}
tar -xzf "$tarball" -C "$deb"
git archive "${commit:-HEAD}" debian | tar -x -C "$deb/$name"
ln "$tarball" "$deb/tessera_${name#*-}.orig.tar.gz"
if command -v ccache >/dev/null; then # wherever the tree is unpacked
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR="$deb/$name" CCACHE_NOHASHDIR=1
  CCACHE_DIR=$(ccache -k cache_dir) # dh has a HOME of its own
  export CCACHE_DIR
fi
cd "$deb/$name"
dpkg-buildpackage -us -uc >"$deb/log" 2>&1 || { tail -30 "$deb/log" >&2; exit 1; }
ls "$deb"/*.dsc "$deb"/*.deb
