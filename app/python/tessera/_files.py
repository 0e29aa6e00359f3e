"""Files and sets: compress, restore, payloads."""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import DTypeLike

from . import _native
from ._engine import Engine, resolve
from ._errors import Status, TesseraError, check, from_native
from ._image import Array, Image, describe, empty_raster, pack
from ._image import from_native as image_from_native
from ._media import CompareSink, Data, MemorySink, Source, sink_to_path, view_bytes
from ._numbers import integer, parts

_library = _native.library


@dataclass(frozen=True)
class WindowLoss:
    """How a window of a DICOM image came through a loss, over the samples whose original lies inside.

    In the units of the file's values, Hounsfield units of a CT. `rmse` and `psnr_db` (20 log10(width / rmse)) are None
    where there are no samples. A window of fewer than 256 samples, or of less than 0.1 % of all, is not judged. `ssim` is
    the mean structural similarity inside, `largest_error` that of a sample inside.
    """

    center: float
    width: float
    samples: int
    rmse: float | None
    psnr_db: float | None
    is_judged: bool
    ssim: float | None
    largest_error: float | None


@dataclass(frozen=True)
class Report:
    """What became of a file (struct tsr_report). None: the number does not apply.

    `way` is "coded" (its samples or its streams are modelled) or "stored" (general compression alone). `verbatim`: it
    has no image that can be read, coded or not; `reason` says why. `damage` says what looks damaged in the original; it is
    empty where nothing was noticed. `psnr_db` and `ssim` are those of the values' `range`, `psnr_stored_db` that of all
    that the stored bits could hold. `ratio_limit` is the published limit of pixel_bytes / payload_bytes for a loss in this
    `modality`.

    `windows` are those that most frames name, four at most. `windows_left_out` others are judged in each frame that names
    them; `left_out_psnr_db` is the least of these. `windows_note` says what else there is to know, such as errors that are
    in stored values, of a file with a Modality LUT.

    `kept`: of a lossy file, ranges of stored values that did not change: those that it names, those of `Options`, and its
    background.
    """

    kind: str
    verbatim: bool
    reason: str
    bytes_in: int
    bytes_out: int
    pixel_bytes: int
    payload_bytes: int
    lossless: bool
    identical: bool
    original_hash: bytes
    image: Image | None
    path: str
    coder: str
    effort: int
    engine: str | None
    fallback: str
    verified_by: str | None
    psnr_db: float | None
    max_error: int | None
    way: str
    damage: str
    range: int | None
    psnr_stored_db: float | None
    windows: tuple[WindowLoss, ...]
    ssim: float | None
    modality: str
    ratio_limit: int | None
    windows_left_out: int
    left_out_psnr_db: float | None
    windows_note: str
    kept: tuple[tuple[int, int], ...]


def _window_from_native(window: _native.tsr_window_loss) -> WindowLoss:
    return WindowLoss(
        center=window.center,
        width=window.width,
        samples=window.samples,
        rmse=window.rmse if window.samples else None,
        psnr_db=window.psnr_db if window.samples else None,
        is_judged=window.is_judged,
        ssim=window.ssim if window.ssim > -1 else None,
        largest_error=window.largest_error if window.samples else None,
    )


def windows_from_native(told: _native.tsr_report | _native.tsr_info) -> tuple[WindowLoss, ...]:
    return tuple(_window_from_native(window) for window in told.window[: told.windows])


def kept_from_native(kept: Any, count: int) -> tuple[tuple[int, int], ...]:
    return tuple((values.lowest, values.highest) for values in kept[:count])


