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
