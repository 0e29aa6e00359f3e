# A call of CUDA's that fails costs the file being worked on the GPU, and no set its success: exit status 0, the same bytes,
# and it is said. Skipped where there is neither a GPU nor its emulation.
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

# says_fallbacks LEAST MOST: so many files are the CPU's, with the reason, the others the GPU's.
says_fallbacks()
{
    count=$(fields engine fallback | grep -c "^cpu${tab}the GPU failed: .")
    [ "$count" -ge "$1" ] && [ "$count" -le "$2" ] || bad "$TESSERA_FAULT, $TESSERA_FAULT_CALL: $(fields engine fallback)"
    [ "$(fields engine fallback | grep -c "^$gpu${tab}null")" -eq $((4 - count)) ] || bad "the others: $(fields engine fallback)"
}

# Once: one file (of those that the engine works on together, all), both ways.
export TESSERA_FAULT TESSERA_FAULT_AT TESSERA_FAULT_CALL
TESSERA_FAULT=cuda
for TESSERA_FAULT_CALL in cudaMalloc cudaHostRegister cudaMemcpyAsync cudaMemsetAsync 'a launch' cudaEventSynchronize; do
    case $TESSERA_FAULT_CALL in
    cudaMem* | cudaE*) TESSERA_FAULT_AT=3 ;;
    'a launch') TESSERA_FAULT_AT=20 ;;
    *) TESSERA_FAULT_AT=1 ;;
    esac
    # Some of the calls are made while CUDA wakes, for files to come, and cost none of them anything.
    least=1 least_coding=1
    case $TESSERA_FAULT_CALL in
    cudaHostRegister) least=0 least_coding=0 ;;
    cudaMalloc | cudaMemset* | 'a launch') least_coding=0 ;;
    esac
    rm -rf set back
    run 0 "$FAULTY" compress -r --json --engine cuda --path transform in -o set
    says_fallbacks $least_coding 2
    diff -r good set || bad "$TESSERA_FAULT_CALL: other bytes"
    run 0 "$FAULTY" test -r --json --engine cuda set
    says_fallbacks $least 2
    run 0 "$FAULTY" decompress -r -q --engine cuda set -o back
    for file in a.pgm b.ppm d.dcm; do cmp in/$file back/$file || bad "$TESSERA_FAULT_CALL: $file comes back wrong"; done
    "$BIN/tsr_same_png" in/c.png back/c.png || bad "$TESSERA_FAULT_CALL: c.png comes back wrong"
done
rm -rf set
run 0 "$FAULTY" compress -r -f --engine cuda --path transform in -o set
grep -q '^  [12] files* by the CPU engine: the GPU failed: ' "$out" || bad "not counted: $(cat "$out")"

# For good: from then on all files.
TESSERA_FAULT=cuda_lasting TESSERA_FAULT_CALL='a launch' TESSERA_FAULT_AT=20
rm -rf set
run 0 "$FAULTY" compress -r --json --engine cuda --path transform in -o set
says_fallbacks 3 4
diff -r good set || bad "lasting: other bytes"

# From the beginning: there is no GPU, which is the end by demand only.
TESSERA_FAULT_AT=1
rm -rf set
refuses 70 'no CUDA engine: ' "$FAULTY" compress -r --engine cuda --path transform in -o set
run 0 "$FAULTY" compress -r --json -1 --path transform in/a.pgm -o a.tsr
[ "$(fields engine)" = cpu ] || bad "auto: $(fields engine)"
finish