def report_from_native(report: _native.tsr_report) -> Report:
    return Report(
        kind=_library.tsr_kind_name(report.kind).decode(),
        verbatim=report.verbatim,
        reason=report.reason.decode("utf-8", "replace"),
        bytes_in=report.bytes_in,
        bytes_out=report.bytes_out,
        pixel_bytes=report.pixel_bytes,
        payload_bytes=report.payload_bytes,
        lossless=report.lossless,
        identical=report.identical,
        original_hash=bytes(report.original_hash),
        image=image_from_native(report.image) if not report.verbatim and report.image.columns else None,
        path=_library.tsr_path_name(report.coding.path).decode(),
        coder=_library.tsr_coder_name(report.coding.coder).decode(),
        effort=report.coding.effort,
        engine=report.engine.decode() if report.engine else None,
        fallback=report.fallback.decode("utf-8", "replace"),
        verified_by=report.verified_by.decode() if report.verified_by else None,
        psnr_db=report.psnr_db if report.psnr_db >= 0 else None,
        max_error=report.max_error if report.max_error >= 0 else None,
        way="stored" if report.verbatim and not report.packed else "coded",
        damage=report.damage.decode("utf-8", "replace"),
        range=report.range or None,
        psnr_stored_db=report.psnr_stored_db if report.psnr_stored_db >= 0 else None,
        windows=windows_from_native(report),
        ssim=report.ssim if report.ssim > -1 else None,
        modality=report.modality.decode("utf-8", "replace"),
        ratio_limit=report.ratio_limit or None,
        windows_left_out=report.windows_left_out,
        left_out_psnr_db=None if math.isnan(report.left_out_psnr_db) else report.left_out_psnr_db,
        windows_note=report.windows_note.decode("utf-8", "replace"),
        kept=kept_from_native(report.kept, report.kept_count),
    )


PathWord = Literal["predict", "transform"]
QualityWord = Literal["diagnostic", "visually-lossless", "web"]
CoderWord = Literal["by-effort", "huffman", "cavlc", "rans"]
VerifyWord = Literal["cpu", "none", "engine"]


class OptionFields(TypedDict, total=False):
    """The fields of `Options` but effort, as functions take them by name."""

    max_error: int | None
    psnr: float | None
    ratio: float | None
    size: int | None
    qp: float | None
    quality: QualityWord | None
    path: PathWord
    coder: CoderWord
    verify: VerifyWord
    allow_lossy: bool
    samples_only: bool
    range: int
    least_psnr: float | None
    within_ratio: bool
    keep: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Options:
    """How to compress.

    Parameters
    ----------
    effort : int
        1 (fastest) to 9 (smallest).
    max_error : int, optional
        Lossy: no sample differs by more.
    psnr : float, optional
        Lossy: the least PSNR in dB, by the range of the values.
    ratio : float, optional
        Lossy: the least ratio of the input's bytes to the output's.
    size : int, optional
        Lossy: the most bytes of the output.
    qp : float, optional
        Lossy: the quantiser, in steps of 1/8, by the range of the values: 20 does the same at any depth.
    quality : {"diagnostic", "visually-lossless", "web"}, optional
        Lossy: a PSNR of at least 45, 40 or 35 dB, and an SSIM of at least 0.995, 0.99 or 0.97, in each judged window
        (`WindowLoss`) and over all. The first two also bound the largest error.
    path : {"predict", "transform"}
        Of a lossless coding.
    coder : {"by-effort", "huffman", "cavlc", "rans"}
    verify : {"cpu", "none", "engine"}
        What decodes the output to prove it.
    allow_lossy : bool
        Loss may be taken for images that are never coded with loss by accident.
    samples_only : bool
        DICOM whose streams cannot come back byte for byte: its samples are enough.
    range : int
        Of the values, by which psnr and qp count: 255 to 16777215. 0: the image's own. Only of samples of more than 8 bits
        in one component.
    least_psnr : float, optional
        Nothing is kept, and TesseraError raised, where a lossy file would have less dB in a judged window or over all.
    within_ratio : bool
        The same where a lossy file would exceed the published ratio of its modality (`Report.ratio_limit`).
    keep : sequence of (lowest, highest)
        Lossy: stored values that do not change, as those of padding, and that no other sample gets. At most four ranges,
        with those that the file names; of images of one component.

    Notes
    -----
    At most one of max_error, psnr, ratio, size, qp and quality is given. Without any of them coding is lossless.
    """

    effort: int = 5
    max_error: int | None = None
    psnr: float | None = None
    ratio: float | None = None
    size: int | None = None
    qp: float | None = None
    quality: QualityWord | None = None
    path: PathWord = "predict"
    coder: CoderWord = "by-effort"
    verify: VerifyWord = "cpu"
    allow_lossy: bool = False
    samples_only: bool = False
    range: int = 0
    least_psnr: float | None = None
    within_ratio: bool = False
    keep: Sequence[tuple[int, int]] = ()

    def _loss(self) -> tuple[int, int]:
        asked = [self.max_error, self.psnr, self.ratio, self.size, self.qp, self.quality]
        if sum(value is not None for value in asked) > 1:
            raise ValueError("at most one of max_error, psnr, ratio, size, qp and quality can be given")
        if self.max_error is not None:
            return _native.LOSS_MAX_ERROR, integer("max_error", self.max_error, 1, 32767)
        if self.psnr is not None:
            return _native.LOSS_PSNR, parts("psnr", self.psnr, 100, 1, 200)
        if self.ratio is not None:
            return _native.LOSS_RATIO, parts("ratio", self.ratio, 1000, 0.001, 1e15)
        if self.size is not None:
            return _native.LOSS_BYTES, integer("size", self.size, 1, 2**63 - 1)
        if self.qp is not None:
            return _native.LOSS_QP, parts("qp", self.qp, 8, -48, 51)
        if self.quality is not None:
            return _native.LOSS_QUALITY, _number(_native.QUALITIES, self.quality) + 1
        return _native.LOSSLESS, 0

    def to_native(self) -> _native.tsr_compress_options:
        """As the C library's struct.

        Returns
        -------
        tsr_compress_options
            Options that the library has accepted.

        Raises
        ------
        ValueError
            For a value that no option takes.
        """
        options = _native.sized(_native.tsr_compress_options)
        options.effort = integer("effort", self.effort, 1, 9)
        options.path = _number(_native.PATHS, self.path)
        options.coder = _number(_native.CODERS, self.coder)
        options.verify = _number(_native.VERIFY, self.verify)
        options.loss, options.loss_value = self._loss()
        options.allow_lossy = self.allow_lossy
        options.samples_only = self.samples_only
        options.range = integer("range", self.range, 0, 2**24 - 1)
        options.within_ratio = self.within_ratio
        options.least_db = parts("least_psnr", self.least_psnr, 100, 1, 200) if self.least_psnr is not None else 0
        error = _native.tsr_error()
        check(_library.tsr_check_options(ctypes.byref(options), ctypes.byref(error)), error)
        return options


