"""Tessera: lossless and lossy compression of images, medical ones above all."""

from ._dicom import dcmread
from ._engine import Engine, engine
from ._errors import Status, TesseraError
from ._files import compress, compress_file, decode, decompress, encode, restore_file
from ._image import Image
from ._info import Element, Header, Info
from ._native import library as _library
from ._options import Options
from ._reader import Images, Member, Reader, open  # noqa: A004
from ._reports import Report, WindowLoss
from ._secret import Key
from ._sets import Result, SetError, compress_set

__version__: str = _library.tsr_version().decode()
#: The version of the .tsr files that are written.
format_version: int = _library.tsr_format_version()

__all__ = [
    "Element",
    "Engine",
    "Header",
    "Image",
    "Images",
    "Info",
    "Key",
    "Member",
    "Options",
    "Reader",
    "Report",
    "Result",
    "SetError",
    "Status",
    "TesseraError",
    "WindowLoss",
    "__version__",
    "compress",
    "compress_file",
    "compress_set",
    "dcmread",
    "decode",
    "decompress",
    "encode",
    "engine",
    "format_version",
    "open",
    "restore_file",
]
