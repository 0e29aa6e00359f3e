# Sets: what a run over many files says, leaves out, goes on with and removes.
. "${0%/*}/steps.sh"
grey=$DATA/pnm/landscape_grey_8bit.pgm text=$DATA/other/text.txt png=$DATA/png/landscape_rgb.png dicom=$DATA/dicom/ct/slice_01.dcm
tsr=$TESSERA

# --- What is wrong is named, once.
mkdir set && cp "$grey" set/a.pgm && cp "$dicom" set/b.dcm && cp "$text" set/c.txt
run 0 "$tsr" compress -q -r set -o made
cp -R made broken && changes_byte broken/a.pgm.tsr $(($(bytes_of made/a.pgm.tsr) / 2))
for verb in 'test -r broken' 'decompress -r broken -o back'; do
    # shellcheck disable=SC2086
    run 75 "$tsr" $verb
    says '^tessera: broken/a.pgm.tsr: .*damaged'
    [ "$(grep -o 'byte [0-9]*' "$err" | wc -l)" -le 1 ] || bad "$verb says the offset twice: $(cat "$err")"
done
rm -rf back broken

# --- Links, FIFOs and empty folders: counted, listed, never part of "all".
cp -R set odd && mkdir -p odd/empty/deeper odd/folder && mkfifo odd/pipe && ln -s a.pgm odd/link && ln -s nowhere odd/dangling &&
    ln -s .. odd/folder/loop && cp "$text" odd/folder/t
run 0 "$tsr" compress -r odd -o odd_made
grep -q 'all proven' "$out" && bad "all, though links were left out: $(cat "$out")"
[ "$(tail -n 1 "$out")" = 'PASS, 4 names were not taken' ] || bad "links and FIFOs are not counted: $(cat "$out")"
for line in '3 names not taken: symbolic link (odd/dangling, odd/folder/loop, odd/link)' '1 name not taken: FIFO (odd/pipe)'; do
    grep -q "^  $line\$" "$out" || bad "not listed: $line: $(cat "$out")"
done
[ -d odd_made/empty/deeper ] || bad "an empty folder is not mirrored"
run 0 "$tsr" decompress -q -r odd_made -o odd_back
[ -d odd_back/empty/deeper ] || bad "an empty folder does not come back"
run 0 "$tsr" compress -r --json -f odd -o odd_made
[ "$(fields file status | grep -c 'skipped$')" -eq 4 ] || bad "--json: $(fields file status)"
[ "$(fields --summary skipped files)" = "4${tab}4" ] || bad "--json: $(tail -n 1 "$out")"
run 0 "$tsr" compress -r --dereference odd -o odd_links
[ -f odd_links/link.tsr ] || bad "--dereference does not follow a link"
grep -q 'symbolic link to a folder that it lies in (odd/folder/loop)' "$out" || bad "a loop is not found: $(cat "$out")"
grep -q 'symbolic link to nothing (odd/dangling)' "$out" || bad "a link to nothing: $(cat "$out")"
rm -rf odd odd_made odd_back odd_links
run 0 "$tsr" compress -r set -o all
grep -q 'all proven, read back .*; what comes back: 3 the same file$' "$out" || bad "a whole set: $(cat "$out")"
rm -r all

# --- Progress: nothing without a terminal, one line on one, no escapes on a dumb one.
run 0 "$tsr" compress -r set -o all
[ -s "$err" ] && bad "progress without a terminal: $(cat "$err")"
run 0 "$tsr" compress -r -f --progress json set -o all
grep -q '"progress":true' "$err" || bad "--progress json: $(cat "$err")"
"$BIN/tsr_read_json" files all_files <"$err" >/dev/null || bad "progress is no JSON: $(cat "$err")"
if can terminal; then
    TERM=xterm script -qec "$tsr compress -q -r -f set -o all" /dev/null >"$WORK/screen" </dev/null
    [ -s "$WORK/screen" ] && bad "-q shows progress"
    TERM=xterm script -qec "$tsr compress -r -f set -o all" /dev/null >"$WORK/screen" </dev/null
    grep -q 'files, .*MB/s' "$WORK/screen" || bad "no progress on a terminal: $(cat -v "$WORK/screen")"
    TERM=dumb script -qec "$tsr compress -r -f set -o all" /dev/null >"$WORK/screen" </dev/null
    grep -q "$(printf '\033')" "$WORK/screen" && bad "escapes on a dumb terminal"
    TERM=xterm script -qec "$tsr compress -r -f --progress none set -o all" /dev/null >"$WORK/screen" </dev/null
    grep -q 'MB/s' "$WORK/screen" && bad "--progress none shows progress"
fi
rm -r all

