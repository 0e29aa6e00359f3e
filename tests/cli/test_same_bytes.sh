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
