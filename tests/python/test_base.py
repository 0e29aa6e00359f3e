"""Files with a base (io/recipe/BASE.md): the same array comes back, and the base alone is read."""

import io
import pickle

import numpy as np
import tessera
from data import Case, ramp
from tessera import Status, TesseraError


class Counting(io.BytesIO):
    """A file that notes which bytes are read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.ranges = []

    def _note(self, count: int) -> None:
        self.ranges.append((self.tell() - count, self.tell()))

    def read(self, count: int = -1) -> bytes:
        data = super().read(count)
        self._note(len(data))
        return data

    def readinto(self, room: bytearray) -> int:
        count = super().readinto(room)
        self._note(count)
        return count


def scan() -> np.ndarray:
    rows, columns = np.mgrid[0:300, 0:400]
    noise = np.random.default_rng(5).integers(0, 40, (2, 300, 400))
    return (1000 + rows * 3 + columns * columns // 200 + noise).astype(np.uint16)


class TestBase(Case):
    def setUp(self) -> None:
        super().setUp()
        self.scan = scan()
        self.lossy = tessera.compress(self.scan, psnr=45, effort=7)  # as the base is that stands below a rest
        self.both = tessera.compress(self.scan, psnr=45, lossless_rest=True)

    def test_both(self) -> None:
        with tessera.open(self.both) as reader, tessera.open(self.lossy) as lossy:
            self.assertTrue(np.array_equal(reader[:], self.scan))
            self.assertTrue(np.array_equal(reader[1, 10:20, 30:50], self.scan[1, 10:20, 30:50]))
            self.assertEqual(reader.info.base_bytes, len(self.lossy))
            self.assertTrue(reader.info.identical)
            self.assertEqual(lossy.info.base_bytes, 0)
            with tessera.open(self.both, level="base") as base:
                self.assertTrue(np.array_equal(base[:], lossy[:]))
                self.assertTrue(base.info.lossy)
                self.assertEqual(base.info.file_bytes, len(self.lossy))
        self.assertLess(len(self.both), len(self.lossy) + len(tessera.compress(self.scan)))
        self.assertIn(self.lossy, self.both)

    def test_reads(self) -> None:
        file = Counting(self.both)
        end = self.both.index(self.lossy) + len(self.lossy)
        with tessera.open(file, level="base") as base:
            base[0]
        for first, last in file.ranges:
            self.assertTrue(last <= end or first >= len(self.both) - 1024, f"bytes {first} to {last} of {end}")
        self.assertLess(sum(last - first for first, last in file.ranges), len(self.lossy) * 3 // 4 + 4096)

    def test_pickled(self) -> None:
        path = self.folder / "both.tsr"
        path.write_bytes(self.both)
        with tessera.open(path, level="base") as base, pickle.loads(pickle.dumps(base)) as again:
            self.assertTrue(np.array_equal(base[:], again[:]))
            self.assertTrue(again.info.lossy)

    def test_what_has_none(self) -> None:
        with self.assertRaises(TesseraError) as raised:
            tessera.open(self.lossy, level="base")
        self.assertEqual(raised.exception.status, Status.USAGE)
        with self.assertRaises(ValueError):
            tessera.open(self.both, level="rest")
        with self.assertRaises(TesseraError):
            tessera.compress(self.scan, lossless_rest=True)
        with tessera.open(tessera.compress(ramp((5, 6), np.uint32), qp=20, lossless_rest=True)) as reader:
            self.assertEqual(reader.info.base_bytes, 0)
