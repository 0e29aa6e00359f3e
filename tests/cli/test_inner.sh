# Files in files: members of ZIP, TAR and gzip are coded as files of their own, and all comes back. PACKED.md 2.
. "${0%/*}/steps.sh"
command -v python3 >/dev/null || { echo 'skipped: there is no python3 to make archives' && exit 77; }

bytes()
{
    wc -c <"$1"
}

# same FILE: FILE comes back from FILE.tsr, by the product and by the reference decoder.
same()
{
    run 0 "$TESSERA" decompress -q -f "$1.tsr" -o back && cmp "$1" back || bad "$1 does not come back"
    rm -f back
    "$BIN/tsr_reference" "$1.tsr" theirs && cmp "$1" theirs || bad "$1: the reference decoder"
}

# inner FILE COUNT MOST [streams]: it has so many files in it, or none but streams, and takes at most so many bytes.
inner()
{
    run 0 "$TESSERA" compress -q -f "$1"
    [ "$(bytes "$1.tsr")" -le "$3" ] || bad "$1: $(bytes "$1.tsr") bytes, over $3"
    run 0 "$TESSERA" info --json "$1.tsr"
    files=$(sed -n 's/.*"restore":"files".*"files":\([0-9]*\),.*/\1/p' "$out")
    [ "${files:-0}" -eq "$2" ] && grep -q "\"restore\":\"${4:-files}\"" "$out" || bad "$1 has not $2 files in it: $(cat "$out")"
    same "$1"
}

cp "$DATA"/dicom/ct/slice_0[123].dcm .
run 0 "$TESSERA" compress -q slice_0*.dcm
plain=$(($(bytes slice_01.dcm.tsr) + $(bytes slice_02.dcm.tsr) + $(bytes slice_03.dcm.tsr)))
most=$((plain * 106 / 100 + 900))
python3 - <<'P' || bad "no archives"
import gzip, io, tarfile, zipfile
names = ["slice_01.dcm", "slice_02.dcm", "slice_03.dcm"]
for out, method in (("deflated.zip", zipfile.ZIP_DEFLATED), ("stored.zip", zipfile.ZIP_STORED)):
    with zipfile.ZipFile(out, "w", method) as z:
        for n in names:
            z.write(n)
class Pipe(io.RawIOBase):  # which cannot seek: sizes stand after the members
    def __init__(self, f): self.f = f
    def writable(self): return True
    def write(self, b): return self.f.write(b)
with open("piped.zip", "wb") as f, zipfile.ZipFile(Pipe(f), "w", zipfile.ZIP_DEFLATED) as z:
    for n in names:
        z.writestr(n, open(n, "rb").read())
whole = open("piped.zip", "rb").read()
open("cut.zip", "wb").write(whole[:whole.index(b"PK\1\2")])
for form, out in ((tarfile.USTAR_FORMAT, "ustar.tar"), (tarfile.PAX_FORMAT, "pax.tar"), (tarfile.GNU_FORMAT, "gnu.tar")):
    with tarfile.open(out, "w", format=form) as t:
        for n in names:
            t.add(n)
        t.addfile(tarfile.TarInfo("empty"))
open("ustar.tar.gz", "wb").write(gzip.compress(open("ustar.tar", "rb").read(), 6, mtime=0))
with zipfile.ZipFile("deep.zip", "w", zipfile.ZIP_STORED) as z:
    z.write("deflated.zip")
    z.write("ustar.tar.gz")
with zipfile.ZipFile("locked.zip", "w", zipfile.ZIP_DEFLATED) as z:
    z.write(names[0])
locked = bytearray(open("locked.zip", "rb").read())
for at in (locked.index(b"PK\3\4") + 6, locked.index(b"PK\1\2") + 8):
    locked[at] |= 1
open("locked.zip", "wb").write(locked)
data = open("deflated.zip", "rb").read()
for depth in range(1, 12):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as z:
        z.writestr("in", data)
    data = out.getvalue()
open("deepest.zip", "wb").write(data)
P
inner deflated.zip 3 $most
inner stored.zip 3 $most
inner piped.zip 3 $most
inner cut.zip 3 $most
inner ustar.tar 3 $most
inner pax.tar 3 $most
inner gnu.tar 3 $most
inner ustar.tar.gz 1 $most
inner deep.zip 2 $((2 * most))
for file in locked deepest; do
    run 0 "$TESSERA" compress -q -f $file.zip
    same $file.zip
done

# Other kinds: PNG, PNM, NIfTI, JPEG, and what is stored. The efforts, threads and little memory change no byte that they
# should not.
python3 - "$DATA" <<'P' || bad "no archive"
import sys, zipfile, glob, os
with zipfile.ZipFile("kinds.zip", "w") as z:
    for i, n in enumerate(sorted(glob.glob(sys.argv[1] + "/p*/*") + glob.glob(sys.argv[1] + "/nifti/*") + glob.glob(sys.argv[1] + "/dicom/*.dcm"))):
        if os.path.isfile(n):
            z.write(n, "%03d" % i, zipfile.ZIP_STORED if i % 3 else zipfile.ZIP_DEFLATED)
