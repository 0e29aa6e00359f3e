# cat and info --dicom: originals and headers for other programs. DCMTK's dcmdump and dcm2json are compared with, where they are.
. "${0%/*}/steps.sh"
mkdir in
cp "$DATA"/dicom/ct/slice_0[123].dcm in
cp "$DATA/dicom/forms/deflated.dcm" "in/a [name]::with.dcm"
cp "$DATA/png/ct_grey16.png" in/screen.png
run 0 "$TESSERA" compress -q -r -o out in
run 0 "$TESSERA" compress -q -r --series s.tsr in

# cat: one file, several, files of a series, all of a series.
run 0 "$TESSERA" cat out/slice_01.dcm.tsr
cmp "$out" in/slice_01.dcm || bad "cat writes another file"
run 0 "$TESSERA" cat out/slice_02.dcm.tsr s.tsr::slice_01.dcm out/screen.png.tsr
cat in/slice_02.dcm in/slice_01.dcm in/screen.png | cmp - "$out" || bad "cat of several writes other bytes"
run 0 "$TESSERA" cat "s.tsr::a [name]::with.dcm"
cmp "$out" "in/a [name]::with.dcm" || bad "cat of a member writes another file"
run 0 "$TESSERA" cat "out/a [name]::with.dcm.tsr"
cmp "$out" "in/a [name]::with.dcm" || bad "a file whose name has :: is another"
run 0 "$TESSERA" cat s.tsr
cat in/* | cmp - "$out" || bad "cat of a series writes other bytes"
run 0 "$TESSERA" cat --member '*.png' s.tsr
cmp "$out" in/screen.png || bad "cat --member writes another file"
"$TESSERA" cat - <out/slice_01.dcm.tsr | cmp - in/slice_01.dcm || bad "cat of a pipe writes another file"
refuses 22 'no file that is called nothing' "$TESSERA" cat s.tsr::nothing
refuses 2 'it is not a series, and a name after :: is' "$TESSERA" cat out/slice_01.dcm.tsr::slice_01.dcm
refuses 2 'no input is named' "$TESSERA" cat
[ ! -e /dev/full ] || { "$TESSERA" cat out/slice_01.dcm.tsr >/dev/full 2>"$err"; [ $? -eq 40 ] || bad "a full output is not status 40"; }

# A damaged file writes no byte, also amid others.
cp out/slice_02.dcm.tsr damaged.tsr
changes_byte damaged.tsr 20000
run 61 "$TESSERA" cat damaged.tsr
[ ! -s "$out" ] || bad "a damaged file has left $(bytes_of "$out") bytes"
run 75 "$TESSERA" cat out/slice_01.dcm.tsr damaged.tsr out/slice_03.dcm.tsr
cat in/slice_01.dcm in/slice_03.dcm | cmp - "$out" || bad "a damaged file has left bytes among others"
says 'damaged.tsr'

# Who closes the pipe wants to hear no more: status 141 and no word, whether SIGPIPE is ignored or not.
mkfifo pipe
for ignored in '' PIPE; do
    head -c 10 <pipe >/dev/null &
    (
        [ -z "$ignored" ] || trap '' "$ignored"
        exec "$TESSERA" cat s.tsr s.tsr s.tsr >pipe 2>"$err"
    )
    got=$?
    wait
    [ "$got" -eq 141 ] || bad "a closed pipe is status $got"
    [ ! -s "$err" ] || bad "a closed pipe makes words: $(cat "$err")"
done
no_parts .

# info --dicom: the same lines as dcmdump's, but for those of the pixel data.
without_pixels()
{
    sed -e '/^# .*tsr/d' -e '/^# Used TransferSyntax: .*eflated\|^# Used TransferSyntax: Little Endian Explicit$/d' -e '/^(0000,0000)/d' -e '/^(7fe0,0010)/,$d' "$1"
}
listed=0
for file in "$DATA"/dicom/*/*.dcm; do
    rm -f one.tsr
    run 0 "$TESSERA" compress -q "$file" -o one.tsr
    "$TESSERA" info --dicom one.tsr >"$out" 2>"$err" || { bad "$file: $(cat "$err")"; continue; }
    listed=$((listed + 1))
    command -v dcmdump >/dev/null || continue
    dcmdump "$file" >"$WORK/dumped" 2>/dev/null || continue
    without_pixels "$out" >"$WORK/ours"
    without_pixels "$WORK/dumped" >"$WORK/theirs"
    diff "$WORK/ours" "$WORK/theirs" >"$WORK/difference" || bad "$file: dcmdump prints another header: $(head -4 "$WORK/difference")"
