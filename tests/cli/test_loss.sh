# Coding with loss: the reported error is true, the error grows with QP, and the independent decoder restores the same bytes.
# Codes the set with --qp 10, 20, 30 and 40.
. "${0%/*}/steps.sh"
steps="10 20 30 40"

# differences BYTES A B HEAD: compares two PNM files with the same header of HEAD bytes, sample by sample (BYTES: 1 or 2).
# Prints the largest difference, the sum of squares and the number of samples.
differences()
{
    od -An -v -tu1 -w"$1" "$2" >"$WORK/a" && od -An -v -tu1 -w"$1" "$3" >"$WORK/b"
    paste "$WORK/a" "$WORK/b" | awk -v n="$1" -v head="$4" '
        NR * n > head {
            d = n == 1 ? $1 - $2 : 256 * ($1 - $3) + $2 - $4
            if (d < 0) d = -d
            if (d > most) most = d
            sum += d * d
            count++
        }
        END { printf "%d %.0f %d\n", most, sum, count }'
}

run 0 "$TESSERA" compress -r "$DATA" -o exact
for qp in $steps; do
    run 0 "$TESSERA" compress -r --json --qp "$qp" --allow-lossy "$DATA" -o "$qp"
    fields file output status kind lossless path psnr_db max_error pixel_bytes error >"lines.$qp"
    fields --summary bytes_out lossless failed max_error >"summary.$qp"
    run 0 "$TESSERA" decompress -r --json "$qp" -o "restored.$qp"
    run 0 "$TESSERA" test -r -q "$qp"
    find "$qp" -type f -exec "$BIN/tsr_reference" --check {} + >"$out" 2>"$err" || bad "the reference decoder: $(cat "$err")"
    while IFS=$tab read -r file coded status kind lossless path psnr error rest; do
        name=${coded#"$qp"/} && name=${name%.tsr}
        case $lossless-$kind in
        true-*)
            # Files that are never coded with loss are as without --qp, and have no error.
            [ "$psnr$error" = nullnull ] || bad "$name is lossless and has an error: $psnr, $error"
            cmp "$file" "restored.$qp/$name" || bad "$name is lossless and differs"
            ;;
        false-png)
            # There are many ways to write its IDAT chunks. libpng does not read damaged files.
            case $name in
            png/damaged/*) ;;
            *)
                "$BIN/tsr_reference" "$coded" theirs && "$BIN/tsr_same_png" theirs "restored.$qp/$name" ||
                    bad "the reference decoder restores another $name"
                ;;
            esac
            ;;
        false-*)
            "$BIN/tsr_reference" "$coded" theirs && cmp theirs "restored.$qp/$name" ||
                bad "the reference decoder restores another $name"
            ;;
        *) bad "$name is $status, lossless: $lossless" ;;
        esac
        case $lossless-$path-$error in
        false-transform-[0-9]* | true-*) ;;
        *) bad "$name: path $path, largest error $error" ;;
        esac
    done <"lines.$qp"
    run 0 "$TESSERA" info -r --json "$qp"
    fields file qp lossless max_error psnr_db columns rows bits_stored >"info.$qp"
    cut -f 2,7,8 "lines.$qp" | awk -F "$tab" '{ print $1, $2, $3 }' | sort >"$WORK/reported"
    awk -F "$tab" '{ print $1, $5 == "absent" ? "null" : $5, $4 == "absent" ? "null" : $4 }' "info.$qp" | sort |
        diff "$WORK/reported" - || bad "info tells other errors than compress"
    [ "$(cut -f 5 "lines.$qp" | grep -c false)" -ge 150 ] || bad "hardly anything is coded with loss"

    # The reported error must be the one that is computed again from the bytes.
    for name in pnm/landscape_8bit.ppm pnm/chest_10bit.pgm pnm/landscape_16bit.ppm odd/63x65_8bit.pgm odd/1025x3_16bit.pgm; do
        depth=$(awk -F "$tab" -v name="$qp/$name.tsr" '$1 == name { print $8 }' "info.$qp")
        bytes=$((depth > 8 ? 2 : 1))
        samples=$(awk -F "$tab" -v name="$DATA/$name" '$1 == name { print $9 }' "lines.$qp")
        size=$(bytes_of "$DATA/$name")
        # The header is padded to even length, so that words begin at even offsets.
        head -c "$(((size - samples) % bytes))" /dev/zero | cat - "$DATA/$name" >one
        head -c "$(((size - samples) % bytes))" /dev/zero | cat - "restored.$qp/$name" >other
        counted=$(differences "$bytes" one other "$((size - samples + (size - samples) % bytes))")
        said=$(awk -F "$tab" -v name="$DATA/$name" '$1 == name { print $7, $8 }' "lines.$qp")
        echo "$counted $said $depth $((samples / bytes))" | awk '
            {
                peak = 2 ^ $6 - 1
                psnr = $2 > 0 ? 10 * log(peak * peak * $3 / $2) / log(10) : 0
                if ($1 != $5 || $3 != $7 || psnr - $4 > 1e-6 || $4 - psnr > 1e-6) exit 1
            }' || bad "$name at QP $qp: counted $counted, said $said"
    done
done

# PSNR does not rise with QP, neither for a picture that has something to lose nor over the set. It is at least what the
# largest error allows. Files get smaller.
for qp in $steps; do
    awk -F "$tab" -v qp="$qp" '$3 == "false" { sub(/^[0-9]*\//, "", $1); print $1, qp, $5, $4, $6, $7, $8 }' "info.$qp"
done | sort -k 1,1 -k 2,2n | sed 's/ null / inf /' >curves
awk '
    {
        infinite = $3 == "inf"
        psnr = infinite ? 1000 : $3 + 0
        peak = 2 ^ $7 - 1
        if (infinite != ($4 == 0)) print "error " $4 " and PSNR " $3 " of " $1
        if ($4 > 0 && psnr < 20 * log(peak / $4) / log(10) - 1e-6) print "PSNR " $3 " below what error " $4 " allows: " $1
        if ($1 == before && $5 >= 64 && $6 >= 64 && psnr > last) print "PSNR rises to " $3 " at QP " $2 ": " $1
        before = $1
        last = psnr
        mse[$2] += infinite ? 0 : 10 ^ (-psnr / 10)
        count[$2]++
    }
    END {
        for (qp = 20; qp <= 40; qp += 10) {
            if (mse[qp] < 2 * mse[qp - 10]) print "over the set, the error hardly grows at QP " qp
            if (count[qp] < count[qp - 10]) print "fewer files at QP " qp
        }
        if (count[10] < 150) print "only " count[10] " files"
    }' curves >"$WORK/complaints"
[ -s "$WORK/complaints" ] && bad "$(cat "$WORK/complaints")"
cat summary.10 summary.20 summary.30 summary.40 | awk -F "$tab" '
    $2 != "false" || $3 != 0 || (NR > 1 && ($1 >= before || $4 < largest)) { exit 1 }
    { before = $1; largest = $4 }' || bad "summaries: $(cat summary.*)"

# QP has eighths. A QP below that of the finest step gives the finest step.
cp "$DATA/pnm/landscape_grey_8bit.pgm" a.pgm
for qp in 19.875 20 20.125 -6 -48; do
    run 0 "$TESSERA" compress --json --qp "$qp" a.pgm -o "a.$qp.tsr"
    fields psnr_db >"psnr.$qp"
done
expect "an eighth of QP makes no difference" [ "$(sort -u psnr.19.875 psnr.20 psnr.20.125 | wc -l)" -eq 3 ]
cmp a.-6.tsr a.-48.tsr || bad "QP -48 is not the finest step"
finish
