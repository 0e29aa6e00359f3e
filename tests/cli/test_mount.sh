# mount: the originals as files. diff, dcmdump and pydicom read them, many processes at once; a damaged file is an error;
# memory stays within the cache.
. "${0%/*}/steps.sh"
mkdir probe one
cp "$DATA"/dicom/ct/slice_01.dcm one
run 0 "$TESSERA" compress -q -r -o small one
server=

# mounts FOLDER OPTION... ARCHIVE: mounts in the foreground; its log goes to the file log.
mounts()
{
    folder=$1
    shift
    mkdir -p "$folder"
    env --default-signal=INT "$TESSERA" mount -f "$@" "$folder" >"$out" 2>"$WORK/log" &
    server=$!
    tries=0
    while kill -0 "$server" 2>/dev/null && ! grep -q " $WORK/box/$folder fuse.tessera " /proc/self/mounts; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || break
        sleep 0.05
    done
    grep -q " $WORK/box/$folder fuse.tessera " /proc/self/mounts
}

# ends FOLDER: unmounts; the server must end well.
ends()
{
    fusermount3 -u "$1" || umount "$1" || bad "$1 cannot be unmounted"
    wait "$server" || bad "the server of $1 has ended with status $?"
    [ -z "$(ls "$1")" ] || bad "something is left in $1"
}
abandon()
{
    [ -z "$server" ] || kill "$server" 2>/dev/null
    wait
}
trap abandon EXIT

if ! mounts probe small; then
    why=$(tail -1 "$WORK/log")
    case $why in
    *'made without libfuse3'*) echo "skipped: $why" && exit 77 ;;
    *'/dev/fuse'* | *[Pp]ermission* | *permitted* | *fusermount3*) echo "skipped: no mounts here: $why" && exit 77 ;;
    esac
    bad "cannot mount: $why"
    finish
fi
ends probe

# What shows nothing is not mounted: the statuses are those of tessera test.
mkdir empty
refuses 20 '/dev/null' "$TESSERA" mount /dev/null probe
refuses 21 'is not a .tsr file' "$TESSERA" mount "$(find "$DATA" -name '*.png' | head -1)" probe
refuses 22 'no .tsr files' "$TESSERA" mount empty probe
refuses 22 'no .tsr files' "$TESSERA" mount one probe
grep -q " $WORK/box/probe fuse.tessera " /proc/self/mounts && fusermount3 -u probe

# picture_of FOLDER: names, sizes, times, permissions.
picture_of()
{
    (cd "$1" && find . -type f -printf '%p %s %m %T@\n' | sort && find . -type d -printf '%p\n' | sort)
}

# The whole set, with a folder without files: the same names, sizes, times, permissions and bytes.
cp -rp "$DATA" in
mkdir -p in/nothing/here
chmod 640 in/other/text.txt
run 0 "$TESSERA" compress -q -r -o archive in
mounts m archive || bad "cannot mount: $(cat "$WORK/log")"
picture_of in >"$WORK/wanted"
picture_of m >"$WORK/shown"
diff "$WORK/wanted" "$WORK/shown" >"$WORK/difference" || bad "the mount shows other names, sizes, times or permissions: $(head -4 "$WORK/difference")"
diff -r in m || bad "the mount shows other bytes"
touch m/new 2>/dev/null && bad "a file was made in the mount"
(: >m/other/text.txt) 2>/dev/null && bad "a file was opened for writing"
cat m/no_such_file 2>/dev/null && bad "a file is there that is not there"
# Any part of a file, in any order.
for at in 131072 4096 1 70001; do
    dd if=m/dicom/ct/slice_02.dcm bs=1 skip=$at count=900 2>/dev/null >"$WORK/part"
    dd if=in/dicom/ct/slice_02.dcm bs=1 skip=$at count=900 2>/dev/null | cmp - "$WORK/part" || bad "other bytes from $at on"
done
if command -v dcmdump >/dev/null; then
    for file in dicom/ct/slice_03.dcm dicom/forms/deflated.dcm dicom/forms/jpeg_ls.dcm; do
        dcmdump "m/$file" >"$WORK/one" 2>/dev/null && dcmdump "in/$file" 2>/dev/null | cmp - "$WORK/one" || bad "dcmdump prints another $file"
    done
else
    echo "not tried: no dcmdump"
fi
if python3 -c 'import numpy, pydicom' 2>/dev/null; then
    python3 - <<'P' || bad "pydicom reads other samples"
import pathlib, sys
import pydicom
for name in ("ct/slice_04.dcm", "mr/small_01.dcm", "nm/tomo.dcm", "us/sector_rgb.dcm", "forms/rle_16bit.dcm"):
    one, other = (pydicom.dcmread(f"{folder}/dicom/{name}") for folder in ("m", "in"))
    if one != other or not (one.pixel_array == other.pixel_array).all():
        sys.exit(f"{name} is another")
P
else
    echo "not tried: no pydicom"
fi
[ ! -s "$WORK/log" ] || bad "the log of a good archive: $(head -3 "$WORK/log")"
ends m

# Many readers at once, with a cache in which few files have room and some have none.
(cd in && find . -type f -exec cksum {} + | sort) >"$WORK/wanted"
mounts m --cache 200k archive || bad "cannot mount: $(cat "$WORK/log")"
for i in 1 2 3 4 5 6; do
    (cd m && find . -type f -print0 | sort -zR --random-source="$TESSERA" | xargs -0 cksum | sort) >"$WORK/sums.$i" &
    eval "reader$i=\$!"
