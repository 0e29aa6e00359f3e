"""Files of fsspec: read by ranges that are all of one state of the object. Where it changes meanwhile, that is an error."""

from __future__ import annotations

import contextlib
import email.utils
import io
import os
import re
import threading
import weakref
from dataclasses import dataclass
from typing import Any

from ._errors import ChangedError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(::[A-Za-z][A-Za-z0-9+.-]*)*://")

#: What is read beyond a request of a remote file: the small reads of headers and indices, which lie side by side, become
#: one request each, and a tile costs little more than its own bytes.
READ_AHEAD_BYTES = 1 << 16

#: The first bytes of a .tsr (FORMAT.md 3). Its sections are bound to each other, so that none of another file is taken.
_SIGNATURE = b"\x89TSR"
_HEAD_BYTES = 1 << 11

#: Names, in lower case, of what file systems say of an object that is another one when the object is.
_STATE = frozenset(
    "checksum content-md5 content_md5 crc32c created digest e_tag etag generation ino inode last-modified last_modified "
    "lastmodified md5 md5hash modified mtime sha updated version_id versionid".split()
)

State = tuple[tuple[str, str], ...]


def is_url(data: object) -> bool:
    return isinstance(data, str) and _URL.match(data) is not None


def is_remote(data: object) -> bool:
    """Whether this names a file of fsspec: an OpenFile, for example, which is a os.PathLike, too."""
    return hasattr(data, "fs") and hasattr(data, "path") and not hasattr(data, "read")


@dataclass(frozen=True)
class Place:
    """A file of fsspec, which is not open."""

    fs: Any
    path: str

    def __fspath__(self) -> str:
        return self.path


def find(data: Any) -> tuple[Any, str]:
    """The file system and the path of a URL or a file of fsspec."""
    if not isinstance(data, str):
        return data.fs, data.path
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(f"reading {data} needs fsspec, and of http aiohttp: python3 -m pip install fsspec aiohttp") from error
    filesystem, path = fsspec.core.url_to_fs(data)
    return filesystem, str(path)


def _state_in(info: Any) -> State:
    """What a file system says of an object that changes with it; empty: nothing but perhaps its size."""
    told = sorted((name, str(value)) for name, value in info.items() if name.lower() in _STATE and value is not None)
    return (*told, ("size", str(info.get("size")))) if told else ()


def _differ(one: State, other: State) -> bool:
    """Whether states cannot be the same; a listing may say less of an object than a look at it."""
    first, second = dict(one), dict(other)
    return any(first[name] != second[name] for name in first.keys() & second.keys())


_locks: weakref.WeakKeyDictionary[Any, threading.Lock] = weakref.WeakKeyDictionary()
_locks_lock = threading.Lock()


def lock_of(file: Any) -> threading.Lock:
    """What guards a file object's position: all that read the same object share it."""
    try:
        with _locks_lock:
            return _locks.setdefault(file, threading.Lock())
    except TypeError:  # it has no hash or no weak references
        return threading.Lock()


class Ranges:
    """An object that is read by ranges. After each, the file system must say of it what it said at first."""

    def __init__(self, file: Any, filesystem: Any, path: str) -> None:
        self._file, self._filesystem, self._path = file, filesystem, path
        self._lock = threading.Lock()
        self._windows: list[tuple[int, bytes]] = []
        self._has_changed = False
        self.size: int = file.size if getattr(file, "size", None) is not None else file.seek(0, os.SEEK_END)
        self.state: State = ()
        self.is_certain = False  #: a change is always seen
        self._begin()
        #: The first bytes, with the header of a .tsr, as they were read first.
        self.head = b"" if self.is_certain else self.read_at(0, min(_HEAD_BYTES, self.size))

    def _begin(self) -> None:
        details = getattr(self._file, "details", None)
        self.state = _state_in(details) if isinstance(details, dict) else ()
        self.state = self.state or self._look()
        self.is_certain = bool(self.state)
        if _differ(self.state, (("size", str(self.size)),)):
            raise ChangedError

    def _look(self) -> State:
        """The state now, which no listing of an earlier time tells."""
        self._filesystem.invalidate_cache(self._path)
        return _state_in(self._filesystem.info(self._path))

    def _check(self) -> None:
        if self.state and _differ(self.state, self._look()):
            raise ChangedError

    def _fetch(self, start: int, end: int) -> bytes:
        try:
            if hasattr(self._file, "_fetch_range"):  # beside the file's own cache, which may be older
                data: bytes = self._file._fetch_range(start, end)
            else:
                with lock_of(self._file):
                    self._file.seek(start)
                    data = self._file.read(end - start)
        except Exception:
            self._check()  # some file systems notice a change, each in other words
            raise
        self._check()
        return data

    def _extend(self, start: int, end: int) -> bytes:
        """Reads what is in no window to a new one. The last two are kept: a file's beginning and its end are read in
        turns."""
        if self._has_changed:
            raise ChangedError
        try:
            data = self._fetch(start, end)
        except ChangedError:
            self._has_changed = True
            raise
        if len(data) != end - start:
            raise EOFError(f"{len(data)} bytes instead of {end - start} at byte {start}")
        self._windows = [(start, data), *self._windows[:1]]
        return data

    def read_at(self, offset: int, count: int) -> bytes:
        """Bytes from an offset on; there must be so many."""
        with self._lock:
            part = b""
            for start, data in self._windows:
                if start <= offset < start + len(data):
                    part = data[offset - start : offset - start + count]
                    break
            rest = count - len(part)
            if rest:
                first = offset + len(part)
                part += self._extend(first, min(first + rest + READ_AHEAD_BYTES, self.size))[:rest]
            return part

    def close(self) -> None:
        self._file.close()


