"""What those who know numpy expect of readers: the array's own shape and type, its indices, and pickles of all of it."""

import io
import multiprocessing
import os
import pickle
import shutil
import struct
import time
import zipfile
import zlib

import numpy as np
import tessera
from data import DATA, Case, ramp

CT = DATA / "dicom" / "ct" / "slice_01.dcm"


def _sum(reader) -> int:
    return int(reader[-1].sum())


def _in_child(work) -> bool:
    """Whether work is true in a child of os.fork."""
    child = os.fork()
    if not child:
        ok = False
        try:
            ok = work()
        finally:
            os._exit(0 if ok else 1)
    return os.waitpid(child, 0)[1] == 0


class ShapeTest(Case):
    def test_arrays_come_back_as_they_were(self) -> None:
        for shape in [(1, 1), (7, 5), (1, 7, 5), (2, 3, 4), (3, 7, 5), (7, 5, 3), (2, 7, 5, 3), (1, 9), (1, 1, 1)]:
            for dtype in ("u1", "<i2", "<u4", "?"):
                with self.subTest(shape=shape, dtype=dtype):
                    array = ramp(shape, np.uint8) % 3 == 0 if dtype == "?" else ramp(shape, dtype)
                    with tessera.open(tessera.compress(array)) as reader:
                        self.assertEqual((reader.shape, reader.dtype, reader.ndim), (array.shape, array.dtype, array.ndim))
                        self.assertEqual((reader.size, reader.nbytes, len(reader)), (array.size, array.nbytes, len(array)))
                        for back in (np.asarray(reader), reader[:], reader[...], np.array(list(reader))):
                            self.assertEqual((back.shape, back.dtype), (array.shape, array.dtype))
                            np.testing.assert_array_equal(back, array)
                        np.testing.assert_array_equal(reader[-1, ..., 0], array[-1, ..., 0])
                        self.assertEqual(reader.image.shape[1:], reader.image.frame_shape)
                        self.assertEqual(tessera.decompress(tessera.compress(array)),
                                         np.packbits(array, bitorder="little").tobytes() if dtype == "?" else array.tobytes())

    def test_an_axis_of_one_frame_in_colours(self) -> None:
        with tessera.open(tessera.compress(ramp((1, 7, 5, 3)))) as reader:
            self.assertEqual((reader.shape, reader.image.shape), ((7, 5, 3), (1, 7, 5, 3)))

    def test_files_have_frames(self) -> None:
        with tessera.open(CT) as reader:
            self.assertEqual(reader.ndim, 3)
            self.assertEqual(len(reader), 1)

    def test_chunks(self) -> None:
        with tessera.open(tessera.compress(np.zeros((2, 700, 3000), np.uint8))) as reader:
            self.assertEqual(reader.chunks, (1, 64, 1000))
        for shape in [(40, 30), (2, 40, 30), (40, 30, 3)]:
            with tessera.open(tessera.compress(ramp(shape))) as reader:
                self.assertEqual(reader.chunks, shape if len(shape) == 2 or shape[2] == 3 else (1, *shape[1:]))


