# --json: every field in every line, null where it does not apply, then the summary.
. "${0%/*}/steps.sh"
all="file output status way kind bytes_in bytes_out pixel_bytes payload_bytes ratio bits_per_sample lossless path coder effort qp engine"
all="$all fallback encode_s verify_s psnr_db max_error tries reason error"

# Prints the kinds of the values in a line: number, text, true, false, null, absent.
kinds()
{
    # shellcheck disable=SC2086
    fields $all | sed "s/\(^\|$tab\)-\{0,1\}[0-9][^$tab]*/\1number/g;s/\(^\|$tab\)-\{0,1\}[0-9][^$tab]*/\1number/g" | awk -F "$tab" '{
        for (i = 1; i <= NF; i++) $i = $i ~ /^(number|true|false|null|absent)$/ ? $i : "text"
        print
    }' | sort -u
}
# wants WHAT KINDS: all lines of $out must have values of these kinds, and the summary must be the last line.
wants()
{
    [ "$(kinds)" = "$2" ] || bad "$1: fields are $(kinds), not $2"
    tail -n 1 "$out" | grep -q '"summary":true' || bad "$1: the summary is not the last line"
    [ "$(grep -c '"summary"' "$out")" -eq 1 ] || bad "$1: not one summary"
    summary=$(fields --summary files failed stored wall_s | sed 's/[0-9.e-]*$/T/')
    [ "$summary" = "$(printf "$3")${tab}T" ] || bad "$1: the summary is $summary"
}

mkdir coded stored
cp "$DATA/pnm/landscape_grey_8bit.pgm" coded/a.pgm
cp "$DATA/png/landscape_rgb.png" coded/b.png
cp "$DATA/dicom/ct/slice_01.dcm" coded/c.dcm
cp "$DATA/other/text.txt" stored/t.txt
: >stored/empty

n=number t=text
run 0 "$TESSERA" compress -r --json coded -o tsr
wants compress "$t $t $t $t $t $n $n $n $n $n $n true $t $t $n null $t null $n $n null null null null null" '3\t0\t0'
[ "$(fields status kind identical | tr '\t\n' '- ')" = 'ok-pnm-true ok-png-true ok-dicom-true ' ] || bad "statuses: $(fields status kind identical)"
[ "$(fields --summary identical same_samples lossy)" = "3${tab}0${tab}0" ] || bad "what comes back: $(tail -n 1 "$out")"
# Numbers must be those of the files.
fields file output bytes_in bytes_out ratio payload_bytes bits_per_sample pixel_bytes |
    while IFS=$tab read -r file output bytes_in bytes_out ratio payload bits pixels; do
        [ "$bytes_in $bytes_out" = "$(bytes_of "$file") $(bytes_of "$output")" ] || echo "bytes of $file"
        [ "$payload" -lt "$bytes_out" ] || echo "payload of $file"
        echo "$bytes_in $bytes_out $ratio" | awk '{ d = $1 / $2 - $3; if (d > 1e-9 || d < -1e-9) print "ratio " $3 }'
    done >"$WORK/complaints"