class _HttpRanges(Ranges):
    """By HTTP each answer says which state its bytes are of, which files of fsspec do not tell."""

    def _begin(self) -> None:
        self._is_begun = False
        self.read_at(max(self.size - READ_AHEAD_BYTES, 0), 1)  # the footer and a short index

    def _fetch(self, start: int, end: int) -> bytes:
        from fsspec.asyn import sync

        data: bytes = sync(self._file.loop, self._get, start, end)
        return data

    async def _get(self, start: int, end: int) -> bytes:
        options = dict(self._file.kwargs)
        headers = {**options.pop("headers", {}), "Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"}
        url = self._filesystem.encode_url(self._file.url)
        async with self._file.session.get(url, headers=headers, **options) as answer:
            if answer.status == 416:  # it is shorter now
                raise ChangedError
            answer.raise_for_status()
            if answer.status != 206 and (start > 0 or end < self.size):
                raise ChangedError if self._is_begun else ValueError("the server sends no ranges")
            self._take_state(answer.headers)
            data: bytes = await answer.read()
            return data

    def _take_state(self, headers: Any) -> None:
        """The state of an answer, which must be that of the first one."""
        told = tuple((name, headers[name]) for name in ("ETag", "Last-Modified") if name in headers)
        whole = headers.get("Content-Range", "/").rpartition("/")[2] or headers.get("Content-Length", "")
        if whole.isdigit() and int(whole) != self.size:
            raise ChangedError
        if self._is_begun and told != self.state:
            raise ChangedError
        if not self._is_begun:
            self.state, self.is_certain, self._is_begun = told, _is_strong(headers), True


def _is_strong(headers: Any) -> bool:
    """Whether no two states of an object have the same headers: RFC 9110, 8.8.2.2 and 8.8.3."""
    if headers.get("ETag", "").startswith('"'):
        return True
    with contextlib.suppress(KeyError, TypeError, ValueError):
        modified, sent = (email.utils.parsedate_to_datetime(headers[name]) for name in ("Last-Modified", "Date"))
        return (sent - modified).total_seconds() >= 1
    return False


def _is_instance(file: Any, module: str, name: str) -> bool:
    """Whether a file is of a class of fsspec, which need not be installed."""
    return any(kind.__module__ == f"fsspec.implementations.{module}" and kind.__name__ == name for kind in type(file).__mro__)


def is_local(file: Any) -> bool:
    """Whether a file of fsspec is one of the system's, in its attribute f."""
    return _is_instance(file, "local", "LocalFileOpener") and not file.compression


def is_opened(file: Any) -> bool:
    """Whether a file object is one of fsspec."""
    return hasattr(file, "fs") and hasattr(file, "path") and hasattr(file.fs, "info")


def open_remote(data: Any) -> Any:
    """A URL or a file of fsspec as `narrow` has it. What is compressed is read at once, which checks it."""
    if getattr(data, "compression", None):
        with data.open() as file:
            return file.read()
    filesystem, path = find(data)
    file = filesystem.open(path, "rb", block_size=READ_AHEAD_BYTES, cache_type="readahead")
    found = narrow(file, filesystem, path)
    if isinstance(found, bytes):
        file.close()
    return found


def narrow(file: Any, filesystem: Any, path: str) -> Any:
    """What is read of an open file of fsspec: ranges, a file of the system, or all of its bytes.

    All bytes are read by one request where the server sends no ranges, and where a change could pass unseen: where
    neither the file system tells of it nor the file is a .tsr.
    """
    if is_local(file) or isinstance(file, io.BufferedReader):
        return file
    if isinstance(file, io.BytesIO):  # of a file system in memory
        return file.getvalue()
    kind = _HttpRanges if _is_instance(file, "http", "HTTPFile") else Ranges
    if file.seekable() and not _is_instance(file, "http", "HTTPStreamFile"):
        with contextlib.suppress(ValueError):
            ranges = kind(file, filesystem, path)
            if ranges.is_certain or ranges.head.startswith(_SIGNATURE):
                return ranges
    return bytes(filesystem.cat_file(path))
