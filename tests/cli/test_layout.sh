# Where outputs go, what is said of those that exist, and of names that were not meant so: folders, filters, swapped sides.
. "${0%/*}/steps.sh"
text=$DATA/other/text.txt grey=$DATA/pnm/landscape_grey_8bit.pgm
files() # FOLDER: all files below it in one line
{
    (cd "$1" && find . -type f | sort | tr '\n' ' ')
}

# --- An output that exists: of this file, or what may have no other copy. Then -f is not offered.
warns() # STATUS COMMAND...: warns, and does not offer -f
{
    status=$1
    shift
    refuses "$status" 'only cop.*: rename it, or name another\|is not a .tsr of one file: rename it, or name another' "$@"
    grep -q -e ' -f' "$err" && bad "-f is offered for what may be an only copy: $(cat "$err")"
}
mkdir set && for i in 1 2 3 4 5; do echo $i >set/$i; done
run 0 "$TESSERA" compress -q -r set -o made
refuses 41 'made/1.tsr exists and is of this file; --update passes over it, -f makes it again$' "$TESSERA" compress set/1 -o made/1.tsr
run 75 "$TESSERA" compress -q -r set -o made
grep -q '^tessera: 2 more outputs exist; --update passes over them, -f makes them again$' "$err" || bad "many that exist: $(cat "$err")"
# The original is another file now.
cp -Rp set kept && for i in 1 2 3 4 5; do echo "new $i" >set/$i; done
warns 41 "$TESSERA" compress set/1 -o made/1.tsr
warns 41 "$TESSERA" compress --rm set/1 -o made/1.tsr
warns 41 "$TESSERA" compress --rm --update set/1 -o made/1.tsr
run 75 "$TESSERA" compress -q -r --rm set -o made
grep -q '^tessera: 2 more outputs exist and may be the only copies of what they hold$' "$err" || bad "many only copies: $(cat "$err")"
grep -q -e ' -f' "$err" && bad "-f is offered for only copies: $(cat "$err")"
[ "$(files set)" = './1 ./2 ./3 ./4 ./5 ' ] || bad "--rm has removed: $(files set)"
# Of the same time and size, but other bytes: --rm looks at them.
printf 'X\n' >set/1 && touch -r made/1.tsr set/1
warns 41 "$TESSERA" compress --rm --update=hash set/1 -o made/1.tsr
# A pipe, a file that is no .tsr, a series, another version of the format.
"$TESSERA" compress -q - -o made/1.tsr <"$text" 2>"$err"
[ $? -eq 41 ] && says 'may be the only copy' || bad "a pipe: $(cat "$err")"
echo mine >mine.tsr && warns 41 "$TESSERA" compress set/1 -o mine.tsr
warns 41 "$TESSERA" compress --update set/1 -o mine.tsr
run 0 "$TESSERA" compress -q -r --series series.tsr kept
warns 41 "$TESSERA" compress -r --series series.tsr kept
warns 41 "$TESSERA" compress --update set/1 -o series.tsr
warns 41 "$TESSERA" compress set/1 -o series.tsr
# decompress: an original that was edited since; a series' file; an export.
refuses 41 'kept/1 exists, with the size and time of what is in the .tsr; --update passes over it, -f overwrites it$' "$TESSERA" decompress made/1.tsr -o kept/1
cp -Rp kept edited && echo edited >edited/1
warns 41 "$TESSERA" decompress made/1.tsr -o edited/1
run 0 "$TESSERA" decompress -q series.tsr -o back
refuses 41 'back/2 exists, with the size and time of' "$TESSERA" decompress series.tsr --member 2 -o back/2
echo edited >back/2
warns 41 "$TESSERA" decompress series.tsr --member 2 -o back/2
run 75 "$TESSERA" decompress -q series.tsr -o back
[ "$(grep -c 'only copy' "$err")" -eq 1 ] && [ "$(grep -c 'size and time' "$err")" -eq 3 ] && grep -q '^tessera: 1 more output exists; --update passes over it, -f makes it again$' "$err" || bad "some that exist: $(cat "$err")"
# decompress --update goes on: it passes over what is there, makes what is not, and replaces nothing else.
rm back/1
run 75 "$TESSERA" decompress --json --update series.tsr -o back
[ "$(fields --summary files failed current)" = "5${tab}1${tab}3" ] && says 'back/2 exists and may be the only copy' || bad "decompress --update: $(tail -n 1 "$out")"
cmp -s back/1 kept/1 && [ "$(cat back/2)" = edited ] || bad "decompress --update: $(ls back)"
run 0 "$TESSERA" decompress --json -f --update series.tsr -o back
[ "$(fields --summary files failed current)" = "5${tab}0${tab}4" ] && cmp -s back/2 kept/2 || bad "decompress -f --update: $(tail -n 1 "$out")"
run 0 "$TESSERA" decompress --update series.tsr -o back
[ "$(head -n 1 "$out")" = '5 files done before' ] && [ "$(tail -n 1 "$out")" = PASS ] || bad "decompress --update of all: $(cat "$out")"
touch back/3 && refuses 41 'back/3 exists and may be' "$TESSERA" decompress --update series.tsr --member 3 -o back/3
run 0 "$TESSERA" decompress -q --update=hash series.tsr -o back
tr '[:print:]' x <kept/3 | head -c "$(bytes_of kept/3)" >back/3 && touch -r kept/3 back/3
refuses 41 'back/3 exists' "$TESSERA" decompress --update=hash series.tsr --member 3 -o back/3
run 0 "$TESSERA" decompress -q -r made -o singly && rm singly/1 && run 0 "$TESSERA" decompress --json -r --update made -o singly
[ "$(fields --summary failed current)" = "0${tab}$(($(find singly -type f | wc -l) - 1))" ] || bad "decompress -r --update: $(tail -n 1 "$out")"
refuses 2 'update' "$TESSERA" decompress --update series.tsr --member 3 -o -
# Reports and manifests are written over no other file.
echo mine >page.html
refuses 41 'page.html exists and is no report of tessera: name another file$' "$TESSERA" compress set/2 -o other.tsr --report page.html
# Many inputs with one output are no outputs that exist.
run 75 "$TESSERA" compress -q "$PWD/set/1" "$PWD/kept/1" "$PWD/kept/1" "$PWD/kept/1" "$PWD/kept/1" -o one
[ "$(grep -c 'another input of this run has the same output' "$err")" -eq 3 ] && grep -q '^tessera: 1 more input has an output, or a name in the manifest, that is taken' "$err" || bad "one output of many: $(cat "$err")"
grep -q -e ' -f' "$err" && bad "-f is offered where inputs have one output: $(cat "$err")"
rm -rf ./*

# --- A file whose output is the folder of other outputs: it fails, by any number of threads, and nothing else does.
mkdir -p c/x.dcm.tsr c/y.tsr/sub && echo x >c/x.dcm && echo f >c/x.dcm.tsr/f && echo y >c/y && echo z >c/x.dcm.tsr-z && echo w >c/x.dcm.ts
for threads in 1 2 8; do
    rm -rf co && run 75 "$TESSERA" compress -q -r c -o co -T $threads
    grep -q '^tessera: c/x.dcm: its output co/x.dcm.tsr is a file, and co/x.dcm.tsr/f.tsr needs a folder of that name; rename one of the two inputs, or leave one out with --exclude$' "$err" || bad "a folder's name: $(cat "$err")"
    grep -q '^tessera: c/y: its output co/y.tsr is a file, and co/y.tsr/sub/ needs a folder of that name' "$err" || bad "an empty folder's name: $(cat "$err")"
    [ "$(wc -l <"$err")" -eq 2 ] && [ "$(files co)" = './x.dcm.ts.tsr ./x.dcm.tsr-z.tsr ./x.dcm.tsr/f.tsr ' ] || bad "beside a folder's name: $(files co) $(cat "$err")"
done
rmdir c/y.tsr/sub && rm -rf co && run 75 "$TESSERA" compress -q -r c -o co
grep -q '^tessera: c/y: its output co/y.tsr is a file, and co/y.tsr/ needs a folder' "$err" || bad "an empty folder's name: $(cat "$err")"
rm -rf co && run 0 "$TESSERA" compress -q -r c -o co --exclude '*.tsr/' && [ -f co/x.dcm.tsr ] || bad "the way out"
run 0 "$TESSERA" compress -q c/y --series co/x.dcm/x.tsr && run 75 "$TESSERA" decompress -q -r co -o back
says 'co/x.dcm.tsr: its output back/x.dcm is a file, and back/x.dcm/.* needs a folder of that name'
rm -rf ./*

# --- Several files and an OUT that looks like a file.
mkdir set && cp "$grey" set/a.pgm && cp "$text" set/b.txt
each='each input makes a .tsr of its own, and one.tsr would be a folder of them: --series one.tsr makes one file of all, -o one.tsr/ the folder$'
refuses 2 "$each" "$TESSERA" compress set/a.pgm set/b.txt -o one.tsr
refuses 2 "$each" "$TESSERA" compress -r set -o one.tsr
ls set/* >list && refuses 2 "$each" "$TESSERA" compress --files-from list -o one.tsr
for name in x.TSR x.dcm x.PNG x.zip x.tar.gz x.nii; do
    refuses 2 "would be a folder of them: .*-o $name/" "$TESSERA" compress -r set -o $name
done
run 0 "$TESSERA" compress -q -r set -o one.tsr/
[ "$(files one.tsr)" = './a.pgm.tsr ./b.txt.tsr ' ] || bad "a folder with the slash: $(files one.tsr)"
run 0 "$TESSERA" compress -q -f set/a.pgm set/b.txt -o one.tsr # a folder that is there
run 0 "$TESSERA" compress -q -r set -o v1.2 && [ -d v1.2 ] || bad "a folder with a dot in its name"
refuses 2 'several files are made, and x.pgm would be a folder of them: -o x.pgm/ makes one$' "$TESSERA" decompress -r v1.2 -o x.pgm
run 0 "$TESSERA" compress -q -r --series s.tsr set
refuses 2 'and x.pgm would be a folder of them' "$TESSERA" decompress s.tsr -o x.pgm
run 0 "$TESSERA" decompress -q s.tsr --member a.pgm -o x.pgm && cmp x.pgm "$grey" || bad "one file of a series to one name"
run 0 "$TESSERA" decompress -q s.tsr -o y.pgm/ && [ -f y.pgm/b.txt ] || bad "a series to a folder with a slash"
rm -rf ./*

# --- Several folders: each is a folder of OUT, as it was named.
mkdir -p A/empty B/deep in/A in/B && echo 1 >A/x && echo 2 >B/x && echo 3 >B/deep/y && echo 4 >in/A/x && echo 5 >in/B/x && echo 6 >f
run 0 "$TESSERA" compress -q -r A B f -o out
[ "$(files out)" = './A/x.tsr ./B/deep/y.tsr ./B/x.tsr ./f.tsr ' ] && [ -d out/A/empty ] || bad "two folders and a file: $(files out)"
run 0 "$TESSERA" verify -q A out/A
run 0 "$TESSERA" verify -q B out/B
run 0 "$TESSERA" compress --update --json -r A B f -o out
[ "$(fields --summary current files)" = "4${tab}4" ] || bad "--update of two folders: $(tail -n 1 "$out")"
printf 'A\nB\nf\n' >list
run 0 "$TESSERA" compress -q -r --files-from list -o listed && [ "$(files listed)" = "$(files out)" ] || bad "a list of folders: $(files listed)"
for i in 1 2 3; do run 0 "$TESSERA" compress -q -r --shard $i/3 A B f -o shards; done
[ "$(files shards)" = "$(files out)" ] || bad "shards of two folders: $(files shards)"
run 0 "$TESSERA" decompress -q -r out -o back
for name in A/x B/x B/deep/y f; do cmp $name back/$name || bad "$name does not come back"; done
run 0 "$TESSERA" decompress -q -r out/A out/B -o both && [ "$(files both)" = './out/A/x ./out/B/deep/y ./out/B/x ' ] || bad "two folders of an archive: $(files both)"
run 0 "$TESSERA" compress -q -r in/A in/B -o nested && [ "$(files nested)" = './in/A/x.tsr ./in/B/x.tsr ' ] || bad "folders below a folder: $(files nested)"
run 0 "$TESSERA" compress -q -r "$PWD/A" ./B/ -o mixed && [ "$(files mixed)" = './A/x.tsr ./B/deep/y.tsr ./B/x.tsr ' ] || bad "an absolute name: $(files mixed)"
(cd in/A && run 0 "$TESSERA" compress -q -r .. ../../B -o "$WORK/box/dots")
[ "$(files dots)" = './B/deep/y.tsr ./B/x.tsr ./in/A/x.tsr ./in/B/x.tsr ' ] || bad "dots alone: $(files dots)"
refuses 2 '^tessera: A and .*/in/A would both be A in two: name their common folder, or give each an output of its own$' "$TESSERA" compress -r A "$PWD/in/A" -o two
refuses 2 'would both be A in two.tsr: name their common folder' "$TESSERA" compress -r A "$PWD/in/A" --series two.tsr
run 0 "$TESSERA" compress -q -r A B --series both.tsr
"$TESSERA" info --json both.tsr >"$out" && [ "$(fields member | tr '\n' ' ')" = 'A/x B/deep/y B/x ' ] || [ "$(fields member | grep -c .)" -ge 3 ] || bad "a series of two folders: $(cat "$out")"
run 0 "$TESSERA" decompress -q both.tsr -o series && cmp series/B/x B/x && cmp series/A/x A/x || bad "a series of two folders comes back as $(files series)"
# One folder is OUT itself; beside the inputs nothing changes.
run 0 "$TESSERA" compress -q -r B -o single && [ "$(files single)" = './deep/y.tsr ./x.tsr ' ] || bad "one folder: $(files single)"
run 0 "$TESSERA" compress -q -r A B && [ "$(files B)" = './deep/y ./deep/y.tsr ./x ./x.tsr ' ] || bad "beside the inputs: $(files B)"
rm -rf ./*

# --- verify with swapped sides says so, in one sentence.
mkdir -p set/deep && for i in 1 2 3 4 5 6 7 8 9; do echo $i >set/$i; done && cp "$text" set/deep/t
run 0 "$TESSERA" compress -q -r set -o made && cp made/1.tsr set && run 0 "$TESSERA" compress -q -r --series s.tsr set
swapped='the originals come first, and \(made\|s.tsr\|made/1.tsr\) is the archive: tessera verify [^ ]* [^ ]* would compare them$'
refuses 2 "$swapped" "$TESSERA" verify made set
refuses 2 "$swapped" "$TESSERA" verify --json made set
rm set/1.tsr
for pair in 'made set' 's.tsr set' 'made/1.tsr set/1'; do
    # shellcheck disable=SC2086 # words
    refuses 2 "$swapped" "$TESSERA" verify $pair
done
run 0 "$TESSERA" verify -q set made
# .tsr files that are originals are no sign of it.
mkdir tsr && cp made/1.tsr tsr && run 0 "$TESSERA" compress -q tsr/1.tsr -o tsr_made/1.tsr.tsr && run 0 "$TESSERA" verify -q tsr tsr_made
mkdir void && run 22 "$TESSERA" verify set void
says 'no .tsr files here'

# --- cat -r: the originals of a folder, in order.
run 2 "$TESSERA" cat made
says 'made: it is a folder; add -r to take what is in it'
mkdir folder && run 2 "$TESSERA" compress folder # a name that is a word of the sentence
says 'folder: it is a folder; add -r to take what is in it'
rmdir folder
"$TESSERA" cat -r made >all 2>"$err" || bad "cat -r: $(cat "$err")"
cat set/[1-9] set/deep/t | cmp - all || bad "cat -r writes other bytes"
"$TESSERA" cat -r made --exclude deep/ --include '[12].tsr' --exclude '*' >some 2>"$err" || bad "cat -r with filters: $(cat "$err")"
cat set/1 set/2 | cmp - some || bad "cat -r with filters writes other bytes"
echo made/3.tsr | "$TESSERA" cat --files-from - | cmp - set/3 || bad "cat --files-from"
run 22 "$TESSERA" cat -r void
cp made/5.tsr whole && changes_byte made/5.tsr 20
"$TESSERA" cat -r made >broken 2>"$err" && bad "cat -r passes over a damaged file"
grep -q '^tessera: made/5.tsr' "$err" || bad "cat -r does not name a damaged file: $(cat "$err")"
mv whole made/5.tsr

# --- A filter that matches nothing is said; the status stays.
run 0 "$TESSERA" compress -q -r set -o f1 --exclude 'set/deep/*'
says "^tessera: --exclude 'set/deep/\*' matched nothing; globs are matched below the named folder: did you mean --exclude '/deep/\*'?$"
run 0 "$TESSERA" compress -q -r set -o f2 --exclude '/deep/*'
[ -s "$err" ] && bad "a filter that matches is said: $(cat "$err")"
[ -e f1/deep/t.tsr ] && [ ! -e f2/deep/t.tsr ] || bad "filters: $(files f1) $(files f2)"
for command in 'test -r made' 'info -r made' 'decompress -r made -o f3' 'verify set made' 'cat -r made' 'compress -n -r set' 'compress -r set --series f4.tsr' 'export -r made --to native -o f5' 'compare -r set'; do
    # shellcheck disable=SC2086 # words
    TESSERA_RIVALS=$WORK/no_such_program "$TESSERA" $command --exclude '*.zip' >"$out" 2>"$err"
    grep -q "^tessera: --exclude '\*.zip' matched nothing$" "$err" || bad "$command: $(cat "$err")"
done
run 0 "$TESSERA" test -q -r "$PWD/made/" --exclude 'made/1.tsr'
says "did you mean --exclude '/1.tsr'?$"
run 22 "$TESSERA" test -r made --include '*.dmc' --exclude '*'
grep -q "^tessera: --include '\*.dmc' matched nothing$" "$err" || bad "an include of nothing: $(cat "$err")"
run 0 "$TESSERA" test -q -r made --include '[12].tsr' --exclude 't*' --exclude '1.tsr'
says "^tessera: --exclude '1.tsr' changes nothing: an earlier --include or --exclude matches the same names$"
run 0 "$TESSERA" test -q -r made --include '*/' --include '*.tsr' --exclude '*'
[ -s "$err" ] && bad "rules for all names are said: $(cat "$err")"
rm -rf ./*

# --- A report that is not complete is no file after a signal.
mkdir set && mkfifo pipe && for i in $(seq 20); do echo $i >set/$i; done
open_pipe $FEW_LINES
"$TESSERA" compress -T 1 --json -r set -o made --report page.html >pipe 2>"$err" 3<&- &
process=$!
awaits $process [ -e page.html.part ] || bad "the report's part is not there while the run is at work: $(cat "$err")"
kill -INT $process && wait $process
[ $? -eq 130 ] || bad "not ended by the signal: $(cat "$err")"
[ -e page.html.part ] && bad "a report of $(bytes_of page.html.part) bytes is left by a signal"
exec 3<&-
if [ -x "$BIN/tessera-rivals" ]; then
    "$TESSERA" compare "$DATA"/dicom/ct/* "$DATA"/dicom/*/*.dcm --html c.html --csv c.csv >"$out" 2>"$err" &
    process=$!
    awaits $process [ -e c.csv.part ] # it may have ended when the signal comes: then no part is there, either
    kill -TERM $process && wait $process
    for part in c.html.part c.csv.part; do [ -e $part ] && bad "$part is left by a signal"; done
