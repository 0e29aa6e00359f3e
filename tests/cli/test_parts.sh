# decompress and cat: --region, --frame, --salvage: statuses, names, kinds of pictures, masks, JSON lines. The samples are
# compared by tests/unit/app/test_pictures.c.
. "${0%/*}/steps.sh"

# values FILE: the sum of the bytes after an .npy's first 128.
values() { tail -c +129 "$1" | cksum; }

cp "$DATA/dicom/ct/slice_01.dcm" ct.dcm && cp "$DATA/pnm/ct_12bit.pgm" a.pgm && cp "$DATA/png/landscape_rgb16.png" rgb.png
run 0 "$TESSERA" compress -q ct.dcm a.pgm rgb.png

# Names: as the output ends, or beside the input; folders; stdout.
run 0 "$TESSERA" decompress --region 10,20,30,40 ct.dcm.tsr
grep -q '^a region of 1 file, 2528 bytes' "$out" || bad "the summary does not tell of a region"
grep -q PROVEN "$out" "$err" && bad "a region is said to be unproven"
[ "$(wc -c <ct.dcm.region.npy)" -eq $((128 + 2 * 30 * 40)) ] || bad "another number of bytes"
run 41 "$TESSERA" decompress -q --region 10,20,30,40 ct.dcm.tsr
run 0 "$TESSERA" decompress -q --region 10,20,30,40 ct.dcm.tsr a.pgm.tsr -o pictures
[ -f pictures/ct.dcm.region.npy ] && [ -f pictures/a.pgm.region.npy ] || bad "no pictures in a folder"
run 0 "$TESSERA" cat --region 10,20,30,40 ct.dcm.tsr && cp "$out" cat.npy
cmp cat.npy ct.dcm.region.npy || bad "cat writes another region"
"$TESSERA" decompress -q --region 10,20,30,40 - <ct.dcm.tsr >pipe.npy || bad "a region of a pipe"
cmp pipe.npy cat.npy || bad "a pipe has another region"
run 0 "$TESSERA" decompress -q --region 0,0,256,256 a.pgm.tsr -o all.pgm
tail -c $((256 * 256 * 2)) a.pgm | cmp - all.pgm >/dev/null && bad "a head is missing"
[ "$(tail -c $((256 * 256 * 2)) a.pgm | cksum)" = "$(tail -c $((256 * 256 * 2)) all.pgm | cksum)" ] || bad "other samples"
run 0 "$TESSERA" decompress -q --region 5,5,50,40 rgb.png.tsr -o part.png
"$BIN/tessera" compress -q part.png -o part.tsr || bad "the PNG cannot be read"
run 0 "$TESSERA" info part.tsr
grep -q '50 x 40, 1 frame, 3 components, 16 bits' "$out" || bad "another PNG: $(grep image "$out")"

# Floating-point pixels of DICOM are numbers, as the file has them.
cp "$DATA/dicom/samples/float.dcm" float.dcm && run 0 "$TESSERA" compress -q float.dcm
run 0 "$TESSERA" info float.dcm.tsr
grep -q 'floating-point' "$out" || bad "info does not tell of floating-point numbers: $(cat "$out")"
run 0 "$TESSERA" decompress -q --region 0,0,9999,9999 float.dcm.tsr
head -c 128 float.dcm.region.npy | grep -q "'descr': '<f4'" || bad "no floating-point numbers: $(head -c 128 float.dcm.region.npy)"
first=$(($(grep -abo OF float.dcm | tail -n 1 | cut -d: -f1) + 8))
cmp -i 128:$first -n $(($(wc -c <float.dcm.region.npy) - 128)) float.dcm.region.npy float.dcm || bad "other numbers than the file's"

# Clipped, outside, and what cannot be.
run 0 "$TESSERA" decompress -q --region 250,250,999,999 a.pgm.tsr -o corner.npy
[ "$(wc -c <corner.npy)" -eq $((128 + 2 * 6 * 6)) ] || bad "a region is not clipped"
while read -r words; do
    # shellcheck disable=SC2086 # options are words
    run 2 "$TESSERA" decompress -q $words
    [ -e no.npy ] || [ -e no.png ] || [ -e no.dcm ] && bad "an output of $words"
