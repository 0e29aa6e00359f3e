#!/bin/sh
# The rules for dependences between rooms (top folders), no circles between folders, and only integers in the core.
# Usage: test_rooms.sh ROOT
set -u
cd "$1" || exit 2
problems=$(mktemp) || exit 2
trap 'rm -f "$problems" "$problems.includes"' EXIT
: >"$problems.includes"

sources() { # all sources below the folders named
    find "$@" -type f \( -name '*.h' -o -name '*.c' -o -name '*.cc' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) |
        LC_ALL=C sort
}

# A source without its comments. Literals and lines stay.
plain() {
    awk '{
        line = $0; out = ""
        while (line != "") {
            if (inside) {
                end = index(line, "*/")
                if (!end) { line = ""; break }
                line = substr(line, end + 2); inside = 0; out = out " "; continue
            }
            if (match(line, /"([^"\\]|\\.)*"|\/\*|\/\//) == 0) { out = out line; break }
            token = substr(line, RSTART, RLENGTH)
            out = out substr(line, 1, RSTART - 1)
            rest = substr(line, RSTART + RLENGTH)
            if (token == "//") break
            if (token == "/*") inside = 1
            else out = out token
            line = rest
        }
        print out
    }' "$1"
}

# The path, from the root, of the file that $1 includes as $2. Nothing if the file is not in this repository.
resolve() {
    for try in "$(dirname "$1")/$2" "$2" "app/$2" "testdata/$2"; do
        if [ -f "$try" ]; then
            realpath --relative-to=. "$try"
            return
        fi
    done
}

