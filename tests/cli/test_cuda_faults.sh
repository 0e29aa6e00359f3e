# If a CUDA call fails, the CPU does the current file, and the set still succeeds: exit status 0, the same bytes, and a
# message. Skipped if there is neither a GPU nor its emulation.
. "${0%/*}/steps.sh"
FAULTY=$BIN/tessera_faulty

"$TESSERA" compress --engine cuda "$DATA/pnm/landscape_grey_8bit.pgm" -o probe.tsr >/dev/null 2>&1 || { echo "skipped: no CUDA engine" && exit 77; }
mkdir in
cp "$DATA/pnm/landscape_grey_8bit.pgm" in/a.pgm
cp "$DATA/pnm/landscape_16bit.ppm" in/b.ppm
cp "$DATA/png/landscape_rgb.png" in/c.png
cp "$DATA/dicom/ct/slice_01.dcm" in/d.dcm
run 0 "$TESSERA" compress -r -q --engine cpu --path transform in -o good
run 0 "$FAULTY" compress -r --json --engine cuda --path transform in -o set
[ "$(fields --summary fallbacks)" = 0 ] || bad "without a fault: $(fields engine fallback)"
gpu=$(fields engine | sort -u)

# says_fallbacks LEAST MOST: LEAST to MOST files must be done by the CPU, with the reason, the others by the GPU.
says_fallbacks()
{
    count=$(fields engine fallback | grep -c "^cpu${tab}the GPU failed: .")
    [ "$count" -ge "$1" ] && [ "$count" -le "$2" ] || bad "$TESSERA_FAULT, $TESSERA_FAULT_CALL: $(fields engine fallback)"
    [ "$(fields engine fallback | grep -c "^$gpu${tab}null")" -eq $((4 - count)) ] || bad "the others: $(fields engine fallback)"
}

# One failure costs one file, or all files of a batch, in compressing and in decompressing.
export TESSERA_FAULT TESSERA_FAULT_AT TESSERA_FAULT_CALL
TESSERA_FAULT=cuda
for TESSERA_FAULT_CALL in cudaMalloc cudaHostRegister cudaMemcpyAsync cudaMemsetAsync 'a launch' cudaEventSynchronize; do
    # Where tests are slow, three of them: test_cuda_failures makes every kind of call fail.
    case ${TSR_TEST_SMALL:+small}$TESSERA_FAULT_CALL in smallcudaHost* | smallcudaMemset* | smallcudaEvent*) continue ;; esac
    case $TESSERA_FAULT_CALL in
    cudaMem* | cudaE*) TESSERA_FAULT_AT=3 ;;
    'a launch') TESSERA_FAULT_AT=20 ;;
    *) TESSERA_FAULT_AT=1 ;;
    esac
    # Some calls happen while CUDA wakes, before any file. They cost no file.
    least=1
    case $TESSERA_FAULT_CALL in
    cudaHostRegister | cudaMalloc | cudaMemset* | 'a launch') least=0 ;;
    esac
    rm -rf set back
    run 0 "$FAULTY" compress -r --json --engine cuda --path transform in -o set
    says_fallbacks $least 2
    diff -r good set || bad "$TESSERA_FAULT_CALL: other bytes"
    run 0 "$FAULTY" test -r --json --engine cuda set
    says_fallbacks $least 2
    run 0 "$FAULTY" decompress -r -q --engine cuda set -o back
    for file in a.pgm b.ppm c.png d.dcm; do cmp in/$file back/$file || bad "$TESSERA_FAULT_CALL: $file comes back wrong"; done
done
TESSERA_FAULT_CALL=cudaEventSynchronize TESSERA_FAULT_AT=3
rm -rf set
run 0 "$FAULTY" compress -r -f --engine cuda --path transform in -o set
grep -q '^  [12] files* by the CPU engine: the GPU failed: ' "$out" || bad "not counted: $(cat "$out")"

# A lasting failure costs all files from then on.
TESSERA_FAULT=cuda_lasting TESSERA_FAULT_CALL='a launch' TESSERA_FAULT_AT=20
rm -rf set
run 0 "$FAULTY" compress -r --json --engine cuda --path transform in -o set
says_fallbacks 3 4
diff -r good set || bad "lasting: other bytes"

# A failure from the start means that there is no GPU. That is an error only with --engine cuda.
TESSERA_FAULT_AT=1
rm -rf set
refuses 70 'no CUDA engine: ' "$FAULTY" compress -r --engine cuda --path transform in -o set
run 0 "$FAULTY" compress --json -1 --path transform in/a.pgm -o a.tsr
[ "$(fields engine)" = cpu ] || bad "auto: $(fields engine)"
finish
