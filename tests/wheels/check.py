"""check.py WHEEL MACHINE GLIBC: what is in a wheel, what its libraries need, how they are hardened, whose licences it has.

It reads ELF files itself, so that wheels of all machines are read on each. `check.py --self-test WHEEL MACHINE GLIBC` plants faults in one."""

import re
import struct
import sys
import tempfile
import zipfile
from pathlib import Path

NEEDED = ["tessera/__init__.py", "tessera/py.typed", "tessera/dask.py", "tessera/adapters/napari.yaml", "tessera/lib/libtessera.so",
          "tessera/lib/tessera/tessera-dicom.so"]
LICENCES = {"LICENSE": "MIT", "xxhash.txt": "BSD-2-Clause", "zstd.txt": "BSD-3-Clause", "libsodium.txt": "ISC", "openjpeg.txt": "BSD-2-Clause",
            "libjpeg-turbo.txt": "IJG AND BSD-3-Clause AND Zlib", "libcxx.txt": "Apache-2.0 WITH LLVM-exception", "zig.txt": "MIT"}
#: glibc's libraries, of all versions.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
BYTES_LIMIT = 4_000_000
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
#: How a function begins that has a canary: x86-64 reads it from the thread's head, arm64 by the name __stack_chk_guard.
CANARY = re.compile(rb"\x64\x48\x8b[\x04\x0c\x14\x1c\x34\x3c]\x25\x28\0\0\0|\x64\x4c\x8b[\x04\x0c\x14\x1c\x24\x2c\x34\x3c]\x25\x28\0\0\0")
#: The first byte of AVX-512's instructions, and the three bytes with which AVX2's most often begin.
EVEX, VEX = re.compile(rb"\x62[\xf1-\xf3\x61-\x63\x71-\x73\xe1-\xe3]"), re.compile(rb"\xc4[\xe1-\xe3\xc1-\xc3]|\xc5[\xf0-\xff]")
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 0x6474E551, 0x6474E552
DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_RPATH, DT_RUNPATH, DT_TEXTREL, DT_FLAGS, DT_VERNEED = 1, 5, 6, 15, 29, 22, 30, 0x6FFFFFFE
DF_TEXTREL, DF_BIND_NOW = 4, 8


def check(is_good: bool, text: str) -> None:
    if not is_good:
        raise SystemExit(f"FAIL {text}")


class Elf:
    """A shared library of 64 bits, little-endian: its segments, and what its dynamic section says."""

    def __init__(self, data: bytes) -> None:
        check(data[:6] == b"\x7fELF\x02\x01", "it is no ELF file of 64 bits")
        self.data = data
        self.machine = struct.unpack_from("<H", data, 18)[0]
        start, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
        self.segments = [struct.unpack_from("<IIQQQQQQ", data, start + i * size) for i in range(count)]
        dynamic = next(s for s in self.segments if s[0] == PT_DYNAMIC)
        self.entries = [struct.unpack_from("<qQ", data, dynamic[2] + i) for i in range(0, dynamic[5], 16)]
        self.strings = self.place(self.tag(DT_STRTAB)[0])

    def tag(self, tag: int) -> list:
        return [value for found, value in self.entries if found == tag]

    def place(self, address: int) -> int:
        segment = next(s for s in self.segments if s[0] == PT_LOAD and s[3] <= address < s[3] + s[6])
        return address - segment[3] + segment[2]

    def text(self, offset: int) -> str:
        start = self.strings + offset
        return self.data[start : self.data.index(b"\0", start)].decode()

    def needed(self) -> set:
        return {self.text(value) for value in self.tag(DT_NEEDED)}

    def versions(self) -> set:
        """The versions of symbols that it wants."""
        found, at = set(), self.place(self.tag(DT_VERNEED)[0])
        while True:
            _, count, _, aux, step = struct.unpack_from("<HHIII", self.data, at)
            place = at + aux
            for _ in range(count):
                _, _, _, name, following = struct.unpack_from("<IHHII", self.data, place)
                found.add(self.text(name))
                place += following
            if not step:
                return found
            at += step

    def symbols(self) -> tuple:
        """Names that it defines, and names that it wants. The table of symbols ends where that of strings begins."""
        defined, wanted = set(), set()
        for at in range(self.place(self.tag(DT_SYMTAB)[0]) + 24, self.symbols_end(), 24):
            name, _, _, section = struct.unpack_from("<IBBH", self.data, at)
            (defined if section else wanted).add(self.text(name))
        return defined, wanted

    def symbols_end(self) -> int:
        """From the header of the section of dynamic symbols, the one of type 11."""
        start, size, count = struct.unpack_from("<Q", self.data, 40)[0], *struct.unpack_from("<HH", self.data, 58)
        for i in range(count):
            kind, offset, length = struct.unpack_from("<4xI16xQQ", self.data, start + i * size)
            if kind == 11:
                return int(offset + length)
        raise SystemExit("FAIL it has no dynamic symbols")

    def code(self) -> bytes:
        return b"".join(self.data[s[2] : s[2] + s[5]] for s in self.segments if s[0] == PT_LOAD and s[1] & 1)


