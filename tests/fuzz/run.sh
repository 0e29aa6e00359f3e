#!/bin/sh
# Fuzzes each target for SECONDS, as many at once as there are processors: run.sh BUILD SECONDS [target...]. Seeds come
# from tessera_testdata. Findings are in BUILD/fuzz/findings, and then the status is 1. BUILD was made with clang,
# TSR_FUZZ=ON and, better, TSR_SANITIZE=ON, too.
# TSR_FUZZ_FLAGS: more flags for libFuzzer. TSR_FUZZ_PROGRAMS: a folder with the programs that make seeds, default BUILD/bin.
set -eu
[ $# -ge 2 ] || {
    echo "usage: run.sh BUILD SECONDS [target...]" >&2
    exit 2
}
build=$(cd "$1" && pwd)
seconds=$2
shift 2
bin=$build/bin
programs=$(cd "${TSR_FUZZ_PROGRAMS:-$bin}" && pwd)
if [ $# -eq 0 ]; then # all targets that are built
    for target in container memory frame cavlc huffman stream_deflate stream_j2k stream_jpeg_ls stream_lossless pnm nifti png png_idat dicom elements stream_jpeg packed \
        reference; do
        [ -x "$bin/fuzz_$target" ] && set -- "$@" "$target"
    done
fi
[ $# -gt 0 ] || {
    echo "run.sh: no target in $bin" >&2
    exit 2
}
work=$build/fuzz
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work/findings"
TSR_FUZZ_TMP=$(mktemp -d "${TMPDIR:-/dev/shm}/tessera_fuzz.XXXXXX")
export TSR_FUZZ_TMP
trap 'rm -rf "$TSR_FUZZ_TMP"' EXIT
trap 'exit 1' HUP INT TERM

# Small DICOM files with RLE and lossless JPEG, if DCMTK's tools are installed.
encapsulate() {
    command -v dcmcrle >/dev/null && command -v dcmcjpeg >/dev/null || return 0
    find "$TSR_FUZZ_TMP/set" -name '*.dcm' -size -8 >"$TSR_FUZZ_TMP/list"
    while IFS= read -r file; do
        dcmcrle -q "$file" "${file%.dcm}_rle.dcm" 2>/dev/null || :
        dcmcjpeg -q +un +e1 "$file" "${file%.dcm}_sv1.dcm" 2>/dev/null || :
        dcmcjpeg -q +un +el "$file" "${file%.dcm}_p14.dcm" 2>/dev/null || :
    done <"$TSR_FUZZ_TMP/list"
}

# Streams of JPEG 2000, if OpenJPEG's tools are installed, each behind the head that fuzz_stream_j2k.c reads. 8 bits.
encode_j2k() {
    command -v opj_compress >/dev/null || return 0
    mkdir -p "$work/seeds/stream_j2k"
    i=0
    for file in "$TSR_FUZZ_TMP"/set/odd/*_8bit.p[gp]m; do
        side=$(sed -n '2{s/ .*//p;q}' "$file") rows=$(sed -n '2{s/.* //p;q}' "$file")
        [ "$side" -le 64 ] && [ "$rows" -le 64 ] || continue
        components=0
        [ "${file%.ppm}" = "$file" ] || components=2
        i=$(((i + 1) % 6))
        case $i in
        0) options= ;;
        1) options='-p RPCL -c [16,16],[16,16]' ;;
        2) options='-t 24,24 -p PCRL' ;;
        3) options='-b 8,8 -SOP -EPH' ;;
        4) options='-M 8' ;;
        5) options='-r 4,2,1 -p LRCP' ;;
        esac
        # shellcheck disable=SC2086 # several options
        opj_compress -i "$file" -o "$TSR_FUZZ_TMP/one.j2k" -n 2 $options >/dev/null 2>&1 || continue
        head=$(printf '\\000\\%03o\\%03o\\%03o' $((side - 1)) $((rows - 1)) $components)
        # shellcheck disable=SC2059 # escapes
        { printf "$head" && cat "$TSR_FUZZ_TMP/one.j2k"; } >"$work/seeds/stream_j2k/$(basename "$file").j2k"
    done
}

# Streams of JPEG, if libjpeg's tools are installed: grey and colours, subsampled, progressive, with restarts.
encode_jpeg() {
    command -v cjpeg >/dev/null || return 0
    samples=$TSR_FUZZ_TMP/set/pnm/checker_rgb_16bit.ppm
    i=0
    for options in '' '-progressive' '-restart 1B' '-optimize -grayscale' '-progressive -grayscale' '-sample 1x1' \
        '-progressive -sample 2x1 -restart 2B' '-rgb' '-sample 1x2 -restart 1'; do
        for side in 1 15 33; do
            i=$((i + 1))
            # shellcheck disable=SC2086 # several options
            { printf 'P6\n%d %d\n255\n' $side $side && tail -c +41 "$samples" | head -c $((3 * side * side)); } |
                cjpeg -quality $((35 + 2 * i)) $options >"$TSR_FUZZ_TMP/set/packed/made_$i.jpg"
        done
    done
}