P
run 0 "$TESSERA" compress -q -f -T 1 kinds.zip && same kinds.zip && mv kinds.zip.tsr one.tsr
run 0 "$TESSERA" compress -q -f -T 4 --memory 800M kinds.zip && cmp one.tsr kinds.zip.tsr || bad "threads change bytes"
run 0 "$TESSERA" test -q -T 3 --memory 800M kinds.zip.tsr
run 62 "$TESSERA" compress -q -f -T 1 --memory 110M kinds.zip
says 'kinds.zip takes [0-9]* MB of memory, .*: --memory [0-9]*M would do, unless a file in it takes more$'
for effort in 1 9; do
    run 0 "$TESSERA" compress -q -f -$effort deflated.zip && same deflated.zip
done

# What is said of archives, by all that speaks of them; and why they lose nothing where loss was asked for.
cp deflated.zip again.zip
run 0 "$TESSERA" compress -f deflated.zip again.zip
grep -q '^  2 archives: the files inside are coded (deflated.zip, again.zip)$' "$out" || bad "the summary: $(cat "$out")"
run 0 "$TESSERA" compress -f -v deflated.zip
grep -q 'deflated.zip.tsr .*  the files inside are coded$' "$out" && grep -q '^  1 archive: ' "$out" || bad "-v: $(cat "$out")"
run 0 "$TESSERA" info deflated.zip.tsr && grep -q '^  files      3 in it are coded$' "$out" || bad "info: $(cat "$out")"
for loss in '--qp 30' '--quality web' '--max-error 2' '--psnr 40'; do
    # shellcheck disable=SC2086 # words
    run 0 "$TESSERA" compress -f $loss deflated.zip && same deflated.zip
    run 0 "$TESSERA" compress -f $loss deflated.zip
    grep -q '^  1 archive: the files inside are coded without loss: an archive comes back byte for byte (deflated.zip)$' "$out" ||
        bad "$loss: $(cat "$out")"
    run 0 "$TESSERA" compress -f --json $loss deflated.zip
    [ "$(fields way files lossless reason | head -n 1)" = "coded${tab}3${tab}true${tab}the files inside are coded without loss: an archive comes back byte for byte" ] ||
        bad "$loss --json: $(fields way files lossless reason)"
done

# Many at once, which all take all the memory, and as files of a series: none waits for ever.
mkdir many && for i in 1 2 3 4 5 6 7 8; do cp deflated.zip many/$i.zip && cp slice_01.dcm many/$i.dcm; done
run 0 "$TESSERA" compress -q -r -T 4 many -o manyout
run 0 "$TESSERA" test -q -r -T 4 manyout
run 0 "$TESSERA" compress -q -r -T 4 --series many.tsr many
run 0 "$TESSERA" test -q -T 4 many.tsr
run 0 "$TESSERA" decompress -q -T 4 many.tsr -o manyback
diff -r many manyback >/dev/null || diff -r many manyback/many || bad "a series of archives does not come back"

# Archives above 32 MiB are packed while their pieces are written: TAR (here of more than 256 MiB), ZIP with ZIP64
# records, without a directory, with members that say wrong sizes, with text alone, and with nothing that is coded.
python3 - "$DATA" <<'P' || bad "no large archives"
import io, os, random, sys, tarfile, zipfile
names = ["slice_01.dcm", "slice_02.dcm", "slice_03.dcm"]
fill = bytes(range(256)) * 4096 * 33  # 33 MiB
with open("large.tar", "wb") as f, tarfile.open(fileobj=f, mode="w", format=tarfile.GNU_FORMAT) as t:
    t.add(names[0])
    hole = tarfile.TarInfo("hole")  # of more than 2^28 bytes, which stays bytes
    hole.size = 257 << 20
    f.write(hole.tobuf())
    f.seek(hole.size, 1)
    t.offset = f.tell()
    t.add(names[1])
    t.add(names[2])
    for i in range(300):
        small = tarfile.TarInfo("small%d" % i)
        small.size = 300
        t.addfile(small, io.BytesIO(b"%PDF-1.4 " + bytes(291)))
