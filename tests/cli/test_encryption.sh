# Encrypted .tsr files: all kinds come back as without encryption, and the reference decoder agrees. Without the key, with
# another one, or changed, nothing does. No key appears in what is said or written.
. "${0%/*}/steps.sh"

head -c 32 /dev/urandom >key
head -c 32 /dev/urandom >other
printf 'correct horse battery staple\n' >words
printf 'wrong horse battery staple\n' >wrong
: >none
if ! "$TESSERA" --version | grep -q libsodium; then
    # A build without libsodium says so, and is complete but for this.
    cp "$DATA/other/text.txt" a
    run 63 "$TESSERA" compress --encrypt key a -o a.tsr
    says "libsodium"
    [ ! -e a.tsr ] || bad "a file is there without libsodium"
    finish
fi

# says_out TEXT: stdout has it.
says_out()
{
    grep -q -e "$1" "$out" || bad "not on stdout: '$1'"
}

# Kinds: each line a file, and how it is compressed.
while read -r name how; do
    case $name in
    "" | \#*) continue ;;
    esac
    cp "$DATA/$name" a && rm -f ./*.tsr b c d
    # shellcheck disable=SC2086 # options are words
    run 0 "$TESSERA" compress -q $how a -o plain.tsr
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -q $how --encrypt key a -o a.tsr
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -q -T 1 $how --encrypt key a -o again.tsr
    cmp -s a.tsr again.tsr && bad "$name: two files with the same bytes"
    size=$(wc -c <plain.tsr) && blocks=$(((size + 8191) / 8192))
    [ "$(wc -c <a.tsr)" = $((80 + size + 16 * blocks)) ] || bad "$name: $(wc -c <a.tsr) bytes encrypted, $size plain"
    run 0 "$TESSERA" decompress -q plain.tsr -o b
    run 0 "$TESSERA" decompress -q --key key a.tsr -o c
    cmp b c || bad "$name, $how: another file comes back"
    run 0 "$TESSERA" test -q --key key a.tsr
    run 0 "$BIN/tsr_reference" --key key a.tsr d
    cmp b d || bad "$name, $how: the reference decoder gives another file"
    run 0 "$BIN/tsr_reference" --key key --check again.tsr
    rm -f c
    run 65 "$TESSERA" decompress -q a.tsr -o c
    [ ! -e c ] || bad "$name: an output without the key"
done <<END
dicom/ct/slice_01.dcm
dicom/ct/slice_01.dcm --quality diagnostic
pnm/ct_12bit.pgm -1
pnm/ct_12bit.pgm --psnr 45 --lossless-rest
pnm/ct_12bit.pgm --psnr 45 --roi 10,10,40,40
png/landscape_rgb.png
png/screen_palette.png
png/long_rgb.png
packed/photo.jpg
dicom/forms/rle_rgb_frames.dcm
dicom/packed/jpeg_lossy.dcm
packed/archive.tar
y4m/420.y4m
other/text.txt
other/empty
END

# Without the key and with other ones, all verbs say so, and write nothing.
cp "$DATA/dicom/ct/slice_01.dcm" a.dcm
rm -f ./*.tsr
run 0 "$TESSERA" compress -q --encrypt key a.dcm -o a.tsr
run 0 "$TESSERA" compress -q --passphrase-file words a.dcm -o w.tsr
for how in "" "--key other" "--passphrase-file words"; do
    for verb in "decompress -o out" "export --to native -o out" test info cat; do
        rm -f out
        # shellcheck disable=SC2086
        run 65 "$TESSERA" $verb $how a.tsr
        [ ! -e out ] || bad "$verb $how: an output"
        case $verb in
        cat | info) [ ! -s "$out" ] || bad "$verb $how: bytes on stdout" ;;
        esac
    done
    # shellcheck disable=SC2086
    run 65 "$TESSERA" verify $how a.dcm a.tsr
done
run 65 "$TESSERA" test --passphrase-file wrong w.tsr
run 65 "$TESSERA" test --key key w.tsr
run 0 "$TESSERA" test -q --passphrase-file words w.tsr
cp w.tsr m.tsr # costs that nobody pays: 1 GiB, and eleven passes
printf '\0\0\20\0' | dd of=m.tsr bs=1 seek=8 conv=notrunc 2>/dev/null
run 62 "$TESSERA" test -T 1 --memory 100M --passphrase-file words m.tsr
says "1048576 KiB"
cp w.tsr m.tsr
printf '\13' | dd of=m.tsr bs=1 seek=5 conv=notrunc 2>/dev/null
run 62 "$TESSERA" test --passphrase-file words m.tsr
says "11 passes"
run 0 "$BIN/tsr_reference" --passphrase-file words w.tsr out
cmp out a.dcm || bad "the reference decoder gives another file for a passphrase"

# Bad keys: one sentence, status 2.
head -c 31 key >short
{ cat key && echo; } >long
for bad_key in none short long words; do
    run 2 "$TESSERA" test --key $bad_key a.tsr
    says "exactly 32"
    rm -f b.tsr
    run 2 "$TESSERA" compress --encrypt $bad_key a.dcm -o b.tsr
    [ ! -e b.tsr ] || bad "$bad_key encrypts"
done
run 20 "$TESSERA" test --key missing a.tsr
run 2 "$TESSERA" test --passphrase-file none w.tsr
run 2 "$TESSERA" test --key key --passphrase-file words a.tsr
run 2 "$TESSERA" compress --encrypt key --passphrase-file words a.dcm -o b.tsr

# TESSERA_KEYFILE; what reads files without encryption stays as it is.
TESSERA_KEYFILE=key run 0 "$TESSERA" test -q a.tsr
TESSERA_KEYFILE=other run 65 "$TESSERA" test -q a.tsr
TESSERA_KEYFILE=other run 0 "$TESSERA" test -q --key key a.tsr
run 0 "$TESSERA" compress -q a.dcm -o plain.tsr
TESSERA_KEYFILE=key run 0 "$TESSERA" test -q plain.tsr
TESSERA_KEYFILE=key run 0 "$TESSERA" compress -q a.dcm -o same.tsr
cmp plain.tsr same.tsr || bad "TESSERA_KEYFILE changes what compress writes"

# Other verbs.
run 0 "$TESSERA" info --key key a.tsr
says_out "encrypted  yes"
run 0 "$TESSERA" info --json --key key a.tsr
[ "$(fields encrypted bytes_out)" = "true${tab}$(wc -c <a.tsr | tr -d ' ')" ] || bad "info: $(fields encrypted bytes_out)"
run 0 "$TESSERA" info --json plain.tsr
grep -q encrypted "$out" && bad "info of a plain file says encrypted"
run 0 "$TESSERA" verify -q --key key a.dcm a.tsr
run 0 "$TESSERA" cat --key key a.tsr
cmp "$out" a.dcm || bad "cat gives another file"
run 0 "$TESSERA" export -q --key key --to native -o n.dcm a.tsr
run 0 "$TESSERA" export -q --to native -o p.dcm plain.tsr
cmp n.dcm p.dcm || bad "export gives another file"
"$TESSERA" compress -q --encrypt key - <a.dcm >piped.tsr || bad "compress in a pipe"
run 0 "$TESSERA" test -q --key key piped.tsr
"$TESSERA" decompress -q --key key - <piped.tsr >piped || bad "decompress in a pipe"
cmp piped a.dcm || bad "another file comes out of the pipe"

# The base alone.
cp "$DATA/pnm/ct_12bit.pgm" b.pgm
run 0 "$TESSERA" compress -q --psnr 45 --lossless-rest --encrypt key b.pgm -o based.tsr
run 0 "$TESSERA" compress -q --psnr 45 --lossless-rest b.pgm -o based_plain.tsr
run 0 "$TESSERA" decompress -q --base --key key based.tsr -o base
run 0 "$TESSERA" decompress -q --base based_plain.tsr -o base_plain
cmp base base_plain || bad "another base comes back"

# A folder: --update takes what is there for current, with the key; says so without it; encrypts what was not.
mkdir in && cp "$DATA"/dicom/ct/slice_0[1-3].dcm in
run 0 "$TESSERA" compress -q -r --encrypt key -o arc in
cp arc/slice_01.dcm.tsr first.tsr
run 0 "$TESSERA" compress -q -r --update --encrypt key -o arc in
cmp -s arc/slice_01.dcm.tsr first.tsr || bad "--update wrote a current file again"
run 75 "$TESSERA" compress -q -r --update -o arc in
[ "$(grep -c "is encrypted" "$err")" -eq 3 ] || bad "--update without the key says: $(cat "$err")"
run 75 "$TESSERA" compress -q -r --update --encrypt other -o arc in
cmp -s arc/slice_01.dcm.tsr first.tsr || bad "--update without the key changed a file"
run 0 "$TESSERA" compress -q -r -o open in
run 0 "$TESSERA" compress -q -r --update --encrypt key -o open in
for file in $(find open -name '*.tsr'); do run 65 "$TESSERA" test "$file"; done
run 0 "$TESSERA" decompress -q -r --key key -o back arc
diff -r in back || bad "another folder comes back"
run 75 "$TESSERA" decompress -q -r -o not arc
[ -z "$(find not -type f 2>/dev/null)" ] || bad "files without the key"

# A series.
run 0 "$TESSERA" compress -q -r --series s.tsr --encrypt key in
run 65 "$TESSERA" info s.tsr
grep -q slice_01 s.tsr && bad "a member's name can be read"
run 0 "$TESSERA" info --key key s.tsr
says_out "slice_01"
run 0 "$TESSERA" test -q --key key s.tsr
run 0 "$TESSERA" decompress -q --key key -o series s.tsr
[ "$(find series -name '*.dcm' | wc -l)" -eq 3 ] || bad "the series has not come back"
run 0 "$TESSERA" cat --key key "s.tsr::$("$TESSERA" info --key key --json s.tsr | sed -n 's/.*"member":"\([^"]*slice_02[^"]*\)".*/\1/p')"
cmp "$out" in/slice_02.dcm || bad "another member comes back"
run 0 "$BIN/tsr_reference" --key key --check s.tsr
cp s.tsr m.tsr # a byte of another member: the whole file is checked first
changes_byte m.tsr $(($(bytes_of s.tsr) / 2))
first=$("$TESSERA" info --key key --json s.tsr | sed -n 's/.*"member":"\([^"]*slice_01[^"]*\)".*/\1/p')
run 61 "$TESSERA" cat --key key "m.tsr::$first"
[ ! -s "$out" ] || bad "a member of a changed file is given"

