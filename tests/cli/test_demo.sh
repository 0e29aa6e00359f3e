# The demo of the README: it runs, what it says is true, and the pages that it names are there. Arguments as all scripts, then the
# root of the sources.
. "${0%/*}/steps.sh"
ROOT=$4 BUILD=$(cd "$BIN/.." && pwd)
[ -x "$BIN/tessera_testdata" ] || { echo "skipped: there is no tessera_testdata" && exit 77; }
# Without the other codecs, which take most of its time.
TESSERA_RIVALS=$WORK/no_such_program run 0 sh "$ROOT/app/demo.sh" "$BUILD" built
demo=$BUILD/demo
for said in 'all proven, read back' 'all proven; what comes back: [0-9]* the same file$' '^all files are identical$' 'report.html ' 'compare.html '; do
    grep -q "$said" "$out" || bad "the demo does not say '$said': $(cat "$out")"
done
grep -qi 'may differ\|failed\|damaged\|is cut\|ends before' "$out" && bad "the demo shows damaged or differing files: $(cat "$out")"
grep -q '<title>[^<]*PASS' "$demo/report.html" || bad "the demo's report does not pass"
[ -s "$demo/compare.html" ] || bad "the demo has made no compare.html"
diff -r "$demo/images" "$demo/restored" || bad "the demo's files do not come back"
[ "$(find "$demo/compressed" -name '*.tsr' | wc -l)" -ge 20 ] || bad "the demo has compressed $(find "$demo/compressed" -name '*.tsr' | wc -l) files"
# The picture of the README is of the same images.
for name in ct/slice_0 mr/brain_01 cr/chest mg/breast us/sector_rgb; do
    grep -q "$name" "$ROOT/tests/report/picture.py" || bad "picture.py has other images"
done
finish
