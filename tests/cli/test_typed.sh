# Habits and slips: verbs, options and sizes as people type them who know other programs.
. "${0%/*}/steps.sh"
cp "$DATA/other/text.txt" a.txt
cp "$DATA/pnm/ramp_16bit.pgm" r.pgm
mkdir folder
run 0 "$TESSERA" compress -q a.txt

# --- Verbs: what is suggested for a word.
meant() # WANTED WORD...
{
    suggested=$1
    shift
    for word in "$@"; do refuses 2 "^tessera: there is no verb '$word'; did you mean $suggested?$" "$TESSERA" "$word" a.txt; done
}
meant info list ls l show -l --list dump
meant decompress extract x unpack -x -d --decompress uncompress unzip gunzip decompres
meant test -t --test check tset
meant compress pack -z compres comprss
meant verify validate diff verfy
meant cat zcat -dc
meant compare bench -b
meant --version -V -v version --versoin
meant --help -help --hlep
meant 'fusermount3 -u DIR, which ends a mount' umount unmount
refuses 2 "no verb 'list'; did you mean info?" "$TESSERA" help list
for word in xyzzy foo ab ''; do refuses 2 "^tessera: there is no verb '$word'; tessera --help lists the verbs$" "$TESSERA" "$word"; done
refuses 2 "did you mean tessera compress a.txt?" "$TESSERA" a.txt
refuses 2 "did you mean tessera compress -r folder?" "$TESSERA" folder
refuses 2 "did you mean tessera decompress a.txt.tsr?" "$TESSERA" a.txt.tsr
refuses 2 "no verb '-9'; the verb comes before the options, as in tessera compress -9$" "$TESSERA" -9 a.txt

# --- Options: one sentence, with what was meant.
for slip in exlude:exclude treads:threads verfy:verify updte:update recursve:recursive memroy:memory manifset:manifest; do
    refuses 2 "^tessera: compress has no option '--${slip%:*}'; did you mean --${slip#*:}?$" "$TESSERA" compress "--${slip%:*}" x a.txt
done
refuses 2 "has no option '--exlude'; did you mean --exclude?" "$TESSERA" compress --exlude=x a.txt
refuses 2 "has no option '-exclude'; did you mean --exclude?" "$TESSERA" compress -exclude x a.txt
refuses 2 "^tessera: decompress has no option '--psnr', but compress has$" "$TESSERA" decompress --psnr 40 a.txt.tsr
refuses 2 "^tessera: decompress has no option '-5', but compress and compare have$" "$TESSERA" decompress -5 a.txt.tsr
refuses 2 "did you mean --verify, an option of compress?$" "$TESSERA" decompress --verfy cpu a.txt.tsr
refuses 2 "^tessera: compress has no option '-Z'; tessera help compress lists the options$" "$TESSERA" compress -rZ folder
refuses 2 "has no option '--no-such-option'; tessera help" "$TESSERA" compress --no-such-option a.txt
refuses 2 "^tessera: -o wants a value: -o OUT$" "$TESSERA" compress a.txt -o
refuses 2 "^tessera: --exclude wants a value: --exclude GLOB$" "$TESSERA" compress a.txt --exclude
refuses 2 "^tessera: --json takes no value, as '5'$" "$TESSERA" compress --json=5 a.txt
refuses 2 "^tessera: '--re' may be --recursive or --report$" "$TESSERA" compress --re a.txt
for habit in '-c:-o -' '--stdout:-o -' '-k:unless --rm' '-Q:--quality' '-quality:--quality' '--best:-9' '--fast:-1' '-d:tessera decompress' \
    '-t:tessera test' '-l:tessera info' '-j4:-T N' '--delete:--rm' '--output-dir:-o OUT' '-V:--version' '--level:-1 to -9'; do
    refuses 2 "^tessera: compress has no option '.*'; .*${habit#*:}" "$TESSERA" compress "${habit%:*}" a.txt
