# Codes the whole set with one lossless coding and restores it. Checks it with the independent decoder, too.
#   sh test_round_trip.sh BIN DATA WORK PATH CODER
. "${0%/*}/steps.sh"
path=$4 coder=$5

run 0 "$TESSERA" compress -r --json --path "$path" --coder "$coder" "$DATA" -o coded
fields file status path coder lossless >statuses
fields file bytes_in bytes_out path reason >sizes
fields --summary files failed lossless >"$WORK/summary"
no_parts .

# Each file must be coded as samples or not as MANIFEST says (MANIFEST names all files but itself). But a file that would be
# larger so is not, so no file takes much more than itself.
awk -F "$tab" '$4 == "null" && $5 == "coded as samples it would be larger" { print $1 }' sizes | sort >larger
while read -r kind name; do
    case $kind in
    coded) printf '%s/%s\tok\t%s\t%s\ttrue\n' "$DATA" "$name" "$path" "$coder" ;;
    *) printf '%s/%s\tok\tnull\tnull\ttrue\n' "$DATA" "$name" ;;
    esac
done <"$DATA/MANIFEST" | sort >coded_or_not
printf '%s/MANIFEST\tok\tnull\tnull\ttrue\n' "$DATA" | sort -o coded_or_not - coded_or_not
awk -F "$tab" -v OFS="$tab" '
    FNR == NR { larger[$1] = 1; next }
    $1 in larger { $3 = $4 = "null" }
    { print }' larger coded_or_not >wanted
sort statuses | diff wanted - || bad "statuses are not those of MANIFEST"
[ "$(cat "$WORK/summary")" = "$(wc -l <wanted)${tab}0${tab}true" ] || bad "summary: $(cat "$WORK/summary")"
[ "$(wc -l <wanted)" -ge 290 ] || bad "the set is too small: $(wc -l <wanted) files"
[ "$(grep -c "$tab$path$tab" wanted)" -ge 140 ] || bad "only $(grep -c "$tab$path$tab" wanted) files are coded as samples"
awk -F "$tab" '$3 > $2 + 320 { print $1 ": " $2 " bytes become " $3; bad = 1 } END { exit bad }' sizes || bad "files grow"

run 0 "$TESSERA" test -r --json coded
[ "$(fields status way | sort -u | tr '\t\n' '- ')" = "ok-coded ok-stored " ] || bad "test: $(fields status way | sort | uniq -c)"
find coded -type f -exec "$BIN/tsr_reference" --check {} + >"$out" 2>"$err" || bad "the reference decoder: $(cat "$err")"
[ "$(wc -l <"$out")" -eq "$(wc -l <wanted)" ] || bad "the reference decoder saw $(wc -l <"$out") files"

run 0 "$TESSERA" info -r --json coded
fields file way restore | grep "/packed/" | cut -f 2,3 | sort | uniq -c >packed
[ "$(tr -s ' \t\n' ' ' <packed)" = " 1 coded encapsulated 1 coded files 4 coded streams " ] || bad "JPEG and gzip are not coded by their streams: $(cat packed)"

run 0 "$TESSERA" decompress -r --json coded -o restored
run 0 "$TESSERA" info -r --json coded
fields file restore kind identical samples_xxh3_128 >info
run 0 "$TESSERA" compress -r --path "$path" --coder "$coder" restored -o again
run 0 "$TESSERA" info -r --json again
fields file samples_xxh3_128 | sed 's/^again/coded/' | grep -v "${tab}absent" | sort >samples_again
cut -f 1,5 info | grep -v "${tab}absent" | sort >samples_first
join -t "$tab" samples_first samples_again >samples_both
awk -F "$tab" '$2 != $3 { print $1; bad = 1 } END { exit bad }' samples_both || bad "restored files have other samples"
[ "$(wc -l <samples_both)" -ge 135 ] || bad "only $(wc -l <samples_both) files were coded twice"

# All files come back byte for byte.
(cd "$DATA" && find . -type f | sort) >originals
(cd restored && find . -type f | sort) | diff originals - || bad "other files were restored"
while IFS=$tab read -r name restore kind identical samples; do
    name=${name#coded/} && name=${name%.tsr}
    case $restore-$kind-$identical in
    *-true) cmp "$DATA/$name" "restored/$name" || bad "$name does not come back" ;;
    *) bad "$name is $restore, $kind, identical: $identical" ;;
    esac
    case $restore-$samples in
    stored-absent | streams-absent | files-absent) ;;
    *-absent | stored-* | streams-* | files-*) bad "$name is $restore and its samples' hash is $samples" ;;
    esac
done <info
finish
