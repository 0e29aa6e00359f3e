# Manual pages, and what tells file(1) and desktops of .tsr files. Arguments as all scripts, then the root of the sources.
. "${0%/*}/steps.sh"
ROOT=$4 PAGES=$BIN/../pages
for tool in mandoc man file update-mime-database; do
    command -v $tool >/dev/null && continue
    echo "skipped: $tool is missing (Debian: mandoc man-db file shared-mime-info)"
    exit 77
done

for page in tessera.1 tsr.5 libtessera.3; do
    mandoc -T lint "$PAGES/$page" >lint || bad "mandoc -T lint $page: $(cat lint)"
    man --warnings -l "$PAGES/$page" >/dev/null 2>warnings
    [ -s warnings ] && bad "man -l $page: $(cat warnings)"
    mandoc -T utf8 -O width=200 "$PAGES/$page" | sed 's/.\x08//g' | tr -s ' ' >"$page.txt"
done
grep -q "tessera $("$TESSERA" --version | sed -n '1s/tessera //p')" tessera.1.txt || bad "tessera.1 is of another version"

# has PAGE WORD: the page has it as a whole word.
has()
{
    grep -qwF -e "$2" "$1.txt" || bad "$1 does not have $2"
}
# All verbs and options of the help, and all that the header declares.
for verb in $("$TESSERA" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    has tessera.1 "tessera $verb"
    for option in $("$TESSERA" help "$verb" | sed -n 's/^  [-a-zA-Z0-9 ,]*\(--[a-z-]*\).*/\1/p'); do has tessera.1 "$option"; done
done
sed -n -e 's/^TSR_API [a-z0-9_ *]*[ *]\(tsr_[a-z0-9_]*\)(.*/\1/p' -e 's/^static inline [a-z0-9_ *]*[ *]\(tsr_[a-z0-9_]*\)(.*/\1/p' \
    "$ROOT/app/tessera.h" | sort -u >functions
sed -n -e 's/^\(struct tsr_[a-z0-9_]*\)[ ;].*/\1/p' -e 's/^\(enum tsr_[a-z0-9_]*\) {.*/\1/p' \
    -e 's/^#define \(TSR_[A-Z0-9_]*\)[ (].*/\1/p' "$ROOT/app/tessera.h" | grep -v '^TSR_API$\|^TSR_SIZED$' | sort -u >types
[ "$(wc -l <functions)" -ge 50 ] && [ "$(wc -l <types)" -ge 40 ] || bad "tessera.h was not read: $(wc -l functions types)"
while read -r name; do grep -q "[ *]$name(" libtessera.3.txt || bad "libtessera.3 does not have $name()"; done <functions
while read -r name; do has libtessera.3 "$name"; done <types
grep -n 'TSR_API\|return source;\|/\*.*/\*' libtessera.3.txt && bad "the header is not understood"
for status in $(sed -n 's/^ *TSR_[A-Z_]* = \([0-9]*\),* *\/\*.*/\1/p' "$ROOT/app/tessera.h" | head -14); do has tessera.1 "$status"; done

# file(1), with the fragment alone.
magic=$ROOT/app/cli/pages/magic
cp "$DATA/pnm/ramp_16bit.pgm" ramp.pgm
cp "$DATA/png/ct_grey16.png" screen.png
echo text >text.txt
run 0 "$TESSERA" compress -q ramp.pgm screen.png text.txt
run 0 "$TESSERA" compress -q --qp 20 ramp.pgm -o lossy.tsr
run 0 "$TESSERA" compress -q --series series.tsr ramp.pgm text.txt
# is_said FILE TEXT
is_said()
{
    said=$(file -b -m "$magic" "$1" 2>&1)
    [ "$said" = "Tessera compressed file, version 4, $2" ] || bad "file: $1: $said"
    [ "$(file -b --mime-type -m "$magic" "$1" 2>&1)" = application/x-tessera ] || bad "the media type of $1"
}
is_said ramp.pgm.tsr PNM
is_said screen.png.tsr PNG
is_said text.txt.tsr stored
is_said lossy.tsr 'PNM, with loss'
is_said series.tsr 'a series of files'
file -b -m "$magic" ramp.pgm | grep -q Tessera && bad "file: ramp.pgm is no .tsr"

# The database of media types.
mkdir -p mime/packages
cp "$ROOT/app/cli/pages/tessera.xml" mime/packages
XDG_DATA_DIRS=$PWD update-mime-database "$PWD/mime" >log 2>&1 || bad "update-mime-database: $(cat log)"
[ -s log ] && bad "update-mime-database: $(cat log)"
grep -qx '50:application/x-tessera:\*\.tsr' mime/globs2 || bad "no glob of the media type"
grep -aq '60:application/x-tessera' mime/magic || bad "no magic of the media type"
finish
