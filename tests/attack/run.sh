#!/bin/sh
# Runs the attack kit against a build. usage: run.sh BUILD [SECONDS] [SEED]
# It takes about SECONDS (180 if not given) on two cores. Exit status 1: something was found; it is printed with the
# arguments that repeat it.
set -eu
cd "$(dirname "$0")/../.."
build=$(cd "$1" && pwd)
seconds=${2:-180}
seed=${3:-1}
work=$build/attack
rm -rf "$work"
mkdir -p "$work"
memory=$work
[ ! -w /dev/shm ] || memory=$(mktemp -d /dev/shm/tessera_attack_XXXXXX)
trap 'rm -rf "$memory"' EXIT
export ASAN_OPTIONS="exitcode=3${ASAN_OPTIONS:+:$ASAN_OPTIONS}" UBSAN_OPTIONS="exitcode=3${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
if [ ! -x "$build/bin/tsr_attack_files" ]; then
  echo "skipped: this build lacks libraries that the attack kit needs"
  exit 0
fi
"$build/bin/tessera_testdata" "$work/data" >/dev/null
status=0

# The number of mutants of each combination and mutation that fit the time: a first round measures the speed.
part() { awk -v a="$1" -v b="$2" 'BEGIN { n = int(a * b); print (n > 0 ? n : 1) }'; }
echo "== mutants: each of them is restored and tested"
begun=$(date +%s%N)
"$build/bin/tsr_attack_files" "$work/data" "$memory" 5 seed="$seed" >"$work/pace" 2>&1 || { cat "$work/pace" && status=1; }
spent=$((($(date +%s%N) - begun) / 1000000 + 1))
count=$(part "$(awk -v s="$seconds" -v t="$spent" 'BEGIN { print 5 * 1000 * s / t }')" 0.45)
"$build/bin/tsr_attack_files" "$work/data" "$memory" "$count" seed="$((seed + 1))" >"$work/mutants" 2>&1 || status=1
grep -E 'WRONG|CRASHES|HANGS|ERROR|runtime error|at work' "$work/mutants" || true
sed -n '/what was made again/,$p' "$work/mutants"
if [ -x "$build/bin/tsr_sealed_mutants" ]; then
  echo "== mutants of encrypted files"
  "$build/bin/tsr_sealed_mutants" "$(part "$seconds" 2000)" "$seed" || status=1
fi
if [ -x "$build/bin/tsr_attack_replaced" ]; then
  echo "== files that are replaced under readers and mounts"
  mkdir -p "$work/replaced"
  "$build/bin/tsr_attack_replaced" "$build/bin/tessera" "$work/data" "$work/replaced" "$(part "$seconds" 3)" seed="$seed" || status=1
fi
if [ -x "$build/bin/tsr_attack_faults" ]; then
  echo "== calls that fail, kills, inputs that change"
  "$build/bin/tsr_attack_faults" "$build/bin/tessera" "$build/bin/tsr_attack_shim.so" "$work/data" "$memory" \
    "$(part "$seconds" 15)" seed="$seed" || status=1
  echo "== limits"
  "$build/bin/tsr_attack_limits" "$build/bin/tessera" "$build/bin/tsr_attack_shim.so" "$work/data" "$work" || status=1
fi
if [ -x "$build/bin/tsr_fold_fs" ]; then
  echo "== names that are one file"
  sh tests/attack/attack_names.sh "$build/bin/tessera" "$build/bin/tsr_fold_fs" "$work/names" "$(part "$seconds" 0.15)" "$seed" || status=1
fi
if [ -x "$build/bin/tsr_fold_fs" ] && [ -x "$build/bin/tsr_attack_faults" ]; then
  echo "== kills where outputs have names from the start"
  mkdir -p "$work/backing" "$work/named/0.box"
  "$build/bin/tsr_fold_fs" "$work/backing" "$work/named/0.box" plain >"$work/fs.log" 2>&1 &
  tries=0
  until grep -q " $work/named/0.box fuse" /proc/self/mounts || [ $tries -ge 100 ]; do tries=$((tries + 1)) && sleep 0.05; done
  if [ $tries -lt 100 ]; then
    for deed in kill kill_behind; do
      "$build/bin/tsr_attack_faults" "$build/bin/tessera" "$build/bin/tsr_attack_shim.so" "$work/data" "$work/named" \
        "$(part "$seconds" 0.4)" seed="$seed" jobs=1 scenario=over deed=$deed || status=1
    done
    fusermount3 -u "$work/named/0.box" || umount "$work/named/0.box"
  else
    echo "skipped: no mounts here: $(tail -n 1 "$work/fs.log")"
  fi
  wait
fi
[ "$status" -eq 0 ] && echo "nothing found" || echo "FOUND SOMETHING, see $work"
exit "$status"
