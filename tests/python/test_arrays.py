"""Arrays to payloads and .tsr and back; layouts of originals."""

import numpy as np
import tessera
from data import Case, ramp

SHAPES = [(1, 1), (5, 7), (3, 5, 7), (1, 9, 8), (5, 7, 3), (2, 5, 7, 3), (4, 6, 9, 4)]


class PayloadTest(Case):
    def check(self, array, **options) -> bytes:
        effort = options.pop("effort", 5)
        payload = tessera.encode(array, effort=effort, **options)
        back = tessera.decode(payload, array.shape, array.dtype, **options)
        self.assertEqual((back.dtype, back.shape), (array.dtype, array.shape))
        np.testing.assert_array_equal(back, array)
        return payload

    def test_shapes_and_types(self) -> None:
        for dtype in ("u1", "i1", "<u2", ">u2", "<i2", ">i2", "<u4", ">i4"):
            for shape in SHAPES:
                with self.subTest(dtype=dtype, shape=shape):
                    self.check(ramp(shape, dtype))

    def test_bool(self) -> None:
        for shape in [(5, 7), (3, 5, 7), (2, 5, 7, 3)]:
            self.check(ramp(shape, np.uint8) > 100)

    def test_bits(self) -> None:
        for dtype in (np.uint16, np.int16):
            self.check(ramp((40, 50), dtype, bits=12), bits=12)
        with self.assertRaisesRegex(ValueError, "do not fit 12 bits"):
            tessera.encode(np.full((4, 4), 4096, np.uint16), bits=12)
        with self.assertRaisesRegex(ValueError, "do not fit 12 bits"):
            tessera.encode(np.full((4, 4), -2049, np.int16), bits=12)
        with self.assertRaisesRegex(ValueError, "17 bits do not fit"):
            tessera.encode(np.zeros((4, 4), np.uint16), bits=17)

    def test_numbers_that_would_wrap(self) -> None:
        array = ramp((40, 50))
        payload = tessera.encode(array)
        for bits in ((1 << 32) + 12, 0, -4, 12.5):
            with self.assertRaises(ValueError):
                tessera.encode(array, bits=bits)
        with self.assertRaises(ValueError):
            tessera.encode(array, effort=(1 << 32) + 5)
        for shape in [((1 << 32) + 40, 50), (-40, -50), (40, (1 << 70) + 50)]:
            with self.assertRaises(ValueError):
                tessera.decode(payload, shape, np.uint16)
        with self.assertRaises(ValueError):
            tessera.encode(np.zeros((4, 4, 257), np.uint8), components=257)

    def test_masks(self) -> None:
        array = ramp((40, 50))
        masked = np.ma.masked_greater(array, int(array.mean()))
        for call in (tessera.encode, tessera.compress):
            with self.assertRaisesRegex(TypeError, "mask"):
                call(masked)
        self.assertEqual(tessera.encode(np.ma.array(array)), tessera.encode(array))

    def test_buffers_in_pieces(self) -> None:
        array = ramp((40, 50))
        payload = tessera.encode(array)
        apart = memoryview(bytes(byte for value in payload for byte in (value, 0)))[::2]
        np.testing.assert_array_equal(tessera.decode(apart, array.shape, array.dtype), array)
        stored = tessera.compress(array)
        self.assertEqual(tessera.decompress(memoryview(stored[::-1])[::-1]), array.tobytes())

    def test_strides(self) -> None:
        wide = ramp((40, 60))
        for array in (wide[::2, 1::3], wide.T, np.asfortranarray(wide), wide[::-1, ::-1]):
            self.check(array)

    def test_components_by_name(self) -> None:
        array = ramp((6, 50, 3), np.uint8)
        self.check(array, components=1)
        self.check(array, components=3)
        self.check(ramp((6, 50, 2), np.uint8), components=2)
        with self.assertRaisesRegex(ValueError, "does not have 4 components"):
            tessera.encode(array, components=4)

    def test_efforts(self) -> None:
        array = ramp((100, 120), bits=12)
        sizes = [len(self.check(array, bits=12, effort=effort)) for effort in range(1, 10)]
        self.assertLess(max(sizes), array.nbytes)
        for effort in (0, 10):
            with self.assertRaises(ValueError):
                tessera.encode(array, effort=effort)

    def test_what_is_not_an_image(self) -> None:
        with self.assertRaises(TypeError):
            tessera.encode(np.zeros((4, 4), np.float32))
        with self.assertRaises(TypeError):
            tessera.encode(np.zeros((4, 4), np.uint64))
        for shape in [(4,), (2, 2, 5, 5), (0, 4), (4, 0)]:
            with self.assertRaises(ValueError):
                tessera.encode(np.zeros(shape, np.uint8))

    def test_damage(self) -> None:
        payload = tessera.encode(ramp((100, 120)))
        with self.assertRaises(tessera.TesseraError) as caught:
            tessera.decode(payload[: len(payload) // 2], (100, 120), np.uint16)
        self.assertEqual(caught.exception.status, tessera.Status.CORRUPT)

    def test_padding_of_dicom(self) -> None:
        """A fragment of DICOM has an even length: one byte of 0 may follow a payload, and nothing else."""
        lengths = set()
        for shape in ((100, 120), (64, 64), (700, 1000), (2, 2), (1, 1), (50, 60, 3)):
            for dtype in (np.uint8, np.uint16, np.int16):
                array = ramp(shape, dtype)
                payload = tessera.encode(array)
                lengths.add(len(payload) % 2)
                for padded in (payload, payload + b"\0"):
                    np.testing.assert_array_equal(tessera.decode(padded, array.shape, array.dtype), array)
                for wrong in (b"\1", b"\xff", b"\0\0", b"\0\1", b"\x80\0", b"\0" * 7):
                    with self.assertRaises(tessera.TesseraError) as caught:
                        tessera.decode(payload + wrong, array.shape, array.dtype)
                    self.assertEqual(caught.exception.status, tessera.Status.CORRUPT)
        self.assertEqual(lengths, {0, 1})


class ArrayFileTest(Case):
    def test_round_trip(self) -> None:
        for dtype in ("u1", "i1", "<u2", ">u2", "<i2", "<u4"):
            for shape in [(50, 70), (3, 50, 70), (50, 70, 3), (2, 50, 70, 3), (4, 60, 30, 4)]:
                with self.subTest(dtype=dtype, shape=shape):
                    array = ramp(shape, dtype)
                    with tessera.open(tessera.compress(array)) as reader:
                        values = np.asarray(reader)
                        np.testing.assert_array_equal(values, array)
                        self.assertEqual(values.dtype, array.dtype.newbyteorder("="))

    def test_bool(self) -> None:
        array = ramp((3, 51, 71), np.uint8) > 100
        with tessera.open(tessera.compress(array)) as reader:
            np.testing.assert_array_equal(reader[:], array)
            np.testing.assert_array_equal(reader[1, 1:40, 2:7], array[1, 1:40, 2:7])

    def test_noise_stays_an_image(self) -> None:
        for shape in [(1, 1), (3, 4), (200, 300)]:
            array = np.random.default_rng(3).integers(0, 256, shape, np.uint8)
            with tessera.open(tessera.compress(array)) as reader:
                np.testing.assert_array_equal(reader[:], array)

    def test_kept_values(self) -> None:
        y, x = np.mgrid[:120, :140]
        array = (1000 + 400 * np.sin(x / 9) + 300 * np.cos(y / 7) + (x * 31 + y * 17) % 23).astype(np.int16)
        array[(x - 70) ** 2 + (y - 60) ** 2 > 55**2] = 600
        for options in ({"qp": 30}, {"max_error": 9}):
            with self.subTest(options=options):
                data = tessera.compress(array, keep=[(600, 610)], **options)
                with tessera.open(data) as reader:
                    self.assertEqual(reader.info.kept, ((600, 610),))
                    back = reader[:]
                inside, after = (array >= 600) & (array <= 610), (back >= 600) & (back <= 610)
                np.testing.assert_array_equal(inside, after)
                np.testing.assert_array_equal(array[inside], back[inside])
                self.assertTrue((array != back).any())
        for keep in ([(3, 1)], [(0, 1 << 40)], [(n, n) for n in range(0, 10, 2)]):
            with self.subTest(keep=keep), self.assertRaises(ValueError):
                tessera.compress(array, qp=30, keep=keep)

    def test_loss(self) -> None:
        array = ramp((100, 120), bits=12)
        data = tessera.compress(array, bits=12, max_error=3)
        with tessera.open(data) as reader:
            difference = np.abs(reader[:].astype(int) - array).max()
            self.assertTrue(reader.info.lossy)
        self.assertTrue(1 <= difference <= 3, difference)
        small = tessera.compress(array, bits=12, size=1000)
        self.assertTrue(0 < len(small) <= 1000)
        report = tessera.compress_file(array, self.folder / "a.tsr", bits=12, psnr=50.0)
        self.assertGreaterEqual(report.psnr_db, 50)
        with self.assertRaises(ValueError):
            tessera.compress(array, psnr=50, max_error=3)
