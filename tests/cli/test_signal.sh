# A signal during work, even SIGKILL, leaves no part of an output and no incomplete output.
. "${0%/*}/steps.sh"
mkdir in && mkfifo pipe
# 8 MiB of noise under many names take seconds of work.
cp "$DATA/pnm/noise_rgb.ppm" noise
while [ "$(bytes_of noise)" -lt 8388608 ]; do cat noise noise noise noise >more && mv more noise; done
{ echo "P5 4096 2048 255" && head -c 8388608 noise; } >in/0.pgm
rm noise
i=1
while [ $i -lt 60 ]; do ln in/0.pgm in/$i.pgm && i=$((i + 1)); done

# run_until_work FOLDER: begins to compress into the folder, and waits for a first output. The pipe of its lines is full
# after few of them: the run does not end before the signal.
run_until_work()
{
    open_pipe $FEW_LINES
    "$TESSERA" compress --json -r -T 2 --engine cpu in -o "$1" >pipe 2>"$err" 3<&- &
    process=$!
    awaits $process has_output "$1"
}
has_output() # FOLDER
{
    [ "$(find "$1" -type f ! -name '.*' 2>/dev/null)" ]
}

for try in INT:130 TERM:143 HUP:129 QUIT:131 USR1:138 USR2:140 ALRM:142 XCPU:152 KILL:137; do
    signal=${try%:*} status=${try#*:}
    rm -rf made && mkdir made
    run_until_work made
    kill -s $signal $process 2>/dev/null || bad "it ended before the signal"
    wait $process 2>/dev/null
    got=$?
    exec 3<&-
    [ $got -eq "$status" ] || bad "exit status $got after SIG$signal, not $status"
    # A killed process leaves no part where files need no name until they are linked by /proc.
    [ $signal = KILL ] && ! can proc && rm -f made/.tessera-*
    no_parts .
    count=$(find made -type f | wc -l)
    [ "$count" -ge 1 ] && [ "$count" -le 60 ] || bad "$count of 60 outputs"
    run 0 "$TESSERA" test -r -q made
    [ "$(find in -type f | wc -l)" -eq 60 ] || bad "inputs are gone"
done

# A series has no name before it is complete: a signal says so, and a series that was there stays.
for try in INT:130 TERM:143; do
    echo 'an older one' >series.tsr
    "$TESSERA" compress -q -r -f -T 1 --engine cpu --progress=json in --series series.tsr >"$out" 2>"$err" &
    process=$!
    awaits $process [ -s "$err" ]
    kill -s ${try%:*} $process 2>/dev/null || bad "the series ended before the signal"
    wait $process 2>/dev/null
    got=$?
    [ $got -eq "${try#*:}" ] || bad "exit status $got of a series after SIG${try%:*}"
    grep -v '^{"progress":true' "$err" >"$WORK/said" && mv "$WORK/said" "$err"
    says '^tessera: interrupted: no series was written to series.tsr; the same command begins anew$'
    no_parts .
    [ "$(cat series.tsr)" = 'an older one' ] || bad "an interrupted series has replaced an older one"
done

# decompress goes on, too.
run 0 "$TESSERA" compress -q -r --include '1*.pgm' --exclude '*' in -o archive
open_pipe $FEW_LINES
"$TESSERA" decompress --json -r -T 1 archive -o back >pipe 2>"$err" 3<&- &
process=$!
awaits $process has_output back
kill -s INT $process 2>/dev/null || bad "decompress ended before the signal"
wait $process 2>/dev/null
exec 3<&-
says '^tessera: interrupted: [0-9]* of 11 files are done; the same command with --update goes on$'
run 0 "$TESSERA" decompress -r --update archive -o back
grep -q ' done before$' "$out" && [ "$(find back -name '*.pgm' | wc -l)" -eq 11 ] && no_parts back || bad "decompress goes on: $(cat "$out")"

# A user's files whose names look like those of parts, of this version or another, stay whatever their age, and are inputs
# as others. (On this system files have no name until they are complete. Parts of killed runs: test_names.sh.)
rm -rf in/* made
cp "$DATA/pnm/landscape_grey_8bit.pgm" in/a.pgm
for name in .tessera-deadbeef-1-1.part .tessera-00000000-1-2.part .tessera-00000000-1-3.part.old; do
    cp in/a.pgm "in/$name" && touch -d '25 hours ago' "in/$name"
done
cp in/a.pgm in/.tessera-deadbeef-1-1-0123456789abcdef.part && touch -d '2 days ago' in/.tessera-deadbeef-1-1-0123456789abcdef.part
run 0 "$TESSERA" compress -r in
[ "$(find in -name '*.part*' ! -name '*.tsr' | wc -l)" -eq 4 ] || bad "a user's file was removed: $(ls -A in)"
[ "$(find in -name '*.tsr' | wc -l)" -eq 5 ] || bad "a user's file was left out: $(ls -A in)"

# If a file may not grow, the write fails, but the process is not killed.
(ulimit -f 8 && exec "$TESSERA" compress -r in -o full) >"$out" 2>"$err"
[ $? -eq 75 ] || [ $? -eq 40 ] || bad "exit status with a limit of file sizes: $(cat "$err")"
finish
