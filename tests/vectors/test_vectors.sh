#!/bin/sh
# Golden files: both decoders must give what they gave when the files were made. The encoder must still write the same bytes
# (of files without zstd's output). usage: test_vectors.sh TESSERA REFERENCE TESTDATA
set -eu
tessera=$1 reference=$2 testdata=$3
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$testdata" "$work/set" >/dev/null
failed=0
fail() {
  echo "$name: $*"
  failed=1
}
hash_of() { sha256sum <"$1" | cut -c1-64; }
count=0
while IFS='|' read -r name source options rasters restored; do
  count=$((count + 1))
  "$reference" --check "$name.tsr" >/dev/null || fail "the reference decoder finds it bad"
  if [ "$rasters" != - ]; then
    "$reference" --rasters "$name.tsr" "$work/rasters" || fail "the reference decoder fails"
    [ "$(hash_of "$work/rasters")" = "$rasters" ] || fail "the reference decoder gives other samples"
  fi
  "$tessera" decompress -q -f -o "$work/restored" "$name.tsr" || fail "decompress fails"
  [ "$(hash_of "$work/restored")" = "$restored" ] || fail "another file comes back"
  case $source in
  *.pgm | */empty)
    # shellcheck disable=SC2086
    "$tessera" compress -q -f $options -o "$work/new.tsr" "$work/set/$source"
    cmp "$name.tsr" "$work/new.tsr" || fail "the encoder writes other bytes"
    ;;
  esac
done <vectors.txt
name=series
"$reference" --check series.tsr >/dev/null || fail "the reference decoder finds it bad"
"$tessera" decompress -q -o "$work/series" series.tsr || fail "decompress fails"
(cd "$work/series" && sha256sum ./*) | cmp - series.sums || fail "other files come back"
while read -r sum file; do
  "$reference" --member "${file#./}" series.tsr "$work/restored" || fail "the reference decoder fails on $file"
  [ "$(hash_of "$work/restored")" = "$sum" ] || fail "the reference decoder gives another $file"
done <series.sums
# Encrypted files: ENCRYPTION.md 7. The salts are fixed.
while read -r name kind secret source; do
  [ -x "$(dirname "$reference")/tsr_encrypt_fixed" ] || continue # a build without libsodium
  option=--key
  [ "$kind" = key ] || option=--passphrase-file
  "$reference" $option "$secret" --check "$name.tsr" >/dev/null || fail "the reference decoder finds it bad"
  "$reference" $option "$secret" "$name.tsr" "$work/restored" || fail "the reference decoder fails"
  cmp "$work/set/$source" "$work/restored" || fail "the reference decoder gives another file"
  "$tessera" decompress -q -f $option "$secret" -o "$work/restored" "$name.tsr" || fail "decompress fails"
  cmp "$work/set/$source" "$work/restored" || fail "another file comes back"
  "$(dirname "$reference")/tsr_encrypt_fixed" "$kind" "$secret" "$work/set/$source" "$work/new.tsr"
  cmp "$name.tsr" "$work/new.tsr" || fail "other bytes are written"
done <encrypted.txt
# The files that EXAMPLE.md shows byte by byte. An encoder that codes even such small images would make them.
name=example
printf 'P5\n6 4\n255\n\012\012\012\012\014\015\012\012\012\012\014\014\012\012\012\011\014\016\012\012\012\012\014\014' >"$work/example"
shown() # PATTERN: the bytes of the listing that begins with it
{
  sed -n "/^$1 /,/^\`\`\`/p" ../../io/EXAMPLE.md | sed -n 's/^[0-9a-f]\{2,3\} *\(\([0-9a-f][0-9a-f] \{0,1\}\)*\).*/\1/p' | tr -d ' \n'
}
shown 000 >"$work/example.hex"
shown 00 >"$work/small.hex"
for name in example small; do
  od -An -v -tx1 $name.tsr | tr -d ' \n' | cmp - "$work/$name.hex" || fail "EXAMPLE.md shows another file"
  "$reference" --check $name.tsr >/dev/null || fail "the reference decoder finds it bad"
  "$reference" $name.tsr "$work/restored" && cmp "$work/example" "$work/restored" || fail "the reference decoder gives another file"
  "$tessera" test -q $name.tsr && "$tessera" decompress -q -f -o "$work/restored" $name.tsr || fail "decompress fails"
  cmp "$work/example" "$work/restored" || fail "another file comes back"
done
# FORMAT.md 1.4 lists every golden file once: those whose samples are restored, and the others.
name=FORMAT.md
sed -n '/^### 1\.4/,/^## /p' ../../io/FORMAT.md | awk -F' *[|] *' '$2 ~ /^restores|^writes/ { class = $2 }
  class ~ /^restores/ && NF > 4 { count = split($4, vector, " "); for (i = 1; i <= count; i++) print vector[i] "|" class }' |
  LC_ALL=C sort >"$work/listed"
{
  awk -F'|' '{ print $1 "|" ($4 == "-" ? "restores files" : "restores samples") }' vectors.txt
  printf '%s|restores samples\n' example small series
} | LC_ALL=C sort | diff - "$work/listed" || fail "1.4 lists other vectors"
[ "$count" -gt 15 ] || { echo "only $count vectors"; failed=1; }
exit $failed