def check_library(name: str, elf: Elf, machine: str, glibc: str) -> None:
    check(elf.machine == ELF_MACHINES[machine], f"{name} is of machine {elf.machine}")
    check(elf.needed() <= SYSTEM, f"{name} needs {sorted(elf.needed() - SYSTEM)}")
    for version in elf.versions():
        number = re.fullmatch(r"GLIBC_([0-9.]+)", version)
        check(number is not None and [int(n) for n in number[1].split(".")] <= [int(n) for n in glibc.split(".")],
              f"{name} wants symbols of {version}")
    defined, wanted = elf.symbols()
    ours = re.compile(r"tsr_\w+|TESSERA_\d+")
    check(all(ours.fullmatch(symbol) for symbol in defined), f"{name} exports {sorted(s for s in defined if not ours.fullmatch(s))}")
    check(bool(defined), f"{name} exports nothing")
    # Hardening: tables that are read-only from the start, a stack that is not run, no writing of code, canaries, checked calls.
    check(any(s[0] == PT_GNU_RELRO for s in elf.segments), f"{name} has no RELRO")
    flags = sum(elf.tag(DT_FLAGS))
    check(bool(flags & DF_BIND_NOW), f"{name} binds late")
    check(not any(s[1] & 1 for s in elf.segments if s[0] == PT_GNU_STACK) and any(s[0] == PT_GNU_STACK for s in elf.segments),
          f"{name} has a stack that can be run")
    check(not any(s[1] & 3 == 3 for s in elf.segments if s[0] == PT_LOAD), f"{name} has code that can be written")
    check(not elf.tag(DT_TEXTREL) and not flags & DF_TEXTREL, f"{name} relocates its code")
    check(not elf.tag(DT_RPATH) and not elf.tag(DT_RUNPATH), f"{name} has a path of libraries")
    guarded = len(CANARY.findall(elf.code())) if machine == "x86_64" else 100 * ("__stack_chk_guard" in wanted)
    check(guarded >= 100, f"{name} has {guarded} functions with a canary")
    if name.endswith("libtessera.so"):
        for symbol in ("memcpy", "memset", "memmove"):  # OpenJPEG, in the module, asks for others of zig's functions
            check(symbol in wanted, f"{name} has a {symbol} of its own, which is slow")
        check(b", libsodium " in elf.data, f"{name} cannot encrypt")
        check(any(symbol.endswith("_chk") and symbol != "__stack_chk_fail" for symbol in wanted), f"{name} has no checked calls")
        if machine == "x86_64":
            forms = {"AVX-512": len(EVEX.findall(elf.code())), "AVX2": len(VEX.findall(elf.code()))}
            check(min(forms.values()) > 3000, f"{name} lacks vector forms: {forms}")


def check_licences(archive: zipfile.ZipFile) -> None:
    """A licence of each library in it, by its SPDX identifier, and all of them in the metadata."""
    texts = {Path(name).name: archive.read(name).decode() for name in archive.namelist()
             if "/licenses/" in name and not name.endswith("/")}
    check(set(texts) == set(LICENCES), f"its licences are those of {sorted(texts)}")
    for name, identifier in LICENCES.items():
        check(name == "LICENSE" or f"SPDX-License-Identifier: {identifier}\n" in texts[name], f"{name} is not {identifier}")
    metadata = archive.read(next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))).decode()
    said = re.search(r"^License-Expression: (.*)$", metadata, re.M)
    check(said is not None and set(said[1].split(" AND ")) == set(" AND ".join(LICENCES.values()).split(" AND ")),
          f"its metadata say {said and said[1]}")
    check("Requires-Python: >=3.9\n" in metadata, "it is not for Python 3.9")


def check_parts(archive: zipfile.ZipFile) -> None:
    """The list of parts (SBOM): it has the same licences, and each library is inside."""
    names = [name for name in archive.namelist() if name.endswith(".dist-info/sboms/sbom.spdx")]
    check(len(names) == 1, "it has no list of parts")
    text = archive.read(names[0]).decode()
    whole, *parts = re.findall(r"^PackageLicenseDeclared: (.*)$", text, re.M)
    check(set(parts) == set(LICENCES.values()), f"its list of parts has the licences {sorted(set(parts))}")
    check(set(whole.split(" AND ")) == set(" AND ".join(LICENCES.values()).split(" AND ")), f"its list of parts says {whole}")
    check("DYNAMIC_LINK" not in text, "its list of parts names a library of the system")