[ -s "$WORK/complaints" ] && bad "$(cat "$WORK/complaints")"
samples=$((320 * 240))
fields file payload_bytes bits_per_sample pixel_bytes | awk -v s=$samples '/a.pgm/ {
    d = 8 * $2 / s - $3
    good = d < 1e-9 && d > -1e-9 && $4 == s
}
END { exit !good }' || bad "bits per sample: $(fields file payload_bytes bits_per_sample pixel_bytes)"
run 0 "$TESSERA" compress -r --json --verify none coded -o unverified
wants 'compress --verify none' "$t $t $t $t $t $n $n $n $n $n $n true $t $t $n null $t null $n null null null null null null" '3\t0\t0'
run 0 "$TESSERA" compress -r --json --engine cpu --qp 30 coded -o lossy
wants 'compress --qp' "$t $t $t $t $t $n $n $n $n $n $n false $t $t $n $n $t null $n $n $n $n null null null" '3\t0\t0'
[ "$(fields path coder engine | sort -u)" = "transform${tab}huffman${tab}cpu" ] || bad "path: $(fields path coder engine)"
run 0 "$TESSERA" compress -r --json --engine cpu --psnr 40 -3 coded -o found
wants 'compress --psnr' "$t $t $t $t $t $n $n $n $n $n $n false $t $t $n $n $t null $n $n $n $n $n null null" '3\t0\t0'
[ "$(fields effort | sort -u)" = 3 ] || bad "effort: $(fields effort)"
[ "$(fields --summary effort)" = 3 ] || bad "the summary's effort: $(fields --summary effort)"
run 0 "$TESSERA" compress -r --json --engine cpu --max-error 2 coded -o bounded
wants 'compress --max-error' "$t $t $t $t $t $n $n $n $n $n $n false $t $t $n null $t null $n $n $n $n null null null" '3\t0\t0'
[ "$(fields path max_error | sort -u)" = "predict${tab}2" ] || bad "a bounded error: $(fields path max_error)"
run 0 "$TESSERA" compress -r --json stored -o tsr2
# The empty file: ratio 0, which is a number.
wants 'compress, stored' "$t $t $t $t $t $n $n null null $n null true null null null null null null $n $n null null null $t null" '2\t0\t2'
run 0 "$TESSERA" decompress -r --json tsr -o back
wants decompress "$t $t $t $t $t $n $n $n $n $n $n true $t $t null null $t null null $n null null null null null" '3\t0\t0'
run 0 "$TESSERA" test -r --json tsr
wants test "$t null $t $t $t $n $n $n $n $n $n true $t $t null null $t null null $n null null null null null" '3\t0\t0'
run 0 "$TESSERA" test -r --json lossy
wants 'test, lossy' "$t null $t $t $t $n $n $n $n $n $n false $t $t null $n $t null null $n $n $n null null null" '3\t0\t0'
run 0 "$TESSERA" test -r --json tsr2
[ "$(fields status way | sort -u)" = "ok${tab}stored" ] || bad "test: statuses $(fields status way)"

# Failures have a line, too, with the reason, and a sentence on stderr.
run 20 "$TESSERA" compress --json missing
wants 'a failure' "$t null $t null null null null null null null null null null null null null null null null null null null null null $t" '1\t1\t0'
says 'No such file'
[ "$(fields status error)" = "failed${tab}$(sed 's/^tessera: //' "$err")" ] || bad "the failure's line: $(cat "$out")"
run 75 "$TESSERA" compress --json missing coded/a.pgm stored/t.txt -o some
[ "$(fields file status way | tr '\t\n' '- ')" = 'missing-failed-null coded/a.pgm-ok-coded stored/t.txt-ok-stored ' ] || bad "$(fields file status way)"
[ "$(fields --summary files failed coded stored)" = "3${tab}1${tab}1${tab}1" ] || bad "summary: $(tail -n 1 "$out")"

# Lines come in the order of the files, whichever finishes first.
run 0 "$TESSERA" compress -r --json -T 4 "$DATA/odd" -o all
fields file >"$WORK/order"
[ "$(wc -l <"$WORK/order")" -eq "$(find "$DATA/odd" -type f | wc -l)" ] || bad "lines are missing"
run 0 "$TESSERA" compress -r --json -T 1 "$DATA/odd" -o all1
fields file | diff "$WORK/order" - || bad "the order of lines depends on the threads"

# A name need not be UTF-8, but a line must be.
odd=$(printf 'b\377\303\244.pgm')
cp coded/a.pgm "$odd"
run 0 "$TESSERA" compress --json "$odd"
grep -q "b$(printf '\357\277\275\303\244').pgm" "$out" || bad "a name that is not UTF-8: $(head -n 1 "$out")"
[ "$(fields file_hex)" = 62ffc3a42e70676d ] || bad "the bytes of a name: $(fields file_hex)"
[ "$(fields output_hex)" = 62ffc3a42e70676d2e747372 ] || bad "the bytes of an output's name: $(fields output_hex)"
rm -f "$odd" "$odd.tsr"

# info and compare.
run 0 "$TESSERA" info -r --json lossy tsr tsr2
fields file status kind restore identical bytes_in bytes_out original_xxh3_128 sections | grep absent && bad "info lacks a field"
run 0 "$TESSERA" compare -r --json coded stored
[ "$(fields status | tr '\n' ' ')" = 'ok ok ok skipped skipped ' ] || bad "compare: $(fields status)"
[ "$(fields --summary files)" = 5 ] || bad "compare's summary: $(tail -n 1 "$out")"
finish
