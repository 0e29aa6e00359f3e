# Two names that are one file: file systems that do not tell case or forms of letters apart, with inode numbers and without,
# links, mounts. No output of a run is replaced by the same run, no original is lost, and status 0 is not said of it.
. "${0%/*}/steps.sh"
tsr=$TESSERA text=$DATA/other/text.txt grey=$DATA/pnm/landscape_grey_8bit.pgm dicom=$DATA/dicom/ct/slice_01.dcm
server=
[ -x "$BIN/tsr_fold_fs" ] || { echo "skipped: the tests were made without libfuse3" && exit 77; }
mkdir backing m

# folds WORD...: mounts a file system that does not tell all names apart on m (fold_fs.c says the words).
folds()
{
    words=$*
    rm -rf backing/* backing/.[!.]*
    "$BIN/tsr_fold_fs" backing m "$@" >"$WORK/fs.log" 2>&1 &
    server=$!
    awaits "$server" grep -q " $WORK/box/m fuse" /proc/self/mounts
}
unfold()
{
    fusermount3 -u m 2>/dev/null || umount m || bad "m cannot be unmounted"
    wait "$server"
    server=
}
abandon()
{
    [ -z "$server" ] || fusermount3 -u m 2>/dev/null || umount -l m 2>/dev/null
    [ -z "$server" ] || kill "$server" 2>/dev/null
    wait
}
trap abandon EXIT
if ! folds case; then
    echo "skipped: no mounts here: $(tail -n 1 "$WORK/fs.log")"
    exit 77
fi
echo x >m/probe && [ -e m/PROBE ] || bad "the file system of this test tells case apart"
unfold

# fresh: two originals in the folder a, whose names are one on m, and no archive there.
fresh()
{
    rm -rf a m/cf && mkdir a && echo one >"a/$one" && echo three >"a/$other"
}

# both_kept: no original is gone, and the archive has one .tsr, of one of them.
both_kept()
{
    [ "$(cat a/* | sort | tr '\n' ' ')" = 'one three ' ] || bad "$words: originals are gone after: $*"
    [ "$(find m/cf -type f | wc -l)" -eq 1 ] || bad "$words: not one file in the archive after: $*"
    run 0 "$tsr" decompress -q -f "$(find m/cf -name '*.[tT][sS][rR]')" -o restored
    grep -qx 'one\|three' restored || bad "$words: the .tsr restores neither original after: $*"
    no_parts m/cf
}

# Sentences name both outputs, and offer nothing that does not help.
collides()
{
    [ "$(wc -l <"$err")" -eq 1 ] && grep -q 'are one file here' "$err" || bad "$words: not said: $(cat "$err")"
    grep -q -F "/$one" "$err" && grep -q -F "/$other" "$err" || bad "$words: not both are named: $(cat "$err")"
    grep -q -e ' -f' "$err" && bad "$words: -f is offered: $(cat "$err")"
}

# Each verb that writes, with and without what exists already.
try_verbs()
{
    for options in -q '-q --update' '-q -f' '-q -f --rm' '-q --rm --update' '-q --rm --update=hash' '-q -T 1 -f'; do
        fresh
        for again in 1 2 3; do
            # shellcheck disable=SC2086
            run 75 "$tsr" compress $options -r a -o m/cf
            case $options$again in
            *-f*1 | *--update*1 | -q1) collides ;;
            *-f* | *--update*) grep -q 'are one file here' "$err" || bad "$words: not said the second time: $(cat "$err")" ;;
            esac
            both_kept "$options, time $again"
        done
    done
    fresh
    run 75 "$tsr" compress --json -r -f --rm a -o m/cf
    [ "$(fields exit | sort -n | tr '\n' ' ')" = '0 42 ' ] || bad "$words: --json: $(fields file exit)"
    [ "$(fields --summary removed failed)" = "0${tab}1" ] || bad "$words: --json: $(fields --summary removed failed)"
    rm -rf archive m/back && run 0 "$tsr" compress -q -r a -o archive
    run 0 "$tsr" compress -q -f -r a --series series.tsr
    for command in 'decompress -r archive' 'decompress -r -f archive' 'decompress series.tsr' 'decompress -f series.tsr'; do
        rm -rf m/back
        # shellcheck disable=SC2086
        run 75 "$tsr" $command -q -o m/back
        collides
        [ "$(find m/back -type f | wc -l)" -eq 1 ] && grep -qx 'one\|three' m/back/* || bad "$words: $command: $(ls -A m/back)"
        no_parts m/back
    done
}

# Two processes share the work, at once or one after the other: nothing is lost, whichever is first.
try_shards()
{
    for options in '--update' '-f' '-f --rm' '--update --rm'; do
        for order in at_once at_once at_once '1 2' '2 1'; do
            fresh
            first=0 second=0
            if [ "$order" = at_once ]; then
                # shellcheck disable=SC2086
                "$tsr" compress -q -r $options --shard 1/2 a -o m/cf 2>/dev/null &
                # shellcheck disable=SC2086
                "$tsr" compress -q -r $options --shard 2/2 a -o m/cf 2>/dev/null
                second=$?
                wait $!
                first=$?
            else
                for shard in $order; do
                    first=$second
                    # shellcheck disable=SC2086
                    "$tsr" compress -q -r $options --shard $shard/2 a -o m/cf 2>/dev/null
                    second=$?
                done
            fi
            rm -rf restored && run 0 "$tsr" decompress -q -r m/cf -o restored
            for word in one three; do
                cat a/* restored/* 2>/dev/null | grep -qx $word || bad "$words: shards with $options: '$word' is lost"
            done
            [ "$first$second" != 00 ] || bad "$words: shards with $options: both end with status 0"
        done
    done
}

one=x.txt other=X.TXT
for kind in '' zero changing paths plain 'plain zero' 'plain changing'; do
    # shellcheck disable=SC2086
    folds case $kind || bad "no mount"
    try_verbs
    unfold
done
one=$(printf 'm\303\244r.txt') other=$(printf 'ma\314\210r.txt') # one letter, and a letter with its accent
for kind in '' changing; do
    # shellcheck disable=SC2086
    folds forms $kind || bad "no mount"
    try_verbs
    unfold
done

# Folders whose names are one; export; what is wrong with neither.
folds case || bad "no mount"
one=x.txt other=X.TXT words="case, more"
try_shards
rm -rf a && mkdir -p a/sub a/SUB && echo one >a/sub/x && echo three >a/SUB/x && echo two >a/SUB/y
run 75 "$tsr" compress -q -r -f --rm a -o m/folders
grep -q 'are one file here' "$err" && [ "$(find a -type f | wc -l)" -eq 2 ] && [ ! -e a/SUB/y ] || bad "folders: $(cat "$err") $(find a)"
rm -rf a && mkdir a && cp "$dicom" a/a.dcm && cp "$dicom" a/A.dcm && run 0 "$tsr" compress -q -r a -o archive2
run 75 "$tsr" export -q -r -f archive2 --to native -o m/exported
grep -q 'are one file here' "$err" && [ "$(find m/exported -type f | wc -l)" -eq 1 ] || bad "export: $(cat "$err")"

# One input by two spellings: one original, two .tsr files elsewhere. --rm takes it once.
mkdir m/in && cp "$text" m/in/x.txt
run 0 "$tsr" compress -q m/in/x.txt m/in/X.TXT -o twice
cmp "$(find twice -name x.txt.tsr)" "$(find twice -name X.TXT.tsr)" || bad "an input of two spellings: $(find twice)"
run 75 "$tsr" compress -q m/in/x.txt m/in/X.TXT
grep -q 'are one file here' "$err" && [ "$(find m/in -type f | wc -l)" -eq 2 ] || bad "two spellings in place: $(cat "$err")"
run 75 "$tsr" compress -q -f --rm m/in/x.txt m/in/X.TXT -o twice
says 'it is the file m/in/x.txt, which this run removes; name it once'
run 0 "$tsr" decompress -q twice/m/in/x.txt.tsr -o back && cmp back "$text" || bad "an original of two spellings is lost"
# In place, again and again.
rm -rf m/in && mkdir m/in && cp "$text" m/in/x.txt && cp "$grey" m/in/y.pgm
for options in '' '' -f --update --update=hash '--update --rm'; do
    case $options in '') wanted_status=0 ;; *) wanted_status=0 ;; esac
    [ -n "$options" ] || [ ! -e m/in/x.txt.tsr ] || wanted_status=75
    # shellcheck disable=SC2086
    run $wanted_status "$tsr" compress -q -r $options m/in
done
[ "$(ls m/in)" = "$(printf 'x.txt.tsr\ny.pgm.tsr')" ] || bad "in place: $(ls m/in)"

# Files that the run writes beside its outputs.
rm -rf m/* a && mkdir m/in a && cp "$text" m/in/m.txt && echo one >a/x.txt
if printf x | sha256sum >/dev/null 2>&1 && "$tsr" compress -q --manifest probe.txt a/x.txt -o probe.tsr 2>/dev/null; then
    refuses 42 'the manifest would overwrite m/in/M.TXT, which this run reads' "$tsr" compress -q -r -f m/in -o out --manifest m/in/M.TXT
    run 42 "$tsr" compress -q -r a -o m/cf --manifest m/cf/X.TXT.TSR
    grep -q 'X.TXT.TSR is not written: it is the file m/cf/x.txt.tsr, which this run has written' "$err" || bad "a manifest in an output's place: $(cat "$err")"
    run 0 "$tsr" test -q m/cf/x.txt.tsr
fi
refuses 42 'the report would overwrite m/in/M.TXT, which this run reads' "$tsr" compress -q -r -f m/in -o out --report m/in/M.TXT
rm -rf m/cf && run 42 "$tsr" compress -q -r a -o m/cf --report m/cf/X.TXT.TSR
grep -q 'X.TXT.TSR is not written: it is the file' "$err" || bad "a report in an output's place: $(cat "$err")"
run 0 "$tsr" test -q m/cf/x.txt.tsr
rm -rf m/cf archive && mkdir m/cf && run 0 "$tsr" compress -q -r a -o archive && : >m/cf/X.TXT
run 42 "$tsr" decompress -q -r -f archive -o m/cf --log m/cf/X.TXT
says 'the log would overwrite m/cf/X.TXT, which this run writes'
grep -q '^[0-9TZ:.-]* [0-9]* tessera ' m/cf/X.TXT || bad "the log was replaced: $(cat m/cf/X.TXT)"
run 42 "$tsr" compress -q -r -f a -o out --log m/cf/LOG --report m/cf/log
says 'm/cf/LOG cannot be both the log and another file'
unfold

# --- Links and mounts.
rm -rf ./a ./out && mkdir a && cp "$text" a/one && ln a/one a/two
for options in '' --update -f '-f --rm'; do
    # shellcheck disable=SC2086
    run 0 "$tsr" compress -q -r $options a -o out
    [ "$(find out -type f | wc -l)" -eq 2 ] || bad "hard links among the inputs: $(ls a out)"
done
[ -z "$(ls a)" ] || bad "--rm of the links of one file: $(ls a)"
few='--rm|--rm --update|--rm -T 1|--rm --update=hash -T 8' many='--rm -T 8|--rm -T 8|--rm -T 8|--rm -T 8'
IFS='|'
for options in $few $many $many $many; do # a name is removed while another one is read
    unset IFS
    rm -rf ./a ./out && mkdir -p a/sub && cp "$text" a/1 && for i in 2 3 4 5 sub/6 sub/7; do ln a/1 a/$i; done && ln a/1 other
    # shellcheck disable=SC2086
    run 0 "$tsr" compress --json -r $options a -o out
    [ -z "$(find a -type f)" ] && [ "$(fields --summary removed)" = 7 ] && cmp -s other "$text" || bad "$options of the links of one file: $(find a) $(fields kept)"
    rm other
    for i in 1 2 3 4 5 sub/6 sub/7; do run 0 "$tsr" cat out/$i.tsr && cmp -s "$out" "$text" || bad "$options of links: out/$i.tsr"; done
done
rm -rf ./a ./out && mkdir a && cp "$text" a/one && ln a/one a/two && run 0 "$tsr" compress -q -r a -o out
rm -rf ./a && run 0 "$tsr" decompress -q -r out -o a && ln -f out/one.tsr out/two.tsr
for options in --update -f '-f --rm'; do
    # shellcheck disable=SC2086
    run 0 "$tsr" compress -q -r $options a -o out # hard links among the outputs
done
[ -z "$(ls a)" ] && [ "$(find out -type f | wc -l)" -eq 2 ] || bad "hard links among the outputs: $(ls a out)"
if [ "$(id -u)" -eq 0 ] && mkdir again && rm -rf a && mkdir a && cp "$text" a/x && mount --bind a again 2>/dev/null; then
    run 0 "$tsr" compress -q -r a again -o bound
    [ "$(find bound -type f | sort | tr '\n' ' ')" = 'bound/a/x.tsr bound/again/x.tsr ' ] || bad "two folders that are one"
    mkdir -p bound2/a bound2/again && mount --bind bound2/a bound2/again && run 75 "$tsr" compress -q -r -f a again -o bound2
    grep -q 'are one file here' "$err" && umount bound2/again || bad "outputs in a folder by two paths: $(cat "$err")"
    run 75 "$tsr" compress -q -r -f a again
    grep -q 'are one file here' "$err" && [ "$(ls a)" = "$(printf 'x\nx.tsr')" ] || bad "a folder by two paths: $(cat "$err") $(ls a)"
    run 75 "$tsr" compress -q -r -f --rm a again
    run 0 "$tsr" decompress -q -f a/x.tsr -o back && cmp back "$text" || bad "a folder by two paths, --rm: $(ls a)"
    cp "$text" a/x && rm a/x.tsr
    for options in '' -f --update; do
        # shellcheck disable=SC2086
        run 0 "$tsr" compress -q -r $options a -o again # the output's folder is the input's
    done
    [ "$(ls a)" = "$(printf 'x\nx.tsr')" ] || bad "an output's folder that is the input's: $(ls a)"
    umount again
fi
# Names that differ by their case alone are two where the file system tells them apart, also with one content and one time.
rm -rf a out && mkdir a && cp "$text" a/x && cp -p a/x a/X
for options in '' --update --update=hash -f '-f --rm'; do
    # shellcheck disable=SC2086
    run 0 "$tsr" compress -q -r $options a -o out
done
[ -z "$(ls a)" ] && [ "$(find out -type f | wc -l)" -eq 2 ] || bad "two names that are two files: $(ls a out)"

# --- --rm asks whether the .tsr is still the one that was proven. The run's lines fill a pipe, so that it waits with all
# files done and some originals not removed yet; meanwhile another file takes a .tsr's place. Of a file of three names one
# goes, and another gets other bytes of the same size and time.
rm -rf a out && mkdir a && mkfifo pipe
i=100
while [ $i -lt 221 ]; do echo "file $i" >a/$i && i=$((i + 1)); done
ln a/220 a/221 && ln a/220 a/222
echo another >another && run 0 "$tsr" compress -q another -o another.tsr
open_pipe
"$tsr" compress --json -r --rm a -o out >pipe 2>"$err" 3<&- &
process=$!
all_made()
{
    [ "$(find out -name '*.tsr' 2>/dev/null | wc -l)" -eq 123 ]
}
awaits $process all_made || bad "not all files are made: $(cat "$err")"
touch -r a/221 time && echo 'FILE 220' >a/221 && touch -r time a/221 && rm a/220
[ -e a/219 ] && [ -e a/218 ] && [ -e a/217 ] || bad "the pipe of this test is too long"
cp another.tsr other && mv other out/219.tsr
cat another.tsr >out/218.tsr
rm out/217.tsr
cat <&3 >"$out"
exec 3<&-
wait $process || bad "--rm with replaced .tsr files: $(cat "$err")"
[ "$(ls a | tr '\n' ' ')" = '217 218 219 221 222 ' ] || bad "--rm has removed originals whose .tsr was replaced: $(ls a)"
[ "$(fields kept | grep -c 'its .tsr was replaced or changed since it was proven')" -eq 3 ] || bad "the reason: $(fields file kept | tail -n 3)"
[ "$(fields kept | grep -c 'it has changed since it was read')" -eq 2 ] || bad "a name of a file that has changed: $(fields file kept | tail -n 3)"
# The same of one that was there, and was compared.
[ "$(fields --summary removed)" = 117 ] || bad "removed: $(fields --summary removed)"

# --- What appears while a run is at work is another run's: neither -f nor --update replaces it, but --update takes it if
# it is of the same file. The only thread waits for the pipe before it comes to the last files: lines are written every
# 0.1 s, and the files before them take longer: 6 s, or 1.5 s on a machine that is four times faster.
{ echo 'P5 1500 1200 255' && while cat "$grey"; do :; done 2>/dev/null | head -c 1800000; } >large.pgm
for options in -f --update; do
    rm -rf a out && mkdir a
    i=100
    while [ $i -lt 500 ]; do echo "file $i" >a/$i && i=$((i + 1)); done
    for i in 490 491 492 493; do ln -f large.pgm a/$i; done
    open_pipe
    # shellcheck disable=SC2086
    "$tsr" compress --json -r -9 -T 1 $options a -o out >pipe 2>"$err" 3<&- &
    process=$!
    awaits $process [ -e out/110.tsr ] || bad "it ended before: $(cat "$err")"
    [ ! -e out/494.tsr ] || bad "the pipe of this test is too long"
    cp another.tsr out/499.tsr && for i in 494 495 496 498; do echo 'no .tsr' >out/$i.tsr; done
    cp a/497 497 && run 0 "$tsr" compress -q 497 -o out/497.tsr
    cat <&3 >"$out"
    exec 3<&-
    wait $process
    [ $? -eq 75 ] || bad "$options replaces what has appeared"
    forget_progress
    cmp another.tsr out/499.tsr && [ "$(cat out/498.tsr)" = 'no .tsr' ] || bad "$options has replaced what has appeared"
    failed=$(fields exit error | grep -c '^41.*has appeared since this run began, and is left as it is$')
    case $options in -f) wanted=6 ;; *) wanted=5 ;; esac
    grep -q "^tessera: $((wanted - 3)) more outputs have appeared since this run began, and are left as they are\$" "$err" && [ "$(wc -l <"$err")" -eq 4 ] || bad "$options, on stderr: $(cat "$err")"
    [ "$failed" -eq $wanted ] || bad "$options and what has appeared: $(fields file exit error | grep -v '0${tab}$' | tail -n 4)"
done

# --- Parts that killed runs leave, on a file system where outputs have names from the start: they are no inputs, and a
# later run removes them. What has such a name and holds something else stays.
folds plain || bad "no mount"
mkdir m/in && mv large.pgm m/in
killed=0
for delay in 0 0.05 0.02 0.15; do
    "$tsr" compress -q -r -9 -T 1 m/in &
    process=$!
    tries=0
    until [ -n "$(find m/in -name '.tessera-*')" ] || [ $tries -ge 2000 ] || ! kill -0 $process; do tries=$((tries + 1)) && sleep 0.005; done 2>/dev/null
    sleep $delay
    kill -KILL $process 2>/dev/null
    wait $process 2>/dev/null
    part=$(find m/in -name '.tessera-*' | head -n 1)
    [ -n "$part" ] || { rm -f m/in/*.tsr && continue; } # it has ended before
    killed=$((killed + 1))
    rm -rf elsewhere && run 0 "$tsr" compress -q -r m/in -o elsewhere
    [ -z "$(find elsewhere -name '.tessera-*')" ] || bad "a part was taken for an input"
    [ -e "$part" ] || bad "a run that writes elsewhere has removed a part"
    run 0 "$tsr" compress -q -r --update m/in
    no_parts m/in
    rm m/in/*.tsr && echo mine >"$part" && touch -d '25 hours ago' "$part"
    echo mine too >m/in/.tessera-deadbeef-1-1.part && touch -d '25 hours ago' m/in/.tessera-deadbeef-1-1.part
    run 0 "$tsr" compress -q -r --update m/in
    [ "$(cat "$part" m/in/.tessera-deadbeef-1-1.part)" = "$(printf 'mine\nmine too')" ] || bad "a user's file was removed by its name"
    [ -e "$part.tsr" ] && [ -e m/in/.tessera-deadbeef-1-1.part.tsr ] || bad "a user's file was left out"
    rm -f m/in/.tessera-* m/in/*.tsr
done
[ $killed -ge 1 ] || bad "no run could be killed over a part"
unfold
finish
