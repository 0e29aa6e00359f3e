#!/bin/sh
# Compresses what DCMTK's storescp receives, and removes each file that its .tsr restores as the same file.
# usage: receive.sh INCOMING ARCHIVE FOLDER FILE    one file, as storescp names it; FOLDER is INCOMING or lies in it
#        receive.sh INCOMING ARCHIVE                all that is left in INCOMING, after a failure or a kill
#
#   storescp -B -od INCOMING --exec-sync --exec-on-reception "receive.sh INCOMING ARCHIVE '#p' '#f'" 11112
#
# A file goes from INCOMING only after its .tsr is complete, on the disk, and proven. What fails stays there, and the
# next run without FOLDER and FILE takes it: let cron call it, while storescp receives nothing. An instance that is sent
# again is compared. If it has other bytes, both are kept: the new one is called FILE.DIGITS, with the first 16 digits of
# its SHA-256, in INCOMING and in ARCHIVE.
# ARCHIVE/receive.json gets a JSON line a file, and a summary line a run: `tessera summary ARCHIVE/receive.json` joins
# them. TESSERA names the program, if it is not the one in PATH. The exit status is tessera's.
set -u
[ $# -eq 2 ] || [ $# -eq 4 ] || { echo "usage: receive.sh INCOMING ARCHIVE [FOLDER FILE]" >&2 && exit 2; }
incoming=$(cd "$1" && pwd -P) || exit 20
mkdir -p "$2" || exit 40
archive=$(cd "$2" && pwd -P) tessera=${TESSERA:-tessera}

compress()
{
    "$tessera" compress --json --progress none --update=hash --rm "$@"
}

if [ $# -eq 2 ]; then
    # First those whose .tsr is there: it may be of another instance.
    find "$incoming" -type f -exec sh -c '
        folder=${4%/*}
        [ ! -f "$3${4#"$2"}.tsr" ] || sh "$1" "$2" "$3" "$folder" "${4##*/}"' sh "$0" "$incoming" "$archive" {} \;
    [ -n "$(find "$incoming" -type f -print -quit)" ] || exit 0
    lines=$(compress -r -o "$archive" "$incoming")
    status=$?
else
    folder=$(cd "$3" && pwd -P) || exit 20
    case $folder/ in
    "$incoming"/*) ;;
    *) echo "receive.sh: $3 is not in $1" >&2 && exit 2 ;;
    esac
    out=$archive${folder#"$incoming"}
    mkdir -p "$out" || exit 40
    lines=$(compress -o "$out/" "$folder/$4") # of an absolute name the last part is kept
    status=$?
    if [ $status -eq 41 ] && [ -f "$out/$4.tsr" ]; then # of another instance, whose original is gone
        own=$4.$(sha256sum <"$folder/$4" | cut -c 1-16)
        [ -e "$folder/$own" ] || mv -n "$folder/$4" "$folder/$own"
        if [ ! -e "$folder/$4" ]; then
            lines=$(compress -o "$out/" "$folder/$own")
            status=$?
        fi
    fi
fi
# Several receivers may share a log.
if [ -n "$lines" ]; then
    { flock 9 && printf '%s\n' "$lines" >&9; } 9>>"$archive/receive.json" || exit 40
fi
exit $status
