#!/bin/sh
# Follows README with pip alone, and with packages alone, in clean roots of Debian 12: its commands and its lines of Python are
# taken from the page. By hand: it needs a wheel (tests/wheels/run.sh), packages (tests/packages/run.sh) and their mirrors.
# usage: first_steps.sh SLICE WORK [wheel=FILE] [packages=FOLDER]    SLICE: a DICOM file; WORK: a folder of its own, which keeps
# the roots; what is not given is left out, and said so
# Exit status 77: a root cannot be had. FIRST_STEPS_README: another page than README.md, for a planted fault.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
page=${FIRST_STEPS_README:-$here/README.md}
slice=$1 wheel='' packages=''
mkdir -p "$2" && work=$(cd "$2" && pwd) || exit 2
shift 2
for word; do
    case $word in
    wheel=*) wheel=${word#*=} ;;
    packages=*) packages=${word#*=} ;;
    *) echo "what is $word?" && exit 2 ;;
    esac
done
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; exit 1; }
trap 'rm -rf "$work/root"' EXIT

# base NAME WORD...: a root of Debian 12 in $work/root, which mmdebstrap makes once with these words
base() {
    name=$1
    shift
    sh "$here/tests/packages/unpack.sh" "$work/$name.tar" "$work/root" bookworm "$@" || exit $?
    mkdir "$work/root/home/me" && cp "$slice" "$work/root/home/me/slice.dcm"
}
# inside COMMAND: in the root, which has a /proc and a network of its own
inside() {
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare -m -n sh -c 'ip link set lo up; mount -t proc proc "$1/proc" && exec chroot "$1" /bin/sh -euc "cd /home/me; $2"' sh "$work/root" "$1"
}

if [ -n "$wheel" ]; then
    began=$(date +%s)
    # What pip would fetch: the root has no network.
    [ -d "$work/fetched" ] || python3 -m pip download --quiet --only-binary :all: --python-version 3.11 --platform manylinux_2_28_x86_64 \
        --platform manylinux_2_27_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 -d "$work/fetched" numpy matplotlib ||
        { rm -rf "$work/fetched"; skip "pip has no numpy or matplotlib"; }
    base pip --variant=apt --include=python3-venv
    mkdir "$work/root/home/me/dist" && cp "$wheel" "$work/root/home/me/dist/"
    cp -r "$work/fetched" "$work/root/fetched"
    install=$(grep -o '`python3 -m venv [^`]*`' "$page" | tr -d '`')
    awk '/^```python$/ { open = 1; next } /^```$/ { open = 0 } open' "$page" >"$work/root/home/me/plot.py"
    [ -n "$install" ] && [ -s "$work/root/home/me/plot.py" ] || fail "$page has no command for pip, or no lines of Python"
    [ "$(wc -l <"$work/root/home/me/plot.py")" -le 10 ] || fail "$page has more than ten lines of Python"
    inside "export PIP_NO_INDEX=1 PIP_FIND_LINKS=/fetched; $install; py/bin/python plot.py" >"$work/pip.out" 2>&1 || fail "with pip: $(tail -5 "$work/pip.out")"
    tail -2 "$work/pip.out"
    [ "$(od -An -tx1 -N4 "$work/root/home/me/slice.png" 2>/dev/null | tr -d ' ')" = 89504e47 ] || fail "there is no plot"
    cp "$work/root/home/me/slice.png" "$work/"
    echo "with pip alone: $work/slice.png ($(($(date +%s) - began)) s)"
else
    echo "left out: with pip alone; no wheel is given"
fi

if [ -n "$packages" ]; then
    began=$(date +%s)
    ls "$packages"/orthanc-tessera_*.deb "$packages"/libtessera2_*.deb >/dev/null || fail "packages are missing"
    # The archives of what ours depend on are in the root's cache: the root has no network.
    depends=$(sh "$here/tests/packages/depends.sh" "$packages"/libtessera2_*.deb "$packages"/orthanc-tessera_*.deb | tr '\n' ' ')
    # shellcheck disable=SC2016 # the shell of the hook expands it
    base pacs --variant=apt --include=curl --skip=cleanup/apt \
        --customize-hook='chroot "$1" apt-get install -y -qq --no-install-recommends --download-only '"$depends"
    cp "$packages"/libtessera2_*.deb "$packages"/orthanc-tessera_*.deb "$work/root/home/me/"
    # A root has no systemd: Debian's other way to start a service does what it would.
    printf '#!/bin/sh\nexec "/etc/init.d/$2" "$1"\n' >"$work/root/usr/bin/systemctl"
    chmod 755 "$work/root/usr/bin/systemctl"
    sed -n 's/^| smaller files in a PACS | Orthanc: `\(apt install [^`]*\)` and `\(systemctl [^`]*\)`.*/\1\n\2/p' "$page" >"$work/pacs.commands"
    [ "$(wc -l <"$work/pacs.commands")" -eq 2 ] || fail "$page has no two commands for Orthanc"
    cat >"$work/root/home/me/try.sh" <<'TRY'
export DEBIAN_FRONTEND=noninteractive
sed -e 's/^apt install/apt-get install -y -qq --no-install-recommends/' commands >commands.sh
sh -eu commands.sh
for i in $(seq 300); do curl -sf http://127.0.0.1:8042/system >/dev/null && break; sleep 0.2; done
curl -sf http://127.0.0.1:8042/plugins | grep -q tessera || { echo "Orthanc has no plugin of Tessera: $(tail -1 /var/log/orthanc/*.log)"; exit 1; }
id=$(curl -sf --data-binary @slice.dcm http://127.0.0.1:8042/instances | sed -n 's/.*"ID" : "\([^"]*\)".*/\1/p')
curl -sf "http://127.0.0.1:8042/instances/$id/file" | cmp - slice.dcm
find /var/lib/orthanc -name '*.tsr' -size +0 | grep . || { echo "Orthanc keeps no .tsr"; exit 1; }
/etc/init.d/orthanc stop
TRY
    cp "$work/pacs.commands" "$work/root/home/me/commands"
    inside ". ./try.sh" >"$work/pacs.out" 2>&1 || fail "with a PACS: $(tail -5 "$work/pacs.out")"
    echo "with a PACS: $(grep -c . "$work/pacs.commands") commands, and Orthanc keeps $(basename "$(grep '\.tsr$' "$work/pacs.out")") and gives the same file back ($(($(date +%s) - began)) s)"
else
    echo "left out: with a PACS; no packages are given"
fi
