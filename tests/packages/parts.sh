#!/bin/sh
# Compares the list of parts (SBOM) in each package with the libraries that its programs and libraries are linked with, and this
# comparison with planted faults. usage: parts.sh DEB...
# If pyspdxtools is there (PyPI: spdx-tools), it judges each list, too.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# The parts that files below a folder are linked with. OpenSSL is loaded by its name; the SDK is a header.
needed() { # FOLDER
    find "$1" -type f -exec readelf -d {} + 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p' | sort -u | while read -r library; do
        case $library in
        libc.so.* | libm.so.* | libgcc_s.so.* | libstdc++.so.* | ld-linux*) ;;
        libtessera.so.2) echo libtessera ;;
        libxxhash.so.*) echo xxHash ;;
        libzstd.so.*) echo Zstandard ;;
        libpng16.so.*) echo libpng ;;
        libcjson.so.*) echo cJSON ;;
        libfuse3.so.*) echo libfuse ;;
        libsodium.so.*) echo libsodium ;;
        libz.so.*) echo zlib ;;
        libjpeg.so.*) echo libjpeg-turbo ;;
        libcharls.so.*) echo CharLS ;;
        libopenjp2.so.*) echo OpenJPEG ;;
        libopenjph.so.*) echo OpenJPH ;;
        libjxl*.so.*) echo libjxl ;;
        libwebp*.so.*) echo libwebp ;;
        libdcm*.so.* | libof*.so.*) echo DCMTK ;;
        *) echo "a library that this script does not know: $library" ;;
        esac
    done | LC_ALL=C sort -u
}
listed() { # LIST
    awk '/^PackageName: / { sub(/^PackageName: /, ""); name = $0 } / DYNAMIC_LINK / && name != "OpenSSL" { print name }' "$1" | LC_ALL=C sort -u
}
agree() { # FOLDER LIST
    needed "$1" >"$work/needed"
    listed "$2" >"$work/listed"
    diff "$work/needed" "$work/listed" >"$work/differences"
}

count=0
for deb; do
    root=$work/root
    rm -rf "$root"
    dpkg-deb -x "$deb" "$root"
    needed "$root" >"$work/needed"
    [ -s "$work/needed" ] || continue # headers, or debugging information
    list=$(find "$root/usr/share/doc" -name sbom.spdx)
    [ -n "$list" ] || fail "$deb has no list of parts"
    agree "$root" "$list" || { cat "$work/differences"; fail "$deb is linked with other libraries (<) than it lists (>)"; }
    if command -v pyspdxtools >/dev/null; then
        pyspdxtools --infile "$list" || fail "$deb: its list is no SPDX"
    fi
    sed '0,/DYNAMIC_LINK/s/DYNAMIC_LINK/CONTAINS/' "$list" >"$work/short"
    agree "$root" "$work/short" && fail "not seen: a part less in $deb"
    { cat "$list"; printf 'PackageName: foreign\nRelationship: SPDXRef-built DYNAMIC_LINK SPDXRef-foreign\n'; } >"$work/long"
    agree "$root" "$work/long" && fail "not seen: a part more in $deb"
    count=$((count + 1))
done
[ $count -ge 2 ] || fail "only $count packages have lists of parts"
echo "$count lists of parts agree with what is linked"
