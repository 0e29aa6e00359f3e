# Coding with loss: the reported error is true, the error grows with QP, and the independent decoder restores the same bytes.
# Codes the set with --qp 10, 20, 30 and 40; where tests are slow, with the first two.
. "${0%/*}/steps.sh"
steps="10 20 30 40"
[ -z "${TSR_TEST_SMALL:-}" ] || steps="10 20"

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
    fields file output status kind lossless path psnr_stored_db max_error pixel_bytes error >"lines.$qp"
    fields file lossless psnr_db psnr_stored_db range >"ranges.$qp"
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
    fields file qp lossless max_error psnr_stored_db columns rows bits_stored >"info.$qp"
    fields file lossless psnr_db range components bits_stored >"told.$qp"
    # Both figures are of the same error, and only samples of more than 8 bits in one component have a range of their own.
    awk -F "$tab" '
        $2 == "false" { own += $4 != 2 ^ $6 - 1 }
        $2 == "false" && ($4 < 1 || $4 > 2 ^ $6 - 1 || ($4 != 2 ^ $6 - 1 && ($5 > 1 || $6 <= 8 || $4 < 255))) { print $0 }
        END { if (own < 20) print own " images have a range of their own" }' "told.$qp" >"$WORK/complaints"
    awk -F "$tab" -v told="told.$qp" '
        function log10(x) { return log(x) / log(10) }
        BEGIN { while ((getline line <told) > 0) { split(line, f, "\t"); sub(/\.tsr$/, "", f[1]); sub(/^[0-9]*\//, "", f[1]); bits[f[1]] = f[6]; db[f[1]] = f[3] } }
        $2 == "false" && $3 != "null" {
            name = $1
            sub(".*/data/", "", name)
            off = $3 - $4 - 20 * log10($5 / (2 ^ bits[name] - 1))
            if (off > 1e-6 || off < -1e-6 || db[name] != $3) print name ": " $3 ", " $4 " of a range of " $5
        }' "ranges.$qp" >>"$WORK/complaints"
    [ -s "$WORK/complaints" ] && bad "ranges at QP $qp: $(head -5 "$WORK/complaints")"
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
awk -v highest="${steps##* }" '
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
        for (qp = 20; qp <= highest; qp += 10) {
            if (mse[qp] < 2 * mse[qp - 10]) print "over the set, the error hardly grows at QP " qp
            if (count[qp] < count[qp - 10]) print "fewer files at QP " qp
        }
        if (count[10] < 150) print "only " count[10] " files"
    }' curves >"$WORK/complaints"
[ -s "$WORK/complaints" ] && bad "$(cat "$WORK/complaints")"
for qp in $steps; do cat summary.$qp; done | awk -F "$tab" '
    $2 != "false" || $3 != 0 || (NR > 1 && ($1 >= before || $4 < largest)) { exit 1 }
    { before = $1; largest = $4 }' || bad "summaries: $(cat summary.*)"

# A hot pixel says nothing of the range: 12 bits, values 0 .. 731, and the same with one 4095. Errors at one PSNR are the
# same to 1 %.
for hot in 731 4095; do
    { echo "P2 120 120 4095" && awk -v hot=$hot 'BEGIN {
        srand(7)
        for (i = 0; i < 120 * 120; i++) {
            v = int(335 + 300 * sin(i % 120 / 11) * cos(int(i / 120) / 17) + 60 * rand())
            print i < 3 ? 0 : i < 6 ? 731 : i == 5050 ? hot : v
        }
    }'; } >hot.$hot.txt
    awk 'NR == 1 { print "P5 120 120 4095"; next } { printf "\\%03o\\%03o", int($1 / 256), $1 % 256 }' hot.$hot.txt >hot.$hot.escaped
    { head -1 hot.$hot.escaped && printf "$(tail -n +2 hot.$hot.escaped)"; } >hot.$hot.pgm
    run 0 "$TESSERA" compress --json --psnr 45 hot.$hot.pgm -o hot.$hot.tsr
    fields range psnr_db lossless | head -1 >hot.$hot
done
awk -F "$tab" '
    { mse[FNR == NR ? 1 : 2] = $1 * $1 * 10 ^ (-$2 / 10) }
    $1 < 725 || $1 > 731 || $3 != "false" { print "range " $1 ", lossless " $3 }
    END { if (sqrt(mse[2] / mse[1]) > 1.01 || sqrt(mse[1] / mse[2]) > 1.01) print mse[1] ", " mse[2] }' hot.731 hot.4095 >"$WORK/complaints"
[ -s "$WORK/complaints" ] && bad "a hot pixel changes the loss: $(cat "$WORK/complaints")"

# The images of a series have one range, each by itself or in one file, whatever the threads; one alone has its own. The
# slices differ in what they show.
for slice in 0 1 2 3 4 5; do
    awk -v most=$((900 + 500 * slice)) 'BEGIN { print "P5 64 64 4095"; for (i = 0; i < 4096; i++) { v = int(i % 64 / 63 * most * (0.9 + 0.1 * sin(i * i))); printf "\\%03o\\%03o", int(v / 256), v % 256 } }' >slice.escaped
    { head -1 slice.escaped && printf "$(tail -n +2 slice.escaped)"; } >"stack$slice.pgm"
done
run 0 "$TESSERA" compress --json --qp 20 stack?.pgm
[ "$(fields range | sort -u | wc -l)" -eq 6 ] || bad "files that belong to nothing share a range: $(fields file range)"
run 0 "$TESSERA" compress --json --qp 20 --series stack.tsr stack?.pgm
[ "$(fields range | sort -u | wc -l)" -eq 1 ] || bad "files of one series have several ranges: $(fields file range)"
mkdir ct && cp "$DATA"/dicom/ct/slice_0[1-8].dcm ct
run 0 "$TESSERA" compress -r --json -T 1 --psnr 45 ct -o ct_1
fields range | sort -u >one
[ "$(wc -l <one)" -eq 1 ] || bad "slices of one series have several ranges: $(fields file range)"
run 0 "$TESSERA" compress -r -q -T 3 --psnr 45 ct -o ct_3
diff -r ct_1 ct_3 || bad "the range depends on the threads"
for i in 1 2 3; do run 0 "$TESSERA" compress -r -q --psnr 45 --shard $i/3 ct -o ct_shards; done
diff -r ct_1 ct_shards || bad "the range depends on the shards"
run 0 "$TESSERA" compress --json --psnr 45 --series ct.tsr ct/*.dcm
fields range | sort -u | cmp -s - one || bad "the range differs in a series: $(fields range)"
run 0 "$TESSERA" compress --json --psnr 45 "$(find ct -name "*.dcm" | sort | tail -1)" -o alone.tsr
fields range | head -1 | cmp -s - one && bad "a slice alone has the range of its series"

# compress, --update, test and verify tell the same figures of one file, and none of a file without loss.
mkdir told && cp "$DATA/dicom/ct/slice_01.dcm" "$DATA/pnm/chest_10bit.pgm" told && cp "$DATA/other/text.txt" told
figures()
{
    fields psnr_db psnr_stored_db range max_error lossless | sort |
        awk -F "$tab" '{ printf "%s %s %s %s %s\n", $1 == "null" ? $1 : sprintf("%.6f", $1), $2 == "null" ? $2 : sprintf("%.6f", $2), $3, $4, $5 }'
}
run 0 "$TESSERA" compress -r --json --qp 20 told -o told_made && figures >told_by_compress
[ "$(grep -c '^null null null null true$' told_by_compress)" -eq 1 ] && [ "$(grep -c '^[0-9.]* [0-9.]* [0-9]* [0-9]* false$' told_by_compress)" -eq 2 ] ||
    bad "figures of compress: $(cat told_by_compress)"
run 0 "$TESSERA" compress -r --json --qp 20 --update told -o told_made && figures | diff told_by_compress - || bad "--update tells other figures"
run 0 "$TESSERA" test -r --json told_made && figures | diff told_by_compress - || bad "test tells other figures"
run 0 "$TESSERA" verify --json told told_made && figures | diff told_by_compress - || bad "verify tells other figures"
run 0 "$TESSERA" compress --json --quality diagnostic -f "$DATA/pnm/noise_8bit.pgm" -o told.tsr
[ "$(fields lossless)" = false ] || fields reason | grep -q 'no step has that quality\|at most 1.1 times' || bad "a quality: $(fields reason)"

# QP has eighths. A QP below that of the finest step gives the finest step.
cp "$DATA/pnm/landscape_grey_8bit.pgm" a.pgm
for qp in 19.875 20 20.125 -6 -48; do
    run 0 "$TESSERA" compress --json --qp "$qp" a.pgm -o "a.$qp.tsr"
    fields psnr_db >"psnr.$qp"
done
expect "an eighth of QP makes no difference" [ "$(sort -u psnr.19.875 psnr.20 psnr.20.125 | wc -l)" -eq 3 ]
cmp a.-6.tsr a.-48.tsr || bad "QP -48 is not the finest step"
finish
