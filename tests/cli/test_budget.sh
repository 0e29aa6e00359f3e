# --memory: it changes no byte. A file that never fits ends with 62 and the amount of memory that would be enough, and that
# is enough. Files wait for each other. A run takes no more memory than it may.
. "${0%/*}/steps.sh"

# Writes a number as bytes.
octal() # NUMBER BYTES: most significant byte first
{
    number=$1 text=
    for _ in $(seq "$2"); do
        text=$(printf '\\%03o' $((number % 256)))$text
        number=$((number / 256))
    done
    printf "$text"
}
# Writes a PNG chunk. gzip makes its checksum.
chunk() # TYPE FILE
{
    octal "$(bytes_of "$2")" 4
    printf '%s' "$1" | cat - "$2" >"$WORK/chunk"
    cat "$WORK/chunk"
    gzip -c <"$WORK/chunk" | tail -c 8 | od -An -tu1 -N 4 | (read -r a b c d && octal "$d" 1 && octal "$c" 1 && octal "$b" 1 && octal "$a" 1)
}
# black_png SIDE: an image with few bytes and many samples.
black_png()
{
    size=$(($1 * ($1 + 1)))
    { octal "$1" 4 && octal "$1" 4 && octal 8 1 && octal 0 4; } >"$WORK/ihdr"
    head -c "$size" /dev/zero | gzip -nc >"$WORK/gzip"
    { octal 120 1 && octal 156 1 && tail -c +11 "$WORK/gzip" | head -c -8 && octal $((size % 65521)) 2 && octal 1 2; } >"$WORK/idat"
    : >"$WORK/iend"
    printf '\211PNG\r\n\032\n'
    chunk IHDR "$WORK/ihdr"
    chunk IDAT "$WORK/idat"
    chunk IEND "$WORK/iend"
}
# noisy_pgm SIDE: 16 values at random, which take as much memory as coding can take. Compressed bytes are like noise.
noisy_pgm()
{
    printf 'P5\n%d %d\n255\n' "$1" "$1"
    seq $(($1 * $1 / 2)) | gzip -1c | tr '\000-\377' "$(printf '\\140-\\157%.0s' $(seq 16))" | head -c $(($1 * $1))
}
# The amount of memory, from stderr, that would be enough for all files that did not fit. And the least that an engine takes.
would_do()
{
    sed -n 's/.*--memory \([0-9]*\)M would do$/\1/p' "$err" | sort -n | tail -1
}
least() # THREADS
{
    run 2 "$TESSERA" compress --engine cpu -T "$1" --memory 1M small.pgm -o out.tsr
    says 'too few for [0-9]* threads: they take [0-9]*M'
    least=$(sed -n 's/.*they take \([0-9]*\)M.*/\1/p' "$err")
}
# Runs tessera with the CPU engine and this memory. It must not take more. $peak: the bytes that it took.
within() # MEGABYTES STATUS VERB...
{
    megabytes=$1 status=$2 verb=$3
    shift 3
    echo 0 >"$WORK/peak"
    set -- "$TESSERA" "$verb" --engine cpu --memory "${megabytes}M" "$@"
    [ ! -x "$BIN/tsr_peak" ] || set -- "$BIN/tsr_peak" "$WORK/peak" "$@"
    run "$status" "$@"
    peak=$(cat "$WORK/peak")
    [ "$peak" -le $((megabytes * 1000000)) ] || bad "$peak bytes were taken by: $*"
}

cp "$DATA/pnm/landscape_grey_8bit.pgm" small.pgm
for threads in 1 4; do
    least $threads
    [ -n "$least" ] || finish
    refuses 2 "they take ${least}M" "$TESSERA" compress --engine cpu -T $threads --memory $((least - 1))M small.pgm -o out.tsr
    eval "least_$threads=$least"
    within "$least" 0 compress -q -T $threads small.pgm -o small.tsr
    rm small.tsr
done
[ "$least_4" -gt "$least_1" ] || bad "4 threads take $least_4 MB, one $least_1"

