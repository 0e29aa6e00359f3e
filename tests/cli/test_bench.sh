# tessera-bench: every family runs and checks its outputs, and reports this as text, as JSON and as a plot. It notices wrong
# rows.
. "${0%/*}/steps.sh"
case $0 in
/*) expected=${0%/*}/expected ;;
*) expected=$OLDPWD/${0%/*}/expected ;;
esac
BENCH=$BIN/tessera-bench
PROGRAM=tessera-bench # its errors begin with this name
FAULTY=$BIN/tessera-bench_faulty
cp "$DATA/pnm/landscape_grey_8bit.pgm" a.pgm
cp "$DATA/png/landscape_rgb.png" b.png
cp "$DATA/pnm/chest_10bit.pgm" c.pgm

# well_formed FILE: is it well-formed XML? Uses Python's parser if there is Python.
well_formed()
{
    [ "$(head -c 5 "$1")" = '<?xml' ] && [ "$(tail -n 1 "$1")" = '</svg>' ] || bad "$1 is no whole SVG"
    command -v python3 >/dev/null || return 0
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1" 2>/dev/null || bad "$1 is not well-formed"
}

# all_right: every line of $out except the first and the last is a measurement with a right output.
all_right()
{
    [ "$(head -n 1 "$out" | "$BIN/tsr_read_json" run)" = true ] || bad "the first line does not describe the run"
    fields output | sed 1d >"$WORK/outputs"
    grep -q '^right$' "$WORK/outputs" || bad "no output was compared"
    grep -v '^right$\|^-$' "$WORK/outputs" && bad "outputs that are not right"
    [ "$(fields --summary wrong failed)" = "0${tab}0" ] || bad "summary: $(tail -n 1 "$out")"
    [ "$(fields --summary measured)" -ge "$(fields kind | grep -c code)" ] || bad "summary: $(tail -n 1 "$out")"
}

run 0 "$BENCH" --help
diff "$expected/bench_help.txt" "$out" || bad "another help"

for family in vle rle cavlc hiding; do
    run 0 "$BENCH" $family --quick
    grep -q 'measurements, all outputs right$' "$out" || bad "$family: no last line"
    grep -q '  encode  CPU' "$out" || bad "$family: no CPU row"
    [ -s "$err" ] && bad "words on stderr: $(cat "$err")"
    run 0 "$BENCH" $family --quick --json --plot $family.svg
    all_right
    fields kind row | sed 1d | grep -q '^encode' || bad "$family: no encoder"
    fields kind row | sed 1d | grep -q '^decode' || bad "$family: no decoder"
    well_formed $family.svg
    grep -q '<polyline' $family.svg || bad "$family: no lines in the plot"
    run 0 "$BENCH" $family --quick --policies --json
    all_right
    run 0 "$BENCH" $family --json --repeat 2 --qp 30 --plot files.svg --files a.pgm b.png c.pgm
    all_right
    well_formed files.svg
done
run 0 "$BENCH" vle --json --repeat 1 --sizes 0.01,0.1 --entropies 2,5
[ "$(fields workload | sed 1d | sort -u | wc -l)" -eq 4 ] || bad "not four workloads: $(fields workload)"
# Inputs have the entropies that were asked for.
fields workload entropy | awk '/0.1 MiB of entropy/ { d = $(NF - 1) - $NF; if (d > 0.02 || d < -0.02) exit 1 }' ||
    bad "entropies: $(fields workload entropy)"
run 0 "$BENCH" rle --json --repeat 1 --sizes 0.2 --runs 3
[ "$(fields symbol_bits | sed 1d | sort -un | tr '\n' ' ')" = '8 16 32 ' ] || bad "symbols: $(fields symbol_bits)"
fields mean_run | sed 1d | awk '$1 < 2.9 || $1 > 3.1 { exit 1 }' || bad "mean runs: $(fields mean_run)"
run 0 "$BENCH" cavlc --json --repeat 1 --formats qcif --qp 24
fields qp blocks | sed 1d | grep -v "^24${tab}79200\$" && bad "blocks of 50 frames: $(fields qp blocks)"

# Large inputs: references are made in parts, and CPU rows do only the beginning, as their shares say. An emulated GPU is too
# slow for this.
run 0 "$BENCH" rle --json --quick
gpu=$(fields gpu | head -n 1)
if [ "$gpu" != emulated ]; then
    for words in 'vle --sizes 17.3 --entropies 3' 'rle --sizes 17.3 --runs 5' 'cavlc --formats 720p --qp 40'; do
        # shellcheck disable=SC2086 # words
        run 0 "$BENCH" $words --json --repeat 1
        all_right
        fields on_device input_bytes row_input_bytes | sed 1d |
            awk '$1 != "true" && ($3 > 16 * 2 ^ 20 || $3 < 15 * 2 ^ 20 || $2 < $3 + 2 ^ 20) { exit 1 }' ||
            bad "$words: $(fields input_bytes row_input_bytes)"
    done
    # A single run that is longer than the CPU rows' share of the input is not cut.
    run 0 "$BENCH" rle --json --repeat 1 --sizes 17 --runs 1e9
    all_right
fi

# A form of the CPU engine can be demanded, and is right.
for isa in plain avx2; do run 0 "$BENCH" engine --quick --isa $isa; done

# A plot with many panels has all of them, as an image and as a page.
run 0 "$BENCH" rle --quick --repeat 1 --sizes 0.01,0.02,0.03 --plot full.svg --html full.html
well_formed full.svg
grep -q '<svg' full.html && grep -q '</html>' full.html || bad "the page has no plots"

# A film: only its luma, frame by frame.
{
    printf 'YUV4MPEG2 W20 H12 F25:1 C420jpeg\n'
    for frame in 1 2 3; do
        printf 'FRAME\n'
        head -c 360 "$DATA/other/random.bin"
    done
} >film.y4m
run 0 "$BENCH" cavlc --json --repeat 1 --qp 0,20 --files film.y4m
all_right
fields blocks | sed 1d | grep -vx 96 && bad "blocks of the film: $(fields blocks)"

# Stills of one size are one workload.
run 0 "$BENCH" cavlc --json --repeat 1 --qp 20 --files a.pgm c.pgm a.pgm
[ "$(fields kind workload | grep -c '^encode')" -ge 2 ] || bad "workloads of stills: $(fields workload)"
fields workload | grep -q 'cavlc: 2 stills of 320 x 240' || bad "two stills are not one workload: $(fields workload)"

# Invalid words.
refuses 2 'vle, rle, cavlc' "$BENCH" entropy
refuses 2 'no family is named' "$BENCH"
refuses 2 'files' "$BENCH" vle --files
refuses 2 'files' "$BENCH" vle a.pgm
refuses 2 'entropies' "$BENCH" vle --entropies 9
refuses 2 'sizes' "$BENCH" vle --sizes 1,x
refuses 2 'runs' "$BENCH" rle --runs 0.5
refuses 2 'repeat' "$BENCH" rle --repeat 0
refuses 2 'formats' "$BENCH" cavlc --formats qcif,8k
refuses 2 'qp' "$BENCH" cavlc --qp 52
refuses 2 'plain, avx2 or avx512' "$BENCH" engine --isa avx
refuses 20 'missing' "$BENCH" vle --files missing
refuses 20 'not an image' "$BENCH" rle --files "$DATA/other/text.txt"
run 40 "$BENCH" vle --quick --plot no/such/folder.svg
says 'cannot write no/such/folder.svg'

# Rows that write wrong output, or none.
if [ -x "$FAULTY" ]; then
    run 0 "$FAULTY" vle --quick
    for fault in bench_encoder bench_decoder; do
        export TESSERA_FAULT=$fault
        for family in vle rle; do
            run 1 "$FAULTY" $family --quick
            grep -q ' WRONG ' "$out" || bad "$family, $fault: no row is WRONG"
            grep -q ', [1-9][0-9]* WRONG, 0 failed$' "$out" || bad "$family, $fault: $(tail -n 1 "$out")"
            run 1 "$FAULTY" $family --quick --json
            fields output | grep -q '^wrong$' || bad "$family, $fault: not in JSON"
        done
        for family in cavlc hiding; do run 1 "$FAULTY" $family --quick; done
        [ "$gpu" != emulated ] || continue
        run 1 "$FAULTY" vle --repeat 1 --sizes 1.2 --entropies 2
        run 1 "$FAULTY" rle --repeat 1 --sizes 1.2 --runs 2
    done
    TESSERA_FAULT=bench_bit run 1 "$FAULTY" vle --quick
    grep -q 'encode  CPU.* WRONG ' "$out" || bad "a wrong bit of the CPU's is not its fault"
    unset TESSERA_FAULT
else
    echo "no faulty program in this build"
fi
finish
