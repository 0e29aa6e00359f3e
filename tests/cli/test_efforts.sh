# Sparse images: without loss no file below 0.3 bit a sample, and no series of such files, is larger at a higher effort.
. "${0%/*}/steps.sh"

# sweep INPUT_OR_OPTION...: the sizes of all files at all efforts. Those that are sparse at one effort at least must be
# in order. *sparse*: their number.
sweep()
{
    for effort in 1 2 3 4 5 6 7 8 9; do
        run 0 "$TESSERA" compress -r --json --verify none -$effort "$@" -o coded
        fields file bytes_out bits_per_sample | sed "s/^/$effort$tab/"
        rm -rf coded
    done >sizes
    sparse=$(awk -F "$tab" '$4 != "null" && $4 < 0.3 { print $2 }' sizes | sort -u | tee names | wc -l)
    awk -F "$tab" '
        FNR == NR { sparse[$1] = 1; next }
        $2 in sparse && $2 in before && $3 > before[$2] {
            print $2 ": " $3 " bytes at " $1 ", " before[$2] " below"
            bad = 1
        }
        { before[$2] = $3 }
        END { exit bad }' names sizes || bad "sparse files are larger at a higher effort ($*)"
}

"$BIN/tessera_testdata" . sparse >/dev/null
sweep "$DATA/dicom/forms" "$DATA/dicom/seg" "$DATA/nifti" "$DATA/pnm" \
    "$DATA/png/long_rgb.png" "$DATA/png/ramp_rgb.png" "$DATA"/png/screen_*.png
[ "$sparse" -ge 20 ] || bad "only $sparse files of the set are sparse"
sweep sparse
[ "$sparse" -ge 35 ] || bad "only $sparse files are sparse"
for options in '--coder rans' '--coder huffman' '--path transform'; do
    # shellcheck disable=SC2086
    sweep sparse $options
    [ "$sparse" -ge 25 ] || bad "only $sparse files are sparse ($options)"
done

# Series. The members of the last one have headers that are compressed after each other.
mkdir scans && cp sparse/*_1bit.dcm sparse/mask_8bit.pgm scans
for folder in sparse/slices scans; do
    before=
    for effort in 1 2 3 4 5 6 7 8 9; do
        run 0 "$TESSERA" compress -q -f -r -$effort --series s.tsr "$folder"
        [ -z "$before" ] || [ "$(bytes_of s.tsr)" -le "$before" ] ||
            bad "a series of $folder has $(bytes_of s.tsr) bytes at $effort, $before below"
        before=$(bytes_of s.tsr)
    done
done

# What the encoder was told stands in the report and in the header, whatever was best.
run 0 "$TESSERA" compress --json -9 sparse/mask_8bit.pgm -o told.tsr
[ "$(fields coder effort)" = "rans${tab}9" ] || bad "the report says: $(fields coder effort)"
[ ! -x "$BIN/tsr_reference" ] || run 0 "$BIN/tsr_reference" --check told.tsr
finish
