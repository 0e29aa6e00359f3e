"""compress, restore, file objects, sets, errors, engines."""

import copy
import errno
import io
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import tessera
from data import DATA, PROGRAM, Case, files
from tessera import Status, TesseraError


class Remote(io.RawIOBase):
    """A file object without a descriptor, which counts what is read, as a remote one would."""

    def __init__(self, data: bytes, fails_at: int | None = None) -> None:
        self.data, self.position, self.read_bytes, self.fails_at = data, 0, 0, fails_at
        self.lock = threading.Lock()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self.position = {0: 0, 1: self.position, 2: len(self.data)}[whence] + offset
        return self.position

    def tell(self) -> int:
        return self.position

    def read(self, count: int = -1) -> bytes:
        if self.fails_at is not None and self.position >= self.fails_at:
            raise ConnectionError("the line is dead")
        end = len(self.data) if count < 0 else self.position + min(count, 5000)  # fewer bytes than are asked for
        got = self.data[self.position : end]
        self.position += len(got)
        self.read_bytes += len(got)
        return got


class FileTest(Case):
    def test_all_files_come_back(self) -> None:
        for path, _ in files():
            with self.subTest(path=path.name):
                self.assertEqual(tessera.decompress(tessera.compress(path)), path.read_bytes())

    def test_loss_in_windows(self) -> None:
        path = DATA / "dicom" / "ct" / "slice_01.dcm"
        report = tessera.compress_file(path, self.folder / "ct.tsr", quality="diagnostic")
        window = report.windows[0]
        self.assertTrue(window.is_judged and window.psnr_db >= 45 and 0.995 <= window.ssim < 1)
        self.assertTrue(0 < window.rmse < window.largest_error <= report.max_error <= 0.03 * window.width)
        self.assertTrue(0.995 <= report.ssim < 1)
        self.assertEqual((report.modality, report.ratio_limit), ("CT", 15))
        exact = tessera.compress_file(path, self.folder / "exact.tsr")
        self.assertEqual((exact.ssim, exact.modality, exact.ratio_limit, exact.windows), (None, "", None, ()))
        over = tessera.compress_file(path, self.folder / "over.tsr", ratio=20)
        self.assertGreater(over.pixel_bytes, over.ratio_limit * over.payload_bytes)
        with self.assertRaises(TesseraError) as caught:
            tessera.compress_file(path, self.folder / "no.tsr", ratio=20, within_ratio=True)
        self.assertEqual(caught.exception.status, Status.LOSS)
        self.assertFalse((self.folder / "no.tsr").exists())

    def test_media(self) -> None:
        path = DATA / "dicom" / "ct" / "slice_01.dcm"
        data = path.read_bytes()
        expected = tessera.compress(str(path))
        with open(path, "rb") as buffered, open(path, "rb", buffering=0) as raw:
            buffered.read(100)
            for source in (path, data, bytearray(data), memoryview(data), io.BytesIO(data), buffered, raw, Remote(data)):
                with self.subTest(type=type(source).__name__):
                    self.assertEqual(tessera.compress(source), expected)
            self.assertEqual(buffered.tell(), 100)
        reading, writing = os.pipe()
        with open(reading, "rb") as pipe, open(writing, "wb") as end:
            end.write(data[:5000])
            end.close()
            self.assertEqual(tessera.decompress(tessera.compress(pipe)), data[:5000])
        self.assertEqual(tessera.decompress(tessera.compress(b"")), b"")
        with self.assertRaises(TypeError):
            tessera.compress(5)
        with self.assertRaises(TypeError):
            tessera.compress(data, bits=8)
        with self.assertRaises(ValueError):
            tessera.compress("a\0b")

    def test_same_bytes_as_the_command_line(self) -> None:
        path = DATA / "dicom" / "ct" / "slice_02.dcm"
        out = self.folder / "by_program.tsr"
        subprocess.run([PROGRAM, "compress", path, "-o", out], check=True, capture_output=True)
        self.assertEqual(tessera.compress(path), out.read_bytes())

    def test_files(self) -> None:
        path = DATA / "dicom" / "ct" / "slice_01.dcm"
        out, back = self.folder / "a.tsr", self.folder / "a.dcm"
        report = tessera.compress_file(path, out)
        self.assertEqual((report.kind, report.bytes_in, report.bytes_out, report.lossless, report.identical),
                         ("dicom", path.stat().st_size, out.stat().st_size, True, True))
        self.assertEqual((report.effort, report.verified_by, report.image.shape), (5, "cpu", report.image.shape))
        self.assertEqual(tessera.restore_file(out, back).bytes_out, path.stat().st_size)
        self.assertEqual(back.read_bytes(), path.read_bytes())
        with self.assertRaises(TesseraError) as caught:
            tessera.compress_file(path, out)
        self.assertEqual(caught.exception.status, Status.EXISTS)
        tessera.compress_file(path, out, effort=1, overwrite=True)
        unproven = tessera.compress_file(path, out, verify="none", overwrite=True)
        self.assertIsNone(unproven.verified_by)

    def test_efforts_reach_the_library(self) -> None:
        path = DATA / "dicom" / "ct" / "slice_01.dcm"
        for effort in (1, 5, 9):
            with tessera.open(tessera.compress(path, effort)) as reader:
                self.assertEqual(tessera.compress_file(path, self.folder / f"{effort}.tsr", effort).effort, effort)
                self.assertEqual(reader.info.coder, "rans" if effort >= 7 else "huffman")


    def test_tune(self) -> None:
        """What bytes are spent on: as the command line has it, and by the loss."""
        path = DATA / "pnm" / "landscape_coarse.ppm"
        plain, tuned = tessera.compress(path, qp=22), tessera.compress(path, qp=22, tune="ssim")
        self.assertNotEqual(plain, tuned)
        self.assertEqual(plain, tessera.compress(path, qp=22, tune="psnr"))
        self.assertEqual(tessera.compress(path, quality="web"), min(
            (tessera.compress(path, quality="web", tune="ssim"), tessera.compress(path, quality="web", tune="psnr")), key=len))
        self.assertEqual(tessera.compress(path, ssim=0.97), tessera.compress(path, ssim=0.97, tune="ssim"))
        self.assertEqual(tessera.compress(path, quality="diagnostic"),
                         tessera.compress(path, quality="diagnostic", tune="psnr"))
        out = self.folder / "tuned.tsr"
        subprocess.run([PROGRAM, "compress", "-q", "--qp", "22", "--tune", "ssim", path, "-o", out], check=True)
        self.assertEqual(tuned, out.read_bytes())
        for options in ({"tune": "ssim"}, {"tune": "ssim", "max_error": 3}, {"tune": "sharp", "qp": 22},
                        {"ssim": 1.0}, {"ssim": 0.98, "psnr": 40}):
            with self.assertRaises((ValueError, TesseraError)):
                tessera.compress(path, **options)


