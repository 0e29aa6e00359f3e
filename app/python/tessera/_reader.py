"""Readers: frames, regions, headers and bytes of an original, without restoring the whole."""

from __future__ import annotations

import ctypes
import html
import io
import math
import operator
import os
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from . import _keys, _native, _show
from ._engine import Engine
from ._errors import Status, TesseraError
from ._handle import Handle, ImageHandle
from ._image import Array, Image, empty_raster, unpack
from ._image import from_native as image_from_native
from ._image import is_of_one_frame
from ._info import Header, Info, info_from_native
from ._media import Data, MemorySink, sink_to_path
from ._reports import Report, report_from_native
from ._roi import Rectangle, rectangle_from_native
from ._secret import KeyLike, key_of

if TYPE_CHECKING:
    from types import EllipsisType
    from typing import Union

    import pydicom

    #: What chooses of one axis, and of several.
    AxisIndex = Union[SupportsIndex, slice, EllipsisType, None, list[int], list[bool], Array]
    Index = Union[AxisIndex, tuple[AxisIndex, ...]]

_library = _native.library


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
        return Member(ImageHandle(self._member._handle, self._member._number, number % self._count), 0, "")


class Member:
    """A file of a reader.

    ``member[frame, rows, columns]`` is an array of values; of a region, only the tiles that it touches are decoded.
    Several threads may use it at once.
    """

    def __init__(self, handle: Handle, number: int, name: str) -> None:
        self._handle = handle
        self._number = number
        self._native_image: _native.tsr_image | None = None
        self._was_array: bool | None = None
        self.name = name

    def __repr__(self) -> str:
        return f"<tessera.{type(self).__name__} of {_show.describe(self)}>"

    def _repr_html_(self) -> str:
        return _show.to_html(self)

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
    def exact(self) -> list[Rectangle]:
        """The rectangles of each frame that come back as they were.

        Column, row, columns and rows, which do not overlap. Empty if the file has no such region.
        """
        count = ctypes.c_uint32()
        self._call(_library.tsr_read_exact, None, 0, ctypes.byref(count))
        rectangles = (_native.tsr_region * max(1, count.value))()
        self._call(_library.tsr_read_exact, rectangles, count.value, ctypes.byref(count))
        return [rectangle_from_native(region) for region in rectangles[: count.value]]

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
    def _is_array(self) -> bool:
        """Whether it was made of an array: samples without a byte around them, which are no file of another kind."""
        if self._was_array is None:
            image, info = self.image, self.info
            bits = image.frames * image.rows * image.columns * image.components * image.bits_allocated
            self._was_array = info.kind == "other" and info.files == 0 and info.original_bytes == (bits + 7) // 8
        return self._was_array

    @property
    def _is_frame(self) -> bool:
        """Whether there is no axis of frames: an array of one frame has none, unless it says that it has (_image.py)."""
        return self.frames == 1 and self._is_array and not is_of_one_frame(self._image())

    @property
    def frames(self) -> int:
        """The number of frames."""
        return int(self._image().frames)

    @property
    def shape(self) -> tuple[int, ...]:
        """Frames, rows, columns and, where there are several, components; of an array, its own shape.

        An array of one frame in colours that had an axis of one frame comes back without it.
        """
        return self.image.frame_shape if self._is_frame else self.image.shape

    @property
    def ndim(self) -> int:
        """The number of axes of `shape`."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of values."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of an array of all values."""
        return self.size * self.dtype.itemsize

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values: that of `Image.dtype`, or bool of an array of bool."""
        return np.dtype(np.bool_) if self._is_array and self._image().bits_allocated == 1 else self.image.dtype

    @property
    def chunks(self) -> tuple[int, ...]:
        """The shape of a tile, which is what an index reads and decodes at least."""
        chunk = (1, *self._tile_shape(), *self.image.frame_shape[2:])
        return chunk[1:] if self._is_frame else chunk

    def _tile_shape(self) -> tuple[int, int]:
        """Rows and columns of the tiles as the encoder cuts them (transform/tiling.h). Other tiles are read as well."""
        image, info = self.image, self.info
        align = 64 if info.path == "transform" or info.coder == "cavlc" else 1

        def equal_part(side: int, most: int) -> int:
            part = -(-side // -(-side // most))
            return -(-part // align) * align

        width = equal_part(image.columns, 1024)
        height = equal_part(image.stacked_rows or image.rows, max(align, 65536 // width // align * align))
        return min(height, image.rows), min(width, image.columns)

    def __len__(self) -> int:
        return self.shape[0]

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
        values = unpack(image, raster, rows, columns)
        return values.view(np.bool_) if self.dtype == np.bool_ else values

    def __getitem__(self, key: Index) -> Array:
        return self._take(key, 1 if self._is_frame else 0)

    def _take(self, key: Any, lead: int = 0) -> Array:
        """What a key takes of frames, rows, columns and components. lead: of the first frame alone, without that axis."""
        shape = self.image.shape
        parts = [0] * lead + _keys.fill(key, len(shape) - lead)
        axes, inner = _keys.choose(parts, shape)
        rows, columns = axes[1:3]
        if all(axis.count for axis in axes):
            made = [self._read_kept(frame, rows, columns) for frame in axes[0].numbers]
            block = made[0][np.newaxis] if len(made) == 1 else np.stack(made)
        else:
            block = np.empty((*(len(axis.numbers) for axis in axes[:3]), *shape[3:]), self.dtype)
        if len(axes) > 3:
            first, count = axes[3].first, axes[3].count
            block = block[..., first : first + count][..., axes[3].kept]
        taken: Array = block[0][inner[1:]] if lead else block[inner]
        return taken

    def _read_kept(self, frame: int, rows: _keys.Axis, columns: _keys.Axis) -> Array:
        values = self._read(frame, rows.first, columns.first, rows.count, columns.count)
        kept: Array = values[rows.kept][:, columns.kept]
        return kept

    def __iter__(self) -> Iterator[Array]:
        if self._is_frame:
            yield from self[:]
        else:
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


class Reader(Member):
    """A .tsr, a series or an original that is open for reading; `open` makes it.

    Of one file, the reader is its only member, too. Of a series, `members` has the files, and ``reader["name"]`` is
    one of them. Several threads may use a reader at once.
    """

    def __init__(
        self,
        data: Data,
        engine: Engine | str | None = None,
        level: str | None = None,
        key: KeyLike | None = None,
    ) -> None:
        if level not in (None, "base"):
            raise ValueError(f"level is {level!r}: it can be 'base' or None")
        handle = Handle(data, engine, level == "base", key_of(key))
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
        return self._handle.state()

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
        if self.is_series:
            return f"<tessera.Reader of {self._handle.source.name or 'bytes'}, a series of {len(self.members)} members>"
        return super().__repr__()

    def _repr_html_(self) -> str:
        return html.escape(repr(self)) if self.is_series else super()._repr_html_()


def open(
    data: Data,
    *,
    engine: Engine | str | None = None,
    level: str | None = None,
    key: KeyLike | None = None,
) -> Reader:
    """Opens a .tsr, a series or an original (PNG, PNM, DICOM, NIfTI, Y4M) for reading.

    Parameters
    ----------
    data : path, bytes or file object
        Bytes must stay the same while the reader is open. A file object is read by ranges if it can seek; its
        position changes then.
    engine : Engine or str, optional
        The CPU by default.
    level : {"base"}, optional
        Of a .tsr that was compressed with `Options.lossless_rest`: its base, of which alone anything is read.
    key : Key, path or bytes, optional
        Of a .tsr that is encrypted; a str is the path of a key file.

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
    return Reader(data, engine, level, key)
