# mount: the originals as files. diff, dcmdump and pydicom read them, many processes at once; a damaged file is an error,
# and so is a folder of which files are lost; a .tsr that is replaced is never mixed with what it was; memory stays within
# the cache.
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
    awaits "$server" grep -q " $WORK/box/$folder fuse.tessera " /proc/self/mounts
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
ends m

# A .tsr that is replaced while it is mounted. What is opened afterwards is the new original, with its size and its time; what
# was opened before is the old one to its end, or fails.
mkdir versions replaced
{ printf 'P5 1000 2000 255\n' && head -c 2000000 /dev/urandom; } >versions/a
{ printf 'P5 1000 2000 255\n' && head -c 2000000 /dev/urandom; } >versions/b
{ printf 'P5 1000 2100 255\n' && head -c 2100000 /dev/urandom; } >versions/longer
cp in/dicom/ct/slice_01.dcm versions/dicom
for name in a b longer dicom; do
    touch -d "2020-01-01 00:00:0$(printf %s $name | wc -c)" versions/$name
    run 0 "$TESSERA" compress -q versions/$name -o versions/$name.tsr
done
touch -r versions/a.tsr versions/b.tsr # the same size and time
[ "$(stat -c '%s %Y' versions/a.tsr)" = "$(stat -c '%s %Y' versions/b.tsr)" ] || bad "the versions differ in size or time"

# put HOW NAME: the .tsr of that version takes the name, or the place of the file's bytes.
put()
{
    case $1 in
    renamed) cp -p "versions/$2.tsr" replaced/new && mv replaced/new replaced/x.tsr ;;
    over) cat "versions/$2.tsr" >replaced/x.tsr && touch -r "versions/$2.tsr" replaced/x.tsr ;;
    esac
}
# shows NAME WHAT: a file that is opened now is that version.
shows()
{
    [ "$(stat -c '%s %Y' m/x)" = "$(stat -c '%s %Y' "versions/$1")" ] || bad "$2: size and time are not those of $1: $(stat -c '%s %Y' m/x)"
    cat m/x >"$WORK/got" 2>"$err" || bad "$2: $1 is not read: $(cat "$err")"
    cmp "versions/$1" "$WORK/got" || bad "$2: $1 is another"
}
for cache in 1M 64M; do
    for how in renamed over; do
        put renamed a
        mounts m --cache $cache replaced || bad "cannot mount: $(cat "$WORK/log")"
        for name in a b a longer b dicom a; do
            exec 3<m/x
            head -c 300000 <&3 >"$WORK/begun"
            was=$(stat -L -c %s /proc/self/fd/3 2>/dev/null)
            cmp -n 300000 m/x "$WORK/begun" || bad "$how, $cache: the beginning is another"
            cp m/x "$WORK/old"
            put $how $name
            cat <&3 >>"$WORK/begun" 2>"$err" && { cmp "$WORK/old" "$WORK/begun" || bad "$how, $cache: an open file is two originals"; }
            cmp -n "$(bytes_of "$WORK/begun")" "$WORK/old" "$WORK/begun" || bad "$how, $cache: an open file has bytes of another"
            [ "$(stat -L -c %s /proc/self/fd/3 2>/dev/null)" = "$was" ] || bad "$how, $cache: an open file has another size"
            exec 3<&-
            shows $name "$how, $cache"
        done
        # Opened before, and read for the first time afterwards: the kernel may still have a part of it, and gives that.
        exec 3<m/x
        put $how b
        cat <&3 >"$WORK/got" 2>"$err" && { cmp versions/a "$WORK/got" || bad "$how, $cache: a file that was opened before is another"; }
        cmp -n "$(bytes_of "$WORK/got")" versions/a "$WORK/got" || bad "$how, $cache: a file that was opened before has bytes of another"
        exec 3<&-
        shows b "$how, $cache"
        # The same original in a new file; what is no .tsr; nothing; and back.
        put $how b
        shows b "$how, $cache, again"
        cp versions/a replaced/x.tsr
        cat m/x >"$WORK/got" 2>"$err" && bad "$how, $cache: a file that is no .tsr is read"
        [ ! -s "$WORK/got" ] || bad "$how, $cache: a file that is no .tsr has bytes"
        rm replaced/x.tsr
        cat m/x >"$WORK/got" 2>"$err" && bad "$how, $cache: a file that is gone is read"
        ls m >/dev/null || bad "a folder is not read"
        put renamed longer
        shows longer "$how, $cache, back"
        ends m
    done
done

# The same of a file in a series: by its name, also where it has another number.
mkdir -p members/one/sub members/other/sub
cp versions/a members/one/sub/x && cp versions/dicom members/one/y
cp versions/b members/other/sub/x && cp versions/dicom members/other/y && cp versions/longer members/other/first
for name in one other; do
    run 0 "$TESSERA" compress -q -r --series members/$name.tsr members/$name
