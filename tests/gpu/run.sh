#!/bin/sh
# On a machine with an NVIDIA GPU: builds, compares every kernel with its definition, looks for bad memory and races, and
# benchmarks; then writes results.md, with GPU, driver, commit and date, beside the logs, the JSON lines and the plots.
#
#   run.sh [build|equal|sanitize|bench|profile|all] [OUT]     OUT: where results go; $OUT, or BUILD/results, unless told
#
# profile (not part of all) reads hardware counters with ncu, of one workload a family: profile_FAMILY.csv.
#
# A stage needs the build, and makes it if there is none. Each takes well under 8 minutes. Environment:
#   BUILD                folder of the build                      build-gpu
#   TESSERA_COMMIT       what is being tested                     git describe
#   TSR_BENCH_FILES      images or Y4M to benchmark on as well    none
#   TSR_BENCH_FAMILIES   what to benchmark                        limits vle rle cavlc engine
#   TSR_SAME_FILES       folders whose files both engines encode  a generated set
#   TSR_BENCH_WORDS      more words for bench                     none; --policies, --repeat N, --quick
#   TSR_SANITIZE_JOBS    how many of them at once                 8
#   TSR_SANITIZERS       tools of compute-sanitizer               memcheck racecheck initcheck synccheck
# Libraries in .deps (include/, lib/, pkgconfig/) are used where the system has none.
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

# stage_done NAME STATUS LINE: notes what came of a stage.
stage_done()
{
    printf '| %s | %s | %s | %s |\n' "$1" "$([ "$2" -eq 0 ] && echo passed || echo FAILED)" "$3" \
        "$(date -u '+%Y-%m-%d %H:%M UTC')" >"$out/stage_$1"
    tail -n 1 "$out/stage_$1"
    [ "$2" -eq 0 ] || failed="$failed $1"
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

# Whole files of both engines, too. A test that was skipped has shown nothing.
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
        sh tests/gpu/same_files.sh "$build/bin/tessera" "$folder" >>"$out/same_files.txt" 2>&1 || status=1
        tail -n 1 "$out/same_files.txt"
    done
    ctest --test-dir "$build" -L gpu --output-on-failure --no-tests=error --timeout 400 >"$out/equal.log" 2>&1 || status=1
    ! grep -q 'Skipped' "$out/equal.log" || status=1
    [ $status -eq 0 ] || tail -n 60 "$out/equal.log"
    stage_done equal $status "$(grep 'tests passed' "$out/equal.log" | tail -n 1)"
}

# sanitize_one TOOL TEST: its log is kept; what does not end in time has not passed.
sanitize_one()
{
    log=$out/sanitize_$1_$(basename "$2").log
    case $1 in
    racecheck) step=8 ;; # by far the slowest
    memcheck) step=3 ;;
    *) step=1 ;;
    esac
    TSR_TEST_SMALL=$step timeout "${TSR_SANITIZE_SECONDS:-120}" compute-sanitizer --tool "$1" --error-exitcode 99 "$2" >"$log" 2>&1 &&
        ! grep -q '^skipped' "$log"
}

# Several at once: they spend their time on the CPU.
run_sanitize()
{
    clean=0 bad=
    pending=
    collect() {
        for job in $pending; do
            if wait "${job%%:*}"; then clean=$((clean + 1)); else bad="$bad ${job#*:}"; fi
        done
        pending=
    }
    rm -f "$out"/sanitize_*.log
    for tool in ${TSR_SANITIZERS:-memcheck racecheck initcheck synccheck}; do
        for test in "$build"/bin/test_*_rows "$build"/bin/test_limits "$build"/bin/test_cuda_*; do
            [ -x "$test" ] || continue
            sanitize_one "$tool" "$test" &
            pending="$pending $!:$tool,$(basename "$test")"
            # shellcheck disable=SC2086 # words
            [ "$(set -- $pending && echo $#)" -lt "${TSR_SANITIZE_JOBS:-8}" ] || collect
        done
    done
    collect
    status=0
    [ -z "$bad" ] && [ $clean -gt 0 ] || status=1
    for name in $bad; do
        echo "== $name"
        tail -n 15 "$out/sanitize_${name%,*}_${name#*,}.log"
    done
    stage_done sanitize $status "$clean runs clean${bad:+; not:$bad}"
}

run_bench()
{
    status=0 names=
    for family in ${TSR_BENCH_FAMILIES:-limits vle rle cavlc engine}; do
        # shellcheck disable=SC2086 # words
        timeout 240 "$build/bin/tessera" bench "$family" ${TSR_BENCH_WORDS:-} --log "$out/bench_$family.json" --plot "$out/bench_$family.svg" \
            >"$out/bench_$family.txt" 2>"$out/bench_$family.err" || status=$?
        ! head -n 1 "$out/bench_$family.json" | grep '"gpu":"none' || status=1 # then the CPU's rows alone have run
        cat "$out/bench_$family.err"
        tail -n 1 "$out/bench_$family.txt"
        names="$names $family"
        if [ -n "${TSR_BENCH_FILES:-}" ] && [ "$family" != limits ]; then
            # shellcheck disable=SC2086 # words
            timeout 120 "$build/bin/tessera" bench "$family" --log "$out/bench_${family}_files.json" \
                --plot "$out/bench_${family}_files.svg" --files $TSR_BENCH_FILES >"$out/bench_${family}_files.txt" \
                2>"$out/bench_${family}_files.err" || status=$?
            cat "$out/bench_${family}_files.err"
        fi
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
        "$build/bin/tessera" bench "$family" --quick --repeat 1 "$@" >"$out/profile_$family.csv" 2>&1 || status=$?
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
        printf '# Results of tests/gpu/run.sh\n\nGPU, driver, compute capability: %s  \ncommit: %s  \ndate: %s  \nCUDA: %s\n\n' \
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
    echo "results: $out/results.md"
}

if [ "$stage" = build ] || [ "$stage" = all ] || [ ! -x "$build/bin/tessera" ]; then run_build; fi
case $stage in
equal) run_equal ;;
sanitize) run_sanitize ;;
bench) run_bench ;;
profile) run_profile ;;
all) run_equal && run_sanitize && run_bench ;;
esac
write_results
[ -z "$failed" ] || { echo "FAILED:$failed" && exit 1; }
