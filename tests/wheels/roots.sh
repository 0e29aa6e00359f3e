#!/bin/sh
# Installs the wheels in clean roots of Debian's releases and tries them there: x86-64 in bullseye, bookworm and trixie, arm64 in
# bookworm by qemu-user, which then runs tests of tests/python, too. Called by run.sh.
# usage: roots.sh OUT WORK BUILD    the folder of the wheels; that of run.sh, with data, expected and tools; its build folder
# What was not tried is said. Exit status 1: a wheel fails in a root.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1 work=$2 build=$3 untried= failed=
core="arrays reader images values layout key roi base"
for tool in mmdebstrap qemu-aarch64; do command -v $tool >/dev/null || { echo "not tried: $tool is missing"; exit 0; }; done
[ "$(id -u)" = 0 ] || { echo "not tried: only root can make a clean root"; exit 0; }
unset PYTHONPATH PIP_FIND_LINKS PIP_REQUIRE_VIRTUALENV

# numpy for a Python, from the registry.
fetch_numpy() { # MACHINE PYTHON
  mkdir -p "$work/numpy-$1-$2"
  platforms=
  for glibc in 2_17 2_27 2_28; do platforms="$platforms --platform manylinux_${glibc}_$1"; done
  # shellcheck disable=SC2086 # words
  "$work/tools/bin/pip" download --quiet --no-deps --only-binary :all: --python-version "$2" --platform "manylinux2014_$1" $platforms \
    -d "$work/numpy-$1-$2" numpy
}

fill() { # ROOT: what is tried
  rm -rf "$1/try"
  mkdir -p "$1/try"
  cp -r "$out"/tessera_codec-*"_$machine.whl" "$here/try.py" "$work/data" "$work/expected" "$work/numpy-$machine-$version/." "$1/try/"
}

for place in x86_64:amd64:bullseye:3.9 x86_64:amd64:bookworm:3.11 x86_64:amd64:trixie:3.13 aarch64:arm64:bookworm:3.11; do
  IFS=: read -r machine debian release version <<END
$place
END
  ls "$out"/tessera_codec-*"_$machine.whl" >/dev/null 2>&1 || { untried="$untried $machine/$release"; continue; }
  began=$(date +%s)
  root=$work/root-$machine-$release
  variant=apt
  [ "$machine" = x86_64 ] || variant=extract # nothing of it runs but Python
  if [ ! -d "$root" ]; then
    # numpy wants libstdc++.
    mmdebstrap --architectures="$debian" --variant="$variant" --include=python3,libstdc++6 "$release" "$root.part" >"$work/mmdebstrap.log" 2>&1 || {
      rm -rf "$root.part"
      untried="$untried $machine/$release"
      tail -2 "$work/mmdebstrap.log"
      continue
    }
    mv "$root.part" "$root"
  fi
  fetch_numpy "$machine" "$version" || { untried="$untried $machine/$release"; continue; }
  fill "$root"
  # By pip of this system, which judges the tags for that Python: Debian's Python alone has not all that pip needs.
  "$work/tools/bin/pip" install --quiet --no-index --find-links "$root/try" --only-binary :all: --python-version "$version" --ignore-requires-python \
    --platform "manylinux_2_28_$machine" --platform "manylinux_2_27_$machine" --platform "manylinux_2_17_$machine" \
    --platform "manylinux2014_$machine" --target "$root/try/site" tessera-codec
  if [ "$machine" = x86_64 ]; then
    chroot "$root" sh -euc 'cd /try; PYTHONPATH=site python3 try.py data expected' || failed="$failed $machine/$release"
  else
    emulated() { PYTHONPATH=$root/try/site qemu-aarch64 -L "$root" "$root/usr/bin/python$version" "$@"; }
    emulated "$root/try/try.py" "$root/try/data" "$root/try/expected" || failed="$failed $machine/$release"
    # The package's tests of arrays and readers: they start no other Python, which this machine could not run.
    for test in $core; do
      emulated "$here/../python/run.py" installed "$build/bin/tessera_testdata" "$build/bin/tessera" cc "$work/tests-$machine" "test_$test.py" ||
        failed="$failed $machine/$release/$test"
    done
  fi
  echo "$machine, $release: $(($(date +%s) - began)) s"
done
[ -z "$untried" ] || echo "not tried, since a wheel, a root or numpy is not there:$untried"
[ -z "$failed" ] || { echo "FAIL in$failed"; exit 1; }
