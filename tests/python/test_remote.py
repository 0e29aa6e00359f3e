"""Reading by HTTP: only what is touched travels. The bounds come from the file's index (io/FORMAT.md 3)."""

import email.utils
import http.server
import io
import re
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np
import tessera
from data import PROGRAM, Case
from tessera import TesseraError, _remote

try:
    import aiohttp
    import fsspec
    import fsspec.implementations.http
except ImportError:
    aiohttp = None


#: What a server tells of a state of its object, of the number n and since a time: a strong ETag; a weak one; a time that
#: is long past; that of a change of this moment, which says little; nothing.
TELLS = {
    "etag": lambda n, since: {"ETag": f'"{n}"'},
    "weak": lambda n, since: {"ETag": f'W/"{n}"'},
    "time": lambda n, since: {"Last-Modified": f"Thu, 01 Jan 2026 00:00:0{n} GMT"},
    "now": lambda n, since: {"Last-Modified": email.utils.formatdate(since, usegmt=True)},
    "nothing": lambda n, since: {},
}
#: Those by which each change is seen.
CERTAIN = ("etag", "time")


class Server(http.server.ThreadingHTTPServer):
    """Serves one file, by ranges unless told otherwise, and counts requests and the bytes of their bodies. Before the
    request of the number switches_at the next file takes its place."""

    def __init__(self, data: bytes, has_ranges: bool = True, tells: str = "nothing") -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.data, self.has_ranges, self.sent, self.requests = data, has_ranges, 0, 0
        self.state, self.since, self.tells, self.next, self.switches_at = 1, time.time(), TELLS[tells], b"", 0
        self.url = f"http://127.0.0.1:{self.server_port}/file.tsr"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def count(self, byte_count: int) -> None:
        self.sent += byte_count
        self.requests += 1

    def handle_error(self, *_: object) -> None:
        """A client that drops an answer."""

    def replace(self, data: bytes) -> None:
        self.data, self.state, self.since = data, self.state + 1, time.time()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> bytes:
        self.server.switches_at -= 1
        if self.server.switches_at == 0:
            self.server.replace(self.server.next)
        data, asked = self.server.data, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked and self.server.has_ranges and int(asked[1]) >= len(data):
            data = b""
            self.send_response(416)
        elif asked and self.server.has_ranges:
            first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            data = data[first : last + 1]
        else:
            self.send_response(200 if self.path == "/file.tsr" else 404)
        for name, value in self.server.tells(self.server.state, self.server.since).items():
            self.send_header(name, value)
        if self.server.has_ranges:
            self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        return data

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        data = self._answer()
        self.server.count(len(data))
        try:
            self.wfile.write(data)
        except ConnectionError:  # of a whole file, what comes first may be enough for a client
            pass

    def log_message(self, *_: object) -> None:
        pass


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of GROUND.md 2, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


class Index:
    """Sections by the index of a file (FORMAT.md 3.5): type, first byte, number of bytes, frame, tile."""

    def __init__(self, data: bytes) -> None:
        self.offset = int.from_bytes(data[-24:-16], "little")
        _, at = varint(data, self.offset + 1)
        count, at = varint(data, at)
        entries = []
        for _ in range(count):
            length, end = varint(data, at + 1)
            entries.append((chr(data[at]), length))
            at = end
        first = self.offset - sum(length for _, length in entries)
        self.header_bytes, self.all_bytes, self.sections = first, len(data), []
        for kind, length in entries:
            frame = tile = -1
            if kind in "FGT":
                _, at = varint(data, first + 1)
                frame, at = varint(data, at)
                tile = varint(data, at)[0] if kind == "T" else -1
            self.sections.append((kind, length, frame, tile))
            first += length

    def to_open(self) -> int:
        """Header, what is no frame, index and its copy, footer: the most that opening may need."""
        return self.header_bytes + sum(s[1] for s in self.sections if s[0] not in "FGT") + self.all_bytes - self.offset

    def of_frame(self, frame: int, tiles: set[int] | None = None) -> int:
        return sum(length for kind, length, number, tile in self.sections
                   if number == frame and (kind != "T" or tiles is None or tile in tiles))


