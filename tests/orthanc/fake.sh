# The plugin without Orthanc (fake.c): fake.sh FAKE PLUGIN TESTDATA WORK [MUTANTS [SEED]]    MUTANTS: default 300
set -eu
mkdir -p "$4"
work=$(cd "$4" && pwd)
rm -rf "${work:?}"/*
"$3" "$work/set" >/dev/null
set=$work/set/dicom
status=0
find "$work/set/dicom" -type f -size -70 | LC_ALL=C sort >"$work/list"
{ echo "$set/ct/slice_01.dcm" && cat "$work/list"; } | tr '\n' '\0' | xargs -0 "$1" "$2" "$work" check || status=1
count=${5:-300} seed=${6:-1}
# One mutant in ten is of the large pair, which takes ten times as long as another one.
"$1" "$2" "$work" mutants $((count - count / 10)) "$seed" "$set/mr/small_01.dcm" "$set/mr/small_02.dcm" \
    "$set/forms/rle_fragments.dcm" "$set/mr/small_03.dcm" || status=1
"$1" "$2" "$work" mutants $((count / 10)) "$seed" "$set/mr/brain_01.dcm" "$set/mr/brain_02.dcm" || status=1
exit $status
