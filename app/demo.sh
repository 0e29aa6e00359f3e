#!/bin/sh
# Builds Tessera, makes an image set, compresses it, proves that it comes back, and compares it with other codecs.
# usage: demo.sh [BUILD]    the build folder, "build" unless told
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
sh tests/prepare.sh "$build"

demo=$build/demo
rm -rf "$demo"
mkdir -p "$demo"
"$build/bin/tessera_testdata" "$demo/images"

say() { printf '\n$ %s\n' "$*"; }
say tessera compress -r -o compressed images --report report.html
"$build/bin/tessera" compress -r --report "$demo/report.html" -o "$demo/compressed" "$demo/images"
say tessera test -r compressed
"$build/bin/tessera" test -r "$demo/compressed"
say tessera decompress -r -o restored compressed
"$build/bin/tessera" decompress -r -o "$demo/restored" "$demo/compressed"
say 'diff -rq images restored (PNG come back pixel for pixel, and may differ as files)'
diff -rq -x '*.png' "$demo/images" "$demo/restored" && echo "all identical"
say tessera compare --html compare.html images/...
"$build/bin/tessera" compare -f --progress none --html "$demo/compare.html" "$demo"/images/dicom/ct/slice_0[135].dcm "$demo"/images/dicom/mr/brain_01.dcm \
  "$demo"/images/dicom/cr/chest.dcm "$demo"/images/dicom/mg/breast.dcm "$demo"/images/dicom/us/sector_rgb.dcm \
  "$demo"/images/png/landscape_rgb.png "$demo"/images/png/texture_grey.png "$demo"/images/png/screen_rgb.png
echo
echo "The program is $build/bin/tessera; the images, the .tsr files and compare.html are in $demo."
