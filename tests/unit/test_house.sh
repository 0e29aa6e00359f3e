#!/bin/sh
# The rules of CONTRIBUTING.md that can be counted: files per folder, lines per function, file and page, and the layout
# of pages.
# usage: test_house.sh ROOT
set -u
cd "$1" || exit 2
problems=$(mktemp) || exit 2
trap 'rm -f "$problems" "$problems.long" "$problems.excused"' EXIT
sources='( -name *.c -o -name *.h -o -name *.cc -o -name *.cu -o -name *.cuh )'

# At most 30 source files a folder.
set -f # find expands the patterns, not the shell
for folder in $(find app transform entropy kernels io testdata tests -type d); do
    # shellcheck disable=SC2086 # words
    count=$(find "$folder" -maxdepth 1 -type f $sources | wc -l)
    [ "$count" -le 30 ] || echo "$folder holds $count source files; at most 30 may stand there" >>"$problems"
done

# At most 60 lines a function, except those that CONTRIBUTING.md lists, with a reason, as "| `name` | file | ...".
# A body begins with a line of a lone brace and ends with a brace in the same column.
# shellcheck disable=SC2086 # words
find app transform entropy kernels io testdata tests -type f $sources | LC_ALL=C sort | xargs awk '
    FNR == 1 { open = ""; head = "" }
    open != "" && $0 == open { if (FNR - first >= 60) print name, FILENAME, FNR - first + 1; open = ""; head = "" }
    open == "" && /^ *\{$/ && head != "" {
        name = head
        sub(/\(.*/, "", name)
        if (head ~ /__launch_bounds__/) {
            name = head
            sub(/.*__launch_bounds__\([^)]*\)+ */, "", name)
            sub(/\(.*/, "", name)
        }
        if (name == "TEST") name = head
        gsub(/.*[ *(]|\).*/, "", name)
        match($0, /^ */)
        open = sprintf("%" RLENGTH "s}", "")
        first = FNR
    }
    open == "" && /^ *$/ { head = "" }
    open == "" && /^[^ #\/*].*\(/ { head = $0 }
    open == "" && /^    k_[a-z_0-9]+\(/ { head = $0 }' >"$problems.long"
set +f
while read -r name file lines; do
    grep -qF "| \`$name\` | $file |" CONTRIBUTING.md ||
        echo "$file: $name has $lines lines; split it, or list it in CONTRIBUTING.md with a reason" >>"$problems"
done <"$problems.long"
sed -n 's/^| `\([a-z_0-9]*\)` | \([a-z_0-9/.]*\) |.*/\1 \2/p' CONTRIBUTING.md | while read -r name file; do
    grep -q "^$name $file " "$problems.long" || echo "CONTRIBUTING.md: $name in $file is not long, and is listed" >>"$problems"
done
[ "$(wc -l <"$problems.long")" -le 12 ] || echo "more than 12 functions have over 60 lines" >>"$problems"

# At most 600 lines a file and a page, 1200 a file of tests, except those that CONTRIBUTING.md lists, with a reason, under
# "Long files" as "| `file` | ...": a file, or a pattern of files of one folder.
sed -n '/^## Long files/,/^## /s/^| `\([^`]*\)` | ..*/\1/p' CONTRIBUTING.md >"$problems.excused"
find . \( -name 'build*' -o -name '.?*' -o -name shared \) -prune -o -type f \( -name '*.c' -o -name '*.h' -o -name '*.cc' \
    -o -name '*.cu' -o -name '*.cuh' -o -name '*.py' -o -name '*.sh' -o -name '*.js' -o -name '*.css' -o -name '*.cmake' \
    -o -name CMakeLists.txt -o -name '*.md' -o -name '*.in' \) -print | LC_ALL=C sort | while read -r file; do
    file=${file#./} lines=$(wc -l <"$file") most=600
    case $file in *.md) ;; tests/*) most=1200 ;; esac
    [ "$lines" -gt "$most" ] && echo "$file $lines $most"
done >"$problems.long"
while read -r file lines most; do
    while read -r excused; do
        # shellcheck disable=SC2254 # a pattern
        case ${file##*/} in ${excused##*/}) [ "${file%/*}" = "${excused%/*}" ] && continue 2 ;; esac
    done <"$problems.excused"
    echo "$file has $lines lines; at most $most: split it by its ideas, or list it in CONTRIBUTING.md with a reason" >>"$problems"
done <"$problems.long"
while read -r excused; do
    while read -r file lines most; do
        # shellcheck disable=SC2254 # a pattern
        case ${file##*/} in ${excused##*/}) [ "${file%/*}" = "${excused%/*}" ] && continue 2 ;; esac
    done <"$problems.long"
    echo "CONTRIBUTING.md: no file of $excused is long, and it is listed" >>"$problems"
done <"$problems.excused"

# Pages: at most 110 columns except in tables, README at most 200 lines, and links lead to existing files.
[ "$(wc -l <README.md)" -le 200 ] || echo "README.md has more than 200 lines" >>"$problems"
for page in $(find . -name '*.md' -not -path './build*' -not -path './.*' | LC_ALL=C sort); do
    awk -v page="$page" '/^```/ { code = !code }
        !/^\|/ && !code && length($0) > 110 { print page ":" FNR ": a line of " length($0) " columns; at most 110" }' "$page" >>"$problems"
    for link in $(grep -o '](\([^)#: ]*\)[^)]*)' "$page" | grep -v '](https:' | sed 's/^](\([^)#]*\).*/\1/'); do
        [ -e "$(dirname "$page")/$link" ] || echo "$page: the link to $link leads nowhere" >>"$problems"
    done
done

# A vector form says at its top what it gains, or which form it is part of.
find kernels -name '*_sse2.[ch]' -o -name '*_avx2.[ch]' -o -name '*_avx512.[ch]' | LC_ALL=C sort | while read -r form; do
    sed '/\*\//q' "$form" | tr '*\n' '  ' | tr -s ' ' |
        grep -Eq 'Gain: .*[0-9] times .*\(tests/bench/decisions/[0-9]+\)|Part of [a-z0-9_]+_avx2\.h' ||
        echo "$form: its first comment does not say its measured gain and the page in tests/bench/decisions" >>"$problems"
done

# Annex B names every section from 3.1 to 10.7, and files that exist.
awk '/^## Annex B/ { annex = 1 }
    !annex && /^### ([3-9]|10)\./ { section[$2] }
    annex && /^\| [0-9]/ {
        sub(/^\| /, "")
        sub(/ \|.*/, "")
        count = split($0, part, ", ")
        for (i = 1; i <= count; i++) {
            last = split(part[i], end, " to ")
            chapter = end[1]
            sub(/\.[0-9]*$/, "", chapter)
            sub(/.*\./, "", end[1])
            sub(/.*\./, "", end[last])
            if (last == 1) named[part[i]]
            for (n = end[1] + 0; last == 2 && n <= end[2] + 0; n++) named[chapter "." n]
        }
    }
    END {
        for (s in section)
            if (!(s in named)) print "io/FORMAT.md: Annex B lacks section " s
    }' io/FORMAT.md >>"$problems"
for path in $(sed '1,/^## Annex B/d' io/FORMAT.md | grep -o '`[a-z_]*/[a-zA-Z0-9_/.]*`' | tr -d '`'); do
    [ -e "$path" ] || [ -e "tests/unit/$path" ] || echo "io/FORMAT.md: Annex B names $path, which does not exist" >>"$problems"
done

if [ -s "$problems" ]; then
    cat "$problems"
    exit 1
fi
