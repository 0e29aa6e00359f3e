# --engine: which engine codes which files, and how this is reported. Skipped if there is neither a GPU nor its emulation.
. "${0%/*}/steps.sh"

"$TESSERA" compress --engine cuda "$DATA/pnm/landscape_grey_8bit.pgm" -o probe.tsr >/dev/null 2>&1 || { echo "skipped: no CUDA engine" && exit 77; }
mkdir in
cp "$DATA/pnm/landscape_grey_8bit.pgm" in/a.pgm
cp "$DATA/dicom/ct/slice_01.dcm" in/b.dcm

# The transform path runs on the GPU if asked for, with the CPU's bytes.
for coder in huffman cavlc rans; do
    for engine in cpu cuda; do
        run 0 "$TESSERA" compress -r --json --engine $engine -1 --path transform --coder $coder in -o $coder.$engine
        names=$(fields engine fallback | sort -u)
        case $engine in
        cpu) [ "$names" = "cpu${tab}null" ] || bad "$engine: $names" ;;
        *) [ "$names" = "cuda${tab}null" ] || [ "$names" = "emulated${tab}null" ] || bad "$engine: $names" ;;
        esac
        [ "$(fields --summary fallbacks)" = 0 ] || bad "fallbacks: $(tail -n 1 "$out")"
    done
    diff -r $coder.cpu $coder.cuda || bad "$coder: the engines' bytes differ"
done

# Both engines meet targets with the same codings, even if a frame has two QPs.
for options in '--psnr 40' '-1 --psnr 44.7' '-1 --size 21:1'; do
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -r -q -f --engine cpu $options in -o target.cpu
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -r -q -f --engine cuda $options in -o target.cuda
    diff -r target.cpu target.cuda || bad "$options: the engines' bytes differ"
done

# So does the predictive path. By default two files do not wait for a GPU.
run 0 "$TESSERA" compress -r --json --engine cuda in -o predict
names=$(fields engine fallback | sort -u)
[ "$names" = "cuda${tab}null" ] || [ "$names" = "emulated${tab}null" ] || bad "predict: $names"
gpu=$names
run 0 "$TESSERA" compress -r --json in -o predict_auto
[ "$(fields engine fallback | sort -u)" = "cpu${tab}null" ] || bad "auto: $(fields engine fallback)"
diff -r predict predict_auto || bad "predict: the engines' bytes differ"

# Many bytes are worth the wait: by default they go to the GPU if it is faster than the threads, here one. That one codes
# until the GPU is awake. The first file grows until it takes longer.
mkdir many
cp in/* many
lines=8500000 # 67 MB; -1 wakes a GPU from 56 MB a thread on
seq $lines >many/0text
for options in '--path predict' '--path transform --coder cavlc'; do
    while :; do
        # shellcheck disable=SC2086
        run 0 "$TESSERA" compress -r -f --json -T 1 -1 $options many -o many.auto
        names=$(fields engine | sort -u | tr '\n' ' ')
        case $names in cpu*) [ $lines -lt 30000000 ] || break ;; *) break ;; esac
        lines=$((lines * 4)) && seq $lines >many/0text
    done
    [ "$names" = "cuda null " ] || [ "$names" = "emulated null " ] || bad "auto, many bytes: $names"
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -r -q --engine cpu -1 $options many -o many.cpu
    diff -r many.cpu many.auto || bad "$options: auto's bytes differ"
    rm -r many.auto many.cpu
done

# Bounded errors run on the GPU, too.
run 0 "$TESSERA" compress -r -q --engine cpu --max-error 2 in -o bounded.cpu
run 0 "$TESSERA" compress -r --json --engine cuda --max-error 2 in -o bounded
[ "$(fields engine fallback | sort -u)" = "$gpu" ] || bad "bounded: $(fields engine fallback)"
diff -r bounded.cpu bounded || bad "bounded: the engines' bytes differ"

# Samples of 32 bits do not run on the GPU: this is counted, with the reason.
mkdir halves
cp "$DATA"/dicom/samples/32bit_*.dcm halves
run 0 "$TESSERA" compress -r --json --engine cuda halves -o halves.out
[ "$(fields engine | sort -u)" = cpu ] || bad "32 bits: $(fields engine)"
fields fallback | grep -q null && bad "no reason: $(fields fallback)"
[ "$(fields --summary engine fallbacks)" = "cpu${tab}2" ] || bad "summary: $(tail -n 1 "$out")"
run 0 "$TESSERA" compress -r -f --engine cuda halves -o halves.out
grep -q '^  2 files by the CPU engine: ' "$out" || bad "not counted: $(cat "$out")"

# Decoding runs on the GPU if asked for, with both paths. By default files do not wait for a GPU.
for set in huffman.cuda cavlc.cuda predict; do
    run 0 "$TESSERA" test -r --json --engine cuda $set
    names=$(fields engine fallback | sort -u)
    [ "$names" = "cuda${tab}null" ] || [ "$names" = "emulated${tab}null" ] || bad "test $set: $names"
    run 0 "$TESSERA" decompress -r --engine cuda $set -o back.$set
    diff -r in back.$set || bad "what comes back of $set differs"
done
run 0 "$TESSERA" test -r --json huffman.cuda
[ "$(fields engine fallback | sort -u)" = "cpu${tab}null" ] || bad "test, auto: $(fields engine fallback)"

# Without a GPU the default is the CPU engine, and -v says why.
export CUDA_VISIBLE_DEVICES= TSR_EMULATE_NO_DEVICE=1
run 0 "$TESSERA" compress -r -v -T 1 -1 --path transform many -o without
says 'the CPU engine works: '
rm without/0text.tsr
diff -r without huffman.cpu || bad "without a GPU: other bytes"
finish
