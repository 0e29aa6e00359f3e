# PNG that is written anew: with --samples-only the same pixels and the same other chunks, with loss other pixels. The
# reference decoder, which was written from the page, makes the same bytes; libpng reads them.
. "${0%/*}/steps.sh"

# comes_back OPTION...: compresses all PNG files of the set, and restores them. Each file is what the reference decoder makes.
comes_back()
{
    rm -rf coded restored
    run 0 "$TESSERA" compress -r --json "$@" "$DATA/png" -o coded
    fields file output status reason >files
    run 0 "$TESSERA" test -rq coded
    run 0 "$TESSERA" decompress -rq coded -o restored
    anew=0 number=0
    while IFS=$tab read -r file coded status reason; do
        name=${coded#coded/} && name=${name%.tsr} number=$((number + 1))
        cmp -s "$file" "restored/$name" || anew=$((anew + 1))
        [ $((number % ${TSR_TEST_SMALL:-1})) -eq 0 ] || continue # where tests are slow, one file of so many
        "$BIN/tsr_reference" "$coded" theirs && cmp theirs "restored/$name" || bad "$*: the reference decoder restores another $name"
        cmp -s "$file" "restored/$name" && continue
        case $name$* in
        damaged/* | *--qp*) ;; # libpng does not read it; it has other pixels
        *) "$BIN/tsr_same_png" "$file" "restored/$name" || bad "$*: $name has other pixels or chunks" ;;
        esac
        # Written anew once more, it stays as it is: neither the original's chunks nor its filters have a part in it.
        run 0 "$TESSERA" compress -qf --samples-only "restored/$name" -o again.tsr
        run 0 "$TESSERA" decompress -qf again.tsr -o again.png
        cmp "restored/$name" again.png || bad "$*: $name is another one when it is written anew"
    done <files
}

comes_back --samples-only
[ "$anew" -gt 40 ] || bad "only $anew PNG files are written anew"
comes_back --samples-only --verify cpu -9
comes_back --qp 20
[ "$anew" -gt 30 ] || bad "only $anew PNG files are written anew with loss"

# A wrong check is told, and the right one comes back.
run 0 "$TESSERA" compress -f --samples-only "$DATA/png/damaged/bad_crc_data.png" -o crc.tsr
grep -q 'original looks damaged: its IDAT chunk number 1 has a wrong CRC' "$out" || bad "nothing is said of a wrong CRC: $(cat "$out")"
run 0 "$TESSERA" decompress -qf crc.tsr -o crc.png
run 0 "$TESSERA" compress -f crc.png -o crc.tsr
grep -q damaged "$out" && bad "a wrong CRC comes back: $(cat "$out")"

# What is exact: pixels that cannot be read, animations, palettes with loss. What is said of a file, and that it is kept.
for name in damaged/truncated damaged/no_end damaged/bad_colour_type chunks/animated; do
    run 0 "$TESSERA" compress -qf --samples-only "$DATA/png/$name.png" -o exact.tsr
    run 0 "$TESSERA" decompress -qf exact.tsr -o exact.png
    cmp "$DATA/png/$name.png" exact.png || bad "--samples-only: $name does not come back"
done
run 0 "$TESSERA" compress -qf --qp 20 "$DATA/png/screen_palette.png" -o exact.tsr
run 0 "$TESSERA" decompress -qf exact.tsr -o exact.png
cmp "$DATA/png/screen_palette.png" exact.png || bad "a palette has lost something"
cp "$DATA/png/landscape_rgb.png" kept.png
run 0 "$TESSERA" compress --samples-only --rm kept.png
grep -q 'kept original: its .tsr restores the same samples in a new file' "$out" || bad "--rm: $(cat "$out")"
[ -f kept.png ] || bad "--rm has removed a file that does not come back"
run 0 "$TESSERA" info kept.png.tsr
grep -q 'pixels identical, file may differ' "$out" || bad "info: $(cat "$out")"

# One thread or several, and less memory, change no byte.
run 0 "$TESSERA" compress -qf -T 1 --samples-only kept.png -o one.tsr
run 0 "$TESSERA" compress -qf -T 4 --samples-only kept.png -o four.tsr
cmp one.tsr four.tsr || bad "threads change a file"
run 0 "$TESSERA" decompress -qf -T 1 one.tsr -o one.png
run 0 "$TESSERA" decompress -qf -T 4 one.tsr -o four.png
cmp one.png four.png || bad "threads change a PNG"
finish
