# What is lost where an image is looked at: the error inside the windows of a DICOM file, --quality, --strict, the warning.
. "${0%/*}/steps.sh"
cp "$DATA/dicom/ct/slice_01.dcm" ct.dcm

# inside ORIGINAL RESTORED SLOPE INTERCEPT CENTER WIDTH: samples inside the window (PS3.3, C.11.2.1.2) and the RMSE over
# them, from the pixel data of two native files, which ends both.
inside()
{
    od -An -v -td2 -w2 "$1" >"$WORK/a" && od -An -v -td2 -w2 "$2" >"$WORK/b"
    paste "$WORK/a" "$WORK/b" | awk -v m="$3" -v b="$4" -v c="$5" -v w="$6" '
        { x = m * $1 + b; y = m * $2 + b }
        x > c - 0.5 - (w - 1) / 2 && x <= c - 0.5 + (w - 1) / 2 { n++; sum += (x - y) * (x - y) }
        END { printf "%d %.9f\n", n, n ? sqrt(sum / n) : -1 }'
}

# checks FILE SLOPE INTERCEPT: what --json says of each window of a file is what is counted.
checks()
{
    run 0 "$TESSERA" compress --json -f --qp 24 "$1" -o checked.tsr
    bytes=$(fields pixel_bytes | head -1)
    sed 's/"windows":\[/\n/;s/\].*//' "$out" | sed -n 2p | tr '}' '\n' | sed 's/[^0-9.e+-]*:/ /g;s/[a-z"{,]*//g' >windows
    run 0 "$TESSERA" decompress -f checked.tsr -o checked.dcm
    tail -c "$bytes" "$1" >original && tail -c "$bytes" checked.dcm >restored
    seen=0
    while read -r center width samples rmse psnr _; do
        [ -n "${psnr:-}" ] || continue
        seen=$((seen + 1))
        counted=$(inside original restored "$2" "$3" "$center" "$width")
        echo "$counted $samples $rmse $psnr $width" | awk '
            function log10(x) { return log(x) / log(10) }
            { off = $4 - $2; db = $5 - 20 * log10($6 / $2) }
            $1 != $3 || off > 1e-6 || off < -1e-6 || db > 1e-6 || db < -1e-6 { exit 1 }' ||
            bad "$1, window $center/$width: counted $counted, said $samples $rmse $psnr"
    done <windows
    [ "$seen" -eq "$4" ] || bad "$1: $seen windows, not $4: $(cat "$out")"
}
checks ct.dcm 1 0 1
if command -v dcmodify >/dev/null; then
    # A rescale, also one that falls; several windows; decimals; those of a CT that names none.
    for values in '1053=2:1052=-1024:1050=40\-600:1051=400\1500:2:-1024:2' '1053=-0.5:1052=100:1050=12.5:1051=331.25:-0.5:100:1' \
        '1053=1:1052=-5e1:1050=0:1051=3e2:1:-50:1'; do
        cp ct.dcm one.dcm
        echo "$values" | tr ':' '\n' | sed -n '1,4p' >edits
        while read -r edit; do dcmodify -nb -m "0028,$edit" one.dcm 2>/dev/null || bad "dcmodify $edit"; done <edits
        checks one.dcm "$(echo "$values" | cut -d : -f 5)" "$(echo "$values" | cut -d : -f 6)" "$(echo "$values" | cut -d : -f 7)"
    done
    cp ct.dcm none.dcm && dcmodify -nb -ea "(0028,1050)" -ea "(0028,1051)" none.dcm 2>/dev/null
    checks none.dcm 1 0 2
    # A window that nothing is in is told, and judged by nobody.
    cp ct.dcm empty.dcm && dcmodify -nb -m 0028,1050=9000 -m 0028,1051=2 empty.dcm 2>/dev/null
    run 0 "$TESSERA" compress --json -f --psnr 60 --strict empty.dcm -o empty.tsr
    grep -q '"samples":0,"rmse":null,"psnr_db":null,"judged":false' "$out" || bad "an empty window: $(cat "$out")"
