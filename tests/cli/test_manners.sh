# What every program should do: help, version, TESSERA_THREADS, colours, --log.
. "${0%/*}/steps.sh"

# VERB -h is VERB --help, which says where all options are.
for verb in $("$TESSERA" help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    run 0 "$TESSERA" "$verb" --help
    cp "$out" wanted
    run 0 "$TESSERA" "$verb" -h
    cmp -s wanted "$out" || bad "$verb -h is not $verb --help"
    tail -n 1 wanted | grep -q "^tessera help $verb and the manual page list all [0-9]* options.$" || bad "$verb --help does not tell of the others"
done
run 2 "$TESSERA" help verfy
says 'did you mean verify'

# What the build can do.
run 0 "$TESSERA" --version
head -1 "$out" | grep -qx 'tessera [0-9.]*' || bad "the first line of --version: $(head -1 "$out")"
for line in 'format: [0-9]*' 'libraries: xxHash [0-9.]*.*' 'engines: cpu.*' 'cpu: plain.*; in use: .*' 'program: cJSON [0-9.]*.*'; do
    grep -qx "$line" "$out" || bad "--version does not say '$line': $(cat "$out")"
done
TESSERA_ISA=plain run 0 "$TESSERA" --version
grep -q 'in use: plain$' "$out" || bad "TESSERA_ISA is not obeyed, or not said"

mkdir in
cp "$DATA/pnm/ramp_16bit.pgm" in/ramp.pgm
cp "$DATA/png/ct_grey16.png" in/screen.png
echo text >in/text.txt

# Threads: the environment's where -T is not given. The dry run says how many it takes.
# threads COUNT ENVIRONMENT [OPTION...]
threads()
{
    count=$1 value=$2
    shift 2
    TESSERA_THREADS=$value run 0 "$TESSERA" compress -r -n in -o out "$@"
    grep -q ", $count threads"  "$out" || bad "TESSERA_THREADS=$value $*: $(cat "$out")"
}
threads 3 3
threads 1 1
threads 2 3 -T 2
TESSERA_THREADS=many run 2 "$TESSERA" compress -r in -o out
says "TESSERA_THREADS .*not 'many'"
[ -e out ] && bad "an output of a run that was refused"
TESSERA_THREADS=0 run 2 "$TESSERA" test in
TESSERA_THREADS=many run 0 "$TESSERA" compress -q -T 1 in/ramp.pgm -o one.tsr
TESSERA_THREADS=many run 0 "$TESSERA" info one.tsr
TESSERA_THREADS='' run 0 "$TESSERA" test one.tsr

# No colour, on a terminal either: nothing of what is written is an escape that sets one.
if can terminal; then
    for colour in '' 1; do
        NO_COLOR=$colour TERM=xterm script -qec "'$TESSERA' compress -r -f -v in -o tty; '$TESSERA' info tty/*; '$TESSERA' verify in nowhere" typed >/dev/null 2>&1
        [ -s typed ] || bad "nothing was said on a terminal"
        grep -q "$(printf '\033')\\[[0-9;]*m" typed && bad "colour on a terminal"
    done
fi

# The log: all lines of both streams, and when the run began and ended.
stamp='^20[0-9][0-9]-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9][0-9][0-9]Z [0-9]* '
run 0 "$TESSERA" compress -r -v in -o logged --log log
cp "$out" told
grep -vq "$stamp" log && bad "a line of the log has no time: $(cat log)"
sed "s/$stamp//" log >plain
head -1 plain | grep -q '^tessera [0-9.]* begins: tessera compress -r -v in -o logged --log log$' || bad "the log does not begin with the command: $(head -1 plain)"
tail -1 plain | grep -q '^tessera ends with status 0 after [0-9.]* s$' || bad "the log does not end with the status: $(tail -1 plain)"
sed -e 1d -e '$d' plain | diff told - || bad "the log is not what was said"
# It is appended to; errors are in it, and what was said is the same without it.
cp in/text.txt in/broken.tsr
run 75 "$TESSERA" test logged in/broken.tsr one.tsr -r --log log
grep "$stamp" log | grep -q 'tessera: in/broken.tsr' || bad "no error in the log: $(cat log)"
[ "$(grep -c ' begins: ' log)" -eq 2 ] || bad "the log was not appended to"
cp "$err" told
run 75 "$TESSERA" test logged in/broken.tsr one.tsr -r
cmp -s told "$err" || bad "with --log something else is said"
rm in/broken.tsr
# Lines of JSON, too; and data on stdout is not touched.
run 0 "$TESSERA" info --json one.tsr --log json.log
grep -q '"file"' json.log || bad "no JSON in the log"
"$TESSERA" compress in/ramp.pgm -o - --log data.log 2>/dev/null | cmp -s - one.tsr || bad "--log changes data on stdout"
grep -q 'bytes' data.log || bad "the talk of -o - is not in the log"
# Several processes share a log; no line is torn.
for i in 1 2 3 4; do "$TESSERA" compress -r -v -f in -o "shared$i" --log shared.log >/dev/null 2>&1 & done
wait
grep -vq "$stamp" shared.log && bad "a torn line in a log of several processes"
[ "$(grep -c 'ends with status 0' shared.log)" -eq 4 ] || bad "not four ends in a log of four processes"
# A signal: the log has the end.
mkdir many && mkfifo pipe
for i in $(seq 20); do cp in/screen.png "many/$i.png"; done
open_pipe $FEW_LINES
"$TESSERA" compress -T 1 -r --json many -o never --log killed.log >pipe 2>/dev/null 3<&- &
victim=$!
awaits $victim grep -q '1.png' killed.log 2>/dev/null || bad "no file in the log"
kill -TERM $victim
wait $victim
[ $? -eq 143 ] || bad "the status after SIGTERM"
grep -q 'tessera: interrupted: ' killed.log || bad "the log does not tell of the signal: $(tail -2 killed.log)"
exec 3<&-
tail -1 killed.log | grep -q 'ends with status 143' || bad "the log does not end with the signal: $(tail -2 killed.log)"

# The progress of a terminal is not in it.
if can terminal; then
    TERM=xterm script -qec "'$TESSERA' compress -9 -T 1 -r -f many missing.pgm -o tty --exclude '[2-9]*' --exclude '1??.png' --log tty.log" typed >/dev/null 2>&1
    grep -q "$(printf '\033')\\[K" typed || bad "no progress on a terminal"
    sed "s/$stamp//" tty.log | sed -e 1d -e '$d' >plain
    grep -q "$(printf '[\r\033]')" plain && bad "the log has the terminal's escapes"
    grep -q '^tessera: .*missing.pgm' plain || bad "no error in the log of a terminal: $(head -c 300 plain)"
    grep -q ' files, ' plain || bad "no summary in the log: $(cat plain)"
fi

# A log in a folder of inputs is no input, and an original is no log.
run 0 "$TESSERA" compress -r in -o out2 --log in/log
run 0 "$TESSERA" compress -r -f in -o out2 --log in/log
[ -e out2/log.tsr ] && bad "the log was compressed"
rm in/log
cp in/text.txt original
run 41 "$TESSERA" compress in/ramp.pgm -o x.tsr --log original
says 'is no log of tessera'
cmp -s in/text.txt original || bad "an original was appended to"
run 42 "$TESSERA" compress in/ramp.pgm -o x.tsr --log x.tsr
[ -e x.tsr ] && grep -q 'would overwrite' x.tsr && rm x.tsr
run 42 "$TESSERA" compress -r in -o out3 --manifest sums --log sums
rm -f sums
run 40 "$TESSERA" compress in/ramp.pgm -o y.tsr --log no/such/log
says 'cannot write the log no/such/log: No such file'
[ -e y.tsr ] && bad "an output of a run that was refused"
mkfifo log.fifo
run 40 "$TESSERA" info one.tsr --log log.fifo
# A disk without room: the work is done, and the status says that the log lacks lines.
if [ -c /dev/full ]; then
    run 40 "$TESSERA" compress in/ramp.pgm -o full.tsr --log /dev/full
    says 'the log /dev/full lacks [0-9]* lines: No space left on device'
    run 0 "$TESSERA" test full.tsr
    run 20 "$TESSERA" test --log /dev/full missing.tsr
fi
(ulimit -f 1 && "$TESSERA" info --json $(yes one.tsr | head -40) --log limited.log >/dev/null 2>told)
[ $? -eq 40 ] && grep -q 'lacks [0-9]* lines*: File too large' told || bad "a log over the limit of files: $(cat told)"
finish
