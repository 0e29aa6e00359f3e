#!/bin/sh
# Whole files: the CUDA engine must write the bytes of the CPU engine, and restore the input from them. A line for each
# coding gives the number of coded files, by engine (from --json), and the GPU's share of their samples. The reasons of
# fallbacks to the CPU follow at the end. Files that are never coded with loss are coded without loss.
# usage: same_files.sh TESSERA FOLDER [QP...]    exit 77: no CUDA device
#
# Environment:
#   TSR_SAME      some: all coders at a few efforts, and --tune ssim                                        some
#                 all: at every effort, also targets and bounded errors
#   TSR_SAME_JOBS codings at the same time                                                                 2
#   TSR_SAME_WORDS more words for the CUDA engine, such as --gpu 0,1                                       none
set -eu
tessera=$1
folder=$2
shift 2
[ $# -gt 0 ] || set -- 10 20 30 40
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$tessera" compress --engine cuda "$0" -o "$work/probe.tsr" >/dev/null 2>&1 || { echo "skipped: no CUDA engine"; exit 77; }

# tell JSON: the numbers of files; of those coded, by the GPU, by both, by the CPU; bytes of samples coded, and by the GPU alone.
tell()
{
    awk '
        function text(key) { return match($0, "\"" key "\":\"[^\"]*\"") ? substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 5) : "" }
        function number(key) { return match($0, "\"" key "\":[0-9]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) : 0 }
        /^{"summary"/ { next }
        { files++; engine = text("engine") }
        engine == "" { next }
        { coded++; by[engine]++; bytes += number("pixel_bytes") }
        engine == "cuda" || engine == "emulated" { own += number("pixel_bytes") }
        END { printf "%d %d %d %d %d %.0f %.0f\n", files, coded, by["cuda"] + by["emulated"], by["mixed"], by["cpu"], bytes, own }
    ' "$1"
}

# encode NUMBER NAME OPTIONS...: encodes with both engines, compares, and decodes with the CUDA engine. Some files may not
# reach a target; then both engines must fail on them.
encode()
{
    at=$work/$1 name=$2
    shift 2
    mkdir "$at"
    faults=
    for engine in cpu cuda; do
        words=
        [ $engine = cpu ] || words=${TSR_SAME_WORDS:-}
        status=0
        # shellcheck disable=SC2086 # words
        "$tessera" compress -r --json --verify none --allow-lossy --engine $engine $words "$@" -o "$at/$engine" "$folder" >"$at/$engine.json" 2>"$at/$engine.err" || status=$?
        echo $status >"$at/$engine.status"
        case $name-$status in
        *-0 | target*-75) ;;
        *) faults="$faults; $engine: exit $status: $(tail -n 1 "$at/$engine.err")" ;;
        esac
    done
    cmp -s "$at/cpu.status" "$at/cuda.status" || faults="$faults; other exit statuses"
    diff -r "$at/cpu" "$at/cuda" >"$at/diff" 2>&1 || faults="$faults; the engines differ: $(head -n 3 "$at/diff" | tr '\n' ' ')"
    status=0
    # shellcheck disable=SC2086 # words
    "$tessera" test -r --json --engine cuda ${TSR_SAME_WORDS:-} "$at/cuda" >"$at/test.json" 2>"$at/test.err" || status=$?
    [ $status -eq 0 ] || faults="$faults; test: exit $status: $(tail -n 1 "$at/test.err")"
    # shellcheck disable=SC2046 # numbers
    set -- $(tell "$at/cuda.json") $(tell "$at/test.json")
    case $name in
    *'predicted tiles'*) ;; # the GPU leaves them to the CPU
    *)
        [ "$3" -gt 0 ] || faults="$faults; nothing ran on the GPU"
        [ "${10}" -gt 0 ] || faults="$faults; nothing was decoded on the GPU"
        ;;
    esac
    printf '%-40s %5d coded of %d: %5d GPU, %3d both, %4d CPU, %5.1f %% of the samples; decoded: %5d GPU, %3d both, %4d CPU%s\n' \
        "$name" "$2" "$1" "$3" "$4" "$5" "$(awk "BEGIN { print $6 ? 100 * $7 / $6 : 0 }")" "${10}" "${11}" "${12}" "${faults:+ FAILED$faults}" >"$at.line"
    for way in cuda test; do
        { grep -o '"fallback":"[^"]*"' "$at/$way.json" || true; } | sed "s/^\"fallback\":/$([ $way = cuda ] && echo encoding || echo decoding): /" >>"$at.reasons"
    done
    echo "$3 $5 $4 ${10} ${12} ${11} $6 $7" >"$at.sums"
    rm -rf "$at"
    cat "$at.line"
}

