#!/bin/sh
# What pages name in `backticks` exists: functions and constants, files, and that a function stands in the file behind it, as
# in "`tsr_make` (`io/recipe/make.c`)". Pages of the product's folders name what the product has. Not looked at: code blocks,
# and pages of what was once (decisions, results, news).
# usage: test_names.sh ROOT
set -u
cd "$1" || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
LC_ALL=C
export LC_ALL
# Words of other programs and of formats, and a pattern of names. research/ is no part of the tree.
foreign='tsr_verb_object sharding_indexed crypto_generichash crypto_aead_xchacha20poly1305_ietf sizeof_hdr'

words()
{
    find "$@" -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' -o -name '*.py' -o -name '*.sh' -o \
        -name '*.in' -o -name '*.json' -o -name CMakeLists.txt \) -exec cat {} + | tr -cs 'A-Za-z0-9_' '\n' | grep _ | sort -u
}
words app entropy io kernels testdata transform >"$work/product"
find . -name 'build*' -type d -prune -o -name '.?*' -prune -o -name shared -prune -o -type f -print | sed 's|^\./||' | sort >"$work/files"
# A test is named after its file: test_x, test_FOLDER_x, cli_x or x.
{
    words CMakeLists.txt tests
    sed -n 's|^tests/\(.*/\)*\([a-z]*\)/test_\([a-z0-9_]*\)\.[a-z]*$|test_\3 test_\2_\3 cli_\3 \3|p' "$work/files" | tr ' ' '\n'
    cat "$work/product"
} | sort -u >"$work/all"

# Lines of "page name" and "page name file".
grep '\.md$' "$work/files" | grep -vE '^tests/bench/(decisions|results)/|^CHANGELOG' | while read -r page; do
    sed '/^ *```/,/^ *```/d' "$page" | tr '\n' ' ' | tr -s ' ' | grep -oE '`[A-Za-z0-9_./-]+`( \(`[A-Za-z0-9_./-]+`)?' |
        sed -e "s|^|$page |" -e 's/[`(]/ /g'
done | awk -v work="$work" -v foreign="$foreign" '
    FILENAME == work "/product" { product[$0]; next }
    FILENAME == work "/all" { all[$0]; next }
    FILENAME == work "/files" {
        for (path = $0; !(path in file); sub(/^[^\/]*\//, "", path)) file[path] = $0
        next
    }
    function check(page, name) {
        if (name ~ /\.(c|h|cc|cu|cuh|sh|py|md)$/ && name !~ /NAME|STAGE|VERB|^[_.\/]|^x_|^research\// && !(name in file))
            print page ": no file is named " name
        if (name !~ /^([a-z][a-z0-9]*(_[a-z0-9]+)+|TSR_[A-Z0-9_]+)$/ || index(" " foreign " ", " " name " ")) return
        if (page ~ /^(app|entropy|io|kernels|transform)\// && name !~ /^(test|cli|cuda)_/ ? !(name in product) : !(name in all))
            print page ": nothing is named " name
    }
    {
        check($1, $2)
        if (NF > 2) check($1, $3)
        if (NF > 2 && $2 in product && $3 in file && $3 ~ /\.(c|h|cu|cuh)$/) print $1, $2, $3 >(work "/pairs")
    }' "$work/product" "$work/all" "$work/files" - | sort -u >"$work/problems"

# Several files may have a name that is not a whole path: one of them has the function.
[ -s "$work/pairs" ] || echo "no page names a function and its file: this test sees nothing" >>"$work/problems"
sort -u "$work/pairs" | while read -r page name path; do
    grep -E "(^|/)$path\$" "$work/files" | xargs grep -qw -- "$name" || echo "$page: $name is not in $path" >>"$work/problems"
done
[ ! -s "$work/problems" ] || { cat "$work/problems"; exit 1; }