done <<EOT
--region 256,0,9,9 a.pgm.tsr -o no.npy
--region 0,256,9,9 a.pgm.tsr -o no.npy
--region 0,0,9 a.pgm.tsr -o no.npy
--region 0,0,9,0 a.pgm.tsr -o no.npy
--region 0,0,9,9@1 a.pgm.tsr -o no.npy
--region 0,0,9,9@base a.pgm.tsr -o no.npy
--region 0,0,9,9 --region 0,0,9,9 a.pgm.tsr -o no.npy
--region 0,0,9,9 --frame 1 a.pgm.tsr -o no.npy
--region 0,0,9,9 --frame -1 a.pgm.tsr -o no.npy
--frame 0 a.pgm.tsr -o no.npy
--region 0,0,9,9 ct.dcm.tsr -o no.png
--region 0,0,9,9 ct.dcm.tsr -o no.dcm
--region 0,0,9,9 --update a.pgm.tsr -o no.npy
--region 0,0,9,9 --salvage a.pgm.tsr -o no.npy
--salvage a.pgm.tsr -o -
--salvage a.pgm.tsr -o below/a.pgm
EOT
run 21 "$TESSERA" decompress -q --region 0,0,9,9 a.pgm -o no.npy

# Of the base; of a series; of a stored image; all frames, and one.
run 0 "$TESSERA" compress -q -f --psnr 40 --lossless-rest a.pgm -o both.tsr
run 0 "$TESSERA" decompress -q --base both.tsr -o base.pgm
run 0 "$TESSERA" compress -q base.pgm -o base.tsr
run 0 "$TESSERA" decompress -q --region 30,40,50,60 base.tsr -o base.npy
run 0 "$TESSERA" decompress -q --region 30,40,50,60@base both.tsr -o of_base.npy
run 0 "$TESSERA" decompress -q --region 30,40,50,60 both.tsr -o whole.npy
run 0 "$TESSERA" decompress -q --region 30,40,50,60 a.pgm.tsr -o single.npy
cmp base.npy of_base.npy || bad "the base has another region"
cmp whole.npy single.npy || bad "a file with a base has another region"
cmp -s whole.npy of_base.npy && bad "the base has no loss"
run 0 "$TESSERA" compress -q --series s.tsr ct.dcm a.pgm
run 0 "$TESSERA" cat --region 10,20,30,40 s.tsr::ct.dcm && cmp "$out" cat.npy || bad "a series has another region"
cp "$DATA/dicom/samples/rgb_frames.dcm" frames.dcm && run 0 "$TESSERA" compress -q frames.dcm
run 0 "$TESSERA" decompress -q --region 3,2,5,4 frames.dcm.tsr -o frames.npy
run 0 "$TESSERA" decompress -q --region 3,2,5,4 --frame 1 frames.dcm.tsr -o frame.npy
[ "$(tail -c +129 frames.npy | tail -c +$((1 + 3 * 5 * 4)) | head -c $((3 * 5 * 4)) | cksum)" = "$(values frame.npy)" ] ||
    bad "frame 1 is another one"
run 2 "$TESSERA" decompress -q --region 3,2,5,4 frames.dcm.tsr -o frames.png
run 0 "$TESSERA" decompress -q --region 3,2,5,4 --frame 1 frames.dcm.tsr -o frame.png

# Salvage: of a whole file, of one that is cut, of one with a hole; by name, with masks and lines.
run 76 "$TESSERA" decompress --salvage a.pgm.tsr
grep -q '100.00 % of the samples are held, as they were' "$out" || bad "a whole file: $(cat "$out")"
[ -f a.pgm.salvaged.npy ] && [ -f a.pgm.salvaged.mask.pgm ] || bad "no picture, or no mask"
run 41 "$TESSERA" decompress -q --salvage a.pgm.tsr
run 76 "$TESSERA" decompress -q -f --salvage a.pgm.tsr
run 0 "$TESSERA" decompress -q -f --region 0,0,256,256 a.pgm.tsr -o all.npy
cmp all.npy a.pgm.salvaged.npy || bad "what is left of a whole file is not all of it"
head -c $(($(wc -c <a.pgm.tsr) - 130)) a.pgm.tsr >cut.tsr
run 61 "$TESSERA" decompress -q cut.tsr -o no.pgm
run 76 "$TESSERA" decompress --json --salvage cut.tsr -o cut.pgm
grep -v region "$out" | head -n 1 >line && cp line "$out"
[ "$(fields status samples_held lossless searched exit)" = "salvaged${tab}65536${tab}true${tab}true${tab}76" ] ||
    bad "a cut file: $(cat "$out")"
