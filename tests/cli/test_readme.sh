# A page's sessions must be what the program prints. A session is a block whose first line begins with "$ ": each such line is
# run, and the lines below it, up to an empty one, are compared. Times may differ, and sizes, which depend on libraries and,
# of a series, on times and permissions.
# usage: sh test_readme.sh BIN DATA WORK PAGE
. "${0%/*}/steps.sh"
page=$4
PATH=$BIN:$PATH
plainly()
{
    sed -e 's/[0-9.]* s$/T s/' -e "$READ_BACK" -e 's/[0-9]* -> [0-9]* bytes/N -> N bytes/g' \
        -e 's/ratio [0-9.]*/ratio R/' -e 's/^  size  *[0-9]*/  size N/' -e 's/at byte [0-9]*/at byte N/' -e 's/pixels [0-9.]* bits/pixels B bits/'
}
cp -r "$DATA/dicom/ct" scan
awk '/^```/ { if (said) print ""; open = !open; first = $0 == "```" && open; said = 0; next }
    said || (first && /^\$ /) { print; said = 1 } { first = 0 }' "$page" >"$WORK/session"
grep -c '^\$ ' "$WORK/session" | grep -qE '^([3-9]|[1-9][0-9])$' || bad "no session in $page"
sed -n 's/^\$ //p' "$WORK/session" >"$WORK/commands"
while read -r command; do
    echo "\$ $command"
    sh -c "$command" 2>&1 </dev/null || echo "status $?"
    echo
done <"$WORK/commands" >"$WORK/said"
plainly <"$WORK/session" >"$WORK/wanted"
plainly <"$WORK/said" >"$WORK/got"
diff "$WORK/wanted" "$WORK/got" || bad "the session of $page is not what the program says"
finish
