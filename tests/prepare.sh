#!/bin/sh
# Installs the missing Debian or Ubuntu packages that building and testing need, and builds.
# usage: prepare.sh [BUILD [PACKAGE...]]    the build folder, default "build"; more packages to install
# TSR_WERROR=ON makes warnings errors.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
[ $# -eq 0 ] || shift

packages="gcc g++ cmake ninja-build pkg-config libxxhash-dev libzstd-dev zlib1g-dev libpng-dev libdcmtk-dev
libtiff-dev libcjson-dev libssl-dev libsodium-dev libfuse3-dev libjpeg-dev libcharls-dev libcmocka-dev $*"
# Codecs that tessera compare measures besides; each is left out where this release has no such package.
rivals="libopenjp2-7-dev libopenjph-dev libjxl-dev libwebp-dev"
is_installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
# Those of the rivals that are not there and that this release has.
wanted() { for package in $rivals; do is_installed "$package" || ! apt-cache show "$package" >/dev/null 2>&1 || echo "$package"; done; }
missing=
if command -v dpkg-query >/dev/null; then
  for package in $packages; do is_installed "$package" || missing="$missing $package"; done
  [ -n "$missing" ] || missing=$(wanted | tr '\n' ' ')
else
  echo "This is no Debian or Ubuntu: the packages' counterparts must be there already." >&2
fi
if [ -n "$missing" ]; then
  as_root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "Not root and no sudo: please install$missing" >&2; exit 1; }
    as_root=sudo
  fi
  log=$(mktemp)
  $as_root apt-get update >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; exit 1; }
  missing="$missing $(wanted | tr '\n' ' ')"
  echo "Installing: $missing"
  # shellcheck disable=SC2086 # the lists are words
  if ! $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    exit 1
  fi
  rm -f "$log"
fi

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release ${TSR_WERROR:+"-DTSR_WERROR=$TSR_WERROR"}
ninja -C "$build"
