#!/bin/sh
# Runs the program as a Slurm array of 8 tasks on a private one-node cluster, SIGKILLs it in one task, sees it requeued. Use: slurm.sh TESSERA IN WORK
# The three are absolute paths; WORK's path has no blanks. Output goes to
# WORK/out, JSON lines to WORK/json/TASK-ATTEMPT.json, and all that Slurm writes
# to WORK/slurm; these three folders are made afresh. Needs root and the
# packages in PACKAGES. Exits 0 only if all 8 tasks ended with status 0 and one
# of them had been killed and requeued.
set -eu
umask 022
export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin

die() {
    echo "slurm.sh: $*" >&2
    exit 1
}

[ $# -eq 3 ] || die "use: slurm.sh TESSERA IN WORK"
for p in "$@"; do
    case $p in /*) ;; *) die "not an absolute path: $p" ;; esac
done
tessera=$1 in=$2 work=$3
case $work in *[!A-Za-z0-9_./+-]*) die "WORK has a character that slurm.conf can't hold: $work" ;; esac
[ "$(id -u)" = 0 ] || die "needs root"
[ -x "$tessera" ] || die "no such program: $tessera"
for c in munged slurmctld slurmd sbatch sinfo squeue scontrol scancel strace; do
    command -v $c >/dev/null || die "$c is not installed; see PACKAGES"
done

mkdir -p "$work"
work=$(cd "$work" && pwd -P)
s=$work/slurm
rm -rf "$work/json" "$work/out" "$s"
mkdir "$work/json" "$work/out" "$s" "$s/state" "$s/spool" "$s/log" "$s/pid" "$s/rc"

# ---- Stopping: whatever was started is stopped by its own pid, at any exit.
munged_pid= ctld_pid= slurmd_pid= m= job=
stop() {
    [ -z "$1" ] || {
        kill "$1" 2>/dev/null || :
        n=0
        while kill -0 "$1" 2>/dev/null && [ $n -lt 100 ]; do
            sleep 0.1
            n=$((n + 1))
        done
        kill -KILL "$1" 2>/dev/null || :
        wait "$1" 2>/dev/null || :
    }
}
finish() {
    rc=$?
    trap - EXIT
    trap '' INT TERM HUP
    set +e
    if [ -n "$job" ] && [ -n "$(timeout 10 squeue -h 2>/dev/null)" ]; then
        timeout 10 scancel "$job" 2>/dev/null
        n=0
        while [ -n "$(timeout 10 squeue -h 2>/dev/null)" ] && [ $n -lt 75 ]; do
            sleep 0.2
            n=$((n + 1))
        done
    fi
    stop "$slurmd_pid"
    stop "$ctld_pid"
    stop "$munged_pid"
    [ -z "$m" ] || rm -rf "$m"
    if [ $rc -ne 0 ]; then
        for f in "$s/log/munged.log" "$s/log/slurmctld.log" "$s/log/slurmd.log" "$s"/log/job-*.log; do
            [ ! -s "$f" ] || {
                echo "--- the end of $f"
                tail -n 15 "$f"
            } >&2
        done
    fi
    exit $rc
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- munged: its own key and socket, so it meets no other munged. They lie in a
# short path of their own (a socket's path has at most 107 characters), in a
# folder that others may enter but not write.
m=$(mktemp -d /tmp/munge.XXXXXX)
chmod 711 "$m"
(umask 077 && head -c 128 /dev/urandom >"$m/key")
munged --foreground --key-file="$m/key" --socket="$m/socket" --pid-file="$m/pid" \
    --seed-file="$m/seed" --log-file="$m/log" >"$s/log/munged.log" 2>&1 </dev/null &
munged_pid=$!
n=0
until [ -S "$m/socket" ]; do
    kill -0 $munged_pid 2>/dev/null || die "munged ended"
    [ $n -lt 1200 ] || die "munged made no socket in 2 min"
    sleep 0.1
    n=$((n + 1))
done

# ---- Two free ports below those that Linux gives to clients; two runs at once, with
# their unlike pids, begin to look at unlike places.
port_free() {
    ! cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        awk -v p=":$(printf %04X "$1")" '$2 ~ p "$" { f = 1 } END { exit !f }'
}
port=$((19999 + $$ % 6000 * 2))
next_port() {
    port=$((port + 1))
    until port_free $port; do port=$((port + 1)); done
}
next_port
ctld_port=$port
next_port
slurmd_port=$port

# ---- slurm.conf.
# cred_expire: how long a requeued job must wait before it starts again; 120 s
# unless told otherwise, and 5 s is the least that Slurm takes.
# sched_interval, bf_interval: how soon Slurm looks whether that wait is over.
# MinJobAge: ended tasks stay listed until we have read their states; there is
# no accounting here to ask instead.
# config_overrides: CPUs=2 is believed whatever the machine really has.
# No cgroup is touched: the
# plugins named for processes, tasks and accounting need none.
host=$(hostname -s)
export SLURM_CONF="$s/slurm.conf"
cat >"$SLURM_CONF" <<END
ClusterName=harness
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$ctld_port
SlurmdPort=$slurmd_port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$m/socket,cred_expire=6
CredType=cred/munge
SlurmctldPidFile=$s/slurmctld.pid
SlurmdPidFile=$s/slurmd.pid
StateSaveLocation=$s/state
SlurmdSpoolDir=$s/spool
SlurmctldLogFile=$s/log/slurmctld.log
SlurmdLogFile=$s/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
JobRequeue=1
KillWait=2
MinJobAge=3600
MailProg=/bin/true
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END

# Without -D they would leave this shell; with it, their pids are known at once.
slurmctld -D -f "$SLURM_CONF" >"$s/log/slurmctld.out" 2>&1 </dev/null &
ctld_pid=$!
slurmd -D -f "$SLURM_CONF" >"$s/log/slurmd.out" 2>&1 </dev/null &
slurmd_pid=$!
end=$(($(date +%s) + 300))
until [ "$(timeout 5 sinfo -h -o %T 2>/dev/null)" = idle ]; do
    kill -0 $ctld_pid 2>/dev/null || die "slurmctld ended: $(tail -n 3 "$s/log/slurmctld.out")"
    kill -0 $slurmd_pid 2>/dev/null || die "slurmd ended: $(tail -n 3 "$s/log/slurmd.out")"
    [ "$(date +%s)" -lt $end ] || die "the node was not idle in 5 min"
    sleep 0.2
done
echo "the node is idle: $(scontrol --version), ports $ctld_port and $slurmd_port"

# ---- The job script. While none was killed yet, tasks 2, 4 and 6 leave their
# pid and wait for a sign before they become the program, which runs under strace
# as if on a slow disk: 10 ms for each file opened, closed or renamed. A quick
# program would else be through before anyone could kill it. 4 and 6 are for when
# task 2 got through all the same.
calls='?open,openat,close,?rename,renameat,renameat2,?link,linkat'
slow=yes
strace -f -qq -o /dev/null -e trace="$calls" -e inject="$calls:delay_enter=1" true || {
    slow=no
    echo "strace does not work here: a quick program may be through before it can be killed"
}
cat >"$s/job" <<'END'
#!/bin/sh
tessera=$1 in=$2 work=$3 slow=$4 calls=$5
s=$work/slurm
t=$SLURM_ARRAY_TASK_ID
a=${SLURM_RESTART_COUNT:-0}
echo "task $t attempt $a starts: array of $SLURM_ARRAY_TASK_COUNT from $SLURM_ARRAY_TASK_MIN"
set -- "$tessera" compress -r --update --shard=auto --json "$in" -o "$work/out"
case $t-$a in
2-0 | 4-0 | 6-0)
    if [ ! -e "$s/killed" ]; then
        set -- sh -c '
            echo $$ >"$1.new"
            mv "$1.new" "$1"
            until [ -e "$1.go" ]; do sleep 0.1; done
            shift
            exec "$@"
        ' hold "$s/pid/$t" "$@"
        [ "$slow" = no ] || set -- strace -f -qq -o /dev/null -e trace="$calls" \
            -e inject="$calls:delay_enter=10000" "$@"
    fi
    ;;
esac
"$@" >"$work/json/$t-$a.json"
rc=$?
echo $rc >"$s/rc/$t-$a"
echo "task $t attempt $a: the program ended with status $rc"
if [ $rc -eq 137 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_$t" || exit 1
    # The requeue ends this script; 137 is for when it does not.
    sleep 60
fi
exit $rc
END

job=$(sbatch --parsable --array=0-7 --requeue --ntasks=1 --job-name=tessera --chdir="$work" \
    --open-mode=append --output="$s/log/job-%a.log" "$s/job" "$tessera" "$in" "$work" "$slow" "$calls")
echo "submitted: array job $job, tasks 0 to 7"

# ---- The kill. The program counts as amid its work once it has written some but
# not all of its JSON lines, or opened a second file for writing under WORK/out,
# or held one open there for long. Then it gets SIGKILL, by its pid.
share=$(($(find "$in" -type f | wc -l) / 8))
now_open() {
    ls -l "/proc/$1/fd" 2>/dev/null | sed -n "s|^.* -> \($work/out/.*\)|\1|p" | head -n 1
}
alive() {
    case $(awk '/^State:/ { print $2 }' "/proc/$1/status" 2>/dev/null) in
    '' | Z | X) return 1 ;;
    esac
}
kill_amid() { # PID JSON
    was= opened=0 same=0
    while alive "$1" && [ "$(date +%s)" -lt $end ]; do
        lines=$(wc -l <"$2")
        file=$(now_open "$1")
        if [ -z "$file" ]; then
            same=0
        elif [ "$file" = "$was" ]; then
            same=$((same + 1))
        else
            same=0
            opened=$((opened + 1))
        fi
        was=$file
        [ "$lines" -eq 0 ] || [ "$lines" -lt $share ] || return 1
        if [ "$lines" -gt 1 ] || [ $opened -ge 20 ] || [ $same -ge 100 ]; then
            why="after $lines JSON lines${file:+, while it wrote ${file##*/}}"
            kill -KILL "$1" 2>/dev/null
            return
        fi
        sleep 0.01
    done
    return 1
}