# A folder and a series: the same bytes with the least memory in which all files fit and with the usual memory, with 1 and
# 4 threads.
run 0 "$TESSERA" compress --engine cpu -q -r -T 1 "$DATA" -o usual
run 0 "$TESSERA" compress --engine cpu -q -r -T 1 "$DATA" --series usual.tsr
run 0 "$TESSERA" compress --engine cpu -q -r -T 4 "$DATA" --series series.tsr
cmp usual.tsr series.tsr || bad "another series with 4 threads"
run 0 "$TESSERA" decompress --engine cpu -q -r -T 1 usual -o back
run 0 "$TESSERA" decompress --engine cpu -q -T 1 usual.tsr -o members
for threads in 1 4; do
    eval "least=\$least_$threads"
    # Most files fit in the least memory that an engine takes.
    within "$least" 75 compress -q -r -T $threads "$DATA" -o some
    megabytes=$(would_do)
    expect "one file in ten at least does not fit in ${least}M" [ "$(wc -l <"$err")" -lt $(($(find usual -type f | wc -l) / 10)) ]
    rm -r some
    within "$megabytes" 0 compress -q -r -T $threads "$DATA" -o folder
    diff -r usual folder || bad "other bytes with ${megabytes}M and $threads threads"
    expect "nothing was compared" [ "$(find folder -type f | wc -l)" -eq "$(find "$DATA" -type f | wc -l)" ]
    within "$megabytes" 0 decompress -q -r -T $threads folder -o again
    diff -r back again || bad "other files are restored with ${megabytes}M and $threads threads"
    rm -r again series.tsr
    # A file of a series gets no more than all files may have together.
    for _ in 1 2 3 4 5; do
        "$TESSERA" compress --engine cpu -q -r -T $threads --memory "${megabytes}M" "$DATA" --series series.tsr 2>"$err" && break
        megabytes=$(would_do)
    done
    within "$megabytes" 0 compress -f -q -r -T $threads "$DATA" --series series.tsr
    cmp usual.tsr series.tsr || bad "another series with ${megabytes}M and $threads threads"
    within "$megabytes" 0 decompress -q -T $threads series.tsr -o again
    diff -r members again || bad "other members are restored with ${megabytes}M and $threads threads"
    within "$megabytes" 0 test -q -T $threads series.tsr
    rm -r folder again
done
rm -r back members usual series.tsr usual.tsr

# Lists that have no end, or are none: no more memory than --memory, one sentence, no output. A program that takes all
# that there is has 1.5 GB.
mkfifo feed
endless() # STATUS WHAT VERB...: what is written to the pipe feed has no end
{
    status=$1 what=$2
    shift 2
    echo 0 >"$WORK/peak"
    set -- "$TESSERA" "$@"
    [ ! -x "$BIN/tsr_peak" ] || set -- "$BIN/tsr_peak" "$WORK/peak" "$@"
    (ulimit -v 1500000 && "$@") >"$out" 2>"$err" <feed
    got=$?
    [ $got -eq "$status" ] || bad "exit status $got of an endless list, not $status: $*"
    says "$what"
    peak=$(cat "$WORK/peak")
    [ "$peak" -le 200000000 ] || bad "$peak bytes were taken of an endless list by: $*"
    [ ! -e out ] || bad "an endless list leaves an output: $*"
    [ ! -s "$out" ] || bad "an endless list leaves lines on stdout: $*"
    wait # else what writes here may still write to the next reader of the pipe
}
one_line() # TEXT: again and again, without a newline
{
    yes "$1" | tr -d '\n'
}
few='take more than 50 MB, a quarter of the memory: give fewer at a time, or more --memory'
yes small.pgm >feed & endless 62 "the names in stdin $few" compress -T 2 --memory 200M --files-from - -o out
yes '' >feed & endless 62 "the names in stdin $few" compress -T 2 --memory 200M --files-from - -o out
yes | tr '\n' '\000' >feed & endless 62 "the names in stdin $few" test -T 2 --memory 200M -0 --files-from -
one_line a >feed & endless 62 'line 1 of stdin has more than 65536 bytes: no name has' compress -T 2 --memory 200M --files-from - -o out
yes >feed & endless 62 'line 1 of stdin has more than 65536 bytes: no name has' compress -T 2 --memory 200M -0 --files-from - -o out
yes >feed & endless 62 "the names in stdin $few" summary --memory 200M --files-from - /dev/null
one_line a >feed & endless 20 'stdin: line 1 is not a JSON object' summary -
one_line '{' >feed & endless 62 'line 1 of stdin has more than 25000000 bytes' summary --memory 200M -
yes '{"status":"ok","file":"a"}' >feed & endless 62 'the lines of stdin take more than' summary --memory 200M -
{ printf '{"a":[' && one_line 0, | head -c 20000000 && echo '0]}' && yes; } >feed & endless 62 'the lines of stdin take more than' summary --memory 200M -
for zeros in "--files-from /dev/zero" "-0 --files-from /dev/zero"; do
    : >feed & endless 62 'of /dev/zero has more than\|/dev/zero take more than' decompress -T 2 --memory 200M $zeros -o out