done
mkdir held
cp members/one.tsr held/s.tsr
mounts m --cache 1M held || bad "cannot mount: $(cat "$WORK/log")"
for name in other one other one; do
    exec 3<m/s/sub/x
    cp m/s/sub/x "$WORK/old"
    head -c 300000 <&3 >"$WORK/begun"
    if [ $name = other ]; then cp members/$name.tsr held/new && mv held/new held/s.tsr; else cat members/$name.tsr >held/s.tsr; fi
    cat <&3 >>"$WORK/begun" 2>"$err" && { cmp "$WORK/old" "$WORK/begun" || bad "series: an open file is two originals"; }
    exec 3<&-
    diff members/$name/sub/x m/s/sub/x || bad "series: a file of $name is another"
    diff members/$name/y m/s/y || bad "series: the same file of $name is another"
done
[ ! -e m/s/first ] || bad "the tree of a mount has changed"
rm members/other/y
run 0 "$TESSERA" compress -q -f -r --series held/s.tsr members/other
cat m/s/y >"$WORK/got" 2>"$err" && bad "series: a file that is gone is read"
[ ! -s "$WORK/got" ] || bad "series: a file that is gone has bytes"
grep -q "y in $WORK/box/held/s.tsr: the series has no such file any more" "$WORK/log" || bad "the log does not name a file that is gone: $(cat "$WORK/log")"
run 0 "$TESSERA" compress -q -f versions/a -o held/s.tsr
cat m/s/sub/x >"$WORK/got" 2>"$err" && bad "series: a file is read of what is no series"
ends m

# Lost files. Those with a name are files that cannot be read; where names are lost, a folder cannot be read to its end.
# fails_to_list FOLDER NAME...: the folder has these names, and reading it fails.
fails_to_list()
{
    listed=$1
    shift
    ls "$listed" >"$out" 2>"$err" && bad "$listed is listed without an error: $(cat "$out")"
    grep -q 'Input/output error' "$err" || bad "listing $listed is another error: $(cat "$err")"
    for name; do
        [ -f "$listed/$name" ] || [ -d "$listed/$name" ] || bad "$listed does not have $name"
    done
    rm -rf "$WORK/copied"
    cp -r "$listed" "$WORK/copied" 2>"$err" && bad "cp -r of $listed ends well"
    find "$listed" >/dev/null 2>&1 && bad "find in $listed ends well"
    tar -cf "$WORK/copied.tar" "$listed" 2>"$err" && bad "tar of $listed ends well"
    command -v rsync >/dev/null && rsync -r "$listed/" "$WORK/copied" 2>"$err" && bad "rsync of $listed ends well"
    return 0
}
mkdir -p lost/in/sub lost/in/deep/er lost/arch
for i in 1 2 3 4 5 6 7 8; do head -c 3000 /dev/urandom >lost/in/$i.bin; done
cp lost/in/1.bin lost/in/sub
cp lost/in/2.bin lost/in/deep/er
cp versions/a.tsr lost/arch/whole.tsr
run 0 "$TESSERA" compress -q -r --series lost/s.tsr lost/in
head -c 12000 lost/s.tsr >lost/arch/s.tsr
mounts m lost/arch || bad "cannot mount: $(cat "$WORK/log")"
grep -q '^tessera: .*lost/arch/s.tsr: 7 of the 10 files of the series are lost.*; reading its folder in the mount fails$' "$WORK/log" || bad "the log does not name the lost files: $(cat "$WORK/log")"
fails_to_list m/s 1.bin 2.bin 3.bin
cmp lost/in/2.bin m/s/2.bin || bad "a file beside lost ones is another"
[ "$(ls m | tr '\n' ' ')" = 's whole ' ] || bad "other names: $(ls m)"
cmp versions/a m/whole || bad "a file beside a folder of lost ones is another"
cp -r m "$WORK/copied" 2>/dev/null && bad "cp -r of a mount with lost files ends well"
ends m
# As the archive itself; and cut so late that only deeper files are there: these folders may lack files, too.
mounts m lost/arch/s.tsr || bad "cannot mount: $(cat "$WORK/log")"
fails_to_list m 1.bin 2.bin 3.bin
ends m
run 0 "$TESSERA" compress -q --series lost/s.tsr -f lost/in/deep/er/2.bin lost/in/sub/1.bin lost/in/3.bin lost/in/4.bin
head -c 7500 lost/s.tsr >lost/arch/s.tsr
mounts m lost/arch || bad "cannot mount: $(cat "$WORK/log")"
for folder in m/s m/s/lost m/s/lost/in m/s/lost/in/deep m/s/lost/in/deep/er; do fails_to_list $folder; done
cmp lost/in/2.bin m/s/lost/in/deep/er/2.bin || bad "a deep file beside lost ones is another"
ends m
# A file whose name is there and whose bytes are not.
run 0 "$TESSERA" compress -q -f -r --series lost/arch/s.tsr lost/in
changes_byte lost/arch/s.tsr 5000
mounts m lost/arch || bad "cannot mount: $(cat "$WORK/log")"
[ "$(find m/s -type f | wc -l)" -eq 10 ] || bad "a damaged file of a series has no name"
cat m/s/2.bin >"$WORK/got" 2>"$err" && bad "a damaged file of a series is read"
cp -r m "$WORK/copied2" 2>/dev/null && bad "cp -r of a damaged file ends well"
[ "$(find "$WORK/copied2/s" -type f -size +0 | wc -l)" -eq 9 ] || bad "files beside a damaged one are not copied"
ends m
# One whose description is damaged: of its name nothing is known.
run 0 "$TESSERA" compress -q -f -r --series lost/arch/s.tsr lost/in
changes_byte lost/arch/s.tsr "$(grep -obaF 2.bin lost/arch/s.tsr | head -1 | cut -d: -f1)"
mounts m lost/arch || bad "cannot mount: $(cat "$WORK/log")"
fails_to_list m/s 1.bin 3.bin sub
[ ! -e m/s/2.bin ] || bad "a name is there that is lost"
ends m
# What cannot be opened at all, is no .tsr, is of another version: a name whose reading fails.
rm lost/arch/s.tsr
cp versions/a lost/arch/no.tsr
printf '\211TSR\r\n' >lost/arch/short.tsr
: >lost/arch/empty.tsr
head -c 40 versions/a.tsr >lost/arch/cut.tsr
head -c 20 lost/s.tsr >lost/arch/cut_series.tsr
cp versions/dicom.tsr lost/arch/version.tsr
changes_byte lost/arch/version.tsr 6 # the version, which the check of the header says is wrong, as is that of its copy
changes_byte lost/arch/version.tsr $(($(bytes_of lost/arch/version.tsr) - 3))
mounts m lost/arch || bad "cannot mount: $(cat "$WORK/log")"
for name in no short empty cut cut_series version; do
    [ -f m/$name ] || bad "what cannot be opened has no name: $name"
    [ "$(stat -c '%a %Y' m/$name)" = "$(stat -c '%a %Y' lost/arch/$name.tsr)" ] || bad "permissions and time of what cannot be opened: $(stat -c '%a %Y' m/$name)"
    cat m/$name >"$WORK/got" 2>"$err" && bad "what cannot be opened is read: $name"
    grep -q 'Input/output error' "$err" || bad "what cannot be opened is another error: $(cat "$err")"
    # tar looks into no file of 0 bytes.
    tar -cf "$WORK/copied.tar" m/$name 2>/dev/null && bad "tar of what cannot be opened ends well: $name"
    grep -q "^tessera: .*lost/arch/$name.tsr" "$WORK/log" || bad "the log does not name $name: $(cat "$WORK/log")"