with zipfile.ZipFile("large.zip", "w") as z:
    for i, n in enumerate(names + ["deflated.zip"]):
        with z.open(zipfile.ZipInfo("%d/%s" % (i, n)), "w", force_zip64=True) as f:
            f.write(open(n, "rb").read())
        z.write(n, "again/%s" % n, zipfile.ZIP_DEFLATED)
        z.writestr("fill%d" % i, fill[: len(fill) // 3])
    z.write(sys.argv[1] + "/packed/cut.jpg", "cut.jpg")
whole = open("large.zip", "rb").read()
open("large_cut.zip", "wb").write(whole[: whole.index(b"PK\1\2")])
lying = bytearray(whole)
at, k = whole.index(b"PK\1\2"), 0
while lying[at : at + 4] == b"PK\1\2":
    if k % 3 == 0:
        lying[at + 20 : at + 24] = (40 << 20).to_bytes(4, "little")  # stored
    if k % 3 == 1:
        lying[at + 24 : at + 28] = (1000).to_bytes(4, "little")  # plain
    at += 46 + sum(int.from_bytes(lying[at + i : at + i + 2], "little") for i in (28, 30, 32))
    k += 1
open("large_lying.zip", "wb").write(lying)
r = random.Random(1)
text = bytes(r.choice(b"0123456789,.\n") for _ in range(1 << 18))
with zipfile.ZipFile("large_text.zip", "w") as z:
    z.writestr("text", text, zipfile.ZIP_DEFLATED)
    z.writestr("fill", fill)
with zipfile.ZipFile("large_none.zip", "w") as z:
    z.writestr("fill", fill)
P
inner large.tar 3 $((most + 20000))
inner large.zip 9 $((4 * most))
run 0 "$TESSERA" info --json large.zip.tsr
grep -q '"original_damage":"a file in it looks damaged' "$out" || bad "a damaged file in a large archive: $(cat "$out")"
inner large_text.zip 0 200000 streams
for file in large_cut large_lying large_none; do
    run 0 "$TESSERA" compress -q -f $file.zip
    same $file.zip
done
run 0 "$TESSERA" info --json large_none.zip.tsr
grep -q '"restore":"stored"' "$out" || bad "an archive of nothing: $(cat "$out")"
[ "$(bytes large_cut.zip.tsr)" -lt $((4 * most)) ] || bad "large_cut.zip: $(bytes large_cut.zip.tsr) bytes"
for file in large.tar large.zip large_lying.zip; do
    run 0 "$TESSERA" compress -q -f -T 1 --memory 120M -o one.tsr $file && cmp one.tsr $file.tsr || bad "$file: memory changes bytes"
    run 0 "$TESSERA" test -q -T 1 --memory 120M $file.tsr
done
run 2 "$TESSERA" compress -q -T 1 --memory 1M -o none.tsr large.zip
least=$(sed -n 's/.* they take \([0-9]*\)M.*/\1/p' "$err")
run 62 "$TESSERA" compress -q -f -T 1 --memory "${least}M" -o none.tsr large.zip
grep -q 'memory' "$err" || bad "too little memory: $(cat "$err")"
[ ! -e none.tsr ] || bad "too little memory leaves an output"

# Other long files: their streams are listed, and packed while pieces are written. A stream that is cut, a beginning that
# is no stream, one that lies across two parts that are searched, and nothing but holes between them.
python3 - "$DATA" <<'P' || bad "no long files"
import sys, zlib
jpeg = open(sys.argv[1] + "/packed/photo.jpg", "rb").read()
text = b"".join(b"%d 0 obj << /Length %d >> endobj\n" % (k, k * k) for k in range(4000))
flate = b"stream\n" + zlib.compress(text, 6) + b"\nendstream\n"
def make(name, size, parts):
    with open(name, "wb") as f:
        for at, part in parts:
            f.seek(at)
            f.write(part)
        f.truncate(size)
part = 8 << 20
make("long.avi", 34 << 20, [(0, b"RIFF1234AVI "), (100, jpeg), (part - 50, jpeg), (3 * part, b"\xff\xd8\xff\xe0"), (3 * part + 20, jpeg)])
make("long.tiff", 257 << 20, [(0, b"II+\0" + bytes(12)), (1 << 20, jpeg[: len(jpeg) // 2]), (2 << 20, jpeg), ((257 << 20) - len(jpeg), jpeg)])
make("long.pdf", 34 << 20, [(0, b"%PDF-1.4\n" + flate), (part - 2000, flate), (2 * part, jpeg), ((34 << 20) - len(flate), flate)])
make("long_none.avi", 34 << 20, [(0, b"RIFF1234AVI ")])
P
inner long.avi 0 5450 streams
inner long.tiff 0 12800 streams
inner long.pdf 0 72500 streams
run 0 "$TESSERA" compress -q -f long_none.avi && same long_none.avi
for file in long.avi long.tiff long.pdf; do
    run 0 "$TESSERA" compress -q -f -T 4 -o one.tsr $file && cmp one.tsr $file.tsr || bad "$file: threads change bytes"
    run 0 "$TESSERA" compress -q -f -T 1 --memory 120M -o one.tsr $file && cmp one.tsr $file.tsr || bad "$file: memory changes bytes"
    run 0 "$TESSERA" test -q -T 1 --memory 120M $file.tsr
done
run 0 "$TESSERA" compress -q -T 2 --series large_series.tsr large.tar slice_01.dcm large.zip
run 0 "$TESSERA" test -q large_series.tsr
finish
