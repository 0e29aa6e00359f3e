# compress --series: several files in one, and restoring them.
. "${0%/*}/steps.sh"
mkdir -p in/below/deeper
cp "$DATA"/dicom/ct/slice_0[123].dcm in
cp "$DATA/pnm/landscape_grey_8bit.pgm" in/below/grey.pgm
cp "$DATA/png/screen_palette.png" in/below/deeper
cp "$DATA/other/text.txt" in/below/text
cp "$DATA/other/empty" in/.empty
cp "$DATA/dicom/forms/deflated.dcm" "in/a name with  blanks.dcm"

same() # FOLDER FOLDER: the same files
{
    (cd "$1" && find . -type f | sort) >"$WORK/one"
    (cd "$2" && find . -type f | sort) >"$WORK/other"
    diff "$WORK/one" "$WORK/other" || bad "other files in $2"
    while IFS= read -r name; do
        cmp "$1/$name" "$2/$name" || bad "$2/$name is another"
    done <"$WORK/one"
}

# There and back.
run 0 "$TESSERA" compress -r --series s.tsr in
grep -q '^8 files, .* -> ' "$out" && grep -q 'all proven' "$out" || bad "compress says: $(cat "$out")"
[ "$(sed -n 's/^8 files, [0-9]* -> \([0-9]*\) bytes.*/\1/p' "$out")" = "$(bytes_of s.tsr)" ] || bad "other bytes than it says: $(cat "$out")"
run 0 "$TESSERA" test s.tsr
grep -q '^8 files tested, all checksums hold' "$out" || bad "test says: $(cat "$out")"
run 0 "$TESSERA" decompress s.tsr -o back
grep -q '^8 files restored' "$out" && grep -q '8 the same file$' "$out" || bad "decompress says: $(cat "$out")"
same in back
run 0 "$TESSERA" decompress -q s.tsr # restores beside the series
same in s
no_parts .
[ ! -x "$BIN/tsr_reference" ] || run 0 "$BIN/tsr_reference" --check s.tsr
# Six slices are smaller than by themselves.
run 0 "$TESSERA" compress -q -r in -o singles
run 0 "$TESSERA" compress -q -r "$DATA/dicom/ct" -o six
run 0 "$TESSERA" compress -q "$DATA"/dicom/ct/slice_0?.dcm --series slices.tsr
alone=$(cat six/slice_0?.dcm.tsr | wc -c)
[ "$(bytes_of slices.tsr)" -lt "$alone" ] || bad "the series has $(bytes_of slices.tsr) bytes, its files by themselves $alone"
rm slices.tsr
# The same bytes with one thread. Files, folders and names are as with -o.
run 0 "$TESSERA" compress -q -T 1 -r --series one.tsr in/
cmp s.tsr one.tsr || bad "one thread makes other bytes"
run 0 "$TESSERA" compress -q -r --series mixed.tsr in/below in/slice_01.dcm
run 0 "$TESSERA" decompress -q mixed.tsr -o mixed
(cd mixed && find . -type f | sort | tr '\n' ' ') >"$WORK/names"
[ "$(cat "$WORK/names")" = './in/below/deeper/screen_palette.png ./in/below/grey.pgm ./in/below/text ./in/slice_01.dcm ' ] || bad "names: $(cat "$WORK/names")"
# With loss, in every way that single files have.
for way in '--qp 30' '--psnr 40' '--max-error 2'; do
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -q -f -r $way --series lossy.tsr in
    run 0 "$TESSERA" test -q lossy.tsr
done

# Only -f overwrites. Without it old outputs stay, and the others are restored.
run 41 "$TESSERA" compress -r --series s.tsr in
says 's.tsr exists and may be the only copy of what it holds: rename it, or name another --series'
run 0 "$TESSERA" compress -q -f -r --series one.tsr in
cp "$DATA/other/text.txt" back/slice_02.dcm && rm back/slice_03.dcm
run 75 "$TESSERA" decompress -q s.tsr -o back
[ "$(grep -c 'exists, .*; --update passes over it, -f' "$err")" -eq 3 ] && grep -q '^tessera: [34] more outputs exist; --update passes over them, -f makes them again$' "$err" && grep -q 'slice_02.dcm exists and may be the only copy' "$err" ||
    bad "not three that exist are named, and the others counted: $(cat "$err")"
