# Targets, on the whole set. --psnr: the PSNR is never under and hardly over (one file may be over by 0.2 dB, because choices
# for whole tiles make it jump; others if they take fewer bytes than at -4, which has neither DC planes nor predicted tiles). --size: the size is never over and hardly under. --max-error: no error is larger. The bytes
# are the same with any number of threads, and all efforts have the same decoder. A search takes at most 11 tries; from -5 on
# one that ends too far from its target takes as many again, without DC planes.
. "${0%/*}/steps.sh"

# The images that can reach a PSNR closely. Left out are small ones; those of 16 bits for which even the coarsest step loses
# less; noise, whose tiles are raw, and so exact, on the finer side of a QP; and a dithered CT whose texture is lost at one QP.
run 0 "$TESSERA" compress -r --json --engine cpu --qp 51 --allow-lossy "$DATA" -o 51
fields output psnr_db | sed "s|^51/||;s|\.tsr$tab|$tab|" | sort >"$WORK/coarsest"
run 0 "$TESSERA" info -r --json 51
fields file columns rows bits_stored | sed "s|^51/||;s|\.tsr$tab|$tab|" | sort | join -t "$tab" - "$WORK/coarsest" >"$WORK/sizes"
steered='$2 >= 64 && $3 >= 64 && ($4 < 16 || $5 <= wanted + 0.1) && $1 !~ /(noise|extremes)_rgb|samples\/(ct_16bit|signed_masked)|forms\/big_signed/'

for psnr in 31 42.25 55; do
    run 0 "$TESSERA" compress -r --json --engine cpu --psnr $psnr --allow-lossy "$DATA" -o "$psnr"
    fields output lossless psnr_db tries reason | sed "s|^$psnr/||;s|\.tsr$tab|$tab|" >"$WORK/lines"
    [ "$(fields --summary failed)" = 0 ] || bad "--psnr $psnr: $(fields --summary failed) failed"
    [ "$(cut -f 2 "$WORK/lines" | grep -c false)" -ge 100 ] || bad "--psnr $psnr: hardly anything is coded with loss"
    : >over
    sort "$WORK/lines" | join -t "$tab" "$WORK/sizes" - | awk -F "$tab" -v wanted=$psnr '
        $6 == "false" && $7 != "null" && $7 > wanted + 0.1 && $9 !~ /more than 0.1 dB over/ { print "over, and without a word: " $0 }
        $6 == "false" && $7 != "null" && $7 < wanted { print "under: " $0 }
        $6 == "false" && $7 != "null" && $7 > wanted + 0.1 && '"$steered"' { print $1 "\t" $7 >>"over" }
        $6 == "true" && $8 == "null" && $9 == "null" { print "without loss, and without a word: " $0 }
        $8 != "null" && $8 + 0 > 22 { print "too many tries: " $0 }' >"$WORK/complaints"
    [ -s "$WORK/complaints" ] && bad "--psnr $psnr: $(cat "$WORK/complaints")"
    over=0
    while IFS=$tab read -r name reached; do
        run 0 "$TESSERA" compress -q -f --engine cpu --psnr $psnr -4 "$DATA/$name" -o four.tsr
        [ "$(wc -c <"$psnr/$name.tsr")" -lt "$(wc -c <four.tsr)" ] && continue
        over=$((over + 1))
        [ $over -eq 1 ] && awk "BEGIN { exit !($reached <= $psnr + 0.2) }" || bad "--psnr $psnr: $name has $reached dB, and is not smaller"
    done <over
    rm -f over
    find "$psnr" -type f -exec "$BIN/tsr_reference" --check {} + >"$out" 2>"$err" || bad "the reference decoder: $(cat "$err")"
    run 0 "$TESSERA" test -r -q "$psnr"
done

mkdir some
cp "$DATA/pnm/landscape_grey_8bit.pgm" "$DATA/pnm/landscape_16bit.ppm" "$DATA/pnm/chest_10bit.pgm" "$DATA/png/landscape_rgb.png" \
    "$DATA/dicom/ct/slice_01.dcm" "$DATA/dicom/samples/rgb_frames.dcm" some
