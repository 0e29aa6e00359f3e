# DICOM files that were coded with loss have the lossy tags, DERIVED, and a new UID made from the input, so that the same
# input gives the same bytes. They refer to their originals, and say the same of themselves everywhere. Mammography and the
# like are refused without --allow-lossy; palette indices, labels and the like are never coded with loss.
. "${0%/*}/steps.sh"
cp "$DATA/dicom/ct/slice_01.dcm" a.dcm
cp "$DATA/dicom/ct/slice_02.dcm" b.dcm
run 0 "$TESSERA" compress --json a.dcm -o exact.tsr
if [ "$(fields path)" = null ]; then
    echo "this build has no DCMTK: skipped"
    exit 77
fi

hex()
{
    od -An -v -tx1 "$1" | tr -d ' \n'
}
# has_element FILE GROUP ELEMENT VR VALUE: in little or big endian, explicit or not. VALUE: the first bytes, in hex digits.
has_element()
{
    group=$2 element=$3
    little="${group#??}${group%??}${element#??}${element%??}"
    hex "$1" | grep -q -e "${little}$4....$5" -e "${little}..000000$5" -e "$group$element$4....$5"
}
uid_of() # FILE: its SOP Instance UID
{
    dcmdump +P 0008,0018 "$1" | sed -n "1s/.*\[\(.*\)\].*/\1/p"
}
uids() # the UIDs that are made from hashes: 2.25.NUMBER
{
    tr -c '0-9.' '\n' <"$1" | grep '^2\.25\.[0-9]*$' | sort
}
new_uid() # ORIGINAL RESTORED: UIDs that are new, neither in the original nor in an uncompressed sister (deflated files hide theirs)
{
    { uids "$1" && uids "$DATA/dicom/forms/explicit_little.dcm"; } | sort -u >"$WORK/old" && uids "$2" | sort -u | comm -13 "$WORK/old" -
}

# The marks of a derived object are not in the original, nor in a file that was restored without loss.
CS=4353 UI=5549 DS=4453 ST=5354
yes=3031 derived=44455249564544 tessera=54455353455241
has_element a.dcm 0028 2110 $CS $yes && bad "the original is lossy"
has_element a.dcm 0008 0008 $CS $derived && bad "the original is derived"
run 0 "$TESSERA" decompress exact.tsr -o exact.dcm
cmp a.dcm exact.dcm || bad "without loss, DICOM does not come back"

# With every transfer syntax: little, big, implicit, deflated, no meta header.
for name in ct/slice_01 forms/explicit_big forms/implicit_little forms/deflated forms/no_meta_implicit forms/no_meta_big forms/unknown_vr forms/ge_private odd/private \
    odd/behind us/sector_rgb samples/rgb_frames; do
    original=$DATA/dicom/$name.dcm
    rm -f l.tsr l2.tsr l.dcm again.tsr
    run 0 "$TESSERA" compress --json --qp 36 "$original" -o l.tsr
    [ "$(fields status lossless kind)" = "ok${tab}false${tab}dicom" ] || bad "$name: $(fields status lossless kind)"
    least=$(fields pixel_bytes payload_bytes | awk '{ print $1 / $2 }')
    run 0 "$TESSERA" compress -q --qp 36 "$original" -o l2.tsr
    cmp l.tsr l2.tsr || bad "$name: the same input gives other bytes"
    run 0 "$TESSERA" decompress l.tsr -o l.dcm
    has_element l.dcm 0028 2110 $CS $yes || bad "$name: no (0028,2110) Lossy Image Compression 01"
    has_element l.dcm 0028 2112 $DS 3 || bad "$name: no (0028,2112) ratio"
    has_element l.dcm 0028 2114 $CS $tessera || bad "$name: no (0028,2114) method TESSERA"
    has_element l.dcm 0008 0008 $CS $derived || bad "$name: its (0008,0008) Image Type is not DERIVED"
    ratio=$(tr -c '[:print:]' '\n' <l.dcm | sed -n 's/.*coded with loss by Tessera, ratio \([0-9.]*\).*/\1/p')
    # The ratio is computed before proof and index are written, so it differs a little.
    echo "$ratio $least" | awk '{ exit !($1 >= $2 * 0.999 && $1 < $2 * 3) }' || bad "$name: ratio '$ratio', reported $least"
    uid=$(new_uid "$original" l.dcm)
    [ "$(echo "$uid" | grep -c '^2\.25\.[1-9][0-9]*$')" -eq 1 ] && [ "$(echo "$uid" | wc -l)" -eq 1 ] && [ ${#uid} -le 64 ] ||
        bad "$name: not one new UID 2.25.N, but '$uid'"
    has_element l.dcm 0008 0018 $UI "$(printf %s "$uid" | od -An -v -tx1 | tr -d ' \n')" || bad "$name: (0008,0018) is not the new UID"
    case $name in
    *no_meta*) ;;
    *) has_element l.dcm 0002 0003 $UI "$(printf %s "$uid" | od -An -v -tx1 | tr -d ' \n')" || bad "$name: (0002,0003) is not the new UID" ;;
    esac
    # The restored file is DICOM: it can be coded again as DICOM.
    run 0 "$TESSERA" compress --json --qp 40 l.dcm -o again.tsr
    [ "$(fields status kind)" = "ok${tab}dicom" ] || bad "$name: what was restored is no DICOM: $(fields status kind error)"
