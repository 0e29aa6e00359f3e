"""The examples of the page and of the docstrings."""

import doctest
import importlib
import importlib.util
import re
import unittest

import zarr_entry_points
from data import ROOT

zarr_entry_points.install()
PAGE = ROOT / "app" / "python" / "README.md"
#: Sections of the page whose examples need a package.
SECTIONS = {"nibabel": "nibabel", "xarray": "xarray", "WebDataset": "webdataset", "pydicom": "pydicom.pixels"}


def _has(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the package that a part is of
        return False


class ExampleTest(unittest.TestCase):
    def _run_page(self, *left_out: str) -> int:
        """Runs the examples but those of some sections; returns their number."""
        text = PAGE.read_text()
        for section in left_out:
            text, cuts = re.subn(rf"^### {section}\n.*?(?=^##)", "", text, flags=re.M | re.S)
            self.assertEqual(cuts, 1, section)
        runner = doctest.DocTestRunner()
        result = runner.run(doctest.DocTestParser().get_doctest(text, {}, "README.md", str(PAGE), 0))
        self.assertEqual(result.failed, 0)
        return result.attempted

    def test_page(self) -> None:
        self.assertGreater(self._run_page(*SECTIONS), 15)

    def test_other_packages(self) -> None:
        missing = [section for section, package in SECTIONS.items() if not _has(package)]
        self.assertGreaterEqual(self._run_page(*missing), self._run_page(*SECTIONS))
        if missing:
            self.skipTest(f"not installed: {', '.join(missing)}")

    def test_docstrings(self) -> None:
        for name in ("_files", "_reader"):
            result = doctest.testmod(importlib.import_module(f"tessera.{name}"))
            self.assertEqual(result.failed, 0)
            self.assertGreater(result.attempted, 2)

    def test_dask(self) -> None:
        try:
            module = importlib.import_module("tessera.dask")
        except ImportError:
            self.skipTest("dask is not installed")
        self.assertEqual(doctest.testmod(module), (0, 5))
