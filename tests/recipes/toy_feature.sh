#!/bin/sh
# A 31st neighbour, four rows up and two columns to the left, of efforts 8 and 9. usage: toy_feature.sh BIN WORK
# recipe: A predictor's tap
# targets: test_predictor test_residuals_cpu
set -eu
bin=$1
cd "$2"
"$bin/test_predictor"
"$bin/test_residuals_cpu"
# Each sample is the one four rows up and two columns to the left, or close to it: nothing else tells anything about it.
{
  printf 'P5\n256 256\n255\n'
  LC_ALL=C awk 'BEGIN {
    srand(1)
    for (y = 0; y < 256; y++) for (x = 0; x < 256; x++) {
      v = y < 4 || x < 2 ? 1 + int(255 * rand()) : s[y - 4, x - 2] + int(4 * rand()) - 2
      s[y, x] = v < 1 ? 1 : v > 255 ? 255 : v
      printf "%c", s[y, x]
    }
  }'
} >a.pgm
[ "$(wc -c <a.pgm)" -eq 65551 ]
for effort in 8 9; do
  "$bin/tessera" compress -q -f -$effort a.pgm -o a.tsr
  [ "$(wc -c <a.tsr)" -lt 25000 ]
  "$bin/tessera" decompress -q -f a.tsr -o back.pgm
  cmp a.pgm back.pgm
  "$bin/tsr_reference" a.tsr reference.pgm
  cmp a.pgm reference.pgm
  for isa in plain avx2; do # forms that this processor lacks stand back for the next one
    TESSERA_ISA=$isa "$bin/tessera" compress -q -f -$effort a.pgm -o other.tsr
    cmp a.tsr other.tsr
  done
done
"$bin/tessera" compress -q -f -7 a.pgm -o a.tsr # its 18 neighbours do not reach so far
[ "$(wc -c <a.tsr)" -gt 50000 ]