done
: >feed & endless 20 'line 1 is not a JSON object' summary /dev/zero
# Manifests are read twice, so they are files.
{ printf '# tessera manifest 1\n' && yes "# bytes=1 xxh3-128=0 restores=same
$(printf '%064d' 0)  a" | head -n 100000; } >many
refuses 62 "the names in many take more than [0-9]* MB, a quarter of the memory: give more --memory" \
    "$TESSERA" test --engine cpu -T 1 --memory "${least_1}M" --manifest many small.tsr
{ printf '# tessera manifest 1\n' && one_line a | head -c 100000; } >long
refuses 62 'line 2 of long has more than 65536 bytes: no name has' "$TESSERA" test --manifest long small.tsr
# A list of many names is no such list.
yes small.pgm | head -n 20000 >list
run 75 "$TESSERA" compress -q --files-from list -o out
rm -rf out feed list many long

# Files that never fit.
side=2500
mkdir large
black_png $side >large/a.png
noisy_pgm $side >large/b.pgm
expect "the PNG file is not small" [ "$(bytes_of large/a.png)" -lt 10000 ]
expect "the PGM file is not large" [ "$(bytes_of large/b.pgm)" -eq $((side * side + 17)) ]
for input in large/a.png large/b.pgm; do
    refuses 62 "^tessera: $input takes [0-9]* MB of memory, and of the $least_1 MB of this process [0-9]* are for a file: --memory [0-9]*M would do\$" \
        "$TESSERA" compress --engine cpu -T 1 --memory "${least_1}M" $input -o out.tsr
    run 0 "$TESSERA" compress --engine cpu -q -T 1 $input -o usual.tsr
    for threads in 1 4; do
        eval "least=\$least_$threads"
        refuses 62 'M would do' "$TESSERA" compress --engine cpu -T $threads --memory "${least}M" $input -o out.tsr
        number=$(would_do)
        within "$number" 0 compress -q -T $threads $input -o out.tsr
        cmp usual.tsr out.tsr || bad "other bytes of $input with ${number}M"
        rm -f out.tsr
        for verb in test "decompress -f -o out"; do
            "$TESSERA" $verb --engine cpu -q -T $threads --memory "${least}M" usual.tsr 2>"$err"
            status=$? number=$least
            [ $status -eq 0 ] || number=$(would_do)
            [ $status -eq 0 ] || [ $status -eq 62 ] || bad "$verb ends with $status"
            within "$number" 0 $verb -q -T $threads usual.tsr
            [ "$number" -eq "$least" ] || refuses 62 "--memory ${number}M would do" "$TESSERA" $verb --engine cpu -T $threads \
                --memory $((number - 1))M usual.tsr
        done
        rm -f out
    done
    rm usual.tsr
done
# In a set, the other files are done. A series is not written.
cp small.pgm large/c.pgm
within "$least_1" 75 compress -q -r -T 1 large -o done
[ "$(ls -A done)" = c.pgm.tsr ] || bad "done: $(ls -A done)"
[ "$(grep -c 'M would do$' "$err")" -eq 2 ] || bad "not a sentence for each of two files: $(cat "$err")"
refuses 62 'M would do' "$TESSERA" compress --engine cpu -T 1 --memory "${least_1}M" -r large --series s.tsr

# Files wait for each other: with memory for one file, four threads take no more memory for four files, and make the same
# bytes.
rm -r large/c.pgm large/a.png done
run 62 "$TESSERA" compress --engine cpu -q -T 4 --memory "${least_4}M" large/b.pgm -o out.tsr
number=$(would_do)
within "$number" 0 compress -q -T 4 large/b.pgm -o one.tsr
peak_of_one=$peak
for name in c d e; do cp large/b.pgm large/$name.pgm; done
within "$number" 0 compress -q -r -T 4 large -o done
[ "$peak" -le $((2 * peak_of_one)) ] || bad "four files take $peak bytes, one takes $peak_of_one"
for name in b c d e; do cmp one.tsr done/$name.pgm.tsr || bad "other bytes where files wait for memory"; done
within "$number" 0 decompress -q -r -T 4 done -o back
diff -r large back || bad "other files are restored where they wait for memory"
# A series reports that its members need more memory for their proof.
"$TESSERA" compress --engine cpu -q -r -T 4 --memory "${number}M" large --series s.tsr 2>"$err" || number=$(would_do)
within "$number" 0 compress -f -q -r -T 4 large --series s.tsr
[ "$peak" -le $((2 * peak_of_one)) ] || bad "a series of four files takes $peak bytes, one takes $peak_of_one"
# A series ends, too, if a file fails while others wait for memory for their results.
mkdir fails
for k in 1 2 3 4 5 6 7 8; do cp "$DATA/other/random.bin" fails/a$k; done
cp "$DATA/dicom/sizes/5x7_frames.dcm" fails/b.dcm
for k in 1 2 3 4; do head -c 3000000 /dev/zero >fails/c$k; done
for _ in 1 2; do
    refuses 62 'fails/b.dcm takes .* --memory [0-9]*M would do' \
        "$TESSERA" compress --engine cpu -T 4 --memory "${least_4}M" -r fails --series out.tsr
done
# What a gzip file in an archive inflates to counts before it is looked into.
{ printf 'P5\n14000 14000\n255\n' && head -c 196000000 /dev/zero; } | gzip -1n >bomb.gz && tar -cf bomb.tar bomb.gz
within $((least_1 + 10)) 62 compress -f -T 1 bomb.tar
says 'would do, unless a file in it takes more$'
no_parts .
finish
