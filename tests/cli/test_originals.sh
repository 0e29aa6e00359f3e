# Originals are safe: what -f, --rm, --update, --manifest and verify must never cost, pass over or call proven.
. "${0%/*}/steps.sh"
grey=$DATA/pnm/landscape_grey_8bit.pgm text=$DATA/other/text.txt dicom=$DATA/dicom/ct/slice_01.dcm
tsr=$TESSERA
"$tsr" compress -q --manifest m "$text" -o t.tsr 2>/dev/null && has_sha256=true || has_sha256=false
rm -f m t.tsr

# --- A manifest is none of the run's other files.
if $has_sha256; then
    cp "$text" x
    refuses 42 'the manifest would overwrite x.tsr, which this run writes; name another' "$tsr" compress --rm x --manifest x.tsr
    refuses 42 'the manifest would overwrite ./x.tsr, which' "$tsr" compress --rm x --manifest ./x.tsr
    refuses 42 'the manifest would overwrite x, which this run reads; name another' "$tsr" compress -f x --manifest x
    mkdir set && cp "$grey" set/m.part && cp "$text" set/m.new && cp "$text" set/b
    refuses 42 'the manifest would overwrite set/m.part, which this run reads' "$tsr" compress -r set -o made --manifest set/m
    refuses 41 'm.part exists and is no unfinished manifest: rename it' "$tsr" compress x --manifest set/m
    refuses 42 'the manifest would overwrite set/b, which this run reads' "$tsr" compress -q -r -f set -o made --manifest set/b
    refuses 42 'the manifest would overwrite made/b.tsr, which this run writes' "$tsr" compress -q -r set -o made --shard 1/2 --manifest made/b.tsr
    echo x >list && refuses 42 'the manifest would overwrite list, which' "$tsr" compress -f --files-from list -o made --manifest list
    # A killed run's part is taken up, wherever it was cut.
    mkdir begun && cp "$text" begun/a && printf '# tessera manifest 1\n# unfinished           \n' >begun/m.new && cp begun/m.new begun/m.part && printf '# byt' >>begun/m.part
    run 0 "$tsr" compress -q -r --update begun -o begun_made --manifest begun/m
    [ "$(find begun -type f | sort | tr '\n' ' ')" = 'begun/a begun/m ' ] || bad "what is left of a manifest: $(find begun)"
    # Two files of one name would share an entry. Two folders have names of their own.
    mkdir one two && echo 1 >one/a && echo 2 >two/a
    # A run that was killed before the first line has left an empty file.
    : >empty.new && run 0 "$tsr" compress -q -f begun/a -o empty.tsr --manifest empty && [ ! -e empty.new ] && sha256sum --quiet -c empty ||
        bad "after an empty one: $(ls empty*)"
    rm -f empty*
    run 75 "$tsr" compress -q "$PWD/one/a" "$PWD/two/a" --manifest both
    grep -q 'two/a: another input of this run has the same name in the manifest; name their common folder' "$err" || bad "two of a name: $(cat "$err")"
    rm -f both* one/a.tsr two/a.tsr && run 0 "$tsr" compress -q -r one two --manifest both && sha256sum --quiet -c both || bad "a manifest of two folders: $(cat both)"
    run 0 "$tsr" test -q -r one two --manifest both
    # Names with all that sha256sum escapes.
    mkdir odd && echo r >"odd/$(printf 'r\r')" && echo n >"odd/n
n" && echo b >'odd/b\b'
    run 0 "$tsr" compress -q -r odd -o odd_made --manifest odd.txt
    (cd odd && sha256sum --quiet -c ../odd.txt >"$WORK/sum" 2>&1) || bad "sha256sum: $(cat -v "$WORK/sum")"
    run 0 "$tsr" test -q -r odd_made --manifest odd.txt
    rm -rf x set begun begun_made one two both* odd odd_made odd.txt list made
fi

