#!/bin/sh
# Installs the missing Debian or Ubuntu packages that building and testing need, and builds.
# usage: prepare.sh [BUILD [PACKAGE...]]    the build folder, default "build"; more packages to install
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
[ $# -eq 0 ] || shift

packages="gcc g++ cmake ninja-build pkg-config libxxhash-dev libzstd-dev zlib1g-dev libpng-dev libdcmtk-dev
libcjson-dev libssl-dev libjpeg-dev libcharls-dev libcmocka-dev $*"
missing=
if command -v dpkg-query >/dev/null; then
  for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
  done
else
  echo "This is no Debian or Ubuntu: the packages' counterparts must be there already." >&2
fi
if [ -n "$missing" ]; then
  echo "Installing:$missing"
  as_root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "Not root and no sudo: please install$missing" >&2; exit 1; }
    as_root=sudo
  fi
  log=$(mktemp)
  # shellcheck disable=SC2086 # the lists are words
  if ! { $as_root apt-get update && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    exit 1
  fi
  rm -f "$log"
fi

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release
ninja -C "$build"
