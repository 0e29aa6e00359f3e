"""Tries an installed wheel, by the standard library and numpy alone, with Python 3.9 or later.

try.py expect DATA PROGRAM EXPECTED: what a build's program writes of some files of the synthetic set, into a folder.
try.py DATA EXPECTED: the wheel's library has to write and to restore the same bytes."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

FILES = ["dicom/ct/slice_01.dcm", "dicom/forms", "pnm", "png", "nifti"]
#: An effort and options of the library, and what the program calls them.
WAYS = [({"effort": 1}, ["-1"]), ({"effort": 5}, []), ({"effort": 7}, ["-7"]), ({"max_error": 2, "allow_lossy": True}, ["--max-error", "2", "--allow-lossy"]),
        ({"qp": 24, "allow_lossy": True}, ["--qp", "24", "--allow-lossy"])]
BYTES_LIMIT = 60_000
LOCKED = FILES[0]
KEY = bytes(range(32))


def inputs(data: Path) -> list:
    found = []
    for name in FILES:
        path = data / name
        found += [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return [path for path in found if path.stat().st_size <= BYTES_LIMIT or path.suffix == ".dcm" and "slice_01" in path.name][:24]


def name_of(data: Path, path: Path, way: int) -> str:
    return f"{'_'.join(path.relative_to(data).parts)}.{way}.tsr"


def expect(data: Path, program: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for way, (_, words) in enumerate(WAYS):
        for path in inputs(data):
            out = folder / name_of(data, path, way)
            out.unlink(missing_ok=True)
            subprocess.run([program, "compress", "-q", "--engine", "cpu", *words, path, "-o", out], check=False, stderr=subprocess.DEVNULL)
    key = folder / "key"
    key.write_bytes(KEY)
    subprocess.run([program, "compress", "-q", "-f", "--encrypt", key, data / LOCKED, "-o", folder / "locked.tsr"], check=True)


def compare(data: Path, folder: Path) -> int:
    import tessera

    count = 0
    for way, (options, _) in enumerate(WAYS):
        for path in inputs(data):
            expected = folder / name_of(data, path, way)
            try:
                made = tessera.compress(path, **options)
            except tessera.TesseraError as error:
                assert not expected.exists(), f"{path}, {options}: {error}"
                continue
            assert made == expected.read_bytes(), f"{path}, {options}: other bytes than the build's program writes"
            if way < 3:
                assert tessera.decompress(made) == path.read_bytes(), path
            count += 1
    return count


def try_key(data: Path, folder: Path) -> None:
    """A salt is random, so encrypted files are compared by what comes back: of the program's, and of the library's own."""
    import tessera

    plain, key = (data / LOCKED).read_bytes(), tessera.Key(KEY)
    for locked in ((folder / "locked.tsr").read_bytes(), tessera.compress(data / LOCKED, key=key)):
        assert tessera.decompress(locked, key=key) == plain, "an encrypted file comes back changed"
        try:
            tessera.decompress(locked)
        except tessera.TesseraError as error:
            assert error.status == tessera.Status.KEY, error
        else:
            raise AssertionError("an encrypted file is read without its key")


def try_package() -> None:
    import numpy as np
    import tessera

    for array in (np.arange(6000, dtype=np.uint16).reshape(60, 100), np.arange(24, dtype=np.int16).reshape(2, 3, 4),
                  np.arange(6000).reshape(3, 40, 50) % 3 == 0):
        with tessera.open(tessera.compress(array)) as reader:
            back = np.asarray(reader)
            assert (back.shape, back.dtype) == (array.shape, array.dtype) and (back == array).all()
            again = pickle.loads(pickle.dumps(reader))
            assert (again[0] == array[0]).all() and "PNG" not in repr(again) and "<img" in again._repr_html_()
    child = os.fork()
    if not child:
        os._exit(not (again[-1] == array[-1]).all())
    assert os.waitpid(child, 0)[1] == 0, "a reader cannot be used after a fork"


def main() -> None:
    if sys.argv[1] == "expect":
        expect(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
        return
    import numpy
    import tessera

    try_package()
    try_key(Path(sys.argv[1]), Path(sys.argv[2]))
    count = compare(Path(sys.argv[1]), Path(sys.argv[2]))
    assert count >= 30, count
    print(f"Python {sys.version.split()[0]}, numpy {numpy.__version__}, {os.uname().machine}, {os.environ.get('TESSERA_ISA', 'best ISA')}: "
          f"{count} files of the same bytes; {Path(tessera.__file__).parent}")


main()