# ways EFFORT CODER: the end of a lossy coding's name, if its frames may have predicted tiles.
ways() { [ "$1" -lt 8 ] || [ "$2" = cavlc ] || echo ", predicted tiles"; }

# The codings, one a line: the name, a semicolon, the options.
list_codings()
{
    if [ "${TSR_SAME:-some}" = all ]; then
        for effort in 1 2 3 4 5 6 7 8 9; do
            for coder in huffman cavlc rans; do
                echo "path P, $coder, effort $effort; -$effort --path predict --coder $coder"
                echo "path T, $coder, effort $effort; -$effort --path transform --coder $coder"
                for qp in "$@"; do
                    case $effort in
                    1 | 5 | 9) ;;
                    *) [ "$qp" = "$1" ] || continue ;;
                    esac
                    echo "QP $qp, $coder, effort $effort$(ways $effort $coder); -$effort --qp $qp --coder $coder"
                done
            done
        done
        for effort in 1 5 9; do echo "bounded errors, effort $effort; -$effort --max-error 2"; done
        echo "target 42 dB; --psnr 42"
        echo "target 10:1; --size 10:1"
        return
    fi
    for coder in huffman cavlc rans; do
        for effort in 1 5; do
            echo "path T, $coder, effort $effort; -$effort --path transform --coder $coder"
            for qp in "$@"; do echo "QP $qp, $coder, effort $effort; -$effort --qp $qp --coder $coder"; done
        done
        for effort in 2 7; do echo "QP $1, $coder, effort $effort$(ways $effort $coder); -$effort --qp $1 --coder $coder"; done
    done
    echo "path P, cavlc; --path predict --coder cavlc"
    for effort in 2 5 9; do
        for coder in huffman rans; do echo "QP $1 for SSIM, $coder, effort $effort$(ways $effort $coder); -$effort --qp $1 --tune ssim --coder $coder"; done
    done
    for effort in 1 2 3 5 7 9; do
        echo "path P, huffman, effort $effort; -$effort --path predict --coder huffman"
    done
    echo "path P, rans, effort 6; -6 --path predict --coder rans"
}

# Several codings at once. Worker k of N takes every N-th coding, so that each worker gets all kinds.
jobs=${TSR_SAME_JOBS:-2}
list_codings "$@" >"$work/codings"
workers=
worker=0
while [ "$worker" -lt "$jobs" ]; do
    (
        number=0
        while IFS=';' read -r name options; do
            number=$((number + 1))
            [ $((number % jobs)) -eq "$worker" ] || continue
            # shellcheck disable=SC2086 # options
            encode $number "$name" $options
        done <"$work/codings"
    ) &
    workers="$workers $!"
    worker=$((worker + 1))
done
bad=0
for worker in $workers; do wait "$worker" || bad=1; done

ran=$(find "$work" -name '*.line' | wc -l)
[ "$ran" -eq "$(wc -l <"$work/codings")" ] || { echo "only $ran codings came to their end"; bad=1; }
! grep -h FAILED "$work"/*.line || bad=1
cat "$work"/*.reasons | sort | uniq -c | sort -rn | sed 's/^/    /'
cat "$work"/*.sums | awk '{ for (i = 1; i <= 8; i++) sum[i] += $i }
    END { printf "encoded: %d files by the GPU, %d by the CPU, %d by both (%.2f %% of the samples by the GPU); decoded: %d, %d, %d\n",
          sum[1], sum[2], sum[3], sum[7] ? 100 * sum[8] / sum[7] : 0, sum[4], sum[5], sum[6] }'
[ $bad -eq 0 ] && echo "all files are the same from both engines: $ran codings of $(find "$folder" -type f | wc -l) files"
exit $bad