# --- A second run: three that exist are named, the others counted. --update takes what has changed.
mkdir many
for i in 1 2 3 4 5 6; do cp "$text" many/$i; done
run 0 "$tsr" compress -q -r many -o again
run 75 "$tsr" compress -q -r many -o again
[ "$(grep -c 'exists and is of this file; --update passes over it, -f makes it again$' "$err")" -eq 3 ] || bad "not three are named: $(cat "$err")"
grep -q '^tessera: 3 more outputs exist; --update passes over them, -f makes them again$' "$err" || bad "the others: $(cat "$err")"
# So are those of any other cause that the system names, with --json as without. -v and the log have all.
cut() # COUNT-OF-NAMED PATTERN REST: what stderr has
{
    [ "$(grep -c "$2" "$err")" -eq "$1" ] && grep -q "^tessera: $3\$" "$err" && [ "$(wc -l <"$err")" -eq $(($1 + 1)) ] || bad "not cut to $1 and '$3': $(cat "$err")"
}
exist='exists and is of this file' gone='cannot open gone[0-9]: No such file or directory$'
run 75 "$tsr" compress --json -r many -o again && cut 3 "$exist" '3 more outputs exist; --update passes over them, -f makes them again'
[ "$(grep -c "\"error\":\"[^\"]*$exist" "$out")" -eq 6 ] && grep -q '"failed":6' "$out" || bad "--json lacks failures: $(cat "$out")"
for i in 1 2 3 4 5 6 7; do echo gone$i; done >names
for json in --json -q; do
    run 75 "$tsr" compress $json --files-from names -o never --log log.$json && cut 3 "$gone" '4 more files: cannot read: No such file or directory'
    [ "$(grep -c "tessera: $gone" log.$json)" -eq 7 ] || bad "the log lacks failures: $(cat log.$json)"
    run 75 "$tsr" compress $json -v --files-from names -o never
    [ "$(grep -c "$gone" "$err")" -eq 7 ] && [ "$(wc -l <"$err")" -eq 7 ] || bad "-v cuts: $(cat "$err")"
done
mkdir links && for i in 1 2 3 4; do ln -s nowhere links/$i.tsr; done
run 75 "$tsr" compress -q -r many -o links && cut 3 'is a symbolic link' '1 more file: cannot write: Too many levels of symbolic links'
rm -r names log.* links
echo changed >many/3
picture again >"$WORK/before"
run 0 "$tsr" compress -r --update many -o again
grep -q '^1 file, ' "$out" && grep -q '5 files done before' "$out" || bad "--update says: $(cat "$out")"
run 0 "$tsr" decompress -q -r again -o again_back
diff -r many again_back || bad "--update has not taken the change"
picture again | diff "$WORK/before" - | grep -c '^[<>].* f ' >"$WORK/changes"
[ "$(cat "$WORK/changes")" -eq 2 ] || bad "--update touched others"
# The same size at another time is a change; with =hash the bytes decide. A damaged .tsr is made again, and one that is
# lossy where no loss is asked for. What is not a .tsr stays.
touch -d '2001-01-01' many/1
run 0 "$tsr" compress -r --json --update=hash many -o again
[ "$(fields --summary current files)" = "6${tab}6" ] || bad "--update=hash: $(fields --summary current files)"
run 0 "$tsr" compress -r --json --update many -o again
[ "$(fields --summary current files)" = "5${tab}6" ] || bad "--update by time: $(fields --summary current files)"
printf 'x' | dd of=many/2 bs=1 seek=5 conv=notrunc 2>/dev/null && touch -r again/2.tsr many/2
run 0 "$tsr" compress -r --json --update=hash many -o again
[ "$(fields file status | grep -v current)" = "many/2${tab}ok" ] || bad "--update=hash misses a change: $(fields file status)"
truncate -s -3 again/4.tsr
run 0 "$tsr" compress -r --json --update many -o again
[ "$(fields file status | grep -v current)" = "many/4${tab}ok" ] || bad "--update leaves a cut .tsr: $(fields file status)"
run 0 "$tsr" compress -q --qp 30 -r set -o lossy
run 0 "$tsr" compress -r --json --update set -o lossy
[ "$(fields file status | grep -v current | tr '\t\n' '- ')" = 'set/a.pgm-ok set/b.dcm-ok ' ] || bad "a lossy .tsr stands for a lossless one: $(fields file status)"
echo 'not a .tsr' >again/5.tsr
run 75 "$tsr" compress -q -r --update many -o again
says 'again/5.tsr exists and is not a .tsr of one file: rename it, or name another output with -o'
[ "$(cat again/5.tsr)" = 'not a .tsr' ] || bad "--update has overwritten a foreign file"
rm -rf many again again_back lossy

# --- What was proven is what is said: same file, same samples, loss by depth.
mkdir kinds && cp "$grey" "$DATA/pnm/ramp_16bit.pgm" kinds
run 0 "$tsr" compress -q -r --max-error 2 kinds -o kinds_made
run 0 "$tsr" compress -f -r --max-error 2 kinds -o kinds_made
grep -q 'what comes back: 2 lossy' "$out" || bad "loss is not said: $(cat "$out")"
[ "$(grep -c 'lossy of [0-9]* bits: largest error [0-9]*, PSNR at least [0-9.]* dB' "$out")" -eq 2 ] || bad "depths are pooled: $(cat "$out")"
run 0 "$tsr" compress -f "$png" -o p.tsr
grep -q 'what comes back: 1 the same file$' "$out" || bad "a PNG: $(cat "$out")"
run 0 "$tsr" compress -f --qp 20 "$png" -o p.tsr
grep -q 'what comes back: 1 lossy' "$out" || bad "a PNG with loss: $(cat "$out")"
run 0 "$tsr" compress -f -v "$text" -o t.tsr
grep -q 'stored: it is no PNG' "$out" && grep -q 'the same file$' "$out" || bad "a file that is stored: $(cat "$out")"
rm -rf kinds kinds_made p.tsr t.tsr

