"""numpydoc's validator over every public function, class, method and property."""

import importlib
import inspect
import unittest

try:
    from numpydoc.validate import validate
except ImportError:
    raise unittest.SkipTest("numpydoc is not installed") from None

MODULES = ("tessera", "tessera.dask", "tessera.zarr", "tessera.numcodecs", "tessera.adapters.nibabel", "tessera.adapters.xarray",
           "tessera.adapters.webdataset", "tessera.adapters.pydicom", "tessera.adapters.napari")
#: See-also sections, examples and longer texts where there is something to say; a summary says what a function does
#: ("Makes"), not what to do.
NOT_ASKED = {"SA01", "EX01", "ES01", "SS05"}


def public_names() -> dict[str, bool]:
    """Each name, and whether it is a class."""
    names = {}
    for module in map(importlib.import_module, MODULES):
        for name in getattr(module, "__all__", [name for name in vars(module) if name[0] != "_"]):
            item = getattr(module, name)
            if not getattr(item, "__module__", "").startswith("tessera"):
                continue
            if inspect.isclass(item):
                members = [key for key, value in vars(item).items() if key[0] != "_" and
                           (inspect.isfunction(value) or isinstance(value, (property, classmethod, staticmethod)))]
                names.update({f"{module.__name__}.{name}.{key}": False for key in members})
            if inspect.isclass(item) or inspect.isfunction(item):
                names[f"{module.__name__}.{name}"] = inspect.isclass(item)
    return names


class DocstringTest(unittest.TestCase):
    def test_all_say_parameters_results_and_errors(self) -> None:
        try:
            names = public_names()
        except ImportError as missing:
            self.skipTest(f"{missing.name} is not installed")
        self.assertGreater(len(names), 50)
        errors = []
        for name, is_class in names.items():
            # Most classes are results: they have typed fields, and no parameters.
            ignored = NOT_ASKED | ({"PR01"} if is_class else set())
            errors += [f"{name}: {code} {text}" for code, text in validate(name)["errors"] if code not in ignored]
        self.assertEqual(errors, [])
