"""The examples of the page and of the docstrings."""

import doctest
import importlib
import unittest

from data import ROOT


class ExampleTest(unittest.TestCase):
    def test_page(self) -> None:
        result = doctest.testfile(str(ROOT / "app" / "python" / "README.md"), module_relative=False)
        self.assertEqual(result.failed, 0)
        self.assertGreater(result.attempted, 15)

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
