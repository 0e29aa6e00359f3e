#!/bin/sh
# The quick check before a commit: formatting, clang-tidy and the unit tests of what changed. Under two minutes on two cores,
# but for the first build, and for a header that most sources include.
# usage: check.sh [--build BUILD] [BASE]        what differs from the commit BASE, default HEAD; new files, too
#        check.sh [--build BUILD] --all         formatting and clang-tidy of the whole tree, without tests, as .ci/run does
# BUILD: the build folder, default "build". Debian's clang-format and clang-tidy, version 14, are wanted: other versions format
# and judge otherwise. Without them a check is skipped, and said so.
set -eu
cd "$(dirname "$0")/.."
build=build
if [ "${1:-}" = --build ]; then build=$2 && shift 2; fi
base=${1:-HEAD}
began=$(date +%s)
say() { echo "== $* (after $(($(date +%s) - began)) s)"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# tool NAME: its program of version 14.
tool() {
    for program in "$1-14" "$1"; do
        ! "$program" --version 2>/dev/null | grep -q 'version 14\.' || { echo "$program"; return; }
    done
}

# The files, one a line: all of C, C++ and CUDA, and those that are compiled. Deleted ones are none.
if [ "$base" = --all ]; then
    git ls-files >"$work/files"
else
    git rev-parse -q --verify "$base^{commit}" >/dev/null || { echo "$base is no commit" >&2; exit 2; }
    { git diff --name-only --diff-filter=d "$base" -- && git ls-files --others --exclude-standard; } | sort -u >"$work/files"
fi
grep -E '\.(c|h|cc|cu|cuh)$' "$work/files" >"$work/sources" || :

say "formatting of $(wc -l <"$work/sources") files"
format=$(tool clang-format)
if [ -z "$format" ]; then
    echo "skipped: clang-format 14 is missing (Debian 12: clang-format)"
elif ! xargs -r "$format" --dry-run -Werror --ferror-limit=1 <"$work/sources"; then
    echo "FAILED: clang-format -i formats these files"
    status=1
fi

# Compile commands, and what each source includes: "source header", a line each, by paths from the root.
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >"$work/log" || { cat "$work/log"; exit 1; }
sed -n "s|^ *\"file\": \"$PWD/\(.*\)\",*\$|\1|p" "$build/compile_commands.json" | grep -v "^$build/" | sort -u >"$work/tidy"
if [ "$base" != --all ]; then
    if [ ! -f "$build/.ninja_deps" ]; then
        say "first build"
        ninja -C "$build" >"$work/log" || { tail -n 40 "$work/log"; exit 1; }
    fi
    say "build of the library"
    ninja -C "$build" libtessera >"$work/log" || { tail -n 40 "$work/log"; exit 1; }
    ninja -C "$build" -t deps | awk '!/^ / { source = "" } /^ / { sub(/^ *(\.\.\/)*/, ""); if (source == "") source = $0; else print source, $0 }' |
        grep -v ' /' >"$work/includes"
    # Of a header that changed, one source that includes it is checked.
    { cat "$work/sources"; awk 'NR == FNR { header[$1] = 1; next } $2 in header { print $1; delete header[$2] }' "$work/sources" "$work/includes"; } |
        sort -u | comm -12 - "$work/tidy" >"$work/some"
    mv "$work/some" "$work/tidy"
fi

say "clang-tidy of $(wc -l <"$work/tidy") sources"
tidy=$(tool clang-tidy)
# check PATTERN FLAG...: those sources, a few at a time. What it says of system headers goes away. Warnings are gcc's to
# judge: where the build makes them errors, clang's own would be finds that .clang-tidy does not name.
check() {
    pattern=$1
    shift
    grep -E "$pattern" "$work/tidy" | xargs -r -P "$(nproc)" -n 4 "$tidy" -p "$build" --quiet --extra-arg=-Wno-error "$@" 2>"$work/log"
}
if [ -z "$tidy" ]; then
    echo "skipped: clang-tidy 14 is missing (Debian 12: clang-tidy)"
else
    { check '\.c$' && check '\.cc$' --extra-arg=-std=gnu++17; } || { echo "FAILED: clang-tidy" && status=1; } # gcc's default
fi
[ "$base" != --all ] || exit $status

# A unit test is of what changed if it changed, or includes a header that did, or a header beside a source that did.
while read -r file; do
    case $file in
    tests/unit/*.c | *.h | *.cuh) echo "$file" ;;
    *.c | *.cc) ls "$(dirname "$file")"/*.h 2>/dev/null || : ;;
    esac
done <"$work/sources" | sort -u >"$work/changed"
awk 'NR == FNR { changed[$1] = 1; next } ($1 in changed) || ($2 in changed) { print $1 }' "$work/changed" "$work/includes" |
    sed -n 's|^tests/unit/.*/\(test_[a-z_0-9]*\)\.c$|\1|p' | sort -u >"$work/tests"
say "unit tests of what changed: $(wc -l <"$work/tests"), and the rules"
# shellcheck disable=SC2046 # names
ninja -C "$build" libtessera $(cat "$work/tests") >"$work/log" || { tail -n 40 "$work/log"; exit 1; }
ctest --test-dir "$build" -j "$(nproc)" --output-on-failure -R "^($(tr '\n' '|' <"$work/tests")test_rooms|test_house|test_names|test_links)\$" >"$work/log" ||
    { cat "$work/log"; status=1; }
tail -n 3 "$work/log"
[ "$status" -eq 0 ] && say "nothing found" || say "FAILED"
exit $status
