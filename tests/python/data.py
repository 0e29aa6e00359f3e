"""What the tests share: the synthetic image set, and arrays."""

import os
import tempfile
import unittest
from pathlib import Path

import numpy as np

DATA = Path(os.environ["TESSERA_TEST_DATA"])
ROOT = Path(os.environ["TESSERA_TEST_ROOT"])
PROGRAM = os.environ["TESSERA_TEST_PROGRAM"]
COMPILER = os.environ["TESSERA_TEST_COMPILER"]


def files() -> list[tuple[Path, bool]]:
    """The files of the set, and whether Tessera codes them."""
    lines = (DATA / "MANIFEST").read_text().splitlines()
    return [(DATA / line.split(" ", 1)[1], line.startswith("coded")) for line in lines]


def ramp(shape, dtype=np.uint16, bits=None):
    """Smooth values with some noise, of all bits."""
    info = np.iinfo(dtype)
    low, high = info.min, info.max
    if bits is not None:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if low < 0 else (0, (1 << bits) - 1)
    count = int(np.prod(shape))
    noise = np.random.default_rng(7).integers(-2, 3, count)
    values = np.linspace(low, high, count).astype(np.int64) + noise
    return np.clip(values, low, high).astype(dtype).reshape(shape)


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory(prefix="tessera-python-")
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
