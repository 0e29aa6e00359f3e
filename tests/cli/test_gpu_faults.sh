# Verification with the GPU's decoder (--verify cuda) catches the faults that the CPU's catches, and faults of its own.
# Skipped if there is neither a GPU nor its emulation.
. "${0%/*}/steps.sh"
FAULTY=$BIN/tessera_faulty
cp "$DATA/pnm/landscape_grey_8bit.pgm" a.pgm
cp "$DATA/dicom/ct/slice_01.dcm" b.dcm
"$TESSERA" compress --engine cuda -1 a.pgm -o probe.tsr >/dev/null 2>&1 || { echo "skipped: no CUDA engine" && exit 77; }
rm probe.tsr
gpu='--engine cuda --verify cuda -1'

# Without a fault it verifies, and names the decoder.
# shellcheck disable=SC2086
run 0 "$FAULTY" compress --json $gpu a.pgm b.dcm -o good
names=$(fields engine verified_by fallback | sort -u)
[ "$names" = "cuda${tab}cuda${tab}null" ] || [ "$names" = "emulated${tab}emulated${tab}null" ] || bad "by whom: $names"
# shellcheck disable=SC2086
run 0 "$TESSERA" compress -f $gpu a.pgm b.dcm -o good
grep -q 'proven by the GPU, read back .*; what comes back: 2 the same file' "$out" || bad "not said: $(cat "$out")"
run 0 "$TESSERA" compress -1 --engine cpu a.pgm b.dcm -o good.cpu
diff -r good good.cpu || bad "other bytes"
rm -r good.cpu

for fault in reader evaluator disk gpu_encoder gpu_decoder; do
    for file in a.pgm b.dcm; do
        [ -z "${TSR_TEST_SMALL:-}" ] || [ "$file" = a.pgm ] || continue # where tests are slow, the smaller one
        export TESSERA_FAULT=$fault
        # shellcheck disable=SC2086
        refuses 60 'what was written does not decode to what was read: ' "$FAULTY" compress $gpu $file -o out.tsr
        unset TESSERA_FAULT
    done
done
# The CPU's decoder, too, finds what a GPU codes wrong. A GPU that decodes wrong does no harm then.
export TESSERA_FAULT=gpu_encoder
refuses 60 'does not decode' "$FAULTY" compress --engine cuda -1 a.pgm -o out.tsr
export TESSERA_FAULT=gpu_decoder
run 0 "$FAULTY" compress -q --engine cuda -1 a.pgm -o out.tsr
cmp out.tsr good/a.pgm.tsr || bad "the GPU's decoder changes what is written"
rm out.tsr
run 61 "$FAULTY" test --engine cuda good/a.pgm.tsr
unset TESSERA_FAULT

# With loss, too: the GPU decodes to measure the error and to verify.
# shellcheck disable=SC2086
run 0 "$TESSERA" compress --json --engine cuda --verify cuda --qp 20 a.pgm b.dcm -o lossy
run 0 "$TESSERA" compress -q --engine cpu --qp 20 a.pgm b.dcm -o lossy.cpu
diff -r lossy lossy.cpu || bad "with loss: other bytes"
# What the encoder has measured, and what the proof decodes, must be the same: either may be wrong. (The first batch of a
# device loads its kernels.)
export TESSERA_FAULT=gpu_decoder TESSERA_FAULT_AT
for TESSERA_FAULT_AT in 2 3; do
    refuses 60 'does not decode' "$FAULTY" compress --engine cuda --gpu 0 --verify cuda --qp 20 b.dcm -o out.tsr
done
TESSERA_FAULT_AT=2
refuses 60 'does not decode' "$FAULTY" compress --engine cuda --gpu 0 --qp 20 b.dcm -o out.tsr
unset TESSERA_FAULT TESSERA_FAULT_AT

# A series.
# shellcheck disable=SC2086
run 0 "$TESSERA" compress --json $gpu a.pgm b.dcm --series series.tsr
[ "$(fields verified_by | sort -u)" = "${names%%${tab}*}" ] || bad "a series: $(fields verified_by)"

# GPUs by number, and their memory.
# shellcheck disable=SC2086
run 0 "$TESSERA" compress -q $gpu --gpu 0 --gpu-memory 1G a.pgm b.dcm -o bounded
diff -r good bounded || bad "--gpu: other bytes"
refuses 70 'there is no GPU 99' "$TESSERA" compress --gpu 0,99 a.pgm -o out.tsr
# shellcheck disable=SC2086
run 0 "$TESSERA" compress -f $gpu --gpu-memory 10k a.pgm b.dcm -o bounded
grep -q "2 files by the CPU engine: a frame takes more of the GPU's memory" "$out" || bad "not said: $(cat "$out")"
diff -r good bounded || bad "--gpu-memory: other bytes"

# Without a GPU the default verifies with the CPU engine, and reports it.
export CUDA_VISIBLE_DEVICES= TSR_EMULATE_NO_DEVICE=1
run 0 "$TESSERA" compress -1 --verify cuda a.pgm b.dcm -o without
says 'the CPU engine works, and verifies: '
diff -r good without || bad "without a GPU: other bytes"
finish
