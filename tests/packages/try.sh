# Runs in the clean root, where /try holds the packages: installs, tries and removes them.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C HOME=/root
cd /try
fail() { echo "FAILED: $*"; exit 1; }
apt() { command apt-get -qq -y -o Dpkg::Use-Pty=0 "$@"; }
files() { find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /try -o -path /tmp -o -path /var/log -o -path /var/cache -o -path /var/lib/dpkg -o -path /var/lib/apt \) -prune -o -print | LC_ALL=C sort; }

# As the page says; the archives of what they depend on are in the cache.
apt install --no-install-recommends ./tessera_*.deb ./libtessera2_*.deb
tessera --version
tessera --version | grep -q 'DCMTK' || fail "no DICOM"
ldd /usr/bin/tessera | grep -q '/libtessera\.so\.2 ' || fail "the program is not linked with libtessera2"
ldconfig -p | grep -q 'libtessera\.so\.2 ' || fail "the cache of libraries does not know it"
tessera compress -r -o archive --report report.html --manifest sums scans
grep -q PASS report.html || fail "the report does not say PASS"
tessera verify scans archive
tessera decompress -r -o back archive
diff -r scans back
(cd scans && sha256sum --quiet -c ../sums) || fail "the manifest"
# A derived DICOM file is made by DCMTK, in the module that libtessera2 has.
dicom=$(find scans -name '*.dcm' | head -1)
[ -z "$dicom" ] || tessera compress -q --qp 20 "$dicom" -o lossy.tsr || fail "no module of DICOM"
[ ! -e /proc/self/exe ] || tessera compare -r --sample 1 scans | grep -q 'JPEG XL' || fail "compare does not find its helper"
for page in man1/tessera.1 man5/tsr.5; do [ -f /usr/share/man/$page.gz ] || fail "no $page"; done
for shell in bash-completion/completions/tessera zsh/vendor-completions/_tessera fish/vendor_completions.d/tessera.fish; do
    [ -s /usr/share/$shell ] || fail "no completion: $shell"
done

# A program, by pkg-config; and with the static library.
apt install --no-install-recommends ./libtessera-dev_*.deb gcc libc6-dev pkg-config
[ "$(zcat /usr/share/man/man3/tsr_open.3.gz)" = ".so man3/libtessera.3" ] || fail "no page of tsr_open"
# shellcheck disable=SC2046 # words
gcc -std=c11 -Wall -Werror example.c -o example $(pkg-config --cflags --libs tessera)
./example "$(find scans -name '*.dcm' -o -name '*.pgm' | head -1)"
ldd ./example | grep -q '/libtessera\.so\.2 ' || fail "the program is not linked with the shared library"

# Orthanc's plugin: Debian's configuration of Orthanc loads it, where it is installed.
if [ -f "$(ls orthanc-tessera_*.deb 2>/dev/null)" ]; then
    apt install --no-install-recommends ./orthanc-tessera_*.deb
    for file in README.md sbom.spdx copyright; do [ -s /usr/share/doc/orthanc-tessera/$file ] || fail "no $file"; done
    # The root has the machine's network, where another Orthanc may have the usual ports.
    sed -i 's/"HttpPort" *: *8042/"HttpPort" : 28042/; s/"DicomPort" *: *4242/"DicomPort" : 24242/' /etc/orthanc/*.json
    timeout 120 Orthanc /etc/orthanc >orthanc.log 2>&1 &
    server=$!
    while ! grep -q 'Orthanc has started' orthanc.log; do
        kill -0 $server || { cat orthanc.log; fail "Orthanc does not start"; }
        sleep 0.2
    done
    kill $server
    wait $server || :
    grep -q 'Tessera .* keeps files in /var/lib/orthanc' orthanc.log || { cat orthanc.log; fail "Orthanc does not load the plugin"; }
    apt purge orthanc-tessera
fi

# Nothing stays.
apt purge tessera libtessera2 libtessera-dev
stays=$(files | grep -i 'tessera\|/tsr\.5' || true)
[ -z "$stays" ] || fail "this stays: $stays"
dpkg -l | grep -i tessera && fail "dpkg knows it still"
ldconfig -p | grep libtessera && fail "the cache of libraries knows it still"
echo "installed, tried and removed"