done

# A second loss: ratios and methods are appended, and the UID changes again.
rm -f again.tsr again.dcm
run 0 "$TESSERA" compress -q --qp 34 l.dcm -o again.tsr
run 0 "$TESSERA" decompress -q again.tsr -o again.dcm
has_element again.dcm 0028 2114 $CS "${tessera}5c$tessera" || bad "the second method is not appended"
[ "$(new_uid l.dcm again.dcm | wc -l)" -eq 1 ] || bad "no new UID after a second loss"

# Another input or another coding gives another UID.
for what in "a.dcm --qp 28" "b.dcm --qp 28" "a.dcm --qp 29" "a.dcm --qp 28.125" "a.dcm --psnr 41" "a.dcm --psnr 44" "a.dcm --size 21:1" \
    "a.dcm --max-error 4" "a.dcm --max-error 5" "a.dcm --qp 28 --tune ssim"; do
    rm -f l.tsr l.dcm
    # shellcheck disable=SC2086
    run 0 "$TESSERA" compress -q ${what#* } "${what%% *}" -o l.tsr
    run 0 "$TESSERA" decompress -q l.tsr -o l.dcm
    new_uid "${what%% *}" l.dcm
    for element in 2110:$CS:$yes 2112:$DS: 2114:$CS:$tessera; do
        has_element l.dcm 0028 "${element%%:*}" "$(echo "$element" | cut -d : -f 2)" "${element##*:}" || bad "$what: no (0028,${element%%:*})" >&2
    done
done | sort -u >uids
[ "$(wc -l <uids)" -eq 10 ] || bad "UIDs are not those of input and coding: $(cat uids)"

# An earlier loss keeps its place, even if its tags were incomplete.
if command -v dcmodify >/dev/null && command -v dcmdump >/dev/null; then
    for case in '-i;(0028,2110)=01|[\9]|[\TESSERA]' '-i;(0028,2110)=01;-i;(0028,2112)=7.5|[7.5\9]|[\TESSERA]' \
        '-i;(0028,2114)=ISO_10918_1|[\9]|[ISO_10918_1\TESSERA]' \
        '-i;(0028,2110)=01;-i;(0028,2112)=7.5\3.1;-i;(0028,2114)=ISO_10918_1\ISO_15444_1|[7.5\3.1\9]|[ISO_10918_1\ISO_15444_1\TESSERA]'; do
        for options in '--qp 28' '--psnr 40' '--size 20:1' '--max-error 6'; do
            rm -f c.dcm l.tsr l.dcm
            cp a.dcm c.dcm && chmod u+w c.dcm
            IFS=';'
            # shellcheck disable=SC2086
            dcmodify -nb ${case%%|*} c.dcm
            unset IFS
            # shellcheck disable=SC2086
            run 0 "$TESSERA" compress -q $options c.dcm -o l.tsr
            run 0 "$TESSERA" decompress -q l.tsr -o l.dcm
            dcmdump l.dcm | sed -n 's/^(0028,211[024]) .. \(\[.*\]\).*/\1/p' | sed 's/[0-9.]\{1,\}]$/9]/' | tr '\n' '|' >said
            wanted="[9]|${case#*|}|"
            [ "$(cat said)" = "$wanted" ] || bad "$options: after an earlier loss, $(cat said), not $wanted"
        done
    done
fi

# Everything in the header tells of the copy: the source, how it was derived, the range of its samples, its frames; and where
# the original refers to itself, the copy does. A copy of a copy has both steps, in their order.
dump() # FILE TAG: the values of a tag, wherever it stands, in one line
{
    dcmdump +L -q "$1" | sed -n "s/^ *($2) [A-Z][A-Z] =*\\[\{0,1\}\\([^] #]*\\).*/\\1/p" | tr '\n' ' '
}
range() # FILE: of 256 x 256 samples of 16 bits at its end, signed
{
    tail -c 131072 "$1" | od -An -v -td2 -w2 | sort -n | sed -n '1p;$p' | tr -d ' ' | tr '\n' ' '
}
if command -v dcmodify >/dev/null && command -v dcmdump >/dev/null; then
    old=$(dump a.dcm 0008,0018)
    old=${old% }
    cp a.dcm c.dcm && chmod u+w c.dcm
    groups='-i (5200,9230)[0].(0008,9007)=ORIGINAL\PRIMARY\AXIAL -i (5200,9230)[1].(0018,9329)[0].(0008,9007)=ORIGINAL\PRIMARY\AXIAL'
    # shellcheck disable=SC2086
    dcmodify -nb -i '(0028,0106)=0' -i '(0028,0107)=0' -i '(0028,0108)=0' -i '(5200,9229)[0].(0028,9110)[0].(0028,0107)=7' $groups \
        -i "(0008,1140)[0].(0008,1155)=$old" -i '(0008,1140)[1].(0008,1155)=1.2.3' -i "(5200,9229)[0].(0008,1140)[0].(0008,1155)=$old" c.dcm
    rm -f l.tsr l.dcm l2.tsr l2.dcm
    run 0 "$TESSERA" compress -q --qp 40 c.dcm -o l.tsr
    run 0 "$TESSERA" decompress -q l.tsr -o l.dcm
    uid=$(dump l.dcm 0008,0018)
    uid=${uid% }
    [ "$(dump l.dcm 0002,0003)" = "$uid " ] || bad "the meta header has another UID than $uid: $(dump l.dcm 0002,0003)"
    # ReferencedSeries (the original), ReferencedImages (2), SourceImages, Evidence, shared groups: themselves, their derivation
    wanted="$old $uid 1.2.3 $old $old $uid $old "
    [ "$(dump l.dcm 0008,1155)" = "$wanted" ] || bad "it refers to $(dump l.dcm 0008,1155), not $wanted"
    [ "$(dump l.dcm 0008,9007)" = 'DERIVED\PRIMARY\AXIAL DERIVED\PRIMARY\AXIAL ' ] || bad "frames are $(dump l.dcm 0008,9007)"
    [ "$(dump l.dcm 0008,0100)" = '121320 113040 121320 113040 ' ] || bad "its codes are $(dump l.dcm 0008,0100)"
    [ "$(dump l.dcm 0028,0106)$(dump l.dcm 0028,0107)" = "$(range l.dcm)" ] ||
        bad "its samples are of $(dump l.dcm 0028,0106)to $(dump l.dcm 0028,0107), not $(range l.dcm)"
    [ -z "$(dump l.dcm 0028,0108)" ] || bad "the smallest sample of the series is $(dump l.dcm 0028,0108)"
    run 0 "$TESSERA" compress -q --max-error 6 l.dcm -o l2.tsr
    run 0 "$TESSERA" decompress -q l2.tsr -o l2.dcm
    [ "$(dcmdump -q +P 0008,1155 +p l2.dcm | sed -n 's/^(0008,2112)[^[]*\[\([^]]*\).*/\1/p' | tr '\n' ' ')" = "$old $uid " ] ||
        bad "the sources of the copy's copy: $(dcmdump -q +P 0008,1155 +p l2.dcm)"
    case $(dump l2.dcm 0008,0100) in
    *'121320 121330 '*) ;;
    *) bad "the codes of the copy's copy: $(dump l2.dcm 0008,0100)" ;;
    esac
    [ "$(dump l2.dcm 0028,0106)$(dump l2.dcm 0028,0107)" = "$(range l2.dcm)" ] || bad "the copy's copy is not of $(range l2.dcm)"
