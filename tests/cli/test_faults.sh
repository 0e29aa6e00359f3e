# Faults planted in the program (faults.c): verification catches them with exit status 60, and nothing is kept. With
# --verify none the same faults pass, and `test` or cmp finds them later. So it was verification that caught them.
. "${0%/*}/steps.sh"
FAULTY=$BIN/tessera_faulty
cp "$DATA/pnm/landscape_grey_8bit.pgm" a.pgm
cp "$DATA/pnm/landscape_16bit.ppm" b.ppm
cp "$DATA/png/landscape_rgb.png" c.png
cp "$DATA/dicom/ct/slice_01.dcm" d.dcm
cp "$DATA/other/random.bin" e.bin
run 0 "$TESSERA" compress --json d.dcm -o d.tsr
dicom=d.dcm
[ "$(fields status)" = ok ] || dicom=
rm d.tsr

# Without a fault it is the same program.
for file in a.pgm b.ppm c.png d.dcm e.bin; do
    run 0 "$FAULTY" compress -q $file -o faulty.tsr
    run 0 "$TESSERA" compress -q $file -o good.tsr
    cmp faulty.tsr good.tsr || bad "the faulty program without a fault writes another $file"
    rm faulty.tsr good.tsr
done

# caught FAULT FILE: the file is refused with 60. Without verification it passes, and the output is wrong.
caught()
{
    export TESSERA_FAULT="$1"
    file=$2
    for threads in 1 2; do
        refuses 60 'what was written does not decode to what was read: ' "$FAULTY" compress -T $threads "$file" -o out.tsr
    done
    refuses 60 'does not decode' "$FAULTY" compress "$file"
    cp "$file" old.tsr # an older output must survive a failed overwriting
    refuses 60 'does not decode' "$FAULTY" compress -f "$file" -o old.tsr
    rm old.tsr
    run 75 "$FAULTY" compress --json "$file" missing -o set
    [ "$(fields --summary failed)" = 2 ] || bad "$1, $file: the set's summary is $(fields --summary failed)"
    [ -z "$(find set -type f 2>/dev/null)" ] || bad "$1, $file: outputs in the set"
    rm -rf set
    run 0 "$FAULTY" compress -q --verify none "$file" -o wrong.tsr
    unset TESSERA_FAULT
}
for file in a.pgm b.ppm $dicom; do
    caught reader $file
    run 61 "$TESSERA" test wrong.tsr
    says 'the restored file is not the original: its hash differs'
    rm wrong.tsr
done
for file in a.pgm b.ppm c.png $dicom; do
    caught coder $file
    run 61 "$TESSERA" test wrong.tsr
    says 'does not decode\|the decoded samples are not those'
    rm wrong.tsr
    # The evaluator's fault is not in the .tsr file: that is good, but the faulty program restores it wrong.
    caught evaluator $file
    run 0 "$TESSERA" test -q wrong.tsr
    export TESSERA_FAULT=evaluator
    run 61 "$FAULTY" decompress wrong.tsr -o back
    says 'the restored file is not the original\|the residue of a deflate stream is damaged'
    [ -f back ] && bad "a wrong file was restored"
    unset TESSERA_FAULT
    rm -f back wrong.tsr
done
# A PNG with loss is read again when it is restored.
run 0 "$TESSERA" compress -q --qp 20 c.png -o wrong.tsr
export TESSERA_FAULT=evaluator
run 61 "$FAULTY" decompress wrong.tsr -o back
says 'the restored PNG has other pixels'
[ -f back ] && bad "a wrong file was restored"
unset TESSERA_FAULT
rm -f back wrong.tsr
# Restored files that are not the original, lossy ones or of samples alone, are made twice to verify them.
export TESSERA_FAULT=evaluator
for file in a.pgm b.ppm c.png $dicom; do
    refuses 60 'does not decode' "$FAULTY" compress --qp 20 $file -o out.tsr
done
[ -z "$dicom" ] || refuses 60 'does not decode' "$FAULTY" compress --samples-only "$DATA/dicom/forms/rle_16bit.dcm" -o out.tsr
unset TESSERA_FAULT
# A region that comes back as it was: a wrong symbol of its patches, a wrong restored file, a wrong byte of base or patches.
for file in a.pgm b.ppm c.png $dicom; do
    for fault in coder evaluator disk:500 disk:-500 disk:-200; do
        case $fault-$file in coder-a.pgm | coder-c.png) continue ;; esac # its patches have no symbols with raw bits
        export TESSERA_FAULT="${fault%:*}" TESSERA_FAULT_AT="${fault#*:}"
        refuses 60 'does not decode' "$FAULTY" compress --qp 40 --roi 10,10,90,80 $file -o out.tsr
    done
    unset TESSERA_FAULT TESSERA_FAULT_AT
done
# An exported file is decoded again: a wrong sample or a wrong byte, in each transfer syntax.
if [ -n "$dicom" ]; then
    run 0 "$TESSERA" compress -q $dicom -o right.tsr
    for to in native jpeg-ls jpeg-lossless rle j2k htj2k; do
        "$TESSERA" export -q right.tsr --to $to -o right.dcm 2>"$err" || { grep -q 'this build has no' "$err" && continue; }
        rm -f right.dcm
        export TESSERA_FAULT=evaluator
        refuses 60 'the exported file does not decode to the samples: ' "$FAULTY" export right.tsr --to $to -o out.dcm
        export TESSERA_FAULT=disk TESSERA_FAULT_AT=-5000
        refuses 60 'the exported file does not decode to the samples: ' "$FAULTY" export right.tsr --to $to -o out.dcm
        unset TESSERA_FAULT TESSERA_FAULT_AT
    done
    rm right.tsr
fi
# A wrong byte anywhere in the file: signature, header, tiles, proof, index, copies, footer.
for file in a.pgm c.png $dicom e.bin; do
    for TESSERA_FAULT_AT in 0 5 10 40 1000 -200 -100 -60 -30 -20 -1; do
        export TESSERA_FAULT_AT
        case $TESSERA_FAULT_AT-$file in
        0-* | 1000-* | -1-*) caught disk $file ;;
        *)
            export TESSERA_FAULT=disk
            refuses 60 'does not decode' "$FAULTY" compress $file -o out.tsr
            run 0 "$FAULTY" compress -q --verify none $file -o wrong.tsr
            unset TESSERA_FAULT
            ;;
        esac
        run 61 "$TESSERA" test wrong.tsr
        rm wrong.tsr
    done
done
finish
