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
    "$TESSERA" info --dicom one.tsr >"$out" 2>"$err" || { grep -q 'no header that can be read' "$err" || bad "$file: $(cat "$err")"; continue; }
    listed=$((listed + 1))
    command -v dcmdump >/dev/null || continue
    dcmdump "$file" >"$WORK/dumped" 2>/dev/null || continue
    without_pixels "$out" >"$WORK/ours"
    without_pixels "$WORK/dumped" >"$WORK/theirs"
    diff "$WORK/ours" "$WORK/theirs" >"$WORK/difference" || bad "$file: dcmdump prints another header: $(head -4 "$WORK/difference")"
done
[ "$listed" -ge 70 ] || bad "only $listed headers were listed"
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
