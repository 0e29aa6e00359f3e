"""Reading by HTTP: only what is touched travels. The bounds come from the file's index (io/FORMAT.md 3)."""

import http.server
import io
import re
import threading
import unittest

import numpy as np
import tessera
from data import Case
from tessera import TesseraError, _media

try:
    import aiohttp
    import fsspec
    import fsspec.implementations.http
except ImportError:
    aiohttp = None


class Server(http.server.ThreadingHTTPServer):
    """Serves one file, by ranges unless told otherwise, and counts requests and the bytes of their bodies."""

    def __init__(self, data: bytes, has_ranges: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.data, self.has_ranges, self.sent, self.requests = data, has_ranges, 0, 0
        self.url = f"http://127.0.0.1:{self.server_port}/file.tsr"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def count(self, byte_count: int) -> None:
        self.sent += byte_count
        self.requests += 1

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> bytes:
        data, asked = self.server.data, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked and self.server.has_ranges:
            first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
            data = data[first : last + 1]
        else:
            self.send_response(200 if self.path == "/file.tsr" else 404)
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
    """A number of FORMAT.md 2.2, and where it ends."""
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
        return needed + places * _media.READ_AHEAD_BYTES

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
            self.assertGreaterEqual(server.sent - before[0], self.index.of_frame(2) - _media.READ_AHEAD_BYTES)
            np.testing.assert_array_equal(reader[4, 500:510, 20:30], self.volume[4, 500:510, 20:30])
            bound += self.bound(self.index.of_frame(4, self.touched(500, 510)), 2)  # the frame's model; its tiles
            self.assertLessEqual(server.sent, bound)
            np.testing.assert_array_equal(reader[0, 400:700, 5], self.volume[0, 400:700, 5])
            bound += self.bound(self.index.of_frame(0, self.touched(400, 700)), 2)
            self.assertLessEqual(server.sent, bound)
        self.assertLess(bound, len(self.data) / 2)

    def touched(self, top: int, end: int) -> set[int]:
        """Tiles of these rows: a tile has whole rows, and all tiles but the last one the same number of them."""
        tiles = 1 + max(tile for _, _, frame, tile in self.index.sections if frame == 0)
        rows = -(-1000 // tiles)
        return set(range(top // rows, (end - 1) // rows + 1))

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
        options = {"cache_type": "readahead", "block_size": _media.READ_AHEAD_BYTES}
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


class PathTest(Case):
    def test_what_is_a_url(self) -> None:
        for url in ("https://a/b.tsr", "s3://a/b", "simplecache::https://a/b", "file:///a"):
            self.assertTrue(_media.is_url(url), url)
        for path in ("a.tsr", "/a/b", "a:/b", "./http://a", "a b://c", b"https://a"):
            self.assertFalse(_media.is_url(path), path)

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
