# Printed texts: help, version, info, compare, and the lines of -v. Expected texts are in expected/.
. "${0%/*}/steps.sh"
case $0 in
/*) expected=${0%/*}/expected ;;
*) expected=$OLDPWD/${0%/*}/expected ;;
esac

# says_as NAME: the output must be as expected, except seconds and numbers that depend on libraries and the encoder.
says_as()
{
    sed -e "s|$DATA|DATA|g" -e "s/[0-9.]* s\$/T s/" -e "s/[0-9]* -> [0-9]* bytes/N -> N bytes/" -e "s/ratio [0-9.]*/ratio R/" \
        -e "s/bytes  [0-9.]*/bytes  R/" -e "s/[0-9.]* bits.sample/B bits\/sample/" -e "s/[0-9.]* dB, max error [0-9]*/D dB, max error E/" \
        -e "s/^  \(size\|payload\)  *[0-9]* bytes/  \1 N bytes/" "$out" >"$WORK/$1"
    diff "$expected/$1" "$WORK/$1" || bad "other words: $1"
    [ -s "$err" ] && bad "words on stderr: $(cat "$err")"
}

for way in --help -h help; do
    run 0 "$TESSERA" $way
    says_as help.txt
done
for verb in compress decompress test verify info compare summary; do
    run 0 "$TESSERA" $verb --help
    says_as "help_$verb.txt"
    run 0 "$TESSERA" $verb -h no_such_file
    says_as "help_$verb.txt"
    awk 'length($0) > 120' "$out" | grep . && bad "a line of more than 120 characters"
done
run 0 "$TESSERA" --version
says_as version.txt

mkdir in
cp "$DATA/pnm/ramp_16bit.pgm" in/ramp.pgm
cp "$DATA/png/ct_grey16.png" in/screen.png
cp "$DATA/other/text.txt" in/text.txt
run 0 "$TESSERA" compress -r in -o out
says_as compress.txt
run 0 "$TESSERA" compress -r -v --engine cpu --path transform in -o out2
says_as compress_v.txt
run 0 "$TESSERA" compress -r -f --verify none in -o out2
grep -q 'NOT VERIFIED: 3 files' "$out" || bad "--verify none is not said: $(cat "$out")"
run 0 "$TESSERA" compress -q --qp 30 in/ramp.pgm -o lossy.tsr
says_as nothing.txt
run 0 "$TESSERA" info out/ramp.pgm.tsr out/screen.png.tsr out/text.txt.tsr lossy.tsr
says_as info.txt
run 0 "$TESSERA" test -r out
says_as test.txt
run 0 "$TESSERA" test -v -r out
says_as test_v.txt
run 0 "$TESSERA" decompress -r out -o back
says_as decompress.txt
# Progress is shown only on terminals.
grep -q "$(printf '\033')" "$err" && bad "progress without a terminal"

# compare: a row for each image and a total. Columns of coders that this build lacks have dashes.
mkdir pictures
cp "$DATA/pnm/landscape_grey_8bit.pgm" "$DATA/pnm/landscape_8bit.ppm" "$DATA/pnm/chest_10bit.pgm" pictures
cp "$DATA/other/text.txt" pictures
run 0 "$TESSERA" compare -r --qp 10,30 pictures
for name in landscape_grey_8bit.pgm landscape_8bit.ppm chest_10bit.pgm; do
    [ "$(grep -c "^pictures/$name: [0-9]* x [0-9]*, " "$out")" -eq 1 ] || bad "compare has no row for $name"
done
grep -q '^pictures/text.txt: skipped, ' "$out" || bad "compare does not say what it skips"
[ "$(grep -c '^  lossless  ' "$out")" -eq 4 ] || bad "not one line without loss for each picture and the total"
[ "$(grep -c '^  QP 10  .* dB' "$out")" -eq 3 ] && [ "$(grep -c '^  QP 30  .* dB' "$out")" -eq 3 ] || bad "not a line for each QP"
grep -q '^total of [0-9]* images' "$out" || bad "compare has no total"
cp "$out" "$WORK/compare.txt"
run 0 "$TESSERA" compare -r --json --qp 10,30 pictures
# The total is the sum of the rows that all rivals could code; with all libraries, these are all rows.
if fields png_bytes jpeg_ls_bytes | grep -v absent | grep -q null; then
    echo "compare: a rival is missing in this build, the total is not checked"
else
    for field in raw_bytes tessera_bytes png_bytes jpeg_ls_bytes; do
        sum=$(fields $field | awk '$1 != "absent" { s += $1 } END { printf "%d", s }')
        [ "$sum" = "$(fields --summary $field)" ] || bad "compare's total of $field is not $sum"
    done
    grep -q '^total of 3 images' "$WORK/compare.txt" || bad "the total is not of 3 images"
fi
# The lossless size is that of the file that compress makes, except for the header and the proof.
fields file tessera_bytes | while IFS=$tab read -r file bytes; do
    [ "$bytes" = absent ] && continue
    "$TESSERA" compress -q "$file" -o made.tsr -f
    made=$(bytes_of made.tsr)
    [ $((made - bytes)) -lt 100 ] && [ $((bytes - made)) -lt 100 ] || echo "$file: $made bytes, compare says $bytes"
done >"$WORK/complaints"
[ -s "$WORK/complaints" ] && bad "$(cat "$WORK/complaints")"
finish
