"""Sets: many files at once, each with a result."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._engine import Engine, resolve
from ._errors import Status, TesseraError, check, from_native
from ._files import compress_source
from ._media import CompareSink, Source, sink_to_path
from ._options import OptionFields, Options, keep_values
from ._reports import Report, report_from_native
from ._secret import KeyLike, key_of, set_key

if TYPE_CHECKING:
    from typing_extensions import Unpack

_library = _native.library


@dataclass(frozen=True)
class Result:
    """What became of a file of a set: a report, or else an error."""

    index: int
    source: str
    out: str
    report: Report | None
    error: TesseraError | None


class SetError(TesseraError):
    """Files of a set failed. results has the results of all its files, in their order."""

    results: list[Result]


def _name_outputs(names: list[str], out: str, root: str | None) -> list[str]:
    """The .tsr of each file below the folder out: of its name, or of its path from root."""
    outputs = []
    for name in names:
        below = os.path.basename(name) if root is None else os.path.relpath(name, root)
        if below.split(os.sep)[0] == os.pardir:
            raise ValueError(f"{name} is not below {root}")
        outputs.append(os.path.join(out, below + ".tsr"))
    if len(set(outputs)) < len(outputs):
        twice = next(output for output in outputs if outputs.count(output) > 1)
        raise ValueError(f"several files would become {twice}: give root=, the folder that they all are in")
    return outputs


def _identify(names: list[str]) -> dict[tuple[int, int], str]:
    """The files that there are, by device and number."""
    found = {}
    for name in names:
        with suppress(OSError, ValueError):
            status = os.stat(name)
            found[status.st_dev, status.st_ino] = name
    return found


def _check_apart(names: list[str], outputs: list[str]) -> None:
    """No output of a set is a file that it reads. Errors: ValueError."""
    there = _identify(outputs)
    read = there and _identify(names)
    for identity in there.keys() & read.keys():
        raise ValueError(f"the output {there[identity]} is the input {read[identity]}")


class _OnEngine(threading.local):
    """Whether the thread is an engine's, which tells a result."""

    tells = False


_on_engine = _OnEngine()


def ranged(options: _native.tsr_compress_options, found: int) -> _native.tsr_compress_options:
    """The options of a file that counts by a range; 0: by what they say."""
    own = _native.tsr_compress_options.from_buffer_copy(options)
    own.range = found or options.range
    return own


def find_ranges(sources: list[Source], options: _native.tsr_compress_options, handle: int) -> list[int]:
    """With loss, the images of a series count by one range, as those of the command line do. 0: an image has its own."""
    count = len(sources)
    ranges = (ctypes.c_uint32 * count)()
    if options.loss != 0 and options.range == 0 and count > 1:
        natives = (ctypes.POINTER(_native.tsr_data_source) * count)(*(ctypes.pointer(s.native) for s in sources))
        error = _native.tsr_error()
        check(_library.tsr_common_ranges(handle, natives, count, False, ranges, ctypes.byref(error)), error)
    return list(ranges)


def source_to_compress(name: str, options: Options) -> Source:
    source = Source(name)
    keep_values(source, options.keep)
    return source


