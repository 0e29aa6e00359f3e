"""faults.py LIBRARY TESTDATA PROGRAM COMPILER WORK [WORD]: the tests of clusters, remote files and adapters see faults.

Each fault is one change of a copy of the package; the test that is named with it must fail then. The tests must pass
without a change. Exit status 1: a fault was not seen. 77: packages are missing.
faults.py --check: only that what each fault changes stands there, once.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "app" / "python" / "tessera"

#: Name, file, what stands there, what replaces it, test that fails then.
FAULTS = [
    ("a lost worker's output counts as another's", "dask.py", "Status.EXISTS and job.is_new", "Status.EXISTS and False",
     "test_dask.TaskTest.test_a_task_that_runs_again"),
    ("an output of any bytes counts", "_media.py", "self._differs |= self._file.read(count) != take_bytes(source, count)",
     "self._file.read(count)", "test_dask.TaskTest.test_a_task_that_runs_again"),
    ("a longer output counts", "_media.py", "not self._differs and not self._file.read(1)", "not self._differs",
     "test_dask.TaskTest.test_a_task_that_runs_again"),
    ("a task that ends its worker is given up", "dask.py", "if len(jobs) > 1:", "if False:",
     "test_dask.DaskTest.test_a_file_that_ends_workers_costs_no_other"),
    ("a task loses a file", "dask.py", "submit(_compress_batch, batch,", "submit(_compress_batch, batch[:1],",
     "test_dask.DaskTest.test_a_killed_worker"),
    ("chunks decode whole frames", "dask.py", "fancy=True,", "fancy=False,",
     "test_dask.ArrayTest.test_slices_decode_the_tiles_that_they_touch"),
    ("chunks are not tiles", "_reader.py", 'or info.coder == "cavlc" else 1', "else 1",
     "test_dask.ArrayTest.test_chunks_are_tiles"),
    ("members come in the order of the series", "dask.py", "[member._number for member in chosen]",
     "sorted(member._number for member in chosen)", "test_dask.ArrayTest.test_series"),
    ("a file that was replaced is read from the old one", "dask.py", "self._token = tokenize(self._place, self._state)",
     "self._token = tokenize(self._data)", "test_dask.ArrayTest.test_a_file_that_was_replaced"),
    ("all of a remote file is read", "_remote.py",
     "ranges = kind(file, filesystem, path)", "raise ValueError", "test_remote.HttpTest.test_only_what_is_touched_travels"),
    ("megabytes are read ahead", "_remote.py", "READ_AHEAD_BYTES = 1 << 16", "READ_AHEAD_BYTES = 1 << 22",
     "test_remote.HttpTest.test_only_what_is_touched_travels"),
    ("a region reads its frame", "_reader.py", "if (rows, columns) == (image.rows, image.columns) and not image.swapped:",
     "if self._read_all(frame):", "test_remote.HttpTest.test_only_what_is_touched_travels"),
    ("a stream is an error", "_remote.py", "with contextlib.suppress(ValueError):\n            ranges",
     "with contextlib.suppress(EOFError):\n            ranges", "test_remote.HttpTest.test_a_server_without_ranges"),
    ("answers of another state count", "_remote.py", "if self._is_begun and told != self.state:", "if False:",
     "test_remote.ChangeTest.test_a_change_at_each_request"),
    ("answers of another size count", "_remote.py", "if whole.isdigit() and int(whole) != self.size:", "if False:",
     "test_remote.ChangeTest.test_another_size"),
    ("a state that nobody tells counts as the same", "_remote.py",
     "if ranges.is_certain or ranges.head.startswith(_SIGNATURE):", "if True:",
     "test_remote.ChangeTest.test_a_reader_that_is_open"),
    ("what a file system says is not compared", "_remote.py",
     "if self.state and _differ(self.state, self._look()):", "if False:",
     "test_remote.ChangeTest.test_file_systems"),
    ("what a file has in its own cache counts", "_remote.py", 'if hasattr(self._file, "_fetch_range"):', "if False:",
     "test_remote.ChangeTest.test_file_systems"),
    ("a file in memory is read as it changes", "_remote.py", "if isinstance(file, io.BytesIO):", "if False:",
     "test_remote.ChangeTest.test_memory_and_local_files"),
    ("another .tsr counts as damage", "_handle.py", "found == Status.NOT_TSR or (found == Status.OK and now != self.id)",
     "False", "test_remote.ChangeTest.test_a_reader_that_is_open"),
    ("a .tsr is opened amid a change", "_handle.py", "(status != Status.OK or first == self.id)", "True",
     "test_remote.ChangeTest.test_file_systems"),
    ("an array is of two states", "dask.py", "if reader._state() != self._state:", "if False:",
     "test_remote.ChangeTest.test_dask"),
    ("an array of one frame has frames", "_reader.py", "return self.image.frame_shape if self._is_frame else self.image.shape",
     "return self.image.shape", "test_numpy.ShapeTest.test_arrays_come_back_as_they_were"),
    ("an axis of one frame is lost", "_image.py", "return bool(image.planar) and image.components == 1", "return False",
     "test_numpy.ShapeTest.test_arrays_come_back_as_they_were"),
    ("bool is uint8", "_reader.py", "return values.view(np.bool_) if self.dtype == np.bool_ else values", "return values",
     "test_numpy.ShapeTest.test_arrays_come_back_as_they_were"),
    ("an integer beside a list is an axis of its own", "_reader.py", "block[0][inner[1:]] if lead else block[inner]", "block[inner]",
     "test_numpy.IndexTest.test_as_numpy"),
    ("a mask of another size is taken", "_keys.py", "isinstance(part, _Mask) and part.size_of_axis != size", "False",
     "test_numpy.IndexTest.test_as_numpy"),
    ("all frames are read", "_reader.py", "for frame in axes[0].numbers]", "for frame in range(shape[0]) if frame in axes[0].numbers or self._read(frame, 0, 0, *shape[1:3]) is None]",
     "test_numpy.IndexTest.test_only_frames_that_are_named_are_read"),
    ("a pickle takes another file", "_handle.py", "if self.state() != state:", "if False:", "test_numpy.PickleTest.test_what_has_changed"),
    ("a child uses its parent's reader", "_handle.py", "if os.getpid() != self._process and not self._is_closed:", "if False:",
     "test_numpy.PickleTest.test_fork"),
    ("slices of nibabel come in another order", "adapters/nibabel.py", '[tuple(others)]', '[tuple(others)][..., ::-1]',
     "test_adapters.NibabelTest.test_images_are_those_of_nibabel"),
    ("nibabel decodes all frames", "adapters/nibabel.py", "reader[frames[i], places[i:j], taken]", "reader[:][frames[i], places[i:j], taken]",
     "test_adapters.NibabelTest.test_a_slice_decodes_its_frames"),
    ("colours of nibabel have no fields", "adapters/nibabel.py", '.view(self._dtype.newbyteorder("="))', "",
     "test_adapters.NibabelTest.test_images_are_those_of_nibabel"),
    ("nibabel writes NIfTI into a .tsr", "adapters/nibabel.py", "if file_map is not None:", "if True:",
     "test_adapters.NibabelTest.test_saving"),
    ("a stored NIfTI is none", "adapters/nibabel.py", "if not reader.info.verbatim:", "if True:",
     "test_adapters.NibabelTest.test_files_that_are_stored"),
    ("an integer beside a list has no axis less", "adapters/xarray.py", "tuple(0 if one else slice(None) for one in is_one)", "...",
     "test_adapters.XarrayTest.test_indices"),
    ("xarray reads all frames", "adapters/xarray.py", "IndexingSupport.OUTER_1VECTOR", "IndexingSupport.BASIC",
     "test_adapters.XarrayTest.test_only_frames_that_are_asked_for_are_read"),
    ("chunks of xarray are whole files", "adapters/xarray.py", "encoding=tile", "encoding={}",
     "test_adapters.XarrayTest.test_chunks_of_dask"),
    ("a member of a shard stays as bytes", "adapters/webdataset.py", "return np.asarray(reader)", "return data",
     "test_adapters.WebDatasetTest.test_shards"),
    ("other members of a shard are decoded", "adapters/webdataset.py", 'if key.rpartition(".")[2] != "tsr":', "if False:",
     "test_adapters.WebDatasetTest.test_other_members_and_damage"),
    ("pydicom takes other bytes", "adapters/pydicom.py", "np.ascontiguousarray(reader[0])", "np.ascontiguousarray(reader[0].T)",
     "test_adapters.PydicomTest.test_files_of_the_set"),
    ("JPEG of RGB is taken for YBR", "adapters/pydicom.py", 'not runner.photometric_interpretation.startswith("YBR")', "False",
     "test_adapters.PydicomTest.test_what_is_left_to_others"),
    ("colours of pydicom stay YBR", "adapters/pydicom.py", 'runner.set_option("photometric_interpretation", "RGB")', "pass",
     "test_adapters.PydicomTest.test_as_pillow"),
    ("a manifest names no function", "adapters/napari.yaml", "tessera.adapters.napari:get_reader", "tessera.adapters.napari:get_readers",
     "test_adapters.NapariTest.test_manifest"),
    ("napari shows colours as frames", "adapters/napari.py", '"rgb": components in (3, 4)', '"rgb": False',
     "test_adapters.NapariTest.test_reading"),
]
#: What the fault of a region calls.
READ_ALL = '''
    def _read_all(self, frame: int) -> bool:
        image = self._image()
        raster = empty_raster(image)
        self._call(_library.tsr_read_frame, frame, raster.ctypes.data, raster.size, 0)
        return False

    def _read('''


def passes(package: Path, test: str) -> bool:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), str(HERE)])}
    run = subprocess.run([sys.executable, "-m", "unittest", test], env=environment, cwd=HERE, capture_output=True, text=True)
    if "Ran 1 test" not in run.stderr or "skipped=" in run.stderr:
        raise SystemExit(f"{test} did not run:\n{run.stderr}")
    return run.returncode == 0


def text_of(package: Path, file: str, old: str) -> str:
    """The text of a file in which OLD stands once."""
    text = (package / file).read_text()
    if text.count(old) != 1:
        raise SystemExit(f"{file} has {text.count(old)} times: {old}")
    return text


def change(package: Path, file: str, old: str, new: str) -> None:
    path = package / "tessera" / file
    text = text_of(package / "tessera", file, old)
    text = text.replace(old, new)
    path.write_text(text.replace("\n    def _read(", READ_ALL, 1) if "_read_all" in new else text)


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        for _, file, old, _, _ in FAULTS:
            text_of(PACKAGE, file, old)
        print(f"{len(FAULTS)} faults of the Python package stand where the list says")
        return 0
    library, testdata, program, compiler, work = sys.argv[1:6]
    try:
        import aiohttp  # noqa: F401
        import distributed  # noqa: F401
        import fsspec  # noqa: F401
        import nibabel  # noqa: F401
        import npe2  # noqa: F401
        import webdataset  # noqa: F401
        import xarray  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    data, cache = Path(work).resolve() / "data", Path(work).resolve() / "cache"
    for folder in (data, cache):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    subprocess.run([testdata, data], check=True, stdout=subprocess.DEVNULL)
    os.environ.update(TESSERA_LIBRARY=str(Path(library).resolve()), TESSERA_TEST_DATA=str(data),
                      TESSERA_TEST_PROGRAM=str(Path(program).resolve()), TESSERA_TEST_COMPILER=compiler,
                      TESSERA_TEST_ROOT=str(HERE.parents[1]), PYTHONPYCACHEPREFIX=str(cache), PYTHONDONTWRITEBYTECODE="")
    faults = [fault for fault in FAULTS if len(sys.argv) < 7 or sys.argv[6] in " ".join(fault)]
    bad = 0
    for test in dict.fromkeys(fault[4] for fault in faults):
        if not passes(PACKAGE.parent, test):
            print(f"FAIL without a fault: {test}", flush=True)
            bad += 1
    for name, file, old, new, test in faults:
        with tempfile.TemporaryDirectory(prefix="tessera-faults-") as folder:
            shutil.copytree(PACKAGE, Path(folder) / "tessera", ignore=shutil.ignore_patterns("__pycache__"))
            change(Path(folder), file, old, new)
            seen = not passes(Path(folder), test)
        print(f"{'seen' if seen else 'NOT SEEN'}: {name}", flush=True)
        bad += not seen
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
