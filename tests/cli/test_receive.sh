# The recipe app/recipes/receive.sh with a real storescp: 200 files that a storescu sends on loopback are compressed as they
# arrive. usage, after the common arguments: RECIPE
. "${0%/*}/steps.sh"
RECIPE=$4
for program in storescp storescu dcmodify flock; do
    command -v $program >/dev/null || { echo "skipped: no $program (Debian: dcmtk, util-linux)" && exit 77; }
done
can proc || exit 77
export TESSERA
PATH=$BIN:$PATH
server=
abandon()
{
    [ -z "$server" ] || kill "$server" 2>/dev/null
    wait
}
trap abandon EXIT

# 200 instances of 64x64.
mkdir send copies incoming
i=100
while [ $i -lt 300 ]; do
    cp "$DATA/dicom/mr/small_0$((1 + i % 8)).dcm" send/$i.dcm
    i=$((i + 1))
done
dcmodify -nb -gin send/*.dcm >/dev/null 2>&1 || bad "dcmodify fails"

# Whether the server itself, and no other program, listens on the port.
listens()
{
    for inode in $(awk -v port="$(printf ':%04X$' "$port")" '$2 ~ port && $4 == "0A" { print $10 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null); do
        find "/proc/$server/fd" -lname "socket:\[$inode\]" 2>/dev/null | grep -q . && return 0
    done
    return 1
}
# starts COMMAND: a storescp that runs it for each file, on the first port that is free. One that finds the port in use ends.
starts()
{
    port=$((20000 + $$ % 20000))
    tries=0
    while [ $tries -lt 20 ]; do
        storescp -B -od incoming -xs -xcr "$1" $port >"$WORK/storescp" 2>&1 &
        server=$!
        awaits $server listens && return 0
        port=$((port + 7)) tries=$((tries + 1))
    done
    bad "no storescp: $(tail -1 "$WORK/storescp")"
    finish
}
sends()
{
    storescu localhost $port "$@" >"$err" 2>&1 || bad "storescu fails: $(tail -1 "$err")"
}
# waits COUNT: until the server answers again, which has run its command for all files then. So many are left in incoming.
waits()
{
    awaits $server echoscu localhost $port >/dev/null 2>&1 || bad "storescp has ended: $(tail -1 "$WORK/storescp")"
    [ "$(find incoming -type f | wc -l)" -eq "$1" ] || bad "$(find incoming -type f | wc -l) files are left, not $1"
}
archived()
{
    find archive -type f -name '*.tsr' | wc -l
}

# One instance cannot be written: a folder has its name. Its original must stay; all others must go.
starts "cp '#p/#f' copies/ && sh $RECIPE incoming archive '#p' '#f'"
sends send/100.dcm
waits 0
[ "$(archived)" -eq 1 ] || bad "the first instance is not in the archive"
blocked=$(cd copies && echo *)
rm archive/"$blocked".tsr
mkdir archive/"$blocked".tsr
sends +sd send
waits 1
[ -f incoming/"$blocked" ] || bad "the original of the instance that failed is gone"
[ "$(ls copies | wc -l)" -eq 200 ] || bad "$(ls copies | wc -l) instances were received, not 200"
[ "$(archived)" -eq 199 ] || bad "$(archived) instances are in the archive, not 199"
[ "$(grep -c '"output":null,"status":"failed"' archive/receive.json)" -eq 1 ] || bad "the log does not have the instance that failed"

# What is left is taken once it can be. Then the archive restores what was received, and the log says so.
rmdir archive/"$blocked".tsr
run 0 sh "$RECIPE" incoming archive
waits 0
run 0 "$TESSERA" verify -q copies archive
[ "$(archived)" -eq 200 ] || bad "$(archived) instances are in the archive, not 200"
run 0 sh "$RECIPE" incoming archive
"$TESSERA" summary archive/receive.json >"$out" 2>"$err"
grep -q '^200 files' "$out" || bad "the summary of the log: $(head -5 "$out" "$err")"

# Instances that are sent again, and are the same: nothing changes, nothing is left.
(cd archive && cksum ./*.tsr) >"$WORK/before"
sends send/100.dcm send/150.dcm send/299.dcm
waits 0
(cd archive && cksum ./*.tsr) | cmp -s - "$WORK/before" || bad "what was sent again has changed the archive"
no_parts archive

# Instances of other bytes under a name that the archive has: both are kept, as they arrive and afterwards.
name=$(ls copies | head -1)
mkdir new && cp copies/"$name" new/before && cp new/before new/first && cp copies/"$name" new/second && cp copies/"$name" new/third
for one in first second third; do dcmodify -nb -i "(0010,4000)=$one" new/$one >"$out" 2>&1 || bad "dcmodify fails"; done
sends new/first
waits 0
cp new/second incoming/"$name" && cp new/third incoming/fourth
run 0 sh "$RECIPE" incoming archive
cp new/third incoming/"$name"
run 0 sh "$RECIPE" incoming archive incoming "$name"
waits 0
[ "$(archived)" -eq 204 ] || bad "$(archived) instances are in the archive, not 204"
run 0 "$TESSERA" decompress -q -r archive -o back
cmp -s back/"$name" new/before || bad "the .tsr of an earlier instance was replaced"
for one in second third; do
    digits=$(sha256sum <new/$one | cut -c 1-16)
    cmp -s back/"$name.$digits" new/$one || bad "$one is not in the archive under a name of its own"
done
run 0 "$TESSERA" summary archive/receive.json

# They are sent again: nothing changes. One that cannot get its name stays.
(cd archive && cksum ./*.tsr) >"$WORK/before"
cp new/second incoming/"$name"
run 0 sh "$RECIPE" incoming archive
waits 0
cp new/second incoming/"$name" && mkdir -p incoming/"$name.$(sha256sum <new/second | cut -c 1-16)"/"$name"
run 41 sh "$RECIPE" incoming archive incoming "$name"
cmp -s incoming/"$name" new/second || bad "an instance that could not be renamed is gone"
rm -rf incoming/*
(cd archive && cksum ./*.tsr) | cmp -s - "$WORK/before" || bad "what was sent again has changed the archive"

# A name outside of INCOMING is refused.
run 2 sh "$RECIPE" incoming archive send 100.dcm
[ -f send/100.dcm ] || bad "a file outside of INCOMING is gone"

finish
