# The README's session must be what the program prints: each line after "$ " is run, and the lines below it are compared.
# Times may differ, and sizes that depend on libraries. usage: sh test_readme.sh BIN DATA WORK README
. "${0%/*}/steps.sh"
readme=$4
PATH=$BIN:$PATH
plainly()
{
    sed -e 's/[0-9.]* s$/T s/' -e "$READ_BACK" -e 's/[0-9]* -> [0-9]* bytes/N -> N bytes/g' \
        -e 's/ratio [0-9.]*/ratio R/' -e 's/^  size  *[0-9]*/  size N/'
}
cp -r "$DATA/dicom/ct" scan
awk '/^## /{inside = /^## A session/} inside && /^```/{block++; next} inside && block == 1' "$readme" >"$WORK/session"
grep -c '^\$ ' "$WORK/session" | grep -q '^[3-9]' || bad "no session in $readme"
sed -n 's/^\$ //p' "$WORK/session" >"$WORK/commands"
while read -r command; do
    echo "\$ $command"
    sh -c "$command" 2>&1 </dev/null || echo "status $?"
    echo
done <"$WORK/commands" >"$WORK/said"
plainly <"$WORK/session" >"$WORK/wanted"
plainly <"$WORK/said" | sed -e '${/^$/d;}' >"$WORK/got"
diff "$WORK/wanted" "$WORK/got" || bad "the session of $readme is not what the program says"
finish