fi

# Never coded with loss: no quantities, or few values. The reason is said, and the file comes back; in a series, too.
never() # FILE REASON: by any kind of loss, and whatever is allowed
{
    for options in '--qp 20' '--psnr 40' '--max-error 4' '--qp 20 --allow-lossy' '--max-error 4 --allow-lossy'; do
        rm -f n.tsr n
        # shellcheck disable=SC2086
        run 0 "$TESSERA" compress --json $options "$1" -o n.tsr
        [ "$(fields lossless reason)" = "true${tab}coded without loss: $2 are never coded with loss" ] ||
            bad "$1, $options: $(fields lossless reason)"
        run 0 "$TESSERA" decompress -q n.tsr -o n
        cmp n "$1" || bad "$1, $options: it does not come back"
    done
}
few='images of at most 16 values'
for name in pnm/checker_8bit.pgm pnm/checker_rgb_16bit.ppm pnm/extremes_16bit.pgm png/constant_rgb.png; do never "$DATA/$name" "$few"; done
never "$DATA/dicom/samples/16bit_extremes_signed.dcm" "$few"
never "$DATA/dicom/samples/overlay_high_bits.dcm" 'images with overlays in their words'
cp "$DATA/pnm/checker_8bit.pgm" 1.pgm && cp "$DATA/dicom/samples/overlay_high_bits.dcm" 2.dcm
run 0 "$TESSERA" compress --json --qp 30 --series n.series.tsr 1.pgm 2.dcm a.dcm
[ "$(fields lossless | tr '\n' ' ')" = 'true true false ' ] || bad "the series: $(fields lossless reason)"
# Sixteen values, and seventeen, of which the last one is the last sample.
noise() # VALUES SAMPLES
{
    awk -v n="$1" -v samples="$2" '
        BEGIN {
            for (x = 1; samples-- > 0;) {
                x = (x * 75 + 74) % 16777213
                printf "%c", 97 + int(x / 4096) % n
            }
        }'
}
{ printf 'P5\n128 64\n255\n' && noise 16 8192; } >16.pgm
{ printf 'P5\n128 64\n255\n' && noise 16 8191 && printf q; } >17.pgm
run 0 "$TESSERA" compress --json --max-error 1 16.pgm -o 16.tsr
[ "$(fields lossless)" = true ] || bad "an image of 16 values loses"
run 0 "$TESSERA" compress --json --max-error 1 17.pgm -o 17.tsr
[ "$(fields lossless)" = false ] || bad "an image of 17 values does not lose: $(fields reason)"
if command -v dcmodify >/dev/null; then
    storage=1.2.840.10008.5.1.4.1.1
    while IFS=';' read -r edit reason; do
        cp a.dcm n.dcm && chmod u+w n.dcm
        # shellcheck disable=SC2086
        dcmodify -nb $edit n.dcm
        never n.dcm "$reason"
    done <<EOF
