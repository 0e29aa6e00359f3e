"""The adapters over the packages themselves. Of a package that is missing they are skipped."""

import ast
import importlib.util
import io
import pickle
import subprocess
import sys
import tarfile
import tokenize
import unittest
import unittest.mock
from pathlib import Path

import numpy as np
import tessera
import zarr_entry_points
from data import DATA, PROGRAM, Case, ramp

zarr_entry_points.install()
ADAPTERS = Path(tessera.__file__).parent / "adapters"
CODE_LINES = 60


def has(*names: str) -> bool:
    try:
        return all(importlib.util.find_spec(name) for name in names)
    except ModuleNotFoundError:  # the package that a part is of
        return False


class FolderTest(unittest.TestCase):
    def test_nothing_is_imported_unasked(self) -> None:
        packages = "nibabel xarray webdataset pydicom npe2 monai dask zarr fsspec"
        code = f"import sys, tessera; assert not set(sys.modules) & set('{packages}'.split()), sys.modules.keys()"
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_adapters_are_short(self) -> None:
        """Lines of code, without docstrings and comments."""
        skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
        paths = sorted(ADAPTERS.glob("*.py"))
        self.assertGreater(len(paths), 6)
        for path in paths:
            text, lines = path.read_text(), set()
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                lines |= set(range(token.start[0], token.end[0] + 1)) if token.type not in skipped else set()
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
                    lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
            self.assertLessEqual(len(lines), CODE_LINES, path)


