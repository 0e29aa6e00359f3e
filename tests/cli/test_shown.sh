# What a reader does not see is shown as an escape: in sentences, summaries, listings, JSON lines, logs, tables and pages.
. "${0%/*}/steps.sh"
text=$DATA/other/text.txt dicom=$DATA/dicom/ct/slice_01.dcm

# Names: raw bytes of C1, C1 in UTF-8, what turns the direction, ends of lines, marks without a width, no UTF-8, ESC.
mkdir in
for name in 'raw\23331mred' 'c1\302\233x' 'rlo\342\200\256gnp.exe' 'lri\342\201\246x' 'lrm\342\200\216x' 'alm\330\234x' 'line\342\200\250x' 'par\342\200\251x' \
    'zero\342\200\213x' 'joiner\342\201\240x' 'bom\357\273\277x' 'shy\302\255x' 'tag\363\240\201\201x' 'not\377\376utf' 'cut\342\200' 'over\300\257x' 'surrogate\355\240\200x' 'esc\033[31m' 'del\177x' 'umlaut\303\274'; do
    cp "$text" "in/$(printf "$name")"
done
# is_plain WHAT FILE: none of these characters is in the file, which is UTF-8. is_clean: and the umlaut is in it.
hidden=$(printf '[\001-\010\013-\037\177]|\302[\200-\237]|\302\255|\330\234|\342\200[\213-\217\250-\256]|\342\201[\240-\257]|\357\273\277|\363\240|\377|\376|\300|\355\240')
is_plain()
{
    LC_ALL=C grep -aqE "$hidden" "$2" && bad "$1 has hidden characters: $(LC_ALL=C grep -aE "$hidden" "$2" | head -n 2 | od -c | head -n 6)"
    iconv -f UTF-8 -t UTF-8 "$2" >/dev/null 2>&1 || bad "$1 is not UTF-8"
    [ -s "$2" ] || bad "$1: nothing is said"
}
is_clean()
{
    is_plain "$1" "$2"
    grep -aq "$(printf 'umlaut\303\274')" "$2" || bad "$1 does not have the umlaut: $(head -n 5 "$2")"
}
run 0 "$TESSERA" compress -r -v in -o out --log log --report page.html --identify --manifest sums
is_clean 'the summary' "$out"
is_clean 'the log' log
sed '/<script>/,$d' page.html >seen && is_clean 'the report' seen
for escape in 'raw\\x9b31mred' 'c1\\u009bx' 'rlo\\u202egnp' 'lri\\u2066x' 'line\\u2028x' 'zero\\u200bx' 'bom\\ufeffx' 'shy\\u00adx' 'tag\\U000e0041x' 'not\\xff\\xfeutf' 'cut\\xe2\\x80' 'over\\xc0\\xaf' 'surrogate\\xed\\xa0\\x80x' 'esc\\x1b\[31m' 'del\\x7fx'; do
    grep -q "in/$escape" "$out" || bad "not shown: $escape"