done
[ "$listed" -ge 70 ] || bad "only $listed headers were listed"
# Files without pixels, small and large, in each transfer syntax, without preamble and without a meta header: reports, plans,
# directories. By themselves and in a series; all of a file that is packed is its header.
if command -v dump2dcm >/dev/null; then
    mkdir reports
    for count in 1 3000; do
        { printf '(0002,0002) UI =EnhancedSRStorage\n(0008,0016) UI =EnhancedSRStorage\n(0008,0018) UI [1.2.3.4]\n(0008,0060) CS [SR]\n(0010,0010) PN [Doe^Jane]\n(0040,a730) SQ\n'
            awk -v n=$count 'BEGIN { for (i = 0; i < n; i++) printf "(fffe,e000) -\n(0040,a010) CS [CONTAINS]\n(0040,a040) CS [TEXT]\n(0040,a160) UT [finding %d of a nodule]\n(fffe,e00d) -\n", i }'
            printf '(fffe,e0dd) -\n(0040,a491) CS [COMPLETE]\n'; } >report.dump
        for form in '+te' '+ti' '+tb' '+td' '-F +te' '-F +ti'; do
            # shellcheck disable=SC2086 # words
            dump2dcm -q $form report.dump "reports/sr_${count}_$(echo "$form" | tr -d ' +').dcm" || bad "dump2dcm $form"
        done
        tail -c +133 "reports/sr_${count}_te.dcm" >"reports/sr_${count}_no_preamble.dcm"
    done
    cp "$DATA/dicom/ct/slice_01.dcm" CT1
    if command -v dcmmkdir >/dev/null && dcmmkdir -q +I +D reports/DICOMDIR CT1 2>/dev/null; then [ -s reports/DICOMDIR ] || bad "no DICOMDIR was made"; fi
    run 0 "$TESSERA" compress -q -r reports -o reports_made
    run 0 "$TESSERA" compress -q -r --series reports.tsr reports
    for file in reports/*; do
        name=${file#reports/}
        run 0 "$TESSERA" info --dicom "reports_made/$name.tsr"
        without_pixels "$out" | sed -e '/^ *#/d' -e 's/ "Directory Record" [A-Z]*/ "Directory Record" PRIVATE/' | tr -s ' ' >"$WORK/ours"
        dcmdump "$file" 2>/dev/null | sed -e '/^ *#/d' -e 's/ "Directory Record" [A-Z]*/ "Directory Record" PRIVATE/' | tr -s ' ' >"$WORK/theirs"
        diff "$WORK/ours" "$WORK/theirs" >"$WORK/difference" || bad "$file: dcmdump prints another header: $(head -4 "$WORK/difference")"
        run 0 "$TESSERA" info --dicom "reports.tsr::$name"
        without_pixels "$out" | sed -e '/^ *#/d' -e 's/ "Directory Record" [A-Z]*/ "Directory Record" PRIVATE/' | tr -s ' ' | cmp -s - "$WORK/ours" || bad "$name: another header in a series"
        run 0 "$TESSERA" info --dicom --json "reports_made/$name.tsr"
        case $name in sr_*) grep -q '"00080060":{"vr":"CS","Value":\["SR"\]}' "$out" || bad "$name: the modality is not in the JSON" ;; esac
    done
    [ "$(ls reports | wc -l)" -ge 14 ] || bad "only $(ls reports | wc -l) reports"
    # Of a file that is cut within its header, the sentence says what is missing, and names it once.
    head -c 3000 reports/sr_3000_te.dcm >cut.dcm && run 0 "$TESSERA" compress -q cut.dcm && run 0 "$TESSERA" compress -q --series cut_series.tsr cut.dcm
    refuses 2 '^tessera: cut.dcm.tsr has no header that can be read: its element (.*) at byte [0-9]* has more bytes than are there$' "$TESSERA" info --dicom cut.dcm.tsr
    run 75 "$TESSERA" info --dicom cut_series.tsr
    says '^tessera: cut.dcm in cut_series.tsr has no header that can be read: '
fi
command -v dcmdump >/dev/null || echo "no dcmdump: headers were compared with nothing"
run 0 "$TESSERA" info --dicom s.tsr::slice_01.dcm
grep -q '^# s.tsr::slice_01.dcm$' "$out" && grep -q '^(7fe0,0010) OW (not read) .* # 131072, 1 PixelData$' "$out" || bad "the listing of a member: $(head -3 "$out")"
run 75 "$TESSERA" info --dicom s.tsr
[ "$(grep -c '^# s.tsr::' "$out")" -eq 4 ] || bad "not four listings of the series"
says 'screen.png in s.tsr.* is not DICOM, but png'
refuses 2 'is not DICOM, but png' "$TESSERA" info --dicom out/screen.png.tsr
run 0 "$TESSERA" info --json --dicom out/slice_01.dcm.tsr
[ "$(wc -l <"$out")" -eq 1 ] || bad "not one line of JSON"
grep -q '"00080060":{"vr":"CS","Value":\["CT"\]}' "$out" || bad "the modality is not in the JSON: $(head -c 300 "$out")"
grep -q '7FE00010' "$out" && bad "the pixel data is in the JSON"
# A frame of a damaged file is not read: its header still is.
run 0 "$TESSERA" info --dicom damaged.tsr

# Big-endian words that frames do not fill: DCMTK and pydicom exchange the bytes of the whole stream, across frames. No frame is
# a range of the file then, so none is shown.
run 0 "$TESSERA" compress -q "$DATA/dicom/forms/big_8bit_words_odd.dcm" -o odd.tsr
run 0 "$TESSERA" info odd.tsr
grep -q 'coded      not as samples: its samples of 8 bits are in big-endian words, which its frames do not fill' "$out" || bad "frames in words that they do not fill: $(cat "$out")"

finish
