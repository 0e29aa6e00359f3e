# Lossy copies are objects that an archive takes: dciodvfy (Debian: dicom3tools), which knows the modules of each kind of
# object, finds no error in them that it does not find in their originals. Further files may follow the script's own
# arguments: those of a real archive, of which DATA has none.
. "${0%/*}/steps.sh"
shift 3
if ! command -v dciodvfy >/dev/null; then
    echo "skipped: dciodvfy is missing (Debian: dicom3tools)"
    exit 77
fi

errors() # FILE: sorted
{
    dciodvfy -new "$1" 2>&1 | grep -a '^Error' | sort
}

lossy=0
find "$DATA/dicom" -type f | sort >files
for file in "$@"; do echo "$file" >>files; done
while read -r file; do
    # dciodvfy reads no deflated files.
    case $file in */deflated*) continue ;; esac
    "$TESSERA" compress -f --json --allow-lossy --qp 20 "$file" -o made.tsr >"$out" 2>/dev/null || continue
    [ "$(fields lossless | head -1)" = false ] || continue
    lossy=$((lossy + 1))
    run 0 "$TESSERA" decompress -q -f made.tsr -o made.dcm
    errors "$file" >old
    errors made.dcm | comm -13 old - >new
    [ -s new ] && bad "$file: its lossy copy has errors that it has not: $(head -3 new)"
done <files
[ "$lossy" -ge 50 ] || bad "only $lossy lossy files"
echo "$lossy lossy copies"
finish
