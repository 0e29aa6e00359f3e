"""wheel.py WHEEL: checks what is in a wheel that auditwheel has repaired."""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

#: Wholes and beginnings of names that have to be there.
NEEDED = ["tessera/__init__.py", "tessera/py.typed", "tessera/dask.py", "tessera/lib/libtessera.so",
          "tessera/lib/tessera/tessera-dicom", "tessera/lib/dicom.dic"]


def check(is_good: bool, text: str) -> None:
    if not is_good:
        raise SystemExit(f"FAIL {text}")


def exports(path: Path) -> str:
    return subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout


def check_licences(names: list[str]) -> None:
    """There is a licence of ours, of DCMTK for its dictionary, and one of each library that auditwheel has added."""
    texts = [Path(name).stem for name in names if "/licences/" in name]
    check(any(re.search(r"\.dist-info/(licenses/)?LICENSE$", name) for name in names), "our licence is missing")
    for name in names:
        added = re.match(r"[^/]+\.libs/lib([a-z]+)", name)
        if added and added[1] not in SYSTEM:
            stem = PACKAGES.get(added[1], added[1])
            check(any(stem in text for text in texts), f"the licence of {name} is missing: {texts}")


#: Libraries that are part of others' packages, by the beginning of the package's name.
PACKAGES = {"dcmdata": "dcmtk", "dcmjpeg": "dcmtk", "dcmjpls": "dcmtk", "dcmimgle": "dcmtk", "dcmimage": "dcmtk",
            "oflog": "dcmtk", "ofstd": "dcmtk", "oficonv": "dcmtk", "ijg": "dcmtk", "icuuc": "icu", "icudata": "icu",
            "dcmtkcharls": "dcmtk"}
#: Parts of the compiler, whose licences permit it without a text (GCC's runtime library exception).
SYSTEM = {"gcc_s", "stdc", "gomp"}


def main() -> None:
    wheel = Path(sys.argv[1])
    tags = re.fullmatch(r"tessera_codec-[0-9.]+-py3-none-(manylinux_\d+_\d+_\w+)\.whl", wheel.name)
    check(tags is not None, f"it is no py3-none-manylinux wheel: {wheel.name}")
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        print(wheel.name, f"{wheel.stat().st_size / 1e6:.1f} MB,", len(names), "files")
        for needed in NEEDED:
            check(any(name.startswith(needed) for name in names), f"{needed} is missing")
        for name in names:
            check(not re.search(r"\.(c|h|o|a|pyc)$|^tests?/", name), f"{name} does not belong here")
            if ".so" in Path(name).name:
                check(not re.search(r"cpython|abi3", name), f"{name} is a compiled extension")
                check("PyInit_" not in exports(Path(archive.extract(name, folder))), f"{name} is a compiled extension")
        check_licences(names)
        tag = archive.read(next(name for name in names if name.endswith(".dist-info/WHEEL"))).decode()
        check("Tag: py3-none-" + tags[1].split(".")[0] in tag, tag)
        dictionary = archive.read("tessera/lib/dicom.dic")
        check(b"PatientName" in dictionary and len(dictionary) > 100_000, "dicom.dic is not DCMTK's dictionary")


if __name__ == "__main__":
    main()