fi

# The file keeps how its windows came through: info and test tell what compress told, and verify measures the same.
windows_of() { grep -o '"windows":[^]]*' "$out" | head -1; }
told="ct.dcm $DATA/dicom/samples/ct_16bit.dcm"
for file in $told; do
    rm -f told.tsr
    run 0 "$TESSERA" compress --json --qp 30 "$file" -o told.tsr && windows_of >told
    grep -q '"judged":true' told || bad "$file: no window is judged: $(cat told)"
    run 0 "$TESSERA" info --json told.tsr && windows_of | diff told - >/dev/null || bad "$file: info tells other windows: $(windows_of)"
    run 0 "$TESSERA" test --json told.tsr && windows_of | diff told - >/dev/null || bad "$file: test tells other windows: $(windows_of)"
    run 0 "$TESSERA" verify --json "$file" told.tsr && windows_of | diff told - >/dev/null || bad "$file: verify tells other windows: $(windows_of)"
    run 0 "$TESSERA" info told.tsr && grep -q '^  window     [-0-9./]*: [0-9]* samples inside, [0-9.]* dB, RMSE [0-9.]*$' "$out" || bad "info: $(cat "$out")"
done

# The levels, in their order of bytes, keep their floors of PSNR and SSIM in each window that is judged and over all, and
# the largest error of the whole image as a share of the narrowest window. At least one file is near a floor of SSIM.
before=999999999
for level in diagnostic:45:0.995:0.03 visually-lossless:40:0.99:0.06 web:35:0.97:9; do
    name=${level%%:*}
    run 0 "$TESSERA" compress --json -r --quality "$name" "$DATA/dicom/ct" "$DATA/dicom/mr" "$DATA/dicom/cr" -o "$name"
    echo "$level" | tr : ' ' >floors
    grep '^{"file".*"lossless":false' "$out" | awk '
        function value(text, name) { return match(text, "\"" name "\":[0-9.e-]+") ? substr(text, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : -9 }
        NR == FNR { split($0, floor, " "); next }
        {
            windows = ""
            if (match($0, /"windows":\[[^]]*\]/)) {
                windows = substr($0, RSTART, RLENGTH)
                $0 = substr($0, 1, RSTART - 1) substr($0, RSTART + RLENGTH)
            }
            least = value($0, "ssim")
            width = 0
            if (value($0, "psnr_db") < floor[2] || least < floor[3]) print "over all: " $0
            count = split(windows, window, "}")
            for (i = 1; i < count; i++) {
                if (window[i] !~ /"judged":true/) continue
                judged++
                if (value(window[i], "psnr_db") < floor[2] || value(window[i], "ssim") < floor[3]) print "a window: " window[i]
                if (value(window[i], "ssim") < least) least = value(window[i], "ssim")
                if (width == 0 || value(window[i], "width") < width) width = value(window[i], "width")
            }
            if (width == 0) width = value($0, "range")
            if (value($0, "max_error") > width * floor[4] && value($0, "max_error") > 1) print "largest error: " $0
            near += 1 - least > 0.9 * (1 - floor[3])
        }
        END { if (judged < 8 || near == 0) print judged " windows are judged, " near " files are near a floor" }' floors - >"$WORK/complaints"
    [ -s "$WORK/complaints" ] && bad "$name: $(head -3 "$WORK/complaints")"
    fields --summary least_window_db least_ssim poor_windows bytes_out failed >summary
    awk -F "$tab" -v level="$level" 'BEGIN { split(level, f, ":") } $1 < f[2] || $2 < f[3] || $3 != 0 || $5 != 0 { exit 1 }' summary || bad "$name: $(cat summary)"
    bytes=$(cut -f 4 summary)
    [ "$bytes" -lt "$before" ] || bad "$name takes $bytes bytes, the level above it $before"
    before=$bytes