cmp "$DATA/other/text.txt" back/slice_02.dcm || bad "a file was overwritten without -f"
cmp in/slice_03.dcm back/slice_03.dcm || bad "what was not there is not restored"
run 0 "$TESSERA" decompress -q -f s.tsr -o back
same in back
# The series is not one of its own files. An earlier series in the folder is left out.
cp -R in own
run 0 "$TESSERA" compress -q -r --series own/own.tsr own
run 0 "$TESSERA" compress -q -f -r --series own/own.tsr own
run 0 "$TESSERA" info --json own/own.tsr
[ "$(fields members | head -n 1)" = 8 ] || bad "the series is in itself: $(fields members file | head -n 1)"
refuses 42 'the output is the input' "$TESSERA" compress -f --series in/below/text in/below/text

# One member.
run 0 "$TESSERA" decompress s.tsr --member below/text -o text
cmp in/below/text text || bad "--member to a file"
mkdir into
run 0 "$TESSERA" decompress s.tsr --member 'a name with  blanks.dcm' -o into
cmp 'in/a name with  blanks.dcm' 'into/a name with  blanks.dcm' || bad "--member to a folder"
run 0 "$TESSERA" test -v s.tsr --member slice_02.dcm
[ "$(cat "$out" | head -n 1)" = 'ok s.tsr: slice_02.dcm' ] || bad "test --member: $(cat "$out")"
run 0 "$TESSERA" info s.tsr --member slice_02.dcm
grep -q '^s.tsr: slice_02.dcm$' "$out" && grep -q '^  image  .*256 x 256' "$out" || bad "info --member: $(cat "$out")"
for verb in decompress test info; do
    refuses 22 'no file that is called slice' "$TESSERA" $verb s.tsr --member slice
    refuses 2 'not a series' "$TESSERA" $verb singles/slice_01.dcm.tsr --member slice_01.dcm
done

