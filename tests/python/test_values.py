"""Arrays of floating-point numbers and of 64 bits: each bit comes back, whole, in frames and in regions."""

from __future__ import annotations

import unittest

import numpy as np

import tessera

TYPES = (np.float32, np.float64, np.int64, np.uint64)


def bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.uint8)


def volumes(dtype: type) -> list[np.ndarray]:
    """Whole numbers, multiples of a step, and any bits."""
    random = np.random.default_rng(46)
    slope = np.add.outer(np.arange(3), np.add.outer(np.arange(70), 2 * np.arange(50))) + random.integers(0, 9, (3, 70, 50))
    noise = random.integers(0, 256, (3, 70, 50 * np.dtype(dtype).itemsize), np.uint8).view(dtype)
    made = [slope.astype(dtype), (slope * 1000 + 7).astype(dtype), noise]
    if np.dtype(dtype).kind == "f":
        special = (slope / 4).astype(dtype)
        special[:, ::7, ::5] = np.nan
        special[0, 1, 1], special[1, 2, 2], special[2, 3, 3] = -0.0, np.inf, -np.inf
        made += [special, np.sqrt(slope).astype(dtype), np.full((3, 70, 50), np.nan, dtype)]
    return made


class Values(unittest.TestCase):
    def check(self, array: np.ndarray) -> None:
        data = tessera.compress(array)
        with tessera.open(data) as reader:
            self.assertEqual(reader.dtype, array.dtype.newbyteorder("="))
            self.assertEqual(reader.shape, array.shape)
            native = array.astype(reader.dtype, copy=False)
            np.testing.assert_array_equal(bits(reader[:]), bits(native))
            for k in range(array.shape[0]):
                np.testing.assert_array_equal(bits(reader[k]), bits(native[k]))
            np.testing.assert_array_equal(bits(reader[1, 5:66, 3:40]), bits(native[1, 5:66, 3:40]))

    def test_types(self) -> None:
        for dtype in TYPES:
            for array in volumes(dtype):
                self.check(array)

    def test_byte_orders(self) -> None:
        self.check(volumes(np.float32)[3].astype(">f4"))

    def test_size(self) -> None:
        whole = volumes(np.float64)[0]
        self.assertLess(len(tessera.compress(whole)), 1.03 * len(tessera.compress(whole.astype(np.int16))))

    def test_components(self) -> None:
        for dtype in TYPES:
            self.check(np.stack([volumes(dtype)[0]] * 3, axis=-1))
        self.check(np.stack([volumes(np.float32)[2]] * 3, axis=-1))
        with self.assertRaises(tessera.TesseraError):
            tessera.compress(np.stack([volumes(np.float64)[2]] * 3, axis=-1))

    def test_no_frames(self) -> None:
        for dtype in TYPES:
            with self.assertRaises(TypeError):
                tessera.encode(np.zeros((4, 4), dtype))

    def test_loss(self) -> None:
        array = volumes(np.float32)[0]
        with tessera.open(tessera.compress(array, qp=20)) as reader:
            np.testing.assert_array_equal(reader[:], array)


if __name__ == "__main__":
    unittest.main()
