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
mkdir set && mv ./*.gz set
run 0 "$TESSERA" compress -q -r set -o coded
run 0 "$TESSERA" decompress -q -r coded -o restored
diff -r set restored || bad "files do not come back"
find coded -name '*.tsr' -exec "$BIN/tsr_reference" --check {} + >"$out" 2>"$err" || bad "the reference decoder: $(cat "$err")"
finish
