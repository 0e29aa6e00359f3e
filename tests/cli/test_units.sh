# Frames that are units: those of encapsulated DICOM whose streams cannot be made again, and those of lossy JPEG.
. "${0%/*}/steps.sh"

frames()
{
    "$BIN/tsr_dicom_frames" "$@" || bad "tsr_dicom_frames $*"
}

# proof FILE: it comes back, by the reference decoder, too. Its .tsr is FILE.tsr.
proof()
{
    run 0 "$TESSERA" compress -q -f "$1"
    run 0 "$TESSERA" test "$1.tsr"
    run 0 "$TESSERA" decompress -q -f "$1.tsr" -o back && cmp "$1" back || bad "$1 does not come back"
    "$BIN/tsr_reference" --check "$1.tsr" >"$out" 2>"$err" || bad "the reference decoder: $(cat "$err")"
}

# units FILE.tsr: how many of its frames are.
units()
{
    run 0 "$TESSERA" info --json "$1"
    sed -n 's/.*"units":\([0-9]*\).*/\1/p' "$out" >count
    [ -s count ] || echo 0 >count
    cat count
}

# ---- One bad frame costs that frame: RLE, lossless JPEG, JPEG-LS, JPEG 2000 ----

run 0 "$TESSERA" compress -q "$DATA/dicom/us/loop_grey.dcm" -o volume.tsr
for to in rle jpeg-lossless jpeg-ls j2k; do
    run 0 "$TESSERA" export -q --to $to volume.tsr -o $to.dcm || continue
    proof $to.dcm
    [ "$(units $to.dcm.tsr)" = 0 ] || bad "a good file of $to has units"
    good=$(wc -c <$to.dcm.tsr)
    last=$(sed -n 's/.*"frames":\([0-9]*\).*/\1/p' "$out")
    last=$((last - 1))
    for frame in 0 1 $last; do
        for how in cut empty noise; do
            frames $to.dcm bad.dcm $frame $how
            proof bad.dcm
            [ "$(units bad.dcm.tsr)" = 1 ] || [ $to$how = rlecut ] || # which can be made again: its last rows are zeros
                bad "$to, frame $frame, $how: $(cat count) frames are units"
            [ "$(wc -c <bad.dcm.tsr)" -le $((good + $(wc -c <bad.dcm) / (last + 1) + 64)) ] ||
                bad "$to, frame $frame, $how costs more than that frame: $(wc -c <bad.dcm.tsr), $good"
        done
    done
    grep -q '"identical":true' "$out" || bad "a bad frame of $to: $(cat "$out")"
done

# Every frame is bad: nothing is coded, as ever.
cp rle.dcm bad.dcm
frame=0
while [ $frame -le "$last" ]; do
    frames bad.dcm worse.dcm $frame noise
    mv worse.dcm bad.dcm
    frame=$((frame + 1))
done
proof bad.dcm
grep -q '"restore":"encapsulated"' "$out" && bad "a file without a good frame is encapsulated"

# ---- Lossy JPEG ----
frames tiles.dcm 12 32 32
proof tiles.dcm
[ "$(units tiles.dcm.tsr)" = 12 ] || bad "$(cat count) of 12 frames are units"
for how in cut noise empty fault; do
    frames tiles.dcm bad.dcm 7 $how
    proof bad.dcm
    [ $how = noise ] || [ "$(wc -c <bad.dcm.tsr)" -le $(($(wc -c <tiles.dcm.tsr) + $(wc -c <bad.dcm) / 36)) ] ||
        bad "$how costs more than a third of the stream: $(wc -c <bad.dcm.tsr), $(wc -c <tiles.dcm.tsr)"
    [ "$(units bad.dcm.tsr)" = 12 ] || bad "$how: $(cat count) of 12 frames are units"
done
grep -q '"original_damage":"the JPEG stream of frame 8 has bits' "$out" || bad "a small .tsr does not say: $(cat "$out")"
frames tiles.dcm bad.dcm 0 noise
proof bad.dcm
[ "$(units bad.dcm.tsr)" = 12 ] || bad "the first is noise: $(cat count) of 12 frames are units"
# What looks damaged within a scan is named, though the frames are read when the header is written.
frames large.dcm 5 64 64
cp large.dcm hurt.dcm
dd if=/dev/zero of=hurt.dcm bs=1 seek=$(($(wc -c <large.dcm) / 2)) count=60 conv=notrunc 2>"$err"
run 0 "$TESSERA" compress -q --json hurt.dcm
grep -q '"damage":"the JPEG stream of frame 3 has bits that are no code' "$out" || bad "a fault is not named: $(cat "$out")"
proof hurt.dcm
run 0 "$TESSERA" info --json hurt.dcm.tsr
grep -q '"original_damage":"the JPEG stream of frame 3 has bits that are no code' "$out" ||
    bad "the .tsr does not say the fault: $(cat "$out")"
