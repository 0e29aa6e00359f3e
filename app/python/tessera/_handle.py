"""What readers hold: a native reader, its source and its use of an engine."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

from . import _native
from ._engine import Engine, Holder, resolve
from ._errors import ChangedError, Status, TesseraError, check
from ._media import Data, Source, place
from ._secret import Key, set_key

_library = _native.library


class Handle(Holder):
    """A native reader with its source and its use of an engine, which end together when no call uses them.

    It is pickled as what it was opened from, and opened again where it is unpickled; in a child of os.fork it opens
    itself again when it is used. Both want the same state of what is read.
    """

    # As in Engine, sets and lists are used for their atomic operations.

    #: Whether the base is read of a .tsr that has one.
    _base = False
    #: Of an encrypted .tsr.
    _key: Key | None = None

    def __init__(
        self, data: Data, engine: Engine | str | None, base: bool = False, key: Key | None = None
    ) -> None:
        self._data = data
        self._key = key
        self._base = base
        self._wanted = engine
        self._is_closed = False
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self.source = self._make_source()
        self._uses = set()
        self._handles = []
        self._engine = resolve(self._wanted)
        use, engine_handle = self._engine._begin_use()
        status, error = self._open(engine_handle)
        if self.source.is_replaceable and status in (Status.OK, Status.READ, Status.CORRUPT) and not self._is_one():
            status, error = self._open_again(engine_handle)
        if not self._handles:
            self._engine._end_use(use)
            self.source.close()
            check(status, error, self.source.name, self.source.raised)
            raise TesseraError("the library has opened nothing", Status.INTERNAL)
        self._engine_use = use
        self._place = place(self._data)
        #: Of an original that is a file here: what it was when it was opened.
        self._opened = self.state() if not self.id and self.source.is_local else None

    def _make_source(self) -> Source:
        source = Source(self._data)
        source.native.base = self._base
        set_key(source.native, self._key)
        return source

    def state(self) -> tuple[Any, ...]:
        """What another file has not: the id of a .tsr, or what is told of an original."""
        return ("id", self.id) if self.id else ("original", *self.source.state())

    def _check_state(self, state: tuple[Any, ...]) -> None:
        if self.state() != state:
            raise TesseraError("it changed since the reader was opened", Status.READ, self.source.name)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._is_closed:
            raise ValueError("the reader is closed")
        if self._key is not None:
            self._key.__reduce__()
        return _open_again, (self._reopenable(), self._wanted, self._opened or self.state(), self._base)

    def _reopenable(self) -> Data:
        if self._place is None:
            raise TypeError("a file object is open in this process alone: give open() a path, a URL, bytes or a file of fsspec")
        found: Data = self._place
        return found

    def _renew(self) -> None:
        """In a child of os.fork, which has none of the parent's threads: what the parent opened is left as it is."""
        with _lock:
            if os.getpid() == self._process:
                return
            state, self._data = self._opened or self.state(), self._reopenable()
            _abandoned.append((self.source, self._engine))
            self._begin()
            self._check_state(state)

    def _open(self, engine: int) -> tuple[int, _native.tsr_error]:
        handle, error = ctypes.c_void_p(), _native.tsr_error()
        status = _library.tsr_open(
            engine, ctypes.byref(self.source.native), ctypes.byref(handle), ctypes.byref(error)
        )
        if handle.value is not None:
            self._handles.append(handle.value)
        return status, error

    def _is_one(self) -> bool:
        """Whether what was read of a .tsr, its header first, is of one."""
        if self._base:  # its id stands in it, and nothing of it is in the first bytes of the file
            return bool(self._handles)
        status, first = self._read_id(Source(self.source.head))
        return bool(self._handles) and self.id != 0 and (status != Status.OK or first == self.id)

    def _open_again(self, engine: int) -> tuple[int, _native.tsr_error]:
        """Once more what seems to have changed amid the first time."""
        if self._handles:
            _library.tsr_close(self._handles.pop())
        self.source.close()
        self.source = self._make_source()
        status, error = self._open(engine)
        if status == Status.OK and self.source.is_replaceable and not self._is_one():
            _library.tsr_close(self._handles.pop())
            self.source.raised, status = ChangedError(), Status.READ
        return status, error

    @staticmethod
    def _read_id(source: Source) -> tuple[int, int]:
        """A status, and the id of a .tsr."""
        found, error = ctypes.c_uint64(), _native.tsr_error()
        status = _library.tsr_read_id(ctypes.byref(source.native), ctypes.byref(found), ctypes.byref(error))
        return int(status), found.value

    def call(self, function: Any, *arguments: Any, name: str | None = None, out: str | None = None) -> None:
        """Calls a function of the reader that can fail; its last argument, the error, is added here."""
        if os.getpid() != self._process and not self._is_closed:
            self._renew()
        use = object()
        self._uses.add(use)
        try:
            if self._is_closed:
                raise ValueError("the reader is closed")
            error = _native.tsr_error()
            status = function(self._handles[0], *arguments, ctypes.byref(error))
            if status != Status.OK:
                raised, self.source.raised = self.source.raised, None
                if self.source.is_replaceable and not isinstance(raised, ChangedError) and self._is_replaced(status):
                    raised = ChangedError()
                check(status, error, self._name_failure(name), raised, out)
        finally:
            self._uses.discard(use)
            self._close_unused()

    def _is_replaced(self, status: int) -> bool:
        """Whether a failure is due to another .tsr in this one's place, of which the file system tells nothing: its
        header has another id."""
        if status not in (Status.USAGE, Status.READ, Status.CORRUPT, Status.VERSION):
            return False
        try:
            with self._make_source() as source:
                found, now = self._read_id(source)
        except Exception:  # the failure itself says more
            return False
        return found == Status.NOT_TSR or (found == Status.OK and now != self.id)

    @property
    def id(self) -> int:
        """The id of a .tsr; 0: an original."""
        return int(_library.tsr_reader_id(self._handles[0]))

    def _name_failure(self, member: str | None) -> str | None:
        parts = [part for part in (self.source.name, member) if part]
        return "::".join(parts) or None

    def close(self) -> None:
        self._is_closed = True
        self._close_unused()

    def _close_unused(self) -> None:
        handle = self._take_unused()
        if handle is None:
            return
        _library.tsr_close(handle)
        self.source.close()
        self._engine._end_use(self._engine_use)

    def __del__(self) -> None:
        if hasattr(self, "_engine_use"):
            self.close()