def _keep_values(source: Source, keep: Sequence[tuple[int, int]]) -> None:
    if len(keep) > len(source.native.kept):
        raise ValueError(f"keep has {len(keep)} ranges of values, of which at most {len(source.native.kept)} can be kept")
    source.native.kept_count = len(keep)
    for values, (lowest, highest) in zip(source.native.kept, keep):
        values.lowest = integer("keep", lowest, -32768, 65535)
        values.highest = integer("keep", highest, values.lowest, 65535)


def _number(words: tuple[str, ...], word: str) -> int:
    if word not in words:
        raise ValueError(f"{word!r} is not one of {', '.join(words)}")
    return words.index(word)


def _array_source(array: Array, bits: int | None, components: int | None) -> Source:
    image = describe(array.shape, array.dtype, bits, components, one_frame=False)
    source = Source(b"")
    source.set_array(pack(array, image))
    source.set_raster(image)
    return source


def _make_source(data: Data | Array, bits: int | None, components: int | None) -> Source:
    if isinstance(data, np.ndarray):
        return _array_source(data, bits, components)
    if bits is not None or components is not None:
        raise TypeError("bits and components are for arrays")
    return Source(data)


def _compress(
    source: Source,
    sink: _native.tsr_data_sink,
    options: _native.tsr_compress_options,
    engine: Engine | str | None,
    out: str | None = None,
) -> Report:
    report = _native.sized(_native.tsr_report)
    error = _native.tsr_error()
    with source, resolve(engine)._used() as handle:
        status = _library.tsr_compress(
            handle,
            ctypes.byref(source.native),
            ctypes.byref(sink),
            ctypes.byref(options),
            ctypes.byref(report),
            ctypes.byref(error),
        )
    check(status, error, source.name, source.raised, out)
    return report_from_native(report)


