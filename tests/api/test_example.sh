#!/bin/sh
# Builds the example of a language (app/library/examples) against the library of a build, decodes two frames by it, and compares
# them with what `tessera decompress` restores. Then an example that reads the next frame instead has to fail here.
# usage: test_example.sh LANGUAGE BUILD DATA WORK CC [EXAMPLES]    LANGUAGE: rust, go, java, r; EXAMPLES: of the planted fault
# Exit status 77: the language is not there.
set -u
language=$1 build=$2 data=$3 work=$4 cc=$5
root=$(cd "$(dirname "$0")/../.." && pwd)
examples=${6:-$root/app/library/examples}
fail() { echo "FAILED: $language: $*"; exit 1; }
needs() { # PACKAGE COMMAND...: Debian's package of these commands
    package=$1
    shift
    for command; do command -v "$command" >/dev/null || { echo "skipped: $command is missing (Debian: $package)"; exit 77; }; done
}
rm -rf "$work" && mkdir -p "$work" && cd "$work" || exit 2
LD_LIBRARY_PATH=$build/lib
export LD_LIBRARY_PATH
case $language in
rust)
    needs rustc rustc
    rustc -D warnings -L "$build/lib" -o frame "$examples/frame.rs" >log 2>&1 || fail "$(cat log)"
    decode() { ./frame "$@"; }
    ;;
go)
    if command -v go >/dev/null; then go=go; else needs gccgo go-12 && go=go-12; fi
    export CC="$cc" CGO_ENABLED=1 CGO_CFLAGS="-I$root/app" CGO_LDFLAGS="-L$build/lib" GOCACHE="$work/cache" GO111MODULE=off GOFLAGS=
    $go build -o frame "$examples/frame.go" >log 2>&1 || fail "$(cat log)"
    decode() { ./frame "$@"; }
    ;;
java)
    needs default-jdk-headless javac java
    jna=/usr/share/java/jna.jar
    [ -f $jna ] || { echo "skipped: $jna is missing (Debian: libjna-java)"; exit 77; }
    javac -Werror -cp $jna -d . "$examples/Frame.java" >log 2>&1 || fail "$(cat log)"
    decode() { java "-Djna.library.path=$build/lib" -cp "$jna:." Frame "$@"; }
    ;;
r)
    needs r-base-core Rscript
    "$cc" -Wall -Wextra -Werror -shared -fPIC "-I$root/app" "$examples/frame_r.c" "-L$build/lib" -ltessera -o frame_r.so >log 2>&1 ||
        fail "$(cat log)"
    decode() { Rscript "$examples/frame.R" "$@"; }
    ;;
*) fail "it is no language of these" ;;
esac

# A file whose frames end it, so that they are found in what comes back.
frames=8 bytes=8192
"$build/bin/tessera" compress -q "$data/dicom/nm/tomo.dcm" -o tomo.dcm.tsr && "$build/bin/tessera" decompress -q tomo.dcm.tsr -o back.dcm ||
    fail "the file is not made"
frame_of() { tail -c $((frames * bytes)) back.dcm | tail -c +$(($1 * bytes + 1)) | head -c $bytes; }
for number in 0 5; do
    frame_of $number >wanted
    frame_of $((number + 1)) | cmp -s - wanted && fail "the frames are equal, so the comparison says nothing"
    decode tomo.dcm.tsr $number got >said 2>log || fail "$(cat log)"
    cmp got wanted || fail "frame $number is not that of the file which comes back"
    grep -q '^64 x 64 *, 16 bits$' said || fail "it says of the image: $(cat said)"
done
# What cannot be is an error with the library's sentence, and no output.
decode tomo.dcm.tsr $frames none >said 2>&1 && fail "a frame that is not there is no error"
grep -q "there is no frame $frames" said || fail "a frame that is not there: $(cat said)"
[ ! -e none ] || fail "a frame that is not there has an output"

if [ $# -lt 6 ]; then
    mkdir planted && cp "$examples"/* planted || fail "no copy"
    case $language in
    rust) sed -i 's/words\[2\].parse().unwrap()/words[2].parse::<u32>().unwrap() + 1/' planted/frame.rs ;;
    go) sed -i 's/uint32_t(number)/uint32_t(number + 1)/' planted/frame.go ;;
    java) sed -i 's/parseInt(words\[1\])/parseInt(words[1]) + 1/' planted/Frame.java ;;
    r) sed -i 's/(uint32_t)\*frame/(uint32_t)*frame + 1/' planted/frame_r.c ;;
    esac
    diff -rq "$examples" planted >/dev/null && fail "the fault's text is not there"
    sh "$0" "$language" "$build" "$data" "$work/again" "$cc" "$work/planted" >planted.out && fail "the wrong frame passes"
    grep -q 'frame 0 is not that of the file' planted.out || fail "the wrong frame fails otherwise: $(cat planted.out)"
fi
echo "$language: frames are those of the file which comes back"
