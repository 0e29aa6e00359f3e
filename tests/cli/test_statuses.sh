# Provokes every exit status that this build can give. Each comes with one sentence on stderr and changes nothing.
. "${0%/*}/steps.sh"
mkdir inputs empty set
cp "$DATA/pnm/landscape_grey_8bit.pgm" inputs/a.pgm
cp "$DATA/other/text.txt" inputs/t.txt
cp "$DATA/png/landscape_grey.png" inputs/p.png
cp -R inputs/. set
run 0 "$TESSERA" compress inputs/a.pgm -o a.tsr
run 0 "$TESSERA" compress inputs/t.txt -o t.tsr

# 0: a file that is stored is a success.
run 0 "$TESSERA" compress -q inputs/t.txt -o again.tsr
[ -s "$out" ] || [ -s "$err" ] && bad "-q is not quiet: $(cat "$out" "$err")"
rm again.tsr

# 2: usage.
usage()
{
    picture . >"$WORK/before"
    run 2 "$TESSERA" "$@"
    picture . >"$WORK/after"
    [ -s "$out" ] && [ "$1" != compare ] && bad "usage error on stdout: $*"
    [ -s "$err" ] || bad "no word on: $*"
    cmp -s "$WORK/before" "$WORK/after" || bad "files changed by: $*"
}
one_word() # WORD ARGUMENT...
{
    word=$1
    shift
    usage "$@"
    says "$word"
}
usage
grep -q '^usage: tessera VERB' "$err" || bad "no usage without arguments"
one_word "'squeeze'" squeeze inputs/a.pgm
one_word "'-x'" -x
one_word "''" ''
for verb in compress decompress test info compare; do
    one_word 'no input' $verb
    one_word 'no input' $verb --json
    usage $verb --no-such-option inputs/a.pgm
    grep -q -e "'--no-such-option'" "$err" || bad "the unknown option is not named: $(cat "$err")"
    usage $verb -Z inputs/a.pgm
    grep -q -e "'-Z'" "$err" || bad "the unknown letter is not named: $(cat "$err")"
    one_word 'it is a folder; add -r' $verb inputs
done
for argument in 0 -1 1.5 1025 two '' ' ' 1x nan inf 1e9; do one_word "'$argument'" compress -T "$argument" inputs/a.pgm; done
for argument in 52 -48.125 10.1 x '' ' ' nan inf 1e999 51.0625 10x; do one_word "'$argument'" compress --qp "$argument" inputs/a.pgm; done
one_word '10,20' compress --qp 10,20 inputs/a.pgm
one_word "'60'" compress --qp 60 inputs/a.pgm
one_word "'10,20'" compress --qp 10,20 inputs/a.pgm
one_word "''" compress --qp 10,,20 inputs/a.pgm
one_word "'-1'" compare --seed -1 inputs/a.pgm
one_word "'0'" compare --sample 0 inputs/a.pgm
one_word 'transform' compress --path predict --qp 20 inputs/a.pgm
one_word 'transform' compress --qp 20 --path predict inputs/a.pgm
one_word "'sideways'" compress --path sideways inputs/a.pgm
one_word "'morse'" compress --coder morse inputs/a.pgm
one_word "'maybe'" compress --verify maybe inputs/a.pgm
one_word "'one'" compress --gpu one inputs/a.pgm
one_word "'0.5'" compress --gpu 0.5 inputs/a.pgm
one_word 'twice' compress --gpu 1,0,1 inputs/a.pgm
one_word 'engine cpu' compress --gpu 0 --engine cpu inputs/a.pgm
one_word 'engine cpu' compress --verify cuda --engine cpu inputs/a.pgm
one_word "'much'" compress --gpu-memory much inputs/a.pgm
one_word "'0'" compress --gpu-memory 0 inputs/a.pgm
one_word "'abacus'" compress --engine abacus inputs/a.pgm
one_word 'names the output' compress --series s.tsr inputs/a.pgm -o t.tsr
one_word "efforts are -1 to -9, not '-10'" compress -10 inputs/a.pgm
one_word "no verb 'decompres'; did you mean decompress?" decompres a.tsr
one_word "no verb 'xyzzy'; tessera --help lists" xyzzy a.tsr
one_word 'compress writes a .tsr file, not p.jpg: name it p.jpg.tsr' compress inputs/p.png -o p.jpg
one_word 'restores the original, a png file, and makes no jpg of it: name it p.png' decompress p.png.tsr -o p.jpg
usage decompress -5 a.tsr
for argument in 0.5 201 -40 x '' ' ' nan inf 40.001 40dB; do one_word "'$argument'" compress --psnr "$argument" inputs/a.pgm; done
for argument in 0 -1 x '' ' ' nan inf k :1 1:2 10:1:1 0:1 5kk 0.1x 1e99; do one_word "'$argument'" compress --size "$argument" inputs/a.pgm; done
for argument in -1 1.5 32768 x '' ' ' nan inf; do one_word "'$argument'" compress --max-error "$argument" inputs/a.pgm; done
for two in '--qp 20 --psnr 40' '--psnr 40 --max-error 0' '--size 9k --qp 30' '--max-error 3 --size 2:1' \
    '--psnr 40 --size 10k' '--qp 20 --qp 30' '--quality web --quality web'; do
    # shellcheck disable=SC2086
    one_word 'exclude each other' compress $two inputs/a.pgm