# bytes FILE AT COUNT: numbers.
bytes() {
    od -An -v -tu1 -j "$2" -N "$3" "$1"
}

# find_bytes FILE PATTERN: where a pattern begins first.
find_bytes() {
    LC_ALL=C grep -obUaP "$2" "$1" | head -n 1 | cut -d: -f1
}

# put_frame TARGET FILE PATTERN HEAD...: the stream that begins with a pattern in an exported file, after each head that
# fuzz_stream_lossless.c and fuzz_stream_jpeg_ls.c read. The item's length stands before the stream.
put_frame() {
    at=$(find_bytes "$2" "$3")
    [ -n "$at" ] || return 0
    length=$(od -An -v -tu4 -j $((at - 4)) -N 4 "$2")
    mkdir -p "$work/seeds/$1"
    from=$2 seed=$work/seeds/$1/$(basename "$2")
    shift 3
    for head in "$@"; do
        # shellcheck disable=SC2059 # escapes
        { printf "$head" && tail -c +$((at + 1)) "$from" | head -c "$length"; } >"${seed}_$#"
        shift
    done
}

# Frames as JPEG-LS, lossless JPEG and RLE, of images of at most 256 columns and 64 rows, as the JPEG-LS header has them.
# The same bytes are residues, which begin as streams do, after one byte of a raster; and parameters with a raster.
export_frames() {
    find "$TSR_FUZZ_TMP/set/dicom" -name '*.dcm' -size -8 >"$TSR_FUZZ_TMP/list"
    while IFS= read -r file; do
        one=$TSR_FUZZ_TMP/one.tsr to=$TSR_FUZZ_TMP/$(basename "$file" .dcm)
        "$programs/tessera" compress -q -f "$file" -o "$one" >/dev/null 2>&1 || continue
        "$programs/tessera" export -q -f "$one" --to jpeg-ls -o "$to.jls" >/dev/null 2>&1 || continue
        at=$(find_bytes "$to.jls" '\xff\xf7\x00')
        [ -n "$at" ] || continue
        # shellcheck disable=SC2046 # several numbers: bits, rows, columns, components
        set -- $(bytes "$to.jls" $((at + 4)) 6)
        [ $(($2 * 256 + $3)) -le 64 ] && [ $(($4 * 256 + $5)) -le 256 ] || continue
        size=$(printf '\\%03o\\%03o\\%03o' $(($4 * 256 + $5 - 1)) $(($3 - 1)) $(($6 - 1 + ($1 > 8) * 4)))
        put_frame stream_jpeg_ls "$to.jls" '\xff\xd8\xff' "\\000$size" "\\001$size\\001" "\\002$size"
        "$programs/tessera" export -q -f "$one" --to jpeg-lossless -o "$to.ljpg" >/dev/null 2>&1 &&
            put_frame stream_lossless "$to.ljpg" '\xff\xd8\xff' "\\001$size" "\\003$size\\001"
        "$programs/tessera" export -q -f "$one" --to rle -o "$to.rle" >/dev/null 2>&1 &&
            put_frame stream_lossless "$to.rle" '[\x01-\x0f]\x00\x00\x00\x40\x00\x00\x00' "\\000$size" "\\002$size\\001"
    done <"$TSR_FUZZ_TMP/list"
}

# Streams of gzip, whole and in pieces: of samples that repeat and of some that do not, at several levels.
deflate_streams() {
    mkdir -p "$work/seeds/stream_deflate"
    for name in screen_1bit texture_200 checker_8bit noise_8bit landscape_grey_8bit; do
        file=$TSR_FUZZ_TMP/set/pnm/$name.pgm
        for level in 1 4 6 9; do
            for mode in 0 2; do
                { printf "\\00$mode" && head -c 3000 "$file" | gzip -n -$level | tail -c +11; } \
                    >"$work/seeds/stream_deflate/${name}_${level}_$mode"
            done
        done
    done
    # In pieces, which begin with blocks: 330,000 bytes in many short ones. The check after the stream damages its residue.
    { printf '\002' && seq 3000 | sed 's/./&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&/g' | gzip -n -1 --rsyncable | tail -c +11; } \
        >"$work/seeds/stream_deflate/long"
}

