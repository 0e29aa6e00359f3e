# tessera compare, and the reports of compress, test and verify: what they measure, say, and keep to themselves.
. "${0%/*}/steps.sh"
grey=$DATA/pnm/landscape_grey_8bit.pgm colour=$DATA/pnm/landscape_8bit.ppm deep=$DATA/pnm/chest_10bit.pgm text=$DATA/other/text.txt
png=$DATA/png/landscape_rgb.png dicom=$DATA/dicom/ct/slice_01.dcm
tsr=$TESSERA

# --- One run: a row for each image, codec and setting, the same in the table, the CSV and the JSON.
mkdir set && cp "$grey" "$deep" "$text" "$dicom" set
run 0 "$tsr" compare -r set --json --csv t.csv --html t.html
[ "$(fields status | grep -v absent | sort | uniq -c | tr -s ' \n' ' ')" = ' 3 ok 1 skipped ' ] || bad "images: $(fields status)"
[ "$(fields --summary files images failed)" = "4${tab}3${tab}0" ] || bad "the whole: $(tail -n 1 "$out" | cut -c 1-300)"
cp "$out" lines.json
# Without loss every codec gives the samples back, and Tessera's bytes are those that compress makes, but for the proof.
awk -F, 'NR > 1 && $2 !~ /lossy|tsr-file|^jpeg$|jpeg-optimised|jpeg-420/ && $4 == "\"done\"" && $15 != 1 { print }' t.csv >"$WORK/other"
[ -s "$WORK/other" ] && bad "a lossless codec gives other samples back: $(head -n 2 "$WORK/other")"
[ "$(awk -F, '$2 == "tessera-5" && $4 == "\"done\"" { n++ } END { print n }' t.csv)" = 3 ] || bad "no row for each image: $(cut -d, -f 1-4 t.csv | head)"
"$tsr" compress -q "$grey" -o made.tsr
made=$(bytes_of made.tsr)
number=$(awk -F, -v raw="$(bytes_of "$grey")" '$2 == "tsr-file" && $30 == raw { print $1 }' t.csv)
said=$(awk -F, -v n="$number" '$1 == n && $2 == "tsr-file" { print $6 }' t.csv)
[ "$made" = "$said" ] || bad "compress makes $made bytes, compare says $said"
# Each codec that is there has a cell for each image that it can hold; none has failed.
grep -q '"outcome":"failed"' lines.json && bad "a codec failed: $(grep -o '"codec":"[^}]*"outcome":"failed"[^}]*' lines.json | head -3)"
for codec in tessera-1 tessera-9 png; do
    [ "$(grep -c "^[0-9]*,$codec,,\"done\"" t.csv)" -eq 3 ] || bad "$codec: $(grep -c "^[0-9]*,$codec,,\"done\"" t.csv) cells"
done
run 0 "$tsr" compare -r set --html t2.html --progress json -T 1
grep -q '^4 files, .* as .tsr files .* less; 4 come back as the same file' "$out" && grep -q '^  Tessera -5  *3 ' "$out" || bad "the table: $(cat "$out")"

# --- The progress tells of shares of the whole work, and of the time only when as much is done as one image takes; and of the page's
# pictures, which come last.
awk -F'"share":' '/"what":"files"/ { split($2, s, ","); if (s[1] + 0 < last) bad = 1; last = s[1] + 0
        if (s[1] < 0.25 && $0 !~ /"left_s":null/) early = 1; if ($0 ~ /"files":4,/) whole = s[1] }
    END { exit bad || early || whole < 0.999 || whole > 1.001 }' "$err" || bad "shares of the progress: $(cut -c 1-400 "$err" | head -n 20)"
grep -q '"what":"pictures of the page"' "$err" || bad "nothing is said of the pictures: $(tail -n 3 "$err")"
[ "$(grep -c '^tessera: compare: 4 files, by all codecs and settings: about [0-9.]* [a-z]* on an idle machine$' "$err")" = 1 ] && head -n 1 "$err" | grep -q 'about' ||
    [ ! -x "$BIN/tessera-rivals" ] || bad "the time is not told before it starts: $(head -n 3 "$err")"
rm t2.html

