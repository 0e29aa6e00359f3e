"""Tessera on a cluster of Dask: sets of files, and arrays whose chunks workers decode."""

from __future__ import annotations

import bisect
import itertools
import os
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.base import normalize_token, tokenize

from . import _native
from ._engine import Engine, resolve
from ._errors import Status, TesseraError
from ._image import Array, Image
from ._media import Data, place
from ._options import OptionFields, Options
from ._reader import Member, Reader
from ._remote import find, is_remote, is_url
from ._sets import (
    Result,
    Set,
    find_ranges,
    name_set,
    raise_failures,
    ranged,
    run_set,
    source_to_compress,
    write_again,
)

if TYPE_CHECKING:
    import dask.array
    from distributed import Client, Future
    from typing_extensions import Unpack

__all__ = ["compress_set", "from_tsr"]

#: A task takes files up to so many bytes, or so many files: a scheduler needs about a millisecond a task. A thread gets
#: about so many tasks, where there are enough files.
_BATCH_BYTES, _BATCH_FILES, _BATCHES_A_THREAD = 8 << 20, 32, 8
#: Files that one task looks at before the work begins.
_LOOK_FILES = 1000
#: Readers that a process keeps open between chunks.
_IDLE_READERS = 8

# ---- Engines of workers --------------------------------------------------------------------------------------------

_engines: dict[tuple[int, str, int], Engine] = {}
_engines_lock = threading.Lock()


def _worker_engine(name: str) -> Engine:
    """On a worker, an engine with as many threads as the worker; elsewhere the one that all calls share."""
    try:
        from distributed import get_worker

        threads = int(get_worker().state.nthreads)
    except (ImportError, ValueError):
        return resolve(name)
    key = (os.getpid(), name, threads)
    with _engines_lock:
        if key not in _engines:
            _engines[key] = Engine(name, threads=threads)
        return _engines[key]


# ---- Sets ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Job:
    """A file of a set. is_new: its output did not exist before the work began, so that what is there is of this work.
    range: by which loss counts; 0: the image's own."""

    index: int
    source: str
    out: str
    byte_count: int = 0
    is_new: bool = True
    range: int = 0


def _look(jobs: list[_Job]) -> list[_Job]:
    """Runs on a worker: sizes of the files, and whether their outputs exist."""
    looked = []
    for job in jobs:
        try:
            size = os.stat(job.source).st_size
        except OSError:
            size = 0
        looked.append(replace(job, byte_count=size, is_new=not os.path.lexists(job.out)))
    return looked


def _find_ranges(jobs: list[_Job], options: Options, engine: str) -> list[int]:
    """Runs on a worker, for all files of the set: those of one series have one range, whatever worker compresses them."""
    sources = [source_to_compress(job.source, options) for job in jobs]
    with resolve(_worker_engine(engine))._used() as handle:
        return find_ranges(sources, options.to_native(), handle)


def _compress_batch(jobs: list[_Job], options: Options, overwrite: bool, engine: str) -> list[Result]:
    """Runs on a worker, perhaps several times, since workers may be lost. The results are the same each time."""
    chosen = _worker_engine(engine)
    work = Set([job.source for job in jobs], [job.out for job in jobs], options, overwrite, None)
    work.take_ranges([job.range for job in jobs])
    results = []
    for job, result in zip(jobs, run_set(work, chosen)):
        if result.error and result.error.status == Status.EXISTS and job.is_new:
            result = _find_done(result, ranged(work.options, job.range), chosen)
        results.append(replace(result, index=job.index))
    return results


def _find_done(result: Result, options: _native.tsr_compress_options, engine: Engine) -> Result:
    """An output that has appeared since the work began is the result if it has the bytes that were to be written: then a
    worker that was lost has made it."""
    try:
        report = write_again(result.source, result.out, options, engine)
    except (TesseraError, OSError):
        report = None
    return replace(result, report=report, error=None) if report else result