@unittest.skipUnless(has("nibabel"), "nibabel is not installed")
class NibabelTest(Case):
    @classmethod
    def setUpClass(cls) -> None:
        import nibabel

        import tessera.adapters.nibabel as adapter

        nibabel.imageglobals.logger.setLevel(50)
        cls.nibabel = nibabel
        adapter.register()
        adapter.register()

    def make(self, shape, dtype, kind=None, name="a.nii", scaled=False):
        """An image in a file, and in a .tsr of it, as nibabel loads them."""
        kind = kind or self.nibabel.Nifti1Image
        if dtype == "RGB":
            values = np.zeros(shape, [("R", "u1"), ("G", "u1"), ("B", "u1")])
            for i, colour in enumerate("RGB"):
                values[colour] = ramp(shape, np.uint8) // (i + 1)
        else:
            values = (np.arange(np.prod(shape)) % 97).reshape(shape).astype(dtype)
        header = kind.header_class(endianness=">" if dtype[0] == ">" else "<")
        header.set_data_dtype(values.dtype)
        image = kind(values, np.diag([1, 2, 3, 1]), header)
        if scaled:
            image.header.set_slope_inter(0.5, 3)
        path = self.folder / name
        self.nibabel.save(image, path)
        tessera.compress_file(path, f"{path}.tsr", overwrite=True)
        return self.nibabel.load(path), self.nibabel.load(f"{path}.tsr")

    def compare(self, one, other) -> None:
        self.assertIs(type(one), type(other))
        self.assertEqual(one.header, other.header)
        np.testing.assert_array_equal(one.affine, other.affine)
        for key in [(), (..., 1), (3,), (slice(2, 9, 3), slice(None, None, -1)), (..., None, 0), (None, slice(1, 3)), (-1, -1),
                    (0,) * one.ndim, (0, 99), (1, ..., slice(None, None, 2))]:
            try:
                wanted = one.dataobj[key]
            except (IndexError, ValueError) as error:
                with self.assertRaises(type(error)):
                    other.dataobj[key]
                continue
            got = other.dataobj[key]
            self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype), key)
            np.testing.assert_array_equal(got, wanted)
        self.assertEqual(other.dataobj[..., :0].shape, (*one.shape[:-1], 0))  # which nibabel itself reads from no file

    def test_images_are_those_of_nibabel(self) -> None:
        for shape, dtype in [((20, 18, 9), "<i2"), ((20, 18, 9), ">i2"), ((300,), "<u2"), ((20, 30), "<f4"), ((64, 70, 12), "<f8"),
                             ((5, 6, 7, 2, 3), "<i2"), ((12, 13, 4), "RGB"), ((70, 70, 70), "<u2")]:
            for kind, name in ((self.nibabel.Nifti1Image, "a.nii"), (self.nibabel.Nifti2Image, "a.nii.gz")):
                with self.subTest(shape=shape, dtype=dtype, name=name):
                    self.compare(*self.make(shape, dtype, kind, name))

    def test_scaled_values(self) -> None:
        one, other = self.make((9, 8, 7, 3), "u1", scaled=True)
        self.compare(one, other)
        np.testing.assert_array_equal(one.get_fdata(), other.get_fdata())
        np.testing.assert_array_equal(one.dataobj.get_unscaled(), other.dataobj.get_unscaled())
        np.testing.assert_array_equal(one.slicer[2:5, :, 1:2, 1].dataobj, other.slicer[2:5, :, 1:2, 1].dataobj)
        np.testing.assert_array_equal(self.nibabel.as_closest_canonical(one).dataobj, self.nibabel.as_closest_canonical(other).dataobj)

    def test_a_slice_decodes_its_frames(self) -> None:
        one, other = self.make((70, 70, 40), "<u2")
        reader = other.dataobj.file_like
        read, frames = reader._read, []
        reader._read = lambda frame, *rest: frames.append(frame) or read(frame, *rest)
        np.testing.assert_array_equal(other.dataobj[..., 7:20:6], one.dataobj[..., 7:20:6])
        self.assertEqual(frames, [7, 13, 19])

    def test_files_that_are_stored(self) -> None:
        for name in ("a.nii", "a.nii.gz"):
            one, other = self.make((5, 6, 7), "<c8", name=name)
            self.compare(one, other)

    def test_saving(self) -> None:
        one, other = self.make((20, 18, 9), "<i2")
        for image, name in ((one, "b.nii.tsr"), (other, "c.nii.tsr"), (other, "d.nii"), (other, "a.nii.tsr")):
            self.nibabel.save(image, self.folder / name)
            back = self.nibabel.load(self.folder / name)
            np.testing.assert_array_equal(back.dataobj, one.dataobj)
            with tessera.open(self.folder / name) as reader:
                self.assertEqual((reader.info.kind, reader.info.way), ("nifti", "" if name == "d.nii" else "coded"))

    def test_other_files(self) -> None:
        tessera.compress_file(ramp((9, 9)), self.folder / "a.tsr")
        with self.assertRaises(self.nibabel.filebasedimages.ImageFileError):
            self.nibabel.load(self.folder / "a.tsr")


