# The tests of the mount and of the recipe for storescp see planted faults: each must fail then, at the check that is named
# here. usage, after the common arguments: SCRIPTS RECIPES mount|receive
. "${0%/*}/steps.sh"
SCRIPTS=$4 RECIPES=$5 TOOL=$6
export TESSERA_STOP=1

# fails PATTERN COMMAND...: the test must fail, and say so.
fails()
{
    pattern=$1
    shift
    "$@" >"$out" 2>&1
    status=$?
    [ $status -ne 77 ] || { tail -1 "$out" && exit 77; }
    [ $status -eq 1 ] || bad "status $status with the fault of '$pattern': $(tail -3 "$out")"
    grep -q -e "^FAILED: .*$pattern" "$out" || bad "not seen: '$pattern', but: $(tail -3 "$out")"
}

mount_fault() # FAULT PATTERN
{
    fails "$2" env TESSERA_PROGRAM="$BIN/tessera_faulty" TESSERA_FAULT="$1" \
        sh "$SCRIPTS/test_mount.sh" "$BIN" "$DATA" "$WORK/mount"
}

recipe_fault() # EDIT PATTERN
{
    sed "$1" "$RECIPES/receive.sh" >changed.sh
    cmp -s changed.sh "$RECIPES/receive.sh" && bad "$1 changes nothing"
    fails "$2" sh "$SCRIPTS/test_receive.sh" "$BIN" "$DATA" "$WORK/receive" "$PWD/changed.sh"
}

case $TOOL in
mount)
    mount_fault mount_size 'the mount shows other names, sizes'
    mount_fault mount_bytes 'the mount shows other bytes'
    mount_fault mount_damage 'damaged file 1 is read without an error'
    mount_fault mount_kept 'renamed, 1M: '
    mount_fault mount_lost 'is listed without an error'
    [ ! -x "$BIN/tsr_peak" ] || mount_fault mount_cache 'a cache of 8 MB takes'
    ;;
receive)
    recipe_fault '/^exit $status/s/^/[ $# -eq 2 ] || rm -f "$folder\/$4"; /' '0 files are left, not 1'
    recipe_fault 's/ -eq 41 / -eq 99 /' '1 files are left, not 0'
    recipe_fault '/flock 9/s/.*/    :/' 'the log does not have the instance that failed'
    ;;
esac
finish
