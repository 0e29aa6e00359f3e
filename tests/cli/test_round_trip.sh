# The whole set through one lossless coding, there and back, and past the independent decoder.
#   sh test_round_trip.sh BIN DATA WORK PATH CODER
. "${0%/*}/steps.sh"
path=$4 coder=$5

run 0 "$TESSERA" compress -r --json --path "$path" --coder "$coder" "$DATA" -o coded
fields file status path coder lossless >statuses
fields --summary files failed lossless >"$WORK/summary"
no_temporaries .

# What MANIFEST says of each file (it names all but itself) is what became of it.
while read -r kind name; do
    case $kind in
    coded) printf '%s/%s\tok\t%s\t%s\ttrue\n' "$DATA" "$name" "$path" "$coder" ;;
    *) printf '%s/%s\tverbatim\tnull\tnull\ttrue\n' "$DATA" "$name" ;;
    esac
done <"$DATA/MANIFEST" | sort >wanted
printf '%s/MANIFEST\tverbatim\tnull\tnull\ttrue\n' "$DATA" | sort -o wanted - wanted
sort statuses | diff wanted - || bad "statuses are not those of MANIFEST"
[ "$(cat "$WORK/summary")" = "$(wc -l <wanted)${tab}0${tab}true" ] || bad "summary: $(cat "$WORK/summary")"
[ "$(wc -l <wanted)" -ge 290 ] || bad "the set is too small: $(wc -l <wanted) files"

run 0 "$TESSERA" test -r --json coded
[ "$(fields status | sort -u | tr '\n' ' ')" = "ok verbatim " ] || bad "test: $(fields status | sort | uniq -c)"
find coded -type f -exec "$BIN/tsr_reference" --check {} + >"$out" 2>"$err" || bad "the reference decoder: $(cat "$err")"
[ "$(wc -l <"$out")" -eq "$(wc -l <wanted)" ] || bad "the reference decoder saw $(wc -l <"$out") files"

run 0 "$TESSERA" decompress -r --json coded -o restored
run 0 "$TESSERA" info -r --json coded
fields file status kind identical samples_xxh3_128 >info
run 0 "$TESSERA" compress -r --path "$path" --coder "$coder" restored -o again
run 0 "$TESSERA" info -r --json again
fields file samples_xxh3_128 | sed 's/^again/coded/' | sort >samples_again
cut -f 1,5 info | sort | diff - samples_again || bad "restored files have other samples"

# Byte for byte, but for PNG: the same pixels, and the same bytes outside the IDAT chunks.
(cd "$DATA" && find . -type f | sort) >originals
(cd restored && find . -type f | sort) | diff originals - || bad "other files were restored"
while IFS=$tab read -r name status kind identical samples; do
    name=${name#coded/} && name=${name%.tsr}
    case $status-$kind-$identical in
    ok-png-false) "$BIN/tsr_same_png" "$DATA/$name" "restored/$name" || bad "$name comes back as another picture" ;;
    *-true) cmp "$DATA/$name" "restored/$name" || bad "$name does not come back" ;;
    *) bad "$name is $status, $kind, identical: $identical" ;;
    esac
    case $status-$samples in
    ok-absent | verbatim-?????*[!t]) bad "$name is $status and its samples' hash is $samples" ;;
    esac
done <info
finish