run 0 "$TESSERA" test --json hurt.dcm.tsr
grep -q '"damage":"the JPEG stream of frame 3 has bits that are no code' "$out" || bad "test does not: $(cat "$out")"
# The bytes depend on nothing but the file.
for threads in 1 3; do
    run 0 "$TESSERA" compress -q -T $threads tiles.dcm -o t$threads.tsr
    cmp tiles.dcm.tsr t$threads.tsr || bad "$threads threads make other bytes"
done
run 0 "$TESSERA" info tiles.dcm.tsr
grep -q 'as streams, each of which can be read alone' "$out" || bad "info: $(cat "$out")"
# Frames of no codec, which begin alike, take fewer bytes than their streams; tiny ones are better stored whole.
frames alike.dcm 12 3200 alike
proof alike.dcm
[ "$(units alike.dcm.tsr)" = 12 ] || bad "$(cat count) of 12 frames of noise are units"
[ "$(wc -c <alike.dcm.tsr)" -le $((12 * 3200 - 11 * (400 - 28) + 900)) ] || bad "alike: $(wc -c <alike.dcm.tsr)"
frames tiny.dcm 12 400 alike
proof tiny.dcm
[ "$(units tiny.dcm.tsr)" = 0 ] || bad "$(cat count) of 12 tiny frames are units"
# One frame is packed as ever.
frames one.dcm 1 24 24
proof one.dcm
run 0 "$TESSERA" info --json one.dcm.tsr
grep -q '"restore":"streams"' "$out" || bad "a file of one frame: $(cat "$out")"

# ---- Other verbs ----
frames rle.dcm bad.dcm 1 noise
run 0 "$TESSERA" compress -q -f bad.dcm
run 0 "$TESSERA" info bad.dcm.tsr
grep -q '1 frame is not coded as samples' "$out" || bad "info: $(cat "$out")"
run 0 "$TESSERA" verify bad.dcm bad.dcm.tsr
run 2 "$TESSERA" export --to native bad.dcm.tsr -o out.dcm
grep -q 'frames are not coded as samples' "$err" || bad "export: $(cat "$err")"
run 2 "$TESSERA" export --to native tiles.dcm.tsr -o out.dcm
[ -e out.dcm ] && bad "an export that failed has left a file"
for file in bad.dcm tiles.dcm; do
    rm -f lossy.tsr samples.tsr
    run 0 "$TESSERA" compress -q --quality web $file -o lossy.tsr
    cmp $file.tsr lossy.tsr || bad "$file is another file with a loss"
    run 0 "$TESSERA" compress -q --samples-only $file -o samples.tsr
    run 0 "$TESSERA" decompress -q -f samples.tsr -o back && cmp $file back || bad "$file: samples alone"
done

# ---- In a series ----
mkdir all
cp bad.dcm tiles.dcm rle.dcm all
frames tiles.dcm all/more.dcm 3 cut
run 0 "$TESSERA" compress -q -r --series all.tsr all
run 0 "$TESSERA" test all.tsr
run 0 "$TESSERA" decompress -q all.tsr -o again
diff -r all again || bad "the series does not come back"
"$BIN/tsr_reference" --check all.tsr >"$out" 2>"$err" || bad "the reference decoder: $(cat "$err")"

# ---- Damage: the file is named, and nothing is written ----
size=$(wc -c <tiles.dcm.tsr)
cp tiles.dcm.tsr hurt.tsr
printf 'XXXX' | dd of=hurt.tsr bs=1 seek=$((size / 2)) conv=notrunc 2>"$err"
run 61 "$TESSERA" test hurt.tsr
grep -q 'frame [0-9]* at byte [0-9]* is damaged' "$err" || bad "damage: $(cat "$err")"
rm -f back
run 61 "$TESSERA" decompress hurt.tsr -o back
[ -e back ] && bad "a damaged file was restored"
finish
