#!/bin/sh
# Changes the form of all files in Orthanc's storage area, in place, while Orthanc is stopped.
# usage: store.sh plain STORE    each .tsr becomes the file that it holds: Orthanc reads the store without the plugin
#        store.sh tsr STORE      each plain file becomes a .tsr: a store from before the plugin gets smaller
# STORE: "StorageDirectory" of Orthanc's configuration; run it as Orthanc's user. TESSERA: the program, default "tessera".
# A file loses its old form only when the new one is proven and on the disk. It goes folder by folder, so little room is
# needed, and goes on where it was stopped. Exit status 1: some files have their old form yet; each was named.
set -u
tessera=${TESSERA:-tessera}
form=${1:-} store=${2:-}
case $form in plain | tsr) ;; *) store= ;; esac
[ -n "$store" ] && [ -d "$store" ] || { echo "usage: store.sh plain|tsr STORE" >&2; exit 2; }
command -v "$tessera" >/dev/null || { echo "store.sh: there is no program $tessera" >&2; exit 2; }
status=0
for folder in "$store"/[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]; do # what else is in STORE, as the index, is left alone
    [ -d "$folder" ] || continue
    rm -f "$folder"/.????????-????-????-????-????????????.part # of a store that was cut short
    if [ "$form" = tsr ]; then
        [ -n "$(find "$folder" -type f ! -name '*.tsr' ! -name '.*' | head -n 1)" ] || continue
        "$tessera" compress -q -r --rm=damaged-too --update=hash --exclude '*.tsr' --exclude '.*' "$folder" || status=1
    elif [ -n "$(find "$folder" -type f -name '*.tsr' | head -n 1)" ]; then
        if "$tessera" decompress -q -r --update=hash "$folder"; then
            # Each whose file is there: one that came meanwhile stays, and is named.
            find "$folder" -type f -name '*.tsr' -exec sh -c 'for f; do [ ! -f "${f%.tsr}" ] || rm -f "$f"; done' sh {} +
            find "$folder" -type f -name '*.tsr' | sed 's/$/: it came while store.sh was at work; is Orthanc stopped?/' >&2
            [ -z "$(find "$folder" -type f -name '*.tsr' | head -n 1)" ] || status=1
        else
            status=1
        fi
    fi
done
exit $status