# Changed, cut, and longer files: refused, without an output.
size=$(wc -c <a.tsr)
for at in 0 4 5 20 33 50 57 70 80 81 $((size / 2)) $((size - 1)); do
    cp a.tsr m.tsr && rm -f out
    byte=$(od -An -tu1 -j$at -N1 a.tsr)
    # shellcheck disable=SC2059
    printf "\\$(printf %o $((byte ^ 16)))" | dd of=m.tsr bs=1 seek="$at" conv=notrunc 2>/dev/null
    "$TESSERA" decompress -q --key key m.tsr -o out 2>"$err" && bad "byte $at: restored"
    "$TESSERA" test -q --key key m.tsr 2>"$err" && bad "byte $at: good"
    [ ! -e out ] || bad "byte $at: an output"
done
head -c $((size - 1)) a.tsr >m.tsr
run 61 "$TESSERA" test -q --key key m.tsr
{ cat a.tsr && echo; } >m.tsr
run 61 "$TESSERA" test -q --key key m.tsr

# What is left of a changed and of a cut file: the tile whose blocks are authentic, here the lower half, and nothing of others.
picture=$DATA/pnm/landscape_8bit.ppm half=$((384 * 128 * 3))
run 0 "$TESSERA" compress -q --encrypt key "$picture" -o p.tsr
size=$(bytes_of p.tsr)
head -c $((size / 3)) p.tsr >m.tsr && printf 'X' >>m.tsr && tail -c +$((size / 3 + 2)) p.tsr >>m.tsr
run 65 "$TESSERA" decompress -q --salvage m.tsr -o left.ppm
run 65 "$TESSERA" decompress -q --salvage --key other m.tsr -o left.ppm
[ ! -e left.ppm ] || bad "something is left without the key"
run 76 "$TESSERA" decompress -q --salvage --key key m.tsr -o left.ppm
tail -c $half left.ppm >ours && tail -c $half "$picture" | cmp - ours || bad "the lower half is another one"
[ "$(tail -c +$(($(bytes_of left.ppm) - 2 * half + 1)) left.ppm | head -c $half | tr -d '\0' | wc -c)" -eq 0 ] || bad "a tile that is not authentic is given"
head -c $((size * 2 / 3)) p.tsr >m.tsr
run 76 "$TESSERA" decompress -qf --salvage --key key m.tsr -o left.ppm
head -c $(($(bytes_of left.ppm) - half)) left.ppm >ours && head -c $(($(bytes_of left.ppm) - half)) "$picture" | cmp - ours || bad "the upper half is another one"

