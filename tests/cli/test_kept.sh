# Padding of DICOM (Pixel Padding Value), what the caller names (--keep) and a background are kept by all codings with loss: no
# sample of them changes, and no other sample gets such a value. The reference decoder agrees.
. "${0%/*}/steps.sh"
cp "$DATA/dicom/ct/slice_01.dcm" a.dcm
run 0 "$TESSERA" compress --json a.dcm -o exact.tsr
if [ "$(fields path)" = null ]; then
    echo "this build has no DCMTK: skipped"
    exit 77
fi

# pixels FILE SAMPLES: a line of two bytes for each sample of 16 bits at the end of a file.
pixels()
{
    tail -c $((2 * $2)) "$1" | od -An -v -tx1 -w2
}
# keeps ORIGINAL RESTORED SAMPLES PADDING: padding is where it was, and some samples are others.
keeps()
{
    pixels "$1" "$3" >"$WORK/old"
    pixels "$2" "$3" >"$WORK/new"
    paste "$WORK/old" "$WORK/new" | awk -F "$tab" -v p=" $4" '
        $1 == p { padding++ }
        $1 == p && $2 != p { changed++ }
        $1 != p && $2 == p { more++ }
        $1 != $2 { lost++ }
        END { if (padding < 1000 || changed + more > 0 || lost == 0) {
            print "of " padding + 0 " samples of padding " changed + 0 " changed; " more + 0 " became padding; " lost + 0 " lost"; exit 1 } }'
}

