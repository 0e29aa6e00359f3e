#!/bin/sh
# Fetches libraries of a machine, by Debian's name of it, to a folder, from this system's package sources. It has its own
# lists and takes no lock, so that the system's packages stay as they are, and nothing foreign is installed.
# usage: root.sh [--alone] MACHINE FOLDER PACKAGE...    a folder that is whole is left as it is
# --alone: without what the packages need
set -eu
alone=
[ "$1" != --alone ] || { alone=1; shift; }
machine=$1 root=$2
shift 2
[ ! -f "$root/.whole" ] || exit 0
rm -rf "$root" "$root.apt"
mkdir -p "$root" "$root.apt/lists/partial" "$root.apt/cache/archives/partial"
root=$(cd "$root" && pwd)
: >"$root.apt/status"
get() {
  apt-get -o "APT::Architecture=$machine" -o "APT::Architectures=$machine" -o "Dir::State::Lists=$root.apt/lists" \
    -o "Dir::State::status=$root.apt/status" -o "Dir::Cache=$root.apt/cache" -o "APT::Sandbox::User=$(id -un)" \
    -o Debug::NoLocking=1 "$@"
}
# A list that a mirror lacks for the moment matters only if a package is then not found.
{
  get update || :
  if [ -n "$alone" ]; then
    (cd "$root.apt/cache/archives" && get download "$@")
  else
    get -y --no-install-recommends --download-only install "$@"
  fi
} >"$root.apt/log" 2>&1 || { cat "$root.apt/log" >&2; exit 1; }
for package in "$root.apt/cache/archives/"*.deb; do dpkg-deb -x "$package" "$root"; done
[ -e "$root/lib" ] || ln -s usr/lib "$root/lib"
rm -rf "$root.apt"
: >"$root/.whole"