-i (0028,1101)=16\3000\16;images with palette indices
-i (0062,0001)=LABELMAP;label maps
-m (0008,0016)=$storage.66.7;label maps
-i (0062,0001)=BINARY;segmentations that are not fractional
-m (0008,0016)=$storage.30;parametric maps
-i (6002,0010)=256 -i (6002,0011)=256 -i (6002,0102)=15;images with overlays in their words
EOF
    while IFS=';' read -r edit reason; do
        cp a.dcm n.dcm && chmod u+w n.dcm && rm -f n.tsr
        # shellcheck disable=SC2086
        dcmodify -nb $edit n.dcm
        refuses 2 "is not coded with loss: $reason (--allow-lossy" "$TESSERA" compress --max-error 4 n.dcm -o n.tsr
        run 0 "$TESSERA" compress --json --max-error 4 --allow-lossy n.dcm -o n.tsr
        [ "$(fields lossless)" = false ] || bad "$edit: --allow-lossy does not allow it: $(fields reason)"
    done <<EOF
-m (0008,0060)=SEG -i (0062,0001)=FRACTIONAL;it is a segmentation
-m (0008,0016)=$storage.66.4;it is a segmentation
-m (0008,0016)=$storage.1.2;it is mammography
-m (0008,0016)=$storage.13.1.3;it is mammography
-m (0008,0016)=$storage.481.2;it is a dose
EOF
fi