# Signed samples of 12 bits; of 16; of 12 without extended signs; big-endian ones. Sides that tiles do not divide.
for case in ct/slice_01:65536:30:f8 samples/ct_16bit:16384:30:f8 samples/signed_masked:16384:30:08 forms/big_signed:16384:f8:30; do
    name=${case%%:*} rest=${case#*:}
    samples=${rest%%:*} padding="${rest#*:}"
    padding="${padding%:*} ${padding#*:}"
    for how in "--qp 4" "--qp 44" "--qp 20 --coder rans" "--qp 12 --coder cavlc" "--max-error 1" "--max-error 100" "--psnr 40" "--size 12:1"; do
        rm -f a.tsr b.tsr a2.dcm b2.dcm
        # shellcheck disable=SC2086 # options are words
        run 0 "$TESSERA" compress --json $how "$DATA/dicom/$name.dcm" -o a.tsr
        [ "$(fields status lossless)" = "ok${tab}false" ] || bad "$name, $how: $(fields status lossless reason)"
        run 0 "$TESSERA" decompress -q a.tsr -o a2.dcm
        keeps "$DATA/dicom/$name.dcm" a2.dcm "$samples" "$padding" >"$WORK/said" || bad "$name, $how: $(cat "$WORK/said")"
        run 0 "$BIN/tsr_reference" a.tsr b2.dcm
        cmp a2.dcm b2.dcm || bad "$name, $how: the reference decoder gives another file"
        # shellcheck disable=SC2086
        run 0 "$TESSERA" compress -q -T 1 $how "$DATA/dicom/$name.dcm" -o b.tsr
        cmp a.tsr b.tsr || bad "$name, $how: other bytes with one thread"
    done
done

# Pixel Padding Range Limit: many values are kept, and others are next to them.
inside()
{
    tail -c $((2 * $2)) "$1" | od -An -v -tx1 -w2 | tr -d ' '
}
for how in "--qp 4" "--qp 44 --coder rans" "--max-error 5" "--max-error 9" "--max-error 2000"; do
    rm -f a.tsr a2.dcm b2.dcm
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress --json $how "$DATA/dicom/samples/padded_range.dcm" -o a.tsr
    [ "$(fields status lossless)" = "ok${tab}false" ] || bad "a range, $how: $(fields status lossless reason)"
    fields psnr_db range >"$WORK/told"
    run 0 "$TESSERA" decompress -q a.tsr -o a2.dcm
    run 0 "$BIN/tsr_reference" a.tsr b2.dcm
    cmp a2.dcm b2.dcm || bad "a range, $how: the reference decoder gives another file"
    inside "$DATA/dicom/samples/padded_range.dcm" 51200 >"$WORK/old"
    inside a2.dcm 51200 >"$WORK/new"
    paste "$WORK/old" "$WORK/new" | awk -F "$tab" -v counted="$WORK/counted" '
        function value(hex,    i, v, digit) {
            hex = substr(hex, 3, 2) substr(hex, 1, 2)
            for (i = 1; i <= 4; i++) v = 16 * v + index("0123456789abcdef", substr(hex, i, 1)) - 1
            return v < 32768 ? v : v - 65536
        }
        {
            old = value($1); new = value($2)
            was = old >= -2000 && old <= -1000
            n += !was; squares += was ? 0 : (old - new) * (old - new)
            kept += was; changed += was && new != old; more += !was && new >= -2000 && new <= -1000; lost += new != old
        }
        END { printf "%d\t%.0f\n", n, squares >counted; exit !(kept > 10000 && changed + more == 0 && lost > 1000) }' || bad "a range, $how: it is not kept"
    # Kept samples do not count in the PSNR.
    paste "$WORK/told" "$WORK/counted" | awk -F "$tab" '
        { off = $1 - 10 * log($2 * $2 * $3 / $4) / log(10); exit !(off < 1e-6 && off > -1e-6) }' || bad "a range, $how: PSNR and range $(cat "$WORK/told"), counted $(cat "$WORK/counted")"
done

# A series.
cp "$DATA"/dicom/ct/slice_0[1-4].dcm .
run 0 "$TESSERA" compress -q --qp 20 --series s.tsr slice_0?.dcm
run 0 "$TESSERA" decompress -q s.tsr -o back
for i in 1 2 3 4; do
    keeps slice_0$i.dcm back/slice_0$i.dcm 65536 "30 f8" >"$WORK/said" || bad "series, slice $i: $(cat "$WORK/said")"
done

# Values that the caller keeps (--keep), in all formats of one component: what they are and where, nothing else becomes one.
# same_kept ORIGINAL RESTORED HEADER UNIT LOW HIGH: values of UNIT bytes after HEADER bytes, the greatest byte first.
same_kept()
{
    for side in "$1" "$2"; do
        tail -c +$(($3 + 1)) "$side" | od -An -v -tu1 -w"$4"
    done | awk -v low="$5" -v high="$6" '
        { value = 0; for (i = 1; i <= NF; i++) value = 256 * value + $i; all[NR] = value }
        END {
            for (i = 1; i <= NR / 2; i++) {
                old = all[i]; new = all[NR / 2 + i]
                was = old >= low && old <= high; is = new >= low && new <= high
                kept += was; wrong += was && old != new; wrong += !was && is; lost += old != new
            }
            if (kept < 50 || wrong > 0 || lost == 0) { print kept + 0, "kept,", wrong + 0, "wrong,", lost + 0, "lost"; exit 1 }
        }'
}
for case in odd/64x65_8bit.pgm:1:100:110 odd/63x65_16bit.pgm:2:28000:30000; do
    name=${case%%:*} rest=${case#*:}
    unit=${rest%%:*} range=${rest#*:}
    image=$DATA/$name low=${range%:*} high=${range#*:}
    header=$(($(bytes_of "$image") - $(awk 'NR == 2 { print $1 * $2; exit }' "$image") * unit))
    for how in "--qp 30" "--max-error 7" "--psnr 38"; do
        rm -f a.tsr a2.pgm b2.pgm
        # shellcheck disable=SC2086
        run 0 "$TESSERA" compress --json $how --keep "$low..$high" "$image" -o a.tsr
        [ "$(fields status lossless)" = "ok${tab}false" ] || bad "$name, $how: $(fields status lossless reason)"
        run 0 "$TESSERA" decompress -q a.tsr -o a2.pgm
        run 0 "$BIN/tsr_reference" a.tsr b2.pgm
        cmp a2.pgm b2.pgm || bad "$name, $how, kept: the reference decoder gives another file"
        same_kept "$image" a2.pgm "$header" "$unit" "$low" "$high" >"$WORK/said" || bad "$name, $how: $(cat "$WORK/said")"
    done
done
run 0 "$TESSERA" info a.tsr
grep -q 'keeps *stored values 28000 to 30000$' "$out" || bad "info does not say what is kept: $(cat "$out")"
run 0 "$TESSERA" info --json a.tsr
grep -q '"kept_values":\[{"lowest":28000,"highest":30000}\]' "$out" || bad "info does not say what is kept: $(cat "$out")"

# Of PNG and DICOM. Padding that the file names stays beside what the caller keeps.
for case in png/landscape_grey.png:100..140 png/landscape_grey16.png:20000..30000 dicom/ct/slice_01.dcm:-1000..-900; do
    rm -f a.tsr
    run 0 "$TESSERA" compress -q --qp 30 --keep "${case#*:}" "$DATA/${case%%:*}" -o a.tsr
    run 0 "$TESSERA" info a.tsr
    range=${case#*:}
    grep -q "keeps *stored values .*${range%..*} to ${range#*..}\$" "$out" || bad "$case: $(grep keeps "$out")"
done
grep -q "keeps *stored values -2000, -1000 to -900\$" "$out" || bad "padding and more: $(grep keeps "$out")"
run 0 "$TESSERA" compress -q --qp 30 --keep -1000..-900 --series s2.tsr slice_0?.dcm
run 0 "$TESSERA" info --json s2.tsr
[ "$(grep -c '{"lowest":-1000,"highest":-900}' "$out")" -ge 4 ] || bad "a series does not keep what the caller names"

# What cannot be.
g=$DATA/odd/63x65_16bit.pgm
refuses 2 "wants a stored value" "$TESSERA" compress --qp 20 --keep 3..1 "$g" -o x.tsr
refuses 2 "wants a stored value" "$TESSERA" compress --qp 20 --keep 3.5 "$g" -o x.tsr
refuses 2 "wants a stored value" "$TESSERA" compress --qp 20 --keep 70000 "$g" -o x.tsr
refuses 2 "more than four times" "$TESSERA" compress --qp 20 --keep 1 --keep 3 --keep 5 --keep 7 --keep 9 "$g" -o x.tsr
refuses 2 "is for loss" "$TESSERA" compress --keep 3 "$g" -o x.tsr
refuses 2 "fewer than two values" "$TESSERA" compress --qp 20 --keep 0..65534 "$g" -o x.tsr
refuses 2 "more than four ranges" "$TESSERA" compress --qp 20 --keep 1 --keep 3 --keep 5 --keep 7 a.dcm -o x.tsr
refuses 2 "3 components" "$TESSERA" compress --qp 20 --keep 3 "$DATA/png/landscape_rgb.png" -o x.tsr

# A background that nobody names: one value below all others. The range of the values does not count it.
for how in "--qp 20" "--max-error 3"; do
    rm -f a.tsr a2.nii b2.nii
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress --json $how "$DATA/nifti/i16.nii" -o a.tsr
    [ "$(fields status lossless)" = "ok${tab}false" ] || bad "a background: $(fields status lossless reason)"
    grep -q '"kept_values":\[{"lowest":-2000,"highest":-2000}\]' "$out" || bad "a background is not kept: $(cat "$out")"
    [ "$(fields range | head -1)" -lt 2000 ] || bad "the range counts the background: $(fields range)"
    run 0 "$TESSERA" decompress -q a.tsr -o a2.nii
    run 0 "$BIN/tsr_reference" a.tsr b2.nii
    cmp a2.nii b2.nii || bad "a background, $how: the reference decoder gives another file"
    keeps "$DATA/nifti/i16.nii" a2.nii "$((($(bytes_of a2.nii) - 352) / 2))" "30 f8" >"$WORK/said" ||
        bad "a background, $how: $(cat "$WORK/said")"
done
# Images of 8 bits, and values that others follow closely, have none.
for name in nifti/u8.nii png/landscape_grey16.png dicom/mr/small_01.dcm; do
    rm -f a.tsr
    run 0 "$TESSERA" compress --json --qp 20 "$DATA/$name" -o a.tsr
    grep -q '"kept_values":null' "$out" || bad "$name has no background, but keeps: $(cat "$out")"
done

# More than half of it is padding: nothing is lost.
cp "$DATA/dicom/samples/ct_16bit.dcm" half.dcm
size=$(bytes_of half.dcm)
awk 'BEGIN { for (i = 0; i < 9000; i++) printf "\060\370" }' >fill
[ "$(bytes_of fill)" -eq 18000 ] || bad "awk does not write bytes"
dd if=fill of=half.dcm bs=1 seek=$((size - 18000)) conv=notrunc 2>"$err"
rm -f half.tsr
run 0 "$TESSERA" compress --json --qp 20 half.dcm -o half.tsr
[ "$(fields lossless)" = true ] || bad "half of it is padding, and it is coded with loss"
fields reason | grep -q "more than half of its samples" || bad "no reason, but: $(fields reason)"
run 0 "$TESSERA" decompress -q half.tsr -o half2.dcm
cmp half.dcm half2.dcm || bad "what is mostly padding does not come back"
rm -f half.tsr
run 0 "$TESSERA" compress --json --psnr 40 half.dcm -o half.tsr
[ "$(fields lossless)" = true ] || bad "half of it is padding, and it is coded with loss to a target"
finish
