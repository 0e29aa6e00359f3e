# --first and --tile: whatever comes first, the same file comes back; its bytes don't depend on threads; a prefix of it has the
# region; the reference decoder agrees. What has no order is said to have none, and what cannot be is refused at once.
. "${0%/*}/steps.sh"

# order FILE: how many tiles come first, of how many; null without an order.
order() { run 0 "$TESSERA" info --json "$1" && fields first_tiles tiles; }

# Kinds, frames, paths, losses, bases. Each line: the file, first tiles of all of them, then how.
while read -r name first how; do
    case $name in
    "" | \#*) continue ;;
    esac
    cp "$DATA/$name" a && rm -f ./*.tsr b c
    # shellcheck disable=SC2086 # options are words
    run 0 "$TESSERA" compress -q $how a -o a.tsr
    [ "$(order a.tsr)" = "$(echo "$first" | tr / '\t')" ] || bad "$name, $how: tiles $(order a.tsr), not $first"
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -q -T 1 $how a -o one.tsr
    cmp a.tsr one.tsr || bad "$name, $how: other bytes with one thread"
    run 0 "$TESSERA" test -q a.tsr
    run 0 "$TESSERA" decompress -q a.tsr -o b
    run 0 "$BIN/tsr_reference" a.tsr c
    cmp b c || bad "$name, $how: the reference decoder gives another file"
    case $how in
    *--psnr*--lossless-rest*) cmp a b || bad "$name, $how: another file comes back" ;;
    *--psnr* | *--qp*) ;;
    *) cmp a b || bad "$name, $how: another file comes back" ;;
    esac
done <<EOT
pnm/ct_12bit.pgm 1/16 --first 100,100,20,20 --tile 64
pnm/ct_12bit.pgm 1/16 --first 100,100,20,20 --tile 64 -9
pnm/ct_12bit.pgm 1/16 --first 100,100,20,20 --tile 64 --psnr 45 --lossless-rest
pnm/ct_12bit.pgm 4/16 --first 60,60,20,20 --tile 64 --coder cavlc
pnm/ct_12bit.pgm 2/16 --first 0,0,1,1 --first 250,250,9,9 --tile 64 --path transform
png/landscape_rgb.png 1/48 --first 10,10,50,50 --tile 64
png/landscape_rgb16.png 1/6 --first 10,10,50,50 --tile 64 --psnr 42
png/screen_rgb.png 2/70 --first 100,100,20,20 --tile 64
nifti/i16.nii 1/6 --first 0,0,2,2 --tile 64
dicom/enhanced/slopes.dcm 1/4 --first 90,0,3,3 --tile 64
dicom/ct/slice_01.dcm 2/16 --first 50,50,30,10 --tile 64 --qp 20
EOT

# What comes first arrives first: a third of the file has the region, and without --first has it not.
cp "$DATA/png/landscape_rgb.png" a.png && rm -f ./*.tsr
for how in "--first 256,192,64,64" ""; do
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -q -f --tile 64 $how a.png -o a.tsr
    head -c $(($(wc -c <a.tsr) / 6)) a.tsr >part.tsr
    run 76 "$TESSERA" decompress --json --salvage -f part.tsr -o part.npy
    held=$(grep -c '"frame":0,"region":\[256,192,64,64\],"held":true' "$out")
    [ "$held" -eq $((${#how} > 0)) ] || bad "a sixth of the file with '$how' has the region: $held"
done

# A mask, and the same as a rectangle; the body; several.
"$BIN/tessera" decompress -q --region 0,0,256,256 a.tsr -o m.png && { printf 'P5 256 256 255\n' && { head -c $((100 * 256 + 100)) /dev/zero &&
    printf '\377' && head -c $((65536 - 100 * 256 - 101)) /dev/zero; }; } >mask.pgm
cp "$DATA/pnm/ct_12bit.pgm" b.pgm
run 0 "$TESSERA" compress -q --first mask.pgm --tile 64 b.pgm -o mask.tsr
run 0 "$TESSERA" compress -q --first 100,100,1,1 --tile 64 b.pgm -o point.tsr
cmp mask.tsr point.tsr || bad "a mask is not what the same rectangle is"
run 0 "$TESSERA" compress -q --first auto --tile 64 b.pgm -o auto.tsr

# No order: one tile, all tiles, files without samples. With --roi the base has it.
run 0 "$TESSERA" compress -q --first 0,0,9,9 "$DATA/odd/63x65_8bit.pgm" -o small.tsr
[ "$(order small.tsr)" = "absent${tab}absent" ] || bad "one tile has an order: $(order small.tsr)"
run 0 "$TESSERA" compress -q "$DATA/odd/63x65_8bit.pgm" -o plain.tsr
cmp small.tsr plain.tsr || bad "one tile: other bytes with --first"
run 0 "$TESSERA" compress -q --first 0,0,256,256 --tile 64 b.pgm -o all.tsr
run 0 "$TESSERA" compress -q --tile 64 b.pgm -o none.tsr
cmp all.tsr none.tsr || bad "all tiles: other bytes with --first"
run 0 "$TESSERA" compress -q --first 0,0,9,9 "$DATA/other/text.txt" -o text.tsr
run 0 "$TESSERA" compress -q --qp 30 --roi 30,30,40,40 --first 100,100,20,20 --tile 64 b.pgm -o roi.tsr
[ "$(order roi.tsr)" = "absent${tab}absent" ] || bad "patches have an order: $(order roi.tsr)"
run 0 "$TESSERA" info --json --base roi.tsr
[ "$(fields first_tiles tiles)" = "1${tab}16" ] || bad "the base has no order: $(fields first_tiles tiles)"
run 0 "$BIN/tsr_reference" --check roi.tsr

# --update leaves a file as it is, whatever its order.
cp b.pgm u.pgm && run 0 "$TESSERA" compress -q u.pgm
run 0 "$TESSERA" compress --json --update --first 9,9,9,9 --tile 64 u.pgm
[ "$(fields status)" = current ] || bad "--update orders anew: $(fields status)"

# What cannot be.
while read -r text; do
    # shellcheck disable=SC2086
    run 2 "$TESSERA" compress -q $text b.pgm -o no.tsr
    [ ! -e no.tsr ] || bad "an output of $text"
done <<EOT
--first 1,2,3
--first 1,2,0,4
--first 256,0,9,9
--tile 63
--tile 0
--tile 512
EOT
run 2 "$TESSERA" compress -q --first 0,0,9,9 --series no.tsr b.pgm
says "--first is for single files, not for a --series"
run 2 "$TESSERA" compress -q --first 0,0,9,9 "$DATA/y4m/420.y4m" -o no.tsr
says "whose frames have no region (--first is given)"
run 2 "$TESSERA" compress -q --first "$DATA/odd/63x65_8bit.pgm" b.pgm -o no.tsr
[ ! -e no.tsr ] || bad "an output of what is refused"
finish
