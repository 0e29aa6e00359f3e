#!/bin/sh
# Tests a node over bytes: after the mark "SUM", each byte is the sum of the plain bytes up to it. usage: toy_node.sh BIN WORK
# recipe: A node over bytes
# targets: test_packed
set -eu
bin=$1
cd "$2"
"$bin/test_packed"
# Plain bytes are 0 to 3: two bits each. Their sums look like noise.
LC_ALL=C awk 'BEGIN {
  srand(1)
  printf "SUM"
  for (i = 0; i < 16384; i++) {
    sum = (sum + int(4 * rand())) % 256
    printf "%c", sum
  }
}' >a.sum
[ "$(wc -c <a.sum)" -eq 16387 ]
"$bin/tessera" compress -q -f a.sum -o a.tsr
[ "$(wc -c <a.tsr)" -lt 5000 ]
"$bin/tessera" info a.tsr | grep -q '^  coded'
"$bin/tessera" decompress -q -f a.tsr -o back.sum
cmp a.sum back.sum
"$bin/tsr_reference" a.tsr reference.sum
cmp a.sum reference.sum
LC_ALL=C sed '1s/^SUM/sum/' a.sum >other.sum # without its mark, no finder uses the node
"$bin/tessera" compress -q -f other.sum -o other.tsr
[ "$(wc -c <other.tsr)" -gt 8000 ]
