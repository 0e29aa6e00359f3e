"""Members as data sets of pydicom, which is imported when it is first needed."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from ._engine import Engine
from ._errors import TesseraError
from ._media import Data

if TYPE_CHECKING:
    import pydicom

    from ._reader import Member

#: Values of more bytes are read when they are asked for.
_DEFERRED_BYTES = 4096


_DEFLATED = b"1.2.840.10008.1.2.1.99"


def _read_head(member: Member) -> bytes:
    """The original's bytes before its pixels, for which no pixels are decoded. Empty where they are not known."""
    try:
        header = member.header
    except TesseraError:
        return b""
    syntax = header.find(0x00020010)
    is_deflated = syntax is not None and (syntax.value or b"").rstrip(b"\0 ") == _DEFLATED
    return b"" if is_deflated or header.kind != "dicom" else header.bytes


class _File:
    """An original for pydicom, which takes each io.BufferedReader as a file with a name."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._head = _read_head(member)
        self._file = member.open_original()
        self._position = 0

    def __deepcopy__(self, memo: dict[int, object]) -> _File:
        return _File(self._member)

    def __reduce__(self) -> tuple[object, ...]:
        """Another process, which unpickles it, gets the original's bytes."""
        return io.BytesIO, (self._member.original(),)

    def read(self, size: int = -1, /) -> bytes:
        if 0 <= size and self._position + size <= len(self._head):
            got = self._head[self._position : self._position + size]
        else:
            self._file.seek(self._position)
            got = self._file.read(size)
        self._position += len(got)
        return got

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence == os.SEEK_END:
            self._position = self._file.seek(offset, whence)
        else:
            self._position = offset + (self._position if whence == os.SEEK_CUR else 0)
        return self._position

    def tell(self) -> int:
        return self._position


def to_pydicom(member: Member, force: bool = False) -> pydicom.FileDataset:
    """See Member.to_pydicom."""
    import pydicom

    return pydicom.dcmread(_File(member), defer_size=_DEFERRED_BYTES, force=force)


def dcmread(data: Data, *, force: bool = False, engine: Engine | str | None = None) -> pydicom.FileDataset:
    """Reads DICOM, or the .tsr of it, as pydicom's data set.

    Values of over 4 KB, such as pixel data, are read and decoded when they are asked for. Encapsulated and deflated
    files are restored at once. The file stays open as long as the data set.

    Parameters
    ----------
    data : path, bytes or file object
        A str is a path; bytes are a file's content.
    force : bool
        Files without DICOM's preamble are read, too.
    engine : Engine or str, optional
        The CPU by default.

    Returns
    -------
    pydicom.FileDataset
        The data set.
    """
    from ._reader import Reader

    return to_pydicom(Reader(data, engine), force)
