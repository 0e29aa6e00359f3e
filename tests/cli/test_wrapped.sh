# Files inside gzip: what is wrapped costs what it costs unwrapped, and a few bytes; all of it comes back. GZIP.md.
. "${0%/*}/steps.sh"

bytes()
{
    wc -c <"$1"
}

# wrapped FILE: the same file in gzip takes at most 1.05 times its bytes and 200, and comes back.
wrapped()
{
    cp "$1" plain && gzip -9nc plain >wrapped.gz
    run 0 "$TESSERA" compress -q -f plain wrapped.gz
    [ "$(bytes wrapped.gz.tsr)" -le $(($(bytes plain.tsr) * 105 / 100 + 200)) ] ||
        bad "$1: $(bytes plain.tsr) bytes plain, $(bytes wrapped.gz.tsr) in gzip"
    run 0 "$TESSERA" decompress -q -f wrapped.gz.tsr -o back && cmp wrapped.gz back || bad "$1 does not come back"
    run 0 "$TESSERA" info --json wrapped.gz.tsr
    grep -q '"restore":"gzipped"' "$out" || bad "$1 is not coded as samples: $(cat "$out")"
    "$BIN/tsr_reference" wrapped.gz.tsr theirs && cmp wrapped.gz theirs || bad "$1: the reference decoder"
}

for file in "$DATA/pnm/ct_12bit.pgm" "$DATA/pnm/landscape_8bit.ppm" "$DATA/nifti/i16.nii" "$DATA"/dicom/ct/slice_01.dcm; do
    wrapped "$file"
done

# What is said of samples is said of those inside: an export has them, and a header is read.
gzip -9nc "$DATA/dicom/ct/slice_01.dcm" >ct.dcm.gz
run 0 "$TESSERA" compress -q ct.dcm.gz
run 0 "$TESSERA" export -q --to native ct.dcm.gz.tsr -o native.dcm
run 0 "$TESSERA" compress -q native.dcm
run 0 "$TESSERA" export -q --to native native.dcm.tsr -o again.dcm
cmp native.dcm again.dcm || bad "an export of an export is another file"
run 0 "$TESSERA" info --json --dicom ct.dcm.gz.tsr
grep -q '"00280011"' "$out" || bad "there is no header: $(head -c 300 "$out")"

# Loss is not taken from a file in gzip, and the reason is told.
run 0 "$TESSERA" compress -v -f --qp 20 ct.dcm.gz
grep -q 'samples in a gzip file' "$out" || bad "no reason: $(cat "$out")"

# Several members, bytes after the last one, coded samples inside, and files that are cut: all come back.
{ head -c 50000 plain | gzip -nc && tail -c +50001 plain | gzip -nc; } >members.gz
{ cat ct.dcm.gz && echo tail; } >tail.dcm.gz
head -c 20000 ct.dcm.gz >cut.dcm.gz
for length in 1 2 3 10 17 18 19 40; do head -c $length ct.dcm.gz >cut_$length.gz; done
find "$DATA/dicom" "$DATA/png" -type f | awk 'NR % 7 == 1' | while read -r file; do
    gzip -nc "$file" >"${file##*/}.gz"
done

