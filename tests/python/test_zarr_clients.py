"""xarray and dask over the Zarr codecs: threads, processes, and a cluster whose workers know the codec by its entry point."""

import hashlib
import unittest
import warnings

import numpy as np
import zarr_entry_points
import zarr_work
from data import Case, ramp

zarr_entry_points.install()
try:
    import zarr
except ImportError:
    raise unittest.SkipTest("zarr is not installed") from None

from tessera.numcodecs import Tessera
from tessera.zarr import TesseraCodec

try:
    import xarray
except ImportError:
    xarray = None
try:
    import dask
    import dask.array
    import distributed
except ImportError:
    dask = None

CHUNKS = (4, 32, 24)


@unittest.skipUnless(xarray, "xarray is not installed")
class XarrayTest(Case):
    def test_round_trip(self) -> None:
        values = ramp((9, 70, 50), np.int16)
        dataset = xarray.Dataset({"ct": (("z", "y", "x"), values)}, {"z": np.arange(9) * 1.5}, {"patient": "none"})
        codecs = {
            2: {"compressors": Tessera(shape=CHUNKS, dtype="<i2")},
            3: {"serializer": TesseraCodec(), "compressors": None},
        }
        for form, codec in codecs.items():
            for consolidated in (False, True):
                path = str(self.folder / f"{form}{consolidated}.zarr")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # zarr: consolidated metadata is not in the specification of format 3
                    dataset.to_zarr(path, zarr_format=form, consolidated=consolidated,
                                    encoding={"ct": {"chunks": CHUNKS, **codec}})
                    back = xarray.open_zarr(path, consolidated=consolidated, chunks=None)
                xarray.testing.assert_identical(back.load(), dataset)
                self.assertIn('"tessera"', zarr.open_group(path)["ct"].metadata.to_buffer_dict(
                    zarr.core.buffer.default_buffer_prototype())[".zarray" if form == 2 else "zarr.json"].to_bytes().decode())
                np.testing.assert_array_equal(back["ct"][3:7, 10:40, ::3], values[3:7, 10:40, ::3])

    def test_scaled_values(self) -> None:
        values = (ramp((8, 64, 48), np.int16) // 16) * 0.5
        path = str(self.folder / "a.zarr")
        encoding = {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -32768, "chunks": CHUNKS,
                    "serializer": TesseraCodec(), "compressors": None}
        xarray.Dataset({"ct": (("z", "y", "x"), values)}).to_zarr(path, encoding={"ct": encoding}, consolidated=False)
        np.testing.assert_array_equal(xarray.open_zarr(path, consolidated=False, chunks=None)["ct"], values)


@unittest.skipUnless(dask, "dask or distributed is not installed")
class DaskTest(Case):
    def setUp(self) -> None:
        super().setUp()
        self.values = ramp((12, 64, 48), np.int16)
        self.path = str(self.folder / "a.zarr")
        zarr.create_array(self.path, data=self.values, chunks=CHUNKS, serializer=TesseraCodec(), compressors=None)
        self.expected = hashlib.sha256(self.values.tobytes()).hexdigest()

    def compute_and_store(self, name: str) -> None:
        """Reads, computes and writes with the scheduler that is set."""
        lazy = dask.array.from_zarr(self.path)
        self.assertEqual(int(lazy.sum().compute()), int(self.values.sum()))
        out = str(self.folder / name)
        zarr.create_array(out, shape=self.values.shape, chunks=CHUNKS, dtype="int16", serializer=TesseraCodec(depth=2),
                          compressors=None)
        (lazy // 2).to_zarr(zarr.open_array(out))
        np.testing.assert_array_equal(zarr.open_array(out)[...], self.values // 2)

    def test_threads(self) -> None:
        with dask.config.set(scheduler="threads", num_workers=4):
            self.compute_and_store("threads.zarr")

    def test_processes(self) -> None:
        with dask.config.set(scheduler="processes", num_workers=2):
            self.compute_and_store("processes.zarr")
            told = dask.compute(*[dask.delayed(zarr_work.digest)(self.path) for _ in range(2)])
        for _, _, found in told:
            self.assertEqual(found, self.expected)

    def test_cluster(self) -> None:
        with distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None,
                                      silence_logs=50) as cluster, distributed.Client(cluster) as client:
            told = client.run(zarr_work.digest, self.path)
            self.assertEqual(len({process for process, _, _ in told.values()}), 2)
            for _, known, found in told.values():
                self.assertFalse(known)
                self.assertEqual(found, self.expected)
            self.compute_and_store("cluster.zarr")
