"""Sets and arrays on a cluster of Dask."""

import os
import pickle
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import numpy as np
import tessera
from data import DATA, PROGRAM, Case, ramp
from test_files import Remote
from tessera import Status, TesseraError

try:
    import distributed
    import tessera.dask
    from distributed.deploy.local import LocalCluster
except ImportError:
    distributed = None

WORKERS = 4
CT = DATA / "dicom" / "ct"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def make_set(folder: Path, count: int) -> list[Path]:
    """Images of some sizes, a text, a file without bytes, in two folders."""
    random = np.random.default_rng(2)
    paths = []
    for number in range(count):
        side = 40 + 37 * (number * 7 % 11)
        path = folder / ("a" if number % 3 else "b") / f"{number:03}.pgm"
        path.parent.mkdir(parents=True, exist_ok=True)
        values = ramp((side, side), bits=12) ^ random.integers(0, 16, (side, side), np.uint16)
        path.write_bytes(b"P5 %d %d 4095\n" % (side, side) + values.astype(">u2").tobytes())
        paths.append(path)
    for name, data in (("text", b"a text"), ("empty", b"")):
        paths.append(folder / name)
        paths[-1].write_bytes(data)
    return paths


def hold_work(client: "distributed.Client", sign: Path) -> None:
    """The workers that there are compress the first ten files of make_set, and wait with others for a file, the sign."""

    def hold() -> None:
        import tessera.dask

        run_set = tessera.dask.run_set

        def run_or_wait(work: object, engine: object) -> object:
            while not Path(work.names[0]).stem.startswith("00") and not sign.exists():
                time.sleep(0.01)
            return run_set(work, engine)

        tessera.dask.run_set = run_or_wait

    client.run(hold)


def free_work(client: "distributed.Client") -> None:
    def free() -> None:
        import tessera._sets
        import tessera.dask

        tessera.dask.run_set = tessera._sets.run_set

    client.run(free)


def kill_a_worker_at_work(client: "distributed.Client") -> int:
    """SIGKILL for a worker that has tasks; its number of tasks."""
    pids = {address: one["pid"] for address, one in client.run(lambda dask_worker: {"pid": os.getpid()}).items()}
    tasks = client.processing()
    address = max(tasks, key=lambda one: len(tasks[one]))
    os.kill(pids[address], signal.SIGKILL)
    return len(tasks[address])