fi
rm -rf ./*

# --- Small files in large blocks.
mkdir tiny && for i in $(seq 400); do printf 'P5\n4 4\n255\n%016d' $i >tiny/$i.pgm; done
run 0 "$TESSERA" compress -r tiny -o made
if [ "$(du -sk made | cut -f 1)" -ge 1200 ]; then # not where small files take little
    grep -q '^  0.0 MB of .tsr files take [1-9][0-9.]* MB of blocks on the disk; --series OUT.tsr makes one file of them$' "$out" || bad "nothing is said of blocks: $(tail -n 2 "$out")"
fi
run 0 "$TESSERA" compress -r -f tiny -o made --rm
grep -q 'blocks' "$out" && bad "a series is advised where --rm excludes it"
mkdir large && for i in $(seq 20); do head -c 200000 /dev/urandom >large/$i; done
run 0 "$TESSERA" compress -r large -o large_made
grep -q 'blocks' "$out" && bad "a series is advised for large files: $(cat "$out")"
rm -rf ./*

# --- Progress in narrow terminals: whole parts, never more columns than there are; hours.
if can terminal && command -v stty >/dev/null; then
    name=$(printf '\345\220\215\345\211\215\346\202\243\350\200\205\347\224\273\345\203\217\345\220\215\345\211\215\346\202\243\350\200\205\347\224\273\345\203\217')
    mkdir wide && for i in $(seq 12); do cp "$DATA/dicom/cr/chest.dcm" "wide/$name$i.dcm"; done
    lead=$(printf '[\343-\357]') rest=$(printf '[\200-\277]') escape=$(printf '\033')
    for columns in 12 40 60 100; do
        TERM=xterm script -qec "stty cols $columns; '$TESSERA' compress -9 -T 1 -r -f wide -o made" /dev/null >screen </dev/null
        # Characters of three bytes take two columns here.
        tr '\r' '\n' <screen | LC_ALL=C sed -e "s/$escape\[K//" -e "s/$lead$rest$rest/##/g" | grep ' files' | grep -v ' -> ' >lines
        [ -s lines ] || bad "no progress on $columns columns: $(od -c screen | head)"
        awk -v most="$columns" 'length($0) >= most { print length($0) ": " $0 }' lines | grep . && bad "progress wraps on $columns columns"
        sed 's/, wide.*//' lines | grep -vE '^[0-9]+/12 files(, [0-9.]+ of [0-9.]+ MB)?(, [0-9.]+ MB/s)?(, ratio [0-9.]+)?(, [0-9]+ failed)?(, [0-9]+:[0-9][0-9] left)?$' >cut
        [ -s cut ] && bad "a part of the progress is cut on $columns columns: $(head -n 2 cut)"
    done
    rm -rf ./*
fi

# --- Without /proc the module of DICOM is found all the same; where it is missing, that is said once.
mkdir set && for i in 1 2 3 4; do cp "$DATA/dicom/ct/slice_0$i.dcm" set; done
if "$TESSERA" compress -q -r --qp 20 set -o made 2>/dev/null; then
    # A sanitizer needs /proc, and reads its options from there.
    if [ "$(id -u)" -eq 0 ] && ! grep -aq __asan_init "$TESSERA" && unshare --mount sh -c 'mount -t tmpfs none /proc' 2>/dev/null; then
        unshare --mount sh -c 'mount -t tmpfs none /proc && "$@"' sh "$TESSERA" compress -q -r --qp 20 set -o without >"$out" 2>"$err" || bad "without /proc: $(cat "$err")"
        diff -r made without || bad "without /proc: other bytes"
        PATH=$BIN:$PATH unshare --mount sh -c 'mount -t tmpfs none /proc && tessera info --dicom made/slice_01.dcm.tsr' >"$out" 2>"$err" || bad "found by PATH, without /proc: $(cat "$err")"
        [ ! -x "$BIN/tessera-rivals" ] || unshare --mount sh -c 'mount -t tmpfs none /proc && "$@"' sh "$TESSERA" compare set/slice_01.dcm 2>&1 | grep -q 'was not found' && bad "tessera-rivals is not found without /proc"
    fi
    if ldd "$TESSERA" | grep -q libtessera; then :; else
        cp "$TESSERA" alone
        if ! ./alone info --dicom made/slice_01.dcm.tsr >/dev/null 2>&1; then # else it is installed
            run 0 ./alone compress -q -r --qp 20 set -o missing # which needs no module
            diff -r made missing || bad "without the module: other bytes"
            run 75 ./alone info --dicom made/*
            [ "$(grep -c 'module for DICOM' "$err")" -eq 2 ] && grep -q '^tessera: 3 more files need Tessera.s module for DICOM$' "$err" || bad "a missing module in info: $(cat "$err")"
        fi
    fi
fi
finish