done
grep -q 'rlo\\u202egnp.exe' page.html || bad "the page does not show the mark as an escape"
run 0 "$TESSERA" compress -n -v -r in -o dry
is_clean 'the dry run' "$out"
run 75 "$TESSERA" compress -r in -o out
is_plain 'sentences of outputs that exist' "$err"
run 75 "$TESSERA" test in/* out/rlo* "$(printf 'umlaut\303\274\342\200\256')" "$(printf 'umlaut\303\274\233')"
is_clean 'sentences on stderr' "$err"
run 0 "$TESSERA" test -v -r out
is_clean 'test -v' "$out"
run 0 "$TESSERA" info -r out
is_clean 'info' "$out"
run 0 "$TESSERA" compress -q --series s.tsr -r in
run 0 "$TESSERA" info s.tsr
is_clean 'info of a series' "$out"
run 0 "$TESSERA" decompress -v s.tsr -o back
is_clean 'decompress -v' "$out"
diff -r in back || bad "a name does not come back"
# JSON is escaped, and means the same.
run 0 "$TESSERA" compress -f -r --json in -o out
is_clean 'JSON' "$out"
grep -q 'rlo\\u202egnp.exe' "$out" && grep -q 'tag\\udb40\\udc41x' "$out" || bad "JSON: $(grep -a 'rlo\|tag' "$out" | head -n 2)"
"$BIN/tsr_read_json" file <"$out" | grep -q "$(printf 'rlo\342\200\256gnp.exe')" || bad "a name in JSON is another one: $("$BIN/tsr_read_json" file <"$out")"
cp "$out" run.json
run 0 "$TESSERA" compress -f -r --progress json in -o out
is_plain 'JSON of the progress' "$err"
rm -r "out/$(printf 'rlo\342\200\256gnp.exe.tsr')" && mkdir "out/$(printf 'rlo\342\200\256gnp.exe.tsr')"
"$TESSERA" compress -f -r --json in -o out >failed.json 2>/dev/null
run 75 "$TESSERA" summary failed.json
is_plain summary "$out"
# A name of spaces alone is seen.
mkdir spaces && cp "$text" 'spaces/ ' && cp "$text" 'spaces/   ' && cp "$text" spaces/b
run 0 "$TESSERA" compress -q -r spaces --series spaces.tsr
run 0 "$TESSERA" test -v spaces.tsr
grep -qx 'ok spaces.tsr: \\x20\\x20\\x20' "$out" || bad "spaces in lines: $(cat "$out")"
truncate -s $(($(bytes_of spaces.tsr) - 70)) spaces.tsr && run 75 "$TESSERA" test spaces.tsr
grep -q '^tessera: \\x20 in spaces.tsr: ' "$err" || bad "spaces in a series: $(cat "$err")"
cd spaces || exit 2
run 21 "$TESSERA" test ' '
says '^tessera: \\x20 is not a .tsr file$'
run 20 "$TESSERA" compress '  '
says '^tessera: \\x20\\x20: '
run 75 "$TESSERA" test ' ' '   '
grep -qx 'tessera: \\x20\\x20\\x20 is not a .tsr file' "$err" || bad "spaces among several: $(cat "$err")"
cd .. || exit 2
# What is typed.
for word in '\233' '\342\200\256' '\033[2J'; do
    word=$(printf "$word")
    for command in "$word" "compress --$word x" "compress -$word" "compress -T $word x" "compress --size $word x" "compress --gpu $word x" "compress --qp $word x" "compress --update=$word x" \
        "export --to $word x" "compress -r --exclude x$word in -o o2"; do
        # shellcheck disable=SC2086 # words
        "$TESSERA" $command >"$out" 2>"$err" </dev/null
        is_plain "what is said of '$command'" "$err"
    done
done

# Strings of a DICOM header: a patient's name with such characters.
if "$TESSERA" compress -q "$dicom" -o ct.tsr && "$TESSERA" info --dicom ct.tsr >listing 2>/dev/null; then
    found=$(LC_ALL=C grep -abo 'Phantom^Synthetic' "$dicom" | head -n 1 | cut -d: -f1)
    for bytes in '\342\200\256' '\23331' '\033[3' '\302\2331' '\357\273\277'; do
        cp "$dicom" marked.dcm && printf "$bytes" | dd of=marked.dcm bs=1 seek=$((found + 4)) conv=notrunc 2>/dev/null
        run 0 "$TESSERA" compress -q -f marked.dcm
        run 0 "$TESSERA" info --dicom marked.dcm.tsr
        is_plain "info --dicom with $bytes" "$out"
        grep -q 'Phan\(\\x9b31\|\\u009b1\|\\x1b\[3\|\\u202e\|\\ufeff\)' "$out" || bad "info --dicom does not show $bytes as an escape: $(grep -a Phan "$out" | head -n 2)"
        run 0 "$TESSERA" info --dicom --json marked.dcm.tsr
        is_plain "info --dicom --json with $bytes" "$out"
    done
fi

# compare: its table on the terminal and its CSV.
mkdir few && cp "$DATA/pnm/landscape_grey_8bit.pgm" "few/$(printf 'rlo\342\200\256x.pgm')"
TESSERA_RIVALS=$WORK/no_such_program run 0 "$TESSERA" compare -v --identify few/* --csv few.csv --html few.html
sed '/<script>/,$d' few.html >seen
for file in "$out" few.csv seen; do is_plain "compare: $file" "$file"; done
grep -q 'rlo\\u202ex' few.csv || bad "few.csv: $(cat few.csv)"
finish