# --- Pipes, both ways, with verification.
for file in "$grey" "$dicom" "$text"; do
    "$tsr" compress - <"$file" >piped.tsr 2>"$err" || bad "compress - < $file: $(cat "$err")"
    grep -q 'all proven' "$err" || bad "nothing is said of the proof: $(cat "$err")"
    "$tsr" decompress - <piped.tsr 2>/dev/null | cmp - "$file" || bad "decompress -: $file"
    cat "$file" | "$tsr" compress -q - -o - | "$tsr" decompress -q - -o - | cmp - "$file" || bad "through two pipes: $file"
    "$tsr" test -q - <piped.tsr || bad "test -"
    can stdin || continue
    "$tsr" compress -q -f /dev/stdin -o piped.tsr <"$file" && "$tsr" decompress -q piped.tsr -o - | cmp - "$file" || bad "/dev/stdin: $file"
    cat "$file" | "$tsr" compress -q -f /dev/stdin -o piped.tsr && "$tsr" decompress -q piped.tsr -o - | cmp - "$file" || bad "a pipe at /dev/stdin: $file"
done
mkfifo fifo && { cat "$grey" >fifo & } && run 0 "$tsr" compress -q -f fifo -o piped.tsr
wait && run 0 "$tsr" decompress -q -f piped.tsr -o back && cmp "$grey" back || bad "a FIFO as input"
"$tsr" compress -q - <"$grey" 2>"$err" >/dev/full
[ $? -eq 40 ] && says 'cannot write' || bad "a full device: $(cat "$err")"
# The folder of temporary files is named in the same words wherever one is needed.
mkdir tmp && cp piped.tsr tmp.tsr
for command in "cat tmp.tsr" "decompress tmp.tsr -o -" "compress -"; do
    TMPDIR=$WORK/box/none "$tsr" $command <"$grey" >/dev/null 2>"$err"
    [ $? -eq 40 ] && says "cannot create a temporary file in $WORK/box/none: No such file or directory; set TMPDIR to another$" ||
        bad "without a folder: $command: $(cat "$err")"
    (trap '' XFSZ && ulimit -f 1 && TMPDIR=$WORK/box/tmp exec "$tsr" $command) <"$grey" 2>&1 >/dev/null | cat >"$err"
    says "cannot write a temporary file in $WORK/box/tmp: File too large; set TMPDIR to another$"
done
refuses 2 'stdout, as -o - does' "$tsr" compress --json "$grey" -o -
refuses 2 'takes one file' "$tsr" compress "$grey" "$text" -o -
head -c 300 piped.tsr | "$tsr" decompress - >cut 2>"$err"
[ $? -eq 61 ] && [ ! -s cut ] || bad "a cut .tsr through a pipe: $(bytes_of cut) bytes, $(cat "$err")"
rm -f fifo piped.tsr back cut
# Where the reader of a pipe has gone, the work goes on, and the status says that the results went nowhere.
"$tsr" compress -q --json -r set -o closed >closed.json && mkfifo fifo && exec 3<>fifo 4>fifo 3<&-
for command in 'compress -v -r -f set -o closed' 'compress --json -r -f set -o closed' 'compress -r -f set --series closed.tsr' \
    'compress --json -r -n set -o other' 'decompress --json -r closed -o reopened' 'test closed.tsr' 'test --json -r closed' \
    'verify -v set closed' 'info -r closed' 'info --json -r closed' 'summary closed.json' 'compare -r set' \
    'test --json -r closed --log closed.log'; do
    # shellcheck disable=SC2086
    "$tsr" $command >&4 2>"$err"
    [ $? -eq 40 ] || bad "$command to a pipe without a reader is no status 40: $(cat "$err")"
    sed -i '/^tessera: compare: .* on an idle machine$/d' "$err" # it tells that before it starts
    says '^tessera: cannot write to standard output$'
done
"$tsr" test closed.tsr missing.tsr >&4 2>"$err"
[ $? -eq 75 ] || bad "a failure and a pipe without a reader: $(cat "$err")"
exec 4>&-
[ "$(find closed reopened -type f | wc -l)" -eq 6 ] && "$tsr" test -q closed.tsr || bad "the work did not go on: $(find closed reopened)"
rm -r closed reopened closed.* fifo