# The key is none of a run's files, by any of its links: it is neither archived nor removed, and no output overwrites it.
cp "$DATA/pnm/chest_10bit.pgm" a.pgm
mkdir kept && cp a.pgm kept && cp key kept/key && ln kept/key kept/link
run 75 "$TESSERA" compress -q -r --rm --encrypt kept/link kept -o archive
grep -q 'it is the key of this run' "$err" && [ "$(ls kept | tr '\n' ' ')" = 'key link ' ] && cmp key kept/key || bad "the key: $(cat "$err"; ls kept)"
[ "$(ls archive)" = a.pgm.tsr ] || bad "archived: $(ls archive)"
TESSERA_KEYFILE=kept/key run 75 "$TESSERA" compress -q -r --rm --update kept -o archive
cmp key kept/key || bad "--update takes the key"
printf 'words\n' >kept/words
run 75 "$TESSERA" compress -q -r --rm --passphrase-file kept/words kept -o by_words
[ -f kept/words ] || bad "the passphrase is removed"
for output in "a.pgm -o key" "--series key a.pgm" "a.pgm -o r.tsr --report key" "a.pgm -o r.tsr --manifest key"; do
    # shellcheck disable=SC2086 # words
    "$TESSERA" compress -q -f --encrypt key $output 2>"$err" && bad "$output: status 0"
    [ "$(bytes_of key)" -eq 32 ] || bad "$output overwrites the key"
