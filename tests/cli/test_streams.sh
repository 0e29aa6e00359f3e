# Encapsulated DICOM files with streams of RLE, lossless JPEG and JPEG-LS, of random parameters and with deviations: both
# decoders restore each file from the samples that were encoded, and from any residue that FORMAT.md knows.
. "${0%/*}/steps.sh"

# The seed: a stream of whole differences may by chance be one of differences modulo 2^16, too, and of other samples (4.7.4).
# Here none is.
mkdir made
run 0 "$BIN/tsr_streams" made 240 1
run 0 "$TESSERA" compress -r --json --include '*.dcm' --exclude '*' made -o coded
fields file path reason | sed "s/${tab}predict${tab}/${tab}ok${tab}/" >statuses
[ "$(wc -l <statuses)" -eq 240 ] || bad "only $(wc -l <statuses) files were compressed"
# A file of noise may be larger coded as samples than otherwise.
awk -F "$tab" '$2 != "ok" && $3 != "coded as samples it would be larger" { print; bad = 1 } END { exit bad }' statuses ||
    bad "streams are not coded"
for kind in rle jpeg jpeg_ls; do
    count=$(grep -c "\.$kind\.dcm${tab}ok" statuses)
    [ "$count" -ge 35 ] || bad "only $count files of $kind are coded"
done

run 0 "$TESSERA" decompress -r coded -o restored
find coded -type f -exec "$BIN/tsr_reference" --check {} + >"$out" 2>"$err" || bad "the reference decoder: $(cat "$err")"
[ "$(wc -l <"$out")" -eq 240 ] || bad "the reference decoder saw $(wc -l <"$out") files"
while IFS=$tab read -r file status _; do
    name=${file#made/}
    cmp "$file" "restored/$name" || bad "$name does not come back"
    "$BIN/tsr_reference" "coded/$name.tsr" theirs && cmp "$file" theirs || bad "the reference decoder restores another $name"
    [ "$status" = ok ] || continue
    # Residues that were made at random, not those that the encoder chose.
    "$BIN/tsr_put_records" "coded/$name.tsr" other.tsr "${file%.dcm}.records" || bad "cannot put the records of $name"
    "$BIN/tsr_reference" --check other.tsr >"$out" 2>"$err" || bad "the reference decoder: $(cat "$err")"
    run 0 "$TESSERA" decompress -q -f other.tsr -o ours && cmp "$file" ours || bad "$name does not come back by other residues"
    "$BIN/tsr_reference" --rasters "coded/$name.tsr" theirs && cmp "${file%.dcm}.raw" theirs || bad "$name has other samples"
done <statuses
finish
