#!/bin/sh
# The rules of CONTRIBUTING.md that can be counted: files per folder, lines per function, file and page, the layout of
# pages, and that scripts of tests can fail.
# usage: test_house.sh ROOT
set -u
cd "$1" || exit 2
problems=$(mktemp) || exit 2
trap 'rm -f "$problems" "$problems.long" "$problems.excused" "$problems.pages"' EXIT
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

# A script of the command line ends by `finish`: else its checks do not count.
for script in tests/cli/test_*.sh; do
    [ "$(tail -n 1 "$script")" = finish ] || echo "$script does not end by finish: it cannot fail" >>"$problems"
done

# At most 600 lines a file and a page, 1200 a file of tests, except those that CONTRIBUTING.md lists, with a reason, under
# "Long files" as "| `file` | ...": a file, or a pattern of files of one folder. None is empty: a merge may leave such a one.
sed -n '/^## Long files/,/^## /s/^| `\([^`]*\)` | ..*/\1/p' CONTRIBUTING.md >"$problems.excused"
find . \( -name 'build*' -o -name '.?*' -o -name shared \) -prune -o -type f \( -name '*.c' -o -name '*.h' -o -name '*.cc' \
    -o -name '*.cu' -o -name '*.cuh' -o -name '*.py' -o -name '*.sh' -o -name '*.js' -o -name '*.css' -o -name '*.cmake' \
    -o -name CMakeLists.txt -o -name '*.md' -o -name '*.in' \) -print | LC_ALL=C sort | while read -r file; do
    file=${file#./} lines=$(wc -l <"$file") most=600
    case $file in *.md) ;; tests/*) most=1200 ;; esac
    [ "$lines" -gt 0 ] || echo "$file is empty" >>"$problems"
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

# Pages: at most 110 columns except in tables, README (150) and FORMAT.md (1700) not longer, and links lead to existing files
# and headings.
[ "$(wc -l <README.md)" -le 150 ] || echo "README.md has more than 150 lines" >>"$problems"
[ "$(wc -l <io/FORMAT.md)" -le 1700 ] || echo "io/FORMAT.md has more than 1700 lines" >>"$problems"
find . -name '*.md' -not -path './build*' -not -path './.*' | LC_ALL=C sort >"$problems.pages"
# Lines "# PAGE#HEADING", "PAGE LINK FILE" and, of a link with a heading, "PAGE LINK FILE HEADING".
xargs awk '
    FNR == 1 { code = 0 }
    /^```/ { code = !code }
    !/^\|/ && !code && length($0) > 110 { print "! " FILENAME ":" FNR ": a line of " length($0) " columns; at most 110" }
    {
        folder = FILENAME
        sub(/[^\/]*$/, "", folder)
        for (rest = $0; match(rest, /\]\([^): ]+[) ]/); rest = substr(rest, RSTART + RLENGTH)) {
            link = substr(rest, RSTART + 2, RLENGTH - 3)
            to = heading = link
            sub(/#.*/, "", to)
            to = to == "" ? FILENAME : folder to
            while (sub(/\/[^\/.][^\/]*\/\.\.\//, "/", to)) continue
            if (sub(/^[^#]*#/, "", heading) == 0 || to !~ /\.md$/) heading = ""
            print FILENAME, link, to, heading
        }
    }
    !code && sub(/^#+ /, "") {
        gsub(/\]\([^)]*\)/, "")
        $0 = tolower($0)
        gsub(/[^a-z0-9_ -]/, "")
        gsub(/ /, "-")
        print "# " FILENAME "#" $0
    }' <"$problems.pages" >"$problems.long"
sed -n 's/^! //p' "$problems.long" >>"$problems"
grep -v '^[#!] ' "$problems.long" | while read -r page link to heading; do
    [ -e "$to" ] || echo "$page: the link to $link leads nowhere" >>"$problems"
done
awk '$1 == "#" { there[$2]; next }
    NF == 4 { wanted[$1 ": the link to " $2 " leads to no heading"] = $3 "#" $4 }
    END { for (w in wanted) if (!(wanted[w] in there)) print w }' "$problems.long" | LC_ALL=C sort >>"$problems"

# A vector form says at its top what it gains, or which form it is part of.
find kernels -name '*_sse2.[ch]' -o -name '*_avx2.[ch]' -o -name '*_avx512.[ch]' | LC_ALL=C sort | while read -r form; do
    sed '/\*\//q' "$form" | tr '*\n' '  ' | tr -s ' ' |
        grep -Eq 'Gain: .*[0-9] times .*\(tests/bench/decisions/[0-9]+\)|Part of [a-z0-9_]+_avx2\.h' ||
        echo "$form: its first comment does not say its measured gain and the page in tests/bench/decisions" >>"$problems"
done

# A vector that is widened by a cast has an upper half of any value, which compilers fill as they like: it is put in place in
# the same line, or the widening is _mm256_zextsi128_si256, which clears it.
grep -rnE '_mm(256|512)_cast(si|ps|pd)(128|256)_(si|ps|pd)(256|512)\(' kernels --include='*.[ch]' |
    grep -v insert | sed 's/:.*//; s/$/: a cast widens a vector, whose upper half may be anything/' | sort -u >>"$problems"

# The pages of the format end with a table "Where the code is". It names every section of the page (of FORMAT.md: from 3.1
# on) that is not informative, and files that exist. A node's folder has a page.
format=$(grep -l '^## Where the code is' -r io entropy --include='*.md' | LC_ALL=C sort)
# shellcheck disable=SC2086 # names of pages
for folder in io/nodes/*/; do
    case $folder in io/nodes/new_streams/) continue ;; esac # writes what the pages of three nodes define
    ls "$folder"*.md >/dev/null 2>&1 || echo "$folder: a page with the node's part of the format is missing" >>"$problems"
done
for page in $format; do
    awk -v page="$page" '
        function name(list, count, part, i, end, last, n, chapter) {
            count = split(list, part, ", ")
            for (i = 1; i <= count; i++) {
                last = split(part[i], end, " to ")
                named[part[i]]
                chapter = end[1]
                if (!sub(/\.[0-9]*$/, ".", chapter)) chapter = ""
                sub(/.*\./, "", end[1])
                sub(/.*\./, "", end[last])
                for (n = end[1] + 0; last == 2 && n <= end[2] + 0; n++) named[chapter n]
            }
        }
        /^## Where the code is/ { table = 1 }
        !table && page ~ /FORMAT\.md$/ && /^### ([3-9]|10)\./ { section[$2] }
        !table && page !~ /FORMAT\.md$/ && /^## [0-9]+\. / && !/informative/ { sub(/\./, "", $2); section[$2] }
        table && /^\| [0-9]/ { sub(/^\| /, ""); sub(/ \|.*/, ""); name($0) }
        END { for (s in section) if (!(s in named)) print page ": its table of code lacks section " s }' "$page" >>"$problems"
    for path in $(sed '1,/^## Where the code is/d' "$page" | grep -o '`[a-z_]*/[a-zA-Z0-9_/.]*`' | tr -d '`'); do
        [ -e "$path" ] || [ -e "tests/unit/$path" ] || echo "$page: its table of code names $path, which does not exist" >>"$problems"
    done