done
cp key left.mask.pgm && run 42 "$TESSERA" decompress -qf --salvage --key left.mask.pgm p.tsr -o left.ppm
[ "$(bytes_of left.mask.pgm)" -eq 32 ] || bad "a mask overwrites the key"

# An encrypted file is not replaced by one that is not, unless -f asks for it.
mkdir night && cp a.pgm night && run 0 "$TESSERA" compress -q -r --encrypt key night -o archive2 && cp archive2/a.pgm.tsr first.tsr
echo >>night/a.pgm
TESSERA_KEYFILE=key run 65 "$TESSERA" compress -q -r --update night -o archive2
says "is encrypted, and what would replace it is not"
cmp first.tsr archive2/a.pgm.tsr || bad "an encrypted file is replaced"
TESSERA_KEYFILE=key run 0 "$TESSERA" compress -q -r --update -f night -o archive2
run 0 "$TESSERA" test -q archive2/a.pgm.tsr

# With --key a file that is not encrypted is refused, with the variable it is read.
for verb in test decompress cat "export --to native" "verify a.pgm"; do
    # shellcheck disable=SC2086 # words
    run 65 "$TESSERA" $verb --key key archive2/a.pgm.tsr
    says "is not encrypted"
done
TESSERA_KEYFILE=key run 0 "$TESSERA" test -q archive2/a.pgm.tsr
run 0 "$TESSERA" info --key key archive2/a.pgm.tsr

# A head that asks for more work than 16 times our own is refused before any of it is done.
run 0 "$TESSERA" compress -qf --passphrase-file words a.pgm -o w.tsr
{ head -c 5 w.tsr && printf '\012\000\000\000\000\020\000' && tail -c +13 w.tsr; } >m.tsr
run 62 "$TESSERA" test -q --passphrase-file words m.tsr

# A size is that of the file, head and tags of the encryption too.
for size in 5000 30:1; do
    run 0 "$TESSERA" compress -q -f --size $size --encrypt key a.pgm -o size.tsr
    run 0 "$TESSERA" test -q --key key size.tsr
    most=5000
    [ $size = 5000 ] || most=$(($(wc -c <a.pgm) / 30))
    [ "$(wc -c <size.tsr)" -le $most ] || bad "--size $size: $(wc -c <size.tsr) bytes"
done

# No key in what is said and written, in any form that it was given in.
key_hex=$(od -An -v -tx1 key | tr -d ' \n')
run 0 "$TESSERA" compress -v --json --log log -f --encrypt key a.dcm -o l.tsr
cat "$out" "$err" log l.tsr >all
if od -An -v -tx1 all | tr -d ' \n' | grep -q "$key_hex" || grep -q "$key_hex" all; then bad "the key is written"; fi
finish
