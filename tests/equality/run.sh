#!/bin/sh
# For a machine with an NVIDIA GPU: builds, compares every kernel with its definition, looks for bad memory accesses and
# races, and runs the benchmarks. Writes results.md, with GPU, driver, commit and date, beside the logs, the JSON lines and
# the plots, and results.tgz, which has all of them.
#
#   run.sh [build|equal|sanitize|bench|profile|all] [OUT]     OUT: folder of results; default $OUT or BUILD/results
#
# profile (not part of all) reads hardware counters of one workload per family with ncu: profile_FAMILY.csv.
#
# A stage makes the build if there is none. Each stage takes well under 8 minutes. Environment, with defaults:
#   BUILD                folder of the build                      build-gpu
#   TESSERA_COMMIT       the commit that is tested                git describe
#   TSR_BENCH_FILES      images or Y4M to benchmark on as well    none
#   TSR_BENCH_FAMILIES   the families to benchmark                vle rle cavlc hiding engine limits
#   TSR_SAME_FILES       folders whose files both engines encode  a generated set
#   TSR_SAME             codings of them: some, or all 104        some
#   TSR_MUTANTS          mutants of files of each kind, path, coder and mutation       10
#   TSR_BENCH_WORDS      more words for bench                     none; --policies, --repeat N, --quick
#   TSR_SANITIZE_SECONDS seconds that a sanitizer run may take    400; racecheck of test_cuda_engine took more than 120
#   TSR_SANITIZE_JOBS    sanitizer runs at the same time          8
#   TSR_SANITIZERS       tools of compute-sanitizer               memcheck racecheck initcheck synccheck
# Libraries in .deps (include/, lib/, pkgconfig/) are used if the system does not have them.
set -eu
cd "$(dirname "$0")/../.."
stage=${1:-all}
build=${BUILD:-build-gpu}
out=${2:-${OUT:-$build/results}}
case $stage in
build | equal | sanitize | bench | profile | all) ;;
*) echo "usage: run.sh [build|equal|sanitize|bench|profile|all] [OUT]" >&2 && exit 2 ;;
esac
mkdir -p "$out"
out=$(cd "$out" && pwd)
TESSERA_COMMIT=${TESSERA_COMMIT:-$(git describe --always --dirty 2>/dev/null || echo unknown)}
export TESSERA_COMMIT
if [ -d .deps ]; then
    deps=$PWD/.deps
    export CMAKE_PREFIX_PATH="$deps${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
    export PKG_CONFIG_PATH="$deps/pkgconfig:$deps/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
    export CPATH="$deps/include${CPATH:+:$CPATH}"
    export LIBRARY_PATH="$deps/lib${LIBRARY_PATH:+:$LIBRARY_PATH}"
    export LD_LIBRARY_PATH="$deps/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi
gpu=$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader 2>/dev/null | head -n 1)
[ -n "$gpu" ] || { echo "run.sh: no NVIDIA GPU here" >&2 && exit 70; }
echo "GPU, driver, compute capability: $gpu; commit $TESSERA_COMMIT"
capability=$(printf '%s' "$gpu" | sed 's/.*, *//;s/\.//')
failed=

# stage_line NAME STATUS LINE: notes the result of a stage so far.
stage_line()
{
    printf '| %s | %s | %s | %s |\n' "$1" "$([ "$2" -eq 0 ] && echo passed || echo FAILED)" "$3" \
        "$(date -u '+%Y-%m-%d %H:%M UTC')" >"$out/stage_$1"
}

# stage_done NAME STATUS LINE: notes the result of a stage at its end. All results go into one file, which can be fetched.
stage_done()
{
    stage_line "$@"
    tail -n 1 "$out/stage_$1"
    [ "$2" -eq 0 ] || failed="$failed $1"
    write_results
}

configure_and_build()
{
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTSR_CUDA=on "-DCMAKE_CUDA_ARCHITECTURES=$capability" &&
        ninja -C "$build"
}