done
cp -r m "$WORK/copied3" 2>/dev/null && bad "cp -r of what cannot be opened ends well"
command -v rsync >/dev/null && rsync -r m/ "$WORK/copied4" 2>/dev/null && bad "rsync of what cannot be opened ends well"
# It is read again when it is mended.
cp versions/b.tsr lost/arch/cut.tsr
cmp versions/b m/cut || bad "what was mended is not read"
ends m
# Two files of one name: the folder cannot be read to its end; the others are well.
rm lost/arch/*
mkdir lost/arch/x lost/arch/other
cp versions/a.tsr lost/arch/x.tsr
cp versions/dicom.tsr lost/arch/x/y.tsr
cp versions/dicom.tsr lost/arch/other/y.tsr
mounts m lost/arch || bad "cannot mount: $(cat "$WORK/log")"
fails_to_list m x other
ls m/x m/other >/dev/null || bad "a folder beside a hidden file is not read"
grep -q 'x.tsr: x is not shown: another file or a folder has its name' "$WORK/log" || bad "the log does not name a hidden file: $(cat "$WORK/log")"
ends m
# Links are not taken, as by decompress.
rm -r lost/arch/*
cp versions/a.tsr lost/arch/x.tsr
ln -s x.tsr lost/arch/link.tsr
ln -s ../in lost/arch/folder
mounts m lost/arch || bad "cannot mount: $(cat "$WORK/log")"
[ "$(ls m)" = x ] || bad "links are shown: $(ls m)"
for name in link.tsr folder; do
    grep -q "lost/arch/$name is not shown: symbolic link$" "$WORK/log" || bad "the log does not name the link $name: $(cat "$WORK/log")"
done
ends m
# A name that no file can have.
rm -r lost/arch/*
cp versions/a.tsr lost/arch/..tsr
mounts m lost/arch || bad "cannot mount: $(cat "$WORK/log")"
cmp versions/a m/..tsr || bad "a file is hidden whose name is that of a folder"
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