# Streams inside other files: a second JPEG, JPEG in AVI, deflate and JPEG in PDF, deflate in ZIP. What looks like a
# stream and is none stays bytes.
photo=$DATA/packed/photo.jpg
cat "$photo" "$photo" >two.jpg
{ printf 'RIFF....AVI ' && cat "$photo" && printf 'xx' && head -c 3000 "$photo" && printf 'yy' && cat "$photo"; } >movie.avi
awk 'BEGIN { for (i = 0; i < 4000; i++) { x = (x * 1103 + 12345) % 65536; print int(x / 7) % 40 " of " x % 1000 } }' | gzip -1nc >numbers.gz
{ printf '%%PDF-1.4\n1 0 obj <</Filter/FlateDecode>>\nstream\n\170\332' && tail -c +11 numbers.gz | head -c -8 &&
    printf 'adlr\nendstream\n2 0 obj <</Filter/DCTDecode>>\nstream\r\n' && cat "$photo" &&
    printf '\nendstream\nstream\n\170\332none\nendstream\n%%%%EOF\n'; } >page.pdf
{ printf 'PK\3\4\24\0\0\0\10\0\0\0\0\0cccccccccccc\5\0\0\0a.txt' && tail -c +11 numbers.gz | head -c -8 &&
    printf 'PK\3\4\24\0\1\0\10\0\0\0\0\0cccccccccccc\5\0\0\0b.txt' && tail -c 2000 "$DATA/packed/truncated.nii.gz" && printf 'PK\1\2'; } >some.zip
packed=$(bytes "$photo") && run 0 "$TESSERA" compress -q -f "$photo" -o photo.tsr && packed=$(bytes photo.tsr)
for file in two.jpg movie.avi page.pdf some.zip; do
    run 0 "$TESSERA" compress -q $file
    run 0 "$TESSERA" info --json $file.tsr
    grep -q '"restore":"streams"' "$out" || bad "$file is not coded by its streams: $(cat "$out")"
done
[ "$(bytes two.jpg.tsr)" -le $((2 * packed)) ] || bad "two JPEGs take $(bytes two.jpg.tsr) bytes, and one takes $packed"
[ "$(bytes movie.avi.tsr)" -le $((2 * packed + 3200)) ] || bad "an AVI with two JPEGs takes $(bytes movie.avi.tsr) bytes"
for file in page.pdf some.zip; do
    [ "$(bytes $file.tsr)" -le $(($(bytes $file) * 97 / 100)) ] || bad "$file: $(bytes $file) bytes, $(bytes $file.tsr) coded"
done
rm ./*.tsr

# Damaged streams in other files are packed up to the fault, and those after them, too, however many threads there are.
damaged=$DATA/packed/cut.jpg
{ printf 'RIFF....AVI ' && head -c 3000 "$damaged" && printf 'zz' && cat "$photo" "$DATA/dicom/packed/jpeg_lossy.dcm"; } >damaged.avi
tar -cf damaged.tar --format=ustar -C "$DATA/packed" photo.jpg cut.jpg
for file in damaged.avi damaged.tar; do
    run 0 "$TESSERA" compress -q --threads 1 $file
    run 0 "$TESSERA" compress -q --threads 7 $file -o $file.again
    cmp $file.tsr $file.again || bad "$file depends on threads"
    run 0 "$TESSERA" info --json $file.tsr
    grep -q '"restore":"\(streams\|files\)"' "$out" || bad "$file is not coded by its streams: $(cat "$out")"
done
[ "$(bytes damaged.avi.tsr)" -le 11450 ] || bad "an AVI whose first JPEG is cut takes $(bytes damaged.avi.tsr) bytes"
[ "$(bytes damaged.tar.tsr)" -le 5000 ] || bad "a TAR with a JPEG that is cut takes $(bytes damaged.tar.tsr) bytes"
rm ./*.tsr ./*.again

# Heads of JPEG streams that have no end: the search for ends is bounded, else this file would take hours.
awk 'BEGIN { for (i = 0; i < 1024; i++) printf "\377\330\377@" }' >heads
{ printf 'II*\0' && for _ in $(seq 1024); do cat heads; done; } >heads.tif

mkdir set && mv ./*.gz two.jpg movie.avi page.pdf some.zip heads.tif damaged.avi damaged.tar set
run 0 "$TESSERA" compress -q -r set -o coded
run 0 "$TESSERA" decompress -q -r coded -o restored
diff -r set restored || bad "files do not come back"
find coded -name '*.tsr' -exec "$BIN/tsr_reference" --check {} + >"$out" 2>"$err" || bad "the reference decoder: $(cat "$err")"
finish