for size in 20k 8:1 15:1; do
    run 0 "$TESSERA" compress -r --json --engine cpu --size $size some -o "size_${size%:1}"
    fields output bytes_in bytes_out lossless tries | awk -F "$tab" -v size=$size '
        {
            most = size ~ /:1$/ ? int($2 / substr(size, 1, length(size) - 2)) : 20000
            if ($3 > most) print "over " most ": " $0
            if ($4 == "false" && $3 < 0.99 * most) print "under " most ": " $0
            if ($5 + 0 > 22) print "too many tries: " $0
            lossy += $4 == "false"
        }
        END { if (lossy < 3) print lossy " lossy files" }' >"$WORK/complaints"
    [ -s "$WORK/complaints" ] && bad "--size $size: $(cat "$WORK/complaints")"
done
for target in '--psnr 31' '--psnr 42.25' '--size 8:1'; do
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -r -f --json --engine cpu -4 $target some -o four
    [ "$(fields tries | awk '$1 + 0 > most { most = $1 + 0 } END { print (most > 0 && most <= 11) }')" = 1 ] ||
        bad "-4 $target: too many tries: $(fields output tries)"
done
# A file that fits without loss is coded without loss.
run 0 "$TESSERA" compress --json --size 10M some/chest_10bit.pgm -o fits.tsr
[ "$(fields lossless path reason)" = "true${tab}predict${tab}coded without loss: that is small enough" ] || bad "it fits: $(fields lossless path reason)"
run 0 "$TESSERA" decompress -q fits.tsr -o fits.pgm
cmp fits.pgm some/chest_10bit.pgm || bad "what fits without loss does not come back"

# --max-error on the set: no sample differs by more than the bound, and the reference decoder agrees. 0 is without loss.
for most in 2 7 32767; do
    run 0 "$TESSERA" compress -r --json --max-error $most --allow-lossy "$DATA" -o "error_$most"
    fields output lossless path max_error kind | awk -F "$tab" -v most=$most '
        $2 == "false" && ($3 != "predict" || $4 == "null" || $4 > most) { print }
        $2 == "false" { lossy++; worst = $4 > worst ? $4 : worst }
        END { if (lossy < 150 || (most < 100 && worst != most)) print lossy " lossy files, the worst error is " worst }' >"$WORK/complaints"
    [ -s "$WORK/complaints" ] && bad "--max-error $most: $(cat "$WORK/complaints")"
    find "error_$most" -type f -exec "$BIN/tsr_reference" --check {} + >"$out" 2>"$err" || bad "the reference decoder: $(cat "$err")"
done
run 0 "$TESSERA" decompress -r -q error_2/pnm -o back
for name in landscape_8bit.ppm noise_8bit.pgm; do
    cmp -l "$DATA/pnm/$name" "back/$name" | awk '
        function byte(octal) { return int(octal / 100) * 64 + int(octal / 10) % 10 * 8 + octal % 10 }
        { d = byte($2) - byte($3); if (d > 2 || d < -2) exit 1; n++ }
        END { exit n == 0 }' || bad "$name differs by more than 2, or not at all"
done
run 0 "$TESSERA" compress --json --max-error 0 some/chest_10bit.pgm -o zero.tsr
[ "$(fields lossless max_error)" = "true${tab}null" ] || bad "--max-error 0 loses: $(fields lossless max_error)"
cmp zero.tsr fits.tsr || bad "--max-error 0 is not what it is without"

# The same bytes with any number of threads, at some efforts.
for options in '--psnr 40' '--size 11:1' '--max-error 4' '-1' '-9' '-1 --psnr 45' '-9 --path transform' '-3 --qp 30'; do
    rm -rf t1 t7
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -r -q -T 1 $options some -o t1
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -r -q -T 7 $options some -o t7
    diff -r t1 t7 || bad "$options: other bytes with 7 threads"
done
finish
