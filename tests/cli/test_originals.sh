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
    # A killed run's part is taken up, whatever it was cut to.
    mkdir begun && cp "$text" begun/a && printf '# tess' >begun/m.new && : >begun/m.part
    run 0 "$tsr" compress -q -r --update begun -o begun_made --manifest begun/m
    [ "$(find begun -type f | sort | tr '\n' ' ')" = 'begun/a begun/m ' ] || bad "what is left of a manifest: $(find begun)"
    # Two files of one name would share an entry.
    mkdir one two && echo 1 >one/a && echo 2 >two/a
    run 75 "$tsr" compress -q -r one two --manifest both
    says 'two/a: another input of this run has the same name in the manifest; name their common folder'
    # Names with all that sha256sum escapes.
    mkdir odd && echo r >"odd/$(printf 'r\r')" && echo n >"odd/n
n" && echo b >'odd/b\b'
    run 0 "$tsr" compress -q -r odd -o odd_made --manifest odd.txt
    (cd odd && sha256sum --quiet -c ../odd.txt >"$WORK/sum" 2>&1) || bad "sha256sum: $(cat -v "$WORK/sum")"
    run 0 "$tsr" test -q -r odd_made --manifest odd.txt
    rm -rf x set begun begun_made one two both odd odd_made odd.txt list made
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

# --- A name that is not there is only done if --rm has removed it.
cp "$text" a && "$tsr" compress -q a && cp a.tsr whole.tsr && rm a
run 20 "$tsr" compress -q --update a
run 20 "$tsr" compress -q --update missing -o whole.tsr
run 20 "$tsr" compress -q --rm --update missing -o whole.tsr
run 0 "$tsr" compress --rm --update a
grep -q '^1 file done before$' "$out" && grep -q '^    1 removed by an earlier run$' "$out" || bad "what --rm has removed: $(cat "$out")"
"$tsr" compress -q -f "$DATA/png/landscape_rgb.png" -o a.tsr && run 20 "$tsr" compress -q --rm --update a
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
finish
