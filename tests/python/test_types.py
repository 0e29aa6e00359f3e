"""What a type checker knows of the package: options that are misspelt are found, and reading gives arrays."""

import importlib.util
import os
import subprocess
import sys
import typing
import unittest
from dataclasses import fields
from pathlib import Path

import tessera
from data import Case
from tessera._files import OptionFields

#: Lines with an expected error have its code in a comment.
PROGRAM = """
import io
import numpy as np
import numpy.typing as npt
import tessera
import tessera.dask
from typing import Any, assert_type

Array = np.ndarray[Any, np.dtype[Any]]
array = np.zeros((2, 3), np.uint16)

with tessera.open("x.tsr") as reader:
    assert_type(reader[0], Array)
    assert_type(reader[np.int64(0)], Array)
    assert_type(reader[1:], Array)
    assert_type(reader[...], Array)
    assert_type(reader[0, 1:5, ...], Array)
    assert_type(reader["name"], tessera.Member)
    assert_type(reader["name"][0, 2:4], Array)
    assert_type(reader.members[0][0], Array)
    reader[0].nonsense()  # attr-defined
    reader[1.5]  # call-overload
    reader["name"]["other"]  # index

tessera.compress(array, 9)
tessera.compress(array, effort=3, bits=12, max_error=2)
tessera.compress(array, psnr=45.0, path="transform", coder="rans", verify="none", allow_lossy=True)
tessera.compress(array, efort=3)  # call-arg
tessera.compress(array, psn=45)  # call-arg
tessera.compress(array, psnr="45")  # arg-type
tessera.compress(array, path="predit")  # arg-type
tessera.compress(array, coder="huffmann")  # arg-type
tessera.compress(array, verify="gpu")  # arg-type
tessera.compress_file("a", "b", 5, qp=20, overwrite=True)
tessera.compress_file("a", "b", max_eror=3)  # call-arg
tessera.compress_set(["a"], "b", samples_only=True)
tessera.compress_set(["a"], "b", sample_only=True)  # call-arg
tessera.Options(effort=3, ratio=10.0)
tessera.Options(efort=3)  # call-arg


def many(client: Any) -> None:
    tessera.dask.compress_set(client, ["a"], "b", size=100)
    tessera.dask.compress_set(client, ["a"], "b", sise=100)  # call-arg


try:
    tessera.compress("missing")
except FileNotFoundError as error:
    print(error.filename)
"""


class TypesTest(Case):
    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_misspelt_options_are_found(self) -> None:
        path = self.folder / "program.py"
        path.write_text(PROGRAM)
        package = Path(tessera.__file__).parents[1]
        paths = {} if package.name == "site-packages" else {"MYPYPATH": str(package)}  # an installed package is found
        made = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context",
             "--cache-dir", str(self.folder / "cache"), "--allow-untyped-calls", str(path)],
            env={**os.environ, **paths}, cwd=self.folder, capture_output=True, text=True, check=False)
        found = set()
        for line in made.stdout.splitlines():
            if line.startswith("program.py:") and ": error: " in line:
                found.add((int(line.split(":")[1]), line[line.rindex("[") + 1 : -1]))
        wanted = {(number, line.split("  # ")[1]) for number, line in enumerate(PROGRAM.splitlines(), 1) if "  # " in line}
        self.assertEqual(found, wanted, made.stdout + made.stderr)

    @unittest.skipUnless(importlib.util.find_spec("vermin"), "vermin is not installed")
    def test_the_core_is_for_python_3_9(self) -> None:
        """By its text. tests/wheels/roots.sh runs it with Debian 11's Python. Zarr and the adapters' packages want later ones."""
        paths = [*Path(tessera.__file__).parent.glob("_*.py"), Path(tessera.__file__).parent / "dask.py"]
        made = subprocess.run(
            [sys.executable, "-c", "import vermin; vermin.main()", "--no-tips", "--violations", "-t=3.9-", "--exclude", "types.EllipsisType",  # for checkers alone
             *map(str, paths)], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stdout)

    def test_fields_are_those_of_options(self) -> None:
        names = [field.name for field in fields(tessera.Options)]
        self.assertEqual(list(typing.get_type_hints(OptionFields)), [name for name in names if name != "effort"])
