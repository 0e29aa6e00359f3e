# tessera export: the image of a .tsr as a standard DICOM file, in each transfer syntax. DCMTK decodes what was written; for
# JPEG 2000 and HTJ2K, Tessera does.
. "${0%/*}/steps.sh"

words="native jpeg-ls jpeg-lossless rle j2k htj2k"
run 0 "$TESSERA" compress -q -r "$DATA/dicom" -o coded
run 0 "$TESSERA" decompress -q -r coded -o back
fields_of() { tr ' ' '\n' <"$1" | sed -n "$2p"; }

# Each file is exported, or there is a reason that names what it lacks.
for word in $words; do
    "$TESSERA" export -q -r coded --to "$word" -o "$word" >"$out" 2>"$err"
    got=$?
    [ $got -eq 75 ] || bad "exit status $got of export --to $word"
    grep -v "cannot be exported: " "$err" && bad "export --to $word fails without a reason"
    grep -q "is \(stored\|coded by its streams\), without decoded samples (.*); tessera decompress restores it" "$err" ||
        bad "nothing is said of what has no samples"
    count=$(find "$word" -name '*.dcm' | wc -l)
    case $word in
    native) least=90 ;;
    rle) least=85 ;;
    *) least=80 ;;
    esac
    [ "$count" -ge "$least" ] || bad "only $count files are exported to $word"
done

# Native samples in rare elements, and uncompressed frames in items, are samples, too.
for name in unknown_vr unknown_vr_big unknown_vr_items ge_private ge_private_rgb uncompressed_frames \
    uncompressed_fragments uncompressed_1bit native_in_rle; do
    [ -f "native/forms/$name.native.dcm" ] || bad "$name has no samples"
done

uid_of() {
    case $1 in
    native) echo 1.2.840.10008.1.2.1 ;;
    jpeg-ls) echo 1.2.840.10008.1.2.4.80 ;;
    jpeg-lossless) echo 1.2.840.10008.1.2.4.70 ;;
    rle) echo 1.2.840.10008.1.2.5 ;;
    j2k) echo 1.2.840.10008.1.2.4.90 ;;
    htj2k) echo 1.2.840.10008.1.2.4.201 ;;
    esac
}

# Files without a meta header, big-endian ones, and those of odd frames: DCMTK's samples of the restored file are those of
# the exported ones. What DCMTK does not decode of the originals is compared with the native file.
for word in $words; do
    compared=0
    least=80
    case $word in
    *j2k) least=15 && find "$word/samples" "$word/us" -name "*.dcm" >list ;; # it takes longer
    *) find "$word" -name "*.dcm" >list ;;
    esac
    few=${TSR_TEST_SMALL:-1} # where tests are slow, one file of so many
    sort list | sed -n "1~${few}p" >few && mv few list && least=$((least / few))
    while read -r file; do
        case $file in *big_32bit*) continue ;; esac # DCMTK takes a sample of 32 bits for two words; pydicom does not
        name=${file#"$word/"} && name=${name%".$word.dcm"}
        case $name in */signed_masked) continue ;; esac # below: its values, but not its bits above them
        original=back/$name.dcm
        [ -f "$original" ] || original=back/$name
        "$BIN/tsr_dicom_samples" "$original" theirs >"$WORK/theirs.txt" 2>/dev/null
        [ $? -eq 0 ] || "$BIN/tsr_dicom_samples" "native/$name.native.dcm" theirs >"$WORK/theirs.txt" 2>&1
        "$BIN/tsr_dicom_samples" "$file" ours >"$WORK/ours.txt" 2>"$err"
        status=$?
        [ $status -ne 1 ] || bad "$file: $(cat "$err")"
        [ "$(fields_of "$WORK/ours.txt" 1)" = "$(uid_of "$word")" ] || bad "$file has another transfer syntax"
        if [ $status -eq 3 ]; then # DCMTK has no JPEG 2000: a native file has the samples
            run 0 "$TESSERA" compress --json -f --samples-only "$file" -o made.tsr
            grep -q 'coded as samples it would be larger' "$out" && continue
            "$TESSERA" export -q -f made.tsr --to native -o made.dcm || bad "the samples of $file are not there"
            "$BIN/tsr_dicom_samples" made.dcm ours >"$WORK/ours.txt" 2>"$err" || bad "$file: $(cat "$err")"
        fi
        # Zeros behind the pixel data are an element to DCMTK, and none to us. A coded icon is left out.
        [ "$(sed -n 2p "$WORK/ours.txt")" = "$(sed -n 2p "$WORK/theirs.txt")" ] || [ "$name" = odd/zeros_behind ] ||
            [ "$name" = odd/icon_rle ] || bad "$file has another header"
        cmp -s ours theirs && compared=$((compared + 1)) || bad "$file has other samples"
        rm -f ours theirs
    done <list
    [ "$compared" -ge $least ] || bad "only $compared files of $word are compared"