# --- .tsr files in a tree are not compressed again; names are never printed raw.
run 0 "$tsr" compress -q -r set -o tree
run 0 "$tsr" compress -r set tree -o twice
[ -z "$(find twice -name '*.tsr.tsr')" ] && grep -q '3 .tsr files left as they are' "$out" || bad ".tsr.tsr: $(cat "$out")"
rm -r tree twice
# Those in the places of outputs are not left as they are: -f replaces them, whatever they hold, --update looks at them.
mkdir places && cp "$png" places/x.png && echo 'no .tsr' >places/x.png.tsr && echo 'of nothing here' >places/y.tsr
run 0 "$tsr" compress -r -f places
grep -q '^  1 .tsr file left as they are' "$out" && run 0 "$tsr" test -q places/x.png.tsr && [ "$(cat places/y.tsr)" = 'of nothing here' ] || bad "-f and .tsr files: $(cat "$out")"
for options in --update -f '-f -o places' '-f -o ./places/../places' "-f -o $WORK/box/places"; do
    # shellcheck disable=SC2086
    run 0 "$tsr" compress -r --json $options places
    [ "$(fields --summary skipped_tsr)" = 1 ] || bad "$options: .tsr files left: $(fields --summary skipped_tsr)"
done
rm places/y.tsr
for options in --update -f '-f -o places' '-f --dry-run'; do
    # shellcheck disable=SC2086
    run 0 "$tsr" compress -r $options places
    grep -q 'left as they are' "$out" && bad "$options: no .tsr is left as it is: $(cat "$out")"
done
rm -r places
mkdir names && cp "$text" "names/new
line"
run 0 "$tsr" compress -v -r names -o names_made
grep -q '^names/new\\nline -> ' "$out" || bad "a newline is printed raw: $(cat "$out")"
rm -r names names_made

# --- A full disk: one sentence, what is done stays.
mkdir large && for i in 1 2 3 4 5 6 7 8; do head -c 40000 "$DATA/other/random.bin" >large/$i; cat "$dicom" >>large/$i; done
if [ "$(id -u)" -eq 0 ] && can proc && mkdir small && mount -t tmpfs -o size=200k none small 2>/dev/null; then
    run 40 "$tsr" compress -q -T 2 -r large -o small # more threads would have begun all files
    grep -q '^tessera: the disk is full: [1-9][0-9]* of 8 files are done, [1-9][0-9]* were not begun; free some space' "$err" || bad "a full disk: $(cat "$err")"
    [ "$(wc -l <"$err")" -le 2 ] || bad "an error for each file: $(cat "$err")"
    run 0 "$tsr" test -q -r small
    umount small
fi
rm -rf large small

# --- Which files: lists, globs, shards, samples, --dry-run.
mkdir -p pick/sub && cp "$grey" pick/a.pgm && cp "$text" pick/b.txt && cp "$text" pick/sub/c.txt && cp "$grey" pick/sub/d.pgm
run 0 "$tsr" compress -q -r --include '*/' --include '*.pgm' --exclude '*' pick -o p1
[ "$(cd p1 && find . -type f | sort | tr '\n' ' ')" = './a.pgm.tsr ./sub/d.pgm.tsr ' ] || bad "--include: $(find p1)"
run 0 "$tsr" compress -q -r --exclude sub/ pick -o p2
[ "$(cd p2 && find . -type f | sort | tr '\n' ' ')" = './a.pgm.tsr ./b.txt.tsr ' ] || bad "--exclude of a folder: $(find p2)"
run 0 "$tsr" compress -q -r --exclude '/sub/*.txt' pick -o p3
[ "$(find p3 -type f | wc -l)" -eq 3 ] || bad "--exclude from the root: $(find p3)"
printf 'pick/a.pgm\npick/sub/c.txt\n' >list
run 0 "$tsr" compress -q --files-from list -o p4
[ "$(cd p4 && find . -type f | sort | tr '\n' ' ')" = './pick/a.pgm.tsr ./pick/sub/c.txt.tsr ' ] || bad "--files-from: $(find p4)"
find pick -type f -print0 >list0
"$tsr" compress -q -0 --files-from - -o p5 <list0 || bad "--files-from - with -0"
[ "$(find p5 -type f | wc -l)" -eq 4 ] || bad "-0: $(find p5)"
run 0 "$tsr" compress -r --dry-run pick -o p6
grep -q '^4 files to compress, ' "$out" && grep -q 'about [0-9]* bytes' "$out" && [ ! -e p6 ] || bad "--dry-run: $(cat "$out")"
for i in 1 2 3; do run 0 "$tsr" compress -q -r --shard $i/3 pick -o p7; done
[ "$(find p7 -type f | wc -l)" -eq 4 ] || bad "--shard: $(find p7)"
rm -r p1 p2 p3 p4 p5 p7
for i in 1 2; do "$tsr" compress --json --shard $i/2 --files-from list -o p8 >p8.$i.json || bad "--shard $i/2"; done
run 0 "$tsr" summary p8.1.json p8.2.json
grep -q '^2 files done' "$out" && grep -q 'every file of the set is done' "$out" || bad "summary: $(cat "$out")"
run 75 "$tsr" summary p8.1.json
grep -q 'shard 2 of 2 has not come to its end' "$out" || bad "a missing shard: $(cat "$out")"
run 75 "$tsr" summary p8.1.json --files-from list
[ "$(grep -c 'not reported: pick/' "$out")" -eq 1 ] || bad "a file that no shard reports: $(cat "$out")"
head -n 1 p8.2.json >cut.json
run 75 "$tsr" summary p8.1.json cut.json
[ "$(grep -c 'not reported: pick/' "$out")" -eq 1 ] || bad "a file of a killed shard: $(cat "$out")"
for environment in 'SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_COUNT=3 SLURM_PROCID=0 SLURM_NTASKS=1' \
    'OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3' 'PMI_RANK=1 PMI_SIZE=3' 'SLURM_PROCID=1 SLURM_NTASKS=3'; do
    # shellcheck disable=SC2086
    env -u OMPI_COMM_WORLD_RANK $environment "$tsr" compress -r --json --shard=auto pick -o p9 >"$out" 2>"$err" || bad "--shard=auto: $(cat "$err")"
    [ "$(fields --summary shard shards)" = "2${tab}3" ] || bad "$environment: $(fields --summary shard shards)"
    rm -rf p9