done

# "PAGE.md 2 and 4.1" cites sections of a page of the format; "section 2" on such a page, but FORMAT.md, and "(4.1)" on
# FORMAT.md, its own. All exist.
# shellcheck disable=SC2086 # names of pages
awk '{ page = FILENAME; sub(/.*\//, "", page) }
    FNR == 1 { print page }
    /^###? [0-9]/ { sub(/\.$/, "", $2); print page, $2 }' $format >"$problems.long"
{
    grep -rnoE '[A-Z0-9_]+\.md`? (sections? )?[0-9]+(\.[0-9]+)*((,| and| to|, and) [0-9]+(\.[0-9]+)*)*' --include='*.c' --include='*.h' \
        --include='*.cc' --include='*.cu' --include='*.cuh' --include='*.py' --include='*.sh' --include='*.md' \
        app entropy io kernels testdata tests transform ./*.md | sed -e '/^.\/CHANGELOG/d' -e 's/`//' -e 's/sections\{0,1\} //'
    for page in $format; do
        case $page in
        io/FORMAT.md) grep -noE '\([0-9]+\.[0-9]+(, [0-9]+\.[0-9]+)*\)' "$page" | tr -d '()' | sed "s|^\([0-9]*:\)|$page:\1FORMAT.md |" ;;
        *) grep -noE '(^|[ (])sections? [0-9]+((,| and| to) [0-9]+)*' "$page" | sed "s|^\([0-9]*:\).*sections\{0,1\} |$page:\1${page##*/} |" ;;
        esac
    done
} | awk 'NR == FNR { if (NF == 2) section[$1, $2]; else known[$1]; next }
    {
        place = $0
        sub(/:[^:]*$/, "", place)
        page = $1
        sub(/.*:/, "", page)
        if (!(page in known)) next
        for (i = 2; i <= NF; i++) {
            number = $i
            sub(/,$/, "", number)
            if (number ~ /^[0-9]/ && !((page, number) in section)) print place ": cites " page " " number ", which does not exist"
        }
    }' "$problems.long" - >>"$problems"

if [ -s "$problems" ]; then
    cat "$problems"
    exit 1
fi
