# What the scripts share. Each sources it first, with its own arguments:
#   BIN   folder of the programs      DATA   the synthetic set      WORK   the script's own folder, emptied here
# Scripts are POSIX sh (dash) and run in WORK. A check that fails prints a message, and the script goes on. `finish` ends
# with the exit status. TESSERA_PROGRAM names another program to test; with TESSERA_STOP the first check that fails ends
# the script (test_planted.sh).
set -u
export LC_ALL=C
BIN=$1 DATA=$2 WORK=$3
case $BIN$DATA$WORK in
/*) ;;
*) echo "usage: sh SCRIPT BIN DATA WORK [...], absolute paths" && exit 2 ;;
esac
TESSERA=${TESSERA_PROGRAM:-$BIN/tessera}
faults=0
tab=$(printf '\t')
rm -rf "$WORK" && mkdir -p "$WORK/box" && cd "$WORK/box" || exit 2
out=$WORK/stdout err=$WORK/stderr
# For sed, where words are compared: Linux may keep a page of a file that the program asks it to drop, and the program
# says so.
READ_BACK="s/read back ([0-9]* from the disk, [0-9]* through the system's memory);/read back from the disk;/
s/read back through the system's memory, not from a disk;/read back from the disk;/"

bad()
{
    faults=$((faults + 1))
    echo "FAILED: $*"
    [ -z "${TESSERA_STOP:-}" ] || exit 1
}

finish()
{
    [ "$faults" -eq 0 ] || { echo "$faults checks failed" && exit 1; }
    exit 0
}

# can WHAT: whether this machine has /proc, a /dev/stdin, terminals that `script` makes. Where it has not, says that the
# checks which need it are skipped.
can()
{
    case $1 in
    proc) [ -e /proc/self/stat ] ;;
    stdin) [ -e /dev/stdin ] ;;
    terminal) script -qec true /dev/null >/dev/null 2>&1 </dev/null ;;
    esac && return 0
    echo "skipped: the checks of ${0##*/} that need: $1"
    return 1
}

# A run of more than 30 s tells of its progress on stderr: that is no answer, and slow machines alone have it.
forget_progress()
{
    progress='^tessera: [0-9][0-9]*/[0-9][0-9]* [a-z ]*\(,.*\)\{0,1\}$'
    grep -q "$progress" "$err" || return 0
    sed "\|$progress|d" "$err" >"$err.rest" && cat "$err.rest" >"$err"
    rm "$err.rest"
}

# run STATUS COMMAND...: the exit status must be STATUS. The output goes to the files $out and $err.
run()
{
    wanted=$1
    shift
    "$@" >"$out" 2>"$err" </dev/null
    got=$?
    forget_progress
    [ "$got" -eq "$wanted" ] && return 0
    bad "exit status $got, not $wanted: $*"
    awk 'NR <= 5 || /Sanitizer|Tracer|runtime error/ { print "    stderr: " $0 }' "$err"
    return 1
}

# expect TEXT COMMAND...: the command must succeed; if not, prints TEXT.
expect()
{
    text=$1
    shift
    "$@" && return 0
    bad "$text"
    return 1
}

# says PATTERN: stderr must be one sentence of the program that matches PATTERN (a basic regular expression).
says()
{
    forget_progress
    [ "$(wc -l <"$err")" -eq 1 ] || bad "not one line on stderr, but: $(cat "$err")"
    grep -q "^${PROGRAM:-tessera}: [^ ].*[^ .]$" "$err" || bad "no clean sentence: $(cat "$err")"
    grep -q '(null)\|%[a-z]' "$err" && bad "an unfilled sentence: $(cat "$err")"
    grep -q -e "$1" "$err" || bad "not said: '$1', but: $(cat "$err")"
}

# All files below a folder: names, kinds, permissions, times of last modification, and contents.
picture()
{
    (cd "$1" && find . ! -type d -printf '%p %y %m %T@ %l\n' | sort && find . -type f -exec cksum {} + | sort)
}

# refuses STATUS WHAT COMMAND...: the exit status must be STATUS, with one sentence that matches WHAT. The folder must be as
# before: no output, no temporary file, the inputs untouched.
refuses()
{
    status=$1 what=$2
    shift 2
    picture . >"$WORK/before"
    run "$status" "$@"
    says "$what"
    picture . >"$WORK/after"
    cmp -s "$WORK/before" "$WORK/after" || bad "files changed by: $* $(diff "$WORK/before" "$WORK/after")"
}

no_parts()
{
    left=$(find "$1" -name ".tessera-*")
    [ -z "$left" ] || bad "parts are left: $left"
}

# changes_byte FILE OFFSET: inverts all bits of the byte.
changes_byte()
{
    byte=$(od -An -v -tu1 -j "$2" -N 1 "$1")
    printf "\\$(printf %o $((255 - byte)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# open_pipe [BYTES]: opens the FIFO pipe as 3, to be read, with room for 64 KiB, of which so many bytes are filled. A
# command that writes to it, `>pipe 3<&-`, waits when its lines fill it: it is at work for as long as the script wants.
open_pipe()
{
    exec 4<>pipe 3<pipe
    "$BIN/tsr_small_pipe" <&3 || bad "a pipe has more than 64 KiB"
    head -c "${1:-0}" /dev/zero >&4
    exec 4<&-
}
FEW_LINES=64512 # so many bytes are filled: 1 KiB is left, for two lines of JSON or so

# awaits PROCESS COMMAND...: waits until the command succeeds, however long that takes. 1: the process ends before.
awaits()
{
    awaited=$1
    shift
    until "$@"; do
        kill -0 "$awaited" 2>/dev/null || { "$@" && return 0 || return 1; }
        sleep 0.02
    done
}

bytes_of()
{
    wc -c <"$1" | tr -d ' '
}

# Fields of the JSON lines in $out.
fields()
{
    "$BIN/tsr_read_json" "$@" <"$out"
}