done
run 2 env -u SLURM_ARRAY_TASK_ID "$tsr" compress -r --shard=auto pick -o p9
says 'neither Slurm nor MPI has numbered this process'
# Without --shard the environment changes nothing.
SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_COUNT=9 "$tsr" compress -q -r pick -o p9
[ "$(find p9 -type f | wc -l)" -eq 4 ] || bad "the environment chooses files without --shard"
run 0 "$tsr" test --sample 50% -r p9
grep -q '^2 files tested' "$out" && grep -q 'a sample: 2 of 4 files' "$out" || bad "--sample: $(cat "$out")"

# --- verify, manifests.
run 0 "$tsr" verify pick p9
grep -q '^4 files compared' "$out" && grep -q 'all proven; what comes back: 4 the same file' "$out" || bad "verify: $(cat "$out")"
cp "$png" pick/e.png && run 0 "$tsr" compress -q --update -r pick -o p9 && run 0 "$tsr" verify pick p9
grep -q 'what comes back: 5 the same file' "$out" || bad "verify of a PNG: $(cat "$out")"
run 0 "$tsr" compress -q -r --series p9.tsr pick && run 0 "$tsr" verify pick p9.tsr
if [ "$(wc -l <"$err")" -eq 0 ] && "$tsr" compress -q -f --manifest m.txt "$text" -o t.tsr 2>/dev/null; then
    rm -f m.txt t.tsr
    run 0 "$tsr" compress -q -r -f --manifest m.txt pick -o p9
    (cd pick && sha256sum --quiet -c ../m.txt) || bad "sha256sum does not take the manifest"
    run 0 "$tsr" test -q --manifest m.txt -r p9
    refuses 41 'list exists, and may be all that is known of its originals: name another manifest' "$tsr" compress -q -r --manifest list pick -o p9b
    # Originals that are removed stay in the manifest, also where a later run does not see them.
    cp -Rp pick far && cp -Rp p9 far_made && run 0 "$tsr" compress -q -r --rm --update --manifest far.txt far -o far_made
    cp "$text" far/new && run 0 "$tsr" compress -q -r --rm --update --manifest far.txt far -o far_made
    grep -v '^# \(bytes\|complete\)\|  new$' far.txt >"$WORK/far"
    run 22 "$tsr" compress -q -r --rm --update --manifest far.txt far -o far_made
    says 'no files to compress here; the folder holds no file'
    grep -v '^# \(bytes\|complete\)' m.txt | diff "$WORK/far" - || bad "the manifest has forgotten what was removed"
    run 0 "$tsr" test -q --manifest far.txt -r far_made
    # A manifest among the originals is not one of them.
    cp "$text" far/new && run 0 "$tsr" compress -q -r --manifest far/far.txt far -o far_again
    run 0 "$tsr" compress -q -r -f --manifest far/far.txt far -o far_again && [ ! -e far_again/far.txt.tsr ] && [ -s far/far.txt ] ||
        bad "the manifest is compressed"
    rm -rf far far_made far_again far.txt
    mv p9/b.txt.tsr hidden && run 75 "$tsr" test -q --manifest m.txt -r p9
    says 'b.txt: the manifest names it, and there is no .tsr of it'
    cp p9/a.pgm.tsr p9/b.txt.tsr && run 75 "$tsr" test -q --manifest m.txt -r p9
    says 'b.txt.tsr is a .tsr of another file than the manifest'
    mv hidden p9/b.txt.tsr
fi
mv p9/sub/c.txt.tsr hidden && run 75 "$tsr" verify pick p9
says 'pick/sub/c.txt: the archive has no .tsr of it'
mv hidden p9/sub/extra.tsr && run 75 "$tsr" verify pick p9
grep -q 'p9/sub/extra.tsr: there is no original of it' "$err" || bad "verify: $(cat "$err")"
mkdir lots && for i in $(seq 70); do echo $i >lots/$i; done && run 0 "$tsr" compress -q -r lots -o lots_made && rm lots_made/1.tsr
run 75 "$tsr" verify lots lots_made
says 'lots/1: the archive has no .tsr of it'
run 0 "$tsr" compress -q -r --series lots.tsr lots
refuses 2 'takes one file, and lots.tsr is a series: name one with --member' "$tsr" decompress lots.tsr -o -
"$tsr" decompress -q lots.tsr --member 7 -o - | cmp - lots/7 || bad "a member to stdout"
rm -rf lots lots_made lots.tsr
mv p9/sub/extra.tsr p9/sub/c.txt.tsr && printf 'X' | dd of=pick/b.txt bs=1 seek=7 conv=notrunc 2>/dev/null
run 75 "$tsr" verify pick p9
says 'what comes back differs from pick/b.txt from byte 7 on'
rm -rf pick p9 p9.tsr list list0 p8* m.txt cut.json

