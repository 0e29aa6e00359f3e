#!/bin/sh
# Tests a format of 8-bit grey images: "TOY1", columns and rows in two bytes each, the samples. usage: toy_format.sh BIN WORK
# recipe: A format to read from
set -eu
bin=$1
cd "$2"
{ printf 'TOY1\000\100\000\100' && yes abcdefgh | tr -d '\n' | head -c 4096 && printf 'tail'; } >a.toy
"$bin/tessera" compress -q -f a.toy -o a.tsr
"$bin/tessera" info a.tsr | grep -q 'from  *toy, 4108 bytes'
[ "$("$bin/tessera" info a.tsr | grep -c '^  stored')" -eq 0 ]
"$bin/tessera" decompress -q -f a.tsr -o back.toy
cmp a.toy back.toy
"$bin/tsr_reference" a.tsr reference.toy
cmp a.toy reference.toy
# What is in gzip is found as well: a slope with noise, of 128 x 128 samples.
{ printf 'TOY1\000\200\000\200' && LC_ALL=C awk 'BEGIN { srand(1)
  for (y = 0; y < 128; y++) for (x = 0; x < 128; x++) printf "%c", 1 + int(x / 2 + y / 2 + 9 * rand()) }'; } | gzip -9 -n >a.toy.gz
"$bin/tessera" compress -q -f a.toy.gz -o gz.tsr
"$bin/tessera" info gz.tsr | grep -q 'from  *toy'
"$bin/tessera" decompress -q -f gz.tsr -o back.toy.gz
cmp a.toy.gz back.toy.gz
head -c 2000 a.toy >cut.toy # the input ends before its last sample
"$bin/tessera" compress -q -f cut.toy -o cut.tsr
"$bin/tessera" info cut.tsr | grep -q 'stored  .*: it ends before its last sample'
