#!/bin/sh
# Compares the binary interface of a built libtessera with the committed one, and the comparison with planted faults.
# usage: check.sh LIBRARY           fails if they differ
#        check.sh LIBRARY --renew   writes the interface of LIBRARY to tessera.abi beside this script
# LIBRARY is a shared library with debug information, as app/packages/make.sh builds one:
# BUILD/deb/tessera-*/obj-*/lib/*/libtessera.so.2.
# Only what tessera.h declares is looked at. Exit status 77: skipped.
set -u
here=$(cd "$(dirname "$0")" && pwd)
library=$1
for tool in abidw abidiff; do
    command -v $tool >/dev/null && continue
    echo "skipped: $tool is missing (Debian: abigail-tools)"
    exit 77
done
[ "$(uname -m)" = x86_64 ] || { echo "skipped: the committed interface is that of x86-64"; exit 77; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
mkdir "$work/public" && cp "$here/../../app/tessera.h" "$work/public" || exit 2
abidw --headers-dir "$work/public" --exported-interfaces-only --drop-private-types --no-corpus-path --no-comp-dir-path \
    --no-show-locs --no-elf-needed --type-id-style hash "$library" --out-file "$work/now.abi" || exit 1
grep -q '<function-decl name=.tsr_compress.' "$work/now.abi" || { echo "FAILED: $library has no debug information"; exit 1; }
if [ "${2:-}" = --renew ]; then
    cp "$work/now.abi" "$here/tessera.abi"
    echo "written: tests/abi/tessera.abi"
    exit 0
fi

if ! abidiff "$here/tessera.abi" "$work/now.abi" >"$work/differences"; then
    cat "$work/differences"
    cat <<'END'
FAILED: the binary interface is another one than tests/abi/tessera.abi.
  A symbol was removed, or programs that are built already would read wrong bytes: raise TSR_SOVERSION (app/library/CMakeLists.txt).
  A symbol was added, or fields at the end of a structure that begins with its size: nothing to raise.
  Then renew the file: sh tests/abi/check.sh LIBRARY --renew
END
    exit 1
fi

# Faults that must be found.
# plant NAME SED
plant() {
    sed "$2" "$work/now.abi" >"$work/planted.abi"
    cmp -s "$work/now.abi" "$work/planted.abi" && { echo "FAILED: the fault '$1' changes nothing"; exit 1; }
    abidiff "$work/now.abi" "$work/planted.abi" >/dev/null && { echo "FAILED: abidiff does not find: $1"; exit 1; }
    return 0
}
plant 'a symbol is gone' "/<elf-symbol name='tsr_open'/d"
plant 'a structure is larger' "s/\(<class-decl name='tsr_image' size-in-bits='\)[0-9]*/\1512/"
plant 'a member has moved' "s/\(<data-member access='public' layout-offset-in-bits='\)128\('\)/\1192\2/"
plant 'a value has changed' "s/\(<enumerator name='TSR_ERROR_CORRUPT' value='\)61/\162/"
echo "the binary interface is the committed one"
