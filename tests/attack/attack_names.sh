#!/bin/sh
# The attack with names that are one file: runs over files whose names a file system takes for each other, with and without
# inode numbers. After each run every original is there, or the archive restores it; status 0 means an output for each input.
# usage: attack_names.sh TESSERA FOLD_FS WORK [ROUNDS] [SEED] [round=N]      FOLD_FS: tsr_fold_fs of tests/cli; WORK: an empty folder
# Each finding is one line, with the arguments that repeat it. Exit status: 0; 1 if something was found.
set -u
export LC_ALL=C
program=$(realpath "$1") fold=$(realpath "$2")
mkdir -p "$3" && cd "$3" || exit 2
work=$(pwd)
rounds=${4:-40} seed=${5:-1} only=${6:-}
findings=0 runs=0
mkdir -p backing m
user_file=.tessera-deadbeef-1-1.part # looks like an output that a killed run has left

# pick N: a number below N in $picked.
pick()
{
  random=$(((random * 1103515245 + 12345) % 2147483648))
  picked=$((random / 65536 % $1))
}

wrong()
{
  findings=$((findings + 1))
  echo "WRONG: $1; $2 (status $status, file system: $words; repeat: $rounds $seed round=$round)"
}

# is_there WORDS FOLDER...: whether a file below the folders has these words as its content.
is_there()
{
  wanted=$1
  shift
  find "$@" -type f -exec cat {} + 2>/dev/null | grep -qx "$wanted"
}

# keep: what must not be lost: all originals; and what the archive restores, unless -f says that it may be overwritten.
keep()
{
  contents=$(find a -type f -exec cat {} +)
  case $1 in
  *-f*) ;;
  *) rm -rf restored && "$program" decompress -q -r m/out -o restored >/dev/null 2>&1 && contents="$contents $(find restored -type f -exec cat {} +)" ;;
  esac
}

# judge COMMAND: nothing is lost; all is done where the status says so.
judge()
{
  rm -rf restored
  "$program" decompress -q -r m/out -o restored >/dev/null 2>&1
  for content in $contents; do
    is_there "$content" a restored || wrong "'$content' is lost" "$1"
  done
  [ "$status" -le 128 ] || wrong "a signal ends it" "$1"
  [ -z "$(find backing/out -name '.tessera-*' ! -name "$user_file" 2>/dev/null)" ] || wrong "a part is left behind" "$1"
  [ "$(cat "backing/out/$user_file" 2>&1)" = mine ] || wrong "a user's file is removed by its name" "$1"
  made=$(find backing/out -type f ! -name "$user_file" 2>/dev/null | wc -l)
  [ "$status" -ne 0 ] || [ "$made" -ge "$count" ] || wrong "status 0, and $made outputs of $count inputs" "$1"
}

# Originals whose names may be one, of different content and size, or of one size and time.
make_originals()
{
  rm -rf a backing/out && mkdir a backing/out
  echo mine >"backing/out/$user_file" && touch -d '25 hours ago' "backing/out/$user_file"
  count=0
  pick 2
  same_time=$picked
  for name in x.txt X.TXT x.Txt "$(printf 'm\303\244r')" "$(printf 'ma\314\210r')" "$(printf 'M\303\244r')" sub/y SUB/y sub/Y z; do
    pick 3
    [ "$picked" -gt 0 ] || continue
    mkdir -p "a/$(dirname "$name")"
    echo "content$count" >"a/$name"
    [ "$same_time" -eq 0 ] || touch -d '2020-01-01' "a/$name"
    count=$((count + 1))
  done
}

attack()
{
  make_originals
  [ "$count" -gt 1 ] || return
  for _ in 1 2 3; do
    pick 9
    case $picked in
    0) options= ;;
    1) options=-f ;;
    2) options=--update ;;
    3) options=--update=hash ;;
    4) options='-f --rm' ;;
    5) options='--update --rm' ;;
    6) options='-f -T 1' ;;
    7) options='-f --update' ;;
    8) options='--update -T 8' ;;
    esac
    count=$(find a -type f | wc -l)
    [ "$count" -gt 0 ] || return
    keep "$options"
    # shellcheck disable=SC2086
    "$program" compress -q -r $options a -o m/out >said 2>&1
    status=$?
    runs=$((runs + 1))
    judge "compress -r $options"
  done
  rm -rf backing/back again && mkdir again
  make_originals
  "$program" compress -q -r a -o again >/dev/null 2>&1
  for options in -f ''; do
    rm -rf backing/back
    # shellcheck disable=SC2086
    "$program" decompress -q -r $options again -o m/back >said 2>&1
    status=$?
    runs=$((runs + 1))
    made=$(find backing/back -type f 2>/dev/null | wc -l)
    [ "$status" -ne 0 ] || [ "$made" -eq "$count" ] || wrong "status 0, and $made files of $count" "decompress -r $options"
  done
}

mount_fold()
{
  rm -rf backing/* backing/.[!.]*
  # shellcheck disable=SC2086
  "$fold" backing m $words >fs.log 2>&1 &
  server=$!
  until grep -q " $work/m fuse" /proc/self/mounts; do
    kill -0 $server 2>/dev/null || return 1
    sleep 0.05
  done
}

round=0
while [ $round -lt "$rounds" ]; do
  round=$((round + 1))
  [ -z "$only" ] || [ "$only" = "round=$round" ] || continue
  random=$(((seed * 7919 + round * 104729) % 2147483648))
  pick 3 && pick 3
  case $picked in 0) words=case ;; 1) words=forms ;; 2) words='case forms' ;; esac
  pick 6
  case $picked in 1) words="$words zero" ;; 2) words="$words changing" ;; 3) words="$words paths" ;; 4) words="$words plain" ;; 5) words="$words plain changing" ;; esac
  if ! mount_fold; then
    echo "skipped: names that fold (no mounts here: $(tail -n 1 fs.log))"
    exit 0
  fi
  attack
  fusermount3 -u m || umount m
  wait $server
done
echo "$runs runs over names that are one file, $findings findings"
[ $findings -eq 0 ]
