# A file with a base (--lossless-rest): the same file comes back, and its base is the .tsr that the loss alone gives, byte for
# byte. The reference decoder agrees. A reader of the base needs the base alone, and damage to one part is told of that part.
. "${0%/*}/steps.sh"

# section FILE TYPE: offset of the body and bytes of the body of the first section of this type after the header.
section()
{
    "$BIN/tsr_sections" "$1" | awk -v type="$2" '$1 == type { print $2, $3; exit }'
}
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
    run 0 "$TESSERA" compress -q $how a -o lossy.tsr
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
pnm/grey_16bit.pgm --psnr 45
pnm/grey_8bit.pgm --psnr 40 -9
pnm/grey_8bit.pgm --qp 10 -1
pnm/grey_16bit.pgm --psnr 45 -3 --coder rans
pnm/grey_16bit.pgm --psnr 45 --coder cavlc
pnm/grey_8bit.pgm --max-error 3
pnm/rgb_8bit.ppm --psnr 42
pnm/rgb_8bit.ppm --quality web -8
pnm/rgb_16bit.ppm --psnr 50
png/rgb_8bit.png --psnr 42
png/grey_16bit.png --psnr 45
dicom/ct/slice_01.dcm --psnr 45
dicom/ct/slice_01.dcm --quality diagnostic
dicom/samples/signed_masked.dcm --psnr 45
dicom/forms/big_signed.dcm --psnr 45
dicom/forms/deflated.dcm --psnr 45
EOF
finish
