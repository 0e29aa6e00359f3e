# Originals that look damaged: they come back, every verb says what looks damaged, and --rm keeps them. And the reasons of
# what is stored.
. "${0%/*}/steps.sh"

whole=$(find "$DATA/dicom/ct" -name '*.dcm' | sort | head -1)
picture=$(find "$DATA" -name '*.png' -size +4k | sort | head -1)
mkdir set
cp "$whole" set/whole.dcm
cp "$picture" set/whole.png
head -c $(($(wc -c <"$whole") / 2)) "$whole" >set/cut.dcm
head -c $(($(wc -c <"$picture") / 2)) "$picture" >set/cut.png
head -c $(($(wc -c <"$picture") - 12)) "$picture" >set/endless.png
head -c 400 "$whole" >set/header.dcm
seq 1 20000 | gzip -n >set/whole.gz
head -c 30000 set/whole.gz >set/cut.gz
cp set/whole.gz set/check.gz
printf 'xxxx' | dd of=set/check.gz bs=1 seek=$(($(wc -c <set/check.gz) - 8)) conv=notrunc 2>/dev/null
{ printf 'P5\n100 100\n255\n' && head -c 9000 "$whole"; } >set/cut.pgm
damaged="check.gz cut.dcm cut.gz cut.pgm cut.png endless.png header.dcm"
count=7 all=10
cp -r set kept

# JSON: a field for each file, and their number.
run 0 "$TESSERA" compress -r --json set -o out
fields file damage | awk -F "$tab" '$2 != "" && $2 != "null" { sub(".*/", "", $1); print $1 }' | sort | tr '\n' ' ' >named
[ "$(cat named)" = "$damaged " ] || bad "named as damaged: $(cat named)"
grep -q "\"damaged\":$count" "$out" || bad "another number: $(tail -1 "$out")"
grep -q '"verdict":"pass"' "$out" || bad "damage is no fault of the run: $(tail -1 "$out")"
for words in 'its pixel data ends early' 'it ends early: its chunk' 'it has no IEND chunk' 'ends too early' 'wrong check' \
    'ends before its last sample' 'has more bytes than are there\|ends within an element'; do
    grep -q "\"damage\":\"[^\"]*\($words\)" "$out" || bad "nothing says: $words"
done

find out -name '*.tsr' -exec "$BIN/tsr_reference" --check {} + >"$out" 2>"$err" || bad "the reference decoder: $(cat "$err")"

# Lines, a page, and the last line.
run 0 "$TESSERA" compress -r -f set -o out --report page.html --identify
[ "$(tail -1 "$out")" = "PASS, $count originals look damaged" ] || bad "the last line is $(tail -1 "$out")"
grep -q 'original looks damaged: its pixel data ends early: .* rows (set/cut.dcm)' "$out" || bad "no list: $(cat "$out")"
grep -q "<strong>PASS</strong> $count originals look damaged" page.html || bad "the page does not begin with it"
grep -q 'Originals that look damaged' page.html && grep -q 'Looks damaged: its pixel data ends early' page.html ||
    bad "the page has no list"
run 0 "$TESSERA" compress -v -f set/cut.dcm -o out/cut.dcm.tsr
grep -q 'the original looks damaged: its pixel data ends early' "$out" || bad "-v: $(cat "$out")"

# What is known of a .tsr: info, test, verify, decompress.
run 0 "$TESSERA" info out/cut.dcm.tsr
grep -q '^  original   looks damaged: its pixel data ends early: .* rows' "$out" || bad "info: $(cat "$out")"
run 0 "$TESSERA" info --json out/cut.dcm.tsr
grep -q '"original_damage":"its pixel data ends early' "$out" || bad "info --json: $(cat "$out")"
run 0 "$TESSERA" info out/whole.dcm.tsr
grep -q 'damaged' "$out" && bad "info of a whole file: $(cat "$out")"
for file in $damaged; do
    run 0 "$TESSERA" info "out/$file.tsr"
    grep -q '^  original   looks damaged: .' "$out" || bad "info of $file: $(cat "$out")"