@unittest.skipUnless(has("xarray"), "xarray is not installed")
class XarrayTest(Case):
    def setUp(self) -> None:
        super().setUp()
        import xarray

        self.xarray, self.path = xarray, self.folder / "a.tsr"

    def write(self, shape):
        values = ramp(shape)
        tessera.compress_file(values, self.path, overwrite=True)
        names = ("frame", "y", "x", "component")
        whole = values.reshape((1, *shape)) if len(shape) == 2 else values
        return self.xarray.DataArray(whole, dims=names[: whole.ndim], name="image")

    def test_indices(self) -> None:
        points = [self.xarray.DataArray(numbers, dims="p") for numbers in ([0, 1, 1], [3, 4, 2])]
        for shape in [(5, 60, 40), (60, 40), (4, 30, 20, 3)]:
            wanted = self.write(shape)
            with self.xarray.open_dataset(self.path) as dataset:  # by its name
                self.assertEqual((dataset.image.dims, dataset.image.dtype), (wanted.dims, wanted.dtype))
                for key in [{}, {"frame": -1}, {"y": [3, 0, 3], "x": [1, 2], "frame": 0}, {"frame": 0, "x": [5, 3]}, {"y": slice(None, None, -2)},
                            {"y": points[0], "x": points[1]}, {"frame": [0], "x": 3}, {"x": slice(5, 5)}, {"x": []}]:
                    self.xarray.testing.assert_identical(dataset.image.isel(key).load(), wanted.isel(key))

    def test_only_frames_that_are_asked_for_are_read(self) -> None:
        wanted = self.write((30, 60, 40))
        dataset = self.xarray.open_dataset(self.path, engine="tessera", cache=False)
        read, frames = tessera.Member._read, []
        with unittest.mock.patch.object(tessera.Member, "_read", lambda self, frame, *rest: frames.append(frame) or read(self, frame, *rest)):
            np.testing.assert_array_equal(dataset.image.isel(frame=[20, 3], y=slice(2, 9)), wanted.isel(frame=[20, 3], y=slice(2, 9)))
        self.assertEqual(frames, [3, 20])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(dataset)).image[3], wanted[3])
        dataset.close()

    @unittest.skipUnless(has("dask"), "dask is not installed")
    def test_chunks_of_dask(self) -> None:
        wanted = self.write((5, 60, 40))
        with self.xarray.open_dataset(self.path, engine="tessera", chunks={}) as dataset:
            self.assertEqual(dataset.image.chunks, ((1,) * 5, (60,), (40,)))
            self.assertEqual(int(dataset.image.sum()), int(wanted.sum()))

    def test_members_and_variables(self) -> None:
        folder = DATA / "dicom" / "ct"
        paths = sorted(str(path) for path in folder.glob("*.dcm"))[:3]
        with tessera.open(paths[1]) as original, self.xarray.open_dataset(paths[1], engine="tessera") as dataset:
            np.testing.assert_array_equal(dataset.image, original[:])
            self.assertEqual(dataset.attrs, {"kind": "dicom", "bits_stored": original.image.bits_stored})
        subprocess.run([PROGRAM, "compress", "-q", "--series", self.path, *paths], check=True)
        with tessera.open(self.path) as series:
            for i, member in enumerate(series.members):
                for chosen in (i, member.name):
                    with self.xarray.open_dataset(self.path, member=chosen) as dataset:
                        np.testing.assert_array_equal(dataset.image, member[:])
        self.path = self.folder / "b.tsr"
        self.write((5, 60, 40))
        with self.xarray.open_dataset(self.path, drop_variables="image") as dataset:
            self.assertEqual(list(dataset), [])
        with self.assertRaises(tessera.TesseraError):
            self.xarray.open_dataset(tessera.compress(b"a text"), engine="tessera")


@unittest.skipUnless(has("webdataset"), "webdataset is not installed")
class WebDatasetTest(Case):
    def test_shards(self) -> None:
        import webdataset

        from tessera.adapters.webdataset import decode, encode

        arrays = [ramp((3, 40, 50)) + i for i in range(4)]
        path = str(self.folder / "shard.tar")
        with webdataset.TarWriter(path) as writer:
            for i, array in enumerate(arrays):
                writer.write(encode({"__key__": f"s{i}", "image.tsr": array if i else tessera.compress(array), "cls": i}))
        with tarfile.open(path) as archive:
            self.assertEqual(archive.extractfile("s0.image.tsr").read(4), b"\x89TSR")
        found = list(webdataset.WebDataset(path, shardshuffle=False).decode(decode).to_tuple("image.tsr", "cls"))
        self.assertEqual([number for _, number in found], [0, 1, 2, 3])
        for (back, _), array in zip(found, arrays):
            self.assertEqual(back.dtype, array.dtype)
            np.testing.assert_array_equal(back, array)

    def test_other_members_and_damage(self) -> None:
        from tessera.adapters.webdataset import decode

        self.assertIsNone(decode(".cls", b"1"))
        with self.assertRaises(tessera.TesseraError):
            decode(".tsr", tessera.compress(ramp((9, 9)))[:-9])