class ImageHandle(Handle):
    """A native reader of a file in a file."""

    def __init__(self, outer: Handle, member: int, image: int) -> None:
        self._outer, self._member, self._image = outer, member, image
        self._data = b""
        self._is_closed = False
        self._begin()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._is_closed:
            raise ValueError("the reader is closed")
        return ImageHandle, (self._outer, self._member, self._image)

    def _renew(self) -> None:
        with _lock:
            if os.getpid() == self._process:
                return
            _abandoned.append((self.source, self._engine))
            self._begin()

    def _begin(self) -> None:
        outer = self._outer
        self._process = os.getpid()
        self.source = Source(b"")
        self._uses = set()
        self._handles = []
        if outer._process != self._process:
            outer._renew()
        self._engine = outer._engine
        use, _ = self._engine._begin_use()
        opened = ctypes.c_void_p()
        try:
            outer.call(_library.tsr_open_image, self._member, self._image, ctypes.byref(opened))
        except BaseException:
            self._engine._end_use(use)
            raise
        assert opened.value is not None
        self._handles.append(opened.value)
        self._engine_use = use


def _open_again(data: Data, engine: Engine | str | None, state: tuple[Any, ...], base: bool = False) -> Handle:
    """What Handle.__reduce__ names."""
    handle = Handle(data, engine, base)
    try:
        handle._check_state(state)
    except TesseraError:
        handle.close()
        raise
    return handle


def _forget() -> None:
    """After a fork: another thread of the parent may have had the lock."""
    global _lock
    _lock = threading.RLock()


_lock = threading.RLock()
#: What the parent's readers hold, in a child: it is neither used nor closed.
_abandoned: list[Any] = []
os.register_at_fork(after_in_child=_forget)