done
one_word 'transform' compress --path predict --psnr 40 inputs/a.pgm
one_word 'transform' compress --size 10:1 --path predict inputs/a.pgm
one_word 'predictive' compress --max-error 2 --path transform inputs/a.pgm
usage compare --psnr 40 inputs/a.pgm
# A size that cannot be reached: by an image, and by a file that is never coded with loss.
refuses 2 'a.pgm cannot be coded in 60 bytes: the least are [0-9]*' "$TESSERA" compress --size 60 inputs/a.pgm -o out.tsr
refuses 2 't.txt is not coded with loss, and takes [0-9]* bytes, not 60' "$TESSERA" compress --size 60 inputs/t.txt -o out.tsr
usage compress -o
usage info --force a.tsr
usage info -T 2 a.tsr
usage decompress --qp 20 a.tsr
# A sentence names the file once.
for verb in decompress test cat info "export --to native"; do
    refuses 20 '^tessera: cannot open missing.tsr: No such file or directory$' "$TESSERA" $verb missing.tsr
done
refuses 20 '^tessera: /dev/null is not a regular file$' "$TESSERA" test /dev/null
for command in "compress - -o x" "test -" "decompress - -o x" "compress -r -o x --files-from -"; do
    "$TESSERA" $command <&- >"$out" 2>"$err"
    [ $? -eq 20 ] && says '^tessera: cannot read stdin: ' || bad "a closed stdin: $command: $(cat "$err")"
done
for option in --manifest --report --log --series; do
    refuses 2 "$option wants the name of a file, and - is none: ./- would be" "$TESSERA" compress inputs/a.pgm $option -
done
refuses 2 '--html wants the name of a file, and - is none' "$TESSERA" compare inputs/a.pgm --html -
refuses 2 '--csv wants the name of a file, and - is none' "$TESSERA" compare inputs/a.pgm --csv -
refuses 2 '--manifest wants the name of a file, not an empty one' "$TESSERA" compress inputs/a.pgm --manifest ""
refuses 2 '-o wants the name of a file, not an empty one' "$TESSERA" compress inputs/a.pgm -o ""
refuses 2 'the name of an input is empty' "$TESSERA" compress inputs/a.pgm ""
refuses 2 'it is a folder; add -r' "$TESSERA" compress inputs -o out.tsr

# 20: an input cannot be read.
refuses 20 'No such file' "$TESSERA" compress missing.pgm
refuses 20 'No such file' "$TESSERA" compress inputs/missing.pgm -o out.tsr
refuses 20 'No such file' "$TESSERA" decompress missing.tsr
refuses 20 'No such file' "$TESSERA" test missing.tsr
refuses 20 'No such file' "$TESSERA" info missing.tsr
refuses 20 'No such file' "$TESSERA" compare missing.pgm
refuses 20 'Not a directory' "$TESSERA" compress inputs/a.pgm/b.pgm -o out.tsr
refuses 20 'not a regular file' "$TESSERA" compress /dev/null -o out.tsr
ln -s nowhere dangling
refuses 20 'No such file' "$TESSERA" compress dangling -o out.tsr
if [ "$(id -u)" -ne 0 ]; then
    cp inputs/a.pgm secret.pgm
    chmod 000 secret.pgm
    run 20 "$TESSERA" compress secret.pgm
    says 'Permission denied'
    rm -f secret.pgm
fi

# 21: not a .tsr file.
for verb in decompress test info; do
    refuses 21 'not a .tsr file' "$TESSERA" $verb inputs/a.pgm
    refuses 21 'not a .tsr file' "$TESSERA" $verb "$DATA/other/empty"
    refuses 21 'not a .tsr file' "$TESSERA" $verb "$DATA/other/one_byte"