run_build()
{
    status=0
    start=$(date +%s)
    configure_and_build >"$out/build.log" 2>&1 || status=$?
    [ $status -eq 0 ] || tail -n 40 "$out/build.log"
    stage_done build $status "sm_$capability, $(($(date +%s) - start)) s"
    [ $status -eq 0 ] || exit 1
}

# Compares whole files of both engines, too. A skipped test counts as a failure.
run_equal()
{
    status=0
    folders=${TSR_SAME_FILES:-}
    if [ -z "$folders" ]; then
        folders=$build/testdata-set
        rm -rf "$folders"
        "$build/bin/tessera_testdata" "$folders" >/dev/null || status=1
    fi
    for folder in $folders; do
        sh tests/equality/same_files.sh "$build/bin/tessera" "$folder" >>"$out/same_files.txt" 2>&1 || status=1
        tail -n 1 "$out/same_files.txt"
    done
    # Mutants of files, decoded on the GPU.
    mkdir -p "$out/mutants"
    "$build/bin/tessera_testdata" "$out/mutants/data" >/dev/null &&
        "$build/bin/tsr_attack_files" "$out/mutants/data" "$out/mutants" "${TSR_MUTANTS:-10}" engine=cuda jobs=8 >"$out/mutants.txt" 2>&1 || status=1
    rm -rf "$out/mutants"
    tail -n 3 "$out/mutants.txt"
    ctest --test-dir "$build" -L gpu --output-on-failure --no-tests=error --timeout 400 >"$out/equal.log" 2>&1 || status=1
    ! grep -q 'Skipped' "$out/equal.log" || status=1
    [ $status -eq 0 ] || tail -n 60 "$out/equal.log"
    stage_done equal $status "$(grep 'tests passed' "$out/equal.log" | tail -n 1)"
}

# sanitize_one TOOL TEST: keeps the log. A test that does not end in time fails.
sanitize_one()
{
    log=$out/sanitize_$1_$(basename "$2").log
    case $1 in
    racecheck) step=16 ;; # by far the slowest
    memcheck) step=5 ;;
    *) step=2 ;;
    esac
    words=
    case $1,$2 in # this test decodes a damaged frame: its raster is not written, but copied out with its batch's
    initcheck,*/test_cuda_failures) words='--check-api-memory-access no' ;;
    esac
    # shellcheck disable=SC2086 # words
    TSR_TEST_SMALL=$step timeout "${TSR_SANITIZE_SECONDS:-400}" compute-sanitizer --tool "$1" $words --error-exitcode 99 "$2" >"$log" 2>&1 &&
        ! grep -q '^skipped' "$log"
}

