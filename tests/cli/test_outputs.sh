# Where outputs go and what they inherit: -o, -r, -f, names, permissions, times, links.
. "${0%/*}/steps.sh"
grey=$DATA/pnm/landscape_grey_8bit.pgm text=$DATA/other/text.txt

# files FOLDER NAME...: the folder must have these files and no others.
files()
{
    folder=$1
    shift
    for name in "$@"; do echo "./$name"; done | sort >"$WORK/wanted"
    (cd "$folder" && find . ! -type d) | sort | diff "$WORK/wanted" - || bad "other files in $folder"
}
there_and_back() # TSR ORIGINAL
{
    rm -f "$WORK/back" && run 0 "$TESSERA" decompress "$1" -o "$WORK/back" && cmp "$2" "$WORK/back" ||
        bad "$1 does not restore $2"
}

# Without -o: beside the input, wherever it is.
mkdir -p beside/below && cp "$grey" beside/a.pgm && cp "$text" beside/below/t
run 0 "$TESSERA" compress beside/a.pgm beside/below/t
files beside a.pgm a.pgm.tsr below/t below/t.tsr
(cd beside && rm a.pgm && "$TESSERA" decompress -q a.pgm.tsr) && cmp "$grey" beside/a.pgm || bad "not restored beside"
cp beside/a.pgm.tsr beside/no_suffix
run 0 "$TESSERA" decompress beside/no_suffix
cmp "$grey" beside/no_suffix.restored || bad "a .tsr of another name is not restored to NAME.restored"
# A second -r does not take its own outputs for inputs.
rm beside/no_suffix* beside/*.tsr beside/below/*.tsr
run 0 "$TESSERA" compress -r beside
run 0 "$TESSERA" compress -r -f beside
files beside a.pgm a.pgm.tsr below/t below/t.tsr

# A file, an existing folder, a new folder in a new folder.
run 0 "$TESSERA" compress "$grey" -o one
there_and_back one "$grey"
mkdir folder
run 0 "$TESSERA" compress "$grey" -o folder
run 0 "$TESSERA" compress "$text" -o folder/
files folder landscape_grey_8bit.pgm.tsr text.txt.tsr
run 0 "$TESSERA" compress "$grey" -o new/deep/one
files new deep/one
run 0 "$TESSERA" compress "$grey" "$text" -o several/deep
files several deep/landscape_grey_8bit.pgm.tsr deep/text.txt.tsr
run 0 "$TESSERA" decompress -r several/deep -o back
files back landscape_grey_8bit.pgm text.txt
cmp "$grey" back/landscape_grey_8bit.pgm || bad "several: not restored"

# -o may stand before, between or after the inputs.
run 0 "$TESSERA" compress -o order "$grey" "$text"
run 0 "$TESSERA" compress "$grey" -o order2 "$text"
diff -r order order2 || bad "the place of -o makes a difference"
run 0 "$TESSERA" compress "$grey" --output=order3
cmp order/landscape_grey_8bit.pgm.tsr order3 || bad "--output=NAME"

# One layout, however many inputs there are: what is in a named folder lies in OUT as in the folder; a file that is named
# by a relative path keeps it, by an absolute one its last name.
mkdir -p tree/x/y tree/z other && cp "$grey" tree/x/y/a.pgm && cp "$text" tree/z/.hidden && cp "$text" other/t && cp "$text" tree/top
run 0 "$TESSERA" compress -r tree -o m1
files m1 x/y/a.pgm.tsr z/.hidden.tsr top.tsr
run 0 "$TESSERA" compress -r tree/ -o m2
diff -r m1 m2 || bad "a slash behind the folder makes a difference"
run 0 "$TESSERA" compress -r tree other/ "$grey" -o m3
files m3 tree/x/y/a.pgm.tsr tree/z/.hidden.tsr tree/top.tsr other/t.tsr landscape_grey_8bit.pgm.tsr
run 0 "$TESSERA" compress tree/top ./other//t "$text" -o m7
files m7 tree/top.tsr other/t.tsr text.txt.tsr
mkdir m8 && run 0 "$TESSERA" compress tree/top -o m8
files m8 tree/top.tsr
(cd tree && run 0 "$TESSERA" compress ../other/t top -o ../m9)
files m9 t.tsr top.tsr
run 0 "$TESSERA" compress -r --flat tree other -o m10
files m10 a.pgm.tsr .hidden.tsr top.tsr t.tsr
run 0 "$TESSERA" decompress -r --flat m1 -o m11
files m11 a.pgm .hidden top
run 0 "$TESSERA" decompress -r m1 -o m4
diff -r tree m4 || bad "the tree does not come back"
(cd tree && "$TESSERA" compress -q -r . -o ../m5) && diff -r m1 m5 || bad "the tree as ."
run 0 "$TESSERA" test -r m1 m3
# decompress and test use only .tsr files.
cp "$text" m1/x/stray
run 0 "$TESSERA" test -r m1
run 0 "$TESSERA" decompress -r m1 -o m6
files m6 x/y/a.pgm z/.hidden top
# Two inputs with one output: the first wins, the others fail.
mkdir same1 same2 && cp "$text" same1/t && cp "$grey" same2/t
run 0 "$TESSERA" compress same1/t same2/t -o both
files both same1/t.tsr same2/t.tsr
run 75 "$TESSERA" compress -r same1 same2 --flat -o same
says 'same2/t: another input of this run has the same output'
files same t.tsr
there_and_back same/t.tsr same1/t
run 75 "$TESSERA" compress --flat same1/t same2/t -o flat

# Only -f overwrites. A link that is named as output stands for its file, which gets the output. Other links
# are not followed.
cp "$text" precious && ln -s precious link
run 41 "$TESSERA" compress "$grey" -o precious
run 41 "$TESSERA" compress "$grey" -o link
cmp "$text" precious || bad "a file was overwritten without -f"
run 0 "$TESSERA" compress -f "$grey" -o link
[ -L link ] || bad "the link was replaced"
there_and_back precious "$grey"
cp precious precious.tsr && cp "$text" precious
run 0 "$TESSERA" decompress -f precious.tsr -o link
cmp "$grey" precious || bad "decompress -f through a link"
run 0 "$TESSERA" compress -f "$grey" -o precious
there_and_back precious "$grey"
rm precious link precious.tsr
cp "$text" plain && cp "$text" target && ln -s target plain.tsr
refuses 40 'plain.tsr is a symbolic link' "$TESSERA" compress plain
refuses 40 'plain.tsr is a symbolic link' "$TESSERA" compress -f plain
mkdir out && ln -s ../target out/plain.tsr
refuses 40 'out/plain.tsr is a symbolic link' "$TESSERA" compress -f plain -o out
mkdir -p deep/x elsewhere && cp "$text" deep/x/t && ln -s ../elsewhere out/x
refuses 40 'out/x is a symbolic link' "$TESSERA" compress -f -r deep -o out
run 0 "$TESSERA" compress -q -r deep/x -o made
mkdir back3 && ln -s ../target back3/t
refuses 40 'back3/t is a symbolic link' "$TESSERA" decompress -f -r made -o back3
cmp "$text" target || bad "a file was written through a link that nobody named"
[ -z "$(ls elsewhere)" ] || bad "a folder was reached through a link below the output's"
ln -s made also_made # the folder that is named may be a link
run 0 "$TESSERA" compress -f -q -r deep/x -o also_made
# Outputs that are not regular files stay as they are, with and without -f.
mkfifo pipe
for force in '' -f; do
    # shellcheck disable=SC2086
    refuses 40 'pipe is not a regular file' "$TESSERA" compress $force plain -o pipe
    # shellcheck disable=SC2086
    refuses 40 'pipe is not a regular file' "$TESSERA" decompress $force made/t.tsr -o pipe
    # shellcheck disable=SC2086
    refuses 40 'pipe is not a regular file' "$TESSERA" compress $force --series pipe plain
done
rm -rf plain target plain.tsr out deep elsewhere made also_made back3 pipe
mkdir is_folder.tsr
run 75 "$TESSERA" compress -f is_folder "$text" -o . # is_folder does not exist; the text is done
rm -r is_folder.tsr text.txt.tsr
# A folder cannot be an output file.
cp "$text" t && mkdir t.tsr
run 40 "$TESSERA" compress t
run 40 "$TESSERA" compress -f t
says 't.tsr is a folder'
rm -r t.tsr

# Links among the inputs: links that are named are followed, links within folders are not.
mkdir links && cp "$text" links/real && ln -s real links/link && ln -s ../tree links/tree
run 0 "$TESSERA" compress links/link -o named
there_and_back named "$text"
run 0 "$TESSERA" compress -r links -o walked
files walked real.tsr
ln -s links links2
run 0 "$TESSERA" compress -r links2 -o walked2
files walked2 real.tsr

# Names.
mkdir names && cp "$grey" "names/a b  c.pgm" && cp "$text" "names/ümläut €✓.txt" && cp "$text" "names/-x" && cp "$text" "names/*?[a]" &&
    cp "$text" "names/it's \"quoted\" \$HOME \\n" && cp "$text" "names/ " && cp "$text" "names/.tsr" && cp "$text" "names/new
line"
run 0 "$TESSERA" compress -r --json names -o 'out of names'
fields file >"$WORK/names" || bad "names make no JSON"
run 0 "$TESSERA" decompress -r 'out of names' -o 'and back'
diff -r names 'and back' || bad "names do not come back"
(cd names && "$TESSERA" compress -q -- -x && "$TESSERA" test -q -- -x.tsr && rm -- -x && "$TESSERA" decompress -q -- -x.tsr &&
    cmp -- -x "$text") || bad "a name that begins with a dash"
long=$(printf '%0250d' 0)
cp "$text" "$long"
run 0 "$TESSERA" compress "$long"
there_and_back "$long.tsr" "$text"

# Outputs have the permissions and the time of the input, in both directions.
for mode in 600 640 444 755; do
    cp "$grey" mode.pgm && chmod $mode mode.pgm && touch -t 200102030405.06 mode.pgm
    rm -f mode.tsr mode2.pgm
    run 0 "$TESSERA" compress mode.pgm -o mode.tsr
    run 0 "$TESSERA" decompress mode.tsr -o mode2.pgm
    [ "$(find mode.pgm mode.tsr mode2.pgm -printf '%m %T@\n' | sort -u | wc -l)" -eq 1 ] ||
        bad "permissions or times differ: $(find mode.pgm mode.tsr mode2.pgm -printf '%p %m %T@; ')"
    rm -f mode.pgm
done
cp "$grey" mode.pgm && chmod 4755 mode.pgm
run 0 "$TESSERA" compress mode.pgm -o mode.tsr -f
[ "$(find mode.tsr -printf %m)" = 755 ] || bad "set-user-id is inherited: $(find mode.tsr -printf %m)"
no_parts .
finish
