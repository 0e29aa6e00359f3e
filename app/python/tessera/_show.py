"""How members show themselves in notebooks."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ._errors import TesseraError
from ._image import Array

if TYPE_CHECKING:
    from ._reader import Member

_SIDE = 192
#: Of a frame of more samples than these no thumbnail is made: a part of it would say little, the whole takes long.
_SAMPLES_LIMIT = 1 << 26


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _to_png(values: Array) -> bytes:
    """A PNG of 8 bits: rows, columns and, of colours, three components."""
    rows, columns = values.shape[:2]
    lines = np.zeros((rows, 1 + values[0].size), np.uint8)
    lines[:, 1:] = values.reshape(rows, -1)
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2 if values.ndim == 3 else 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) +
            _chunk(b"IEND", b""))


def thumbnail(frame: Array) -> bytes:
    """A PNG of a frame: every n-th sample, and from the least value to the largest, black to white."""
    step = max(1, -(-max(frame.shape[:2]) // _SIDE))
    small: Any = frame[::step, ::step].astype(np.float64)
    if small.ndim == 3:
        small = small[..., :3] if small.shape[2] >= 3 else small[..., 0]
    low, high = small.min(), small.max()
    return _to_png(np.round((small - low) * (255 / (high - low) if high > low else 0)).astype(np.uint8))


def describe(member: Member) -> str:
    """Name, shape and type in one line; what cannot be read is said."""
    name = member._handle.source.name or "bytes"
    name += f"::{member.name}" if member.name else ""
    if member._handle._is_closed:
        return f"{name}, closed"
    try:
        return f"{name}, {member.shape} {member.dtype}"
    except TesseraError as error:
        return f"{name}, {error}"


def to_html(member: Member) -> str:
    """A table of what the member is, and a thumbnail of its middle frame."""
    rows = [("file", describe(member))]
    picture = ""
    try:
        info = member.info
        rows.append(("bytes", f"{info.file_bytes:,} of {info.original_bytes:,}"))
        rows.append(("kind", info.kind + (", with loss" if info.lossy else "")))
        if member.image.rows * member.image.columns <= _SAMPLES_LIMIT:
            data = base64.b64encode(thumbnail(member._take(member.frames // 2))).decode()
            picture = f'<img alt="frame {member.frames // 2}" src="data:image/png;base64,{data}">'
    except (TesseraError, ValueError):  # the first row says what can be said
        pass
    table = "".join(f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{table}</table>{picture}"
