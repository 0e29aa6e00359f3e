"""Engines: what computes."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

from . import _native
from ._errors import TesseraError, check
from ._numbers import integer

_library = _native.library


class Holder:
    """What holds one native handle, which is ended once: in the process that made it, when nobody uses it."""

    _is_closed: bool
    _process: int
    _uses: set[object]
    _handles: list[int]

    def _take_unused(self) -> int | None:
        """The handle, if it is to be ended now."""
        if not self._is_closed or self._uses or os.getpid() != self._process:
            return None
        try:
            return self._handles.pop()
        except IndexError:
            return None


class Engine(Holder):
    """Threads and memory that compute. Several threads may use an engine at once.

    The engine ends with close(), or with the last reference to it. Calls and readers that still use it keep it
    until they end.
    """

    # Sets and lists are used for their atomic operations: close() may run as a finaliser amid any of these functions.

    def __init__(
        self, choice: str = "cpu", *, threads: int = 0, memory: int = 0, gpus: Sequence[int] = (), gpu_memory: int = 0
    ) -> None:
        self._arguments = (choice, threads, memory, tuple(gpus), gpu_memory)
        self._is_closed = False
        self._begin()

    def _begin(self) -> None:
        self._uses = set()
        self._handles = []
        choice, threads, memory, gpus, gpu_memory = self._arguments
        if choice not in _native.ENGINES:
            raise ValueError(f"{choice!r} is not an engine: {', '.join(_native.ENGINES)}")
        options = _native.sized(_native.tsr_engine_options)
        options.choice = _native.ENGINES.index(choice)
        options.threads = integer("threads", threads, 0, 2**31 - 1)
        options.memory_bytes = integer("memory", memory, 0, 2**64 - 1)
        chosen = [integer("a number of gpus", gpu, 0, 2**31 - 1) for gpu in gpus]
        options.gpus = (ctypes.c_int * len(chosen))(*chosen)
        options.gpu_count = len(chosen)
        options.gpu_memory_bytes = integer("gpu_memory", gpu_memory, 0, 2**64 - 1)
        handle = ctypes.c_void_p()
        error = _native.tsr_error()
        check(_library.tsr_engine_create(ctypes.byref(options), ctypes.byref(handle), ctypes.byref(error)), error)
        assert handle.value is not None
        self._handles.append(handle.value)
        self.name: str = _library.tsr_engine_name(handle).decode()
        self.threads: int = _library.tsr_engine_threads(handle)
        self.note: str = _library.tsr_engine_note(handle).decode()
        self._process = os.getpid()

    def __reduce__(self) -> tuple[object, ...]:
        """Another process makes such an engine."""
        return _make, self._arguments

    def _begin_use(self) -> tuple[object, int]:
        """The engine's handle, which stays valid until the use ends."""
        if os.getpid() != self._process and not self._is_closed:
            with _lock:
                if os.getpid() != self._process:  # in a child of os.fork, which has none of the parent's threads
                    self._begin()
        use = object()
        self._uses.add(use)
        if self._is_closed:
            self._end_use(use)
            raise TesseraError("the engine is closed")
        return use, self._handles[0]

    def _end_use(self, use: object) -> None:
        self._uses.discard(use)
        self._destroy_unused()

    @contextmanager
    def _used(self) -> Iterator[int]:
        use, handle = self._begin_use()
        try:
            yield handle
        finally:
            self._end_use(use)

    def _destroy_unused(self) -> None:
        handle = self._take_unused()
        if handle is not None:
            _library.tsr_engine_destroy(handle)

    def close(self) -> None:
        """Ends the engine as soon as no call and no reader uses it."""
        self._is_closed = True
        self._destroy_unused()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self.close()

    def __repr__(self) -> str:
        return f"<tessera.Engine {self.name}, {self.threads} threads>"


def _make(name: str, threads: int, memory: int, gpus: tuple[int, ...], gpu_memory: int) -> Engine:
    return Engine(name, threads=threads, memory=memory, gpus=gpus, gpu_memory=gpu_memory)


_lock = threading.Lock()
_shared: dict[str, Engine] = {}


def engine(
    name: str = "cpu", *, threads: int = 0, memory: int = 0, gpus: Sequence[int] = (), gpu_memory: int = 0
) -> Engine:
    """Makes an engine.

    Parameters
    ----------
    name : {"cpu", "cuda", "auto"}
        "auto" is CUDA where there is a GPU that can be used, else the CPU. All engines write the same bytes.
    threads : int
        Threads; 0: as many as this process may keep busy.
    memory : int
        Bytes of host memory that calls may take; 0: a quarter of what there is.
    gpus : sequence of int
        Numbers of the GPUs to use; empty: all.
    gpu_memory : int
        Bytes of memory to use on each GPU; 0: half of what is free.

    Returns
    -------
    Engine
        An engine that `Engine.close` ends.

    Raises
    ------
    TesseraError
        With status ENGINE if CUDA is demanded and cannot be used.
    """
    return Engine(name, threads=threads, memory=memory, gpus=gpus, gpu_memory=gpu_memory)


def resolve(chosen: Engine | str | None) -> Engine:
    """An engine, or the one of this name that calls without an engine of their own share."""
    if isinstance(chosen, Engine):
        return chosen
    name = chosen or "cpu"
    with _lock:
        found = _shared.get(name)
        if found is None or found._is_closed:
            found = _shared[name] = Engine(name)
        return found


def _forget() -> None:
    """After a fork: the child has none of the engines' threads."""
    global _lock
    _lock = threading.Lock()
    _abandoned.extend(_shared.values())
    _shared.clear()


_abandoned: list[Engine] = []
os.register_at_fork(after_in_child=_forget)