# --- --rm: only what comes back as the same file, each with its reason.
mkdir -p gone/sub && cp "$grey" gone/a.pgm && cp "$png" gone/b.png && cp "$dicom" gone/sub/c.dcm && ln -s a.pgm gone/link
cp -Rp gone kept
run 0 "$tsr" compress -r --rm gone -o gone_made
[ "$(cd gone && find . ! -type d | sort | tr '\n' ' ')" = './link ' ] || bad "--rm left: $(find gone)"
grep -q '3 originals removed' "$out" || bad "--rm says: $(cat "$out")"
run 0 "$tsr" decompress -q -r gone_made -o gone_back
cmp kept/a.pgm gone_back/a.pgm && cmp kept/b.png gone_back/b.png && cmp kept/sub/c.dcm gone_back/sub/c.dcm || bad "what was removed does not come back"
[ "$(find kept/sub/c.dcm -printf '%m %T@')" = "$(find gone_back/sub/c.dcm -printf '%m %T@')" ] || bad "time or permissions"
cp -p kept/a.pgm kept/b.png gone
run 0 "$tsr" compress -r --rm --update gone -o gone_made
[ ! -e gone/a.pgm ] && [ ! -e gone/b.png ] && grep -q '2 compared with their .tsr files again' "$out" || bad "--rm --update: $(cat "$out")"
# A .tsr of the same time and size that restores another file: nothing is removed.
cp -p kept/a.pgm kept/b.png gone && printf 'Z' | dd of=gone/a.pgm bs=1 seek=500 conv=notrunc 2>/dev/null && touch -r gone_made/a.pgm.tsr gone/a.pgm
run 75 "$tsr" compress -q -r --rm --update gone -o gone_made
says 'a.pgm: what comes back differs from gone/a.pgm from byte 500 on\|what comes back differs from gone/a.pgm from byte 500 on'
[ -e gone/a.pgm ] && [ ! -e gone/b.png ] || bad "--rm has removed what does not come back, or keeps what does"
run 0 "$tsr" compress -q --rm gone/link -o link.tsr
[ -L gone/link ] && [ -e gone/a.pgm ] || bad "--rm has removed a link or its target"
# A .tsr whose original may be gone is not replaced by that of another file.
mkdir other && cp "$text" other/a.pgm && rm -f gone/a.pgm
run 41 "$tsr" compress -q -r --rm --update other -o gone_made
says 'gone_made/a.pgm.tsr holds another file or another state of this one, which may be its only copy: rename it, or name another output with -o'
[ -e other/a.pgm ] || bad "--rm has removed what was not compressed"
# A pipe has no original to be removed, or to be up to date.
cp "$text" stdin && cat "$grey" | "$tsr" compress -q --rm - -o piped.tsr
[ -e stdin ] || bad "--rm has removed a file called stdin"
cat "$text" | "$tsr" compress -q --update - -o piped.tsr 2>"$err"
[ $? -eq 41 ] || bad "--update takes a pipe for done: $(cat "$err")"
rm -rf other stdin piped.tsr
cp -p kept/a.pgm gone/a.pgm
refuses 2 'verify none proves nothing' "$tsr" compress --rm --verify none gone/a.pgm
refuses 2 'never removes the originals of lossy files' "$tsr" compress --rm --qp 20 gone/a.pgm
refuses 2 'with a .tsr each' "$tsr" compress --rm --series s.tsr gone/a.pgm
rm -rf gone gone_made gone_back kept link.tsr

