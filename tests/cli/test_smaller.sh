# Loss that saves next to nothing is not made. A file is coded without loss, whatever the lossy option, where that takes at
# most 1.1 times the bytes; --size alone promises a size. The estimate may miss a file, but never makes one larger.
#
# Three planted faults are the witnesses. With estimate_high lossless is never tried. With estimate_low each file gives
# way to lossless, and comes back where that is too large. With estimate_doubt the frames of each file are coded without
# loss, and what they take decides. With both the choice must be that of the sizes alone.
. "${0%/*}/steps.sh"
FAULTY=$BIN/tessera_faulty
REASON='coded without loss: that takes at most 1.1 times the bytes'
mkdir set && cp -r "$DATA/dicom" "$DATA/png" "$DATA/pnm" "$DATA/odd" set && "$BIN/tessera_testdata" set sparse >/dev/null

# code FOLDER OPTION...: all of the set; the lines of it in FOLDER.lines: output, bytes, lossless, identical, reason, stored.
code()
{
    folder=$1
    shift
    run 0 "${PROGRAM_OF_SET:-$TESSERA}" compress -r --json --verify none "$@" set -o "$folder"
    fields output bytes_out lossless identical reason way | sed "s|^$folder/||" | sort >"$folder.lines"
}

# judge NAME: whether each file of NAME is the smaller one by the rule: that of exact, or that of lossy. Prints those that
# are not. Verbatim files (way: not coded) have a reason of their own.
judge()
{
    join -t "$tab" exact.lines lossy.lines | join -t "$tab" - "$1.lines" | awk -F "$tab" -v reason="$REASON" '
        $8 == "false" && $2 * 10 <= $7 * 11 && $13 == "false" { print $1 ": lossy, though without loss it takes " $2 " of " $7 }
        $8 == "false" && $2 * 10 > $7 * 11 && $13 == "true" { print $1 ": without loss it takes " $2 ", with it " $7 }
        $13 == "false" && $12 != $7 { print $1 ": with loss it takes " $12 ", not " $7 }
        $8 == "false" && $13 == "true" && ($12 != $2 || $14 != $4 || ($16 == "coded" && $10 == "coded" && $5 == "null" && $15 != reason)) {
            print $1 ": coded without loss it is not what it is without the option: " $12 ", not " $2 " (" $15 ")"
        }'
}

code exact
for options in '--qp 20' '--psnr 45' '--max-error 1' '--qp 0 -9'; do
    case $options in *-9) rm -rf exact && code exact -9 ;; esac
    # shellcheck disable=SC2086
    {
        code found $options --allow-lossy
        export PROGRAM_OF_SET="$FAULTY" TESSERA_FAULT=estimate_high
        code lossy $options --allow-lossy
        export TESSERA_FAULT=estimate_low
        code tried $options --allow-lossy
        export TESSERA_FAULT=estimate_doubt
        case $options in --qp*) code doubted $options --allow-lossy ;; esac # the choice is the same with a target
        unset PROGRAM_OF_SET TESSERA_FAULT
    }
    for kind in tried doubted; do
        [ -d $kind ] || continue
        judge $kind >complaints
        [ -s complaints ] && bad "$options, all are $kind: $(cat complaints)"
    done
    judge found | grep -v ': lossy, though ' >complaints
    [ -s complaints ] && bad "$options: $(cat complaints)"
    missed=$(judge found | grep -c ': lossy, though ')
    chosen=$(cut -f 5 found.lines | grep -cx "$REASON")
    [ "$missed" -le 20 ] || bad "$options: $missed files are lossy without need: $(judge found)"
    [ "$chosen" -ge 2 ] || bad "$options: only $chosen files are coded without loss"
    # (What would be stored instead of coded with loss is always tried.)
    [ "$(grep -c "$tab$REASON" lossy.lines)" -lt "$chosen" ] || bad "$options: the fault is not seen"
    # Of all files at most one, a sparse one, is larger than without loss: the estimate misses it.
    join -t "$tab" exact.lines found.lines | awk -F "$tab" '$7 > $2 { print $1 ": " $7 " bytes, without loss " $2 }' >complaints
    [ "$(wc -l <complaints)" -le 1 ] || bad "$options: larger than without loss: $(cat complaints)"
    # Each output is that of one of the two ways, byte for byte.
    cut -f 1 found.lines >names
    while read -r name; do
        cmp -s "found/$name" "lossy/$name" || cmp "found/$name" "exact/$name" || bad "$options: $name is another file"
    done <names
    rm -rf found lossy tried doubted
