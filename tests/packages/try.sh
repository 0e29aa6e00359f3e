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
test_of_debian() { (cd source && sh "debian/tests/$1") || fail "debian/tests/$1"; }
test_of_debian golden
tessera compress -q -r -o archive scans
tessera verify scans archive
tessera decompress -q -r -o back archive
diff -r scans back
# A derived DICOM file is made by DCMTK, in the module that libtessera2 has.
dicom=$(find scans -name '*.dcm' | head -1)
[ -z "$dicom" ] || tessera compress -q --qp 20 "$dicom" -o lossy.tsr || fail "no module of DICOM"
[ ! -e /proc/self/exe ] || tessera compare -r --sample 1 scans | grep -q 'JPEG XL' || fail "compare does not find its helper"
for page in man1/tessera.1 man5/tsr.5; do [ -f /usr/share/man/$page.gz ] || fail "no $page"; done
for shell in bash-completion/completions/tessera zsh/vendor-completions/_tessera fish/vendor_completions.d/tessera.fish; do
    [ -s /usr/share/$shell ] || fail "no completion: $shell"
done

# Programs, by pkg-config, and the generated set.
apt install --no-install-recommends ./libtessera-dev_*.deb gcc libc6-dev libsodium-dev libxxhash-dev libzstd-dev pkg-config
zcat /usr/share/man/man3/tsr_open.3.gz | grep -q '^\.TH LIBTESSERA 3' || fail "no page of tsr_open"
test_of_debian link
test_of_debian round-trip

# Orthanc's plugin: Debian's configuration of Orthanc loads it, where it is installed.
if [ -f "$(ls orthanc-tessera_*.deb 2>/dev/null)" ]; then
    apt install --no-install-recommends ./orthanc-tessera_*.deb
    for file in README.md sbom.spdx copyright; do [ -s /usr/share/doc/orthanc-tessera/$file ] || fail "no $file"; done
    test_of_debian plugin
    apt purge orthanc-tessera
fi

# Nothing stays.
apt purge tessera libtessera2 libtessera-dev
stays=$(files | grep -i 'tessera\|/tsr\.5' || true)
[ -z "$stays" ] || fail "this stays: $stays"
dpkg -l | grep -i tessera && fail "dpkg knows it still"
ldconfig -p | grep libtessera && fail "the cache of libraries knows it still"
echo "installed, tried and removed"
