#!/bin/sh
# Whole files: the CUDA engine writes the bytes of the CPU engine. All coders, without loss and at several QPs at levels 1
# and 5, at the first QP where other tools begin, and path P at several levels; each file says in --json
# which engine wrote its payload, and what the GPU left to the CPU is counted.
# usage: same_files.sh TESSERA FOLDER [QP...]    exit 77: no CUDA device
set -eu
tessera=$1
folder=$2
shift 2
[ $# -gt 0 ] || set -- 10 20 30 40
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$tessera" compress --engine cuda "$0" -o "$work/probe.tsr" >/dev/null 2>&1 || { echo "skipped: no CUDA engine"; exit 77; }

# encode NAME OPTIONS...: both engines, compared. Files that are never coded with loss are coded without.
bad=0
encode()
{
    name=$1
    shift
    for engine in cpu cuda; do
        rm -rf "$work/$engine"
        status=0
        "$tessera" compress -r --json --verify none --allow-lossy --engine $engine "$@" -o "$work/$engine" "$folder" >"$work/$engine.json" 2>"$work/$engine.err" || status=$?
        [ $status -eq 0 ] || { echo "$name: $engine: exit $status"; tail -n 3 "$work/$engine.err"; bad=1; }
    done
    diff -r "$work/cpu" "$work/cuda" >"$work/diff" || { echo "$name: the engines differ:"; head -n 5 "$work/diff"; bad=1; }
    files=$(grep -c '"engine":"' "$work/cuda.json") || true
    on_gpu=$(grep -cE '"engine":"(cuda|emulated)"' "$work/cuda.json") || true
    echo "$name: $((files - 1)) files, $((on_gpu > 0 ? on_gpu : 0)) lines name the GPU's engine"
    grep -o '"fallback":"[^"]*"' "$work/cuda.json" | sort | uniq -c | sed 's/^/    /' || true
    [ "$on_gpu" -gt 0 ] || { echo "$name: nothing ran on the GPU"; bad=1; }
}

for coder in huffman cavlc rans; do
    for level in 1 5; do
        encode "lossless $coder, level $level" -$level --path transform --coder $coder
        for qp in "$@"; do encode "QP $qp $coder, level $level" -$level --qp "$qp" --coder $coder; done
    done
    for level in 2 7; do encode "QP $1 $coder, level $level" -$level --qp "$1" --coder $coder; done
done
encode "lossless cavlc, path P" --path predict --coder cavlc
for level in 1 2 3 5 7 9; do
    encode "lossless, predicted, level $level" -$level --path predict --coder huffman
done
encode "lossless, predicted, rANS" -6 --path predict --coder rans
[ $bad -eq 0 ] && echo "all files are the same from both engines"
exit $bad