done
# Single dots change neither PSNR nor SSIM by much: the bound of the largest error keeps them, 3 % and 6 % of the range.
awk 'BEGIN { printf "P5\n256 256\n255\n"
    for (y = 0; y < 256; y++)
        for (x = 0; x < 256; x++)
            printf "%c", 60 + int(y / 2) + (x % 64 == 16 && y % 64 == 16 ? 17 + (x / 32 + y / 8) % 16 : 0) }' >dots.pgm
for level in diagnostic:7 visually-lossless:15 web:255; do
    run 0 "$TESSERA" compress --json -f --quality "${level%:*}" dots.pgm -o dots.tsr
    error=$(fields max_error | head -1)
    [ "$error" -gt 0 ] && [ "$error" -le "${level#*:}" ] || bad "${level%:*}: an error of $error"
done
[ "$error" -gt 15 ] || bad "the dots of web say nothing: $error"
refuses 2 "wants diagnostic, visually-lossless or web, not 'high'" "$TESSERA" compress --quality high ct.dcm -o no.tsr
refuses 2 'exclude each other' "$TESSERA" compress --quality web --qp 20 ct.dcm -o no.tsr

# --tune: ssim with --ssim, the smaller file with web, unless asked; psnr writes other bytes, that of the other levels and
# losses.
for asked in "--qp 24:psnr" "--psnr 40:psnr" "--ssim 0.97:ssim" "--quality diagnostic:psnr" "--quality web:ssim" "--quality web -1:psnr"; do
    for tune in "" "--tune psnr" "--tune ssim"; do
        # shellcheck disable=SC2086 # options are words
        run 0 "$TESSERA" compress -f -q ${asked%:*} $tune "$DATA/pnm/chest_10bit.pgm" -o "tuned${tune#--tune }.tsr"
    done
    cmp -s tuned.tsr "tuned${asked#*:}.tsr" || bad "$asked: not what is usual"
    case $asked in *-1:*) continue ;; esac # without classes of steps
    cmp -s tunedpsnr.tsr tunedssim.tsr && bad "$asked: --tune changes nothing"
done
# web takes the smaller of both: of these ssim makes three smaller, and psnr landscape_coarse.
awk 'BEGIN { srand(3); printf "P5\n256 256\n255\n"
    for (y = 0; y < 256; y++)
        for (x = 0; x < 256; x++) printf "%c", 65 + int(120 * rand() * (x + y) / 512) }' >rough.pgm
for name in "$DATA/pnm/chest_10bit.pgm" rough.pgm "$DATA/pnm/landscape_coarse.ppm" "$DATA/pnm/landscape_8bit.ppm"; do
    for tune in "" "--tune psnr" "--tune ssim"; do
        # shellcheck disable=SC2086 # options are words
        run 0 "$TESSERA" compress -f -q --quality web $tune "$name" -o "either${tune#--tune }.tsr"
    done
    least=eitherpsnr.tsr
    [ "$(wc -c <eitherssim.tsr)" -le "$(wc -c <eitherpsnr.tsr)" ] && least=eitherssim.tsr
    echo "$least" >>"least_of.${name##*.}"
    cmp -s either.tsr "$least" || bad "$name: web is not $least: $(wc -c either.tsr eitherpsnr.tsr eitherssim.tsr | tr '\n' ' ')"
done
# Colours are always coded both ways: the second one may be larger.
expect "web takes both ways of tuning" [ "$(sort -u least_of.ppm | wc -l)" -eq 2 ]

# --ssim: never less over all samples, and hardly more; colours too. What has no SSIM loses nothing.
for name in "$DATA/pnm/chest_10bit.pgm" "$DATA/pnm/landscape_grey_8bit.pgm" "$DATA/pnm/landscape_8bit.ppm" ct.dcm; do
    for ssim in 0.9 0.97 0.9912; do
        run 0 "$TESSERA" compress --json -f --ssim "$ssim" "$name" -o ssim.tsr
        fields ssim | head -1 | awk -v wanted="$ssim" '{ exit !($1 >= wanted && 1 - $1 > 0.85 * (1 - wanted)) }' || bad "$name, --ssim $ssim: $(fields ssim lossless reason | head -1)"
    done
