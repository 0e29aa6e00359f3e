#!/bin/sh
# The version stands in app/tessera.h. Files that others read, and that have to repeat it, have the same one; so has CMake.
# debian/ repeats the number of the binary interface, and the functions, too.
# usage: versions.sh ROOT VERSION    VERSION: that of CMake's project
set -u
cd "$1" || exit 2
problems=$(mktemp) || exit 2
trap 'rm -f "$problems" "$problems.declared" "$problems.differ"' EXIT
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
    # The library's map of symbols is made of the same declarations.
    sed -n 's/^TSR_API .*[ *]\(tsr_[a-z0-9_]*\)(.*/\1/p' app/tessera.h app/tessera_cli.h | LC_ALL=C sort >"$problems.declared"
    sed -n 's/^ \(tsr_[a-z0-9_]*\)@.*/\1/p' "debian/libtessera$number.symbols" | LC_ALL=C sort | diff "$problems.declared" - >"$problems.differ" ||
        { echo "the headers (<) and debian/libtessera$number.symbols (>) have other functions:"; cat "$problems.differ"; } >>"$problems"
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
