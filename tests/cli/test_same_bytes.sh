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
finish
