#!/bin/sh
# Makes the golden files and their list anew. If their bytes change, the format or the encoder has changed: note that in the
# CHANGELOG. usage: make.sh BUILD
set -eu
build=$(cd "$1" && pwd)
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/bin/tessera_testdata" "$work/set" >/dev/null
mkdir "$work/set/streams" "$work/set/made"
python3 lists.py >"$work/set/made/lists.dcm"
python3 equal.py >"$work/set/y4m/equal.y4m"
python3 linked.py 1 >"$work/set/nifti/linked_grey.nii"
python3 linked.py 3 >"$work/set/nifti/linked_rgb.nii"
"$build/bin/tsr_streams" "$work/set/streams" 240 1 # encapsulated DICOM files
"$build/bin/tessera" compress -q -o "$work/mr_small.tsr" "$work/set/dicom/mr/small_05.dcm" # and one of JPEG 2000
"$build/bin/tessera" export -q --to j2k -o "$work/set/streams/mr_small.j2k.dcm" "$work/mr_small.tsr"
# One with a frame that is a unit; frames of lossy JPEG, of which one cannot be packed; the same, packed up to a fault; and
# frames of no codec, which begin alike.
"$build/bin/tsr_dicom_frames" "$work/set/streams/239.rle.dcm" "$work/set/streams/bad_frame.dcm" 1 noise
"$build/bin/tsr_dicom_frames" "$work/frames.dcm" 5 16 16
"$build/bin/tsr_dicom_frames" "$work/frames.dcm" "$work/set/streams/jpeg_frames.dcm" 2 noise
"$build/bin/tsr_dicom_frames" "$work/frames.dcm" "$work/set/streams/fault_frames.dcm" 3 fault
"$build/bin/tsr_dicom_frames" "$work/set/streams/alike_frames.dcm" 4 1000 alike
while IFS='|' read -r name source options _; do
  # shellcheck disable=SC2086 # options are words
  case $name in
  png_long) "$build/bin/tsr_encode_anyway" "$work/set/$source" "$name.tsr" ;; # packed it would be smaller
  *) "$build/bin/tessera" compress -q -f $options -o "$name.tsr" "$work/set/$source" ;;
  esac
  "$build/bin/tsr_reference" "$name.tsr" "$work/restored"
  rasters=- # for verbatim files
  case $source in
  other/* | packed/* | made/* | streams/*_frames.dcm | png/chunks/animated.png | png/chunks/chunks_palette.png | png/chunks/frames.png | png/damaged/truncated.png | dicom/odd/no_pixels_behind.dcm) ;; # verbatim, and packed
  *)
    "$build/bin/tsr_reference" --rasters "$name.tsr" "$work/rasters"
    rasters=$(sha256sum <"$work/rasters" | cut -c1-64)
    ;;
  esac
  restored=$(sha256sum <"$work/restored" | cut -c1-64)
  echo "$name|$source|$options|$rasters|$restored"
done <vectors.txt >"$work/list"
mv "$work/list" vectors.txt
# Encrypted files, whose salts are fixed.
while read -r name kind secret source; do
  "$build/bin/tsr_encrypt_fixed" "$kind" "$secret" "$work/set/$source" "$name.tsr"
done <encrypted.txt
# A series: DICOM files with similar headers, a picture, and a file that is not an image.
mkdir "$work/series"
cp "$work"/set/dicom/mr/small_0[1-4].dcm "$work/set/dicom/sizes/23x37_8bit.dcm" "$work/set/odd/63x65_8bit.pgm" "$work/set/other/text.txt" \
  "$work/set/other/empty" "$work/series"
"$build/bin/tessera" compress -q -f -r --series series.tsr "$work/series"
"$build/bin/tsr_reference" --check series.tsr
(cd "$work/series" && LC_ALL=C sha256sum ./*) >series.sums