# --- Two words, with bytes, and the same everywhere: coded (as samples, or by streams) and stored (general compression alone).
mkdir ways && cp "$grey" "$DATA/packed/photo.jpg" "$DATA/packed/digits.gz" ways && yes 'a line of a text' | head -c 100000 >ways/text
run 0 "$tsr" compress -r -v ways -o ways_made --report ways.html
cp "$out" said && sizes=$(bytes_of ways_made/text.tsr)
[ "$sizes" -lt 200 ] || bad "a text of one line takes $sizes bytes"
grep -q "^  3 coded ([0-9]* -> [0-9]* bytes), 1 stored (100000 -> $sizes bytes)$" said || bad "the summary: $(cat said)"
grep -q '^  2 coded, but not as samples: it is no PNG, PNM, DICOM, NIfTI or Y4M file (ways/digits.gz, ways/photo.jpg)$' said || bad "the lists: $(cat said)"
grep -q '^  1 stored: it is no PNG, PNM, DICOM, NIfTI or Y4M file (ways/text)$' said || bad "the lists: $(cat said)"
[ "$(grep -c '>Coded</th><td class="n">3</td>\|>Stored</th><td class="n">1</td>' ways.html)" -eq 2 ] || bad "the page: $(grep -o '>Coded</th>.*' ways.html)"
[ "$(grep -o 'same file, coded\|same file, stored' ways.html | sort | uniq -c | tr -s ' \n' ' ')" = ' 3 same file, coded 1 same file, stored ' ] || bad "the page's table"
words="digits.gz${tab}coded/landscape_grey_8bit.pgm${tab}coded/photo.jpg${tab}coded/text${tab}stored/"
for command in 'compress -r -f ways -o ways_made' 'compress -r --update ways -o ways_made' 'test -r ways_made' 'verify ways ways_made' 'decompress -r -f ways_made -o ways_back' \
    'info -r ways_made'; do
    # shellcheck disable=SC2086
    run 0 "$tsr" $command --json
    [ "$(fields file way | sed 's|^[a-z_]*/||; s|\.tsr||' | tr '\n' '/')" = "$words" ] || bad "$command --json: $(fields file way)"
    grep -q '"status":"\(ok\|current\)"' "$out" && grep -q 'verbatim\|packed' "$out" && bad "$command --json has other words: $(cat "$out")"
    case $command in info*) continue ;; *--update*) numbers='0 0' ;; *) numbers='3 1' ;; esac
    [ "$(fields --summary coded stored)" = "${numbers% *}$tab${numbers#* }" ] || bad "$command --json: $(tail -n 1 "$out")"
done
run 0 "$tsr" compress -r -f ways -o ways_made --json
[ "$(fields --summary stored_bytes_in stored_bytes_out)" = "100000$tab$sizes" ] || bad "bytes of what is stored: $(tail -n 1 "$out")"
[ "$(fields --summary coded_bytes_in coded_bytes_out bytes_in bytes_out | awk -v s="$sizes" '{ print $3 - $1 - 100000, $4 - $2 - s }')" = '0 0' ] || bad "bytes of both: $(tail -n 1 "$out")"
run 0 "$tsr" info -r ways_made && cp "$out" listed
[ "$(grep -c '^  coded  ' listed)" -eq 3 ] && [ "$(grep -c '^  stored  ' listed)" -eq 1 ] || bad "info: $(cat listed)"
run 0 "$tsr" compress -q -r --series ways.tsr ways && run 0 "$tsr" info ways.tsr && cat "$out" >>listed
[ "$(grep -c ' bytes, coded' "$out")" -eq 3 ] && [ "$(grep -c ' bytes, stored' "$out")" -eq 1 ] || bad "info of a series: $(cat "$out")"
run 0 "$tsr" compare -r ways && grep -q '; 3 coded, 1 stored$' "$out" || bad "compare: $(cat "$out")"
grep 'verbatim\|packed\|as it is\|as they are\|unchanged' said listed ways.html "$out" && bad "other words for two"
rm -rf ways ways_made ways_back ways.tsr ways.html said listed

# --- A tree of many sorts: reasons first, each with its number and three names, totals last. The log and -v name all.
mkdir tree && for i in $(seq 30); do echo $i >tree/text$i; done && cp "$grey" tree/grey.pgm
for i in $(seq 20); do { printf '\377\330\377' && head -c $i /dev/zero && printf '\377\331'; } >tree/short$i.jpg; done
for i in $(seq 7); do ln -s grey.pgm tree/link$i; done
# names_all FILE: all that there is something to be said of is named there.
names_all()
{
    for name in $(cd tree && ls | grep -v grey); do grep -q "tree/$name\([,) ]\|$\)" "$1" || bad "$1 does not name $name"; done
}
run 0 "$tsr" compress -r tree -o tree_made --log tree.log
[ "$(wc -l <"$out")" -le 19 ] || bad "the summary of a tree has $(wc -l <"$out") lines: $(cat "$out")"
tail -n 5 "$out" | tr '\n' '/' | grep -q '^51 files, .*/  1 coded (76863 -> [0-9]* bytes), 50 stored ([0-9]* -> [0-9]* bytes)/  proven, .*/  originals: 51 of 51 can be deleted; to keep: 7 (not taken)/PASS, 7 names were not taken/$' ||
    bad "the totals are not last: $(cat "$out")"