done

# JPEG 2000 comes back as the same file, by both decoders, and its samples are those that were exported.
exact=0
find j2k/ct j2k/samples -name '*.dcm' | sort | head -12 >list
while read -r file; do
    run 0 "$TESSERA" compress --json -f "$file" -o again.tsr
    grep -q 'coded as samples it would be larger' "$out" && continue
    name=${file#j2k/} && name=${name%.j2k.dcm}
    run 0 "$TESSERA" info again.tsr
    grep -q '^  streams    exact: ' "$out" || bad "$file is not exact: $(cat "$out")"
    run 0 "$TESSERA" decompress -q -f again.tsr -o restored && cmp "$file" restored || bad "$file does not come back"
    "$BIN/tsr_reference" again.tsr theirs && cmp "$file" theirs || bad "the reference decoder restores another $file"
    run 0 "$TESSERA" export -q -f again.tsr --to native -o again.dcm
    "$BIN/tsr_dicom_samples" again.dcm ours >/dev/null && "$BIN/tsr_dicom_samples" "native/$name.native.dcm" theirs >/dev/null &&
        cmp -s ours theirs || bad "$file has other samples"
    exact=$((exact + 1))
done <list
[ "$exact" -ge 4 ] || bad "only $exact files of JPEG 2000 are exact"
rm -f ours theirs restored

# Colours: one frame after the other by pixels; RCT is said where it is used. A file exported twice has the same bytes.
colour=$(cd coded && find . -name '*rgb*.tsr' | head -1)
[ -n "$colour" ] || bad "there is no colour image"
for word in jpeg-ls jpeg-lossless rle j2k htj2k; do
    run 0 "$TESSERA" export -q "coded/$colour" --to "$word" -o colour.dcm -f
    "$BIN/tsr_dicom_samples" colour.dcm ours >"$WORK/ours.txt" 2>"$err"
    case $word in
    j2k | htj2k) wanted="YBR_RCT 0" ;;
    *) wanted="RGB 0" ;;
    esac
    [ "$(head -1 "$WORK/ours.txt" | cut -d ' ' -f 2,3)" = "$wanted" ] || bad "colours of $word: $(cat "$WORK/ours.txt")"
done

# A lossy .tsr: the decoded samples, and the header says that something was lost.
scan=$DATA/dicom/ct/$(cd "$DATA/dicom/ct" && ls | head -1)
run 0 "$TESSERA" compress -q --psnr 50 "$scan" -o lossy.tsr
run 0 "$TESSERA" decompress -q lossy.tsr -o lossy.dcm
"$BIN/tsr_dicom_samples" lossy.dcm theirs >"$WORK/theirs.txt" || bad "DCMTK does not decode the lossy copy"
for word in native jpeg-ls jpeg-lossless rle; do
    run 0 "$TESSERA" export lossy.tsr --to "$word" -o "lossy.$word"
    "$BIN/tsr_dicom_samples" "lossy.$word" ours >"$WORK/ours.txt" || bad "DCMTK does not decode the lossy $word"
    cmp -s ours theirs || bad "the lossy $word has other samples"
    [ "$(fields_of "$WORK/ours.txt" 7)" = 01 ] || bad "the lossy $word does not say so"
    [ "$(fields_of "$WORK/ours.txt" 8)" != - ] || bad "the lossy $word has no ratio"
done

