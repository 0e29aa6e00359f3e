# Y4M: each file of the set comes back, without loss and in gzip; with loss all but the samples does; frames are read.
. "${0%/*}/steps.sh"

bytes()
{
    wc -c <"$1"
}

for file in "$DATA"/y4m/*.y4m; do
    name=${file##*/}
    run 0 "$TESSERA" compress -q "$file" -o "$name.tsr"
    run 0 "$TESSERA" decompress -q "$name.tsr" -o back && cmp "$file" back || bad "$name does not come back"
    rm -f back
    "$BIN/tsr_reference" "$name.tsr" theirs && cmp "$file" theirs || bad "$name: the reference decoder"
    run 0 "$TESSERA" compress -q --samples-only "$file" -o samples.tsr
    cmp "$name.tsr" samples.tsr || bad "$name: samples alone"
    rm -f samples.tsr
done
run 0 "$TESSERA" info 420_odd.y4m.tsr
grep -q 'from  *y4m' "$out" && grep -q 'byte for byte (planes)' "$out" && grep -q '31 x 23, 4:2:0, 3 frames' "$out" &&
    grep -q 'raster  *32 x 35: luma' "$out" || bad "info: $(cat "$out")"
run 0 "$TESSERA" info --json 422_odd_12bit.y4m.tsr 420_odd.y4m.tsr 444.y4m.tsr
[ "$(grep -c '"video":{"columns":33,"rows":17,"chroma":"4:2:2"}' "$out")" = 1 ] || bad "info --json of 4:2:2: $(cat "$out")"
[ "$(grep -c '"video":{"columns":31,"rows":23,"chroma":"4:2:0"}' "$out")" = 1 ] || bad "info --json of 4:2:0: $(cat "$out")"
[ "$(grep -c '"video"' "$out")" = 2 ] || bad "info --json of 4:4:4: $(cat "$out")"
run 0 "$TESSERA" info cut.y4m.tsr
grep -q 'it ends before the last sample of frame 2' "$out" || bad "what is cut: $(cat "$out")"
run 0 "$TESSERA" compress -v -q -f "$DATA/y4m/unknown_chroma.y4m" -o again.tsr --json
grep -q 'its sampling of chroma is not known: 411' "$out" || bad "the reason: $(cat "$out")"

# With loss the file has the same size, the same lines and the same bytes around the frames.
for name in 420 420_10bit 422_odd_12bit 444 mono cut; do
    for how in '--qp 24' '--max-error 4' '--psnr 38'; do
        rm -f lossy.tsr lossy.y4m theirs
        # shellcheck disable=SC2086 # options are words
        run 0 "$TESSERA" compress -q $how "$DATA/y4m/$name.y4m" -o lossy.tsr
        run 0 "$TESSERA" test -q lossy.tsr
        run 0 "$TESSERA" decompress -q lossy.tsr -o lossy.y4m
        "$BIN/tsr_reference" lossy.tsr theirs && cmp lossy.y4m theirs || bad "$name $how: the reference decoder"
        [ "$(bytes lossy.y4m)" = "$(bytes "$DATA/y4m/$name.y4m")" ] || bad "$name $how: another size"
        run 0 "$TESSERA" compress -q --json -f lossy.y4m -o again.tsr
        grep -q '"kind":"y4m"' "$out" || bad "$name $how: what comes back is no Y4M: $(cat "$out")"
    done
done

# In gzip it costs what it costs alone; frames that repeat each other are stored where that is smaller.
gzip -nc "$DATA/y4m/420.y4m" >420.y4m.gz
run 0 "$TESSERA" compress -q 420.y4m.gz
[ "$(bytes 420.y4m.gz.tsr)" -le $(($(bytes 420.y4m.tsr) * 105 / 100 + 200)) ] || bad "in gzip: $(bytes 420.y4m.gz.tsr) bytes"
head -n 1 "$DATA/y4m/420.y4m" >still.y4m
for i in 1 2 3 4 5 6 7 8 9; do tail -c 4614 "$DATA/y4m/420.y4m"; done >>still.y4m
run 0 "$TESSERA" compress -q still.y4m
[ "$(bytes still.y4m.tsr)" -lt $((2 * $(bytes 420.y4m.tsr))) ] || bad "a still: $(bytes still.y4m.tsr) bytes"
run 0 "$TESSERA" verify -q still.y4m still.y4m.tsr
finish
