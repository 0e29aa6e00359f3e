# A file with a base (--lossless-rest): the same file comes back, and its base is the .tsr that the loss alone gives, byte for
# byte. The reference decoder agrees. A reader of the base needs the base alone, and damage to one part is told of that part.
. "${0%/*}/steps.sh"

# base FILE: its base to base.tsr, found by the size that info tells: the section ends eight bytes after it.
base()
{
    run 0 "$TESSERA" info --json "$1"
    size=$(fields base_bytes)
    [ "$size" != null ] || { bad "$1 has no base" && return 1; }
    # the header's section: signature, type, a varint below 128 or of two bytes, body, check
    first=$(od -An -v -tu1 -j5 -N2 "$1")
    set -- "$1" $first
    if [ "$2" -ge 128 ]; then at=$((4 + 3 + $2 - 128 + 128 * $3 + 8)); else at=$((4 + 2 + $2 + 8)); fi
    [ "$(tail -c +$((at + 1)) "$1" | head -c 1)" = L ] || bad "$1: its base does not follow the header"
    head=2 && left=$((size / 128))
    while [ "$left" -gt 0 ]; do head=$((head + 1)) && left=$((left / 128)); done
    base_at=$((at + head))
    tail -c +$((base_at + 1)) "$1" | head -c "$size" >base.tsr
}

# of_base HOW: how the base alone is made: at efforts 5 and 6 with effort 7.
of_base()
{
    case " $1 " in
    *" -"[1-489]" "*) echo "$1" ;;
    *) echo "$1 -7" ;;
    esac
}