# Bits above and below the samples: readers see the same values in each syntax. Signed samples of 12 bits in 16 have zeros
# above them; then copies of the sign; then they lie 4 bits higher.
cells_of() { od -An -v -tu2 -w2 "$1"; }
values_of() { cells_of "$1" | awk '{ v = $1 % 4096; print (v > 2047 ? v - 4096 : v) }'; }
to_bytes() { awk '{ v = ($1 + 65536) % 65536; printf "\\%03o\\%03o", v % 256, int(v / 256) }' >octal && printf "$(cat octal)"; }
base=$DATA/dicom/samples/signed_masked.dcm
"$BIN/tsr_dicom_samples" "$base" ours >/dev/null || bad "DCMTK does not read $base"
values_of ours >wanted
grep -q '^-' wanted || bad "$base has no negative value"
cp "$base" zeros.dcm
head -c $(($(bytes_of "$base") - $(bytes_of ours))) "$base" >head.bin
{ cat head.bin && to_bytes <wanted; } >signs.dcm
LC_ALL=C sed 's/\(\x28\x00\x02\x01US\x02\x00\)\x0b/\1\x0f/' head.bin >high.dcm
cmp -s head.bin high.dcm && bad "there is no other high bit"
awk '{ print $1 * 16 }' wanted | to_bytes >>high.dcm
for name in zeros signs high; do
    run 0 "$TESSERA" compress -q "$name.dcm" -o "$name.tsr"
    for word in jpeg-ls jpeg-lossless j2k htj2k; do
        run 0 "$TESSERA" export -q "$name.tsr" --to $word -o values.dcm -f
        case $word in
        *j2k) # a reader takes the stream's values as they are
            run 0 "$TESSERA" compress -q -f --samples-only values.dcm -o values.tsr
            run 0 "$TESSERA" export -q -f values.tsr --to native -o values.dcm
            "$BIN/tsr_dicom_samples" values.dcm ours >fields 2>"$err"
            cells_of ours | awk '{ print ($1 > 32767 ? $1 - 65536 : $1 + 0) }' >got
            ;;
        *) # a reader takes the bits stored
            "$BIN/tsr_dicom_samples" values.dcm ours >fields 2>"$err"
            values_of ours >got
            ;;
        esac
        cmp -s wanted got || bad "$word of $name has other values"
        [ "$(fields_of fields 6 | head -1)" = 11 ] || bad "$word of $name says another high bit: $(cat fields)"
    done
done
# An overlay in the high bits is not lost.
run 0 "$TESSERA" compress -q "$DATA/dicom/samples/overlay_high_bits.dcm" -o overlay.tsr
for word in jpeg-ls jpeg-lossless j2k htj2k; do
    refuses 2 "other bits beside its samples, such as an overlay, which $word cannot have; native and rle can" \
        "$TESSERA" export overlay.tsr --to $word -o x.dcm
done
run 0 "$TESSERA" export overlay.tsr --to rle -o overlay.rle.dcm
"$BIN/tsr_dicom_samples" overlay.rle.dcm ours >/dev/null
"$BIN/tsr_dicom_samples" "$DATA/dicom/samples/overlay_high_bits.dcm" theirs >/dev/null
cmp -s ours theirs || bad "rle has lost the overlay"
rm -f ours theirs

# An icon whose frames are coded: only the same transfer syntax may have it. What is left out is said; the original is whole.
run 0 "$TESSERA" compress -q "$DATA/dicom/odd/icon_rle.dcm" -o icon.tsr
run 0 "$TESSERA" decompress -q icon.tsr -o icon.dcm
cmp "$DATA/dicom/odd/icon_rle.dcm" icon.dcm || bad "the file with a coded icon does not come back"
# has_icon FILE: in explicit VR, little endian
has_icon() { LC_ALL=C grep -qaP '\x88\x00\x00\x02SQ' "$1"; }
has_icon icon.dcm || bad "there is no icon"
for word in $words; do
    run 0 "$TESSERA" export icon.tsr --to "$word" -o "icon.$word.dcm"
    if [ "$word" = rle ]; then
        has_icon icon.rle.dcm || bad "rle lacks its icon"
        grep -q 'without its element' "$out" && bad "rle says that it lacks its icon"
    else
        has_icon "icon.$word.dcm" && bad "$word has an icon of RLE"
        grep -q '1 exported with less: without its element (0088,0200), which has pixel data coded in another' "$out" ||
            bad "$word does not say what it lacks: $(cat "$out")"
    fi
done
run 0 "$TESSERA" export --json icon.tsr --to native -o icon.json.dcm
fields reason | grep -q '^without its element (0088,0200)' || bad "JSON does not say what is left out"