done
# -q takes no number: a file of that name is an input all the same.
for quiet in '-q 90' '-q90' '-rq 90' '--quiet 90' '-9q 0.5'; do
    # shellcheck disable=SC2086 # words
    refuses 2 "^tessera: -q is quiet and takes no number, as '[0-9.]*'; --psnr DB or --qp N say how much may be lost$" "$TESSERA" compress $quiet r.pgm
done
# A name takes no other one's place: what the first one names would be left out.
refuses 2 "^tessera: --output is given twice: give it once$" "$TESSERA" compress a.txt -o one --output two
refuses 2 "^tessera: --files-from is given twice: give it once$" "$TESSERA" compress --files-from a.txt --files-from r.pgm
refuses 2 "^tessera: --member is given twice: give it once$" "$TESSERA" decompress --member a --member b a.txt.tsr
refuses 2 "to come from stdin" "$TESSERA" compress --files-from - - -o two
# What cannot be opened cannot be taken in a dry run, either.
refuses 20 "cannot open 91: " "$TESSERA" compress -n 91
# Stdout that leads into what is read.
cp a.txt c.txt && run 0 "$TESSERA" compress -q c.txt && cp c.txt.tsr d.tsr
"$TESSERA" cat c.txt.tsr >>c.txt.tsr 2>>"$err"
[ $? -eq 42 ] && cmp c.txt.tsr d.tsr || bad "cat writes into what it reads"
"$TESSERA" compress -q c.txt -o - >>c.txt 2>>"$err"
[ $? -eq 42 ] && cmp a.txt c.txt || bad "compress writes into what it reads"
"$TESSERA" cat c.txt.tsr >>c.txt || bad "cat does not write behind another file"
cp r.pgm 90
run 0 "$TESSERA" compress -q 90
[ -f 90.tsr ] || bad "a file whose name is a number is no input"
refuses 20 "cannot open 91: " "$TESSERA" compress -q -- 91

# --- Sizes: SI and binary units, in capitals or not, with and without a B.
size_of() # SIZE: as the program reads it
{
    "$TESSERA" compress -q -f --memory "$1" -T 1 a.txt 2>&1 | sed -n 's/^tessera: \([0-9]*\) bytes of memory are too few.*/\1/p'
}
for size in 500KB:500000 500kb:500000 64k:64000 64K:64000 1.5M:1500000 1.5mB:1500000 64KiB:65536 64kib:65536 64Ki:65536 1MiB:1048576 1mi:1048576 100:100 100B:100; do
    [ "$(size_of "${size%:*}")" = "${size#*:}" ] || bad "--memory ${size%:*} is $(size_of "${size%:*}") bytes, not ${size#*:}"
done
for size in 4g 4G 4GB 4gb 2GiB 2gi 0.5T 1TiB 4000m; do
    run 0 "$TESSERA" compress -q -f --memory $size --gpu-memory $size a.txt
    run 0 "$TESSERA" compress -q -f --size $size r.pgm
done
for size in k B i 4iB 5kk 0.1x 4GBs 1e99 inf 0x10 0 -1 '' ' ' 9999999T; do
    for option in --memory --gpu-memory; do
        refuses 2 "^tessera: $option wants bytes, as 500k, 1.5M, 4G or 2GiB, not '$size'$" "$TESSERA" compress $option "$size" a.txt
    done
    refuses 2 "^tessera: --size wants bytes, as 20000, 500k, 1.5M, 4G or 2GiB, or a ratio, as 10:1, not '$size'$" "$TESSERA" compress --size "$size" a.txt
    refuses 2 "^tessera: --cache wants bytes, as 500k, 1.5M, 4G or 2GiB, not '$size'$" "$TESSERA" mount --cache "$size" a.txt.tsr no_such_folder
done
run 0 "$TESSERA" compress -f --size 1KB r.pgm -o small.tsr
[ "$(bytes_of small.tsr)" -le 1000 ] || bad "--size 1KB gives $(bytes_of small.tsr) bytes"
finish
