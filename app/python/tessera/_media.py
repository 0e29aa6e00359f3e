"""Sources and sinks of the library, made of what Python programs hold."""

from __future__ import annotations

import ctypes
import hashlib
import io
import os
import stat
from collections.abc import Callable
from typing import Any, Protocol, Union, runtime_checkable

import numpy as np

from . import _native, _remote
from ._errors import ChangedError, Status, TesseraError


@runtime_checkable
class ReadableFile(Protocol):
    """A file object that is open for reading bytes."""

    def read(self, count: int = ..., /) -> bytes: ...


Data = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, ReadableFile]


def take_bytes(address: int | None, count: int) -> bytes:
    """A copy of count bytes; ctypes.string_at takes at most 2^31 - 1."""
    return (ctypes.c_char * count).from_address(address).raw if address and count else b""


def path_bytes(path: str | os.PathLike[str]) -> bytes:
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("a path contains a byte of 0")
    return name


def view_bytes(data: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of a buffer; a copy of them where they do not lie in one piece."""
    view = memoryview(data)
    if not view.nbytes:
        return np.zeros(0, np.uint8)
    return np.frombuffer(data if view.c_contiguous else view.tobytes(), np.uint8)


def place(data: Any) -> Any:
    """What the data can be opened from again, in another process, too; None: a file object cannot."""
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    if hasattr(data, "read"):
        return _remote.Place(data.fs, data.path) if hasattr(data, "fs") and hasattr(data, "path") else None
    if _remote.is_url(data) or _remote.is_remote(data):
        return data
    return os.path.join(os.getcwd(), os.fsdecode(data))


class Source:
    """A tsr_data_source and all that it points to."""

    def __init__(self, data: Data) -> None:
        self.native = _native.sized(_native.tsr_data_source)
        self.name: str | None = None
        self.raised: BaseException | None = None
        #: The image that the bytes are a raster of. None: they are a file.
        self.raster: _native.tsr_image | None = None
        self._kept: list[Any] = []
        self._descriptor = -1
        #: An object that was opened here. Else None.
        self._remote: Any = None
        #: What is read of a file of fsspec; of all its bytes, the hash alone once it was asked for.
        self._found: Any = None
        #: Whether another object may take the place of this .tsr unseen, until a part of it does not fit; and then its
        #: first bytes, as they were read first.
        self.is_replaceable, self.head = False, b""
        if _remote.is_url(data) or _remote.is_remote(data):
            self.name = data if isinstance(data, str) else getattr(data, "full_name", data.path)  # type: ignore[union-attr]
            self._from_remote(data)
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
        self.raster = image

    def _from_remote(self, data: Any) -> None:
        try:
            found = _remote.open_remote(data)
        except ChangedError as error:
            raise TesseraError(str(error), Status.READ, self.name) from error
        self._from_found(found)
        if not isinstance(found, bytes):
            self._remote = found

    def _from_found(self, found: Any) -> None:
        """What stands for a file of fsspec."""
        self._found = found
        if isinstance(found, bytes):
            self._from_memory(found)
        elif isinstance(found, _remote.Ranges):
            self.is_replaceable, self.head = not found.is_certain, found.head
            self._from_calls(found, found.read_at, found.size)
        else:
            self._from_raw(found)

    def _from_file(self, file: Any) -> None:
        name = getattr(file, "name", None)
        if isinstance(name, (str, bytes)):
            self.name = os.fsdecode(name)
            self._kept.append(os.fsencode(name))
            self.native.name = self._kept[-1]
        if _remote.is_opened(file):
            self.name = self.name or str(file.path)
            try:
                self._from_found(_remote.narrow(file, file.fs, file.path))
            except ChangedError as error:
                raise TesseraError(str(error), Status.READ, self.name) from error
        else:
            self._from_raw(file)

    def _from_raw(self, file: Any) -> None:
        file = file.f if _remote.is_local(file) else file
        raw = file.raw if isinstance(file, io.BufferedReader) else file
        if isinstance(raw, io.FileIO) and raw.readable() and stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
            self._descriptor = os.dup(raw.fileno())
            self.native.medium = _native.MEDIUM_DESCRIPTOR
            self.native.descriptor = self._descriptor
        elif hasattr(file, "seekable") and file.seekable():
            self._from_seekable(file)
        else:
            self._from_memory(file.read())

    def _from_seekable(self, file: Any) -> None:
        lock = _remote.lock_of(file)
        with lock:
            file.seek(0, os.SEEK_END)
            count = file.tell()

        def read_at(offset: int, wanted: int) -> Any:
            with lock:
                file.seek(offset)
                return file.read(wanted)

        self._from_calls(file, read_at, count)

    def _from_calls(self, file: Any, read_at: Callable[[int, int], Any], count: int) -> None:
        def read(_context: int, offset: int, target: int, wanted: int) -> int:
            try:
                got = read_at(offset, wanted)
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

    @property
    def is_local(self) -> bool:
        """Whether it is a file of the operating system."""
        return self.native.medium in (_native.MEDIUM_PATH, _native.MEDIUM_DESCRIPTOR)

    def state(self) -> tuple[Any, ...]:
        """What is told of a source that changes with it; of a path, of the file that it leads to now."""
        if self.is_local:
            is_path = self.native.medium == _native.MEDIUM_PATH
            status = os.stat(os.fsdecode(self.native.path)) if is_path else os.fstat(self._descriptor)
            return status.st_size, status.st_mtime_ns
        if isinstance(self._found, _remote.Ranges):
            return self._found.state
        if isinstance(self._found, bytes):
            self._found = hashlib.sha256(self._found).hexdigest()
        return (self._found,)

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