class ErrorTest(Case):
    def test_missing_file(self) -> None:
        path = str(self.folder / "missing")
        with self.assertRaises(TesseraError) as caught:
            tessera.compress(path)
        self.assertEqual((caught.exception.status, caught.exception.path, caught.exception.offset),
                         (Status.READ, path, None))
        self.assertEqual(caught.exception.errno, 2)
        self.assertEqual(str(caught.exception), f"cannot open {path}: No such file or directory")

    def test_files_that_fail_are_os_errors(self) -> None:
        file = DATA / "dicom" / "ct" / "slice_01.dcm"
        there, folder, missing = str(self.folder / "there.tsr"), str(self.folder), str(self.folder / "missing")
        tessera.compress_file(file, there)
        for call, kind, number, path in (
            (lambda: tessera.compress(missing), FileNotFoundError, errno.ENOENT, missing),
            (lambda: tessera.compress(Path(missing)), FileNotFoundError, errno.ENOENT, missing),
            (lambda: tessera.decompress(missing), FileNotFoundError, errno.ENOENT, missing),
            (lambda: tessera.open(missing), FileNotFoundError, errno.ENOENT, missing),
            (lambda: tessera.dcmread(missing), FileNotFoundError, errno.ENOENT, missing),
            (lambda: tessera.restore_file(missing, missing + "2"), FileNotFoundError, errno.ENOENT, missing),
            (lambda: tessera.compress_file(missing, there, overwrite=True), FileNotFoundError, errno.ENOENT, missing),
            (lambda: tessera.compress(there + "/x"), NotADirectoryError, errno.ENOTDIR, there + "/x"),
            (lambda: tessera.compress(folder), IsADirectoryError, errno.EISDIR, folder),
            (lambda: tessera.compress_file(file, there), FileExistsError, errno.EEXIST, there),
            (lambda: tessera.restore_file(there, there), TesseraError, None, there),
            (lambda: tessera.restore_file(there, str(file)), FileExistsError, errno.EEXIST, str(file)),
            (lambda: tessera.restore_file(there, folder), IsADirectoryError, errno.EISDIR, folder),
            (lambda: tessera.open(there).restore_file(str(file)), FileExistsError, errno.EEXIST, str(file)),
            (lambda: tessera.compress_file(file, "/proc/x/y.tsr"), OSError, errno.ENOENT, "/proc/x/y.tsr"),
        ):
            with self.subTest(kind=kind.__name__, path=path), self.assertRaises(kind) as caught:
                call()
            error = caught.exception
            self.assertIsInstance(error, TesseraError)
            self.assertEqual(str(error).count(path), 1, str(error))
            self.assertEqual(error.path, path)
            if number is None:
                continue
            self.assertEqual((error.errno, error.filename, error.strerror), (number, path, os.strerror(number)))
            for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
                self.assertIs(type(copied), type(error))
                self.assertEqual((str(copied), copied.errno, copied.filename, copied.path, copied.status),
                                 (str(error), number, path, path, error.status))
        with self.assertRaises(tessera.SetError) as set_failed:
            tessera.compress_set([missing, file], self.folder / "set")
        first = set_failed.exception.results[0].error
        self.assertIsInstance(first, FileNotFoundError)
        self.assertEqual(str(set_failed.exception).count(missing), 1)
        self.assertNotIsInstance(set_failed.exception, OSError)
        for data in (b"something else", str(file)):
            with self.assertRaises(TesseraError) as not_tsr:
                tessera.decompress(data)
            self.assertNotIsInstance(not_tsr.exception, OSError)

    def test_not_a_tsr(self) -> None:
        with self.assertRaises(TesseraError) as caught:
            tessera.decompress(b"something else")
        self.assertEqual((caught.exception.status, caught.exception.path), (Status.NOT_TSR, None))

    def test_damage_has_an_offset(self) -> None:
        data = bytearray(tessera.compress(DATA / "dicom" / "ct" / "slice_01.dcm"))
        data[len(data) // 2] ^= 1
        with self.assertRaises(TesseraError) as caught:
            tessera.decompress(data)
        self.assertEqual(caught.exception.status, Status.CORRUPT)
        self.assertTrue(0 < caught.exception.offset < len(data))

    def test_file_object_that_fails(self) -> None:
        data = (DATA / "dicom" / "ct" / "slice_01.dcm").read_bytes()
        with self.assertRaises(TesseraError) as caught:
            tessera.compress(Remote(data, fails_at=3000))
        self.assertEqual(caught.exception.status, Status.READ)
        self.assertIsInstance(caught.exception.__cause__, ConnectionError)

    def test_file_object_that_dies(self) -> None:
        """A line that dies before the header and its copy are read is not called damage, whenever it dies."""
        data = tessera.compress(DATA / "dicom" / "ct" / "slice_01.dcm")
        for whole in range(6):

            class Dying(Remote):
                def read(self, count: int = -1) -> bytes:
                    self.left = getattr(self, "left", whole) - 1
                    self.fails_at = 0 if self.left < 0 else None
                    return super().read(count)

            for function in (tessera.decompress, lambda file: tessera.open(file).original()):
                try:
                    function(Dying(data))
                except TesseraError as error:
                    self.assertEqual(error.status, Status.READ, f"{whole} reads: {error}")
                    self.assertIsInstance(error.__cause__, ConnectionError)

    def test_file_object_that_ends_early(self) -> None:
        class Short(Remote):
            def read(self, count: int = -1) -> bytes:
                return super().read(count) if self.position < 3000 else b""

        with self.assertRaises(TesseraError) as caught:
            tessera.compress(Short((DATA / "dicom" / "ct" / "slice_01.dcm").read_bytes()))
        self.assertIsInstance(caught.exception.__cause__, EOFError)

    def test_file_object_that_interrupts(self) -> None:
        class Interrupted(Remote):
            def read(self, count: int = -1) -> bytes:
                raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            tessera.compress(Interrupted(b"abcdefgh" * 100))

    def test_wrong_options(self) -> None:
        huge, nothing, endless = 1 << 70, float("nan"), float("inf")
        for options in ({"effort": 0}, {"effort": 10}, {"coder": "zip"}, {"path": "x"}, {"verify": "x"},
                        {"effort": 5.5}, {"effort": "5"}, {"effort": (1 << 32) + 5}, {"max_error": 0}, {"max_error": huge},
                        {"max_error": (1 << 64) + 3}, {"max_error": True}, {"size": huge}, {"size": (1 << 64) + 9},
                        {"size": -1}, {"psnr": endless}, {"psnr": nothing}, {"psnr": 1e300}, {"psnr": huge},
                        {"ratio": endless}, {"ratio": 1e300}, {"ratio": 10**400}, {"qp": nothing}, {"qp": -endless},
                        {"qp": (1 << 61) + 4}):
            with self.subTest(options=options), self.assertRaises(ValueError) as caught:
                tessera.compress(b"abc", **options)
            self.assertRegex(str(caught.exception), " is ")
        with self.assertRaises(ValueError):
            tessera.Options(effort=(1 << 64) + 5).to_native()
        for options in ({"threads": (1 << 32) + 1}, {"threads": -1}, {"memory": 1 << 64}, {"memory": -1}, {"gpus": [1 << 32]},
                        {"gpu_memory": (1 << 64) + 1}, {"threads": 1.5}):
            with self.subTest(options=options), self.assertRaises(ValueError):
                tessera.engine("cpu", **options)

    def test_the_input_is_no_output(self) -> None:
        original = (DATA / "dicom" / "ct" / "slice_01.dcm").read_bytes()
        path, other, link = self.folder / "a.dcm", self.folder / "b.dcm", self.folder / "link"
        path.write_bytes(original)
        other.symlink_to(path)
        os.link(path, link)
        stored = tessera.compress(path)
        tsr = self.folder / "c.tsr"
        tsr.write_bytes(stored)
        with open(path, "rb") as file, tessera.open(tsr) as reader:
            for call in (lambda: tessera.compress_file(path, path, overwrite=True),
                         lambda: tessera.compress_file(other, path, overwrite=True),
                         lambda: tessera.compress_file(path, link, overwrite=True),
                         lambda: tessera.compress_file(file, path, overwrite=True),
                         lambda: tessera.restore_file(tsr, tsr, overwrite=True),
                         lambda: reader.restore_file(tsr, overwrite=True)):
                with self.assertRaises(TesseraError) as caught:
                    call()
                self.assertEqual(caught.exception.status, Status.SAME_FILE)
        self.assertEqual((path.read_bytes(), tsr.read_bytes()), (original, stored))

    def test_no_output_of_a_set_is_its_input(self) -> None:
        first, second = self.folder / "a", self.folder / "a.tsr"
        first.write_bytes(b"first")
        second.write_bytes(b"second")
        with self.assertRaisesRegex(ValueError, "is the input"):
            tessera.compress_set([first, second], self.folder, overwrite=True)
        self.assertEqual(second.read_bytes(), b"second")


class SetTest(Case):
    def test_set(self) -> None:
        paths = sorted((DATA / "dicom").glob("ct/*.dcm"))
        seen = []
        results = tessera.compress_set(paths, self.folder / "out", seen.append, effort=1)
        self.assertEqual([result.source for result in results], [str(path) for path in paths])
        self.assertEqual(sorted(result.index for result in seen), list(range(len(paths))))
        for path, result in zip(paths, results):
            self.assertEqual(result.out, str(self.folder / "out" / (path.name + ".tsr")))
            self.assertEqual(tessera.decompress(result.out), path.read_bytes())
            self.assertEqual(result.report.effort, 1)
        self.assertEqual(tessera.compress_set([], self.folder / "none"), [])

    def test_some_fail(self) -> None:
        good = DATA / "dicom" / "ct" / "slice_01.dcm"
        missing = self.folder / "missing"
        with self.assertRaises(tessera.SetError) as caught:
            tessera.compress_set([missing, good], self.folder / "out")
        self.assertEqual(caught.exception.status, Status.PARTIAL)
        bad, done = caught.exception.results
        self.assertEqual((bad.error.status, bad.error.path, bad.report), (Status.READ, str(missing), None))
        self.assertIsNone(done.error)
        self.assertEqual(tessera.decompress(done.out), good.read_bytes())

    def test_names(self) -> None:
        for folder in ("a", "b"):
            (self.folder / folder).mkdir()
            (self.folder / folder / "x").write_bytes(folder.encode())
        paths = [self.folder / "a" / "x", self.folder / "b" / "x"]
        with self.assertRaisesRegex(ValueError, "several files"):
            tessera.compress_set(paths, self.folder / "out")
        tessera.compress_set(paths, self.folder / "out", root=self.folder)
        self.assertEqual(tessera.decompress(self.folder / "out" / "b" / "x.tsr"), b"b")
        with self.assertRaisesRegex(ValueError, "is not below"):
            tessera.compress_set(paths, self.folder / "out", root=self.folder / "a")

    def test_callback_that_raises(self) -> None:
        paths = [self.folder / f"{i}" for i in range(200)]
        for path in paths:
            path.write_bytes(b"x" * 100)
        seen = []

        def stop(result: tessera.Result) -> None:
            seen.append(result)
            raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            tessera.compress_set(paths, self.folder / "out", stop, engine=tessera.engine("cpu", threads=4))
        self.assertEqual(len(seen), 1)
        self.assertLess(len(list((self.folder / "out").iterdir())), 150)

    def test_set_within_a_callback(self) -> None:
        """A set that is begun where a result is told has its place in the engine, also in one of a single thread."""
        work = (
            "import sys, tessera\n"
            "engine = tessera.engine('cpu', threads=int(sys.argv[1]))\n"
            "names, out, inner = sys.argv[3:], sys.argv[2], []\n"
            "def tell(result):\n"
            "    inner.append(tessera.compress_set(names[:3], f'{out}/{result.index}', engine=engine))\n"
            "results = tessera.compress_set(names, f'{out}/all', on_result=tell, engine=engine)\n"
            "assert len(results) == len(inner) == len(names), (len(results), len(inner))\n"
            "assert all(len(one) == 3 and not one[2].error for one in inner)\n"
        )
        names = sorted(str(path) for path in (DATA / "dicom" / "ct").iterdir())
        for threads in ("1", "2", "4"):
            out = str(self.folder / threads)
            subprocess.run([sys.executable, "-c", work, threads, out, *names], check=True)


class EngineTest(Case):
    def test_engine(self) -> None:
        with tessera.engine("cpu", threads=1) as engine:
            self.assertEqual((engine.name, engine.threads), ("cpu", 1))
            reader = tessera.open(tessera.compress(b"abc", engine=engine), engine=engine)
        with self.assertRaisesRegex(TesseraError, "the engine is closed"):
            tessera.compress(b"abc", engine=engine)
        self.assertEqual(reader.original(), b"abc")  # a reader keeps its engine
        self.assertEqual(len(engine._handles), 1)
        reader.close()
        self.assertEqual(len(engine._handles), 0)
        with self.assertRaises(ValueError):
            tessera.engine("fpga")

    def test_fork(self) -> None:
        tessera.compress(b"abc")
        child = os.fork()
        if child == 0:
            ok = False
            try:
                ok = tessera.decompress(tessera.compress(b"abc" * 1000)) == b"abc" * 1000
            finally:
                os._exit(0 if ok else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_threads(self) -> None:
        path = DATA / "dicom" / "ct" / "slice_01.dcm"
        expected = tessera.compress(path, 1)
        made: list[bytes] = []

        def work() -> None:
            for _ in range(5):
                made.append(tessera.compress(path, 1))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(made, [expected] * 20)