@unittest.skipUnless(distributed, "dask and distributed are not installed")
class DaskTest(Case):
    @classmethod
    def setUpClass(cls) -> None:
        cluster = LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=":0",
                               silence_logs=50)
        cls.client = cls.enterClassContext(distributed.Client(cls.enterClassContext(cluster)))

    def setUp(self) -> None:
        super().setUp()
        if os.path.isdir("/dev/shm"):  # hundreds of small files would wait for the disk
            self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="tessera-dask-", dir="/dev/shm")))
        self.client.wait_for_workers(WORKERS)  # a worker that was killed is replaced

    def compress_amid_a_kill(self, paths: list[Path], **options) -> tuple[list[tessera.Result], int]:
        """Results of a set, and how many came after a worker was killed."""
        seen, tasks, sign = [], [], self.folder / "sign"
        hold_work(self.client, sign)
        self.addCleanup(free_work, self.client)

        def kill(result: tessera.Result) -> None:
            if len(seen) == 2:
                tasks.append(kill_a_worker_at_work(self.client))
                sign.touch()
            seen.append(result)

        results = tessera.dask.compress_set(self.client, paths, self.folder / "out", kill, root=self.folder / "in", **options)
        self.assertGreater(tasks[0], 0)
        self.assertEqual(sorted(result.index for result in seen), list(range(len(paths))))
        return results, len(seen) - 3

    def allow_failures(self, count: int) -> int:
        """How many workers a task may end until the scheduler gives it up."""

        def allow(dask_scheduler: object) -> int:
            old, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, count
            return old

        return self.client.run_on_scheduler(allow)

    def test_a_killed_worker(self) -> None:
        paths = make_set(self.folder / "in", 70)
        results, after = self.compress_amid_a_kill(paths, effort=9)
        self.assertGreater(after, 20)
        subprocess.run([PROGRAM, "compress", "-q", "-9", "-r", self.folder / "in", "-o", self.folder / "expected"],
                       check=True)
        self.assertEqual(tree(self.folder / "out"), tree(self.folder / "expected"))
        expected = tessera.compress_set(paths, self.folder / "other", effort=9, root=self.folder / "in")
        for one, other in zip(results, expected, strict=True):
            self.assertEqual((one.index, one.source, one.report), (other.index, other.source, other.report))
            self.assertEqual(one.out, other.out.replace("/other/", "/out/"))

    def test_a_series_has_one_range(self) -> None:
        """With loss, files of one series count by one range, whatever worker has them, and however they are called."""
        paths = sorted(CT.iterdir())
        tessera.dask.compress_set(self.client, paths, self.folder / "out", psnr=45)
        results = tessera.compress_set(paths, self.folder / "other", psnr=45)
        self.assertEqual(len({result.report.range for result in results}), 1)
        subprocess.run([PROGRAM, "compress", "-q", "-r", "--psnr", "45", CT, "-o", self.folder / "expected"], check=True)
        for folder in ("out", "other"):
            self.assertEqual(tree(self.folder / folder), tree(self.folder / "expected"))

    def test_a_file_that_ends_workers_costs_no_other(self) -> None:
        paths = make_set(self.folder / "in", 40)
        allowed = self.allow_failures(0)
        try:
            self.compress_amid_a_kill(paths, effort=9)
        finally:
            self.allow_failures(allowed)
        for path in paths:
            out = self.folder / "out" / (str(path.relative_to(self.folder / "in")) + ".tsr")
            self.assertEqual(tessera.decompress(out), path.read_bytes())

    def test_failures_are_those_of_one_process(self) -> None:
        paths = make_set(self.folder, 5)
        paths.insert(2, self.folder / "missing")
        (self.folder / "out").mkdir()
        (self.folder / "out" / (paths[0].name + ".tsr")).write_bytes(b"is there")
        caught = []
        for compress in (tessera.compress_set, lambda *given: tessera.dask.compress_set(self.client, *given)):
            with self.assertRaises(tessera.SetError) as one:
                compress(paths, self.folder / "out")
            caught.append(one.exception)
            self.assertEqual((self.folder / "out" / (paths[0].name + ".tsr")).read_bytes(), b"is there")
            for path in paths[1:]:
                (self.folder / "out" / (path.name + ".tsr")).unlink(missing_ok=True)
        self.assertEqual(str(caught[1]), str(caught[0]))
        for one, other in zip(caught[1].results, caught[0].results, strict=True):
            self.assertEqual((one.index, one.source, one.out, one.report), (other.index, other.source, other.out, other.report))
            self.assertEqual(str(one.error), str(other.error))
            if one.error:
                self.assertEqual((one.error.status, one.error.path, one.error.errno),
                                 (other.error.status, other.error.path, other.error.errno))

    def test_options(self) -> None:
        paths = sorted(CT.glob("*.dcm"))[:2]
        results = tessera.dask.compress_set(self.client, [os.path.relpath(path) for path in paths], self.folder / "out",
                                            effort=1, max_error=2)
        for path, result in zip(paths, results):
            self.assertEqual(result.source, os.path.relpath(path))
            alone = tessera.compress(path, 1, max_error=2, range=result.report.range)
            self.assertEqual(Path(result.out).read_bytes(), alone)
        with self.assertRaises(tessera.SetError) as caught:
            tessera.dask.compress_set(self.client, paths, self.folder / "out")
        self.assertEqual({one.error.status for one in caught.exception.results}, {Status.EXISTS})
        results = tessera.dask.compress_set(self.client, paths, self.folder / "out", overwrite=True)
        self.assertEqual(Path(results[0].out).read_bytes(), tessera.compress(paths[0]))
        self.assertEqual(tessera.dask.compress_set(self.client, [], self.folder / "none"), [])
        for wrong in ({"effort": 0}, {"engine": "fpga"}, {"coder": "zip"}):
            with self.assertRaises(ValueError):
                tessera.dask.compress_set(self.client, paths, self.folder / "wrong", **wrong)

    def test_callback_that_raises(self) -> None:
        paths = make_set(self.folder / "in", 600)
        hold_work(self.client, self.folder / "sign")
        self.addCleanup(free_work, self.client)

        def stop(_result: tessera.Result) -> None:
            raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            tessera.dask.compress_set(self.client, paths, self.folder / "out", stop, 9, root=self.folder / "in")
        (self.folder / "sign").touch()
        while any(self.client.run(lambda dask_worker: len(dask_worker.state.executing)).values()):
            time.sleep(0.05)
        self.assertLess(len(tree(self.folder / "out")), 590)

    def test_array_on_workers(self) -> None:
        volume = ramp((12, 60, 70), bits=12)
        path = self.folder / "volume.tsr"
        path.write_bytes(tessera.compress(volume, bits=12))
        array = tessera.dask.from_tsr(path)
        self.assertEqual((array.shape, array.dtype, array.chunks[0]), (volume.shape, volume.dtype, (1,) * 12))
        np.testing.assert_array_equal(self.client.compute(array).result(), volume)
        path.unlink()  # bytes travel to the workers
        array = tessera.dask.from_tsr(tessera.compress(volume))
        self.assertEqual(self.client.compute(array[3:9].max()).result(), volume[3:9].max())


