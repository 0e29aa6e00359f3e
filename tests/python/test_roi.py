"""Regions that come back as they were (io/recipe/BASE.md 4): rectangles, masks and the body of an array."""

import numpy as np
import tessera
from data import Case
from tessera import Status, TesseraError


def scan() -> np.ndarray:
    rows, columns = np.mgrid[0:200, 0:240]
    noise = np.random.default_rng(6).integers(0, 200, (2, 200, 240))
    disc = (rows - 100) ** 2 + (columns - 120) ** 2 < 40**2
    return (100 + 2000 * disc + noise // (1 + 9 * ~disc)).astype(np.uint16)


class TestRoi(Case):
    def setUp(self) -> None:
        super().setUp()
        self.scan = scan()

    def open_with(self, roi: object) -> tessera.Reader:
        return tessera.open(tessera.compress(self.scan, psnr=40, roi=roi))

    def exact_map(self, reader: tessera.Reader) -> np.ndarray:
        told = np.zeros(self.scan.shape[1:], bool)
        for x, y, w, h in reader.exact:
            told[y : y + h, x : x + w] = True
        self.assertEqual(reader.info.exact.samples, told.sum())
        self.assertEqual(reader.info.exact.rectangles, len(reader.exact))
        return told

    def check(self, reader: tessera.Reader, wanted: np.ndarray) -> None:
        told, back = self.exact_map(reader), reader[:]
        self.assertTrue(told[wanted].all())
        self.assertTrue(np.array_equal(back[:, told], self.scan[:, told]))
        self.assertFalse(np.array_equal(back, self.scan))
        self.assertTrue(reader.info.lossy)
        self.assertGreaterEqual(reader.info.base_psnr_db, 40)
        self.assertLessEqual(reader.info.max_error, reader.info.base_max_error)

    def test_tiles_and_links(self) -> None:
        rows, columns = np.mgrid[0:200, 0:240]
        noise = np.random.default_rng(7).integers(0, 8, (9, 200, 240))
        stack = (rows * columns // 7 % 251 * 16 + np.random.default_rng(8).integers(0, 900, (200, 240)) + noise).astype(np.uint16)
        for options, linked, tiles in (
            ({}, True, 0),
            ({"independent": True}, False, 0),
            ({"tile_side": 64}, True, 0),
            ({"tile_side": 64, "first": (0, 0, 20, 1)}, False, 1),
        ):
            with self.subTest(options=options), tessera.open(tessera.compress(stack, effort=9, **options)) as reader:
                self.assertEqual((reader.info.linked, reader.info.first_tiles), (linked, tiles))
                self.assertTrue(np.array_equal(reader[5], stack[5]))
                self.assertTrue(np.array_equal(reader[:], stack))
                self.assertTrue(np.array_equal(reader[3, 50:70, 30:200], stack[3, 50:70, 30:200]))

    def test_rectangles(self) -> None:
        wanted = np.zeros(self.scan.shape[1:], bool)
        wanted[30:60, 20:70] = True
        with self.open_with((20, 30, 50, 30)) as reader:
            self.check(reader, wanted)
            self.assertEqual(reader.exact, [(20, 30, 50, 30)])
        wanted[190:, 230:] = True
        with self.open_with([(20, 30, 50, 30), (230, 190, 99, 99)]) as reader:
            self.check(reader, wanted)

    def test_masks_and_bodies(self) -> None:
        mask = np.tri(200, 240, -150, dtype=bool)
        with self.open_with(mask) as reader:
            self.check(reader, mask)
        with self.open_with([mask, (1, 1, 2, 2)]) as reader:
            mask[1:3, 1:3] = True
            self.check(reader, mask)
        rows, columns = np.mgrid[0:200, 0:240]
        with self.open_with("auto") as reader:
            self.check(reader, (rows - 100) ** 2 + (columns - 120) ** 2 < 36**2)
            self.assertLess(reader.info.exact.samples, 100 * 100)

    def test_base(self) -> None:
        data = tessera.compress(self.scan, qp=30, roi=(20, 30, 50, 30))
        with tessera.open(data, level="base") as base, tessera.open(tessera.compress(self.scan, qp=30)) as lossy:
            self.assertTrue(np.array_equal(base[:], lossy[:]))
            self.assertIsNone(base.info.exact)
            self.assertEqual(base.exact, [])

    def test_what_is_none(self) -> None:
        for roi in [(), "body", (1, 2, 3), [(1, 2, 3)], (0, 0, 0, 5), np.zeros(5), [np.ones((2, 2)), np.ones((2, 3))]]:
            with self.assertRaises(ValueError):
                self.open_with(roi)
        for roi in [(240, 0, 5, 5), np.ones((240, 200)), np.zeros((200, 240))]:
            with self.assertRaises(TesseraError) as raised:
                self.open_with(roi)
            self.assertEqual(raised.exception.status, Status.USAGE)
        with self.assertRaises(TesseraError):
            tessera.compress(self.scan, roi=(1, 1, 5, 5))