done
printf 'P5\n10 10\n255\n' >tiny.pgm
head -c 100 "$DATA/pnm/chest_10bit.pgm" >>tiny.pgm
run 0 "$TESSERA" compress --json -f --ssim 0.5 tiny.pgm -o tiny.tsr
[ "$(fields lossless | head -1)" = true ] || bad "an image without an SSIM: $(cat "$out")"
for word in 0 1 0.98765 -0.5 98 x ''; do refuses 2 "--ssim wants 0.0001 to 0.9999, with at most four digits after the point, not '$word'" "$TESSERA" compress --ssim "$word" ct.dcm -o no.tsr; done
refuses 2 'exclude each other' "$TESSERA" compress --ssim 0.98 --psnr 40 ct.dcm -o no.tsr
refuses 2 "--tune wants psnr or ssim, not 'both'" "$TESSERA" compress --qp 20 --tune both ct.dcm -o no.tsr
refuses 2 '--tune is for loss' "$TESSERA" compress --tune ssim ct.dcm -o no.tsr
refuses 2 '--tune is for loss' "$TESSERA" compress --tune ssim --max-error 3 ct.dcm -o no.tsr

# A loss that is seen is said, in words and in numbers; one that is bounded is not.
run 0 "$TESSERA" compress -v --psnr 45 ct.dcm -o said.tsr
grep -q ' dB in window 40/400, SSIM 0.[0-9]*, above the 15 to 1 published for CT, found in' "$out" || bad "the line does not name the window: $(head -1 "$out")"
grep -q '^  in windows: at least [0-9.]* dB (RMSE [0-9.]*), in 40/400 of ct.dcm$' "$out" || bad "the summary: $(cat "$out")"
grep -q '^  WARNING: 1 file has less than 35 dB in a window' "$out" || bad "no warning: $(cat "$out")"
run 0 "$TESSERA" compress --json -f --psnr 45 ct.dcm -o said.tsr
[ "$(fields --summary poor_windows)" = 1 ] || bad "poor windows: $(fields --summary poor_windows)"
# The page says the same: range, PSNR, each window, which files are poor; and names nobody unasked.
cp "$DATA/pnm/chest_10bit.pgm" x.pgm
run 0 "$TESSERA" compress -f --json --psnr 45 ct.dcm "$DATA/dicom/mr/brain_01.dcm" x.pgm "$DATA/other/text.txt" -o paged --report page.html
fields psnr_db range max_error | head -1 >figures
sed -n '1s/.*"windows":\[{"center":40,"width":400,"samples":\([0-9]*\),"rmse":\([^,]*\),"psnr_db":\([^,]*\),"judged":true,"ssim":\([^,]*\),"largest_error":\([^}]*\)}.*/\1 \2 \3 \4 \5/p' "$out" >window
wanted=$(paste figures window | awk '{ printf "PSNR %.2f dB of the range %d, largest error %d\t.*window 40/400: %.2f dB, RMSE %.3g, largest error %.3g, SSIM %.4f, %d,%03d samples inside\t", $1, $2, $3, $6, $5, $8, $7, $4 / 1000, $4 % 1000 }')
[ "$(grep -c "no. 1${tab}lossy${tab}$wanted" page.html)" -eq 3 ] || bad "the page does not say '$wanted': $(grep -a 'lossy' page.html)"
grep -q '<ul class="reasons"' page.html && grep -q '<b>1 lossy</b>: less than 35 dB in a window, where it is seen (no. 1)' page.html || bad "the page does not warn"
grep -q '<th scope="row">Below 35.*dB</th><td class="n">1</td>' page.html || bad "the page does not count what is poor"
grep -q '<th scope="row">Above a published ratio</th><td class="n">1</td>' page.html && grep -q 'CT, pixels [12][0-9.]* to 1: above 15 to 1, the published limit for CT' page.html ||
    bad "the page does not say which ratio is high: $(grep -c 'published' page.html)"
