# Printed texts: help, version, info, and the lines of -v. Expected texts are in expected/.
. "${0%/*}/steps.sh"
case $0 in
/*) expected=${0%/*}/expected ;;
*) expected=$OLDPWD/${0%/*}/expected ;;
esac

# says_as NAME: the output must be as expected, except seconds and numbers that depend on libraries and the encoder.
says_as()
{
    sed -e "s|$DATA|DATA|g" -e "s/[0-9.]* s\$/T s/" -e "s/[0-9]* -> [0-9]* bytes/N -> N bytes/g" -e "s/ratio [0-9.]*/ratio R/" \
        -e "s/bytes  [0-9.]*/bytes  R/" -e "s/[0-9.]* bits.sample/B bits\/sample/" -e "s/[0-9.]* dB\( of a range of [0-9]*\)\{0,1\}, max error [0-9]*/D dB\1, max error E/" \
        -e "s/^  \(size\|payload\)  *[0-9]* bytes/  \1 N bytes/" -e "$READ_BACK" "$out" >"$WORK/$1"
    diff "$expected/$1" "$WORK/$1" || bad "other words: $1"
    [ -s "$err" ] && bad "words on stderr: $(cat "$err")"
}

for way in --help -h help; do
    run 0 "$TESSERA" $way
    says_as help.txt
done
for verb in compress decompress cat export test verify info mount compare summary; do
    run 0 "$TESSERA" $verb --help
    says_as "short_$verb.txt"
    run 0 "$TESSERA" $verb -h no_such_file
    says_as "short_$verb.txt"
    grep -q "^  tessera $verb .*  # " "$out" || bad "$verb --help has no example"
    grep -q "^[A-Z]" "$out" || bad "$verb --help has no heading"
    run 0 "$TESSERA" help $verb
    says_as "help_$verb.txt"
    # The short page is a part of the whole one, which has each option below a heading.
    sed -n 's/^ *\(-[-a-zA-Z0-9, ]*\).*/\1/p' "$out" | sort >"$WORK/whole"
    "$TESSERA" $verb --help | sed -n 's/^ *\(-[-a-zA-Z0-9, ]*\).*/\1/p' | sort | comm -23 - "$WORK/whole" | grep . && bad "$verb --help has other options than help $verb"
    awk '/^(  [-]|      --)/ && NR > 3 && !heading { exit 1 } /^[A-Z]/ { heading = 1 }' "$out" || bad "help $verb: an option without a heading"
    awk 'length($0) > 80 && NR > 2 && !/^  tessera /' "$out" | grep . && bad "a line of more than 80 characters"
    [ "$("$TESSERA" $verb --help | wc -l)" -le 50 ] || bad "$verb --help is not short"
done

mkdir in
cp "$DATA/pnm/ramp_16bit.pgm" in/ramp.pgm
cp "$DATA/png/ct_grey16.png" in/screen.png
cp "$DATA/other/text.txt" in/text.txt
run 0 "$TESSERA" compress -r in -o out
says_as compress.txt
run 0 "$TESSERA" compress -r -v --engine cpu --path transform in -o out2
says_as compress_v.txt
run 0 "$TESSERA" compress -r -f --verify none in -o out2
grep -q 'NOT VERIFIED: 3 files' "$out" || bad "--verify none is not said: $(cat "$out")"
run 0 "$TESSERA" compress -q --qp 30 in/ramp.pgm -o lossy.tsr
says_as nothing.txt
run 0 "$TESSERA" info out/ramp.pgm.tsr out/screen.png.tsr out/text.txt.tsr lossy.tsr
says_as info.txt
run 0 "$TESSERA" test -r out
says_as test.txt
run 0 "$TESSERA" test -v -r out
says_as test_v.txt
run 0 "$TESSERA" decompress -r out -o back
says_as decompress.txt
# Progress is shown only on terminals.
grep -q "$(printf '\033')" "$err" && bad "progress without a terminal"

finish