done

# What is said of one file, and what comes back: a DICOM has its own header.
for file in set/dicom/us/sector_rgb.dcm set/dicom/us/sector_planar.dcm; do
    run 0 "$TESSERA" compress --json --qp 0 "$file" -o one.tsr
    [ "$(fields lossless identical path reason verified)" = "true${tab}true${tab}predict${tab}$REASON${tab}true" ] ||
        bad "$file: $(fields lossless identical path reason verified)"
    run 0 "$TESSERA" decompress -q one.tsr -o back
    cmp back "$file" || bad "$file does not come back"
    run 0 "$TESSERA" compress -f --qp 0 "$file" -o one.tsr
    cat "$out" "$err" | grep -q "coded otherwise: $REASON" || bad "the summary does not say so: $(cat "$out" "$err")"
    run 0 "$TESSERA" compress -f -v --qp 0 "$file" -o one.tsr
    [ "$(cat "$out" "$err" | grep -c "$REASON")" -eq 2 ] || bad "-v does not say so: $(cat "$out" "$err")"
    run 0 "$TESSERA" info --json one.tsr
    [ "$(fields lossless)" = true ] || bad "info says that it is lossy"
    rm one.tsr back
done

# Members of a series: each for itself. Slices that keep their loss stand between others.
mkdir mixed && cp set/sparse/slices/0[1-6].pgm set/dicom/ct/slice_0[1-3].dcm set/sparse/page_8bit.pgm set/png/landscape_rgb.png mixed
run 0 "$TESSERA" compress --json --qp 20 -T 1 --series mixed.tsr mixed/*
fields lossless | sort | uniq -c | sed 's/^ *//' >"$WORK/members"
[ "$(cat "$WORK/members")" = '4 false
7 true' ] || bad "the members of a series: $(cat "$WORK/members")"
run 0 "$TESSERA" decompress -q mixed.tsr -o members
for name in 01.pgm 06.pgm page_8bit.pgm; do
    cmp "members/mixed/$name" "mixed/$name" || bad "$name of a series does not come back"
done
[ ! -x "$BIN/tsr_reference" ] || run 0 "$BIN/tsr_reference" --check mixed.tsr
for threads in 2 7; do
    run 0 "$TESSERA" compress -q --qp 20 -T $threads --series other.tsr mixed/*
    cmp mixed.tsr other.tsr || bad "other bytes of a series with $threads threads"
    rm other.tsr
done

# The same bytes with any number of threads, by all forms and within any memory.
for options in '--qp 10' '--max-error 2'; do
    # shellcheck disable=SC2086
    {
        run 0 "$TESSERA" compress -r -q --verify none --allow-lossy -T 1 $options set -o t1
        TESSERA_ISA=plain run 0 "$TESSERA" compress -r -q --verify none --allow-lossy -T 5 $options set -o plain
        TESSERA_ISA=avx2 run 0 "$TESSERA" compress -r -q --verify none --allow-lossy --memory 250M -T 2 $options set -o avx2
    }
    for other in plain avx2; do
        diff -r t1 $other || bad "$options: other bytes: $other"
    done
    rm -rf t1 plain avx2
done

# --size is a promise: lossless is written only where it fits.
size=$(bytes_of exact/sparse/screen_rgb.ppm.tsr)
run 0 "$TESSERA" compress --json --size "$size" set/sparse/screen_rgb.ppm -9 -o fits.tsr
[ "$(fields lossless bytes_out)" = "true${tab}$size" ] || bad "what fits is lossy: $(fields lossless bytes_out)"
exact=$(bytes_of exact/dicom/us/sector_rgb.dcm.tsr)
run 0 "$TESSERA" compress --json --size $((exact / 20 * 19)) set/dicom/us/sector_rgb.dcm -9 -o less.tsr
[ "$(fields lossless)" = false ] && [ "$(fields bytes_out)" -le $((exact / 20 * 19)) ] || bad "over its size: $(fields lossless bytes_out)"
finish
