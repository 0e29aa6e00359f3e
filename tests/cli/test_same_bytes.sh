# In no coding does the number of threads or a second run change a byte.
. "${0%/*}/steps.sh"

same() # THREADS INPUT OPTION...: the bytes must be those of one thread
{
    threads=$1 input=$2
    shift 2
    [ -d t1 ] || run 0 "$TESSERA" compress -r -q -T 1 "$@" "$input" -o t1
    run 0 "$TESSERA" compress -r -q -T "$threads" "$@" "$input" -o t
    diff -r t1 t || bad "$*: other bytes with $threads threads"
    expect "nothing was compared" [ "$(find t -type f | wc -l)" -eq "$(find "$input" -type f | wc -l)" ]
    rm -rf t
}
same_restored() # THREADS
{
    run 0 "$TESSERA" decompress -r -q -T 1 t1 -o r1
    run 0 "$TESSERA" decompress -r -q -T "$1" t1 -o r
    diff -r r1 r || bad "other restored bytes with $1 threads"
    expect "nothing was compared" [ "$(find r -type f | wc -l)" -eq "$(find t1 -type f | wc -l)" ]
    rm -rf t1 r1 r
}

# Files whose streams are garbage, and whose images are larger and larger. The memory that is claimed for the image grows
# with the threads, and with one thread it is less or more than packing takes, which comes next.
rows=712 columns=722 count=0 # where they stand in the file
mkdir garbage
for side in 64 128 256 320 384 416 448 480 512 544 576 640 768 1024; do
    file=garbage/$side.dcm count=$((count + 1))
    cp "$DATA/dicom/forms/jpeg_ls_garbage.dcm" $file
    for at in $rows $columns; do
        expect "another element stands at byte $at" [ "$(od -An -tu1 -j $((at - 4)) -N 6 $file | tr -s ' ')" = " 85 83 2 0 64 0" ]
        printf "$(printf '\\%03o' $((side % 256)) $((side / 256)))" | dd of=$file bs=1 seek=$at conv=notrunc 2>"$err"
    done
done
same 2 garbage
same 7 garbage
run 0 "$TESSERA" info -r --json t1
[ "$(grep -c '"restore":"streams"' "$out")" -eq $count ] || bad "not all $count files of garbage are coded by their streams"
same_restored 7

same 2 "$DATA"
same 7 "$DATA"
same_restored 7
same 7 "$DATA/pnm" --path transform --coder cavlc
same_restored 2
same 2 "$DATA/dicom" --qp 23.5 --allow-lossy
same 7 "$DATA/dicom" --qp 23.5 --allow-lossy
same_restored 7
same 7 "$DATA/png" --qp 23.5
# A volume of 60 slices of nine kinds, most of which are equal to earlier ones: threads hash what is read while slices are
# coded, and the next slice takes the place of an equal one.
rm -rf t1 && mkdir slices volume
head -c 65536 /dev/zero >slices/0
for kind in 1 2 3 4 5 6 7 8; do
    dd if="$DATA/pnm/landscape_8bit.ppm" of=slices/$kind bs=512 skip=$((kind * 40)) count=128 2>"$err"
done
zeros() { head -c "$1" /dev/zero; }
{
    printf '\134\001\000\000' && zeros 36
    printf '\003\000\000\001\000\001\074\000\001\000\001\000\001\000\001\000' && zeros 14
    printf '\002\000\010\000' && zeros 2
    for size in 1 2 3 4 5 6 7 8; do printf '\000\000\200\077'; done
    printf '\000\000\260\103' && zeros 232 && printf 'n+1\000' && zeros 4
    i=0 names=
    while [ $i -lt 60 ]; do names="$names slices/$((i * i / 7 % 9))" i=$((i + 1)); done
    # shellcheck disable=SC2086 # names are words
    cat $names
} >volume/equal.nii
same 2 volume
same 7 volume
run 0 "$TESSERA" info -r --json t1
grep -q '"frames":60' "$out" || bad "the volume has no 60 slices"
expect "equal slices are coded" [ "$(wc -c <t1/equal.nii.tsr)" -lt 500000 ]
same_restored 7

finish
