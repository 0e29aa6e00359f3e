"""Chunks of the Zarr codecs: an array to frame payloads and back, as io/ZARR.md says."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from . import _native
from ._errors import Status, TesseraError
from ._files import decode_raster, encode_raster
from ._image import Array, refuse_mask

_library = _native.library

VERSION = 1
_SIDE_LIMIT = 65535
_SAMPLES_LIMIT = 1 << 27
_TYPES = "int8, uint8, int16 and uint16"
_RANGES = {"effort": (1, 9), "max_error": (0, 32767), "components": (1, 4), "depth": (1, 4)}


@dataclass(frozen=True)
class Configuration:
    """What io/ZARR.md says of each parameter; version is the class's."""

    effort: int
    max_error: int
    components: int
    depth: int

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            low, high = _RANGES[name]
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
                raise ValueError(f"the tessera codec's {name} is {value!r}, not an integer of {low} to {high}")
            object.__setattr__(self, name, int(value))
        if self.components > 1 and self.depth > 1:
            raise ValueError(
                f"the tessera codec has {self.components} components and a depth of {self.depth}: one of them must be 1"
            )

    def to_dict(self) -> dict[str, int]:
        return {"version": VERSION, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], others: tuple[str, ...] = ()) -> Configuration:
        """Takes all parameters, and no others but those that are named."""
        names = ("version", *(field.name for field in fields(cls)))
        version = data.get("version", VERSION)
        if isinstance(version, bool) or version != VERSION:  # a later version may have other parameters
            raise ValueError(f"version {version!r} of the tessera codec is not known: this package knows {VERSION}")
        missing = [name for name in (*names, *others) if name not in data]
        if missing:
            raise ValueError(f"the tessera codec's configuration lacks {', '.join(missing)}")
        unknown = [str(name) for name in data if name not in names and name not in others]
        if unknown:
            raise ValueError(f"the tessera codec does not know {', '.join(unknown)}")
        return cls(**{name: data[name] for name in names[1:]})


def check_type(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "iu" or dtype.itemsize > 2:
        raise TypeError(f"the tessera codec takes {_TYPES}, not {dtype}")


@dataclass(frozen=True)
class Layout:
    """A chunk's planes, and the frames that they become."""

    configuration: Configuration
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __post_init__(self) -> None:
        settings, shape = self.configuration, self.shape
        check_type(self.dtype)
        axes = 3 if settings.components > 1 else 2
        if len(shape) < axes or min(shape) < 1:
            raise ValueError(f"the tessera codec takes chunks of {axes} axes or more, not the shape {shape}")
        if axes == 3 and shape[-1] != settings.components:
            raise ValueError(
                f"the last axis of the shape {shape} is not that of the tessera codec's {settings.components} components"
            )
        if self.planes % settings.depth:
            raise ValueError(
                f"the {self.planes} planes of the shape {shape} are not a multiple of the tessera codec's depth of"
                f" {settings.depth}"
            )
        if max(self.rows, self.columns) > _SIDE_LIMIT or self.samples > _SAMPLES_LIMIT:
            raise ValueError(
                f"a plane of the shape {shape} is too large for the tessera codec: it takes sides of {_SIDE_LIMIT}"
                f" and {_SAMPLES_LIMIT} samples"
            )

    @property
    def _axes(self) -> tuple[int, ...]:
        return self.shape[:-1] if self.configuration.components > 1 else self.shape

    @property
    def rows(self) -> int:
        return self._axes[-2]

    @property
    def columns(self) -> int:
        return self._axes[-1]

    @property
    def planes(self) -> int:
        return math.prod(self._axes[:-2])

    @property
    def components(self) -> int:
        """Components of a frame: those of a sample, or planes."""
        return self.configuration.components * self.configuration.depth

    @property
    def samples(self) -> int:
        """Samples of the planes that cannot be in several frames."""
        return self.rows * self.columns * self.components

    def cut(self) -> list[tuple[int, int]]:
        """First and end plane of each frame: as few frames as the limits allow, about equally high."""
        depth = self.configuration.depth
        units = self.planes // depth
        most = min(_SIDE_LIMIT // self.rows, _SAMPLES_LIMIT // self.samples)
        frames = -(-units // most)
        step = -(-units // frames) * depth
        return [(first, min(first + step, self.planes)) for first in range(0, self.planes, step)]

    def image(self, planes: int) -> _native.tsr_image:
        """The frame in which so many planes lie below each other; with a depth, as its components."""
        depth, bits = self.configuration.depth, self.dtype.itemsize * 8
        image = _native.tsr_image()
        image.columns, image.rows, image.frames = self.columns, self.rows * (planes // depth), 1
        image.components, image.planar = self.components, depth > 1
        image.bits_allocated, image.bits_stored, image.high_bit = bits, bits, bits - 1
        image.is_signed = self.dtype.kind == "i"
        image.big_endian = bits > 8 and sys.byteorder == "big"
        image.stacked_rows = self.rows
        return image


def _encode_frame(image: _native.tsr_image, raster: Array, configuration: Configuration) -> bytes:
    coding = _native.tsr_coding(effort=configuration.effort)
    coding.lossy, coding.max_error = configuration.max_error > 0, configuration.max_error
    return encode_raster(image, coding, raster, None)


def _put_varint(value: int) -> bytes:
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def _get_varint(data: Array, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    value = 0
    for i, group in enumerate(data[at : at + 10].tolist()):
        value |= (group & 127) << 7 * i
        if group < 128:
            return value, at + i + 1
    raise _ends()


def _ends() -> TesseraError:
    return TesseraError("the chunk ends before its last frame", Status.CORRUPT)


def _across(array: Array, depth: int) -> Array:
    """Planes p, p + 1, ... of a unit become components: all first planes, then all second planes."""
    return array.reshape(-1, depth, *array.shape[1:]).swapaxes(0, 1)


def encode(array: Array, configuration: Configuration) -> bytes:
    refuse_mask(array)
    layout = Layout(configuration, array.shape, array.dtype)
    planes = array.astype(array.dtype.newbyteorder("="), copy=False).reshape(layout.planes, layout.rows, -1)
    payloads = []
    for first, end in layout.cut():
        part = planes[first:end]
        raster = np.ascontiguousarray(_across(part, configuration.depth) if configuration.depth > 1 else part)
        payloads.append(_encode_frame(layout.image(end - first), raster, configuration))
    sized = [_put_varint(len(payload)) + payload for payload in payloads[:-1]]
    return b"".join([*sized, payloads[-1]])


def _split(data: Array, count: int) -> list[Array]:
    """The payloads of count frames."""
    payloads, at = [], 0
    for _ in range(count - 1):
        size, at = _get_varint(data, at)
        if size > data.size - at:
            raise _ends()
        payloads.append(data[at : at + size])
        at += size
    return [*payloads, data[at:]]


def decode(data: Array, configuration: Configuration, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """data: bytes in one piece. The memory that it takes depends on the shape, not on what the bytes say."""
    layout = Layout(configuration, shape, dtype)
    cut = layout.cut()
    payloads = _split(data, len(cut))
    chunk = np.empty(shape, dtype.newbyteorder("="))
    planes = chunk.reshape(layout.planes, layout.rows, -1)
    for (first, end), payload in zip(cut, payloads):
        part = planes[first:end]
        if configuration.depth == 1:
            decode_raster(layout.image(end - first), payload, part, None)
            continue
        raster = np.empty_like(_across(part, configuration.depth), order="C")
        decode_raster(layout.image(end - first), payload, raster, None)
        _across(part, configuration.depth)[:] = raster
    return chunk.astype(dtype, copy=False)