class IndexTest(Case):
    def test_as_numpy(self) -> None:
        rng = np.random.default_rng(5)
        for shape in [(20, 30), (6, 20, 30), (20, 30, 3), (6, 20, 30, 3)]:
            array = ramp(shape)
            mask = rng.integers(0, 2, shape[:2]).astype(bool)
            keys = [
                [0, 2, 2, -1], np.array([[1, 0], [3, -2]]), (slice(None), [5, 1]), ([0, 3], [1, 2]), (1, [2, 2, 0]),
                ([1, 2], slice(3, 9), 0) if len(shape) > 2 else ([1, 2], slice(3, 9)), ([[1], [4]], [0, 2, 5]), mask,
                mask[:, 0], (mask[:, 0], slice(2, 4)), [], (None, 1), (..., None), (None, [1, 2], None, 0), (np.int64(3), np.uint8(2)),
                ([True, False] * (shape[0] // 2),), array > 30000, (slice(None, None, -3), [1]), np.zeros((0, 2), int), (..., [0, -1]),
            ]
            with tessera.open(tessera.compress(array)) as reader:
                for key in keys:
                    with self.subTest(shape=shape, key=str(key)[:60]):
                        got = reader[key]
                        self.assertEqual(got.dtype, array.dtype)
                        np.testing.assert_array_equal(got, array[key])
                for key in [[0, 99], [-99], mask.T if shape[0] != shape[1] else [99], (..., [True] * 31),
                            [True] * (shape[0] - 1), [True] + [False] * shape[0]]:
                    with self.assertRaises(IndexError):
                        reader[key]
                for key in [[0.5], "x" if not isinstance(reader, tessera.Reader) else 0.5, True, np.array([1.0]), (0, {})]:
                    with self.assertRaises(TypeError):
                        reader[key]

    def test_only_frames_that_are_named_are_read(self) -> None:
        array = ramp((40, 20, 30))
        with tessera.open(tessera.compress(array)) as reader:
            read, frames = reader._read, []
            reader._read = lambda frame, *rest: frames.append(frame) or read(frame, *rest)
            np.testing.assert_array_equal(reader[[30, 2, 30]], array[[30, 2, 30]])
            self.assertEqual(frames, [2, 30])


class PickleTest(Case):
    def test_readers(self) -> None:
        path = self.folder / "a.tsr"
        array = ramp((3, 40, 50))
        tessera.compress_file(array, path)
        engine = tessera.engine(threads=1)
        for data, options in ((path, {}), (str(path), {}), (os.path.relpath(path), {}), (path.read_bytes(), {}), (path, {"engine": engine})):
            with tessera.open(data, **options) as reader:
                again = pickle.loads(pickle.dumps(reader))
                self.assertEqual((again.shape, again.is_series, len(again.members)), (reader.shape, False, 1))
                np.testing.assert_array_equal(again[1], array[1])
                for part in (reader.header, reader.info, reader.image):
                    self.assertEqual(vars(pickle.loads(pickle.dumps(part))), vars(part))
        with self.assertRaisesRegex(ValueError, "closed"):
            pickle.dumps(reader)

    def test_members(self) -> None:
        series = DATA / "dicom" / "mr"
        names = sorted(str(path) for path in series.glob("*.dcm"))[:3] or [str(CT)]
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as z:
            for name in names:
                z.write(name, os.path.basename(name))
        with tessera.open(tessera.compress(archive.getvalue())) as reader:
            images = [image for image in reader.images]
            self.assertTrue(images)
            for image in images:
                np.testing.assert_array_equal(pickle.loads(pickle.dumps(image))[:], image[:])
            self.assertTrue(_in_child(lambda: all((image[0] == image[0]).all() for image in images)))

    def test_what_has_changed(self) -> None:
        path = self.folder / "a.tsr"
        tessera.compress_file(ramp((3, 40, 50)), path)
        original = self.folder / "b.dcm"
        shutil.copy(CT, original)
        with tessera.open(path) as reader, tessera.open(original) as other:
            both = [pickle.dumps(reader), pickle.dumps(other)]
            tessera.compress_file(ramp((3, 40, 51)), path, overwrite=True)
            os.utime(original, ns=(0, time.time_ns()))
            for pickled in both:
                with self.assertRaisesRegex(tessera.TesseraError, "changed since"):
                    pickle.loads(pickled)

    def test_file_objects(self) -> None:
        with tessera.open(io.BytesIO(tessera.compress(ramp((3, 40, 50))))) as reader:
            with self.assertRaisesRegex(TypeError, "a path, a URL"):
                pickle.dumps(reader)

    def test_engines(self) -> None:
        again = pickle.loads(pickle.dumps(tessera.engine(threads=1)))
        self.assertEqual((again.name, again.threads), ("cpu", 1))

    def test_fork(self) -> None:
        path = self.folder / "a.tsr"
        array = ramp((3, 40, 50))
        tessera.compress_file(array, path)
        engine = tessera.engine(threads=1)
        for data in (path, path.read_bytes()):
            for chosen in (None, engine):
                with tessera.open(data, engine=chosen) as reader:
                    member = reader.members[0]
                    np.testing.assert_array_equal(reader[0], array[0])
                    self.assertTrue(_in_child(lambda: all((member[i] == array[i]).all() for i in range(3))))
                    self.assertTrue(_in_child(lambda: _in_child(lambda: (reader[1] == array[1]).all())))
                    np.testing.assert_array_equal(reader[2], array[2])
        with tessera.open(io.BytesIO(path.read_bytes())) as reader:

            def refused() -> bool:
                try:
                    reader[0]
                except TypeError:
                    return True
                return False

            self.assertTrue(_in_child(refused))

    def test_workers(self) -> None:
        """As the workers of a DataLoader: a data set that holds a reader, forked and spawned."""
        path = self.folder / "a.tsr"
        array = ramp((3, 40, 50))
        tessera.compress_file(array, path)
        with tessera.open(path) as reader:
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    self.assertEqual(pool.map(_sum, [reader] * 4), [int(array[-1].sum())] * 4)


class ShowTest(Case):
    def test_repr(self) -> None:
        path = self.folder / "a<b.tsr"
        tessera.compress_file(ramp((3, 40, 50)), path)
        with tessera.open(path) as reader:
            self.assertEqual(repr(reader), f"<tessera.Reader of {path}, (3, 40, 50) uint16>")
            self.assertEqual(repr(reader.members[0]), f"<tessera.Member of {path}, (3, 40, 50) uint16>")
        self.assertIn("closed", repr(reader))
        self.assertIn("closed", reader._repr_html_())

    def test_html(self) -> None:
        import base64
        import re

        for array in (ramp((3, 40, 50)), ramp((400, 500, 3), np.uint8), ramp((5, 900), np.int16), ramp((9, 9)) > 9, np.zeros((4, 4), np.uint8)):
            with tessera.open(tessera.compress(array)) as reader:
                text = reader._repr_html_()
            png = base64.b64decode(re.search(r'src="data:image/png;base64,([^"]+)"', text)[1])
            self.assertTrue(png.startswith(b"\x89PNG\r\n\x1a\n"))
            columns, rows = struct.unpack(">II", png[16:24])
            self.assertLessEqual(max(rows, columns), 192)
            length = struct.unpack(">I", png[33:37])[0]
            lines = zlib.decompress(png[41 : 41 + length])
            colours = 3 if png[25] == 2 else 1
            self.assertEqual(len(lines), rows * (1 + columns * colours))
            if array.max() > array.min():
                values = np.frombuffer(lines, np.uint8).reshape(rows, -1)[:, 1:]
                self.assertEqual((values.min(), values.max()), (0, 255))
        with tessera.open(tessera.compress(b"a text")) as reader:
            self.assertIn("<table>", reader._repr_html_())
            self.assertIn("bytes", repr(reader))
