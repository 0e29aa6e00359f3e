# A region that comes back as it was (--roi): bytes, status, what is told of it, damage, faults. That samples are the same
# is compared by tests/unit/app/test_region.c, and by the reference decoder here.
. "${0%/*}/steps.sh"

# Kinds, depths, layouts; losses; regions. Each line: the file, then how.
while read -r name how; do
    case $name in
    "" | \#*) continue ;;
    esac
    cp "$DATA/$name" a && rm -f ./*.tsr b c d
    # shellcheck disable=SC2086 # options are words
    run 0 "$TESSERA" compress --json $how a -o a.tsr
    [ "$(fields status identical lossless verified)" = "ok${tab}false${tab}false${tab}true" ] ||
        bad "$name, $how: $(fields status identical lossless verified reason)"
    [ "$(fields exact)" = object ] || { bad "$name, $how: no region: $(fields reason)" && continue; }
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -q -T 1 $how a -o one.tsr
    cmp a.tsr one.tsr || bad "$name, $how: other bytes with one thread"
    run 0 "$TESSERA" test -q a.tsr
    run 0 "$TESSERA" test -q --base a.tsr
    run 0 "$TESSERA" decompress -q a.tsr -o b
    run 0 "$TESSERA" decompress -q --base a.tsr -o d
    cmp -s b d && bad "$name, $how: the base is no other than the file"
    run 0 "$BIN/tsr_reference" a.tsr c
    cmp b c || bad "$name, $how: the reference decoder gives another file"
    TESSERA_ISA=plain run 0 "$TESSERA" compress -q -f $how a -o one.tsr
    cmp a.tsr one.tsr || bad "$name, $how: other bytes by plain forms"
    run 0 "$TESSERA" info a.tsr
    grep -q '^  exact ' "$out" || bad "$name, $how: info tells of no region"
done <<EOT
pnm/ct_12bit.pgm --psnr 45 --roi 100,100,30,40
pnm/ct_12bit.pgm --quality diagnostic --roi 120,120,3,2 -9
pnm/landscape_grey_8bit.pgm --max-error 9 --roi 20,10,30,30 --roi 100,90,999,999
pnm/landscape_8bit.ppm --psnr 40 --roi 60,60,30,30 -1
pnm/landscape_16bit.ppm --qp 30 --roi 5,6,7,8 --coder rans
png/landscape_rgb16.png --psnr 42 --roi 10,10,20,20
png/landscape_rgba.png --psnr 40 --roi 50,50,20,20 --coder cavlc
png/landscape_grey16.png --psnr 40 --roi 30,30,20,20 --roi 90,10,9,9
nifti/i16.nii --psnr 25 --roi 60,60,9,9
nifti/u16.nii --max-error 60 --roi 5,5,9,9
dicom/ct/slice_01.dcm --psnr 45 --roi 90,80,40,30
dicom/samples/signed_masked.dcm --qp 40 --roi 10,10,9,9
dicom/samples/rgb_frames.dcm --qp 51 --roi 10,10,4,3
dicom/enhanced/slopes.dcm --qp 40 --roi 10,10,9,9
dicom/forms/big_signed.dcm --psnr 40 --roi 10,10,5,5
dicom/forms/big_rgb_planar.dcm --psnr 40 --roi 10,10,5,5
EOT

# A region is of each slice, also of NIfTI whose small slices would else stand in one frame.
cp "$DATA/nifti/u16.nii" a.nii
run 0 "$TESSERA" compress -q -f --max-error 60 --roi 5,5,9,9 a.nii -o a.tsr
run 0 "$TESSERA" info a.tsr
grep -q '70 x 60, 2 frames' "$out" || bad "slices of NIfTI stand in one frame: $(cat "$out")"
run 0 "$TESSERA" decompress -q a.tsr -o b.nii
for slice in 0 1; do
    run 0 "$TESSERA" cat --region 5,5,9,9 --frame $slice a.tsr && cp "$out" of_roi
    run 0 "$TESSERA" compress -q -f b.nii -o c.tsr
    run 0 "$TESSERA" compress -q -f a.nii -o d.tsr
    for whole in c d; do
        run 0 "$TESSERA" cat --region 5,$((5 + 60 * slice)),9,9 $whole.tsr && cmp "$out" of_roi || bad "slice $slice is not exact"
    done
done
run 0 "$TESSERA" verify a.nii a.tsr

# Without a search for a step the base is what the loss alone gives.
cp "$DATA/pnm/ct_12bit.pgm" a.pgm && rm -f ./*.tsr
run 0 "$TESSERA" compress -q --qp 30 a.pgm -o lossy.tsr
run 0 "$TESSERA" decompress -q lossy.tsr -o lossy.pgm
run 0 "$TESSERA" compress -q --qp 30 --roi 50,60,70,80 a.pgm -o a.tsr
run 0 "$TESSERA" decompress -q --base a.tsr -o base.pgm
cmp base.pgm lossy.pgm || bad "the base is not what the loss alone gives"

# Images as masks. One of a rectangle gives the bytes of the rectangle; all that are given count together, with
# rectangles, and all of their frames.
mask()
{
    printf 'P5\n%d %d\n255\n' "$1" "$2"
    awk -v w="$1" -v h="$2" -v x="$3" -v y="$4" -v m="$5" -v n="$6" 'BEGIN {
        for (r = 0; r < h; r++) for (c = 0; c < w; c++) printf "%s", ((c >= x) && (c < x + m) && (r >= y) && (r < y + n)) ? 1 : 0
    }' | tr '01' '\000\001'
}
mask 256 256 50 60 70 80 >mask.pgm
run 0 "$TESSERA" compress -q -f --qp 30 --roi mask.pgm a.pgm -o b.tsr
cmp a.tsr b.tsr || bad "a mask of a rectangle gives other bytes"
run 0 "$TESSERA" compress -q mask.pgm -o mask.pgm.tsr
run 0 "$TESSERA" compress -q -f --qp 30 --roi mask.pgm.tsr a.pgm -o b.tsr
cmp a.tsr b.tsr || bad "a mask in a .tsr gives other bytes"
run 0 "$TESSERA" compress --json -f --qp 30 --roi mask.pgm --roi 0,0,16,16 a.pgm -o b.tsr
cmp -s a.tsr b.tsr && bad "of a mask and a rectangle one counts alone"
run 0 "$TESSERA" info --json b.tsr
grep -q '"list":\[\[0,0,' "$out" || bad "the list does not begin at the rectangle: $(cat "$out")"
mask 256 255 50 60 70 80 >small.pgm
mask 256 256 0 0 0 0 >none.pgm
refuses 2 'the mask of the region has 256 x 255 samples, and a.pgm 256 x 256' "$TESSERA" compress --qp 30 --roi small.pgm a.pgm -o c.tsr
refuses 2 'the images of --roi have different sizes' "$TESSERA" compress --qp 30 --roi small.pgm --roi mask.pgm a.pgm -o c.tsr
refuses 2 'the region of a.pgm has no samples' "$TESSERA" compress --qp 30 --roi none.pgm a.pgm -o c.tsr
refuses 2 'the mask of the region has 256 x 255' "$TESSERA" compress --qp 30 --roi small.pgm a.pgm -o c.tsr
run 0 "$TESSERA" compress --dry-run --qp 30 --roi mask.pgm a.pgm -o c.tsr
run 20 "$TESSERA" compress --dry-run --qp 30 --roi missing.png a.pgm -o c.tsr
refuses 20 '' "$TESSERA" compress --qp 30 --roi missing.png a.pgm -o c.tsr
# Each body is a part of the image that stands out.
run 0 "$TESSERA" compress --json -f --psnr 50 --roi auto "$DATA/dicom/ct/slice_01.dcm" -o b.tsr
[ "$(fields exact)" = object ] || [ "$(fields lossless)" = true ] || bad "auto finds nothing: $(cat "$out")"

# What cannot be is said, and nothing is written. In a set the other files are coded.
refuses 2 'the region 256,0,5,5 lies outside of a.pgm, which has 256 x 256 samples' "$TESSERA" compress --qp 30 --roi 256,0,5,5 a.pgm -o c.tsr
refuses 2 'needs a loss' "$TESSERA" compress --roi 1,1,5,5 a.pgm -o c.tsr
refuses 2 'give another loss' "$TESSERA" compress --size 9k --roi 1,1,5,5 a.pgm -o c.tsr
refuses 2 'give one' "$TESSERA" compress --qp 30 --lossless-rest --roi 1,1,5,5 a.pgm -o c.tsr
refuses 2 'give one' "$TESSERA" compress --qp 30 --roi 1,1,5,5 --series c.tsr a.pgm
for text in 1,1,5 1,1,5,5,5 1,1,0,5 -1,1,5,5 1,1,5,70000 1,,5,5; do
    refuses 2 '--roi wants column, row, columns and rows' "$TESSERA" compress --qp 30 --roi "$text" a.pgm -o c.tsr
done
refuses 2 'is video' "$TESSERA" compress --qp 30 --roi 1,1,5,5 "$DATA/y4m/420.y4m" -o c.tsr
mkdir set && cp a.pgm set/a.pgm && cp "$DATA/pnm/texture_200.pgm" set/b.pgm
run 75 "$TESSERA" compress -q -r --qp 30 --roi 210,0,5,5 -o coded set
[ -f coded/a.pgm.tsr ] && [ ! -e coded/b.pgm.tsr ] || bad "a set with a file that has no such region"

# What is never coded with loss, or is hardly larger without, comes back whole, and a stored file as ever.
for name in pnm/screen_1bit.pgm pnm/ramp_8bit.pgm other/text.txt dicom/forms/rle_8bit.dcm; do
    rm -f c.tsr b
    run 0 "$TESSERA" compress -q --psnr 40 --roi 1,1,5,5 "$DATA/$name" -o c.tsr
    run 0 "$TESSERA" decompress -q c.tsr -o b
    cmp "$DATA/$name" b || bad "$name: another file comes back"
    rm -f d.tsr
    run 0 "$TESSERA" compress -q --psnr 40 "$DATA/$name" -o d.tsr
    cmp c.tsr d.tsr || bad "$name: a region that is not needed changes bytes"
done
rm -f c.tsr b
run 0 "$TESSERA" compress --json --psnr 45 --roi 0,0,256,256 a.pgm -o c.tsr
[ "$(fields identical reason)" = "true${tab}coded without loss: that takes at most 1.1 times the bytes" ] || bad "all of an image: $(cat "$out")"

# Such a file is a lossy one: --rm and --update treat it so.
refuses 2 '--rm' "$TESSERA" compress --qp 30 --roi 1,1,5,5 --rm a.pgm -o c.tsr -f
rm -f a.pgm.tsr
run 0 "$TESSERA" compress -q --qp 30 a.pgm
run 0 "$TESSERA" compress --json --qp 30 --roi 1,1,5,5 --update a.pgm
[ "$(fields status)" = ok ] || bad "a lossy .tsr without a region counts as done: $(fields status)"
run 0 "$TESSERA" compress --json --qp 30 --roi 1,1,5,5 --update a.pgm
[ "$(fields status exact)" = "current${tab}object" ] || bad "a .tsr with a region does not count as done: $(fields status exact)"
run 0 "$TESSERA" compress --json --update a.pgm
[ "$(fields status identical)" = "ok${tab}true" ] || bad "a .tsr with a region counts as lossless: $(fields status identical)"

# Damage of either part: a wrong file never comes back.
run 0 "$TESSERA" decompress -q -f a.tsr -o right
for at in 100 1000 -400 -1000; do
    cp a.tsr hurt.tsr && size=$(wc -c <a.tsr) && rm -f b
    [ "$at" -gt 0 ] || at=$((size + at))
    changes_byte hurt.tsr "$at"
    run 61 "$TESSERA" test -q hurt.tsr
    if "$TESSERA" decompress -q hurt.tsr -o b 2>/dev/null; then cmp b right || bad "damage at byte $at: a wrong file"; fi
done

# verify and the page say it, too. An original that differs where samples are exact is another one.
mkdir originals archive && cp "$DATA/pnm/ct_12bit.pgm" originals/a.pgm
run 0 "$TESSERA" compress -q --qp 30 --roi 50,60,70,80 --report page.html originals/a.pgm -o archive/a.pgm.tsr
grep -q '5,600 samples of each frame and component are as they were, in 50,60,70,80\|5600 samples of each frame' page.html || bad "the page does not say what is exact"
run 0 "$TESSERA" verify --json originals archive
grep -q '"exact":{"samples":5600,"rectangles":1,"box":\[50,60,70,80\]' "$out" || bad "verify does not say what is exact: $(cat "$out")"
changes_byte originals/a.pgm $((15 + 2 * (100 * 256 + 80) + 1))
"$TESSERA" verify --json originals archive >"$out" 2>&1 && bad "verify takes another original"

# The derived DICOM object says it, and has another UID than the base.
run 0 "$TESSERA" compress -q -f --qp 30 --roi 90,80,40,30 "$DATA/dicom/ct/slice_01.dcm" -o c.tsr
run 0 "$TESSERA" decompress -q -f c.tsr -o whole.dcm
run 0 "$TESSERA" decompress -q -f --base c.tsr -o base.dcm
grep -aq 'coded with loss by Tessera, ratio [0-9.]*, but without loss in 90,80,40,30' whole.dcm || bad "the derived object does not say what is exact"
grep -aq 'but without loss' base.dcm && bad "the base's object says that something is exact"
[ "$(grep -ao '2[.]25[.][0-9]*' whole.dcm | head -1)" != "$(grep -ao '2[.]25[.][0-9]*' base.dcm | head -1)" ] || bad "two objects have one UID"
finish
