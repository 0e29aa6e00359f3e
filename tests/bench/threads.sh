#!/bin/sh
# The gain of a second thread: compresses a folder, without and with verification, and decompresses it, with one thread and
# with two in turn. Prints medians of five. usage: threads.sh BUILD FOLDER
set -eu
tessera=$1/bin/tessera
folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

wall() { "$@" --json | sed -n 's/.*"summary":true.*"wall_s":\([0-9.]*\).*/\1/p'; }
median() { sort -n | sed -n 3p; }
"$tessera" compress -q -r -o "$work/packed" "$folder"
for run in 1 2 3 4 5; do
  for t in 1 2; do
    wall "$tessera" compress -r -f --verify none -T $t -o "$work/none" "$folder" >>"$work/compress.$t"
    wall "$tessera" compress -r -f -T $t -o "$work/cpu" "$folder" >>"$work/verified.$t"
    wall "$tessera" test -r -T $t "$work/packed" >>"$work/test.$t"
  done
done
for what in compress verified test; do
  one=$(median <"$work/$what.1")
  two=$(median <"$work/$what.2")
  echo "$what $one $two" | awk '{ printf "%-10s one thread %6.2f s   two %6.2f s   %.2f x\n", $1, $2, $3, $2 / $3 }'
done
