#!/bin/sh
# Runs the program as four ranks of Open MPI's mpirun. usage: mpi.sh TESSERA IN WORK ATTEMPT [PIPES], absolute paths.
# Output goes to WORK/out, each rank's JSON lines to WORK/json/RANK-ATTEMPT.json, or to the FIFO PIPES/RANK. The exit status
# is mpirun's.
set -eu
mkdir -p "$3/json" "$3/out"
# A rank takes its share from Open MPI, also where this runs inside a Slurm job.
unset SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_ARRAY_TASK_COUNT
# shellcheck disable=SC2016 # the rank's shell expands it
exec mpirun --allow-run-as-root --oversubscribe -n 4 sh -c '
    lines=$3/json/$OMPI_COMM_WORLD_RANK-$4.json
    [ -z "$5" ] || lines=$5/$OMPI_COMM_WORLD_RANK
    exec "$1" compress -r --update --shard=auto --json "$2" -o "$3/out" >"$lines"
' rank "$1" "$2" "$3" "$4" "${5:-}" </dev/null