done
for i in 1 2 3 4 5 6; do
    eval "wait \$reader$i"
    cmp -s "$WORK/wanted" "$WORK/sums.$i" || bad "reader $i of six has read other bytes"
done
[ ! -s "$WORK/log" ] || bad "the log of a good archive: $(head -3 "$WORK/log")"
ends m

# A damaged file: its name is there, reading is an error with a line in the log, no byte is wrong; the others are well.
cp -rp archive damaged
changes_byte damaged/dicom/ct/slice_01.dcm.tsr 20000
echo 'no .tsr file' >damaged/dicom/ct/slice_02.dcm.tsr
head -c 9000 archive/dicom/ct/slice_03.dcm.tsr >damaged/dicom/ct/slice_03.dcm.tsr
mounts m damaged || bad "cannot mount: $(cat "$WORK/log")"
for i in 1 2 3; do
    cat "m/dicom/ct/slice_0$i.dcm" >"$out" 2>"$err" && bad "damaged file $i is read without an error"
    grep -q 'Input/output error' "$err" || bad "damaged file $i is another error: $(cat "$err")"
    [ ! -s "$out" ] || bad "damaged file $i has given bytes"
    grep -q "^tessera: .*damaged/dicom/ct/slice_0$i.dcm.tsr" "$WORK/log" || bad "the log does not name damaged file $i: $(cat "$WORK/log")"
done
cmp in/dicom/ct/slice_04.dcm m/dicom/ct/slice_04.dcm || bad "a file beside damaged ones is another"
# What changes behind the mount: the size that was told would be wrong.
stat m/dicom/ct/slice_05.dcm >/dev/null
cp archive/png/ct_grey16.png.tsr damaged/dicom/ct/slice_05.dcm.tsr
cat m/dicom/ct/slice_05.dcm >/dev/null 2>&1 && bad "a file that was replaced is read"
grep -q 'has changed since it was mounted' "$WORK/log" || bad "a replaced file is not in the log"
ends m

# A series; a folder with a series in it; one .tsr; a lossy one.
run 0 "$TESSERA" compress -q -r --series s.tsr in/dicom in/other
mounts m s.tsr || bad "cannot mount a series: $(cat "$WORK/log")"
run 0 "$TESSERA" decompress -q s.tsr -o back
diff -r back m || bad "the mount of a series is another"
picture_of back >"$WORK/wanted"
picture_of m | diff "$WORK/wanted" - >"$WORK/difference" || bad "the mount of a series has other names, sizes, times or permissions: $(head -4 "$WORK/difference")"
ends m
mkdir mixed
mv s.tsr mixed
run 0 "$TESSERA" compress -q --qp 20 in/dicom/ct/slice_01.dcm -o mixed/lossy.dcm.tsr
run 0 "$TESSERA" compress -q --qp 20 in/png/ct_grey16.png -o mixed/lossy.png.tsr
run 0 "$TESSERA" decompress -q -r -o back2 mixed
mounts m mixed || bad "cannot mount: $(cat "$WORK/log")"
diff -r back2 m || bad "the mount of a folder with a series and lossy files is another"
[ "$(bytes_of m/lossy.png)" = "$(stat -c %s m/lossy.png)" ] || bad "the size of a lossy file is another"
ends m
mounts m small/slice_01.dcm.tsr || bad "cannot mount one file: $(cat "$WORK/log")"
diff -r one m || bad "the mount of one file is another"
# ctrl-c unmounts.
kill -INT "$server"
wait "$server" || bad "ctrl-c ends with status $?"
grep -q " $WORK/box/m " /proc/self/mounts && bad "ctrl-c leaves the mount"

# In the background.
run 0 "$TESSERA" mount small m
diff -r one m || bad "the mount in the background is another"
refuses 2 'cannot mount on m: it is not empty' "$TESSERA" mount small m
fusermount3 -u m || umount m

# What cannot be mounted.
mkdir full
touch full/file
refuses 2 'cannot mount on full: it is not empty' "$TESSERA" mount small full
refuses 2 'cannot mount on full/file: it is no folder' "$TESSERA" mount small full/file
refuses 2 'cannot mount on nowhere: No such file' "$TESSERA" mount small nowhere
refuses 20 'cannot open nothing: No such file' "$TESSERA" mount nothing m
refuses 22 'no .tsr files here: 1 other file' "$TESSERA" mount full m
refuses 2 'mount wants two names' "$TESSERA" mount small

# Memory: 24 files of 3 MB, all held open while they are read, so that none may go. What has no room in the cache is in a file.
if [ -x "$BIN/tsr_peak" ]; then
    mkdir large
    for i in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do
        { printf 'P5\n1500 2000\n255\n' && head -c 3000000 /dev/urandom; } >"large/$i.pgm"
    done
    run 0 "$TESSERA" compress -q -1 -r -o many large
    for cache in 8M 200M; do
        mounts m -T 1 --cache $cache many || bad "cannot mount: $(cat "$WORK/log")"
        tail -f -n +1 m/*.pgm >/dev/null 2>&1 &
        holder=$!
        diff -r large m || bad "large files are others with a cache of $cache"
        eval "peak_$cache=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$server/status")"
        kill "$holder"
        wait "$holder" 2>/dev/null
        sleep 0.2
        ends m
    done
    echo "peaks: $peak_8M kB with --cache 8M, $peak_200M kB with --cache 200M"
    [ "$peak_8M" -lt 60000 ] || bad "a cache of 8 MB takes $peak_8M kB"
    [ "$peak_200M" -gt $((peak_8M + 30000)) ] || bad "a cache of 200 MB takes $peak_200M kB, one of 8 MB $peak_8M"
fi

finish