# Kinds, depths, layouts; losses; efforts and coders. Each line: the file, then how.
while read -r name how; do
    case $name in
    "" | \#*) continue ;;
    esac
    cp "$DATA/$name" a && rm -f ./*.tsr b c d
    # shellcheck disable=SC2086 # options are words
    run 0 "$TESSERA" compress --json $how --lossless-rest a -o a.tsr
    reason=$(fields reason)
    [ "$(fields status identical verified)" = "ok${tab}true${tab}true" ] || bad "$name, $how: $(fields status identical verified)"
    if [ "$(fields way)" = stored ] || [ "$(fields base_bytes)" = null ]; then
        case $reason in
        *DCMTK*) ;; # this build lacks it
        *) bad "$name, $how: no base: $reason" ;;
        esac
        continue
    fi
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -q $(of_base "$how") a -o lossy.tsr
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -q -T 1 $how --lossless-rest a -o one.tsr
    cmp a.tsr one.tsr || bad "$name, $how: other bytes with one thread"
    base a.tsr
    cmp base.tsr lossy.tsr || bad "$name, $how: the base is not what the loss alone gives"
    run 0 "$TESSERA" decompress -q a.tsr -o b
    cmp a b || bad "$name, $how: another file comes back"
    run 0 "$TESSERA" decompress -q --base a.tsr -o c
    run 0 "$TESSERA" decompress -q lossy.tsr -o d
    cmp c d || bad "$name, $how: the base comes back as another file"
    run 0 "$TESSERA" test -q a.tsr
    run 0 "$TESSERA" test -q --base a.tsr
    rm -f b c
    run 0 "$BIN/tsr_reference" a.tsr b
    cmp a b || bad "$name, $how: the reference decoder gives another file"
    TESSERA_ISA=plain run 0 "$TESSERA" decompress -q a.tsr -o c
    cmp a c || bad "$name, $how: plain forms give another file"
done <<EOF
pnm/ct_12bit.pgm --psnr 45
pnm/mr_12bit.pgm --psnr 45 -3 --coder rans
pnm/landscape_grey_8bit.pgm --psnr 40 -9
pnm/landscape_grey_8bit.pgm --psnr 44 -6
pnm/landscape_grey_8bit.pgm --qp 10 -1
pnm/landscape_grey_8bit.pgm --qp 20 --coder cavlc
pnm/landscape_grey_8bit.pgm --max-error 3
pnm/landscape_8bit.ppm --psnr 42
pnm/landscape_16bit.ppm --quality web -8
png/landscape_rgb16.png --psnr 42
png/landscape_rgba.png --psnr 42 -7
png/landscape_grey16.png --psnr 45
y4m/420.y4m --psnr 40
nifti/i16.nii --psnr 45
dicom/ct/slice_01.dcm --psnr 45
dicom/ct/slice_01.dcm --quality diagnostic
dicom/samples/signed_masked.dcm --qp 20
dicom/samples/rgb_frames.dcm --qp 40
dicom/nm/tomo.dcm --qp 40
dicom/enhanced/slopes.dcm --qp 20
dicom/forms/big_signed.dcm --psnr 45
dicom/forms/big_rgb_planar.dcm --psnr 45
EOF

# What is never coded with loss has no base, and is said to have none; nor has what would be larger than stored.
for name in pnm/screen_1bit.pgm dicom/samples/32bit_noise.dcm dicom/forms/rle_8bit.dcm pnm/noise_16bit.pgm other/text.txt; do
    rm -f a.tsr b c
    run 0 "$TESSERA" compress --json --psnr 40 --lossless-rest "$DATA/$name" -o a.tsr
    case $(fields status base_bytes identical reason) in
    "ok${tab}null${tab}true${tab}no base: "*) ;;
    "ok${tab}null${tab}true${tab}"*) [ "$(fields way)" = stored ] || bad "$name: $(fields way reason)" ;;
    *) bad "$name: $(fields status base_bytes identical reason)" ;;
    esac
    run 0 "$TESSERA" decompress -q a.tsr -o b
    cmp "$DATA/$name" b || bad "$name: another file comes back"
    run 2 "$TESSERA" decompress -q --base a.tsr -o c
    says "a.tsr has no base (--lossless-rest makes one)"
    [ ! -e c ] || bad "$name: a base that is not there was written"
done

# Damage: of the base alone, of the rest alone. The base reads nothing of the rest.
cp "$DATA/pnm/ct_12bit.pgm" a && rm -f a.tsr
run 0 "$TESSERA" compress -q --psnr 45 --lossless-rest a -o a.tsr
base a.tsr
size=$(fields base_bytes)
run 0 "$TESSERA" decompress -q --base a.tsr -o whole
for at in $((base_at + size / 2)) $((base_at + size + 200)); do
    cp a.tsr hurt.tsr && changes_byte hurt.tsr "$at"
    rm -f b c
    run 61 "$TESSERA" test -q hurt.tsr
    run 61 "$TESSERA" decompress -q hurt.tsr -o b
    [ ! -e b ] || bad "damage at byte $at: a file was written"
    if [ "$at" -lt $((base_at + size)) ]; then
        run 61 "$TESSERA" decompress -q --base hurt.tsr -o c
    else
        run 0 "$TESSERA" decompress -q --base hurt.tsr -o c
        cmp c whole || bad "damage to the rest changes the base"
    fi
done

# An equal frame has the base of the frame that it is equal to: the loss may have made two of one.
{ head -c 46 "$DATA/nifti/i16.nii" && printf '\011\000' && tail -c +49 "$DATA/nifti/i16.nii" | head -c 304 &&
    for _ in 1 2 3; do tail -c +353 "$DATA/nifti/i16.nii"; done; } >three.nii
run 0 "$TESSERA" compress -q --psnr 40 --coder rans -9 --lossless-rest three.nii -o three.tsr
run 0 "$TESSERA" decompress -q three.tsr -o b -f
cmp three.nii b || bad "equal frames: another file comes back"
run 0 "$BIN/tsr_reference" --check three.tsr

# What --base writes has the name, size and time of the original, and is none. A lossy .tsr is not what --lossless-rest asks for.
rm -f a.pgm* && cp -p "$DATA/pnm/ct_12bit.pgm" a.pgm && cp -p a.pgm kept.pgm
run 0 "$TESSERA" compress -q --psnr 45 a.pgm
run 0 "$TESSERA" compress --json --psnr 45 --lossless-rest --update a.pgm
[ "$(fields status)" = ok ] || bad "a lossy .tsr counts as done: $(fields status)"
rm a.pgm && run 0 "$TESSERA" decompress -q --base a.pgm.tsr
cmp -s a.pgm kept.pgm && bad "this base is lossless: the checks say nothing"
refuses 41 'may be the only copy' "$TESSERA" decompress -q --update a.pgm.tsr
refuses 41 'may be the only copy' "$TESSERA" decompress -q a.pgm.tsr
run 2 "$TESSERA" decompress -q --base --update a.pgm.tsr
rm a.pgm && cp -p kept.pgm a.pgm
run 0 "$TESSERA" decompress --json --update a.pgm.tsr
[ "$(fields status)" = current ] || bad "the original does not count as restored: $(fields status)"
run 0 "$TESSERA" compress -q -f --psnr 45 --lossless-rest --rm a.pgm
[ ! -e a.pgm ] || bad "--rm leaves an original whose .tsr has it whole"

# What cannot be is said at once.
run 2 "$TESSERA" compress -q --lossless-rest a -o b.tsr
run 2 "$TESSERA" compress -q --psnr 40 --lossless-rest --samples-only a -o b.tsr
run 2 "$TESSERA" compress -q --psnr 40 --lossless-rest --series b.tsr a
[ ! -e b.tsr ] || bad "a run that was refused wrote a file"
finish