# --- An output is no other input of the run.
for options in '-f --rm' '-f' ''; do
    cp "$text" a && "$tsr" compress -q -f "$grey" -o a.tsr
    picture . >"$WORK/before"
    # shellcheck disable=SC2086
    run 75 "$tsr" compress -q $options a a.tsr
    says 'tessera: a: its output is a.tsr, which this run reads; name another with -o'
    case $options in *rm*) wanted=a.tsr.tsr lost=a.tsr ;; *) wanted=a.tsr.tsr lost= ;; esac
    [ -f a ] && [ -f $wanted ] || bad "compress $options a a.tsr: $(ls)"
    [ -z "$lost" ] || [ ! -e "$lost" ] || bad "--rm has left $lost"
    "$tsr" decompress -q -f a.tsr.tsr -o b.tsr && "$tsr" decompress -q b.tsr -o - | cmp - "$grey" || bad "a.tsr is lost by compress $options"
    rm -f a a.tsr a.tsr.tsr b.tsr
done
echo 1 >a && "$tsr" compress -q a && "$tsr" compress -q a.tsr
run 75 "$tsr" decompress -q -f a.tsr.tsr a.tsr -o .
says 'a.tsr.tsr: its output is ./a.tsr, which this run reads'
rm -f ./*
mkdir -p deep && cp "$text" deep/a && "$tsr" compress -q "$grey" -o deep/a.tsr && ln -s deep here
run 75 "$tsr" compress -q -f deep/a here/a.tsr
says 'deep/a: its output is deep/a.tsr, which this run reads'
cp "$text" x && echo x >x.tsr
run 42 "$tsr" compress -q -f --files-from x.tsr
says 'x: its output is x.tsr, which this run reads'
rm -rf ./*

# --- "all proven" is said of what this run has proven, and of all that it was given.
mkdir set && cp "$grey" set/a && cp "$text" set/b && cp "$dicom" set/c
run 0 "$tsr" compress -q --verify none -r set -o made
rm made/c.tsr && run 0 "$tsr" compress -r --update set -o made
grep -q 'all proven' "$out" && bad "all proven, of files that were taken as done: $(cat "$out")"
grep -q '^  proven, read back .*1 the same file' "$out" && grep -q '^    2 by size and time; test and verify decode them' "$out" || bad "--update says: $(cat "$out")"
changes_byte made/a.tsr $(($(bytes_of made/a.tsr) / 2)) && touch -r set/a made/a.tsr
run 0 "$tsr" compress -r --update=hash set -o made
grep -q 'proven' "$out" && bad "nothing was proven: $(cat "$out")"
grep -q '^    3 by size and hash; test and verify' "$out" || bad "--update=hash says: $(cat "$out")"
run 0 "$tsr" compress --json -r --update set -o made
[ "$(fields --summary current compared)" = "3${tab}0" ] || bad "--json: $(tail -n 1 "$out")"
run 75 "$tsr" compress -r --json --rm --update set -o made
[ "$(fields --summary failed current compared removed)" = "1${tab}2${tab}2${tab}2" ] || bad "--rm --update: $(tail -n 1 "$out")"
[ -f set/a ] && [ ! -e set/b ] || bad "--rm of what is damaged: $(ls set)"
run 0 "$tsr" compress -q "$text" -o set/kept.tsr && run 0 "$tsr" compress -r -f set -o made
grep -q 'all proven' "$out" && bad "all, and a .tsr of the set is not in OUT: $(cat "$out")"
run 0 "$tsr" compress -r -f set
grep -q 'all proven' "$out" || bad "outputs beside originals are not counted among them: $(cat "$out")"
rm -rf set made

# --- Which originals can be deleted: compress, a series and verify say of the same ones what --rm removes.
mkdir set && cp "$grey" set/a && cp "$text" set/b && cp "$dicom" set/c.dcm && head -c 100000 "$dicom" >set/cut.dcm && ln set/a set/d
run 0 "$tsr" compress -r set -o made
grep -qx '  originals: 4 of 5 can be deleted; to keep: 1 (it looks damaged)' "$out" || bad "compress says of originals: $(cat "$out")"
run 0 "$tsr" verify set made
grep -qx '  originals: 4 of 5 can be deleted; to keep: 1 (it looks damaged)' "$out" || bad "verify says of originals: $(cat "$out")"
run 0 "$tsr" compress -r -f --json set -o made
fields input deletable | sort >told
[ "$(fields --summary deletable)" = 4 ] || bad "deletable: $(tail -n 1 "$out")"
run 0 "$tsr" compress -r --series made.tsr set
grep -q '^  originals: 4 of 5 can be deleted' "$out" || bad "a series says of originals: $(cat "$out")"
run 0 "$tsr" compress -r -f --report made.html set -o made
grep -q 'originals: 4 of 5 can be deleted; to keep: 1 (it looks damaged)' made.html || bad "the page does not say which originals can be deleted"
run 0 "$tsr" compress -r -f --json --rm set -o removed
fields input removed | sort >removed.lines
cmp told removed.lines || bad "told: $(cat told); removed: $(cat removed.lines)"
grep -q 'can be deleted' "$out" && bad "--rm says that originals can be deleted: $(cat "$out")"
run 0 "$tsr" decompress -q -r made -o set -f
run 0 "$tsr" compress -r -f --qp 20 set/a set/c.dcm -o lossy/
grep -qx '  originals: 0 of 2 can be deleted; to keep: 2 (its .tsr is lossy)' "$out" || bad "lossy ones: $(cat "$out")"
run 0 "$tsr" compress -f --verify none set/a -o one.tsr
grep -qx '  the original must stay: its .tsr was not proven' "$out" || bad "--verify none: $(cat "$out")"
run 0 "$tsr" compress -f set/a -o one.tsr
grep -qx '  the original can be deleted' "$out" || bad "one file: $(cat "$out")"
run 0 "$tsr" compress -r -f --shard 1/2 set -o made
grep -q '^  originals: [0-9] of [0-9] can be deleted; to keep: .*[0-9] (excluded, or of other shards)$' "$out" || bad "a shard: $(cat "$out")"
run 0 "$tsr" compress -r -f --exclude a --exclude cut.dcm set -o made
grep -qx '  originals: 3 of 3 can be deleted; to keep: 2 (excluded)' "$out" || bad "without some: $(cat "$out")"
run 0 "$tsr" compress -q -r --exclude cut.dcm set && mv set/a a && run 0 "$tsr" compress -r -f --exclude cut.dcm set
grep -qx '  originals: 3 of 3 can be deleted; to keep: 1 (.tsr files), 1 (excluded)' "$out" || bad "beside an only copy: $(cat "$out")"
mv a set/a && rm set/*.tsr
if [ -c /dev/full ]; then
    run 40 "$tsr" compress -r -f set -o made --report /dev/full
    grep -q 'can be deleted' "$out" && bad "originals can be deleted, though the report cannot be written: $(cat "$out")"
    run 40 "$tsr" compress -r -f --json set -o made --report /dev/full
    [ "$(fields --summary deletable)" = null ] || bad "JSON has deletable, though the report cannot be written: $(tail -n 1 "$out")"
fi
ln -s a set/link
run 0 "$tsr" compress -r -f set -o made
grep -q '^  originals: 4 of 5 can be deleted; to keep: 1 (it looks damaged), 1 (not taken)$' "$out" || bad "with a link: $(cat "$out")"
run 0 "$tsr" compress -r --update set -o made
grep -q '^  originals: 0 of 5 can be deleted; to keep: 5 (it was done before, and was not compared again), 1 (not taken)$' "$out" || bad "--update: $(cat "$out")"
rm -rf ./*

# --- A name that is not there is only done if --rm has removed it.
cp "$text" a && "$tsr" compress -q a && cp a.tsr whole.tsr && rm a
run 20 "$tsr" compress -q --update a
run 20 "$tsr" compress -q --update missing -o whole.tsr
run 20 "$tsr" compress -q --rm --update missing -o whole.tsr
run 0 "$tsr" compress --rm --update a
grep -q '^1 file done before$' "$out" && grep -q '^    1 removed by an earlier run; ' "$out" || bad "what --rm has removed: $(cat "$out")"
"$tsr" compress -q -f --qp 20 "$grey" -o a.tsr && run 20 "$tsr" compress -q --rm --update a
rm -f ./*

# --- Shards of a list stay the same when an original is emptied, or removed.
mkdir set && for i in 1 2 3 4 5 6 7 8 9 10; do head -c $((i * 30000)) "$DATA/other/random.bin" >set/$i; done
ls set/* >list && run 0 "$tsr" compress -q --files-from list -o made
: >set/10 && for i in 1 2 3; do run 0 "$tsr" compress -q --update --shard $i/3 --files-from list -o made; done
run 0 "$tsr" verify -q set made/set
for i in 1 3 2; do run 0 "$tsr" compress -q --update --rm --shard $i/3 --files-from list -o made; done
[ -z "$(ls set)" ] || bad "--rm by shards has left: $(ls set)"
rm -rf ./*

# --- verify passes over nothing.
mkdir set && cp "$grey" set/a && cp "$text" set/b && "$tsr" compress -q "$text" -o set/c.tsr
run 0 "$tsr" compress -q -r set -o made
run 75 "$tsr" verify set made
says 'set/c.tsr: the archive has no .tsr of it'
run 0 "$tsr" compress -q set/c.tsr -o made/c.tsr.tsr && run 0 "$tsr" verify set made
grep -q '^3 files compared' "$out" || bad "verify: $(cat "$out")"
rm set/c.tsr && run 0 "$tsr" compress -q -r set && run 0 "$tsr" verify -q set set
mkdir one other && echo 1 >one/a && echo 1 >other/b && run 0 "$tsr" compress -q -r other -o packed
run 75 "$tsr" verify one packed
grep -q 'one/a: the archive has no .tsr of it' "$err" && grep -q 'packed/b.tsr: there is no original of it' "$err" || bad "files of two names are compared: $(cat "$err")"
run 0 "$tsr" verify -q one/a packed/b.tsr
rm -rf ./*
# A damaged .tsr is one failure, for its own reason, and as many are counted as test counts.
mkdir set && for i in 1 2 3 4 5 6; do echo "finding $i" >"set/finding 000$i.txt"; done
manifest= && $has_sha256 && manifest='--manifest m'
# shellcheck disable=SC2086
run 0 "$tsr" compress -q -r set -o made $manifest && : >'made/finding 0001.txt.tsr'
printf X | dd of='made/finding 0002.txt.tsr' bs=1 seek=20 conv=notrunc 2>/dev/null
head -c 300 "$DATA/other/random.bin" >'made/finding 0003.txt.tsr' && truncate -s 30 'made/finding 0004.txt.tsr'
for command in 'test -r made' 'verify set made' "test -r made $manifest"; do
    # shellcheck disable=SC2086
    run 75 "$tsr" $command && [ "$(tail -n 1 "$out")" = 'FAIL, 4 files failed' ] || bad "$command: $(cat "$out" "$err")"
    case $command in test*) grep -q '^2 of 6 files tested: their checksums hold, ' "$out" || bad "$command: $(cat "$out")" ;; esac
    sort "$err" >"$WORK/said"
    [ -s "$WORK/first" ] || cp "$WORK/said" "$WORK/first"
    cmp -s "$WORK/first" "$WORK/said" || bad "$command says of damaged files: $(cat "$err")"
done
run 75 "$tsr" verify --json set made
[ "$(fields --summary files failed)" = "6${tab}4" ] || bad "verify counts damaged files: $(tail -n 1 "$out")"
[ "$(fields original | grep -c 'set/finding')" -eq 6 ] || bad "verify --json: the originals of damaged files: $(fields original)"
for i in 1 2 3 4; do
    "$tsr" test "made/finding 000$i.txt.tsr" 2>"$WORK/said" && bad "made/finding 000$i.txt.tsr is not damaged"
    "$tsr" verify "set/finding 000$i.txt" "made/finding 000$i.txt.tsr" 2>"$err" && bad "verify passes what is damaged"
    cmp -s "$err" "$WORK/said" || bad "verify of one damaged file: $(cat "$err")"
done
mv 'made/finding 0001.txt.tsr' made/other.tsr && run 75 "$tsr" verify -q set made
grep -q '^tessera: made/other.tsr is not a .tsr file$' "$err" && grep -q '0001.txt: the archive has no .tsr of it$' "$err" ||
    bad "verify of what is no .tsr and has no original: $(cat "$err")"
rm -rf made && run 0 "$tsr" compress -q -r set --series made.tsr && truncate -s 200 made.tsr && run 75 "$tsr" verify -q set made.tsr
grep -q 'the archive has no .tsr of it$' "$err" && bad "what a cut series may hold: $(cat "$err")"
grep -q '0006.txt: the archive has no .tsr of it that can be read$' "$err" || bad "what is lost with a cut series: $(cat "$err")"
# A file of a series whose name is lost: the index and its copy are damaged, and the file's own beginning.
rm -rf set && mkdir set && for i in 1 2 3 4 5 6; do echo "finding $i" >set/000$i; done
run 0 "$tsr" compress -q -r set --series s.tsr && bytes=$(bytes_of s.tsr)
for at in 140 $((bytes - 94)) $((bytes - 49)); do changes_byte s.tsr $at; done
run 75 "$tsr" test -q s.tsr && grep -q "^tessera: s.tsr: the section 'M' at byte [0-9]* is damaged" "$err" || bad "no name is lost: $(cat "$err")"
run 75 "$tsr" verify set s.tsr && says "s.tsr: the section 'M' at byte [0-9]* is damaged"
[ "$(tail -n 1 "$out")" = 'FAIL, 1 file failed' ] || bad "a file whose name is lost: $(cat "$out")"
rm -rf ./* "$WORK/first"

# --- test --manifest looks for what the options ask for.
if $has_sha256; then
    mkdir -p set/sub && for i in 1 2 3 4 5 6 7 8; do echo $i >set/$i; echo $i >set/sub/x$i; done
    run 0 "$tsr" compress -q -r set -o made --manifest m && rm made/3.tsr made/sub/x5.tsr
    run 75 "$tsr" test -q -r made --manifest m
    [ "$(grep -c 'the manifest names it' "$err")" -eq 2 ] || bad "missing: $(cat "$err")"
    run 75 "$tsr" test -q -r made --manifest m --exclude sub/
    says '^tessera: 3: the manifest names it'
    run 75 "$tsr" test -q -r made --manifest m --include '*/' --include 'x*' --exclude '*'
    says '^tessera: sub/x5: the manifest names it'
    run 75 "$tsr" test -q -r made --manifest m --sample 1%
    [ "$(grep -c 'the manifest names it' "$err")" -eq 2 ] || bad "missing in a sample: $(cat "$err")"
    for i in 1 2 3 4; do "$tsr" test -q -r made --manifest m --shard $i/4; done 2>"$err"
    [ "$(grep -c 'the manifest names it' "$err")" -eq 2 ] || bad "missing in shards: $(cat "$err")"
    run 0 "$tsr" test -q -r made --manifest m --exclude 3.tsr --exclude x5.tsr
    rm -rf ./*
fi

# --- What --rm keeps is named as what it is.
mkdir set && cp "$text" set/a && ln -s set/a link && mkfifo fifo && { cat "$text" >fifo & }
run 0 "$tsr" compress --rm link -o 1.tsr
grep -q '1 kept original: it is a symbolic link' "$out" || bad "a link: $(cat "$out")"
run 0 "$tsr" compress --rm fifo -o 2.tsr
wait
grep -q '1 kept original: it came through a pipe' "$out" || bad "a FIFO: $(cat "$out")"
[ -p fifo ] && [ -L link ] && [ -f set/a ] || bad "--rm has removed what is no regular file"
rm -rf ./*

# --- What --rm has left is replaced by no other file's .tsr, whatever state it is in.
other=$DATA/pnm/mr_12bit.pgm
for kind in intact damaged lossy cut; do
    rm -rf ./* && cp "$grey" x
    case $kind in lossy) run 0 "$tsr" compress -q --qp 20 x && rm x ;; *) run 0 "$tsr" compress -q --rm x ;; esac
    [ $kind = damaged ] && changes_byte x.tsr 6
    [ $kind = cut ] && truncate -s 40 x.tsr
    cp "$other" x
    refuses 41 'x.tsr holds another file or another state of this one, which may be its only copy' "$tsr" compress --rm --update x
    cp "$grey" x
    [ $kind = cut ] || run 0 "$tsr" compress -q --rm --update x # of the same bytes: made anew where it is needed
    run 0 "$tsr" compress -q -f "$other" -o x.tsr
done
# The sentence's way out keeps both.
mv x.tsr earlier.tsr && cp "$grey" x && run 0 "$tsr" compress -q --rm --update x
"$tsr" cat x.tsr | cmp -s - "$grey" && "$tsr" cat earlier.tsr | cmp -s - "$other" && [ ! -e x ] || bad "a renamed .tsr and the new one"
run 0 "$tsr" compress -q -f "$text" -o y && "$BIN/tsr_sign_again" y x.tsr H 0 0 ff && rm y
run 63 "$tsr" test x.tsr && cp "$text" x && refuses 41 'x.tsr is of another format version: rename it, or name another output with -o' "$tsr" compress --update x
rm -rf ./*

# --- A series is none of its inputs.
mkdir set && cp "$grey" set/a && cp "$text" set/b
refuses 42 'set/b: the output is the input' "$tsr" compress -r set --series set/b -f
ln -s set/b out.tsr && refuses 42 'set/b: the output is the input' "$tsr" compress -r set --series out.tsr -f
run 0 "$tsr" compress -q -r set --series set/s.tsr && run 0 "$tsr" compress -q -r set --series set/s.tsr -f
rm -rf ./*

# --- Manifests: one run each, whole or called FILE.part, and no original goes without its entry.
if $has_sha256; then
    mkdir set && cp "$grey" set/a && cp "$text" set/b && : >set/m.part && printf '# tes' >set/m.new
    refuses 42 'the manifest would overwrite set/m.part, which this run reads' "$tsr" compress -r set -o made --manifest set/m
    mv set/m.part set/n && refuses 42 'the manifest would overwrite set/m.new' "$tsr" compress -r set -o made --manifest set/m
    rm set/m.new && mv set/n set/m.part && refuses 41 'set/m.part exists and is no unfinished manifest' "$tsr" compress set/b -o made.tsr --manifest set/m
    refuses 2 'end the names of unfinished manifests' "$tsr" compress set/b -o made.tsr --manifest x.new
    rm set/m.part && mkdir -p made/b.tsr
    run 75 "$tsr" compress -q -r set -o made --manifest m
    grep -q '^tessera: the manifest is not complete and is called m.part' "$err" && [ ! -e m ] && [ -s m.part ] || bad "a manifest of a run with failures: $(cat "$err")"
    grep -q 'what can never be done needs another name, or --exclude$' "$err" || bad "no way out: $(cat "$err")"
    run 75 "$tsr" test -r made --manifest m.part # it has what is done; but nobody may take that for all
    says 'm.part is not complete: what it has is checked; the command that writes it goes on with --update'
    grep -q '^1 of 1 files tested: their checksums hold' "$out" && grep -q '^FAIL, the manifest is not complete$' "$out" || bad "a manifest that lacks entries: $(cat "$out")"
    run 75 "$tsr" test --json -r made --manifest m.part
    grep -q '"verdict":"fail","status":"failed","exit":75.*"failed":0' "$out" || bad "a manifest that lacks entries: $(cat "$out")"
    run 0 "$tsr" compress -q "$text" -o made/c.tsr && run 75 "$tsr" test -q -r made --manifest m.part && rm made/c.tsr
    grep -q 'the manifest does not name c' "$err" || bad "what is not in the manifest: $(cat "$err")"
    sed '3,$s/restores=file/restores=loss/;4s/^./x/' m.part >wrong.part && run 20 "$tsr" test -q -r made --manifest wrong.part
    cp -r set others && cp -r made made_others && sed '' m.part >k.part && chmod u+w k.part
    run 0 "$tsr" compress -q -r others -o made_others --update --manifest k --exclude b && [ ! -e k.part ] && run 0 "$tsr" test -q -r made_others --exclude b.tsr --manifest k
    rm -rf others made_others k wrong.part
    rmdir made/b.tsr && refuses 41 'm.part is of a run that has not come to its end: --update goes on with it' "$tsr" compress -q -r set -o made --manifest m
    if command -v flock >/dev/null; then
        flock m.part "$tsr" compress -q -r set -o made --update --manifest m 2>"$err" && bad "two runs write one manifest"
        says 'another run is writing m.part'
    fi
    run 0 "$tsr" compress -q -r set -o made --update --manifest m && [ ! -e m.part ] && run 0 "$tsr" test -q -r made --manifest m
    grep -q '^# complete' m || bad "a whole manifest does not say so: $(head -n 2 m)"
    run 0 "$tsr" compress -q -f --qp 30 set/a -o made/a.tsr && run 75 "$tsr" test -q -r made --manifest m
    says 'made/a.tsr does not restore the same file any more, as the manifest says'
    rm -rf ./*
    if [ "$(id -u)" -eq 0 ] && mkdir tiny && mount -t tmpfs -o size=64k none tiny 2>/dev/null; then
        mkdir set && for i in $(seq 600); do printf 'P5\n4 4\n255\n%016d' $i >set/$i.pgm; done
        dd if=/dev/zero of=tiny/ballast bs=4k count=14 2>/dev/null
        run 40 "$tsr" compress -q -r --rm set -o made --manifest tiny/m
        gone=$((600 - $(ls set | wc -l))) entries=$(grep -c restores tiny/m.part)
        [ "$gone" -le "$entries" ] && [ "$gone" -lt 600 ] || bad "$gone originals are gone, $entries have an entry"
        rm tiny/ballast && mount -o remount,size=1M tiny
        run 0 "$tsr" compress -q -r --rm --update set -o made --manifest tiny/m
        [ -z "$(ls set)" ] && [ "$(grep -c restores tiny/m)" -eq 600 ] && run 0 "$tsr" test -q -r made --manifest tiny/m || bad "after a full disk: $(grep -c restores tiny/m) entries"
        umount tiny
    fi
    rm -rf ./*
fi

# --- summary: a run that did not come to its end, and the last word on a file.
mkdir set && for i in 1 2 3; do cp "$text" set/$i; done
run 0 "$tsr" compress -r --json set -o made && cp "$out" whole.json && head -n 2 whole.json >cut.json && : >empty.json
run 0 "$tsr" summary whole.json
for each in cut empty; do
    run 75 "$tsr" summary $each.json
    grep -q "the run of $each.json has not come to its end" "$out" || bad "summary of $each: $(cat "$out")"
    grep -q 'every file of the set is done' "$out" && bad "summary of $each says done"
done
run 0 "$tsr" compress -r --json -n set -o dry && cp "$out" dry.json
run 2 "$tsr" summary dry.json
echo new >set/2 && rm made/2.tsr && mkdir made/2.tsr && run 75 "$tsr" compress -r --json --update set -o made && cp "$out" later.json
for order in 'whole later' 'later whole'; do
    # shellcheck disable=SC2086
    run 75 "$tsr" summary ${order% *}.json ${order#* }.json
    grep -q ' 1 failed' "$out" || bad "summary $order: $(cat "$out")"
done
rmdir made/2.tsr && run 0 "$tsr" compress -r --json --update set -o made && cp "$out" last.json
run 0 "$tsr" summary last.json later.json whole.json
rm -rf ./*

# --- verify: the very file that the .tsr was made of, empty folders, and what is no file.
mkdir -p set/empty changed && cp "$DATA/png/screen_palette.png" set/p.png && run 0 "$tsr" compress -q -r set -o made
run 0 "$tsr" verify -q set made
cp -R set changed/set && changes_byte changed/set/p.png 60
run 60 "$tsr" verify -q changed/set made
says 'what comes back differs from changed/set/p.png from byte 60 on'
mkdir lossy && cp "$DATA/png/landscape_grey.png" lossy/p.png && run 0 "$tsr" compress -q -r --qp 20 lossy -o lossy_made
run 0 "$tsr" verify -q lossy lossy_made
changes_byte lossy/p.png 60
run 60 "$tsr" verify -q lossy lossy_made
says 'lossy/p.png is not the file that the .tsr was made of: its hash is another'
rmdir made/empty && run 75 "$tsr" verify -q set made
says 'set/empty: the archive does not have this empty folder'
rmdir set/empty && ln -s p.png set/link && run 0 "$tsr" verify set made
grep -q '1 name not taken: symbolic link (set/link)' "$out" && [ "$(tail -n 1 "$out")" = 'PASS, 1 name was not taken' ] ||
    bad "verify passes over a link: $(cat "$out")"
rm -rf ./*

# --- Night after night: the same command, its reports and manifests in IN or OUT, after kills, and with nothing to do.
night() # WORDS OPTION...
{
    words=$1
    shift
    run 0 "$tsr" compress -q -r "$@"
    grep -q '<title>[^<]*PASS' "$page" && grep -qi "$words" "$page" || bad "$*: $(grep -o '<title>[^<]*' "$page") $(grep -o '; [0-9]* of [^<]*' "$page" | head -n 1)"
}
mkdir set && cp "$grey" set/a && cp "$text" set/b
for page in out/r.html set/r.html; do
    for _ in 1 2; do night 'all 2 files were proven' --update --report $page set -o out; done
    rm -r out
done
page=r.html && rm set/r.html
for _ in 1 2; do night 'all 2 files were proven' --update --report r.html set -o set; done
[ "$(find set -name '*.tsr' | wc -l)" = 2 ] || bad "outputs beside the originals: $(find set)"
rm -r set/*.tsr
: >r.html.part && night 'all 2 files were proven' --report r.html set -o out # of a killed run
echo mine >r2.html.part && refuses 41 'r2.html.part exists and is no unfinished report' "$tsr" compress -r -f set -o out --report r2.html
if command -v flock >/dev/null; then
    : >r.html.part && flock r.html.part "$tsr" compress -q -r -f set -o out --report r.html 2>"$err" && bad "two runs write one report"
    says 'another run is writing r.html.part'
fi
if $has_sha256; then
    rm -rf out r*.html* && page=out/r.html && night 'all 2 files' --update --manifest out/m --report out/r.html set -o out
    run 0 "$tsr" compress -q -r --update --manifest out/m set -o out && run 0 "$tsr" test -q -r out --manifest out/m
    head -n 4 out/m >cut && run 20 "$tsr" test -q -r out --manifest cut
    says 'cut is cut: it has 1 of its 2 entries'
fi
# What --rm has left as the only copy is decoded to its end before it counts as done.
rm -rf out && ls set/? >list && run 0 "$tsr" compress -q --files-from list --rm --update -o out && run 0 "$tsr" compress --files-from list --rm --update -o out
grep -q '2 removed by an earlier run; their .tsr files were decoded again' "$out" || bad "what is gone: $(cat "$out")"
changes_byte out/set/a.tsr 200 && run 75 "$tsr" compress -q --files-from list --rm --update -o out
rm -rf ./*
# A set with links is never called whole: they are named, once, however many runs name them.
mkdir set && cp "$text" set/a && ln -s a set/l && "$tsr" compress -r --json set -o out >j.json && run 0 "$tsr" summary j.json j.json
grep -q 'every file of the set is done' "$out" && bad "summary of a set with a link: $(cat "$out")"
[ "$(tail -n 1 "$out")" = 'PASS, 1 name was not taken' ] || bad "summary counts names twice: $(cat "$out")"
mkdir out/d && "$tsr" compress -q -r --json --update --manifest out/d set -o out >j.json 2>"$err" && bad "a manifest that is a folder"
run 75 "$tsr" summary j.json
grep -q 'the last run of j.json failed: out/d is not a regular file' "$out" || bad "summary of a run that did not begin: $(cat "$out")"
rm -rf ./*
finish