done

# 22: no input.
for verb in compress compare; do refuses 22 "no files to $verb here" "$TESSERA" $verb -r empty; done
for verb in decompress test info; do refuses 22 'no .tsr files here: 0 other files' "$TESSERA" $verb -r empty; done
refuses 22 'no .tsr files here: 3 other files' "$TESSERA" test -r inputs
mkdir pipes
mkfifo pipes/pipe
refuses 22 'no files to compress here: 1 link or special file' "$TESSERA" compress -r pipes

# 40: an output cannot be written.
refuses 40 'is not a folder' "$TESSERA" compress inputs/t.txt -o inputs/a.pgm/out.tsr
refuses 40 'is not a folder' "$TESSERA" decompress a.tsr -o inputs/t.txt/out.pgm
refuses 40 'is not a folder' "$TESSERA" compress inputs/a.pgm inputs/t.txt -o t.tsr
refuses 40 'is not a folder' "$TESSERA" compress -r inputs -o t.tsr
[ -d /proc/self ] && refuses 40 '/proc/out.tsr' "$TESSERA" compress inputs/a.pgm -o /proc/out.tsr
long=$(printf '%0300d' 0)
refuses 40 'is too long for this folder; give a shorter name with -o' "$TESSERA" compress inputs/a.pgm -o "$long"
# A full disk: no file may grow over 4 KiB.
full()
{
    (trap '' XFSZ && ulimit -f 8 && exec "$@")
}
refuses 40 'File too large' full "$TESSERA" compress inputs/a.pgm -o out.tsr
refuses 40 'File too large' full "$TESSERA" compress inputs/p.png -o out.tsr
refuses 40 'File too large' full "$TESSERA" decompress a.tsr -o out.pgm
# A closed descriptor is no place for the first file that is opened: what is said would be written into it.
mkdir closed
cp "$DATA"/pnm/*_8bit.pgm "$DATA"/odd/*_8bit.pgm closed
for shut in 40:'>&-' 0:'2>&-' 40:'<&- >&- 2>&-'; do
    rm -rf shut shut.manifest*
    eval "\"$TESSERA\" compress -v -r -o shut --manifest shut.manifest closed ${shut#*:}" >"$out" 2>"$err"
    got=$?
    [ "$got" -eq "${shut%%:*}" ] || bad "with ${shut#*:} the status is $got: $(head -2 "$err")"
    run 0 "$TESSERA" verify -q closed shut
    run 0 "$TESSERA" test -q -r --manifest shut.manifest shut
done
"$TESSERA" compress -q -o shut.tsr - <&- 2>"$err"
[ $? -eq 20 ] && says 'cannot read stdin' || bad "a closed stdin is not status 20"
[ ! -e shut.tsr ] || bad "a closed stdin gives an output"

if [ -c /dev/full ]; then
    for verb in test info; do
        "$TESSERA" $verb -v a.tsr >/dev/full 2>"$err"
        status=$?
        [ $status -eq 40 ] || bad "$verb to a full device: exit status $status"
        says 'standard output'
    done
    for words in --version help 'help compress' 'test --help'; do
        "$TESSERA" $words >/dev/full 2>"$err"
        status=$?
        [ $status -eq 40 ] || bad "$words to a full device: exit status $status"
        says 'standard output'
    done
fi
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked
    chmod 555 locked
    refuses 40 'Permission denied' "$TESSERA" compress inputs/a.pgm -o locked/a.tsr
fi

# 41: the output exists.
refuses 41 'a.tsr exists and is of this file; --update passes over it, -f' "$TESSERA" compress inputs/a.pgm -o a.tsr
refuses 41 't.txt exists, with the size and time of what is in the .tsr; --update' "$TESSERA" decompress t.tsr -o inputs/t.txt
refuses 40 'dangling is a symbolic link that leads nowhere' "$TESSERA" compress inputs/a.pgm -o dangling

# 42: the output is the input.
refuses 42 'the output is the input' "$TESSERA" compress inputs/a.pgm -o inputs/a.pgm
refuses 42 'the output is the input' "$TESSERA" compress -f inputs/a.pgm -o inputs/../inputs/a.pgm
refuses 42 'the output is the input' "$TESSERA" decompress -f a.tsr -o ./a.tsr
ln inputs/a.pgm other_name.pgm
ln -s inputs/a.pgm third_name.pgm
refuses 42 'the output is the input' "$TESSERA" compress -f inputs/a.pgm -o other_name.pgm
refuses 42 'the output is the input' "$TESSERA" compress -f inputs/a.pgm -o third_name.pgm
refuses 42 'the output is the input' "$TESSERA" compress -f third_name.pgm -o inputs/a.pgm
rm other_name.pgm third_name.pgm

# 61: corrupt.
cp a.tsr corrupt.tsr
changes_byte corrupt.tsr $(($(bytes_of a.tsr) / 2))
refuses 61 'tile .* is damaged' "$TESSERA" decompress corrupt.tsr -o out.pgm
refuses 61 'tile .* is damaged' "$TESSERA" test corrupt.tsr
run 0 "$TESSERA" info corrupt.tsr # info does not read the payload
head -c $(($(bytes_of a.tsr) / 2)) a.tsr >cut.tsr
for verb in decompress test info; do
    refuses 61 'the file ends, or is damaged, before its proof' "$TESSERA" $verb cut.tsr
done
head -c 4 a.tsr >cut.tsr
refuses 61 'ends after its signature' "$TESSERA" test cut.tsr
cp a.tsr twice.tsr
changes_byte twice.tsr 10
refuses 61 'the header is damaged; .* decompress still restores' "$TESSERA" test twice.tsr
run 0 "$TESSERA" decompress twice.tsr -o twice.pgm
cmp twice.pgm inputs/a.pgm || bad "a file with a damaged header is not restored"
run 61 "$TESSERA" info twice.tsr
says 'twice.tsr: the header is damaged; what it says was read from its other copy'
grep -q 'DAMAGED *the header' "$out" || bad "info does not tell of the damage"

# 62: a limit. 16383 columns and rows in the header, with right checks.
"$BIN/tsr_sign_again" a.tsr wide.tsr H 0 12 ff7fff7f || bad "cannot patch the header"
for verb in decompress test info; do refuses 62 'frame of 268402689 samples is over the limit' "$TESSERA" $verb wide.tsr; done

# 63: a version, a kind, a restore and a coding that this program does not know.
"$BIN/tsr_sign_again" a.tsr version.tsr H 0 0 05
for verb in decompress test info; do refuses 63 'format version 5 ' "$TESSERA" $verb version.tsr; done
"$BIN/tsr_sign_again" a.tsr version.tsr H 0 0 ff
refuses 63 'format version 255 ' "$TESSERA" test version.tsr
for patch in 1:06 2:05 2:09 3:08; do
    "$BIN/tsr_sign_again" a.tsr version.tsr H 0 "${patch%:*}" "${patch#*:}"
    refuses 63 'known to this program' "$TESSERA" test version.tsr
done

# 70: a GPU is required, and there is none.
export CUDA_VISIBLE_DEVICES= TSR_EMULATE_NO_DEVICE=1 # hides a GPU if there is one
refuses 70 'no CUDA' "$TESSERA" compress --engine cuda inputs/a.pgm -o out.tsr
refuses 70 'no CUDA' "$TESSERA" compress --engine cuda --verify cuda inputs/a.pgm -o out.tsr
refuses 70 'no CUDA' "$TESSERA" compress --gpu 0 inputs/a.pgm -o out.tsr
refuses 70 'no CUDA' "$TESSERA" test --gpu 0 a.tsr
refuses 70 'no CUDA' "$TESSERA" decompress --engine cuda a.tsr -o out.pgm
refuses 70 'no CUDA' "$TESSERA" test --engine cuda a.tsr
unset CUDA_VISIBLE_DEVICES TSR_EMULATE_NO_DEVICE

# 75: some files of a set failed, and the others are done.
refuses 75 'No such file' "$TESSERA" test a.tsr missing.tsr t.tsr
refuses 75 'No such file' "$TESSERA" info a.tsr missing.tsr
refuses 75 'is damaged' "$TESSERA" test a.tsr corrupt.tsr
run 75 "$TESSERA" compress inputs/a.pgm missing.pgm inputs/t.txt -o done
says 'No such file'
[ "$(ls -A done/inputs | tr '\n' ' ')" = 'a.pgm.tsr t.txt.tsr ' ] || bad "done: $(ls -A done)"
run 75 "$TESSERA" compress inputs/a.pgm missing.pgm set -o done2
[ "$(wc -l <"$err")" -eq 2 ] || bad "not a sentence for each of two failures: $(cat "$err")"
# A file with more bytes than its size.
[ ! -s /proc/version ] && [ -r /proc/version ] && refuses 20 "is longer than its size" "$TESSERA" compress /proc/version -o proc.tsr
finish
