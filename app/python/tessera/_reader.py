"""Readers: frames, regions, headers and bytes of an original, without restoring the whole."""

from __future__ import annotations

import ctypes
import io
import operator
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, SupportsIndex, Union, overload

import numpy as np

from . import _native
from ._engine import Engine, resolve
from ._errors import ChangedError, Status, TesseraError, check
from ._image import Array, Image, empty_raster, unpack
from ._image import from_native as image_from_native
from ._info import Header, Info, info_from_native
from ._media import Data, MemorySink, Source, sink_to_path
from ._reports import Report, report_from_native

if TYPE_CHECKING:
    import pydicom

_library = _native.library

#: What chooses of one axis, and of several.
AxisIndex = Union[SupportsIndex, slice, EllipsisType]
Index = Union[AxisIndex, tuple[AxisIndex, ...]]


class _Handle:
    """A native reader with its source and its use of an engine, which end together when no call uses them."""

    # As in Engine, sets and lists are used for their atomic operations.

    def __init__(self, data: Data, engine: Engine | str | None) -> None:
        self.source = Source(data)
        self._data = data
        self._uses: set[object] = set()
        self._handles: list[int] = []
        self._is_closed = False
        self._engine = resolve(engine)
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
        status, first = self._read_id(Source(self.source.head))
        return bool(self._handles) and self.id != 0 and (status != Status.OK or first == self.id)

    def _open_again(self, engine: int) -> tuple[int, _native.tsr_error]:
        """Once more what seems to have changed amid the first time."""
        if self._handles:
            _library.tsr_close(self._handles.pop())
        self.source.close()
        self.source = Source(self._data)
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
        use = object()
        self._uses.add(use)
        try:
            if self._is_closed:
                raise ValueError("the reader is closed")
            if os.getpid() != self._engine._process:
                raise TesseraError("this reader belongs to the process that has forked: open one in this process")
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
            with Source(self._data) as source:
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
        if not self._is_closed or self._uses or os.getpid() != self._engine._process:
            return
        try:
            handle = self._handles.pop()
        except IndexError:
            return
        _library.tsr_close(handle)
        self.source.close()
        self._engine._end_use(self._engine_use)

    def __del__(self) -> None:
        if hasattr(self, "_engine_use"):
            self.close()


class _ImageHandle(_Handle):
    """A native reader of a file in a file."""

    def __init__(self, outer: _Handle, member: int, image: int) -> None:
        self.source = Source(b"")
        self._data = b""
        self._uses = set()
        self._handles = []
        self._is_closed = False
        self._engine = outer._engine
        use, _ = self._engine._begin_use()
        opened = ctypes.c_void_p()
        try:
            outer.call(_library.tsr_open_image, member, image, ctypes.byref(opened))
        except BaseException:
            self._engine._end_use(use)
            raise
        assert opened.value is not None
        self._handles.append(opened.value)
        self._engine_use = use


class Images(Sequence["Member"]):
    """The images of a member: its own, or those of the files in it. Each is opened when it is asked for."""

    def __init__(self, member: Member) -> None:
        count = ctypes.c_uint32()
        member._call(_library.tsr_reader_images, ctypes.byref(count))
        self._member = member
        self._count = count.value
        self._is_own = member.info.files == 0

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Member: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Member, ...]: ...
    def __getitem__(self, index: int | slice) -> Member | tuple[Member, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self._count)))
        number = operator.index(index)
        if not -self._count <= number < self._count:
            raise IndexError(f"image {number} is outside of {self._count}")
        if self._is_own:
            return self._member
        return Member(_ImageHandle(self._member._handle, self._member._number, number % self._count), 0, "")