# --- One convention: what other codecs take against Tessera, on the terminal as on the page. With + it is more.
nbsp=$(printf '\302\240') minus=$(printf '\342\210\222')
on_page() # CHANGE: as pages write it
{
    echo "$1" | awk '{ printf ($1 >= 99.95 ? "%+.0f" : "%+.1f"), $1 }' | sed "s/-/$minus/"
}
for codec in 'png,PNG' 'tessera-9,Tessera -9' 'tessera-1,Tessera -1' 'jpeg-ls,JPEG-LS' 'dicom-rle,DICOM RLE'; do
    key=${codec%,*} name=${codec#*,}
    change=$(awk -F, -v key="$key" '$4 != "\"done\"" { next } $2 == "tessera-5" { ours[$1] = $6 } $2 == key { its[$1] = $6 }
        END { for (i in its) if (i in ours) { a += its[i]; b += ours[i] } if (b) printf "%+.1f", 100 * (a / b - 1) }' t.csv)
    [ "$change" ] || continue
    grep -q "^  $name  *[0-9]*  *[0-9]*  *[0-9.]*  *$change %" "$out" || bad "$name against Tessera is not $change %: $(grep "^  $name " "$out")"
    grep -q ">$(on_page "$change")$nbsp%<" t.html || bad "$name against Tessera is not $change % on the page"
done
grep -q '+ is more, - is less' "$out" || bad "the sign is not explained: $(cat "$out")"
rates=$(awk '/^With loss/ { on = 1 } on && / %/ { for (i = 1; i <= NF; i++) if ($i == "%") print $(i - 1) }' "$out")
for rate in $rates; do grep -q ">$(on_page "$rate")$nbsp% (" t.html || bad "the BD-rate $rate % is not on the page"; done
[ "$rates" ] || [ ! -x "$BIN/tessera-rivals" ] || grep -q 'With loss' "$out" || bad "no BD-rates: $(cat "$out")"
# The first lines are the answer: what others need at equal quality and without loss. The page has the same figures.
if [ -x "$BIN/tessera-rivals" ]; then
    head -n 5 "$out" >"$WORK/answer"
    grep -q "^Bytes of other codecs against Tessera's: + is more, - is less" "$WORK/answer" &&
        grep -q '^ at equal quality, 40 dB and an SSIM of 0.99 as --quality visually-lossless:' "$WORK/answer" &&
        grep -q '^ without loss:' "$WORK/answer" || bad "no answer: $(head -n 6 "$out")"
    needs=$(sed -n 's/^  PNG  *[0-9]*  *[0-9]*  *[0-9.]*  *\([-+0-9.]*\) %.*/\1/p' "$out")
    grep -q "PNG $needs %" "$WORK/answer" || bad "the answer has another figure of PNG than $needs: $(cat "$WORK/answer")"
    tr -d '\n' <t.html | grep -o '<dl class="answer">.*</dl>' | sed 's/<\/dl>.*//' >"$WORK/answer.html"
    for rate in $(grep -o '[-+][0-9.]* %' "$WORK/answer" | tr -d ' %'); do
        grep -q ">$(on_page "$rate")$nbsp%<" "$WORK/answer.html" || bad "the answer's $rate % is not in that of the page: $(cat "$WORK/answer.html")"
    done
    # The summary in JSON says the same: level, numbers of images, codecs.
    tail -n 1 lines.json | sed 's/.*"answer":{"quality":"\([^"]*\)","psnr_db":\([^,]*\),"ssim":\([^,]*\),"images":\([0-9]*\),"at_quality":\[\([^]]*\)\],"images_lossless":\([0-9]*\),"lossless":\[\([^]]*\)\].*/\1\n\2\n\3\n\4\n\5\n\6\n\7/' |
        awk 'function others(list, images, i, n, codec, part, line) {
            n = split(list, codec, "},{")
            for (i = 1; i <= n; i++) {
                match(codec[i], /"name":"[^"]*"/); part = substr(codec[i], RSTART + 8, RLENGTH - 9)
                match(codec[i], /"ratio":[^,}]*/); line = line (i > 1 ? ", " : "  ") sprintf("%s %+.1f %%", part, 100 * (substr(codec[i], RSTART + 8, RLENGTH - 8) - 1))
                match(codec[i], /"images":[0-9]*/); part = substr(codec[i], RSTART + 9, RLENGTH - 9)
                if (part + 0 != images + 0) line = line sprintf(" (%d of %d images)", part, images)
            }
            return line
        }
        { part[NR] = $0 }
        END {
            print "Bytes of other codecs against Tessera\047s: + is more, - is less"
            printf " at equal quality, %g dB and an SSIM of %g as --quality %s:\n%s\n", part[2], part[3], part[1], others(part[5], part[4])
            printf " without loss:\n%s\n", others(part[7], part[6])
        }' >"$WORK/answer.json"
    diff "$WORK/answer" "$WORK/answer.json" || bad "the answer in JSON: $(tail -n 1 lines.json | grep -o '"answer":.*"codecs"')"
    # Bars: one of the uncompressed samples, at most three of ours.
    bars=$(tr -d '\n' <t.html | sed 's/.*<dl class="answer">//; s/id="lossless".*//')
    [ "$(echo "$bars" | grep -o '>Uncompressed<' | wc -l)" -ge 1 ] || bad "no bar of the uncompressed size"
    [ "$(echo "$bars" | grep -o '<text[^>]*>Tessera [^<]*<' | sort -u | wc -l)" -eq 3 ] || bad "bars of ours: $(echo "$bars" | grep -o '<text[^>]*>Tessera [^<]*<')"