done
for verb in 'test -r out' 'verify set out' 'decompress -r out -o back'; do
    run 0 "$TESSERA" $verb
    [ "$(tail -1 "$out")" = "PASS, $count originals look damaged" ] || bad "$verb: $(tail -1 "$out")"
done
diff -r set back || bad "what looks damaged does not come back"
run 0 "$TESSERA" test -v out/cut.dcm.tsr
grep -q 'the original looks damaged: its pixel data' "$out" || bad "test -v: $(cat "$out")"

# A series, and the summary of several runs.
run 0 "$TESSERA" compress set/cut.dcm set/whole.dcm --series both.tsr
[ "$(tail -1 "$out")" = "PASS, 1 original looks damaged" ] || bad "a series: $(cat "$out")"
run 0 "$TESSERA" info both.tsr
grep -q 'cut.dcm .*, the original looks damaged$' "$out" && ! grep -q 'whole.dcm .*damaged' "$out" || bad "info of a series: $(cat "$out")"
run 0 "$TESSERA" compress -r -f --json set -o out && cp "$out" run.json
run 0 "$TESSERA" summary run.json
grep -q "^PASS, $count originals look damaged" "$out" || bad "summary: $(cat "$out")"

# --rm keeps them, also where their .tsr is there already, unless it is told otherwise.
rm -rf out
run 0 "$TESSERA" compress -r --rm set -o out
[ "$(ls set | tr '\n' ' ')" = "$damaged " ] || bad "--rm leaves $(ls set)"
grep -q 'kept originals*: it looks damaged; --rm=damaged-too removes it' "$out" || bad "--rm: $(cat "$out")"
run 0 "$TESSERA" compress -r --rm --update set -o out
[ "$(ls set | tr '\n' ' ')" = "$damaged " ] || bad "--rm --update leaves $(ls set)"
run 0 "$TESSERA" compress -r --rm=damaged-too --update set -o out
[ -z "$(ls set)" ] || bad "--rm=damaged-too leaves $(ls set)"
run 0 "$TESSERA" decompress -r -f out -o back
diff -r kept back || bad "what was removed does not come back"
refuses 2 "rm takes nothing or =damaged-too, not 'all'" "$TESSERA" compress --rm=all kept/whole.dcm

# What is wrong with a stream is said once.
head -c 1000 "$DATA/nifti/larger.nii.gz" >short.nii.gz
run 0 "$TESSERA" compress -v short.nii.gz -o short.tsr
grep -q 'not as samples: a deflate stream ends too early  ' "$out" || bad "a cut gzip stream: $(cat "$out")"

# What a .tsr has no room to say: a small file's reason.
echo hello | gzip -n >small.gz
run 0 "$TESSERA" compress --json small.gz
grep -q '"reason":"[^"]*only [0-9]* bytes"' "$out" || bad "a small file: $(cat "$out")"
run 0 "$TESSERA" info small.gz.tsr
grep -q ': the reason is not kept in a file of this size$' "$out" || bad "info of a small file: $(cat "$out")"
run 0 "$TESSERA" info --json small.gz.tsr
grep -q '"reason":"the reason is not kept' "$out" || bad "info --json of a small file: $(cat "$out")"
{ head -c 128 /dev/zero && printf 'DICM\002\000\000\000UL\004\000\000\000\000\000\010\000\026\000UI\004\0001.2.'; } >small.dcm
run 0 "$TESSERA" compress -q small.dcm
refuses 2 '([^)][^)]*); tessera decompress restores it' "$TESSERA" export small.dcm.tsr --to native -o x.dcm
run 0 "$TESSERA" compress --json kept/endless.png -o endless.tsr
grep -q '"way":"coded".*"damage":"it ends early, at byte [0-9]*: it has no IEND chunk"' "$out" || bad "no IEND: $(cat "$out")"
finish