class Member:
    """A file of a reader.

    ``member[frame, rows, columns]`` is an array of values; of a region, only the tiles that it touches are decoded.
    Several threads may use it at once.
    """

    def __init__(self, handle: _Handle, number: int, name: str) -> None:
        self._handle = handle
        self._number = number
        self._native_image: _native.tsr_image | None = None
        self.name = name

    def _call(self, function: Any, *arguments: Any, out: str | None = None) -> None:
        self._handle.call(function, self._number, *arguments, name=self.name, out=out)

    def _image(self) -> _native.tsr_image:
        if self._native_image is None:
            image = _native.tsr_image()
            self._call(_library.tsr_reader_image, ctypes.byref(image))
            self._native_image = image
        return self._native_image

    @property
    def image(self) -> Image:
        """The layout of the samples in the original."""
        return image_from_native(self._image())

    @property
    def images(self) -> Images:
        """The images that the member holds.

        Its own, or those of all files in an archive (ZIP, TAR) or in gzip that are coded. Each is a member: it has
        frames, a header and an original. A stored image counts, but in an archive.
        """
        return Images(self)

    @property
    def info(self) -> Info:
        """What the member is, from headers alone."""
        info = _native.sized(_native.tsr_info)
        self._call(_library.tsr_read_info, ctypes.byref(info))
        return info_from_native(info)

    @property
    def header(self) -> Header:
        """The original's header. No pixels are read or decoded."""
        metadata = ctypes.POINTER(_native.tsr_metadata)()
        self._call(_library.tsr_read_header, ctypes.byref(metadata))
        try:
            return Header(metadata.contents)
        finally:
            _library.tsr_metadata_free(metadata)

    @property
    def frames(self) -> int:
        """The number of frames, as len() is."""
        return int(self._image().frames)

    @property
    def shape(self) -> tuple[int, ...]:
        """Frames, rows, columns and, where there are several, components."""
        return self.image.shape

    @property
    def ndim(self) -> int:
        """The number of axes of `shape`."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return self.image.dtype

    def __len__(self) -> int:
        return self.frames

    def _read(self, frame: int, row: int, column: int, rows: int, columns: int) -> Array:
        image = self._image()
        if (rows, columns) == (image.rows, image.columns) and not image.swapped:
            raster = empty_raster(image)
            self._call(_library.tsr_read_frame, frame, raster.ctypes.data, raster.size, 0)
        else:  # a region is never swapped
            bits = rows * columns * image.components * image.bits_allocated
            raster = np.empty((bits + 7) // 8, np.uint8)
            region = _native.tsr_region(column, row, columns, rows)
            self._call(_library.tsr_read_region, frame, ctypes.byref(region), raster.ctypes.data, raster.size, 0)
        return unpack(image, raster, rows, columns)

    def __getitem__(self, key: Index) -> Array:
        shape = self.shape
        parts = _fill_key(key, len(shape))
        frames = _choose(parts[0], shape[0])
        rows, columns = (_choose(part, size) for part, size in zip(parts[1:3], shape[1:3]))
        inner = tuple(axis.within for axis in (rows, columns)) + tuple(parts[3:])
        made: list[Array] = [self._take(frame, rows, columns, shape, inner) for frame in frames.numbers]
        if frames.is_one:
            return made[0]
        if made:
            return np.stack(made)
        empty = np.empty((rows.count, columns.count, *shape[3:]), self.dtype)[inner]
        return np.empty((0, *empty.shape), self.dtype)

    def _take(self, frame: int, rows: _Axis, columns: _Axis, shape: tuple[int, ...], inner: Any) -> Array:
        if rows.count and columns.count:
            values = self._read(frame, rows.first, columns.first, rows.count, columns.count)
        else:
            values = np.empty((rows.count, columns.count, *shape[3:]), self.dtype)
        taken: Array = values[inner]
        return taken

    def __iter__(self) -> Iterator[Array]:
        for frame in range(self.frames):
            yield self[frame]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("samples are decoded, so an array of them is always a copy")
        values = self[:]
        return values if dtype is None else values.astype(dtype, copy=False)

    def stream(self, frame: SupportsIndex) -> bytes:
        """The stream of a frame of encapsulated DICOM, as the original has it.

        Parameters
        ----------
        frame : int
            Its number; a negative one counts from the end.

        Returns
        -------
        bytes
            Its fragments, one after the other.
        """
        frames = self.frames
        number = operator.index(frame)
        if not -frames <= number < frames:
            raise IndexError(f"there is no frame {number}: the image has {frames}")
        size = ctypes.c_size_t()
        self._call(_library.tsr_reader_stream, number % frames, None, 0, ctypes.byref(size))
        stream = ctypes.create_string_buffer(size.value)
        if size.value:
            self._call(_library.tsr_reader_stream, number % frames, stream, size.value, ctypes.byref(size))
        return stream.raw[: size.value]

    def original(self) -> bytes:
        """The bytes of the original. Those of a .tsr are checked against the hashes in it.

        Returns
        -------
        bytes
            All of them.
        """
        if self._handle_content() == _native.CONTENT_ORIGINAL:
            return self.open_original().read()
        sink = MemorySink()
        self._call(_library.tsr_restore_member, ctypes.byref(sink.native), None)
        return sink.take()

    def open_original(self) -> io.BufferedReader:
        """The original as a file object. Reading decodes what is read, and checks no hash.

        Returns
        -------
        io.BufferedReader
            It can seek. The reader must stay open as long.
        """
        return io.BufferedReader(_Original(self), 1 << 16)

    def restore_file(self, out: str | os.PathLike[str], *, overwrite: bool = False) -> Report:
        """Restores the member of a .tsr to a file, which appears when it is complete and proven.

        Parameters
        ----------
        out : path
            The file of the original.
        overwrite : bool
            A file that is there is replaced.

        Returns
        -------
        Report
            What was restored.
        """
        sink = sink_to_path(out, overwrite)
        report = _native.sized(_native.tsr_report)
        self._call(_library.tsr_restore_member, ctypes.byref(sink), ctypes.byref(report), out=os.fsdecode(out))
        return report_from_native(report)

    def test(self) -> Report:
        """Decodes the member of a .tsr and checks all of it.

        Returns
        -------
        Report
            What was checked.

        Raises
        ------
        TesseraError
            If anything is damaged.
        """
        report = _native.sized(_native.tsr_report)
        self._call(_library.tsr_test_member, ctypes.byref(report))
        return report_from_native(report)

    def to_pydicom(self) -> pydicom.FileDataset:
        """The member as pydicom's data set.

        Values of over 4 KB are read when they are asked for. The reader must stay open until then.

        Returns
        -------
        pydicom.FileDataset
            The data set.
        """
        from ._dicom import to_pydicom

        return to_pydicom(self)

    def _handle_content(self) -> int:
        content = []

        def ask(handle: int, _error: Any) -> int:
            content.append(_library.tsr_reader_content(handle))
            return 0

        self._handle.call(ask)
        return int(content[0])

    def _read_original(self, offset: int, target: int, count: int) -> int:
        got = ctypes.c_size_t()
        self._call(_library.tsr_read_original, offset, target, count, ctypes.byref(got))
        return got.value


class _Original(io.RawIOBase):
    """The bytes of a member's original."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._position = 0
        self._size = member.info.original_bytes

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"byte {base + offset} is before the file")
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        count = min(len(buffer), max(self._size - self._position, 0))
        if not count:
            return 0
        target = (ctypes.c_char * count).from_buffer(buffer)
        got = self._member._read_original(self._position, ctypes.addressof(target), count)
        self._position += got
        return got