# Images that fuzz_png_idat.c compresses: each colour type, depth and form, and calls of zlib by chance.
images_to_compress() {
    mkdir -p "$work/seeds/png_idat"
    for name in screen_1bit texture_200 noise_8bit landscape_grey_8bit; do
        for type in 0 1 2 3 4; do
            for depth in 0 1 2 3 4; do
                head=$(printf '\\000\\047\\035\\00%d\\00%d\\%03o\\00%d\\%03o' $type $depth $(((type + depth) % 4)) \
                    $depth $((50 * type + ${#name})))
                # shellcheck disable=SC2059 # escapes
                { printf "$head" && tail -c 1000 "$TSR_FUZZ_TMP/set/pnm/$name.pgm"; } \
                    >"$work/seeds/png_idat/${name}_${type}_$depth"
            done
        done
    done
}

# Frames that fuzz_frame.c codes as drawn planes (coding 64, 72), with DC planes (69, 77; a coarse QP), as predicted tiles
# (245, 247, 253): grey and RGB, by Huffman, CAVLC and rANS. The coding is a byte of its head.
frames_to_code() {
    mkdir -p "$work/seeds/frame"
    while read -r name columns rows components codings qp; do
        for coding in $(printf '%s' "$codings" | tr , ' '); do
            head=$(printf '\\007\\%03o\\%03o\\%03o\\000\\%03o\\007\\000\\000\\%03o\\%03o\\000' $(((columns - 1) % 256)) \
                $(((columns - 1) / 256)) $((rows - 1)) $((components - 1)) "$coding" "$qp")
            # shellcheck disable=SC2059 # escapes
            { printf "$head" && tail -c $((columns * rows * components)) "$TSR_FUZZ_TMP/set/pnm/$name"; } \
                >"$work/seeds/frame/${name}_$coding"
        done
    done <<'frames'
extremes_8bit.pgm 96 12 1 64,72 0
outliers_8bit.pgm 160 9 1 64,72 0
extremes_rgb.ppm 70 8 3 64,72 0
screen_8bit.ppm 320 4 3 64,72 0
ramp_8bit.pgm 300 16 1 69,77 68
landscape_grey_8bit.pgm 320 16 1 69,77 68
landscape_grey_8bit.pgm 320 10 1 245,247,253 40
landscape_coarse.ppm 90 13 3 245,247,253 40
noise_8bit.pgm 128 9 1 245,247,253 40
frames
}

# wide NAME TYPE BITS FORMAT: three slices of a NIfTI file of bytes with values of another type, as printf writes each.
wide() {
    from=$TSR_FUZZ_TMP/set/nifti/u8.nii
    size=$((3 * $(od -An -tu2 -j 42 -N 2 "$from") * $(od -An -tu2 -j 44 -N 2 "$from")))
    # shellcheck disable=SC2059 # escapes
    {
        head -c 46 "$from" && printf '\003\000' && tail -c +49 "$from" | head -c 22 && printf "$2$3"
        tail -c +75 "$from" | head -c 278
        printf "$(bytes "$from" 352 "$size" | awk -v f="$4" '{ for (i = 1; i <= NF; i++) printf f, $i, $i * 37 % 256, $i * 91 % 256, 64 + $i % 8 }')"
    } >"$TSR_FUZZ_TMP/set/nifti/$1.nii"
}

# Values of 32 and 64 bits: whole numbers, all bits; a table in a DICOM header.
more_files() {
    wide float32 '\020\000' '\040\000' '\\000\\000\\%03o\\103'
    wide float32_ordered '\020\000' '\040\000' '\\%03o\\%03o\\%03o\\%03o'
    wide float64 '\100\000' '\100\000' '\\000\\000\\000\\000\\000\\000\\%03o\\100'
    wide int64 '\000\004' '\100\000' '\\%03o\\000\\000\\000\\000\\001\\000\\000'
    from=$TSR_FUZZ_TMP/set/dicom/sizes/23x38.dcm
    at=$(find_bytes "$from" '\xe0\x7f\x10\x00O')
    # shellcheck disable=SC2059 # escapes
    { head -c "$at" "$from" && printf '\051\000\020\020OW\000\000\000\010\000\000' &&
        printf "$(seq 0 1023 | awk '{ w = int($1 * $1 / 16); printf "\\%03o\\%03o", w % 256, int(w / 256) }')" &&
        tail -c +$((at + 1)) "$from"; } >"$TSR_FUZZ_TMP/set/dicom/table.dcm"
}

# The seeds of all targets: small files of the synthetic set, and the .tsr file of each, with codings in turn. They are made
# anew if the programs that make them are newer.
make_seeds() {
    made=$work/seeds/complete
    [ -e "$made" ] && [ -n "$(find "$made" -newer "$programs/tessera" -newer "$programs/tessera_testdata")" ] && return
    rm -rf "$work/seeds"
    mkdir -p "$work/seeds/container" "$work/seeds/png" "$work/seeds/pnm" "$work/seeds/nifti" "$work/seeds/dicom" \
        "$work/seeds/packed" "$work/seeds/reference" "$work/seeds/stream_jpeg"
    "$programs/tessera_testdata" "$TSR_FUZZ_TMP/set" >/dev/null
    encapsulate
    encode_j2k
    encode_jpeg
    export_frames
    deflate_streams
    images_to_compress
    frames_to_code
    more_files
    find "$TSR_FUZZ_TMP/set" -type f -size -18 >"$TSR_FUZZ_TMP/list"
    i=0
    while IFS= read -r file; do
        name=$(printf '%s' "${file#"$TSR_FUZZ_TMP/set/"}" | tr -c 'A-Za-z0-9.\n' _)
        case $name in # small ones: large images are slow and show nothing more
        *.png) [ "$(wc -c <"$file")" -lt 4500 ] && cp "$file" "$work/seeds/png/$name" ;;
        *.pgm | *.ppm | *.y4m) [ "$(wc -c <"$file")" -lt 4500 ] && cp "$file" "$work/seeds/pnm/$name" ;;
        *.nii | *.nii.gz) cp "$file" "$work/seeds/nifti/$name" ;;
        *.dcm) cp "$file" "$work/seeds/dicom/$name" ;;
        esac
        i=$(((i + 1) % 7))
        case $i in
        0) coding= ;;
        1) coding=transform ;;
        2) coding="predict cavlc" ;;
        3) coding="transform cavlc" ;;
        4) coding="transform huffman 160" ;;
        5) coding="transform huffman 160 8" ;;
        6) coding="transform rans 160 8" ;;
        esac
        # shellcheck disable=SC2086 # several options
        "$programs/tsr_encode_anyway" "$file" "$work/seeds/container/$name.tsr" $coding >/dev/null 2>&1 ||
            "$programs/tsr_encode_anyway" "$file" "$work/seeds/container/$name.tsr"
    done <"$TSR_FUZZ_TMP/list"
    # Larger ones: drawn, with DC planes, and predicted in two tiles.
    while read -r name coding; do
        # shellcheck disable=SC2086 # several options
        "$programs/tsr_encode_anyway" "$TSR_FUZZ_TMP/set/pnm/$name" \
            "$work/seeds/container/${name}_$(printf '%s' "$coding" | tr ' ' _).tsr" $coding
    done <<'larger'