class Set:
    """The tasks of compress_set, and their results."""

    def __init__(
        self,
        names: list[str],
        outputs: list[str],
        options: Options,
        overwrite: bool,
        on_result: Callable[[Result], object] | None,
        key: KeyLike | None = None,
    ) -> None:
        self.key = key_of(key)  # as long as the tasks have it
        _check_apart(names, outputs)
        self.names, self.outputs, self.on_result = names, outputs, on_result
        self.syncs_later = on_result is None  # a folder is brought to the disk once, not once a file
        self.options = options.to_native()
        self.results: list[Result | None] = [None] * len(names)
        self.raised: BaseException | None = None
        self.is_cancelled = False
        self.status, self.error = 0, _native.tsr_error()
        self.sources = [source_to_compress(name, options) for name in names]
        self.ranged: list[_native.tsr_compress_options] = []
        self.tasks = (_native.tsr_task * len(names))()
        for task, source, output in zip(self.tasks, self.sources, outputs):
            task.size = ctypes.sizeof(_native.tsr_task)
            task.kind = _native.TASK_COMPRESS
            task.source = source.native
            task.sink = sink_to_path(output, overwrite, self.syncs_later)
            set_key(task.sink, self.key)
            task.compress = ctypes.pointer(self.options)

    def take(self, _context: int, told: Any) -> None:
        """Takes a task's result on a thread of the engine, one at a time. No exception can pass through the library."""
        told_before, _on_engine.tells = _on_engine.tells, True
        try:
            result = told.contents
            index = result.index
            failed = result.status != Status.OK
            error = from_native(result.error.contents, self.names[index], self.outputs[index]) if failed else None
            report = None if failed else report_from_native(result.report.contents)
            made = Result(index, self.names[index], self.outputs[index], report, error)
            self.results[index] = made
            if self.on_result and self.raised is None:
                self.on_result(made)
        except BaseException as raised:  # noqa: BLE001
            self.raised, self.is_cancelled = raised, True
        finally:
            _on_engine.tells = told_before

    def take_ranges(self, ranges: list[int]) -> None:
        """Each file counts by a range of its own. 0: its image's."""
        self.ranged = [ranged(self.options, found) for found in ranges]
        for task, own in zip(self.tasks, self.ranged):
            task.compress = ctypes.pointer(own)

    def run(self, handle: int) -> None:
        try:
            if not self.ranged:
                self.take_ranges(find_ranges(self.sources, self.options, handle))
        except TesseraError as raised:
            self.raised = raised
            return
        cancelled = _native.CancelledCall(lambda _context: self.is_cancelled)
        options = _native.sized(_native.tsr_set_options)
        options.is_cancelled = cancelled
        call = _native.ResultCall(self.take)
        self.status = _library.tsr_run_set(
            handle, self.tasks, len(self.names), ctypes.byref(options), call, None, ctypes.byref(self.error)
        )
        if self.syncs_later:
            error = _native.tsr_error()
            if _library.tsr_sync_folders(ctypes.byref(error)) != Status.OK:
                self.status, self.error = error.status, error

    def finish(self) -> list[Result]:
        if self.raised is not None:
            raise self.raised
        results = [result for result in self.results if result is not None]
        if self.status != Status.PARTIAL:
            check(self.status, self.error)
        return results


def raise_failures(results: list[Result]) -> None:
    bad = [result.error for result in results if result.error]
    if bad:
        raised = SetError(f"{len(bad)} of {len(results)} files failed, the first: {bad[0]}", Status.PARTIAL)
        raised.results = results
        raise raised


def run_set(work: Set, engine: Engine | str | None) -> list[Result]:
    """The results of a set, of which some may be failures."""
    for folder in {os.path.dirname(output) for output in work.outputs}:
        Path(folder).mkdir(parents=True, exist_ok=True)
    with resolve(engine)._used() as handle:
        if _on_engine.tells:  # a thread that waited here for another one would keep it from a place in the engine
            work.run(handle)
            return work.finish()
        # The main thread waits in Python, so that Ctrl-C reaches it.
        thread = threading.Thread(target=work.run, args=(handle,), name="tessera.compress_set")
        thread.start()
        try:
            thread.join()
        except BaseException:
            work.is_cancelled = True
            thread.join()
            raise
    return work.finish()


def name_set(
    paths: Iterable[str | os.PathLike[str]], out: str | os.PathLike[str], root: str | os.PathLike[str] | None
) -> tuple[list[str], list[str]]:
    """The files of a set, and their outputs."""
    names = [os.fsdecode(path) for path in paths]
    return names, _name_outputs(names, os.fsdecode(out), None if root is None else os.fsdecode(root))


def write_again(
    source: str, out: str, options: _native.tsr_compress_options, engine: Engine | str | None
) -> Report | None:
    """The report of a source that is compressed once more if the file out has the same bytes."""
    sink = CompareSink(out)
    try:
        report = compress_source(Source(source), sink.native, options, engine)
    finally:
        is_same = sink.finish()
    return report if is_same else None


def compress_set(
    paths: Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    on_result: Callable[[Result], object] | None = None,
    effort: int = 5,
    *,
    root: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    engine: Engine | str | None = None,
    key: KeyLike | None = None,
    **options: Unpack[OptionFields],
) -> list[Result]:
    """Compresses many files, as many at once as the engine has threads and memory for.

    Parameters
    ----------
    paths : iterable of paths
        Regular files.
    out : path
        The folder of the outputs, which is made. A file's output has its name and ".tsr" after it.
    on_result : callable, optional
        Called with each `Result` as soon as the file is done, one at a time, on a thread of the engine. If it raises,
        no more files begin, and compress_set raises the same. A file that it hears of lasts; without on_result files last
        when compress_set returns, which saves a wait for the disk a file.
    effort : int
        1 (fastest) to 9 (smallest).
    root : path, optional
        Outputs keep the files' folders from here on.
    overwrite : bool
        Outputs that exist are replaced.
    engine : Engine or str, optional
        The CPU by default.
    key : Key, path or bytes, optional
        The .tsr files are encrypted with it; a str is the path of a key file.
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
    """
    names, outputs = name_set(paths, out, root)
    work = Set(names, outputs, Options(effort=effort, **options), overwrite, on_result, key)
    results = run_set(work, engine)
    raise_failures(results)
    return results