# check ROOM ALLOWED...: of this repository, sources in ROOM include only files in ALLOWED folders and ALLOWED files.
# Notes what includes what. A macro may stand for a name: lapped_form.h includes TSR_CHOOSE_TILE.
check() {
    room=$1
    shift
    [ -d "$room" ] || return
    for file in $(sources "$room"); do
        for name in $(plain "$file" | sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]\([^>"]*\)[>"].*/\1/p
            s/^[[:space:]]*#[[:space:]]*define[[:space:]]*[A-Za-z_0-9]*[[:space:]]*"\([^"]*\.[a-z]*\)"[[:space:]]*$/\1/p'); do
            target=$(resolve "$file" "$name")
            [ -n "$target" ] || continue
            echo "$file $target" >>"$problems.includes"
            good=no
            for allowed in "$@"; do
                case $target in
                "$allowed" | "$allowed"/*) good=yes ;;
                esac
            done
            [ $good = yes ] || echo "$file includes $target" >>"$problems"
        done
    done
}

check transform transform app/tessera.h
check entropy entropy transform app/tessera.h
check kernels kernels entropy transform app/tessera.h app/tessera_cli.h
check io io transform entropy/varint.h entropy/range_coder.h app/tessera.h app/tessera_cli.h
for part in library bench report rivals; do
    check app/$part app io kernels entropy transform
done
check app/cli app/cli app/report app/rivals app/tessera.h app/tessera_cli.h # a client of the library
check app/orthanc app/orthanc app/tessera.h # as any program with the installed header
check app/library/examples app/tessera.h
check tests/reference tests/reference
for name in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' app/tessera.h); do
    echo "app/tessera.h includes $name" >>"$problems"
done

# floor FOLDER ALLOWED...: of io, sources in FOLDER include only what is in ALLOWED folders and ALLOWED files.
floor() {
    folder=$1
    shift
    allowed=$* awk -v folder="$folder/" '
        BEGIN { count = split(ENVIRON["allowed"], name, " ") }
        index($1, folder) == 1 && index($2, "io/") == 1 {
            good = 0
            for (i = 1; i <= count; i++) good = good || $2 == name[i] || index($2, name[i] "/") == 1
            if (!good) print $1 " includes " $2
        }' "$problems.includes" >>"$problems"
}

floor io/bytes io/bytes
floor io/cipher io/bytes io/cipher
floor io/dicom io/bytes io/dicom io/input.h
floor io/nodes io/bytes io/dicom io/nodes io/output.h
floor io/recipe io/bytes io/nodes io/recipe io/input.h io/output.h
floor io/formats io/bytes io/dicom io/nodes io/recipe io/formats io/input.h io/output.h io/part.h
floor io/container io/bytes io/cipher/cipher.h io/container io/recipe/header.h io/recipe/standard.h io/input.h io/output.h

# What a recipe is like, io/recipe/header.h answers: its number is compared by io/recipe and io/formats alone.
for file in $(sources io/container app); do
    plain "$file" | grep -nE '[=!]=[[:space:]]*TSR_RECIPE_[A-Z]|TSR_RECIPE_[A-Z]+[[:space:]]*[=!]=|case[[:space:]]+TSR_RECIPE_' |
        sed "s|^|$file:|; s|\$| (asks for the number of a recipe)|" >>"$problems"
done

# Folders make no circle: no two of them include each other, be it through others. The circles of this list are known and
# are to go. One that is no longer there must leave the list.
known_circles='
io/formats io/formats/nifti io/formats/png
'
LC_ALL=C sort -u "$problems.includes" | known=$known_circles LC_ALL=C awk '
    function folder_of(file) { sub(/\/[^\/]*$/, "", file); return file }
    {
        from = folder_of($1); to = folder_of($2)
        if (!(from in number)) { number[from] = ++count; name[count] = from }
        if (!(to in number)) { number[to] = ++count; name[count] = to }
        if (from == to || (from, to) in first) next
        first[from, to] = $1 " includes " $2
        reaches[number[from], number[to]] = 1
    }
    END {
        for (k = 1; k <= count; k++)
            for (i = 1; i <= count; i++)
                if ((i, k) in reaches)
                    for (j = 1; j <= count; j++)
                        if ((k, j) in reaches) reaches[i, j] = 1
        lines = split(ENVIRON["known"], line, "\n")
        for (i = 1; i <= lines; i++) if (line[i] != "") stale[line[i]] = 1
        for (i = 1; i <= count; i++) {
            if (!((i, i) in reaches) || name[i] in told) continue
            members = 0
            for (j = 1; j <= count; j++)
                if ((i, j) in reaches && (j, i) in reaches) {
                    for (k = ++members; k > 1 && member[k - 1] > name[j]; k--) member[k] = member[k - 1]
                    member[k] = name[j]
                }
            circle = ""
            for (k = 1; k <= members; k++) {
                told[member[k]] = 1
                circle = circle (k > 1 ? " " : "") member[k]
            }
            if (circle in stale) { delete stale[circle]; continue }
            print "folders include each other in a circle: " circle
            for (k = 1; k <= members; k++)
                for (j = 1; j <= members; j++)
                    if ((member[k], member[j]) in first) print "    " first[member[k], member[j]]
        }
        for (circle in stale) print "no longer a circle of folders; take it out of known_circles: " circle
    }' >>"$problems"

# No floating point may affect the file. Not allowed: its types, numbers and headers; its vector instructions and types; the
# types and functions that CUDA has without a header; and, in assembly, PTX's types.
real_types='(^|[^A-Za-z0-9_])(float|double)(_t)?[0-9]*($|[^A-Za-z0-9_])|<(c?math|tgmath|fenv)(\.h)?>'
real_numbers='(^|[^A-Za-z0-9_.])[0-9]+\.[0-9]|(^|[^A-Za-z0-9_.])[0-9]+[eE][-+]?[0-9]'
real_vectors='_mm[0-9]*_([a-z0-9_]*_)?(cvtt?|cast)?(ps|pd|ss|sd|ph|sh|pbh)($|[^A-Za-z0-9])|__m(128|256|512)(d|h|bh)?($|[^A-Za-z0-9_])'
real_cuda='2(float|double|half)|__(float|double|half)|__[fdh](add|sub|mul|ma|fma|div|sqrt|rcp|rsqrt|dividef)[A-Za-z0-9_]*|(^|[^A-Za-z0-9_])r?sqrtf?\('
real_ptx='\.(f16|bf16|tf32|f32|f64|e4m3|e5m2)'
for file in $(sources transform entropy kernels); do
    plain "$file" | sed 's/"[^"]*"//g' | grep -nE "$real_types|$real_numbers|$real_vectors|$real_cuda" |
        sed "s|^|$file:|; s|\$| (floating point)|" >>"$problems"
    plain "$file" | grep -nE "\"[^\"]*$real_ptx" | sed "s|^|$file:|; s|\$| (floating point)|" >>"$problems"
done
for room in transform entropy kernels io app; do
    [ -n "$(sources "$room")" ] || echo "$room has no sources: is $1 the root?" >>"$problems"
done

if [ -s "$problems" ]; then
    cat "$problems"
    exit 1
fi
echo "the rooms keep to their rules"