screen_8bit.ppm
outliers_8bit.pgm predict rans
extremes_rgb.ppm predict huffman
landscape_grey_8bit.pgm transform huffman 272
landscape_grey_8bit.pgm transform rans 272
ramp_8bit.pgm transform huffman 272
landscape_grey_8bit.pgm transform huffman 200 8
landscape_grey_8bit.pgm transform cavlc 200 8
landscape_coarse.ppm transform rans 160 9
larger
    # Frames that are equal.
    "$programs/tsr_encode_anyway" "$TSR_FUZZ_TMP/set/dicom/samples/rgb_frames.dcm" "$work/seeds/container/equal_frames.tsr"
    # Files with a base: without loss, and in patches.
    i=0
    while read -r name how; do
        i=$((i + 1))
        # shellcheck disable=SC2086 # several options
        "$programs/tessera" compress -q -f $how "$TSR_FUZZ_TMP/set/$name" -o "$work/seeds/container/based_$i.tsr" || :
    done <<'based'
odd/63x65_16bit.pgm --qp 10 --lossless-rest
dicom/samples/rgb_frames.dcm --qp 40 --lossless-rest
odd/63x65_16bit.pgm --qp 30 --roi 3,5,20,17
dicom/forms/big_rgb_words.dcm --qp 40 --roi 1,2,6,5 --roi 30,20,9,9
dicom/enhanced/slopes.dcm --qp 40 --roi 50,50,14,14 --roi 3,3,5,5
png/formats/rgb8.png --qp 40 --roi 5,5,9,9
based
    # PNG that is written anew, at each of the levels that an effort chooses.
    for file in rgb8 palette8 grey16; do
        for effort in 1 5 9; do
            "$programs/tessera" compress -q -f --samples-only -$effort "$TSR_FUZZ_TMP/set/png/formats/$file.png" \
                -o "$work/seeds/container/anew_${file}_$effort.tsr" || :
        done
    done
    # Series of a few of them, with similar headers.
    for folder in dicom/sizes odd; do
        [ -d "$TSR_FUZZ_TMP/set/$folder" ] || continue
        mkdir -p "$TSR_FUZZ_TMP/some/$folder"
        find "$TSR_FUZZ_TMP/set/$folder" -type f -size -3 | sort | head -6 |
            while IFS= read -r file; do cp "$file" "$TSR_FUZZ_TMP/some/$folder"; done
        "$programs/tessera" compress -q -f -T 1 -r --series "$work/seeds/container/series_${folder#*/}.tsr" \
            "$TSR_FUZZ_TMP/some/$folder" >/dev/null 2>&1 || :
    done
    # Files that are packed, and their streams as fuzz_pieces.c and fuzz_stream_jpeg.c read them.
    for file in "$TSR_FUZZ_TMP"/set/packed/*; do
        name=${file##*/}
        [ "$(wc -c <"$file")" -lt 16000 ] || continue
        { printf '\000\000\000\000\000' && cat "$file"; } >"$work/seeds/packed/$name"
        case $name in
        *.jpg)
            { printf '\201\000\000\000\000' && cat "$file"; } >"$work/seeds/reference/$name"
            { printf '\001\000\000\000\000' && cat "$file"; } >"$work/seeds/stream_jpeg/$name"
            { printf '\002\000\000\000\000' && cat "$file"; } >"$work/seeds/stream_jpeg/damaged_$name"
            ;;
        *.gz) { printf '\202\000\000\000\000' && tail -c +11 "$file"; } >"$work/seeds/reference/$name" ;;
        esac
    done
    find "$TSR_FUZZ_TMP/set/png" -name '*.png' -size -3 | while IFS= read -r file; do
        { printf '\203\000\000\000\000' && cat "$file"; } >"$work/seeds/reference/small_${file##*/}"
    done
    find "$TSR_FUZZ_TMP/set/dicom/odd" -name '*no_pixels*.dcm' | while IFS= read -r file; do
        { printf '\204\000\000\000\000' && cat "$file"; } >"$work/seeds/reference/elements_${file##*/}"
        { printf '\204\000\000\000\000' && cat "$file"; } >"$work/seeds/packed/elements_${file##*/}"
        { printf '\000\000\000\000\000' && cat "$file"; } >"$work/seeds/packed/whole_${file##*/}"
    done
    touch "$made"
}