# The contents of a series.
run 0 "$TESSERA" info s.tsr
[ "$(grep -c ' -> [0-9]* bytes' "$out")" -eq 8 ] && grep -q '^  series     8 files' "$out" || bad "info: $(cat "$out")"
grep -q '^  below/text  other, .*, stored$' "$out" || bad "info: $(cat "$out")"
run 0 "$TESSERA" info --json s.tsr
[ "$(fields member | grep -vc absent)" -eq 8 ] && [ "$(fields members | head -n 1)" = 8 ] || bad "info --json: $(cat "$out")"
for verb in "compress -f -r --series j.tsr in" "test s.tsr" "decompress -f s.tsr -o back"; do
    # shellcheck disable=SC2086
    run 0 "$TESSERA" ${verb%% *} --json ${verb#* }
    [ "$(fields member | sort | head -n 1)" = .empty ] && [ "$(fields member | wc -l)" -eq 8 ] || bad "$verb --json: $(fields member)"
    [ "$(fields --summary files failed)" = "8${tab}0" ] || bad "$verb --json: $(tail -n 1 "$out")"
done
run 0 "$TESSERA" compress --json -f -r --series j.tsr in
[ "$(fields --summary bytes_out)" = "$(bytes_of j.tsr)" ] || bad "the summary has other bytes"

# A series that cannot be made: one sentence, the status, and no output. With --json the file's line.
refuses 20 'No such file' "$TESSERA" compress --series n.tsr in/slice_01.dcm in/missing.dcm in/slice_02.dcm
refuses 2 'it is a folder; add -r' "$TESSERA" compress --series n.tsr in
refuses 41 'another file of the series is called in/below/text' "$TESSERA" compress -r --series n.tsr in/below in/below/text
run 20 "$TESSERA" compress --json --series n.tsr in/slice_01.dcm in/missing.dcm
[ "$(fields file status exit)" = "in/missing.dcm${tab}failed${tab}20" ] || bad "--json: $(cat "$out")"
run 75 "$TESSERA" compress -q --skip-unreadable --series n.tsr in/slice_01.dcm in/missing.dcm in/slice_02.dcm
says 'in/missing.dcm: No such file'
run 0 "$TESSERA" decompress -q n.tsr -o n
(cd n && find . -type f | sort | tr '\n' ' ') >"$WORK/names"
[ "$(cat "$WORK/names")" = './in/slice_01.dcm ./in/slice_02.dcm ' ] || bad "--skip-unreadable: $(cat "$WORK/names")"
rm -r n n.tsr
# Any name that a file can have.
mkdir names && cp in/below/text "names/new
line" && cp in/slice_01.dcm "names/$(printf 'bell\007 \377')"
run 0 "$TESSERA" compress -q -r --series n.tsr names
run 0 "$TESSERA" decompress -q n.tsr -o n
diff -r names n || bad "odd names do not come back"
run 0 "$TESSERA" info n.tsr
grep -q 'new\\nline' "$out" && grep -q 'bell\\x07' "$out" || bad "names are printed raw: $(cat "$out")"
rm -r n n.tsr
# Times and permissions of each file come back, never more than the series has. --no-times leaves them out.
cp -R in timed && chmod 640 timed/slice_01.dcm && chmod 400 timed/slice_02.dcm && touch -d '2001-02-03 04:05:06.123456789' timed/slice_02.dcm
run 0 "$TESSERA" compress -q -r --series n.tsr timed
chmod 444 n.tsr
run 0 "$TESSERA" decompress -q n.tsr -o n
(cd timed && find . -type f -printf '%p %T@\n' | sort) >"$WORK/one"
(cd n && find . -type f -printf '%p %T@\n' | sort) | diff "$WORK/one" - || bad "other times come back"
[ "$(find n/slice_01.dcm n/slice_02.dcm -printf '%m ')" = '440 400 ' ] || bad "permissions: $(find n -type f -printf '%p %m ')"
run 0 "$TESSERA" compress -q -f -r --no-times --series n.tsr timed
touch timed/*.dcm
run 0 "$TESSERA" compress -q -r --no-times --series n2.tsr timed
cmp n.tsr n2.tsr || bad "--no-times: the bytes depend on times"
rm -rf n n.tsr n2.tsr timed
# --member takes a glob.
run 0 "$TESSERA" decompress -q s.tsr --member 'slice_0[12]*' -o n
[ "$(ls n | tr '\n' ' ')" = 'slice_01.dcm slice_02.dcm ' ] || bad "--member with a glob: $(ls n)"
rm -r n
cp "$DATA/dicom/mg/"*.dcm . 2>/dev/null && {
    mammography=$(echo *.dcm | cut -d ' ' -f 1)
    refuses 2 'allow-lossy' "$TESSERA" compress --qp 20 --series n.tsr in/slice_01.dcm "$mammography"
}
refuses 2 'names the output' "$TESSERA" compress --series n.tsr in/slice_01.dcm -o n.tsr
for size in 10k 4:1; do refuses 2 'single file' "$TESSERA" compress --series n.tsr --size $size in/slice_01.dcm; done
mkdir none
refuses 22 'no files to compress here' "$TESSERA" compress -r --series n.tsr none
! can proc || refuses 40 '/proc/n.tsr' "$TESSERA" compress --series /proc/n.tsr in/slice_01.dcm
refuses 40 'File too large' sh -c "trap '' XFSZ; ulimit -f 8; exec '$TESSERA' compress -r --series n.tsr in"

# Hostile names with right checks are refused. The other members are restored.
"$BIN/tsr_sign_again" s.tsr up.tsr M 0 1 2e2e2f || bad "cannot make ../" # .empty becomes ../pty
"$BIN/tsr_sign_again" s.tsr root.tsr M 0 1 2f || bad "cannot make /"
"$BIN/tsr_sign_again" s.tsr zero.tsr M 0 2 00 || bad "cannot make a zero"
for hostile in up root zero; do
    rm -rf out
    run 75 "$TESSERA" decompress -q "$hostile.tsr" -o out
    says 'its name is not valid in a series'
    [ "$(find out -type f | wc -l)" -eq 7 ] || bad "$hostile: $(find out -type f)"
    run 75 "$TESSERA" test "$hostile.tsr"
    [ ! -x "$BIN/tsr_reference" ] || run 1 "$BIN/tsr_reference" --check "$hostile.tsr"
done
[ -e pty ] || [ -e /empty ] && bad "a name has led out of the output's folder"
# A damaged member is reported. The others are restored.
cp s.tsr damaged.tsr
changes_byte damaged.tsr 40000
rm -rf out
run 75 "$TESSERA" decompress -q damaged.tsr -o out
says 'in damaged.tsr: .*damaged'
[ "$(find out -type f | wc -l)" -eq 7 ] || bad "damaged: $(find out -type f)"
run 75 "$TESSERA" test damaged.tsr
no_parts .
# Names that are lost may be among those that are wanted: no verb takes what is left for all of them.
mkdir lost
for i in 1 2 3 4 5 6; do head -c 3000 /dev/urandom >lost/$i.bin; done
run 0 "$TESSERA" compress -q -r --series lost.tsr lost
head -c 9000 lost.tsr >lost/cut.tsr
for verb in "decompress -o out" "cat" "test" "info"; do
    rm -rf out
    run 75 "$TESSERA" $verb lost/cut.tsr
    grep -q '4 of the 6 files of the series are lost' "$err" || bad "$verb does not name what is lost: $(cat "$err")"
    rm -rf out
    run 75 "$TESSERA" $verb lost/cut.tsr --member '*.bin'
    grep -q '4 of the 6 files of the series are lost' "$err" || bad "$verb --member does not name what is lost: $(cat "$err")"
    run $([ "$verb" = info ] && echo 75 || echo 61) "$TESSERA" $verb lost/cut.tsr --member 5.bin
    grep -q '4 of the 6 files of the series are lost' "$err" || bad "$verb of a lost file does not say that it is: $(cat "$err")"
done
run 0 "$TESSERA" decompress -q lost/cut.tsr --member 2.bin -o out
cmp lost/2.bin out || bad "a file beside lost ones is another"
run 61 "$TESSERA" cat lost/cut.tsr::5.bin
says '4 of the 6 files of the series are lost'
rm -rf out lost lost.tsr
# A folder of .tsr files, which threads open to find the series among them: with one thread and with several the same.
mkdir many
for number in 1 2 3 4 5 6 7 8 9; do
    cp singles/slice_01.dcm.tsr "many/$number.tsr"
    cp singles/below/text.tsr "many/text$number.tsr"
done
cp s.tsr many/5s.tsr
cp damaged.tsr many/5t.tsr
head -c 3000 singles/slice_01.dcm.tsr >many/cut.tsr
cp "$DATA/other/text.txt" many/other.tsr
: >many/empty.tsr
mkfifo many/pipe.tsr
ln -s ../s.tsr many/link.tsr
for threads in 1 4; do
    "$TESSERA" test --progress none -r -T $threads many >"$WORK/told" 2>&1
    echo "status $?" >>"$WORK/told"
    sed -e 's/, [0-9.]* s$//' "$WORK/told" | LC_ALL=C sort >"$WORK/test$threads"
    "$TESSERA" decompress --progress none -r -T $threads -o "many$threads" many >"$WORK/told" 2>&1
    echo "status $?" >>"$WORK/told"
    sed -e 's/many[14]/OUT/g; s/, [0-9.]* s$//' "$WORK/told" | LC_ALL=C sort >"$WORK/told$threads"
done
diff "$WORK/test1" "$WORK/test4" || bad "test of a folder depends on threads"
diff "$WORK/told1" "$WORK/told4" || bad "decompress of a folder depends on threads"
same many1 many4
[ "$(find many4 -type f | wc -l)" -eq 33 ] || bad "restored of a folder: $(find many4 -type f | wc -l)"
grep -q '^status 75$' "$WORK/told4" && grep -q 'pipe.tsr' "$WORK/told4" && grep -q 'cut.tsr' "$WORK/told4" ||
    bad "decompress of a folder says: $(cat "$WORK/told4")"

# Only users who may read all its files may read the series.
chmod 600 in/slice_02.dcm
run 0 "$TESSERA" compress -q -f -r --series s.tsr in
[ "$(find s.tsr -printf %m)" = 600 ] || bad "permissions of the series: $(find s.tsr -printf %m)"
finish
