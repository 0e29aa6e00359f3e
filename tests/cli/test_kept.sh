# Padding of DICOM (Pixel Padding Value) is kept by all codings with loss: no sample of it changes, and no other sample becomes
# padding. The reference decoder agrees.
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
