#!/bin/sh
# Makes the Debian packages tessera, libtessera2 and libtessera-dev; with TSR_ORTHANC=on, orthanc-tessera. usage: make.sh [BUILD]
# BUILD: the build folder, default "build-packages"; the packages are in BUILD/deb. TSR_CUDA=on adds the engine for GPUs;
# SOURCE_DATE_EPOCH sets the date.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build-packages}
command -v dpkg-buildflags >/dev/null || { echo "dpkg-dev is missing" >&2; exit 77; }
# dpkg-deb takes it for the times of files: the same sources and tools give the same packages.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH
flags() { DEB_BUILD_MAINT_OPTIONS=hardening=+bindnow dpkg-buildflags --get "$1"; }
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
    -DCMAKE_INSTALL_LIBEXECDIR=libexec/tessera -DTSR_SHARED_PROGRAM=ON \
    -DBUILD_TESTING=OFF -DTSR_BUILD_BENCH=OFF -DTSR_BUILD_TESTDATA=OFF -DTSR_REQUIRE_ALL=ON -DTSR_CUDA="${TSR_CUDA:-off}" \
    -DTSR_ORTHANC="${TSR_ORTHANC:-off}" \
    -DCMAKE_C_FLAGS="$(flags CFLAGS) $(flags CPPFLAGS)" -DCMAKE_CXX_FLAGS="$(flags CXXFLAGS) $(flags CPPFLAGS)" \
    -DCMAKE_EXE_LINKER_FLAGS="$(flags LDFLAGS)" -DCMAKE_SHARED_LINKER_FLAGS="$(flags LDFLAGS)" \
    -DCMAKE_MODULE_LINKER_FLAGS="$(flags LDFLAGS)"
cmake --build "$build"
rm -rf "$build/deb"
(umask 022 && cd "$build" && cpack -G DEB -B deb)
rm -rf "$build/deb/_CPack_Packages"