row=$(grep '<tr data-kind="lossy"><th scope="row" data-v="1">' page.html | grep -o 'data-v="[0-9.]*"' | tr -dc '0-9.\n' | tr '\n' ' ')
paste figures window | awk -v row="$row" '{
    n = split(row, v, " ")
    for (i = 1; i <= n; i++) { range += v[i] == $2; db += v[i] - $1 < 0.01 && $1 - v[i] < 0.01; least += v[i] - $6 < 0.01 && $6 - v[i] < 0.01 }
    if (range != 1 || db != 1 || least != 1) exit 1 }' || bad "the row of the page: $row, not $(cat figures window)"
run 0 "$TESSERA" compress -f --max-error 2 ct.dcm -o said.tsr --report page.html
grep -q 'less than 35 dB\|Below 35' page.html && bad "the page warns at an error of 2"
run 0 "$TESSERA" compress -v -f --max-error 2 ct.dcm -o said.tsr
grep -q WARNING "$out" && bad "a warning at an error of 2: $(cat "$out")"

# --strict: nothing is kept, and the reason is said; one file, one of several, a series; with --quality that is the floor.
refuses 64 'ct.dcm would have [0-9.]* dB, below 35.00 dB, in its window 40/400$' "$TESSERA" compress --strict --psnr 45 ct.dcm -o strict.tsr
refuses 64 'would have a PSNR of [0-9.]* dB, below 35.00 dB, by its range of 255$' "$TESSERA" compress --strict --psnr 30 "$DATA/pnm/landscape_grey_8bit.pgm" -o strict.tsr
run 75 "$TESSERA" compress -q --strict --psnr 45 ct.dcm "$DATA/pnm/landscape_grey_8bit.pgm" -o several
[ "$(find several -type f | wc -l)" -eq 1 ] || bad "kept: $(find several -type f)"
run 64 "$TESSERA" compress -q --strict --psnr 45 --series strict_series.tsr ct.dcm "$DATA/pnm/landscape_grey_8bit.pgm"
[ -e strict_series.tsr ] && bad "a series with more loss than is allowed is kept"
run 0 "$TESSERA" compress -q --strict --quality diagnostic ct.dcm -o strict.tsr
run 0 "$TESSERA" compress -q -f --strict ct.dcm -o strict.tsr

# The published ratio of a modality: warned of with the file, its ratio and the limit; --strict refuses; others are not.
ratio() { run 0 "$TESSERA" compress --json -f --size "$2:1" "$1" -o ratio.tsr; }
run 0 "$TESSERA" compress -v -f --size 20:1 ct.dcm -o ratio.tsr
grep -q '^  WARNING: ct.dcm (CT) is compressed [12][0-9.]* to 1, above 15 to 1, the published limit for CT$' "$out" || bad "no warning of the ratio: $(cat "$out")"
ratio ct.dcm 20
[ "$(fields modality ratio_limit | head -1)" = "CT${tab}15" ] || bad "the limit: $(fields modality ratio_limit)"
[ "$(fields --summary over_ratio)" = 1 ] || bad "over the ratio: $(fields --summary over_ratio)"
ratio ct.dcm 6
[ "$(fields --summary over_ratio)" = 0 ] || bad "over the ratio at 6 to 1: $(fields --summary over_ratio)"
cp "$DATA/dicom/nm/tomo.dcm" nm.dcm
refuses 64 'nm.dcm (NM) would be compressed 1[0-9.]* to 1, above 11 to 1, the published limit for NM$' "$TESSERA" compress --strict --size 14:1 nm.dcm -o over.tsr
run 64 "$TESSERA" compress -q --strict --psnr 38 --series over.tsr nm.dcm "$DATA/dicom/mr/small_01.dcm"
grep -q '(NM) would be compressed [1-9][0-9.]* to 1, above 11 to 1' "$err" || bad "a series over its ratio: $(cat "$err")"
[ -e over.tsr ] && bad "a file over its ratio is kept"
run 0 "$TESSERA" compress -q --strict --quality diagnostic --series within.tsr ct.dcm "$DATA/dicom/ct/slice_02.dcm"
no_parts .
finish
