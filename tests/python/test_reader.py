"""Readers: frames, regions, headers, members, originals; and pydicom."""

import copy
import ctypes
import io
import itertools
import os
import pickle
import subprocess
import threading
import time
import unittest
import warnings

import numpy as np
import tessera
from data import DATA, PROGRAM, Case, files, ramp
from test_files import Remote
from tessera import Status, TesseraError, _dicom, _native

try:
    import pydicom
except ImportError:
    pydicom = None

CT = DATA / "dicom" / "ct" / "slice_01.dcm"


class ReaderTest(Case):
    def test_all_files(self) -> None:
        layouts, images = set(), 0
        for path, is_coded in files():
            with self.subTest(path=path.name), tessera.open(tessera.compress(path)) as reader, tessera.open(
                    path) as original:
                self.assertEqual(reader.original(), path.read_bytes())
                self.assertEqual(original.original(), path.read_bytes())
                if not is_coded or reader.info.verbatim:  # coded it would be larger
                    continue
                image = reader.image
                values = reader[:]
                self.assertEqual((values.shape, values.dtype), (reader.shape, reader.dtype))
                np.testing.assert_array_equal(original[:], values)
                rows, columns = slice(image.rows // 3, image.rows // 2 + 1), slice(image.columns // 4, None)
                np.testing.assert_array_equal(reader[-1, rows, columns], values[-1, rows, columns])
                images += 1
                layouts.add((image.bits_allocated, image.planar, image.big_endian, image.swapped, image.is_signed))
        self.assertGreater(images, 200)
        self.assertGreaterEqual({layout[0] for layout in layouts}, {1, 8, 16, 32})
        for flag in range(1, 5):
            self.assertTrue(any(layout[flag] for layout in layouts), flag)

    def test_values_are_those_of_tsr_unpack_samples(self) -> None:
        orders = set()
        unpack = ctypes.CDLL(_native._find()).tsr_unpack_samples
        for path, is_coded in files():
            if not is_coded:
                continue
            with self.subTest(path=path.name), tessera.open(path) as reader:
                image = reader.image
                if image.bits_allocated >= 32:
                    continue
                names = [field[0] for field in _native.tsr_image._fields_ if hasattr(image, field[0])]
                native = _native.tsr_image(**{name: getattr(image, name) for name in names})
                raster = np.empty(_native.library.tsr_frame_bits(ctypes.byref(native)) // 8 + 1, np.uint8)
                reader._call(_native.library.tsr_read_frame, 0, raster.ctypes.data, raster.size, 0)
                samples = np.empty(reader[0].shape, np.uint16)
                error = _native.tsr_error()
                self.assertEqual(unpack(ctypes.byref(native), ctypes.c_void_p(raster.ctypes.data),
                                        ctypes.c_void_p(samples.ctypes.data), ctypes.byref(error)), 0)
                raised = 1 << image.bits_stored - 1 if image.is_signed else 0
                np.testing.assert_array_equal(reader[0].astype(np.int64) + raised, samples)
                orders.add((image.bits_allocated, image.big_endian, image.swapped, image.is_signed, image.planar))
        self.assertGreater(len(orders), 8)

    def test_32_bits(self) -> None:
        for path, is_coded in files():
            if not is_coded or path.suffix != ".dcm":
                continue
            with tessera.open(path) as reader:
                image = reader.image
                if image.bits_allocated != 32 or image.frames != 1:
                    continue
                kind = "f" if image.is_float else "i" if image.is_signed else "u"
                words = np.dtype(f"{'>' if image.big_endian else '<'}{kind}4")
                count = reader[0].size
                start = len(reader.header.bytes)
                np.testing.assert_array_equal(
                    reader[0], np.frombuffer(reader.original(), words, count, start).reshape(reader[0].shape))

    def test_keys(self) -> None:
        for shape in [(3, 20, 30), (3, 20, 30, 3)]:
            array = ramp(shape)
            with tessera.open(tessera.compress(array)) as reader:
                axes = [0, -1, slice(None), slice(1, 3), slice(None, None, -1), slice(2, 2), slice(-2, None, 2)]
                for key in itertools.product(axes, repeat=3):
                    np.testing.assert_array_equal(reader[key], array[key], str(key))
                for key in [(..., 2), (0, ...), ..., (1, ..., 0, 1), (2, 3, slice(None, None, -7)), ()]:
                    np.testing.assert_array_equal(reader[key], array[key], str(key))
                self.assertEqual((len(reader), reader.frames, reader.ndim), (3, 3, len(shape)))
                np.testing.assert_array_equal(list(reader), array)
                for key in [3, -4, (0, 20), (0, 0, 0, 0, 0), (..., ...)]:
                    with self.assertRaises(IndexError):
                        reader[key]
                with self.assertRaises(TypeError):
                    reader[0.5]

    def test_region_reads_what_it_touches(self) -> None:
        data = tessera.compress(np.random.default_rng(1).integers(0, 4096, (2, 1000, 1000), np.uint16), 1, bits=12)
        file = Remote(data)
        with tessera.open(file) as reader:
            opened = file.read_bytes
            part = reader[1, 500:510, 20:30]
            touched = file.read_bytes - opened
            np.testing.assert_array_equal(part, reader[1][500:510, 20:30])
        self.assertLess(opened, 50_000)
        self.assertLess(touched, len(data) // 10)
        self.assertGreater(touched, 0)

    def test_values_of_stored_bits(self) -> None:
        with tessera.open(DATA / "dicom" / "samples" / "high_bit_15.dcm") as reader:
            self.assertEqual((reader.image.bits_stored, reader.image.high_bit), (12, 15))
            words = np.frombuffer(reader.original()[-reader[0].nbytes :], "<u2").reshape(reader.shape)
            np.testing.assert_array_equal(reader[:], words >> 4)

    def test_header(self) -> None:
        with tessera.open(tessera.compress(CT)) as reader:
            header = reader.header
            self.assertEqual((header.kind, header.big_endian), ("dicom", False))
            self.assertTrue(CT.read_bytes().startswith(header.bytes))
            rows = header.find(0x00280010)
            self.assertEqual((rows.vr, int.from_bytes(rows.value, "little")), ("US", reader.image.rows))
            self.assertIsNone(header.find(0x7FE00010))
            self.assertIs(header[0], list(header)[0])

    def test_original_by_range(self) -> None:
        data = CT.read_bytes()
        with tessera.open(tessera.compress(CT)) as reader, reader.open_original() as file:
            for offset, count in [(0, 10), (len(data) - 5, 100), (3000, 5000), (len(data), 1)]:
                file.seek(offset)
                self.assertEqual(file.read(count), data[offset : offset + count])
            file.seek(-7, io.SEEK_END)
            self.assertEqual(file.read(), data[-7:])

    def test_no_image(self) -> None:
        with tessera.open(tessera.compress(b"a text"), ) as reader:
            self.assertTrue(reader.info.verbatim)
            self.assertEqual(reader.info.way, "stored")
            with self.assertRaises(TesseraError) as caught:
                reader.image
            self.assertEqual(caught.exception.status, Status.USAGE)

    def test_way(self) -> None:
        packed = DATA / "packed" / "digits.gz"  # by its stream: without an image
        for data, way, verbatim in ((CT, "coded", False), (packed, "coded", True), (b"a text", "stored", True)):
            with tessera.open(tessera.compress(data)) as reader:
                self.assertEqual((reader.info.way, reader.info.verbatim), (way, verbatim))
        with tessera.open(CT) as reader:
            self.assertEqual(reader.info.way, "")

    def test_closed(self) -> None:
        with tessera.open(tessera.compress(CT)) as reader:
            member = reader.members[0]
        for use in (lambda: reader[0], lambda: member.info, reader.original):
            with self.assertRaisesRegex(ValueError, "the reader is closed"):
                use()
        reader.close()

    def test_file_object_may_close(self) -> None:
        with open(CT, "rb") as file:
            reader = tessera.open(file)
        self.assertEqual(reader.original(), CT.read_bytes())
        reader.close()

    def test_series(self) -> None:
        out = self.folder / "series.tsr"
        paths = sorted(CT.parent.glob("*.dcm"))
        subprocess.run([PROGRAM, "compress", "-r", "--series", out, CT.parent], check=True, capture_output=True)
        with tessera.open(out) as reader:
            self.assertTrue(reader.is_series)
            self.assertEqual(len(reader.members), len(paths))
            for member in reader.members:
                path = CT.parent / member.name.split("/")[-1]
                self.assertEqual(member.original(), path.read_bytes())
                with tessera.open(path) as original:
                    np.testing.assert_array_equal(member[0], original[0])
                self.assertIs(reader[member.name], member)
                self.assertEqual(member.test().bytes_in > 0, True)
            back = self.folder / "back.dcm"
            reader.members[1].restore_file(back)
            self.assertEqual(back.read_bytes(), reader.members[1].original())
            with self.assertRaises(TesseraError) as caught:
                reader[0]
            self.assertEqual((caught.exception.status, caught.exception.path), (Status.USAGE, str(out)))
            with self.assertRaises(KeyError):
                reader["missing"]
        with self.assertRaises(TesseraError) as caught:
            tessera.decompress(out)
        self.assertEqual(caught.exception.status, Status.USAGE)

    def test_lost_members(self) -> None:
        """Members whose names are lost are members, and no name is taken for one that there never was."""
        for name in "abcd":
            (self.folder / name).write_bytes(np.random.default_rng(ord(name)).bytes(3000))
        out = self.folder / "series.tsr"
        subprocess.run([PROGRAM, "compress", "-q", "--series", out, *(self.folder / name for name in "abcd")], check=True)
        out.write_bytes(out.read_bytes()[:8000])
        with tessera.open(out) as reader:
            self.assertEqual([member.name for member in reader.members], ["a", "b", ""])
            self.assertEqual(reader["b"].original(), (self.folder / "b").read_bytes())
            for use in (lambda: reader["c"], reader.members[2].original, lambda: reader.members[2].info):
                with self.assertRaisesRegex(TesseraError, "lost") as caught:
                    use()
                self.assertEqual((caught.exception.status, caught.exception.path), (Status.CORRUPT, str(out)))

    def test_a_path_that_leads_to_another_file(self) -> None:
        old, new = (np.random.default_rng(seed).integers(0, 4096, (3, 200, 300), np.uint16) for seed in (1, 2))
        path, other = self.folder / "x.tsr", self.folder / "other"
        changes = (lambda: os.replace(other, path), path.unlink, lambda: path.write_bytes(other.read_bytes()))
        for change in changes:
            path.write_bytes(tessera.compress(old))
            other.write_bytes(tessera.compress(new))
            with tessera.open(path) as reader:
                np.testing.assert_array_equal(reader[0], old[0])
                time.sleep(0.02)
                change()
                is_same_file = change is not changes[2]
                for call in (lambda: reader[:], lambda: np.frombuffer(reader.original(), "<u2").reshape(old.shape),
                             lambda: np.frombuffer(reader.open_original().read(), "<u2").reshape(old.shape)):
                    if is_same_file:
                        np.testing.assert_array_equal(call(), old)
                        continue
                    with self.assertRaisesRegex(TesseraError, "changed while it was read") as caught:
                        call()
                    self.assertEqual(caught.exception.status, Status.READ)
                if is_same_file:
                    reader.test()
                    reader.restore_file(self.folder / "back", overwrite=True)
                    self.assertEqual((self.folder / "back").read_bytes(), old.tobytes())

    def test_an_original_that_is_written_over(self) -> None:
        values = [np.random.default_rng(seed).integers(0, 256, (200, 300), np.uint8) for seed in (1, 2)]
        path = self.folder / "x.pgm"
        for touch in (False, True):
            path.write_bytes(b"P5 300 200 255\n" + values[0].tobytes())
            with tessera.open(path) as reader:
                np.testing.assert_array_equal(reader[0, :100], values[0][:100])
                status = path.stat()
                time.sleep(0.02)
                path.write_bytes(b"P5 300 200 255\n" + values[1].tobytes())
                if touch:
                    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
                for call in (lambda: reader[0], reader.original, lambda: reader.header, lambda: reader.info):
                    with self.assertRaisesRegex(TesseraError, "changed while it was read") as caught:
                        call()
                    self.assertEqual(caught.exception.status, Status.READ)
            with tessera.open(path) as reader:
                np.testing.assert_array_equal(reader[0], values[1])

    def test_damaged_member_has_a_path(self) -> None:
        data = bytearray(tessera.compress(CT))
        data[len(data) // 2] ^= 1
        path = self.folder / "damaged.tsr"
        path.write_bytes(data)
        with tessera.open(path) as reader, self.assertRaises(TesseraError) as caught:
            reader[0]
        self.assertEqual((caught.exception.status, caught.exception.path), (Status.CORRUPT, str(path)))

    def test_threads(self) -> None:
        array = ramp((8, 60, 70))
        file = Remote(tessera.compress(array))
        wrong = []
        with tessera.open(file) as reader:

            def work(seed: int) -> None:
                for frame in np.random.default_rng(seed).integers(0, 8, 40):
                    if not np.array_equal(reader[frame], array[frame]):
                        wrong.append(frame)

            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])


    def test_readers_share_a_file_object(self) -> None:
        class Slow(Remote):
            def seek(self, offset: int, whence: int = 0) -> int:
                position = super().seek(offset, whence)
                time.sleep(0.0005)
                return position

        array = ramp((8, 60, 70))
        file = Slow(tessera.compress(array))
        wrong = []

        def work() -> None:
            try:
                with tessera.open(file) as reader:
                    wrong.extend(i for i in range(8) if not np.array_equal(reader[i], array[i]))
            except TesseraError as error:
                wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


@unittest.skipUnless(pydicom, "pydicom is not installed")
class PydicomTest(Case):
    def setUp(self) -> None:
        super().setUp()
        warnings.simplefilter("ignore")

    def test_same_data_sets(self) -> None:
        compared = 0
        for path, _ in files():
            if path.suffix != ".dcm":
                continue
            try:
                expected = pydicom.dcmread(path)
                list(expected.iterall())
            except Exception:  # noqa: BLE001: what pydicom does not read is of no interest here
                continue
            with self.subTest(path=path.name), tessera.open(tessera.compress(path)) as reader:
                self.assertEqual(reader.to_pydicom(), expected)
                compared += 1
        self.assertGreater(compared, 50)

    def test_pixels_are_read_when_asked_for(self) -> None:
        file = Remote(tessera.compress(noise_file(self.folder)))
        dataset = tessera.dcmread(file)
        before = file.read_bytes
        self.assertEqual(dataset.Rows, 500)
        self.assertEqual(file.read_bytes, before)
        self.assertLess(before, len(file.data) // 10)
        np.testing.assert_array_equal(dataset.pixel_array, noise())

    def test_path(self) -> None:
        out = self.folder / "a.tsr"
        tessera.compress_file(CT, out)
        for path in (out, CT):
            self.assertEqual(tessera.dcmread(path).PixelData, pydicom.dcmread(CT).PixelData)

    def test_file_of_pydicom(self) -> None:
        for path, _ in files():
            if path.suffix == ".dcm":
                with self.subTest(path=path.name), tessera.open(tessera.compress(path, 1)) as reader:
                    file = _dicom._File(reader)
                    got = b"".join(iter(lambda: file.read(100), b""))
                    self.assertEqual(got, path.read_bytes())

    def test_copies(self) -> None:
        expected = pydicom.dcmread(CT)
        for copied in (copy.copy, copy.deepcopy, lambda dataset: pickle.loads(pickle.dumps(dataset))):
            dataset = tessera.dcmread(tessera.compress(CT))
            self.assertEqual(copied(dataset), expected)

    def test_without_preamble(self) -> None:
        data = tessera.compress(DATA / "dicom" / "forms" / "no_meta_explicit.dcm")
        with self.assertRaises(pydicom.errors.InvalidDicomError):
            tessera.dcmread(data)
        self.assertGreater(tessera.dcmread(data, force=True).Rows, 0)


def noise():
    return np.random.default_rng(5).integers(0, 4096, (500, 400), np.uint16)


def noise_file(folder):
    """A DICOM file of pydicom's with large pixel data that are hard to compress."""
    dataset = pydicom.dcmread(CT)
    values = noise()
    dataset.Rows, dataset.Columns = values.shape
    dataset.BitsStored, dataset.HighBit, dataset.PixelRepresentation = 12, 11, 0
    dataset.PixelData = values.astype("<u2").tobytes()
    path = folder / "noise.dcm"
    dataset.save_as(path)
    return path