cmp cut.pgm all.pgm || bad "a cut file has other samples"
[ -f cut.mask.pgm ] || bad "a cut file has no mask"
# Neither the mask nor a region gets the name of the original, and no mask takes the place of another input.
cp a.pgm.tsr m.mask.pgm.tsr && echo original >m.mask.pgm
run 2 "$TESSERA" decompress -qf --salvage m.mask.pgm.tsr -o m.npy
run 2 "$TESSERA" decompress -qf --region 0,0,9,9 m.mask.pgm.tsr -o m.mask.pgm
[ "$(cat m.mask.pgm)" = original ] || bad "the original is overwritten"
cp a.pgm.tsr y.salvaged.mask.pgm && cp a.pgm.tsr y.tsr
run 75 "$TESSERA" decompress -qf --salvage y.tsr y.salvaged.mask.pgm -o .
cmp a.pgm.tsr y.salvaged.mask.pgm || bad "a mask takes the place of an input"
rm -f m.* y.*
# A mask that is a symbolic link is written through it, as the picture is.
echo other >other && ln -s other l.mask.pgm && ln -s third l.npy && echo third >third
run 76 "$TESSERA" decompress -qf --salvage a.pgm.tsr -o l.npy
[ -h l.mask.pgm ] && cmp l.mask.pgm a.pgm.salvaged.mask.pgm || bad "a mask that is a link: $(ls -l l.*)"
[ -h l.npy ] && cmp l.npy a.pgm.salvaged.npy || bad "a picture that is a link: $(ls -l l.*)"
# A hole of zeros, as of a copy of a bad disk, in a file without its end.
run 0 "$TESSERA" compress -qf "$DATA/pnm/landscape_8bit.ppm" -o two.tsr
{ head -c 3000 two.tsr && head -c 20000000 /dev/zero && tail -c +3001 two.tsr | head -c -60; } >hole.tsr
run 76 "$TESSERA" decompress -q -T 1 --memory 100M --salvage hole.tsr -o hole.ppm
tail -c $((384 * 128 * 3)) hole.ppm >ours && tail -c $((384 * 128 * 3)) "$DATA/pnm/landscape_8bit.ppm" | cmp - ours || bad "the tile behind a hole"
rm -f hole.*
head -c 5000 cut.tsr >short.tsr && printf 'no .tsr' >none.tsr && cp "$DATA/other/text.txt" . && run 0 "$TESSERA" compress -q text.txt
run 61 "$TESSERA" decompress -q --salvage short.tsr -o no.npy
run 21 "$TESSERA" decompress -q --salvage none.tsr -o no.npy
run 2 "$TESSERA" decompress -q --salvage text.txt.tsr -o no.npy
[ -e no.npy ] || [ -e no.mask.pgm ] && bad "something of nothing"
run 75 "$TESSERA" decompress -q --salvage cut.tsr short.tsr -o left
[ -f left/cut.salvaged.npy ] && [ ! -e left/short.salvaged.npy ] || bad "of two files, another one is saved"
run 0 "$TESSERA" decompress -q --region 1,2,3,4 s.tsr -o of_series
[ -f of_series/ct.dcm.region.npy ] && [ -f of_series/a.pgm.region.npy ] || bad "no regions of a series"
cp s.tsr hurt.tsr && printf 'other' | dd of=hurt.tsr bs=1 seek=9000 conv=notrunc 2>/dev/null
run 75 "$TESSERA" decompress -q --salvage hurt.tsr -o of_hurt
[ "$(ls of_hurt | grep -c 'salvaged.npy$')" -eq 1 ] || bad "of a hurt series: $(ls of_hurt)"
printf 'other' | dd of=cut.tsr bs=1 seek=9000 conv=notrunc 2>/dev/null
run 61 "$TESSERA" decompress -q -f --salvage cut.tsr -o cut.pgm
cmp cut.pgm all.pgm || bad "an earlier picture is lost"

finish