@dataclass(frozen=True)
class _Axis:
    """What a key takes of an axis: the numbers from first on that are read, and the key within them."""

    numbers: range
    first: int
    count: int
    within: int | slice
    is_one: bool


def _choose(key: Any, size: int) -> _Axis:
    if isinstance(key, slice):
        numbers = range(*key.indices(size))
        if not numbers:
            return _Axis(numbers, 0, 0, slice(None), False)
        first = min(numbers[0], numbers[-1])
        count = max(numbers[0], numbers[-1]) - first + 1
        return _Axis(numbers, first, count, slice(None, None, numbers.step), False)
    try:
        number = operator.index(key)
    except TypeError:
        raise TypeError(f"an index is an integer, a slice or ..., not {type(key).__name__}") from None
    if not -size <= number < size:
        raise IndexError(f"index {number} is outside of an axis of {size}")
    number %= size
    return _Axis(range(number, number + 1), number, 1, 0, True)


def _fill_key(key: Any, axes: int) -> list[Any]:
    """A part for each axis: an ellipsis and axes that are not named become full slices."""
    parts = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index has one ... at most")
    if len(parts) - len(dots) > axes:
        raise IndexError(f"{len(parts) - len(dots)} indices for {axes} axes")
    at = dots[0] if dots else len(parts)
    return parts[:at] + [slice(None)] * (axes - len(parts) + len(dots)) + parts[at + len(dots) :]