def _cut_batches(jobs: Sequence[_Job], threads: int) -> list[list[_Job]]:
    batches: list[list[_Job]] = []
    most = min(_BATCH_FILES, len(jobs) // (_BATCHES_A_THREAD * max(threads, 1)) + 1)
    byte_count = 0
    for job in jobs:
        if not batches or len(batches[-1]) == most or byte_count + job.byte_count > _BATCH_BYTES:
            batches.append([])
            byte_count = 0
        batches[-1].append(job)
        byte_count += job.byte_count
    return batches


def _make_absolute(path: str) -> str:
    """A path that means the same in a worker's working folder."""
    return path if is_url(path) else os.path.join(os.getcwd(), path)


class _Run:
    """The tasks of a set that are at work."""

    def __init__(self, client: Client, arguments: tuple[Any, ...]) -> None:
        from distributed import as_completed

        self.client, self.arguments = client, arguments
        self.name = f"tessera-compress-{uuid.uuid4().hex}"
        self.jobs: dict[str, list[_Job]] = {}
        self.futures: list[Future[Any]] = []
        self.done = as_completed([], loop=client.loop)

    def submit(self, batches: Iterable[list[_Job]]) -> None:
        for batch in batches:
            key = f"{self.name}-{len(self.futures)}"
            future = self.client.submit(_compress_batch, batch, *self.arguments, key=key, pure=False)
            self.jobs[key] = batch
            self.futures.append(future)
            self.done.add(future)

    def iterate(self) -> Iterator[Result]:
        """Results as they come. A task that fails as a whole is tried again file by file, so that one file whose work
        ends its worker costs no other file."""
        for future in self.done:
            jobs = self.jobs.pop(future.key)
            try:
                results = future.result()
            except Exception as raised:
                if len(jobs) > 1:
                    self.submit([job] for job in jobs)
                    continue
                results = [_lost(jobs[0], raised)]
            future.release()
            yield from results

    def cancel(self) -> None:
        self.client.cancel(self.futures)


def _lost(job: _Job, raised: Exception) -> Result:
    error = raised
    if not isinstance(error, TesseraError):
        error = TesseraError(f"no worker finished it: {raised}", Status.INTERNAL, job.source)
        error.__cause__ = raised
    return Result(job.index, job.source, job.out, None, error)


def _rename(result: Result, names: list[str], outputs: list[str]) -> Result:
    """With the paths that the caller gave."""
    given = {result.source: names[result.index], result.out: outputs[result.index]}
    if result.error and result.error.path in given:
        result.error.path = given[result.error.path]
        if isinstance(result.error, OSError):
            result.error.filename = result.error.path
    return replace(result, source=names[result.index], out=outputs[result.index])


def compress_set(
    client: Client,
    paths: Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    on_result: Callable[[Result], object] | None = None,
    effort: int = 5,
    *,
    root: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    engine: str = "cpu",
    **options: Unpack[OptionFields],
) -> list[Result]:
    """Compresses many files on the workers of a cluster, as `tessera.compress_set` does in one process.

    Files, outputs and results are the same. The files' folders must have the same paths on all workers.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    paths : iterable of paths
        Regular files. Paths are relative to the caller's working folder.
    out : path
        The folder of the outputs, which is made. A file's output has its name and ".tsr" after it.
    on_result : callable, optional
        Called with each `Result` when its task is done, in the thread of the caller. If it raises, no more tasks begin,
        and compress_set raises the same.
    effort : int
        1 (fastest) to 9 (smallest).
    root : path, optional
        Outputs keep the files' folders from here on.
    overwrite : bool
        Outputs that exist are replaced.
    engine : {"cpu", "cuda", "auto"}
        Of each worker, with as many threads as the worker has.
    **options
        Fields of `Options`.

    Returns
    -------
    list of Result
        In the order of paths.

    Raises
    ------
    SetError
        If files failed; the others are done.

    Notes
    -----
    The work of a lost worker is done again by another one. An output appears when it is whole and proven, so a worker
    that is killed leaves no part of one, where the file system has files without a name (O_TMPFILE). Elsewhere the next
    run in the folder removes the rest. An output of a lost worker is compared with what would be written, and counts if
    it is the same. A file whose work ends as many workers as the scheduler allows has an error of status INTERNAL.
    """
    if client.asynchronous:
        raise TypeError("an asynchronous client cannot be waited for: give a client with asynchronous=False")
    if engine not in _native.ENGINES:
        raise ValueError(f"{engine!r} is not an engine: {', '.join(_native.ENGINES)}")
    names, outputs = name_set(paths, out, root)
    chosen = Options(effort=effort, **options)
    chosen.to_native()
    jobs = [
        _Job(index, _make_absolute(name), _make_absolute(output))
        for index, (name, output) in enumerate(zip(names, outputs))
    ]
    looks = client.map(_look, [jobs[i : i + _LOOK_FILES] for i in range(0, len(jobs), _LOOK_FILES)], pure=False)
    jobs = [job for looked in client.gather(looks) for job in looked]
    if chosen.to_native().loss and len(jobs) > 1:
        ranges = client.submit(_find_ranges, jobs, chosen, engine, pure=False).result()
        jobs = [replace(job, range=found) for job, found in zip(jobs, ranges)]
    run = _Run(client, (chosen, overwrite, engine))
    results: list[Result | None] = [None] * len(jobs)
    try:
        run.submit(_cut_batches(jobs, sum(client.nthreads().values())))
        for result in run.iterate():
            made = _rename(result, names, outputs)
            results[made.index] = made
            if on_result:
                on_result(made)
    except BaseException:
        run.cancel()
        raise
    whole = [result for result in results if result is not None]
    assert len(whole) == len(jobs)
    raise_failures(whole)
    return whole


# ---- Arrays --------------------------------------------------------------------------------------------------------


class _Pool:
    """Open readers, which one thread at a time uses: a reader's calls take turns."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._idle: OrderedDict[int, tuple[str, Reader]] = OrderedDict()

    def _take(self, token: str) -> Reader | None:
        with self._lock:
            if self._process != os.getpid():
                self._idle, self._process = OrderedDict(), os.getpid()
            for key, (name, _) in self._idle.items():
                if name == token:
                    return self._idle.pop(key)[1]
        return None

    def _keep(self, token: str, reader: Reader) -> None:
        with self._lock:
            self._idle[id(reader)] = token, reader
            old = self._idle.popitem(last=False)[1][1] if len(self._idle) > _IDLE_READERS else None
        if old is not None:
            old.close()

    @contextmanager
    def _lend(self, reader: Reader, name: Callable[[Reader], str]) -> Iterator[Reader]:
        try:
            token = name(reader)
            yield reader
        except BaseException:
            reader.close()
            raise
        self._keep(token, reader)

    def opened(self, data: Data, engine: str, name: Callable[[Reader], str]) -> AbstractContextManager[Reader]:
        """A new reader, and the token that it gets."""
        return self._lend(Reader(data, _worker_engine(engine)), name)

    def reader(self, token: str, data: Data, engine: str) -> AbstractContextManager[Reader]:
        idle = self._take(token)
        return self._lend(Reader(data, _worker_engine(engine)) if idle is None else idle, lambda _reader: token)


_pool = _Pool()


class _Frames:
    """The frames of a file or of a series as an array that decodes what is asked for, in the process that asks."""

    def __init__(self, data: Data, engine: str, members: Sequence[int | str] | int | str | None) -> None:
        self._data, self._engine = data, engine
        self._token, self._state = "", ()
        self._place = _name_place(data)
        with _pool.opened(data, engine, self._name) as reader:
            chosen = _choose_members(reader, members)
            images = [member.image for member in chosen]
            _check_alike(chosen, images)
            self._numbers = [member._number for member in chosen]
            self.tile = chosen[0]._tile_shape()
        #: The first frame of each member, and the number of all frames.
        self._firsts = list(itertools.accumulate((image.frames for image in images), initial=0))
        self.shape = (self._firsts[-1], *images[0].frame_shape)
        self.dtype = chosen[0].dtype
        self.ndim = len(self.shape)

    def _name(self, reader: Reader) -> str:
        """A name of what is read, which changes when the file does."""
        self._state = reader._state()
        self._token = tokenize(self._place, self._state)
        return self._token

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return type(self).__name__, self._token, self._numbers

    def __getitem__(self, key: Any) -> Array:
        parts, lists = _split_lists(key if isinstance(key, tuple) else (key,), self.shape)
        frames, rest = parts[0], parts[1:]
        with _pool.reader(self._token, self._data, self._engine) as reader:
            if reader._state() != self._state:
                raise TesseraError("it changed since the array was made of it", Status.READ, reader._handle.source.name)
            if not isinstance(frames, slice):
                values = self._read(reader, int(frames), rest)
            else:
                numbers = range(*frames.indices(self.shape[0]))
                read = [self._read(reader, number, rest) for number in numbers or range(1)]
                values = np.stack(read)[: len(numbers)]
        for axis, numbers_of_list in lists:
            values = values.take(numbers_of_list, axis)
        return values

    def _read(self, reader: Reader, frame: int, rest: list[Any]) -> Array:
        place = bisect.bisect_right(self._firsts, frame) - 1
        return reader.members[self._numbers[place]]._take((frame - self._firsts[place], *rest))


def _split_lists(key: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[list[Any], list[tuple[int, Array]]]:
    """Key of integers and slices alone, and what lists then take of which axes of the result."""
    parts: list[Any] = []
    lists: list[tuple[int, Array]] = []
    axis = 0
    for part, size in zip(key, shape):
        if isinstance(part, (list, np.ndarray)) and np.ndim(part) == 1:
            numbers = np.arange(size)[np.asarray(part, None if len(part) else np.intp)]
            first, end = (int(numbers.min()), int(numbers.max()) + 1) if numbers.size else (0, 0)
            lists.append((axis, numbers - first))
            part = slice(first, end)
        parts.append(part)
        axis += isinstance(part, slice)
    return parts, lists


def _name_place(data: Data) -> Any:
    """Where the data are."""
    if is_url(data) or is_remote(data):
        return find(data)
    if isinstance(data, str):
        status = os.stat(data)
        return data, status.st_dev, status.st_ino
    return normalize_token(data)


def _choose_members(reader: Reader, members: Sequence[int | str] | int | str | None) -> list[Member]:
    if members is None:
        chosen = [member for member in reader.members if not (reader.is_series and member.info.verbatim)]
        if not chosen:
            raise ValueError("no file of the series has an image")
        return chosen
    wanted = [members] if isinstance(members, (int, str)) else list(members)
    if not wanted:
        raise ValueError("no member was chosen")
    by_name = {member.name: member for member in reader.members}
    return [by_name[one] if isinstance(one, str) else reader.members[one] for one in wanted]


def _check_alike(members: list[Member], images: list[Image]) -> None:
    for member, image in zip(members, images):
        if (image.frame_shape, member.dtype) != (images[0].frame_shape, members[0].dtype):
            raise ValueError(
                f"{member.name} has frames of {image.frame_shape}, {member.dtype}, but {members[0].name} of "
                f"{images[0].frame_shape}, {members[0].dtype}: choose members of one kind by members="
            )


def _portable(source: Any) -> Data:
    """What workers can open."""
    found = place(source)
    if found is None:
        raise TypeError("workers cannot read this file object: give a path, a URL, bytes or a file of fsspec")
    return found  # type: ignore[no-any-return]


def from_tsr(
    source: Any,
    chunks: Any = "frame",
    *,
    members: Sequence[int | str] | int | str | None = None,
    engine: str = "cpu",
) -> dask.array.Array:
    """A Dask array of the frames of a .tsr, of a series or of an original, which are decoded when they are computed.

    Parameters
    ----------
    source : path, URL, bytes or file of fsspec
        A path must lead to the file on all workers. URLs and files of fsspec are read by ranges.
    chunks : {"frame", "tile"} or chunks of Dask
        "frame" makes a chunk of each frame, "tile" of each tile that the encoder has cut a frame into. Otherwise what
        Dask's functions take: ``(8, 256, -1)``, for example.
    members : name, number, or sequence of them, optional
        Of a series: the files whose frames the array has, in this order. By default all that have an image, in the
        order of the series. Their frames must have the same shape and type.
    engine : {"cpu", "cuda", "auto"}
        Of each worker.

    Returns
    -------
    dask.array.Array
        With the axes frames, rows, columns and, where there are several, components. Of a chunk that is sliced
        further, only the tiles that the slice touches are read and decoded.

    Examples
    --------
    >>> import numpy, tessera, tessera.dask
    >>> volume = numpy.arange(40, dtype=numpy.uint16).reshape(4, 2, 5)
    >>> array = tessera.dask.from_tsr(tessera.compress(volume))
    >>> array.chunks
    ((1, 1, 1, 1), (2,), (5,))
    >>> bool(array[2:, 1].sum().compute() == volume[2:, 1].sum())
    True
    """
    from dask.array import from_array
    from dask.array.core import normalize_chunks

    data = _portable(source)
    frames = _Frames(data, engine, members)
    if chunks == "frame":
        chunks = (1, *frames.shape[1:])
    elif chunks == "tile":
        chunks = (1, *frames.tile, *frames.shape[3:])
    array: dask.array.Array = from_array(
        frames,
        chunks=normalize_chunks(chunks, frames.shape, dtype=frames.dtype),
        name=f"tessera-from-tsr-{tokenize(frames, chunks)}",
        lock=False,
        asarray=False,
        fancy=True,  # otherwise Dask does not fuse slices with the reading of chunks
        inline_array=not isinstance(data, bytes),
        meta=np.empty((0,) * frames.ndim, frames.dtype),
    )
    return array
