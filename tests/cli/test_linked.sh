# Linked frames (BASE.md 5): -9 predicts frames from the one before where that pays. The same file comes back, from all forms,
# numbers of threads and the reference decoder; frames and regions are those of a file that is not linked. What damage costs,
# and lies: tests/unit/app/test_linked.c.
. "${0%/*}/steps.sh"
SOURCE=${0%/*}/../vectors

linked()
{
    run 0 "$TESSERA" info --json "$1"
    [ "$(fields linked)" = "$2" ] || bad "$1: linked is $(fields linked), not $2 ${3:-}"
}

for name in grey rgb; do
    components=1 && [ $name = grey ] || components=3
    python3 "$SOURCE/linked.py" $components >$name.nii
    run 0 "$TESSERA" compress -q -9 $name.nii -o $name.tsr
    linked $name.tsr true
    run 0 "$TESSERA" compress -q -9 --independent $name.nii -o alone.tsr -f
    linked alone.tsr absent
    [ "$(wc -c <$name.tsr)" -lt "$(wc -c <alone.tsr)" ] || bad "$name: linked frames take more bytes"
    for how in "-T 1" "-T 3" "--memory 400M"; do
        # shellcheck disable=SC2086 # options are words
        run 0 "$TESSERA" compress -q -f -9 $how $name.nii -o again.tsr
        cmp $name.tsr again.tsr || bad "$name, $how: other bytes"
        # shellcheck disable=SC2086
        run 0 "$TESSERA" decompress -q -f $how $name.tsr -o back
        cmp $name.nii back || bad "$name, $how: another file comes back"
    done
    TESSERA_ISA=plain run 0 "$TESSERA" compress -q -f -9 $name.nii -o again.tsr
    cmp $name.tsr again.tsr || bad "$name: plain forms give other bytes"
    TESSERA_ISA=plain run 0 "$TESSERA" decompress -q -f $name.tsr -o back
    cmp $name.nii back || bad "$name: plain forms give another file"
    run 0 "$TESSERA" test -q $name.tsr
    rm -f back
    run 0 "$BIN/tsr_reference" $name.tsr back
    cmp $name.nii back || bad "$name: the reference decoder gives another file"
    # Frames alone, and a region of each, are those of a file whose frames are not linked.
    for frame in 0 1 2 3 4 5 6 7 8 9 10 11; do
        for region in "" "--region 7,9,20,11"; do
            # shellcheck disable=SC2086
            run 0 "$TESSERA" decompress -q -f --frame $frame ${region:---region 0,0,40,36} $name.tsr -o one.npy
            # shellcheck disable=SC2086
            run 0 "$TESSERA" decompress -q -f --frame $frame ${region:---region 0,0,40,36} alone.tsr -o other.npy
            cmp one.npy other.npy || bad "$name, frame $frame $region: other samples"
        done
    done
done

# Only the effort that takes most time links, only without loss and by lanes, and no member of a series.
for how in -8 "-9 --coder cavlc" "-9 --path transform" "-9 --max-error 40"; do
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -q -f $how grey.nii -o not.tsr
    linked not.tsr absent "$how"
done
run 0 "$TESSERA" compress -q -9 --psnr 45 --lossless-rest grey.nii -o based.tsr
linked based.tsr absent
run 0 "$TESSERA" compress -q -9 --series series.tsr grey.nii rgb.nii
run 0 "$TESSERA" info --json series.tsr
grep -q linked "$out" && bad "a member of a series is linked"

# What reads the file says so.
run 0 "$TESSERA" info grey.tsr
grep -q '^  linked     frames are predicted from the one before' "$out" || bad "info does not tell: $(cat "$out")"
finish