# Names: beside the .tsr, never the original's; a pipe; a folder; a series.
cp "$scan" scan.dcm
run 0 "$TESSERA" compress -q scan.dcm
cksum scan.dcm >"$WORK/before"
run 0 "$TESSERA" export scan.dcm.tsr --to rle
cksum scan.dcm | cmp -s - "$WORK/before" || bad "the original was overwritten"
[ -f scan.rle.dcm ] || bad "there is no scan.rle.dcm"
refuses 41 'exists' "$TESSERA" export scan.dcm.tsr --to rle
run 0 "$TESSERA" export -f scan.dcm.tsr --to rle
"$TESSERA" export scan.dcm.tsr --to rle -o - >piped.dcm 2>"$err" || bad "export to a pipe: $(cat "$err")"
cmp -s piped.dcm scan.rle.dcm || bad "a pipe gets another file"
run 0 "$TESSERA" compress -q --series series.tsr "$DATA/dicom/ct" -r
run 0 "$TESSERA" export series.tsr --to jpeg-ls -o members
[ "$(find members -name '*.jpeg-ls.dcm' | wc -l)" -eq "$(ls "$DATA/dicom/ct" | wc -l)" ] || bad "members are missing"

# Refusals: one sentence, the status of usage, no file.
refuses 2 'export wants --to native' "$TESSERA" export scan.dcm.tsr -o x.dcm
refuses 2 "not 'jpeg'" "$TESSERA" export scan.dcm.tsr --to jpeg -o x.dcm
one_bit=$(cd "$DATA/dicom" && find . -name '*1bit*.dcm' | head -1)
run 0 "$TESSERA" compress -q "$DATA/dicom/$one_bit" -o bit.tsr
refuses 2 'cannot be exported: its samples have 1 bit, which rle cannot have; native can' \
    "$TESSERA" export bit.tsr --to rle -o x.dcm
picture=$(find "$DATA" -name '*.png' | head -1)
run 0 "$TESSERA" compress -q "$picture" -o picture.tsr
refuses 2 'cannot be exported: it holds no DICOM file' "$TESSERA" export picture.tsr --to native -o x.dcm
refuses 21 'is not a .tsr file' "$TESSERA" export scan.dcm --to native -o x.dcm
head -c 3000 scan.dcm.tsr >cut.tsr
refuses 61 '' "$TESSERA" export cut.tsr --to native -o x.dcm

# --samples-only, and what info says of coded frames: exact, samples alone, stored.
run 0 "$TESSERA" export -q scan.dcm.tsr --to htj2k -o scan.htj2k.dcm
run 0 "$TESSERA" compress -q scan.htj2k.dcm -o stored.tsr
run 0 "$TESSERA" compress -q --samples-only scan.htj2k.dcm -o samples.tsr
run 0 "$TESSERA" compress -q scan.rle.dcm -o exact.tsr
run 0 "$TESSERA" decompress -q samples.tsr -o samples.dcm -f
"$BIN/tsr_dicom_samples" samples.dcm ours >/dev/null && "$BIN/tsr_dicom_samples" scan.dcm theirs >/dev/null &&
    cmp -s ours theirs || bad "--samples-only loses samples"
for pair in stored:stored samples:'samples alone' exact:exact; do
    run 0 "$TESSERA" info "${pair%%:*}.tsr"
    grep -q "^  streams    ${pair#*:}: " "$out" || bad "info says of ${pair%%:*}: $(cat "$out")"
    run 0 "$TESSERA" info --json "${pair%%:*}.tsr"
    grep -q "\"encapsulated\":\"${pair#*:}\"" "$out" || bad "info --json says of ${pair%%:*}: $(cat "$out")"
done
# A stream of JPEG 2000 that cannot be made again: four bytes more than its packets stand in its tile-part.
run 0 "$TESSERA" export -q -f scan.dcm.tsr --to j2k -o scan.j2k.dcm
start=$(grep -obUaP '\xff\x4f\xff\x51' scan.j2k.dcm | head -1) && start=${start%%:*}
tile=$(grep -obUaP '\xff\x90\x00' scan.j2k.dcm | head -1) && tile=${tile%%:*}
word() { printf '%d' "0x$(tail -c +$(($1 + 1)) scan.j2k.dcm | head -c 4 | od -An -tx1 | tr -d ' ' | sed "$2")"; }
byte() { printf "\\$(printf %03o $(($1 & 255)))"; }
item=$(($(word $((start - 4)) 's/\(..\)\(..\)\(..\)\(..\)/\4\3\2\1/') + 4)) part=$(($(word $((tile + 6)) '') + 4))
{
    head -c $((start - 4)) scan.j2k.dcm
    byte $item && byte $((item >> 8)) && byte $((item >> 16)) && byte $((item >> 24))
    tail -c +$((start + 1)) scan.j2k.dcm | head -c $((tile + 6 - start))
    byte $((part >> 24)) && byte $((part >> 16)) && byte $((part >> 8)) && byte $part
    tail -c +$((tile + 11)) scan.j2k.dcm | head -c $((part - 14))
    printf '\000\000\000\000'
    tail -c +$((tile + part - 3)) scan.j2k.dcm
} >unusual.dcm
run 0 "$TESSERA" compress --json unusual.dcm -o unusual.tsr
grep -q 'cannot be made again: a tile-part has bytes after its packets' "$out" || bad "an unusual stream: $(cat "$out")"
for way in '-o unusual.tsr' '--qp 20 -o unusual.tsr' '--series unusual.tsr'; do
    run 0 "$TESSERA" compress --json -f --samples-only unusual.dcm $way
    grep -q '"lossless":true' "$out" || bad "--samples-only $way: $(cat "$out")"
    run 0 "$TESSERA" cat unusual.tsr && cp "$out" unusual.back.dcm
    "$BIN/tsr_dicom_samples" unusual.back.dcm ours >"$out" && cmp -s ours theirs || bad "--samples-only $way loses samples"
    grep -q '^1.2.840.10008.1.2.1 ' "$out" || bad "--samples-only $way: $(cat "$out")"