end=$(($(date +%s) + 1200))
victim= again=0
while q=$(timeout 20 squeue -h -r -o '%K %T') && [ -n "$q" ]; do
    [ "$(date +%s)" -lt $end ] || die "not all tasks ended in 20 min: $(echo "$q" | tr '\n' ',')"
    for t in 2 4 6; do
        [ -e "$s/pid/$t" ] && [ ! -e "$s/pid/$t.go" ] || continue
        pid=$(cat "$s/pid/$t")
        : >"$s/pid/$t.go"
        if [ -z "$victim" ] && kill_amid "$pid" "$work/json/$t-0.json"; then
            n=0
            until [ -s "$s/rc/$t-0" ] || [ $n -ge 500 ]; do
                sleep 0.02
                n=$((n + 1))
            done
            if [ "$(cat "$s/rc/$t-0" 2>/dev/null)" = 137 ]; then
                victim=$t
                : >"$s/killed"
                echo "killed: task $t, pid $pid, $why; its job script saw status 137"
            fi
        fi
    done
    sleep 0.3
done
[ -z "$q" ] || die "squeue failed"

# ---- The outcome.
good=0
t=0
while [ $t -le 7 ]; do
    show=$(scontrol -o show job "${job}_$t") || die "task $t is not known to Slurm"
    field() { echo "$show" | tr ' ' '\n' | sed -n "s/^$1=//p" | head -n 1; }
    js=$(field JobState) code=$(field ExitCode) restarts=$(field Restarts)
    lines=
    for f in "$work/json/$t"-*.json; do
        lines="$lines $(wc -l <"$f")"
    done
    echo "task $t: $js, exit $code, restarts $restarts, JSON lines of each attempt:$lines"
    [ "$js $code" != "COMPLETED 0:0" ] || [ "$(cat "$s/rc/$t-$restarts")" != 0 ] || good=$((good + 1))
    [ "$t" != "$victim" ] || again=$restarts
    t=$((t + 1))
done
echo "$(find "$work/out" -type f | wc -l) files in $work/out"
[ $good -eq 8 ] || die "$good of 8 tasks ended with status 0"
[ -n "$victim" ] || die "no task was killed amid its work: each was through before"
[ "$again" -ge 1 ] || die "task $victim was killed, but not requeued"
echo "all 8 tasks ended with status 0; task $victim was killed and requeued"