grep -q '^  30 stored: it is no PNG, PNM, DICOM, NIfTI or Y4M file (tree/text1, tree/text10, tree/text11 and 27 more)$' "$out" || bad "a reason: $(cat "$out")"
grep -q '^  7 names not taken: symbolic link (tree/link1, tree/link2, tree/link3 and 4 more)$' "$out" || bad "links: $(cat "$out")"
grep -q '^  1[0-9] stored for 1[0-9] other reasons$' "$out" || bad "many reasons: $(cat "$out")"
grep -q '^  all names are in the log$' "$out" || bad "nothing leads to all names: $(cat "$out")"
names_all tree.log
grep -q ' 1 coded (' tree.log && tail -n 2 tree.log | grep -q ' PASS, 7 names were not taken$' || bad "the log: $(tail -n 3 tree.log)"
run 0 "$tsr" compress -r -f tree -o tree_made
grep -q '^  -v names all' "$out" || bad "nothing leads to all names: $(cat "$out")"
run 0 "$tsr" compress -r -f -v tree -o tree_made
grep -v '^tree' "$out" >listed
names_all listed
tail -n 1 "$out" | grep -q '^PASS, 7 names were not taken$' || bad "-v: the totals are not last: $(tail -n 3 "$out")"
run 0 "$tsr" compress --rm tree/link? -o tree_links --log rm.log
grep -q '^  7 kept originals: it is a symbolic link (tree/link1, tree/link2, tree/link3 and 4 more)$' "$out" || bad "what --rm keeps: $(cat "$out")"
for i in 1 2 3 4 5 6 7; do grep -q "    tree/link$i$" rm.log || bad "the log does not name what --rm keeps: link$i"; done
# Thousands of reasons, each of one file, in two lists: the files are cut.
rm -r tree tree_made tree_links && mkdir tree
awk 'BEGIN { for (i = 1; i <= 4200; i++) { f = "tree/" i ".pgm"; printf "P5 100 100 255\n%" i "s", "" >f; close(f) } }'
run 0 "$tsr" compress -r -v tree -o tree_made
for list in 'stored' 'original looks damaged'; do
    [ "$(grep -c "^  1 $list: .* (tree/[0-9]*.pgm)\$" "$out")" -eq 4200 ] || bad "-v leaves reasons out: $(grep -c "^  1 $list: " "$out")"
done
run 0 "$tsr" compress -r -f tree -o tree_made
[ "$(wc -l <"$out")" -le 25 ] || bad "the summary has $(wc -l <"$out") lines"
rm -rf tree tree_made tree.log rm.log listed

# --- Ctrl-C says what is done, and how to go on.
mkdir long && mkfifo pipe && for i in 1 2 3 4 5 6 7 8 9; do head -c 3000000 /dev/urandom >long/$i; done
for i in $(seq 10 20); do echo $i >long/$i; done
open_pipe $FEW_LINES
"$tsr" compress --json -T 1 -r long -o long_made >pipe 2>"$err" 3<&- &
process=$!
awaits $process [ -e long_made/1.tsr ] || bad "Ctrl-C: $(cat "$err")"
kill -INT $process && wait $process
[ $? -eq 130 ] && grep -q '^tessera: interrupted: [0-9]* of 20 files are done; the same command with --update goes on$' "$err" || bad "Ctrl-C: $(cat "$err")"
exec 3<&-
run 0 "$tsr" compress -q -r --update long -o long_made
run 0 "$tsr" verify -q long long_made
no_parts .
rm -rf long long_made pipe

# --- The folder of the outputs goes away while a run is at work (a share that is unmounted): what would be written to
# another folder of that name does not count, no original goes, and the run ends. The pipe of its lines makes it wait: they
# are written every 0.1 s, and some of the last files take longer.
mkdir away && cd away && mkdir in && mkfifo pipe
i=1000
while [ $i -lt 1400 ]; do echo "file $i" >in/$i && i=$((i + 1)); done
{ echo 'P5 4096 2048 255' && while cat "$grey"; do :; done 2>/dev/null | head -c 8388608; } >large.pgm
for i in 1390 1391 1392 1393; do ln -f large.pgm in/$i; done # they take 2 s, or 0.5 s on a machine that is four times faster
for options in --rm '--update --rm'; do
    rm -rf out moved
    [ "$options" = --rm ] || "$TESSERA" compress -q -r in -o out --exclude '1[1-3]*' --exclude '10[1-9]*'
    open_pipe
    # shellcheck disable=SC2086
    "$TESSERA" compress --json -r -9 -T 1 $options in -o out --report page.html >pipe 2>"$err" 3<&- &
    process=$!
    awaits $process [ -e out/1010.tsr ] || bad "it ended before: $(cat "$err")"
    mv out moved
    cat <&3 >"$out"
    exec 3<&-
    wait $process
    [ $? -eq 40 ] || bad "the folder of the outputs is gone, $options: $(tail -n 2 "$err")"
    grep -q '^tessera: out is not the folder any more that this run began with' "$err" || bad "what is said of it: $(tail -n 2 "$err")"
    [ "$(fields --summary verdict exit)" = "fail${tab}40" ] || bad "JSON of it: $(fields --summary verdict exit)"
    grep -q '<title>[^<]*FAIL' page.html || bad "the page of it"
    for name in in/1*; do
        [ -e "moved/${name#in/}.tsr" ] || [ "$(head -c 9 "$name")" = "file ${name#in/}" ] || cmp -s large.pgm "$name" || bad "$options: $name is lost"
    done
    for name in moved/*.tsr; do
        [ -e "in/$(basename "$name" .tsr)" ] || run 0 "$TESSERA" test -q "$name"
    done
    [ "$(find in moved -type f | sed 's/.*[/]//; s/.tsr$//' | sort -u | wc -l)" -eq 400 ] || bad "$options: files are lost"
    "$TESSERA" decompress -q -r moved -o in 2>/dev/null
    [ "$(find in -type f | wc -l)" -eq 400 ] || bad "$options: not all come back"
done
cd ..
finish
