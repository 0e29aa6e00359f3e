#!/bin/sh
# Makes the release tarball, OUT/tessera-VERSION.tar.gz, and prints its name. The same commit gives the same bytes.
# usage: tarball.sh OUT [COMMIT]    COMMIT: default HEAD
# VERSION is that of app/tessera.h there. debian/ is not in it: that is Debian's own part of a source package.
set -eu
cd "$(dirname "$0")/../.."
commit=${2:-HEAD}
git rev-parse -q --verify "$commit^{commit}" >/dev/null || { echo "$PWD has no commit $commit: only a clone makes a tarball" >&2; exit 77; }
version=$(git show "$commit:app/tessera.h" | sed -n 's/^#define TSR_VERSION_STRING "\(.*\)"$/\1/p')
mkdir -p "$1"
tarball=$1/tessera-$version.tar.gz
git -c tar.umask=0022 archive --format=tar --prefix="tessera-$version/" "$commit" -- . ':(exclude)debian' | gzip -9n >"$tarball.part"
mv "$tarball.part" "$tarball"
echo "$tarball"
