"""Tessera: lossless and lossy compression of images, medical ones above all."""

from ._dicom import dcmread
from ._engine import Engine, engine
from ._errors import Status, TesseraError
from ._files import (
    Options,
    Report,
    Result,
    SetError,
    WindowLoss,
    compress,
    compress_file,
    compress_set,
    decode,
    decompress,
    encode,
    restore_file,
)
from ._image import Image
from ._native import library as _library
from ._reader import Element, Header, Info, Member, Reader, open  # noqa: A004

__version__: str = _library.tsr_version().decode()
#: The version of the .tsr files that are written.
format_version: int = _library.tsr_format_version()

__all__ = [
    "Element",
    "Engine",
    "Header",
    "Image",
    "Info",
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
