"""Members as data sets of pydicom, which is imported when it is first needed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._engine import Engine
from ._media import Data

if TYPE_CHECKING:
    import pydicom

    from ._reader import Member

#: Values of more bytes are read when they are asked for.
_DEFERRED_BYTES = 4096


class _File:
    """An original for pydicom, which takes each io.BufferedReader as a file with a name."""

    def __init__(self, member: Member) -> None:
        self._file = member.open_original()

    def read(self, size: int = -1, /) -> bytes:
        return self._file.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def to_pydicom(member: Member, force: bool = False) -> pydicom.FileDataset:
    """See Member.to_pydicom."""
    import pydicom

    return pydicom.dcmread(_File(member), defer_size=_DEFERRED_BYTES, force=force)


def dcmread(data: Data, *, force: bool = False, engine: Engine | str | None = None) -> pydicom.FileDataset:
    """Reads DICOM, or the .tsr of it, as pydicom's data set.

    Values of over 4 KB, which the pixel data are, are read and decoded when they are asked for. The file stays open as
    long as the data set.

    Parameters
    ----------
    data : path, bytes or file object
    force : bool
        Files without DICOM's preamble are read, too.
    engine : Engine or str, optional

    Returns
    -------
    pydicom.FileDataset
    """
    from ._reader import Reader

    return to_pydicom(Reader(data, engine), force)