# fuzz TARGET: its line goes to $work/TARGET.line. The status is 1 if something was found.
fuzz() {
    target=$1
    [ -x "$bin/fuzz_$target" ] || {
        echo "fuzz_$target is not built" >"$work/$target.line"
        return 1
    }
    corpus=$work/corpus/$target
    mkdir -p "$corpus"
    set -- "$corpus"
    [ -d "$work/seeds/$target" ] && set -- "$@" "$work/seeds/$target"
    [ "$target" = memory ] && set -- "$@" "$work/seeds/container" "$work/seeds/png" "$work/seeds/pnm" "$work/seeds/nifti" "$work/seeds/dicom"
    [ "$target" = elements ] && set -- "-dict=$here/dicom.dict" "$@" "$work/seeds/dicom"
    [ "$target" = packed ] && set -- "$@" "$work/seeds/reference"
    [ -e "$here/$target.dict" ] && set -- "-dict=$here/$target.dict" "$@"
    # shellcheck disable=SC2086 # several flags
    "$bin/fuzz_$target" "-max_total_time=$seconds" -rss_limit_mb=2048 -timeout=25 -max_len=16384 -print_final_stats=1 \
        "-artifact_prefix=$work/findings/${target}_" ${TSR_FUZZ_FLAGS-} "$@" >"$work/$target.log" 2>&1 || {
        echo "fuzz_$target: a finding, see $work/$target.log and $work/findings" >"$work/$target.line"
        grep -E 'FINDING|ERROR|SUMMARY' "$work/$target.log" >>"$work/$target.line" || :
        return 1
    }
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$target.log")
    coverage=$(grep -oE 'cov: [0-9]+ ft: [0-9]+' "$work/$target.log" | tail -n 1)
    echo "fuzz_$target: $executions executions, $coverage, nothing found" >"$work/$target.line"
}

make_seeds
status=0
while [ $# -gt 0 ]; do # as many at once as there are processors
    running='' targets=''
    for i in $(seq "$(nproc)"); do
        [ $# -gt 0 ] || break
        fuzz "$1" &
        running="$running $!" targets="$targets $1"
        shift
    done
    for process in $running; do wait "$process" || status=1; done
    for target in $targets; do cat "$work/$target.line"; done
done
exit $status
