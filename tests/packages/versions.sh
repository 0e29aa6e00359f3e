#!/bin/sh
# The version stands in app/tessera.h. Files that others read, and that have to repeat it, have the same one; so has CMake.
# usage: versions.sh ROOT VERSION    VERSION: that of CMake's project
set -u
cd "$1" || exit 2
problems=$(mktemp) || exit 2
trap 'rm -f "$problems"' EXIT
version=$(sed -n 's/^#define TSR_VERSION_STRING "\(.*\)"$/\1/p' app/tessera.h)
say() { # FILE VERSION: what the file says
    [ "$2" = "$version" ] || echo "$1 has the version '$2', and app/tessera.h '$version'" >>"$problems"
}
say CMakeLists.txt "$2"
say CITATION.cff "$(sed -n 's/^version: //p' CITATION.cff)"
say app/packages/recipe/recipe.yaml "$(sed -n 's/^  version: \([0-9.]*\)$/\1/p' app/packages/recipe/recipe.yaml)"
# debian/ is not in a release tarball.
if [ -d debian ]; then
    say debian/changelog "$(sed -n '1s/^tessera (\([0-9.]*\)-[^)]*).*/\1/p' debian/changelog)"
    number=$(sed -n 's/.*set(TSR_SOVERSION \([0-9]*\)).*/\1/p' app/library/CMakeLists.txt)
    for file in "libtessera$number.install" "libtessera$number.symbols"; do
        [ -f "debian/$file" ] || echo "debian/$file is missing, and the interface's number is $number" >>"$problems"
    done
    grep -qx "Package: libtessera$number" debian/control || echo "debian/control has no package libtessera$number" >>"$problems"
fi
# Of CITATION.cff, what its schema (1.2.0) requires.
for key in cff-version message title authors; do
    grep -q "^$key:" CITATION.cff || echo "CITATION.cff lacks $key" >>"$problems"
done
if [ -s "$problems" ]; then
    cat "$problems"
    exit 1
fi
