"""Files and payloads: compress, restore."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from . import _native
from ._engine import Engine, resolve
from ._errors import check
from ._image import Array, describe, empty_raster, pack
from ._media import Data, MemorySink, Source, sink_to_path, view_bytes
from ._numbers import integer
from ._options import OptionFields, Options, keep_values
from ._reports import Report, report_from_native
from ._secret import KeyLike, key_of, set_key

if TYPE_CHECKING:
    from typing_extensions import Unpack

_library = _native.library


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


def compress_source(
    source: Source,
    sink: _native.tsr_data_sink,
    options: _native.tsr_compress_options,
    engine: Engine | str | None,
    out: str | None = None,
    key: KeyLike | None = None,
) -> Report:
    held = key_of(key)
    set_key(sink, held)
    report = _native.sized(_native.tsr_report)
    error = _native.tsr_error()
    with source, resolve(engine)._used() as handle:
        arguments = [
            ctypes.byref(source.native),
            ctypes.byref(sink),
            ctypes.byref(options),
            ctypes.byref(report),
            ctypes.byref(error),
        ]
        if source.raster is None:
            status = _library.tsr_compress(handle, *arguments)
        else:
            status = _library.tsr_compress_raster(handle, ctypes.byref(source.raster), *arguments)
    check(status, error, source.name, source.raised, out)
    return report_from_native(report)


def _restore(
    source: Source,
    sink: _native.tsr_data_sink,
    engine: Engine | str | None,
    out: str | None = None,
    key: KeyLike | None = None,
) -> Report:
    held = key_of(key)
    set_key(source.native, held)
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
    key: KeyLike | None = None,
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
        Of an array of integers of at most 32 bits: the bits that its values take. All bits of its type by default.
    components : int, optional
        Of an array: the length of its last axis if that is components, else 1. By default a last axis of 3 or 4
        after at least two others is.
    engine : Engine or str, optional
        The CPU by default.
    key : Key, path or bytes, optional
        The .tsr is encrypted with it; a str is the path of a key file. The same input then never gives the same bytes.
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
    keep_values(source, wanted.keep)
    compress_source(source, sink.native, wanted.to_native(), engine, key=key)
    return sink.take()


def decompress(data: Data, *, engine: Engine | str | None = None, key: KeyLike | None = None) -> bytes:
    """The original of a .tsr of one file: its bytes, or an array's samples, little-endian.

    Parameters
    ----------
    data : path, bytes or file object
        A str is a path; bytes are a file's content.
    engine : Engine or str, optional
        The CPU by default.
    key : Key, path or bytes, optional
        Of a .tsr that is encrypted; a str is the path of a key file.

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
    _restore(Source(data), sink.native, engine, key=key)
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
    key: KeyLike | None = None,
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
    key : Key, path or bytes, optional
        As of `compress`.
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
    keep_values(source, wanted.keep)
    return compress_source(source, sink_to_path(out, overwrite), wanted.to_native(), engine, os.fsdecode(out), key)


def restore_file(
    data: Data,
    out: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    engine: Engine | str | None = None,
    key: KeyLike | None = None,
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
    key : Key, path or bytes, optional
        As of `decompress`.

    Returns
    -------
    Report
        What was restored.

    Raises
    ------
    TesseraError
        With status EXISTS if out exists and overwrite is False; SAME_FILE if it is the input; also for a series.
    """
    return _restore(Source(data), sink_to_path(out, overwrite), engine, os.fsdecode(out), key)


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