@unittest.skipUnless(aiohttp, "fsspec and aiohttp are not installed")
class HttpTest(Case):
    @classmethod
    def setUpClass(cls) -> None:
        # Noise: tiles are much larger than what is read ahead of them. Tiles are 65 or 66 rows of 1000 samples.
        cls.volume = np.random.default_rng(1).integers(0, 1 << 16, (6, 1000, 1000), np.uint16)
        cls.data = tessera.compress(cls.volume, 1, verify="none")
        cls.index = Index(cls.data)

    def serve(self, data: bytes | None = None, has_ranges: bool = True) -> Server:
        return self.enterContext(Server(self.data if data is None else data, has_ranges))

    def bound(self, needed: int, places: int) -> int:
        """Bytes that may travel if needed bytes in so many places of the file are read."""
        return needed + places * _remote.READ_AHEAD_BYTES

    def test_only_what_is_touched_travels(self) -> None:
        server = self.serve()
        bound = self.bound(self.index.to_open(), 4)  # the file's end; its header; its index; what stands before that
        with tessera.open(server.url) as reader:
            self.assertEqual((reader.shape, reader.image.bits_stored), (self.volume.shape, 16))
            self.assertLessEqual(server.sent, bound)
            self.assertLessEqual(server.requests, 4)
            before = server.sent, server.requests
            np.testing.assert_array_equal(reader[2], self.volume[2])
            bound += self.bound(self.index.of_frame(2), 1)
            self.assertLessEqual(server.sent, bound)
            self.assertLessEqual(server.requests - before[1], 2)
            self.assertGreaterEqual(server.sent - before[0], self.index.of_frame(2) - _remote.READ_AHEAD_BYTES)
            before = server.sent, server.requests
            np.testing.assert_array_equal(reader[4, 500:510, 20:30], self.volume[4, 500:510, 20:30])
            self.assertLessEqual(server.requests - before[1], 2)
            bound += self.bound(self.index.of_frame(4, self.touched(500, 510)), 2)  # the frame's model; its tiles
            self.assertLessEqual(server.sent, bound)
            before = server.sent, server.requests
            np.testing.assert_array_equal(reader[0, 400:700, 5], self.volume[0, 400:700, 5])
            self.assertLessEqual(server.requests - before[1], 2)
            bound += self.bound(self.index.of_frame(0, self.touched(400, 700)), 2)
            self.assertLessEqual(server.sent, bound)
        self.assertLess(bound, len(self.data) / 2)

    def touched(self, top: int, end: int) -> set[int]:
        """Tiles of these rows: a tile has whole rows, and all tiles but the last one the same number of them."""
        tiles = 1 + max(tile for _, _, frame, tile in self.index.sections if frame == 0)
        rows = -(-1000 // tiles)
        return set(range(top // rows, (end - 1) // rows + 1))

    def test_base_alone(self) -> None:
        """Of a file with a base and the rest, a reader of the base takes the base's bytes and the ends of the file."""
        rows, columns = np.mgrid[0:900, 0:1000]
        scan = (2000 + rows * 2 + columns + np.random.default_rng(6).integers(0, 99, (3, 900, 1000))).astype(np.uint16)
        both = tessera.compress(scan, psnr=50, lossless_rest=True, verify="none")
        server = self.serve(both)
        with tessera.open(both) as reader:
            base_bytes = reader.info.base_bytes
        with tessera.open(server.url, level="base") as base:
            opened = server.sent
            base[1]
            self.assertLessEqual(server.sent - opened, base_bytes // 3 + 2 * _remote.READ_AHEAD_BYTES)
            base[0], base[2]
        self.assertLessEqual(server.sent, base_bytes + 8 * _remote.READ_AHEAD_BYTES)
        self.assertLess(server.sent, len(both) // 2)

    def test_header_alone(self) -> None:
        server = self.serve()
        with tessera.open(server.url) as reader:
            self.assertEqual((reader.info.kind, reader.header.kind), ("other", "other"))
        self.assertLessEqual(server.sent, self.bound(self.index.to_open(), 5))

    def test_files_of_fsspec(self) -> None:
        """The same by fsspec.open, whose own block would be 5 MiB."""
        server = self.serve()
        bound = self.bound(self.index.to_open() + self.index.of_frame(1, self.touched(0, 1)), 5)
        opened = fsspec.open(server.url)
        with tessera.open(opened) as reader:
            np.testing.assert_array_equal(reader[1, :1], self.volume[1, :1])
        self.assertLessEqual(server.sent, bound)
        server.sent = 0
        options = {"cache_type": "readahead", "block_size": _remote.READ_AHEAD_BYTES}
        with opened.fs.open(server.url, **options) as file, tessera.open(file) as reader:
            np.testing.assert_array_equal(reader[1, :1], self.volume[1, :1])
        self.assertLessEqual(server.sent, bound)

    def test_a_server_without_ranges(self) -> None:
        server = self.serve(has_ranges=False)
        with tessera.open(server.url) as reader:
            np.testing.assert_array_equal(reader[5], self.volume[5])
        self.assertLess(server.sent, 2 * len(self.data) + (2 << 20))

    def test_small_files(self) -> None:
        for data in (b"", b"a", b"a text" * 100):
            server = self.serve(tessera.compress(data))
            self.assertEqual(tessera.decompress(server.url), data)
            self.assertEqual(tessera.decompress(tessera.compress(self.serve(data).url)), data)

    def test_errors(self) -> None:
        server = self.serve()
        with self.assertRaises(FileNotFoundError):
            tessera.open(server.url + "x")
        damaged = bytearray(self.data)
        damaged[len(damaged) // 2] ^= 1
        url = self.serve(bytes(damaged)).url
        with tessera.open(url) as reader, self.assertRaises(TesseraError) as caught:
            reader[:]
        self.assertEqual(caught.exception.path, url)

    def test_lost_server(self) -> None:
        with Server(self.data) as server, tessera.open(server.url) as reader:
            server.data = b""
            with self.assertRaises(TesseraError) as caught:
                reader[3]
            self.assertEqual(caught.exception.status, tessera.Status.READ)

    def test_dask(self) -> None:
        try:
            import tessera.dask
        except ImportError:
            self.skipTest("dask is not installed")
        server = self.serve()
        array = tessera.dask.from_tsr(server.url)
        np.testing.assert_array_equal(array[2, 10:20].compute(), self.volume[2, 10:20])
        needed = self.index.to_open() + self.index.of_frame(2, self.touched(10, 20))
        self.assertLessEqual(server.sent, self.bound(needed, 5))
        file = fsspec.open(server.url).open()
        np.testing.assert_array_equal(tessera.dask.from_tsr(file)[0, 5].compute(), self.volume[0, 5])


def samples(state: int) -> np.ndarray:
    """Of two states, whose files have the same size."""
    values = np.random.default_rng(1).integers(0, 1 << 12, (4, 300, 400), np.uint16)
    return values ^ np.uint16(state)


def pgm(values: np.ndarray) -> bytes:
    """Frames below each other, as one image."""
    return b"P5\n%d %d\n65535\n" % (values.shape[2], values.shape[0] * values.shape[1]) + values.astype(">u2").tobytes()


def series(folder: Path, values: np.ndarray) -> bytes:
    """A file for each frame."""
    folder.mkdir()
    for i, frame in enumerate(values):
        (folder / f"{i}.pgm").write_bytes(pgm(frame[None]))
    out = folder.with_suffix(".tsr")
    subprocess.run([PROGRAM, "compress", "-q", "-r", "--series", out, folder], check=True)
    return out.read_bytes()


def parts(reader: tessera.Reader):
    """All that a reader tells of its samples, in small parts: keys and calls."""
    if reader.is_series:
        for i in range(len(reader.members)):
            yield i, lambda i=i: reader.members[i][0]
        yield "all", lambda: np.frombuffer(reader.members[0].original()[-240000:], ">u2").reshape(300, 400)
        return
    rows = reader.image.rows
    for frame in range(reader.frames):
        for row in range(0, rows, 100):
            yield (frame, row), lambda frame=frame, row=row: reader[frame, row : row + 100]
    yield "bytes", lambda: np.frombuffer(reader.original()[-240000:], np.uint8)


@unittest.skipUnless(aiohttp, "fsspec and aiohttp are not installed")
class ChangeTest(Case):
    """An object that changes while it is read: what is read is of one state of it, or an error that says so."""

    @classmethod
    def setUpClass(cls) -> None:
        values = samples(0), samples(1)
        with tempfile.TemporaryDirectory(prefix="tessera-python-") as folder:
            members = [series(Path(folder) / f"{i}", one) for i, one in enumerate(values)]
        cls.pairs = {
            "tsr": [tessera.compress(one, 1, verify="none") for one in values],
            "pgm": [pgm(one) for one in values],
            "series": members,
            "text": [one.tobytes() for one in values],
        }
        assert all(len(pair[0]) == len(pair[1]) for kind, pair in cls.pairs.items() if kind != "series")
        cls.wanted = {}
        for kind in ("tsr", "pgm", "series"):
            for state, data in enumerate(cls.pairs[kind]):
                with tessera.open(data) as reader:
                    cls.wanted[kind, state] = {key: call() for key, call in parts(reader)}

    def read(self, kind: str, source: object) -> set[int]:
        """Reads all of a source. Which states its parts are of; -1: some are errors, which must say why."""
        states = set()
        try:
            with tessera.open(source) as reader:
                for key, call in parts(reader):
                    states.add(self.take(kind, key, call))
        except TesseraError as error:
            states.add(self.check(error))
        return states

    def take(self, kind: str, key: object, call) -> int:
        try:
            values = call()
        except TesseraError as error:
            return self.check(error)
        same = [state for state in (0, 1) if np.array_equal(values, self.wanted[kind, state][key])]
        self.assertEqual(len(same), 1, f"{kind}: {key} is of neither state")
        return same[0]

    def check(self, error: TesseraError) -> int:
        self.assertEqual(error.status, tessera.Status.READ)
        self.assertRegex(error.text, "changed while it was read$")
        self.assertTrue(error.path)
        return -1

    def serve(self, kind: str, tells: str) -> Server:
        return self.enterContext(Server(self.pairs[kind][0], tells=tells))

    def test_a_reader_that_is_open(self) -> None:
        for tells in TELLS:
            for kind in ("tsr", "pgm", "series"):
                with self.subTest(tells=tells, kind=kind):
                    server = self.serve(kind, tells)
                    with tessera.open(server.url) as reader:
                        calls = list(parts(reader))
                        self.assertEqual(self.take(kind, *calls[0]), 0)
                        server.replace(self.pairs[kind][1])
                        states = {self.take(kind, key, call) for key, call in calls}
                        self.assertLessEqual(states, {0, -1})
                        if tells in CERTAIN or kind != "pgm":  # else all of it was read at first
                            self.assertIn(-1, states)
                    self.assertEqual(self.read(kind, server.url), {1})

    def test_a_change_at_each_request(self) -> None:
        seen = set()
        for tells in TELLS:
            for kind in ("tsr", "pgm", "series"):
                for at in (1, 2, 3, 4, 5, 6, 8, 11, 60):
                    with self.subTest(tells=tells, kind=kind, at=at):
                        server = self.serve(kind, tells)
                        server.next, server.switches_at = self.pairs[kind][1], at
                        states = self.read(kind, server.url)
                        self.assertLess(len(states - {-1}), 2, "two states in one reader")
                        seen |= {(kind, state) for state in states}
        self.assertEqual(seen, {(kind, state) for kind in ("tsr", "pgm", "series") for state in (0, 1, -1)})

    def test_files_that_the_caller_has_opened(self) -> None:
        for kind in ("tsr", "pgm", "series"):
            for tells in TELLS:
                with self.subTest(kind=kind, tells=tells):
                    server = self.serve(kind, tells)
                    with fsspec.open(server.url, block_size=1 << 20) as file:
                        file.read(100)  # is kept there
                        server.replace(self.pairs[kind][1])
                        self.assertIn(self.read(kind, file), ({1}, {-1}))
                        self.assertEqual(file.tell(), 100)

    def test_compress_and_restore(self) -> None:
        for tells in TELLS:
            for at in range(1, 8):
                for call, kind, wanted in ((tessera.compress, "text", None), (tessera.decompress, "tsr", None)):
                    with self.subTest(tells=tells, at=at, kind=kind):
                        server = self.serve(kind, tells)
                        server.next, server.switches_at = self.pairs[kind][1], at
                        try:
                            made = call(server.url)
                        except TesseraError as error:
                            if kind == "text" or tells in CERTAIN:
                                self.check(error)
                            continue
                        back = tessera.decompress(made) if kind == "text" else made
                        self.assertIn(back, [values.astype("<u2").tobytes() for values in (samples(0), samples(1))])

    def test_another_size(self) -> None:
        for tells in TELLS:
            for other in (b"P5 1 1 255\n0", self.pairs["pgm"][1] + b"0"):
                server = self.serve("pgm", tells)
                with tessera.open(server.url) as reader:
                    server.replace(other)
                    states = {self.take("pgm", key, call) for key, call in parts(reader)}
                self.assertLessEqual(states, {0, -1})
                server = self.serve("pgm", tells)
                server.next, server.switches_at = other, 2  # after HEAD has told a size
                try:
                    with tessera.open(server.url) as reader:
                        self.assertEqual(reader.original(), other)
                except TesseraError as error:
                    self.check(error)

    def test_what_is_replaced_by_no_tsr(self) -> None:
        for tells in TELLS:
            server = self.serve("tsr", tells)
            with tessera.open(server.url) as reader:
                server.replace(bytes(len(server.data)))
                states = {self.take("tsr", key, call) for key, call in parts(reader)}
            self.assertLessEqual(states, {0, -1})
            self.assertIn(-1, states)

    def test_damage_is_no_change(self) -> None:
        damaged = bytearray(self.pairs["tsr"][0])
        damaged[len(damaged) // 2] ^= 1
        for tells in TELLS:
            server = self.enterContext(Server(bytes(damaged), tells=tells))
            with tessera.open(server.url) as reader, self.assertRaises(TesseraError) as caught:
                reader[:]
            self.assertEqual(caught.exception.status, tessera.Status.CORRUPT)

    def test_dask(self) -> None:
        try:
            import tessera.dask
        except ImportError:
            self.skipTest("dask is not installed")
        for tells in TELLS:
            for kind in ("tsr", "pgm"):
                with self.subTest(tells=tells, kind=kind):
                    server = self.serve(kind, tells)
                    array = tessera.dask.from_tsr(server.url, chunks=(1, 100, 400))
                    wanted = [np.concatenate([frame for frame in samples(state)]).reshape(array.shape) for state in (0, 1)]
                    np.testing.assert_array_equal(array[0, :100].compute(), wanted[0][0, :100])
                    server.replace(self.pairs[kind][1])
                    for start in range(0, array.shape[1], 100):  # each part is of the old state, or an error
                        try:
                            values = array[-1, start : start + 100].compute(scheduler="sync")
                        except TesseraError as error:
                            self.assertIn("it changed", error.text)
                            continue
                        np.testing.assert_array_equal(values, wanted[0][-1, start : start + 100])
                    again = tessera.dask.from_tsr(server.url)
                    np.testing.assert_array_equal(again.compute(), wanted[1])

    def test_file_systems(self) -> None:
        """Files of other systems: what these say of an object is compared."""
        for tells in ("ETag", "mtime", "nothing", "itself"):
            for kind in ("tsr", "pgm", "series"):
                for at in (1, 2, 3, 4, 5, 6, 8, 11):
                    with self.subTest(tells=tells, kind=kind, at=at):
                        filesystem = Store(self.pairs[kind], tells, at)
                        states = self.read(kind, OpenFile(filesystem, "a"))
                        self.assertLess(len(states - {-1}), 2, "two states in one reader")
                with self.subTest(tells=tells, kind=kind):
                    filesystem = Store(self.pairs[kind], tells, 0)
                    file = filesystem.open("a")
                    self.assertEqual(self.read(kind, file), {0})
                    file.seek(0)
                    file.read(100)  # is kept there
                    filesystem.now = 1
                    self.assertIn(self.read(kind, file), ({1}, {-1}))

    def test_memory_and_local_files(self) -> None:
        for kind in ("tsr", "pgm", "series"):
            old, new = self.pairs[kind]
            path = self.folder / f"x.{kind}"
            for url in (f"memory://{path.name}", f"file://{path}"):
                for changes in (lambda file: file.write(new), lambda file: (file.seek(0), file.truncate(0), file.write(new))):
                    with self.subTest(url=url):
                        with fsspec.open(url, "wb") as file:
                            file.write(old)
                        with tessera.open(url) as reader:
                            calls = list(parts(reader))
                            self.assertEqual(self.take(kind, *calls[-1]), 0)
                            time.sleep(0.02)  # times of files may be coarse
                            with fsspec.open(url, "r+b") as file:
                                changes(file)
                            states = {self.take(kind, key, call) for key, call in calls}
                            self.assertLessEqual(states, {0, -1})
                        self.assertEqual(self.read(kind, url), {1})


class OpenFile:
    """As fsspec.core.OpenFile."""

    def __init__(self, fs: object, path: str) -> None:
        self.fs, self.path, self.compression = fs, path, None


if aiohttp:

    class Store(fsspec.AbstractFileSystem):
        """An object of two states, the second of which takes its place before a read of this number."""

        cachable = False

        def __init__(self, states: list[bytes], tells: str, switches_at: int) -> None:
            super().__init__()
            self.states, self.tells, self.switches_at, self.now = states, tells, switches_at, 0

        def step(self) -> None:
            self.switches_at -= 1
            self.now |= self.switches_at == 0

        def info(self, path: str, **options: object) -> dict[str, object]:
            told = {"mtime": {"mtime": float(self.now)}, "nothing": {}}.get(self.tells, {"ETag": str(self.now)})
            return {"name": path, "size": len(self.states[self.now]), "type": "file", **told}

        def _open(self, path: str, mode: str = "rb", **options: object) -> fsspec.spec.AbstractBufferedFile:
            return StoredFile(self, path, mode, **{key: options[key] for key in options if key == "block_size"})

    class StoredFile(fsspec.spec.AbstractBufferedFile):
        def __init__(self, fs: Store, *arguments: object, **options: object) -> None:
            self.state = fs.now
            super().__init__(fs, *arguments, **options)

        def _fetch_range(self, start: int, end: int) -> bytes:
            self.fs.step()
            if self.fs.tells == "itself" and self.fs.now != self.state:
                raise OSError("it is another one")
            return self.fs.states[self.fs.now][start:end]


class PathTest(Case):
    def test_what_is_a_url(self) -> None:
        for url in ("https://a/b.tsr", "s3://a/b", "simplecache::https://a/b", "file:///a"):
            self.assertTrue(_remote.is_url(url), url)
        for path in ("a.tsr", "/a/b", "a:/b", "./http://a", "a b://c", b"https://a"):
            self.assertFalse(_remote.is_url(path), path)

    @unittest.skipUnless(aiohttp, "fsspec and aiohttp are not installed")
    def test_other_file_systems(self) -> None:
        data = tessera.compress(np.zeros((2, 30, 40), np.uint16))
        with fsspec.open("memory://a.tsr", "wb") as file:
            file.write(data)
        path = self.folder / "a.tsr"
        path.write_bytes(data)
        for source in ("memory://a.tsr", f"file://{path}", fsspec.open(str(path)), io.BytesIO(data)):
            with tessera.open(source) as reader:
                self.assertEqual(reader[1].sum(), 0)