def check_wheel(path: Path, machine: str, glibc: str) -> None:
    tag = f"manylinux_{glibc.replace('.', '_')}_{machine}"
    check(re.fullmatch(rf"tessera_codec-[0-9.]+-py3-none-{tag}\.whl", path.name) is not None, f"its name is {path.name}")
    check(path.stat().st_size <= BYTES_LIMIT, f"it has {path.stat().st_size} bytes")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        for needed in NEEDED:
            check(needed in names, f"{needed} is missing")
        for name in names:
            check(not re.search(r"\.(c|h|o|a|pyc)$|^tests?/|\.libs/", name), f"{name} does not belong here")
            if ".so" in Path(name).name:
                check_library(name, Elf(archive.read(name)), machine, glibc)
        wheel = archive.read(next(name for name in names if name.endswith(".dist-info/WHEEL"))).decode()
        check(f"Tag: py3-none-{tag}\n" in wheel, wheel)
        check_licences(archive)
        check_parts(archive)
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {len(names)} files, glibc {glibc} and nothing else")


#: Changes of a wheel, each of which has to be seen: a file, what becomes what in its bytes.
FAULTS = [
    ("a library of the system", "libtessera.so", b"libm.so.6\0", b"libz.so.1\0"),
    ("a later glibc", "libtessera.so", b"GLIBC_2.28\0", b"GLIBC_2.29\0"),
    ("a foreign symbol", "libtessera.so", b"\0tsr_version\0", b"\0tsx_version\0"),
    ("no canaries", "tessera-dicom.so", b"\x25\x28\0\0\0", b"\x25\x30\0\0\0"),
    ("no checked calls", "libtessera.so", b"_chk\0", b"_chj\0"),
    ("a slow memcpy", "libtessera.so", b"\0memcpy\0", b"\0memcpu\0"),
    ("late binding", "tessera-dicom.so", struct.pack("<QQ", DT_FLAGS, DF_BIND_NOW), struct.pack("<QQ", DT_FLAGS, 0)),
    ("no RELRO", "tessera-dicom.so", struct.pack("<I", PT_GNU_RELRO), struct.pack("<I", 0x6474E559)),
    ("a stack that can be run", "tessera-dicom.so", struct.pack("<II", PT_GNU_STACK, 6), struct.pack("<II", PT_GNU_STACK, 7)),
    ("another machine's", "tessera-dicom.so", struct.pack("<HH", 3, 62), struct.pack("<HH", 3, 183)),
    ("no encryption", "libtessera.so", b", libsodium ", b", libsodiom "),
    ("a licence less", "zstd.txt", b"BSD-3-Clause\n", b"BSD-9-Clause\n"),
    ("a part that is not inside", "sbom.spdx", b"STATIC_LINK SPDXRef-zstd", b"DYNAMIC_LINK SPDXRef-zstd"),
    ("a part's other licence", "sbom.spdx", b"BSD-2-Clause\n", b"BSD-9-Clause\n"),
    ("a later Python", "METADATA", b"Requires-Python: >=3.9\n", b"Requires-Python: >=3.8\n"),
    ("another tag", "WHEEL", b"manylinux_2_28", b"manylinux_2_29"),
]


def self_test(path: Path, machine: str, glibc: str) -> None:
    """x86-64's wheel with a fault at a time."""
    for name, file, old, new in FAULTS:
        with tempfile.TemporaryDirectory(prefix="tessera-wheel-") as folder, zipfile.ZipFile(path) as archive:
            made = Path(folder) / path.name
            found = 0
            with zipfile.ZipFile(made, "w") as changed:
                for entry in archive.namelist():
                    data = archive.read(entry)
                    found += data.count(old) if Path(entry).name == file else 0
                    changed.writestr(entry, data.replace(old, new) if Path(entry).name == file else data, zipfile.ZIP_DEFLATED)
            check(found > 0, f"{name}: {file} has no such bytes")
            try:
                check_wheel(made, machine, glibc)
            except SystemExit as seen:
                print(f"seen: {name}: {str(seen)[5:105]}")
                continue
            raise SystemExit(f"FAIL not seen: {name}")


if __name__ == "__main__":
    if sys.argv[1] == "--self-test":
        self_test(Path(sys.argv[2]), *sys.argv[3:5])
    else:
        check_wheel(Path(sys.argv[1]), *sys.argv[2:4])