fi
grep -q 'less than\|more than</strong>' t.html && bad "the page has a figure of another convention"

# --- A dB is one of compress: over the samples inside the file's window, by its width; at one step of the quantiser both tell the
# same, but for the rounding to 8 bits. 24 % of this slice lie inside 40/400.
# of_window WIDTH: sets said (compare at QP 21) and told (compress, at the same step of values) to "samples dB judged" of w.dcm.
of_window()
{
    run 0 "$tsr" compare --json --csv w.csv -f w.dcm
    said="$(fields samples_inside | head -1) $(sed -n '1s/.*"codec":"tessera-lossy","setting":"QP 21"[^}]*"psnr_db":\([^,]*\),.*/\1/p' "$out") $(fields judged | head -1)"
    [ "$(awk -F, '$2 == "tessera-lossy" && $3 == "\"QP 21\"" { print $33, $16 == "" ? "null" : $16 + 0 < 100 ? "dB" : "inf" }' w.csv)" = \
        "$(echo "$said" | awk '{ print $1, $2 == "null" ? $2 : "dB" }')" ] || bad "the CSV and JSON differ: $said"
    grep -q "^1,tessera-lossy,.*,\"the window [-0-9]*/$1, samples [-0-9]* to [-0-9]*\"\$" w.csv || bad "the CSV has no window: $(tail -n 1 w.csv)"
    [ "$(sed 's/"[^"]*"//g' w.csv | awk -F, '{ print NF }' | sort -u | wc -l)" = 1 ] || bad "rows of the CSV have other columns than its head"
    run 0 "$tsr" compress --json -f --qp 20 w.dcm -o w.tsr
    qp=$(fields range | head -1 | awk -v w="$1" '{ printf "%.3f", int(8 * (21 + 6 * log((w - 1) / 255 * 256 / ($1 + 1)) / log(2)) + 0.5) / 8 }')
    run 0 "$tsr" compress --json -f --qp "$qp" w.dcm -o w.tsr
    told=$(sed -n '1s/.*"windows":\[{"center":[^,]*,"width":[^,]*,"samples":\([0-9]*\),"rmse":[^,]*,"psnr_db":\([^,]*\),"judged":\([a-z]*\),.*/\1 \2 \3/p' "$out")
}
if [ -x "$BIN/tessera-rivals" ]; then
    cp "$dicom" w.dcm && of_window 400
    echo "$said $told" | awk '$1 != $4 || $3 != "true" || $6 != "true" || $1 < 1000 || $1 > 30000 || $2 - $5 > 0.5 || $5 - $2 > 0.5 { exit 1 }' ||
        bad "compare says of the window $said, compress $told"
    if command -v dcmodify >/dev/null; then
        # Padding inside the window does not count: a loss leaves it as it is.
        dcmodify -nb -m 0028,1050=-1000 -m 0028,1051=2400 w.dcm 2>/dev/null && of_window 2400
        echo "$said $told" | awk '$1 != $4 || $1 < 40000 || $1 > 60000 { exit 1 }' || bad "padding: compare says $said, compress $told"
        # A CT that names no window is looked at in 40/400.
        cp "$dicom" w.dcm && dcmodify -nb -ea "(0028,1050)" -ea "(0028,1051)" -i 0028,1052=0 -i 0028,1053=1 w.dcm 2>/dev/null
        run 0 "$tsr" compare --json w.dcm
        grep -q '"window":"the window 40/400, samples -160 to 239"' "$out" || bad "a CT without a window: $(fields window)"
        # A window with few samples is told, and not judged.
        dcmodify -nb -i 0028,1050=-1950 -i 0028,1051=4 w.dcm 2>/dev/null && of_window 4
        echo "$said" | awk '$1 >= 256 || $2 != "null" || $3 != "false" { exit 1 }' || bad "a window with few samples: $said"
        run 0 "$tsr" compare -v w.dcm --html w.html
        grep -q 'not judged with loss: [0-9]* samples lie inside the window -1950/4' "$out" && grep -q '^1 image is not judged with loss' "$out" ||
            bad "not told: $(cat "$out")"
        grep -q '1 image is not judged: fewer than 256 samples' w.html || bad "the page does not tell it"
    fi
    grep -q 'A dB is one of <code>compress</code>' t.html || bad "the page does not say what a dB is"
    rm -f w.*
fi

run 0 "$tsr" compare -q "$text" && [ ! -s "$err" ] || bad "--quiet tells of the time: $(cat "$err")"

# --- Pages: their own are replaced, other files are not; nothing stays after a failure.
{ printf 'P5\n40 30\n255\n' && tail -c 1200 "$grey"; } >small.pgm
run 0 "$tsr" compare small.pgm --html t.html --csv t.csv
# A disk that is full for an output is that, and no failure of an image.
for output in html csv; do
    sh -c "trap '' XFSZ; ulimit -f 1; exec '$tsr' compare small.pgm --$output full.$output" >/dev/null 2>"$err"
    [ $? -eq 40 ] || bad "--$output on a full disk: $(cat "$err")"
    grep -q "cannot write full.$output: File too large" "$err" || bad "not said of --$output: $(cat "$err")"
    [ ! -f full.$output ] || bad "a cut full.$output is there"
done
cp "$text" other.html
refuses 41 'other.html exists and is no report of tessera: name another file' "$tsr" compare "$grey" --html other.html
refuses 41 'other.html exists and is no report of tessera: name another file' "$tsr" compress -r set -o made --report other.html
cp "$grey" x && refuses 42 'the report would overwrite x, which this run reads' "$tsr" compare x --html x -f
refuses 42 'the report would overwrite x.tsr, which this run writes' "$tsr" compress x --report x.tsr
refuses 42 'cannot be both the report and the table' "$tsr" compare x --html y --csv y
refuses 20 'No such file' "$tsr" compare missing --html gone.html
refuses 40 'cannot write nowhere/t.html.part' "$tsr" compare x --html nowhere/t.html
rm -f x other.html made.tsr

# --- A sample: of each modality and size, the same for the same seed.
mkdir many && for i in 1 2 3 4 5 6 7 8; do cp "$text" many/t$i; cp small.pgm many/p$i; done && cp "$DATA/dicom/forms/big_8bit_bytes.dcm" many/d
for seed in 1 1 2; do
    run 0 "$tsr" compare -r many --sample 4 --seed $seed --identify --json
    fields file | grep -v absent | sort >>"$WORK/sample.$seed"
    [ "$(fields file | grep -vc absent)" = 4 ] && fields file | grep -q many/d || bad "a sample: $(fields file)"
done
[ "$(sort "$WORK/sample.1" | uniq -c | awk '$1 != 2' | wc -l)" = 0 ] || bad "one seed, two samples: $(cat "$WORK/sample.1")"
sort -u "$WORK/sample.1" | cmp -s - "$WORK/sample.2" && bad "another seed, the same sample"
refuses 2 "wants a number, as 60, or a percentage, as 5%, not 'x'" "$tsr" compare -r many --sample x
rm -rf many

# --- Rivals that crash, hang, lie or eat memory cost their cell, nothing else.
if TESSERA_RIVALS_FAKE=1 TESSERA_RIVALS_SECONDS=10 run 0 "$tsr" compare --json --memory 1G small.pgm; then
    cp "$out" fakes.json
    for fake in crash hang memory wrong garbage; do
        grep -o "\"codec\":\"fake-$fake\"[^}]*" fakes.json | grep -q '"outcome":"failed"' || bad "fake-$fake: $(grep -o "\"codec\":\"fake-$fake\"[^}]*" fakes.json)"
    done
    for codec in png jpeg-ls tessera-5; do
        [ "$(grep -o "\"codec\":\"$codec\",\"setting\":null,\"outcome\":\"done\"" fakes.json | wc -l)" = 1 ] || bad "$codec is lost with a crash"
    done
fi

# --- The night's report: PASS means that all was proven.
passes() # PAGE WORDS
{
    grep -q '<title>[^<]*PASS' "$1" && grep -qi "$2" "$1" || bad "$1 does not pass, or does not say '$2': $(grep -o '<title>[^<]*' "$1")"
}
fails() # PAGE WORDS
{
    grep -q '<title>[^<]*FAIL' "$1" && grep -qi "$2" "$1" || bad "$1 does not fail, or does not say '$2': $(grep -o '<title>[^<]*' "$1")"
}
run 0 "$tsr" compress -q -r set -o made --report r.html
passes r.html 'all 4 files were proven: 4 come back as the same files'
run 0 "$tsr" test -q -r made --report r2.html && passes r2.html 'all 4 files were proven'
run 0 "$tsr" compress -q -r --update set -o made --report r.html && passes r.html 'all 4 files were proven'
run 0 "$tsr" compress -q -r -f --verify none set -o made --report r.html
grep -q '<title>[^<]*NOT PROVEN, 4 files were not proven' r.html || bad "--verify none: $(grep -o '<title>[^<]*' r.html)"
ln -s nowhere set/link && run 0 "$tsr" compress -q -r -f set -o made --report r.html && passes r.html '1 name was not taken; all 4 files were proven'
rm set/link && changes_byte made/slice_01.dcm.tsr 3000 && run 75 "$tsr" test -q -r made --report r2.html && fails r2.html '1 file failed'
run 0 "$tsr" compress -q -r --series s.tsr set --report r3.html && passes r3.html 'all 4 files were proven'
run 0 "$tsr" compress -q -r -f set -o made && run 0 "$tsr" verify set made --html v.html
passes v.html 'all 4 files were proven'
grep -q "$(sha256sum set/text.txt | cut -c 1-64)" v.html || bad "evidence: no hash of an original"
run 0 "$tsr" verify --json set made
[ "$(fields original_sha256 restored_sha256 | grep -v absent | awk '$1 != $2' | wc -l)" = 0 ] || bad "hashes of both sides: $(fields original_sha256 restored_sha256)"
fields original_sha256 | grep -q "$(sha256sum set/slice_01.dcm | cut -c 1-64)" || bad "verify's SHA-256 is not the file's"
no_parts . && [ -z "$(find . -name '*.part')" ] || bad "parts are left: $(find . -name '*.part')"

# --- The page of a night that failed: why stands under the word; where names are missing, it says how to get them.
under() # PAGE: what stands between the first line and what it is a record of
{
    sed -n '/<h1/,/Record of/p' "$1" | tr '\n' ' ' | sed 's|.*</h1>||; s|<p class="small">Record.*||'
}
ln -s nowhere set/link && run 75 "$tsr" compress -q -r -f set gone1 gone2 gone3 gone4 -o night --report r.html
under r.html | grep -q '<ul class="reasons"> <li><b>4 failed</b>: [^<]* (no. 5, no. 6, no. 7 and 1 more)</li> <li><b>1 not taken</b>: symbolic link (no. 9)</li>' ||
    bad "under FAIL: $(under r.html)"
under r.html | grep -q -- '--identify</code> shows them' || bad "no hint at names: $(under r.html)"
[ "$(grep -c -- '--identify</code> shows them' r.html)" -ge 3 ] || bad "no hint where names are missing"
host=$(uname -n)
grep -q "on $host\|gone1\|$WORK" r.html && bad "a page names what it should not"
run 75 "$tsr" compress -q -r -f set gone1 gone2 gone3 gone4 -o night --report r.html --identify
under r.html | grep -q 'No such file or directory (gone1, gone2, gone3 and 1 more)</li> .*symbolic link (set/link)</li>' || bad "under FAIL, with names: $(under r.html)"
grep -q -- '--identify</code> shows' r.html && bad "a hint, though all is named"
for fact in "<dt>Machine</dt><dd>$host" "<dt>Given in</dt><dd>$PWD<" "<dt>Input</dt><dd>$PWD/set, gone1" "<dt>Output</dt><dd>$PWD/night<" \
    '<code>tessera compress -q -r -f set gone1 gone2 gone3 gone4 -o night --report r.html --identify</code>'; do
    grep -qF "$fact" r.html || bad "the page does not say '$fact'"
done
run 0 "$tsr" verify -q set made --html v.html
grep -qF "<dt>Machine</dt><dd>$host" v.html || bad "evidence does not say where it was made"
rm set/link
# Why outputs could not be written, each cause by itself, and no name.
long=$(printf '%0253d' 0 | tr 0 q)
mkdir -p causes blocked/a.tsr && echo a >causes/a && echo b >causes/b && echo c >causes/$long && ln -s nowhere blocked/d.tsr && echo d >causes/d
run 75 "$tsr" compress -q -r causes -o blocked --report r.html
for cause in 'Is a directory (no. 1)' 'Too many levels of symbolic links (no. 3)' 'File name too long (no. 4)'; do
    under r.html | grep -q "<b>1 failed</b>: cannot write: $cause" || bad "the cause '$cause': $(under r.html)"
done
grep -q 'causes\|blocked/\|qqqq' r.html && bad "a cause names a file"
if [ "$(id -u)" -eq 0 ] && mkdir tiny && mount -t tmpfs -o size=64k none tiny 2>/dev/null; then
    mkdir full && for i in $(seq 100); do echo $i >full/$i; done
    run 40 "$tsr" compress -q -r full -o tiny --report r.html
    under r.html | grep -q '<b>1 failed</b>: cannot write: No space left on device (no. ' || bad "a full disk: $(under r.html)"
    left=$(sed -n 's|.*Not done</th><td class="n">\([0-9]*\)<.*|\1|p' r.html)
    [ $((left + $(sed -n 's|.*In this record</th><td class="n">\([0-9]*\)<.*|\1|p' r.html))) -eq 100 ] && ! grep -q 'all names that the command met' r.html || bad "a full disk: $left are not done"
    mount -o remount,ro tiny && run 75 "$tsr" compress -q -r causes -o tiny --exclude "$long" --report r.html
    under r.html | grep -q '<b>3 failed</b>: cannot write: Read-only file system (' || bad "a file system that is read only: $(under r.html)"
    umount tiny && rmdir tiny && rm -r full
fi
rm -r causes blocked
# A page stays a page, however many files there are.
mkdir many && (cd many && awk 'BEGIN { for (i = 1; i <= 12000; i++) { f = "a_patient_with_a_long_name_and_a_study_with_a_longer_one_" i ".tsr"; printf "" >f; close(f) } }')
run 75 "$tsr" test -q -r many --report r.html --identify
[ "$(bytes_of r.html)" -lt 5000000 ] || bad "a page of 12000 files has $(bytes_of r.html) bytes"
grep -q '12,000 failed' r.html && grep -q 'The table has [0-9,]* of 12,000 names' r.html && grep -q 'and [0-9,]* more; <code>--json' r.html || bad "a long page: $(under r.html | cut -c 1-300)"
rm -r many

# --- Nobody is named, unless that is asked for.
if "$BIN/tsr_mark_dicom" MARKED.dcm; then
    grep -q 'MARKED' MARKED.dcm && grep -q '7.7777777' MARKED.dcm || bad "nothing is marked"
    mkdir -p 'Marked^Folder' && cp MARKED.dcm "$png" 'Marked^Folder' && mv 'Marked^Folder/landscape_rgb.png' 'Marked^Folder/Marked.png'
    truncate -s 300 'Marked^Folder/Marked.png' && cp MARKED.dcm 'Marked^Folder/MARKED.2' && truncate -s 2000 'Marked^Folder/MARKED.2'
    run 0 "$tsr" compare -r 'Marked^Folder' --html n.html --csv n.csv --json
    cp "$out" n.json
    run 0 "$tsr" compress -q -r 'Marked^Folder' -o 'Marked^Out' --report n2.html
    run 0 "$tsr" test -q -r 'Marked^Out' --report n3.html
    for page in n.html n.csv n.json n2.html n3.html; do
        # Base64 is left out: it may spell anything.
        sed 's/base64,[A-Za-z0-9+\/=]*//g' $page | grep -io '.\{0,30\}\(marked\|7\.7777777\|17770707\|177707\).\{0,30\}' >"$WORK/named" &&
            bad "$page names somebody: $(head -n 3 "$WORK/named")"
    done
    run 0 "$tsr" compare -r 'Marked^Folder' --identify --html n.html --csv n.csv
    grep -q 'Marked^Folder/MARKED.dcm' n.html && grep -q 'Marked^Folder/MARKED.dcm' n.csv || bad "--identify does not name files"
fi
finish