# Runs several at once, the next one as soon as one has ended: they are limited by the CPU.
run_sanitize()
{
    clean=0 bad= running=0
    rm -f "$out"/sanitize_*
    for tool in ${TSR_SANITIZERS:-racecheck memcheck initcheck synccheck}; do
        for test in "$build"/bin/test_cuda_* "$build"/bin/test_*_rows "$build"/bin/test_limits; do
            [ -x "$test" ] || continue
            while [ $((running - $(find "$out" -name 'sanitize_*.ended' | wc -l))) -ge "${TSR_SANITIZE_JOBS:-8}" ]; do sleep 0.2; done
            running=$((running + 1))
            (
                began=$(date +%s) outcome=bad
                ! sanitize_one "$tool" "$test" || outcome=clean
                echo "$outcome $(($(date +%s) - began)) s" >"$out/sanitize_${tool}_$(basename "$test").ended"
            ) &
        done
    done
    wait
    for ended in "$out"/sanitize_*.ended; do
        [ -f "$ended" ] || continue
        name=$(basename "$ended" .ended)
        name=${name#sanitize_}
        echo "$name: $(cat "$ended")"
        if grep -q clean "$ended"; then clean=$((clean + 1)); else bad="$bad ${name%%_*},${name#*_}"; fi
    done
    status=0
    [ -z "$bad" ] && [ $clean -gt 0 ] || status=1
    for name in $bad; do
        echo "== $name"
        tail -n 15 "$out/sanitize_${name%,*}_${name#*,}.log"
    done
    stage_done sanitize $status "$clean runs clean${bad:+; not:$bad}"
}

# bench_one NAME LIMIT WORDS...: runs the benchmark once, into bench_NAME.*. Then it writes the results so far, since the
# machine may be taken away at any time.
bench_one()
{
    name=$1 limit=$2
    shift 2
    began=$(date +%s)
    timeout "$limit" "$build/bin/tessera-bench" "$@" --log "$out/bench_$name.json" --plot "$out/bench_$name.svg" \
        >"$out/bench_$name.txt" 2>"$out/bench_$name.err" || status=$?
    ! head -n 1 "$out/bench_$name.json" | grep '"gpu":"none' || status=1 # then only the CPU's rows have run
    cat "$out/bench_$name.err"
    echo "bench $name, $(($(date +%s) - began)) s: $(tail -n 1 "$out/bench_$name.txt")"
    names="$names $name"
    stage_line bench $status "${names# }"
    write_results
}

run_bench()
{
    status=0 names=
    families=${TSR_BENCH_FAMILIES:-vle rle cavlc hiding engine limits}
    for family in $families; do
        # shellcheck disable=SC2086 # words
        bench_one "$family" 240 "$family" ${TSR_BENCH_WORDS:-}
    done
    for family in $families; do
        [ -n "${TSR_BENCH_FILES:-}" ] || break
        [ "$family" != limits ] || continue
        # shellcheck disable=SC2086 # words
        bench_one "${family}_files" 120 "$family" --files $TSR_BENCH_FILES
    done
    stage_done bench $status "${names# }"
}

# profile_one FAMILY WORDS...
profile_one()
{
    family=$1
    shift
    timeout 60 ncu --clock-control none --csv --metrics \
        dram__bytes.sum,gpu__time_duration.sum,smsp__inst_executed.sum,smsp__issue_active.avg.pct_of_peak_sustained_active,sm__warps_active.avg.pct_of_peak_sustained_active \
        "$build/bin/tessera-bench" "$family" --quick --repeat 1 "$@" >"$out/profile_$family.csv" 2>&1 || status=$?
}

run_profile()
{
    status=0
    profile_one vle --sizes 256 --entropies 4
    profile_one rle --sizes 256 --runs 8
    profile_one cavlc --formats 1080p --qp 20
    stage_done profile $status "ncu"
}

write_results()
{
    {
        printf '# Results of tests/equality/run.sh\n\nGPU, driver, compute capability: %s  \ncommit: %s  \ndate: %s  \nCUDA: %s\n\n' \
            "$gpu" "$TESSERA_COMMIT" "$(date -u '+%Y-%m-%d %H:%M UTC')" "$(nvcc --version 2>/dev/null | sed -n 's/.*release //p')"
        printf '| stage | outcome | what | when |\n|---|---|---|---|\n'
        for name in build equal sanitize bench profile; do
            [ ! -f "$out/stage_$name" ] || cat "$out/stage_$name"
        done
        for table in "$out"/bench_*.txt; do
            [ -f "$table" ] || continue
            name=$(basename "$table" .txt)
            printf '\n## %s\n\n' "$name"
            # shellcheck disable=SC2016 # literally
            [ ! -f "$out/$name.svg" ] || printf '![%s](%s.svg)\n\n' "$name" "$name"
            # shellcheck disable=SC2016
            printf '```\n' && cat "$table" && printf '```\n'
        done
    } >"$out/results.md"
    pack_results
}

# First into another folder, because tar reads this one.
pack_results()
{
    packed=$(mktemp) &&
        tar -czf "$packed" -C "$out" --exclude=./results.tgz . &&
        cp "$packed" "$out/results.tgz"
    rm -f "$packed"
}

if [ "$stage" = build ] || [ "$stage" = all ] || [ ! -x "$build/bin/tessera" ]; then run_build; fi
case $stage in
equal) run_equal ;;
sanitize) run_sanitize ;;
bench) run_bench ;;
profile) run_profile ;;
all) run_equal && run_sanitize && run_bench ;;
esac
echo "results: $out/results.md, $out/results.tgz"
[ -z "$failed" ] || { echo "FAILED:$failed" && exit 1; }