def _restore(
    source: Source, sink: _native.tsr_data_sink, engine: Engine | str | None, out: str | None = None
) -> Report:
    report = _native.sized(_native.tsr_report)
    error = _native.tsr_error()
    with source, resolve(engine)._used() as handle:
        status = _library.tsr_restore(
            handle, ctypes.byref(source.native), ctypes.byref(sink), ctypes.byref(report), ctypes.byref(error)
        )
    check(status, error, source.name, source.raised, out)
    return report_from_native(report)


def compress(
    data: Data | Array,
    effort: int = 5,
    *,
    bits: int | None = None,
    components: int | None = None,
    engine: Engine | str | None = None,
    **options: Unpack[OptionFields],
) -> bytes:
    """Compresses a file or an array to a .tsr.

    Parameters
    ----------
    data : path, bytes, file object or ndarray
        A str is a path; bytes are a file's content. An array has the axes rows and columns; or frames, rows and
        columns; and components after them. Masked values are refused.
    effort : int
        1 (fastest) to 9 (smallest).
    bits : int, optional
        Of an array: the bits that its values take. All bits of its type by default.
    components : int, optional
        Of an array: the length of its last axis if that is components, else 1. By default a last axis of 3 or 4
        after at least two others is.
    engine : Engine or str, optional
        The CPU by default.
    **options
        Fields of `Options`.

    Returns
    -------
    bytes
        The .tsr. It has been decoded and compared, unless ``verify="none"``.

    Raises
    ------
    TesseraError

    Notes
    -----
    A file that would become larger is not coded as samples, and `Reader.image` raises. An array always stays an image.

    Examples
    --------
    >>> import numpy, tessera
    >>> ramp = numpy.arange(6, dtype=numpy.uint16).reshape(2, 3)
    >>> tessera.decompress(tessera.compress(ramp)) == ramp.astype("<u2").tobytes()
    True
    """
    sink = MemorySink()
    source, wanted = _make_source(data, bits, components), Options(effort=effort, **options)
    _keep_values(source, wanted.keep)
    _compress(source, sink.native, wanted.to_native(), engine)
    return sink.take()


def decompress(data: Data, *, engine: Engine | str | None = None) -> bytes:
    """The original of a .tsr of one file: its bytes, or an array's samples, little-endian.

    Parameters
    ----------
    data : path, bytes or file object
        A str is a path; bytes are a file's content.
    engine : Engine or str, optional
        The CPU by default.

    Returns
    -------
    bytes
        The bytes of the original, which were checked against the hashes in the .tsr.

    Raises
    ------
    TesseraError
        Also for a series, whose files `Reader.members` restores.
    """
    sink = MemorySink()
    _restore(Source(data), sink.native, engine)
    return sink.take()


def compress_file(
    data: Data | Array,
    out: str | os.PathLike[str],
    effort: int = 5,
    *,
    overwrite: bool = False,
    bits: int | None = None,
    components: int | None = None,
    engine: Engine | str | None = None,
    **options: Unpack[OptionFields],
) -> Report:
    """Compresses to a file, which appears when it is complete and proven.

    Parameters
    ----------
    data : path, bytes, file object or ndarray
        As of `compress`.
    out : path
        The .tsr file.
    effort : int
        1 (fastest) to 9 (smallest).
    overwrite : bool
        A file that is there is replaced.
    bits, components : int, optional
        As of `compress`.
    engine : Engine or str, optional
        The CPU by default.
    **options
        The fields of `Options`.

    Returns
    -------
    Report
        What was written.

    Raises
    ------
    TesseraError
        With status EXISTS if out exists and overwrite is False; SAME_FILE if it is the input.
    """
    source = _make_source(data, bits, components)
    wanted = Options(effort=effort, **options)
    _keep_values(source, wanted.keep)
    return _compress(source, sink_to_path(out, overwrite), wanted.to_native(), engine, os.fsdecode(out))


def restore_file(
    data: Data, out: str | os.PathLike[str], *, overwrite: bool = False, engine: Engine | str | None = None
) -> Report:
    """Restores the original of a .tsr to a file, which appears when it is complete and proven.

    Parameters
    ----------
    data : path, bytes or file object
        A str is a path; bytes are a file's content.
    out : path
        The file of the original.
    overwrite : bool
        A file that is there is replaced.
    engine : Engine or str, optional
        The CPU by default.

    Returns
    -------
    Report
        What was restored.

    Raises
    ------
    TesseraError
        With status EXISTS if out exists and overwrite is False; SAME_FILE if it is the input; also for a series.
    """
    return _restore(Source(data), sink_to_path(out, overwrite), engine, os.fsdecode(out))