done
# What was coded with loss is not decoded, and the reason says why.
sed 's/1\.2\.840\.10008\.1\.2\.4\.90/1.2.840.10008.1.2.4.91/' <scan.j2k.dcm >loses.dcm
cod=$(grep -obUaP '\xff\x52\x00' loses.dcm | head -1)
printf '\000' | dd of=loses.dcm bs=1 seek=$((${cod%%:*} + 13)) conv=notrunc 2>/dev/null
run 0 "$TESSERA" compress --json --samples-only loses.dcm -o loses.tsr
grep -q 'cannot be decoded: it was coded with an irreversible transform' "$out" || bad "a stream with loss: $(cat "$out")"
# OpenJPH ends the process where a header has a size of 0, more levels than steps, or a tile a code that cannot be; or it
# writes to standard error. So it gets no such stream.
start=$(grep -obUaP '\xff\x4f\xff\x51' scan.htj2k.dcm | head -1)
for damage in 43:'\000' 24:'\000\000\000\000' 64:'\006' 60:'\377' tile:'\377\377'; do
    at=${damage%%:*}
    [ "$at" != tile ] || at=$(($(grep -obUaP '\xff\x93' scan.htj2k.dcm | head -1 | cut -d: -f1) - ${start%%:*} + 500))
    cp scan.htj2k.dcm damaged.dcm
    printf "${damage#*:}" | dd of=damaged.dcm bs=1 seek=$((${start%%:*} + at)) conv=notrunc 2>/dev/null
    run 0 "$TESSERA" compress -q -f --samples-only damaged.dcm -o damaged.tsr
    [ ! -s "$err" ] || bad "HTJ2K damaged at $damage reaches OpenJPH: $(cat "$err")"
    run 0 "$TESSERA" decompress -q -f damaged.tsr -o undamaged.dcm
    cmp -s damaged.dcm undamaged.dcm || bad "HTJ2K damaged at $damage does not come back"
done
# What OpenJPH does to the process that decodes costs no more than that stream. Here other programs stand in its place.
mkdir -p aside/tessera
cp "$TESSERA" aside/program
cp "$(find "$(dirname "$TESSERA")/.." -name tessera-dicom.so | head -1)" aside/tessera
for deed in 'kill -SEGV $$' 'exit 0' 'head -c 100 /dev/zero' 'head -c 600 /dev/zero; kill -ABRT $$'; do
    printf '#!/bin/sh\n%s\n' "$deed" >aside/tessera/tessera-htj2k
    chmod +x aside/tessera/tessera-htj2k
    run 0 aside/program compress -f --samples-only scan.htj2k.dcm -o fallen.tsr
    grep -q "OpenJPH end without a result" "$out" || bad "a decoder that does $deed: $(cat "$out")"
    run 0 aside/program decompress -q -f fallen.tsr -o fallen.dcm
    cmp -s scan.htj2k.dcm fallen.dcm || bad "what a decoder did not decode that does $deed does not come back"
done
rm aside/tessera/tessera-htj2k fallen.tsr
run 20 aside/program compress --samples-only scan.htj2k.dcm -o fallen.tsr
[ ! -e fallen.tsr ] || bad "a file was made without the decoder"
run 0 "$TESSERA" info scan.dcm.tsr
grep -q "^  streams" "$out" && bad "info finds streams in a native file"
run 2 "$TESSERA" compress --recode scan.dcm -o x.tsr
finish
