# The JSON lines of all verbs are as app/cli/schema.json says. More arguments: the schema.
. "${0%/*}/steps.sh"
schema=$4
case $0 in
/*) check=${0%/*}/check_schema.py ;;
*) check=$OLDPWD/${0%/*}/check_schema.py ;;
esac
python=
for each in python3 /usr/bin/python3; do
    [ -z "$python" ] && "$each" -c 'import jsonschema' 2>/dev/null && python=$each
done
[ -n "$python" ] || { echo 'skipped: python3-jsonschema is not installed' && exit 77; }
number=0
lines() # STATUS COMMAND...: the lines of a command go to a file of their own
{
    run "$@"
    number=$((number + 1))
    cp "$out" "$WORK/lines.$number.json"
    grep '^{' "$err" >"$WORK/progress.$number.json"
    [ -s "$WORK/progress.$number.json" ] || rm "$WORK/progress.$number.json"
}
mkdir -p set/below && cp "$DATA/pnm/landscape_grey_8bit.pgm" "$DATA/pnm/landscape_8bit.ppm" "$DATA/png/landscape_rgb.png" set &&
    cp "$DATA/dicom/ct/slice_01.dcm" "$DATA/other/text.txt" set/below && ln -s nowhere set/link && : >set/empty &&
    cp "$DATA/pnm/landscape_grey_8bit.pgm" "set/$(printf 'odd \377')"
lines 0 "$TESSERA" compress --json --progress json -r set -o made
lines 0 "$TESSERA" compress --json -r --update set -o made
lines 75 "$TESSERA" compress --json -r set -o made
lines 0 "$TESSERA" compress --json -r --dry-run set -o dry
lines 0 "$TESSERA" decompress --json --region 1,2,30,40 made/below/slice_01.dcm.tsr -o part.npy
lines 75 "$TESSERA" decompress --json --salvage made/below/slice_01.dcm.tsr made/below/text.txt.tsr -o left
for loss in '--qp 20' '--psnr 40' '--max-error 2' '--verify none' '-9 --path transform'; do
    # shellcheck disable=SC2086
    lines 0 "$TESSERA" compress --json -r -f $loss set -o lossy
done
lines 0 "$TESSERA" compress --json -r --series s.tsr set
lines 0 "$TESSERA" info --json -r made lossy s.tsr
lines 0 "$TESSERA" test --json -r made s.tsr
lines 0 "$TESSERA" decompress --json -r made -o back
lines 0 "$TESSERA" decompress --json s.tsr -o back2
lines 0 "$TESSERA" export --json --member '*.dcm' s.tsr --to rle -o rle.dcm
lines 0 "$TESSERA" compress --json rle.dcm
lines 0 "$TESSERA" info --json rle.dcm.tsr
lines 0 "$TESSERA" compress --json -f --quality diagnostic "$DATA/dicom/ct/slice_01.dcm" -o window.tsr
lines 0 "$TESSERA" info --json window.tsr
grep -q '"windows":' "$WORK/lines.$number.json" || bad "info tells of no windows"
lines 0 "$TESSERA" compare --json rle.dcm
rm rle.dcm rle.dcm.tsr
lines 0 "$TESSERA" verify --json set made
mkdir void && lines 22 "$TESSERA" compress --json -r void -o nothing # a run that did not begin
lines 75 "$TESSERA" compress --json -r -f void set -o made
lines 22 "$TESSERA" compress --json --series void.tsr -r void
lines 75 "$TESSERA" summary --json "$WORK/lines.$number.json"
cp made/empty.tsr set && lines 0 "$TESSERA" compress --json -r -f set -o made && rm set/empty.tsr
lines 0 "$TESSERA" compare --json -r set --exclude '*.ppm' --exclude 'landscape_grey*' # their like are left
cp -R set gone
lines 0 "$TESSERA" compress --json -r --rm gone -o gone_made
for i in 1 2; do lines 0 "$TESSERA" compress --json -r --shard $i/2 set -o shards; done
lines 0 "$TESSERA" summary --json "$WORK/lines.$number.json" "$WORK/lines.$((number - 1)).json"
lines 75 "$TESSERA" summary --json "$WORK/lines.$((number - 1)).json"
changes_byte made/landscape_grey_8bit.pgm.tsr 3000
lines 75 "$TESSERA" test --json -r made
if "$TESSERA" compress -q --manifest m.txt set/empty -o e.tsr 2>/dev/null; then
    lines 0 "$TESSERA" compress --json -r -f --manifest m.txt set -o hashed
fi
"$python" "$check" "$schema" "$WORK"/lines.*.json "$WORK"/progress.*.json || bad "other lines than the schema's"
# A field that the schema does not know is found.
sed 's/"file":/"fiel":/' "$WORK/lines.1.json" >"$WORK/wrong.json"
"$python" "$check" "$schema" "$WORK/wrong.json" >/dev/null && bad "the check finds nothing"
finish
