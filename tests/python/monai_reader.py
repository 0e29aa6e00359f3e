"""The reader for MONAI beside MONAI's own readers. By hand or by night: MONAI and what it needs have gigabytes.

python3 -m pip install monai nibabel pydicom; python3 tests/python/monai_reader.py LIBRARY TESTDATA PROGRAM
LIBRARY: libtessera.so of a build, or "installed"; TESTDATA and PROGRAM: tessera_testdata and
tessera of a build. Exit status 77: MONAI is missing."""

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> int:
    if not importlib.util.find_spec("monai"):
        print("skipped: monai is not installed")
        return 77
    if sys.argv[1] != "installed":
        os.environ["TESSERA_LIBRARY"] = os.path.abspath(sys.argv[1])
        sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "app" / "python"))
    import numpy as np
    import tessera
    from monai.transforms import LoadImage
    from tessera.adapters.monai import TesseraReader

    def compare(wanted, got) -> None:
        np.testing.assert_array_equal(wanted, got)
        np.testing.assert_array_equal(wanted.affine, got.affine)
        differ = {key for key in wanted.meta if str(wanted.meta[key]) != str(got.meta.get(key))} - {"filename_or_obj"}
        assert not differ, differ

    count = 0
    with tempfile.TemporaryDirectory(prefix="tessera-monai-") as name:
        folder = Path(name)
        subprocess.run([sys.argv[2], folder], check=True, stdout=subprocess.DEVNULL)
        slices = sorted((folder / "dicom" / "ct").glob("*.dcm"))
        for reader, paths in (("NibabelReader", sorted((folder / "nifti").glob("*.nii*"))), ("PydicomReader", slices)):
            for path in paths:
                try:
                    wanted = LoadImage(reader=reader)(path)
                except Exception as error:
                    print(f"{path.name}: not read by MONAI itself: {str(error).splitlines()[-1][:90]}")
                    continue
                tessera.compress_file(path, f"{path}.tsr")
                compare(wanted, LoadImage(reader=TesseraReader())(f"{path}.tsr"))
                count += 1
        load = LoadImage(reader=TesseraReader())
        compare(LoadImage(reader="PydicomReader")([slices[0]] * 2), load([f"{slices[0]}.tsr"] * 2))  # two channels
        subprocess.run([sys.argv[3], "compress", "-q", "--series", folder / "series.tsr", *slices], check=True)
        compare(LoadImage(reader="PydicomReader")(slices[0].parent), load(folder / "series.tsr"))
        values = np.arange(5 * 60 * 40, dtype=np.uint16).reshape(5, 60, 40)
        tessera.compress_file(values, folder / "a.tsr")
        np.testing.assert_array_equal(load(folder / "a.tsr"), values.transpose(2, 1, 0))
        tessera.compress_file(values[0], folder / "b.tsr")
        np.testing.assert_array_equal(load(folder / "b.tsr"), values[0].T)
    print(f"{count} files as by MONAI's own readers")
    return 0 if count >= 5 else 1


if __name__ == "__main__":
    sys.exit(main())