@unittest.skipUnless(distributed, "dask and distributed are not installed")
class TaskTest(Case):
    def test_a_task_that_runs_again(self) -> None:
        """Its worker was lost after the files had got their names, and before the results had left it."""
        paths = make_set(self.folder / "in", 6)
        (self.folder / "out").mkdir()
        jobs = [tessera.dask._Job(i, str(path), str(self.folder / "out" / path.name)) for i, path in enumerate(paths)]
        work = jobs, tessera.Options(), False, "cpu"
        first = tessera.dask._compress_batch(*work)
        self.assertEqual([one.error for one in first], [None] * len(paths))
        Path(jobs[1].out).write_bytes(b"something else")
        Path(jobs[2].out).write_bytes(Path(jobs[2].out).read_bytes() + b"x")
        Path(jobs[3].out).unlink()
        again = tessera.dask._compress_batch(*work)
        for one, other in zip(again, first):
            if one.index in (1, 2):
                self.assertEqual(one.error.status, Status.EXISTS)
            else:
                self.assertEqual(one, other)
        self.assertEqual(Path(jobs[1].out).read_bytes(), b"something else")


@unittest.skipUnless(distributed, "dask and distributed are not installed")
class ArrayTest(Case):
    def test_slices_and_chunks(self) -> None:
        for shape in [(5, 200, 1100), (3, 70, 50, 3)]:
            volume = ramp(shape)
            data = tessera.compress(volume)
            for chunks in ("frame", "tile", (2, 64, -1) + (-1,) * (len(shape) - 3), "auto"):
                array = tessera.dask.from_tsr(data, chunks)
                np.testing.assert_array_equal(array.compute(), volume)
                for key in [1, (slice(1, 3), slice(10, 20)), (slice(None, None, -1), 5, 7), (slice(2, 2), 1), [0, 2],
                            ([2, 0, 2], 3), (slice(0, 2), [30, 7, 8]), (slice(0, 2), slice(4, 9), [30, 7, 8]), ([], 5)]:
                    np.testing.assert_array_equal(array[key].compute(), volume[key])

    def test_chunks_are_tiles(self) -> None:
        """A chunk reads no byte that another one reads, but the frame's model: tiles and chunks agree."""
        for shape, options in [((1, 300, 1500), {}), ((1, 500, 700), {"qp": 20}), ((1, 90, 40), {}),
                               ((1, 300, 1500), {"coder": "cavlc"})]:
            noise = np.random.default_rng(4).integers(0, 4096, shape, np.uint16)
            data = tessera.compress(noise, bits=12, **options)
            frames = tessera.dask._Frames(data, "cpu", None)
            file = Remote(data)
            with tessera.open(file) as reader:
                opened = file.read_bytes
                for top in range(0, shape[1], frames.tile[0]):
                    for left in range(0, shape[2], frames.tile[1]):
                        reader[0, top : top + frames.tile[0], left : left + frames.tile[1]]
                self.assertLess(file.read_bytes - opened, 1.2 * len(data), options)

    def test_slices_decode_the_tiles_that_they_touch(self) -> None:
        array = tessera.dask.from_tsr(tessera.compress(ramp((3, 900, 800))))
        asked = []
        read = tessera.dask._Frames.__getitem__
        tessera.dask._Frames.__getitem__ = lambda frames, key: asked.append(key) or read(frames, key)
        try:
            array[1, 100:110, 5:9].compute(scheduler="synchronous")
        finally:
            tessera.dask._Frames.__getitem__ = read
        self.assertEqual(asked, [(1, slice(100, 110, None), slice(5, 9, None))])

    def test_series(self) -> None:
        paths = sorted(CT.glob("*.dcm"))
        text, out = self.folder / "text", self.folder / "series.tsr"
        text.write_bytes(b"a text")
        subprocess.run([PROGRAM, "compress", "-q", "--series", out, *paths, text], check=True)
        expected = np.concatenate([tessera.open(path)[:] for path in paths])
        array = tessera.dask.from_tsr(out)
        np.testing.assert_array_equal(array.compute(), expected)
        with tessera.open(out) as reader:
            name = reader.members[1].name
        np.testing.assert_array_equal(tessera.dask.from_tsr(out, members=name).compute(), expected[1:2])
        np.testing.assert_array_equal(tessera.dask.from_tsr(out, members=[2, name]).compute(), expected[[2, 1]])
        for wrong in ([], "missing", len(paths) + 1):
            with self.assertRaises((ValueError, LookupError)):
                tessera.dask.from_tsr(out, members=wrong)
        other = self.folder / "other.pgm"
        other.write_bytes(b"P5 200 100 255\n" + bytes(20000))
        subprocess.run([PROGRAM, "compress", "-q", "-f", "--series", out, paths[0], other], check=True)
        with self.assertRaisesRegex(ValueError, "choose members"):
            tessera.dask.from_tsr(out)

    def test_a_file_that_was_replaced(self) -> None:
        path = self.folder / "a.tsr"
        for volume in (ramp((2, 9, 8)), ramp((3, 9, 8)), ramp((3, 9, 8))[::-1]):
            path.write_bytes(tessera.compress(volume))
            np.testing.assert_array_equal(tessera.dask.from_tsr(path).compute(), volume)

    def test_errors(self) -> None:
        with self.assertRaises(OSError):
            tessera.dask.from_tsr(self.folder / "missing")
        with self.assertRaises(TesseraError):
            tessera.dask.from_tsr(b"no image")
        with self.assertRaises(TypeError):
            tessera.dask.from_tsr(Remote(b""))
        data = bytearray(tessera.compress(ramp((3, 50, 60))))
        data[len(data) // 2] ^= 1
        with self.assertRaises(TesseraError) as caught:
            tessera.dask.from_tsr(data).compute()
        self.assertEqual(caught.exception.status, Status.CORRUPT)

    def test_many_threads(self) -> None:
        volume = ramp((40, 60, 70))
        array = tessera.dask.from_tsr(tessera.compress(volume))
        self.assertEqual(array.name, tessera.dask.from_tsr(tessera.compress(volume)).name)
        np.testing.assert_array_equal(array.compute(scheduler="threads", num_workers=12), volume)
        self.assertLessEqual(len(tessera.dask._pool._idle), tessera.dask._IDLE_READERS)
        self.assertEqual(pickle.loads(pickle.dumps(array)).sum().compute(), volume.sum())