@unittest.skipUnless(has("pydicom.pixels"), "pydicom 3 is not installed")
class PydicomTest(Case):
    @classmethod
    def setUpClass(cls) -> None:
        import pydicom

        import tessera.adapters.pydicom as adapter

        cls.pydicom = pydicom
        adapter.register()
        adapter.register()

    def file(self, name: str):
        path = Path(self.pydicom.__file__).parent / "data" / "test_files" / name
        if not path.exists():
            self.skipTest(f"this pydicom has no {name}")
        return path

    def decode(self, path, plugin: str = "tessera", **options):
        return self.pydicom.pixels.pixel_array(path, decoding_plugin=plugin, **options)

    def test_lossless(self) -> None:
        wanted = self.pydicom.dcmread(self.file("MR_small.dcm")).pixel_array
        for name in ("MR_small_jpeg_ls_lossless.dcm", "MR_small_jp2klossless.dcm"):
            got = self.decode(self.file(name))
            self.assertEqual(got.dtype, wanted.dtype)
            np.testing.assert_array_equal(got, wanted)

    def test_files_of_the_set(self) -> None:
        """Own streams of JPEG-LS and JPEG, of which a reader gives the same values."""
        tried = set()
        for path in sorted((DATA / "dicom").rglob("*.dcm")):
            file = self.pydicom.dcmread(path, stop_before_pixels=True, force=True)
            syntax = file.file_meta.get("TransferSyntaxUID")
            if syntax is None or not tessera.adapters.pydicom.is_available(syntax):
                continue
            with tessera.open(path) as reader:
                try:
                    wanted = reader[:]
                except tessera.TesseraError:
                    with self.assertRaises(RuntimeError):
                        self.decode(path, raw=True)
                    continue
            got = self.decode(path, raw=True)
            np.testing.assert_array_equal(got.reshape(wanted.shape), wanted, str(path))
            tried.add(syntax.name)
        self.assertGreaterEqual(len(tried), 2, tried)

    @unittest.skipUnless(has("PIL"), "Pillow is not installed")
    def test_as_pillow(self) -> None:
        for name in ("JPEG2000.dcm", "examples_ybr_color.dcm", "SC_rgb_dcmtk_+eb+cy+s2.dcm", "SC_rgb_gdcm_KY.dcm"):
            path = self.file(name)
            got, wanted = self.decode(path), self.decode(path, "pillow")
            self.assertEqual(got.shape, wanted.shape)
            self.assertLessEqual(int(abs(got.astype(int) - wanted).max()), 4, name)  # an inverse DCT may round otherwise

    def test_what_is_left_to_others(self) -> None:
        with self.assertRaisesRegex(RuntimeError, "JPEG of RGB"):
            self.decode(self.file("SC_rgb_jpeg_app14_dcmd.dcm"))


@unittest.skipUnless(has("npe2", "dask", "distributed"), "npe2 or dask is not installed")
class NapariTest(Case):
    def test_manifest(self) -> None:
        import npe2

        manifest = npe2.PluginManifest.from_file(ADAPTERS / "napari.yaml")
        manifest.validate_imports()
        self.assertIn("tessera-codec", [found.manifest.name for found in npe2.PluginManifest.discover() if found.manifest])

    def test_reading(self) -> None:
        import npe2

        npe2.PluginManager.instance().discover()
        for shape, rgb in [((5, 60, 40), False), ((60, 40, 3), True)]:
            values = ramp(shape, np.uint8)
            path = self.folder / f"scan{len(shape)}{rgb}.tsr"
            tessera.compress_file(values, path)
            [(array, options, kind)] = npe2.read([str(path)], stack=False)
            self.assertEqual((kind, options["name"], options["rgb"]), ("image", path.stem, rgb))
            np.testing.assert_array_equal(np.asarray(array).reshape(values.shape), values)
        with self.assertRaises(ValueError):
            npe2.read([str(self.folder / "a.other")], stack=False)
