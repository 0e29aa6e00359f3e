#!/bin/sh
# Builds the programs of this folder against an installed library that was moved after its installation: with pkg-config
# and find_package, static and shared, from C, and one from C++. usage: test_installed.sh BUILD WORK CC FLAGS CXX README DICOM
# CXX: "" if the build has none. DICOM: 1 if the build reads DICOM.
set -u
build=$1 work=$2 cc=$3 flags=$4 cxx=$5 readme=$6 dicom=$7
here=$(cd "$(dirname "$0")" && pwd)
programs="example media sets stacks usage"
[ "$dicom" = 1 ] && programs="$programs reader changes watches" # frames of DICOM files
command -v pkg-config >/dev/null && command -v cmake >/dev/null || {
    echo "pkg-config or cmake is missing"
    exit 77
}
fail() {
    echo "FAILED: $*"
    exit 1
}
rm -rf "$work"
mkdir -p "$work/folder" || exit 2
cd "$work" || exit 2
cmake --install "$build" --prefix "$work/first" >install.log || fail "install"
mv first moved
prefix=$work/moved
pc=$(find "$prefix" -name tessera.pc)
lib=$(dirname "$(dirname "$pc")")
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
if [ -n "$flags" ]; then # a sanitizer's dlopen does not look where the program says
    LD_LIBRARY_PATH=$lib/tessera
    export LD_LIBRARY_PATH
fi
grep -rl "$work/first" "$prefix/include" "$(dirname "$pc")" "$lib/cmake" && fail "the prefix stands in a file"
printf 'P5\n60 40\n255\n' >picture.pgm
head -c 2400 /dev/zero >>picture.pgm

# Files of each kind; a library without DCMTK stores those of DICOM.
"$build/bin/tessera_testdata" data >/dev/null || fail "no data"
files="picture.pgm data/pnm/extremes_8bit.pgm data/png/formats/rgb16.png"
for name in ct/slice_01 forms/rle_rgb_frames forms/jpeg_ls forms/deflated; do files="$files data/dicom/$name.dcm"; done

# Runs a program and checks the form of its library: run PROGRAM shared|static
run() {
    name=$(basename "$1")
    case $name in
    example) argument=picture.pgm ;;
    media | changes | watches) argument=$work/folder ;;
    stacks) argument=$files ;;
    *) argument= ;;
    esac
    needs=$(ldd "$1" | grep -c libtessera)
    [ "$2" = shared ] && [ "$needs" -eq 0 ] && fail "$1 is not linked with the shared library"
    [ "$2" = static ] && [ "$needs" -ne 0 ] && fail "$1 is linked with the shared library"
    # Long ones run once. How a program was linked is seen by those that run in every form.
    case $1 in by_shared/* | */example | */media | */sets | */usage) ;; *) return ;; esac
    # shellcheck disable=SC2086 # a word or none
    "$1" $argument >"$name.out" 2>&1 || fail "$1: $(cat "$name.out")"
}

# With pkg-config. Linkers prefer shared libraries, so the static one is named by its file.
shared=$(pkg-config --libs tessera)
static=$(pkg-config --libs --static tessera | sed 's/-ltessera/-l:libtessera.a/')
mkdir by_shared by_static
for name in $programs; do
    for form in shared static; do
        [ $form = shared ] && libs="$shared -Wl,-rpath,$lib" || libs=$static
        # shellcheck disable=SC2046,SC2086 # several words
        "$cc" -std=c11 -Wall -Wextra -Werror -D_POSIX_C_SOURCE=200809L $flags "$here/$name.c" $(pkg-config --cflags tessera) \
            $libs -o "by_$form/$name" || fail "$name does not compile by pkg-config, $form"
        run "by_$form/$name" $form
    done
done
if [ -n "$cxx" ]; then
    # shellcheck disable=SC2046,SC2086
    "$cxx" -std=c++17 -Wall -Wextra -Werror $flags "$here/plus.cc" $(pkg-config --cflags tessera) $shared "-Wl,-rpath,$lib" \
        -o by_shared/plus || fail "C++ does not compile"
    run by_shared/plus shared
fi

# With find_package, in a project whose only language is C.
for form in shared static; do
    [ $form = static ] && is_static=ON || is_static=OFF
    command -v make >/dev/null || export CMAKE_GENERATOR=Ninja
    cmake -S "$here/project" -B "project_$form" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_C_FLAGS="$flags" -Dtessera_STATIC=$is_static >"project_$form.log" 2>&1 || fail "$(cat "project_$form.log")"
    cmake --build "project_$form" >"build_$form.log" 2>&1 || fail "$(cat "build_$form.log")"
    for name in $programs; do [ $name = stacks ] || run "project_$form/$name" $form; done
done

# The module for DICOM is found where it is installed: by the shared library, by programs with the static one, by tessera.
# Without it, what needs it ends with one sentence, and the rest works.
if [ "$dicom" = 1 ]; then
    coded=data/dicom/forms/rle_rgb_frames.dcm slice=data/dicom/ct/slice_01.dcm module=$lib/tessera/tessera-dicom.so
    for program in by_shared/example by_static/example project_shared/example project_static/example; do
        "./$program" $coded >coded.out 2>&1 || fail "$program: $(cat coded.out)"
    done
    if [ -x "$prefix/bin/tessera" ]; then
        "$prefix/bin/tessera" compress -q --qp 20 $slice -o lossy.tsr || fail "lossy DICOM"
        "$prefix/bin/tessera" info --dicom lossy.tsr >header.out || fail "tessera does not find the module"
        mv "$module" hidden.so
        "$prefix/bin/tessera" info --dicom lossy.tsr >coded.out 2>&1
        [ $? -eq 20 ] || fail "info --dicom without the module: $(cat coded.out)"
        [ "$(grep -c "needs Tessera's module for DICOM, which cannot be loaded: " coded.out)" -eq 1 ] &&
            [ "$(wc -l <coded.out)" -eq 1 ] || fail "without the module: $(cat coded.out)"
        "$prefix/bin/tessera" compress -q --qp 20 $slice -o again.tsr && cmp lossy.tsr again.tsr ||
            fail "lossy DICOM without the module"
        for file in picture.pgm data/png/1x1_grey1.png $slice $coded; do
            "$prefix/bin/tessera" compress -q $file -o "plain_$(basename $file).tsr" &&
                "$prefix/bin/tessera" test -q "plain_$(basename $file).tsr" || fail "$file without the module"
        done
        mv hidden.so "$module"
    fi
fi

# The shared library exports what the headers declare, and nothing else.
sed -n 's/^TSR_API [a-z0-9_ *]*[ *]\(tsr_[a-z0-9_]*\)(.*/\1/p' "$prefix/include/tessera.h" \
    "$here/../../app/tessera_cli.h" | sort >declared
nm -D --defined-only "$lib/libtessera.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >exported
diff declared exported || fail "exported symbols are not those of the headers"
# The library's page shows this example.
awk '/^```/{block = /^```c$/; next} block' "$readme" >shown.c
diff shown.c "$here/example.c" || fail "the example in app/library/README.md is not tests/api/example.c"
rm -rf "$work"
echo "all programs run"