def encode_raster(
    image: _native.tsr_image, coding: _native.tsr_coding, raster: Array, engine: Engine | str | None
) -> bytes:
    """A frame payload (FORMAT.md 5.5)."""
    payload = np.empty(_library.tsr_encode_bound(ctypes.byref(image)), np.uint8)
    size = ctypes.c_size_t(payload.size)
    error = _native.tsr_error()
    with resolve(engine)._used() as handle:
        status = _library.tsr_encode_frame(
            handle,
            ctypes.byref(image),
            ctypes.byref(coding),
            raster.ctypes.data,
            payload.ctypes.data,
            ctypes.byref(size),
            ctypes.byref(error),
        )
    check(status, error)
    return payload[: size.value].tobytes()


def decode_raster(image: _native.tsr_image, payload: Array, raster: Array, engine: Engine | str | None) -> None:
    """Fills the raster from a payload."""
    error = _native.tsr_error()
    with resolve(engine)._used() as handle:
        status = _library.tsr_decode_frame(
            handle, ctypes.byref(image), payload.ctypes.data, payload.size, raster.ctypes.data, ctypes.byref(error)
        )
    check(status, error)


def encode(
    array: Array,
    bits: int | None = None,
    effort: int = 5,
    *,
    components: int | None = None,
    engine: Engine | str | None = None,
) -> bytes:
    """Encodes an array as one frame's payload, which has neither header nor checksum.

    Parameters
    ----------
    array : ndarray
        Rows and columns; or planes, rows and columns; and components after them. Values of bool, or integers of 8,
        16 or 32 bits.
    bits : int, optional
        The bits that the values take. All bits of the type by default.
    effort : int
        1 (fastest) to 9 (smallest).
    components : int, optional
        As of `compress`.
    engine : Engine or str, optional
        The CPU by default.

    Returns
    -------
    bytes
        What `decode` takes, with the same shape, type and bits.

    Examples
    --------
    >>> import numpy, tessera
    >>> ramp = numpy.arange(4000, dtype=numpy.uint16).reshape(50, 80)
    >>> payload = tessera.encode(ramp, bits=12)
    >>> len(payload) < ramp.nbytes / 10
    True
    >>> numpy.array_equal(tessera.decode(payload, ramp.shape, ramp.dtype, bits=12), ramp)
    True
    """
    image = describe(array.shape, array.dtype, bits, components, one_frame=True)
    raster = pack(array, image)
    coding = _native.tsr_coding(effort=integer("effort", effort, 1, 9))
    return encode_raster(image, coding, raster, engine)


def decode(
    payload: bytes | bytearray | memoryview,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    bits: int | None = None,
    *,
    components: int | None = None,
    engine: Engine | str | None = None,
) -> Array:
    """Decodes a payload of `encode`.

    Parameters
    ----------
    payload : bytes
        What `encode` returned.
    shape : tuple of int
        The shape of the array that was encoded.
    dtype : data type
        Its type.
    bits, components : int, optional
        What `encode` was given.
    engine : Engine or str, optional
        The CPU by default.

    Returns
    -------
    ndarray
        The array.

    Raises
    ------
    TesseraError
        With status CORRUPT if the payload is damaged. Damage can pass unnoticed, since there is no checksum.
    """
    kind = np.dtype(dtype)
    image = describe(tuple(shape), kind, bits, components, one_frame=True)
    data = view_bytes(payload)
    raster = empty_raster(image)
    decode_raster(image, data, raster, engine)
    if kind == np.bool_:
        count = int(np.prod(shape))
        return np.unpackbits(raster, count=count, bitorder="little").view(np.bool_).reshape(shape)
    return raster.view(kind.newbyteorder("<")).astype(kind, copy=False).reshape(shape)


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
    _keep_values(source, options.keep)
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
    ) -> None:
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
        report = _compress(Source(source), sink.native, options, engine)
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
    work = Set(names, outputs, Options(effort=effort, **options), overwrite, on_result)
    results = run_set(work, engine)
    raise_failures(results)
    return results
