"""Sources and sinks of the library, made of what Python programs hold."""

from __future__ import annotations

import ctypes
import io
import os
import re
import stat
import threading
import weakref
from typing import Any, Protocol, Union, runtime_checkable

import numpy as np

from . import _native


@runtime_checkable
class ReadableFile(Protocol):
    """A file object that is open for reading bytes."""

    def read(self, count: int = ..., /) -> bytes: ...


Data = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, ReadableFile]


_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://")

#: What is read beyond a request of a remote file: the small reads of headers and indices, which lie side by side, become
#: one request each, and a tile costs little more than its own bytes.
READ_AHEAD_BYTES = 1 << 16


def is_url(data: object) -> bool:
    return isinstance(data, str) and _URL.match(data) is not None


def is_remote(data: object) -> bool:
    """Whether this names a file of fsspec: an OpenFile, for example, which is a os.PathLike, too."""
    return hasattr(data, "fs") and hasattr(data, "path") and not hasattr(data, "read")


def _ask_fsspec(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(f"reading {url} needs fsspec, and of http aiohttp: python3 -m pip install fsspec aiohttp") from error
    filesystem, path = fsspec.core.url_to_fs(url)
    return filesystem, str(path)


def open_remote(data: Any) -> Any:
    """A URL or a file of fsspec as a file object whose cache suits reading tiles."""
    if getattr(data, "compression", None):
        return data.open()
    filesystem, path = (data.fs, data.path) if is_remote(data) else _ask_fsspec(data)
    file = filesystem.open(path, "rb", block_size=READ_AHEAD_BYTES, cache_type="readahead")
    try:
        file.seek(max(file.seek(0, os.SEEK_END) - READ_AHEAD_BYTES, 0))
        file.read(1)  # the footer and a short index are read ahead
    except ValueError:  # it is a stream; or the server sends no ranges
        file.close()
        return io.BytesIO(filesystem.cat_file(path))
    return file


def take_bytes(address: int | None, count: int) -> bytes:
    """A copy of count bytes; ctypes.string_at takes at most 2^31 - 1."""
    return (ctypes.c_char * count).from_address(address).raw if address and count else b""


def path_bytes(path: str | os.PathLike[str]) -> bytes:
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("a path contains a byte of 0")
    return name


_locks: weakref.WeakKeyDictionary[Any, threading.Lock] = weakref.WeakKeyDictionary()
_locks_lock = threading.Lock()


def _lock_of(file: Any) -> threading.Lock:
    """What guards a file object's position: sources of the same object share it."""
    try:
        with _locks_lock:
            return _locks.setdefault(file, threading.Lock())
    except TypeError:  # it has no hash or no weak references
        return threading.Lock()


def view_bytes(data: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of a buffer; a copy of them where they do not lie in one piece."""
    view = memoryview(data)
    if not view.nbytes:
        return np.zeros(0, np.uint8)
    return np.frombuffer(data if view.c_contiguous else view.tobytes(), np.uint8)


class Source:
    """A tsr_data_source and all that it points to."""

    def __init__(self, data: Data) -> None:
        self.native = _native.sized(_native.tsr_data_source)
        self.name: str | None = None
        self.raised: BaseException | None = None
        self._kept: list[Any] = []
        self._descriptor = -1
        self._remote: Any = None
        if is_url(data) or is_remote(data):
            self.name = data if isinstance(data, str) else getattr(data, "full_name", data.path)  # type: ignore[union-attr]
            self._remote = open_remote(data)
            self._from_calls(self._remote)
        elif isinstance(data, (str, os.PathLike)):
            self._from_path(data)
        elif isinstance(data, (bytes, bytearray, memoryview)):
            self._from_memory(data)
        elif hasattr(data, "read"):
            self._from_file(data)
        else:
            raise TypeError(f"a path, bytes or a file object is expected, not {type(data).__name__}")

    def _from_path(self, path: str | os.PathLike[str]) -> None:
        self.native.medium = _native.MEDIUM_PATH
        self.native.path = path_bytes(path)
        self.name = os.fsdecode(path)

    def _from_memory(self, data: Any) -> None:
        self.set_array(view_bytes(data))

    def set_array(self, array: np.ndarray[Any, Any]) -> None:
        self._kept.append(array)
        self.native.medium = _native.MEDIUM_MEMORY
        self.native.memory = array.ctypes.data
        self.native.byte_count = array.nbytes

    def set_raster(self, image: _native.tsr_image) -> None:
        self._kept.append(image)
        self.native.raster = ctypes.pointer(image)

    def _from_file(self, file: Any) -> None:
        name = getattr(file, "name", None)
        if isinstance(name, (str, bytes)):
            self.name = os.fsdecode(name)
            self._kept.append(os.fsencode(name))
            self.native.name = self._kept[-1]
        raw = file.raw if isinstance(file, io.BufferedReader) else file
        if isinstance(raw, io.FileIO) and raw.readable() and stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
            self._descriptor = os.dup(raw.fileno())
            self.native.medium = _native.MEDIUM_DESCRIPTOR
            self.native.descriptor = self._descriptor
        elif hasattr(file, "seekable") and file.seekable():
            self._from_calls(file)
        else:
            self._from_memory(file.read())

    def _from_calls(self, file: Any) -> None:
        lock = _lock_of(file)
        with lock:
            file.seek(0, os.SEEK_END)
            count = file.tell()

        def read(_context: int, offset: int, target: int, wanted: int) -> int:
            try:
                with lock:
                    file.seek(offset)
                    got = file.read(wanted)
                if not 0 < len(got) <= wanted:
                    raise EOFError(f"{len(got)} bytes instead of {wanted} at byte {offset}")
                ctypes.memmove(target, bytes(got), len(got))
                return len(got)
            except BaseException as raised:  # noqa: BLE001: no exception can pass through the library
                self.raised = raised
                return -1

        self.native.medium = _native.MEDIUM_CALLS
        self.native.byte_count = count
        self.native.read = _native.ReadCall(read)
        self._kept.append(file)

    def close(self) -> None:
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        if self._remote is not None:
            self._remote.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.close()


class MemorySink:
    """A tsr_data_sink that collects bytes."""

    def __init__(self) -> None:
        self.buffer = _native.tsr_buffer()
        self.native = _native.sized(_native.tsr_data_sink)
        self.native.medium = _native.MEDIUM_MEMORY
        self.native.buffer = ctypes.pointer(self.buffer)

    def take(self) -> bytes:
        """The bytes; the library's copy of them is freed."""
        try:
            return take_bytes(self.buffer.bytes, self.buffer.count)
        finally:
            _native.library.tsr_buffer_free(ctypes.byref(self.buffer))


class CompareSink:
    """A tsr_data_sink that compares what is written with a file."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb")
        self._differs = False

        def write(_context: int, source: int, count: int) -> int:
            try:
                self._differs |= self._file.read(count) != take_bytes(source, count)
                return count
            except BaseException:  # noqa: BLE001: no exception can pass through the library
                return -1

        self.native = _native.sized(_native.tsr_data_sink)
        self.native.medium = _native.MEDIUM_CALLS
        self.native.write = _native.WriteCall(write)
        self.native.temporary = os.fsencode(os.path.dirname(path) or ".")

    def finish(self) -> bool:
        """Whether the file has what was written, and no more."""
        with self._file:
            return not self._differs and not self._file.read(1)


def sink_to_path(
    path: str | os.PathLike[str], overwrite: bool, syncs_later: bool = False
) -> _native.tsr_data_sink:
    sink = _native.sized(_native.tsr_data_sink)
    sink.medium = _native.MEDIUM_PATH
    sink.path = path_bytes(path)
    sink.overwrite = overwrite
    sink.syncs_later = syncs_later
    return sink