# Refused files: nothing is written. --allow-lossy codes them. (The set's dose and segmentation have samples of 32 bits and
# of one, which are never coded with loss.)
mg=$DATA/dicom/mg/breast.dcm
refuses 2 'is not coded with loss: it is mammography (--allow-lossy' "$TESSERA" compress --qp 20 "$mg" -o out.tsr
run 75 "$TESSERA" compress --qp 20 a.dcm "$mg" b.dcm -o set
says 'it is mammography'
[ "$(ls -A set | tr '\n' ' ')" = 'a.dcm.tsr b.dcm.tsr ' ] || bad "the set: $(ls -A set)"
run 0 "$TESSERA" compress --json --qp 20 --allow-lossy "$mg" -o mg.tsr
[ "$(fields lossless)" = false ] || bad "--allow-lossy does not allow it"
run 0 "$TESSERA" compress --json "$mg" -o mg_exact.tsr
[ "$(fields lossless)" = true ] || bad "mammography is lossy by itself"
for name in rt/dose seg/lesions us/palette; do
    run 0 "$TESSERA" compress --json --allow-lossy --qp 20 "$DATA/dicom/$name.dcm" -o "${name#*/}.tsr"
    case $(fields lossless reason) in
    true*'coded without loss: '*) ;;
    *) bad "$name: $(fields lossless reason)" ;;
    esac
    rm -f back
    run 0 "$TESSERA" decompress "${name#*/}.tsr" -o back
    cmp back "$DATA/dicom/$name.dcm" || bad "$name does not come back"
done

# Other files of the set that refer to the UID of what is lossy now are named: a presentation state, a deflated one, an image
# (in the other byte order, in an item of undefined length), a DICOMDIR. A file that refers to itself is none of them.
if command -v dcmodify >/dev/null && command -v dcmconv >/dev/null; then
    mkdir refer && cp "$DATA"/dicom/ct/slice_0[123].dcm refer
    old=$(uid_of refer/slice_01.dcm)
    cp "$DATA/dicom/ct/slice_04.dcm" state.dcm
    dcmodify -nb -ea "(7fe0,0010)" -ea "(0028,0010)" -ea "(0028,0011)" -m 0008,0016=$storage.11.1 -m 0008,0018=1.2.3.1 \
        -i "(0008,1115)[0].(0008,1140)[0].(0008,1155)=$old" -i "(0008,1115)[0].(0008,1140)[1].(0008,1155)=$old" state.dcm 2>/dev/null
    dcmconv +td state.dcm refer/deflated.dcm && cp state.dcm refer/state.dcm
    cp "$DATA/dicom/ct/slice_05.dcm" image.dcm && dcmodify -nb -i "(0008,2112)[0].(0008,1155)=$old" image.dcm 2>/dev/null
    dcmconv +tb -e image.dcm refer/image.dcm
    dcmodify -nb -i "(0008,2112)[0].(0008,1155)=$(uid_of refer/slice_02.dcm)" refer/slice_02.dcm 2>/dev/null
    dcmodify -nb -i "(0004,1220)[0].(0004,1511)=$old" -m 0008,0018=1.2.3.2 -ea "(0008,1115)" state.dcm 2>/dev/null
    cp state.dcm refer/zdicomdir
    named="refer/deflated.dcm, refer/image.dcm, refer/state.dcm and 1 more refer to its old SOP Instance UID"
    for threads in 1 3; do
        run 0 "$TESSERA" compress -r -T $threads --qp 20 refer -o referred.$threads --report refer.html --identify -f
        grep -q "^  1 lossy original with references: $named (refer/slice_01.dcm)$" "$out" || bad "references: $(cat "$out")"
    done
    grep -q "<li><b>1 lossy, and referred to</b>: $named (refer/slice_01.dcm)</li>" refer.html || bad "the page does not name references"
    run 0 "$TESSERA" compress -r --qp 20 refer -o referred.1 --report refer.html -f
    grep -q '<b>1 lossy, and referred to</b>: 4 other files of the set refer to its old SOP Instance UID (no. 3)' refer.html || bad "the page without names"
    run 0 "$TESSERA" compress -r -f --json --qp 20 refer -o referred.1
    grep -q '"file":"refer/slice_01.dcm".*"referrers":{"count":4,"first":\[{"file":"refer/deflated.dcm"},{"file":"refer/image.dcm"},{"file":"refer/state.dcm"}\]}' "$out" ||
        bad "the JSON does not name references: $(fields file referrers)"
    [ "$(grep -c '"referrers":null' "$out")" -eq 6 ] && [ "$(fields --summary referred)" = 1 ] || bad "others have references: $(cat "$out")"
    run 0 "$TESSERA" compress --json --qp 20 --series referred.tsr -f refer/*
    [ "$(fields --summary referred)" = 1 ] || bad "a series: $(fields --summary referred)"
    # Without loss the UID stays, and nothing is to be said.
    run 0 "$TESSERA" compress -r -f --json refer -o referred.1
    [ "$(fields --summary referred)" = 0 ] || bad "without loss there are references"
fi
finish
