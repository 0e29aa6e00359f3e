# One meaning of "well": over events and verbs, the exit status, the first line of the page, the JSON and the last line of the
# summary say the same. This is the table of SECURITY.md, "What a run came to".
. "${0%/*}/steps.sh"
grey=$DATA/pnm/landscape_grey_8bit.pgm text=$DATA/other/text.txt
tsr=$TESSERA

# judged STATUS VERDICT LINE VERB ARGUMENT...: runs of one command, each in a copy of the folder: as it is, quiet, with JSON,
# and with a report, of verbs that have one. LINE is the last line of the summary, or - for none.
judged()
{
    wanted_status=$1 verdict=$2 line=$3
    shift 3
    verb=$1
    case $verdict in pass) word=PASS ;; unproven) word='NOT PROVEN' ;; *) word=FAIL ;; esac
    fresh && run "$wanted_status" "$tsr" "$@"
    last=$(tail -n 1 "$out")
    case $line in
    -) grep -q '^PASS\|^FAIL\|^NOT PROVEN' "$out" && bad "$*: a last line: $last" ;;
    *) [ "$last" = "$line" ] || bad "$*: the last line is '$last', not '$line'" ;;
    esac
    fresh && run "$wanted_status" "$tsr" "$@" -q
    [ ! -s "$out" ] || bad "$* -q is not quiet: $(cat "$out")"
    fresh && run "$wanted_status" "$tsr" "$@" --json
    [ "$(fields --summary verdict exit)" = "$verdict$tab$wanted_status" ] || bad "$*: JSON: $(tail -n 1 "$out" | cut -c 1-200)"
    case $verb in compress | test | verify) ;; *) return ;; esac
    option=--report && [ "$verb" != verify ] || option=--html
    fresh && cp "$WORK/old.html" page.html
    run "$wanted_status" "$tsr" "$@" $option page.html
    title=$(sed -n 's/.*<title>Tessera [a-z]*: \(.*\)/\1/p' page.html | head -n 1)
    case $line in
    -) grep -q "^$word" <<-TITLE || bad "$*: the page says '$title'" ;;
	$title
	TITLE
    *) [ "${title%%</title>*}" = "$line" ] || bad "$*: the page says '$title', not '$line'" ;;
    esac
    grep -q "<h1[^>]*><strong>$word</strong>" page.html || bad "$*: the first line is $(grep -o '<h1.*' page.html)"
    run "$wanted_status" "$tsr" "$@" -q -f $option page.html
    no_parts .
}
mkdir "$WORK/set" && cp "$grey" "$WORK/set/a.pgm" && cp "$text" "$WORK/set/t.txt"
(cd "$WORK" && "$tsr" compress -q -r set -o made --report old.html) || bad "the set"
grep -q PASS "$WORK/old.html" || bad "no page of an earlier night"
fresh()
{
    cd "$WORK" && rm -rf box && mkdir box && cd box || exit 2
    cp -Rp ../set set && cp -Rp ../made made && mkdir void below && mkdir -p below/one/two
    "$event"
}
nothing() { :; }
links() { ln -s a.pgm set/link && ln -s nowhere set/dangling && mkfifo set/pipe && ln -s t.txt.tsr made/link.tsr; }
named() { ln -s a.pgm set/link; }
only_links() { rm set/* made/* && ln -s nowhere set/link && mkfifo set/pipe && ln -s nowhere made/link.tsr; }
empty() { rm -r set made && mkdir set made; }
deep() { rm -r set made && mkdir -p set/one/two made/one/two; }
beside() { mkdir -p set/one/two made/one/two; }
stray() { cp made/t.txt.tsr set/s.tsr; }
damaged() { changes_byte made/a.pgm.tsr 3000; }
unwritable() { rm made/t.txt.tsr && mkdir made/t.txt.tsr; }
extra() { cp made/t.txt.tsr made/more.tsr; }
lacking() { rm made/t.txt.tsr; }

# All is well.
event=nothing
judged 0 pass PASS compress -r -f set -o made
judged 0 pass PASS compress -r --update set -o made
judged 0 pass PASS compress -r --series s.tsr set
judged 0 pass PASS test -r made
judged 0 pass PASS verify set made
judged 0 pass PASS decompress -r made -o back
judged 0 pass PASS compress -f set/a.pgm -o one.tsr
judged 0 pass PASS test made/a.pgm.tsr
judged 0 unproven 'NOT PROVEN, 2 files were not proven' compress -r -f --verify none set -o made
judged 0 unproven 'NOT PROVEN, 2 files were not proven' compress -r --verify none --series s.tsr set
# Names that are not taken, and are named.
event=links
judged 0 pass 'PASS, 3 names were not taken' compress -r -f set -o made
judged 0 pass 'PASS, 3 names were not taken' compress -r --update set -o made
judged 0 pass 'PASS, 3 names were not taken' compress -r --series s.tsr set
judged 0 pass 'PASS, 1 name was not taken' test -r made
judged 0 pass 'PASS, 4 names were not taken' verify set made
judged 0 pass 'PASS, 1 name was not taken' decompress -r made -o back
judged 0 unproven 'NOT PROVEN, 2 files were not proven, 3 names were not taken' compress -r -f --verify none set -o made
event=stray
judged 0 pass 'PASS, 1 name was not taken' compress -r -f set -o made
judged 0 pass 'PASS, 1 name was not taken' compress -r --series s.tsr set
judged 0 pass PASS compress -r -f set
judged 75 fail 'FAIL, 1 file failed' verify set made
event=beside
judged 0 pass PASS compress -r -f set -o made
judged 0 pass PASS compress -r set -o other
[ -d other/one/two ] || bad "a folder without files beside others is not made"
judged 0 pass PASS verify set made
judged 0 pass PASS decompress -r made -o back
# Originals that --rm leaves where they are.
event=named
judged 0 pass 'PASS, 1 original was kept' compress -f --rm set/link -o one.tsr
grep -q '<b>1 kept</b>: it is a symbolic link (no. 1)' page.html || bad "the page does not say what was kept"
fresh && "$tsr" compress -f --rm set/t.txt set/link -o made --json >run.json
[ "$("$BIN/tsr_read_json" --summary kept removed <run.json)" = "1${tab}1" ] || bad "JSON of what was kept: $(tail -n 1 run.json)"
"$tsr" summary run.json >"$out" && [ "$(tail -n 1 "$out")" = 'PASS, 1 original was kept' ] || bad "summary of what was kept: $(cat "$out")"
# Nothing: an empty folder, only empty folders, only links, all excluded.
for event in empty deep; do
    judged 22 fail 'FAIL, no input was found' compress -r set -o other
    judged 22 fail 'FAIL, no input was found' compress -r set
    judged 22 fail 'FAIL, no input was found' compress -r --update set -o other
    judged 22 fail 'FAIL, no input was found' compress -r --shard 1/3 set -o other
    judged 22 fail 'FAIL, no input was found' compress -r set below -o other
    judged 22 fail 'FAIL, no input was found' test -r made
    judged 22 fail 'FAIL, no input was found' verify set made
    judged 22 fail 'FAIL, no input was found' decompress -r made -o back
    judged 22 fail 'FAIL, no input was found' export -r made --to native -o back
    fresh && refuses 22 'no .tsr files here' "$tsr" info -r made
    refuses 22 'no files to compare here' "$tsr" compare -r set
    refuses 22 'no files to compress here' "$tsr" compress -n -r set -o other
    if "$tsr" compress -q --manifest m set.x 2>"$err" || ! grep -q libcrypto "$err"; then
        refuses 22 'no files to compress here' "$tsr" compress -q -r set -o other --manifest m
    fi
    "$tsr" mount made void >"$out" 2>"$err"
    [ $? -ne 0 ] || { fusermount3 -u void && bad "a folder without files was mounted"; }
done
# A dry run names what the run would not take, and ends as it would.
rm -rf ./* && mkdir -p set/sub void && echo x >set/a && echo y >set/b
for options in '' --json; do
    # shellcheck disable=SC2086
    run 75 "$tsr" compress -r -n $options set void -o made
    says '^tessera: void: no file is in this folder; leave it out, or mount the share that belongs there$'
done
grep -q '"files":2,.*"failing":1,' "$out" || bad "a dry run, --json: $(cat "$out")"
ln -s a set/link && run 0 "$tsr" compress -r -n --rm set void -o made
grep -q '^  1 name not taken: folder without files (void)$' "$out" && grep -q '^  1 name not taken: symbolic link (set/link)$' "$out" ||
    bad "a dry run calls names something else: $(cat "$out")"
run 0 "$tsr" compress -q set/a -o made/a.tsr && run 75 "$tsr" compress -r -n set -o made
says 'made/a.tsr exists and is of this file; --update passes over it, -f makes it again$'
for options in --update -f; do run 0 "$tsr" compress -r -n $options set -o made; done
refuses 41 'made/a.tsr exists' "$tsr" compress -n set/a -o made/a.tsr
rm -rf ./*
event=only_links
judged 22 fail 'FAIL, no input was found, 2 names were not taken' compress -r set -o other
judged 22 fail 'FAIL, no input was found, 1 name was not taken' test -r made
judged 22 fail 'FAIL, no input was found' verify set made
event=nothing
judged 22 fail 'FAIL, no input was found' compress -r --exclude '*' set -o other
judged 22 fail 'FAIL, no input was found' test -r --exclude '*' made
judged 22 fail 'FAIL, no input was found' test -r set
judged 22 fail 'FAIL, no input was found' verify void made
judged 22 fail 'FAIL, no input was found' verify set void
# A part without files of a set that has some.
parts=
fresh && for i in 1 2 3 4 5 6 7 8 9; do
    run 0 "$tsr" compress -r --shard $i/9 set -o parts --report page.html
    [ "$(tail -n 1 "$out")" = PASS ] && grep -q '<title>[^<]*: PASS<' page.html || bad "shard $i of 9: $(cat "$out")"
    grep -q 'this part of the set has no file' page.html && parts=${parts}x
done
[ "${#parts}" -ge 7 ] || bad "shards without files: ${parts:-none}"
# A folder that was named, and holds nothing: a share that is not mounted is not passed over, whatever stands beside it.
for verb in 'compress -f -o out' 'test' 'decompress -o back'; do
    # shellcheck disable=SC2086
    case $verb in compress*) with=set ;; *) with=made ;; esac
    judged 75 fail 'FAIL, 1 file failed' $verb -r $with void
    grep -q '^tessera: void: no file is in this folder; leave it out, or mount' "$err" || bad "$verb is silent: $(cat "$err")"
done
fresh && run 75 "$tsr" info -r made below
fresh && printf 'set\nvoid\n' >list && run 75 "$tsr" compress -r --files-from list -o out
# --rm leaves folders without files behind.
fresh && run 0 "$tsr" compress -r --rm --update set void -o made
[ "$(tail -n 1 "$out")" = 'PASS, 1 name was not taken' ] || bad "--rm: $(cat "$out")"
# Files that fail.
event=damaged
judged 75 fail 'FAIL, 1 file failed' test -r made
judged 75 fail 'FAIL, 1 file failed' verify set made
judged 75 fail 'FAIL, 1 file failed' decompress -r made -o back
judged 61 fail - test made/a.pgm.tsr
event=unwritable
judged 75 fail 'FAIL, 1 file failed' compress -r -f set -o made
judged 20 fail - compress missing -o one.tsr
event=extra
judged 75 fail 'FAIL, 1 file failed' verify set made
event=lacking
judged 75 fail 'FAIL, 1 file failed' verify set made
event=links
judged 75 fail 'FAIL, 1 file failed, 3 names were not taken' compress -r -f set missing -o made
event=nothing
judged 20 fail 'FAIL, the run did not come to its end, 1 file failed, 1 file is not done' compress --series s.tsr set/a.pgm missing
judged 75 fail 'FAIL, 1 file failed' compress --series s.tsr --skip-unreadable set/a.pgm missing
judged 40 fail - compress -r set -o set/a.pgm
# What is said of the logs of runs is what they said.
for event in nothing links empty damaged; do
    for command in 'compress -r -f set -o other' 'compress -r -f --verify none set -o other' 'test -r made' 'verify set made'; do
        # shellcheck disable=SC2086
        fresh && { "$tsr" $command --json >run.json 2>"$err"; status=$?; }
        said=$("$BIN/tsr_read_json" --summary verdict not_taken <run.json)
        "$tsr" summary --json run.json >"$out" 2>"$err"
        joined=$?
        [ "$(fields --summary verdict not_taken)" = "$said" ] || bad "$event: summary of $command: $(fields --summary verdict not_taken)"
        [ $((status != 0)) -eq $((joined != 0)) ] || bad "$event: summary of $command has status $joined, the run $status"
        "$tsr" summary run.json >"$out" 2>"$err"
        case $(tail -n 1 "$out") in
        PASS*) [ $joined -eq 0 ] || bad "$event: summary passes $command" ;;
        'NOT PROVEN'*) [ $joined -eq 0 ] || bad "$event: summary: $command" ;;
        FAIL*) [ $joined -ne 0 ] || bad "$event: summary fails $command" ;;
        *) bad "$event: summary ends with $(tail -n 1 "$out")" ;;
        esac
    done
done
# An earlier page goes with a run that does not begin; a page of another program's stays, and so does one that is an input.
event=nothing && fresh
cp ../old.html page.html && run 22 "$tsr" compress -r void -o out --report page.html
grep -q PASS page.html && bad "the page of an earlier night stays: $(grep -o '<title>[^<]*' page.html)"
run 22 "$tsr" compress -r void -o out --report out/page.html
grep -q '<title>[^<]*: FAIL, no input was found<' out/page.html || bad "no page in OUT"
cp "$text" page.html && run 22 "$tsr" compress -r -f void -o out --report page.html
cmp -s "$text" page.html || bad "another program's page was replaced by a run that did not begin"
cp ../old.html page.html && run 42 "$tsr" compress -f page.html set/a.pgm -o out --report page.html
cmp -s ../old.html page.html || bad "an input was replaced by a page"
run 2 "$tsr" compress -f page.html set/a.pgm -o - --report page.html
cmp -s ../old.html page.html || bad "an input was replaced by a page, before it was known to be one"
finish
