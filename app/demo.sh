#!/bin/sh
# Builds Tessera, makes an image set, compresses it, proves that it comes back, and compares it with other codecs.
# usage: demo.sh [BUILD [built]]    the build folder, "build" unless told; built: it is up to date
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
[ "${2:-}" = built ] || sh tests/prepare.sh "$build"

demo=$build/demo
rm -rf "$demo"
mkdir -p "$demo"
PATH=$(cd "$build/bin" && pwd):$PATH
cd "$demo"

# Of the generated set what an archive holds: scans, a dose, a few pictures, a text. The set also has damaged and odd files, for
# tests.
tessera_testdata all
for modality in cr ct mg mr nm us rt; do mkdir -p images/dicom && cp -R "all/dicom/$modality" images/dicom; done
mkdir images/png && cp all/png/landscape_rgb.png all/png/texture_grey.png all/png/screen_rgb.png images/png
cp all/other/text.txt images
rm -r all

# Prints a command, and runs it.
run() { printf '\n$ %s\n' "$*" && "$@"; }

run tessera compress -r images -o compressed --report report.html
run tessera verify images compressed
run tessera decompress -r compressed -o restored
run diff -r images restored && echo "all files are identical"
run tessera compare -r images/dicom/ct images/dicom/mr/brain_01.dcm images/dicom/cr/chest.dcm images/dicom/mg/breast.dcm \
  images/dicom/us/sector_rgb.dcm images/png --html compare.html

cat <<END

The program is $build/bin/tessera. In $demo are
  images, compressed, restored   the files, their .tsr, and what came back
  report.html                    what was proven, file by file
  compare.html                   Tessera beside other codecs on these images, with plots and pictures
END