class Reader(Member):
    """A .tsr, a series or an original that is open for reading; `open` makes it.

    Of one file, the reader is its only member, too. Of a series, `members` has the files, and ``reader["name"]`` is
    one of them. Several threads may use a reader at once.
    """

    def __init__(self, data: Data, engine: Engine | str | None = None) -> None:
        handle = _Handle(data, engine)
        super().__init__(handle, 0, "")
        native = handle._handles[0]
        self.is_series: bool = self._handle_content() == _native.CONTENT_SERIES
        #: The files. A name is "" where it is lost or there is none. Where the end of a series is lost, one member stands
        #: for all of the files in it: reading it says how many they are.
        self.members: tuple[Member, ...] = tuple(
            Member(handle, i, os.fsdecode(_library.tsr_reader_name(native, i) or b""))
            for i in range(_library.tsr_reader_members(native))
        )

    def _call(self, function: Any, *arguments: Any, out: str | None = None) -> None:
        if self.is_series:
            raise TesseraError("it is a series: choose one of its members", Status.USAGE, self._handle.source.name)
        super()._call(function, *arguments, out=out)

    @overload
    def __getitem__(self, key: str) -> Member: ...
    @overload
    def __getitem__(self, key: Index) -> Array: ...
    def __getitem__(self, key: str | Index) -> Member | Array:
        if isinstance(key, str):
            for member in self.members:
                if member.name == key:
                    return member
            if self.is_series and not all(member.name for member in self.members):
                raise TesseraError(f"it has no file {key!r} among those whose names are not lost", Status.CORRUPT,
                                   self._handle.source.name)
            raise KeyError(key)
        return super().__getitem__(key)

    def _state(self) -> tuple[Any, ...]:
        """What another file has not: the id of a .tsr, or what is told of an original."""
        return ("id", self._handle.id) if self._handle.id else ("original", *self._handle.source.state())

    def close(self) -> None:
        """Closes the reader as soon as no call uses it."""
        self._handle.close()

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<tessera.Reader of {self._handle.source.name or 'bytes'}, {len(self.members)} members>"


def open(data: Data, *, engine: Engine | str | None = None) -> Reader:
    """Opens a .tsr, a series or an original (PNG, PNM, DICOM, NIfTI, Y4M) for reading.

    Parameters
    ----------
    data : path, bytes or file object
        Bytes must stay the same while the reader is open. A file object is read by ranges if it can seek; its
        position changes then.
    engine : Engine or str, optional
        The CPU by default.

    Returns
    -------
    Reader
        A reader that `Reader.close` closes.

    Raises
    ------
    TesseraError

    Examples
    --------
    >>> import numpy, tessera
    >>> ramp = numpy.arange(30, dtype=numpy.int16).reshape(2, 3, 5)
    >>> with tessera.open(tessera.compress(ramp)) as reader:
    ...     reader.shape, reader[1, 1:, -1].tolist()
    ((2, 3, 5), [24, 29])
    """
    return Reader(data, engine)
