"""Images: what a raster's layout is, and arrays of it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _native
from ._errors import check
from ._numbers import integer

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Image:
    """The layout of an image's samples in its file (struct tsr_image).

    Arrays never show planar, swapped or big-endian samples, nor packed ones of one bit.
    """

    columns: int
    rows: int
    frames: int
    components: int
    bits_allocated: int
    bits_stored: int
    high_bit: int
    is_signed: bool
    planar: bool
    big_endian: bool
    swapped: bool
    exact_only: bool
    is_float: bool
    stacked_rows: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the samples in an array, which holds their values. Samples of one bit are uint8."""
        return np.dtype(f"{_kind(self)}{max(self.bits_allocated, 8) // 8}")

    @property
    def frame_shape(self) -> tuple[int, ...]:
        """Rows, columns and, where there are several, components."""
        return (self.rows, self.columns) + ((self.components,) if self.components > 1 else ())

    @property
    def shape(self) -> tuple[int, ...]:
        """Frames, then the shape of a frame."""
        return (self.frames, *self.frame_shape)


def _kind(image: Image | _native.tsr_image) -> str:
    return "f" if image.is_float else "i" if image.is_signed else "u"


def from_native(image: _native.tsr_image) -> Image:
    return Image(*(getattr(image, field[0]) for field in image._fields_ if field[0] not in ("tile_side", "reserved")))


def is_of_one_frame(image: _native.tsr_image) -> bool:
    """Whether an array of one frame had an axis of frames: its layout is planar, which changes nothing of one component.

    An image in colours of one frame never has one.
    """
    return bool(image.planar) and image.components == 1


def unpack(image: _native.tsr_image, raster: Array, rows: int, columns: int) -> Array:
    """The values of a raster of rows x columns samples that is not swapped. raster: bytes, which the result may take."""
    components, bits = image.components, image.bits_allocated
    count = rows * columns * components
    if bits == 1:
        values = np.unpackbits(raster, count=count, bitorder="little")
        return _arrange(image, -values.view(np.int8) if image.is_signed else values, rows, columns)
    stored = np.dtype(f"{'>' if image.big_endian else '<'}{_kind(image)}{bits // 8}")
    values = raster.view(stored)
    if not stored.isnative:
        values = values.byteswap(inplace=True).view(stored.newbyteorder("="))
    if image.bits_stored < bits:
        above = bits - 1 - image.high_bit
        if above:
            values <<= above
        values >>= bits - image.bits_stored
    return _arrange(image, values, rows, columns)


def _arrange(image: _native.tsr_image, values: Array, rows: int, columns: int) -> Array:
    components = image.components
    if components == 1:
        return values.reshape(rows, columns)
    if image.planar:
        return np.ascontiguousarray(values.reshape(components, rows, columns).transpose(1, 2, 0))
    return values.reshape(rows, columns, components)


def _count_components(shape: tuple[int, ...], components: int | None) -> int:
    """The length of the last axis if it is that of components, else 0."""
    if components is None:
        return shape[-1] if len(shape) >= 3 and shape[-1] in (3, 4) else 0
    if components == 1:
        return 0
    if len(shape) < 3 or shape[-1] != components:
        raise ValueError(f"an array of shape {shape} does not have {components} components on its last axis")
    return components


def describe(
    shape: tuple[int, ...], dtype: np.dtype[Any], bits: int | None, components: int | None, one_frame: bool
) -> _native.tsr_image:
    """The image of an array. one_frame: the array's frames become one, in which they lie below each other."""
    if dtype != np.bool_ and dtype.kind not in "iu" and (dtype.kind != "f" or dtype.itemsize not in (4, 8)):
        raise TypeError(f"samples of {dtype} cannot be coded: bool, integers, float32 and float64 can")
    if one_frame and (dtype.kind == "f" or dtype.itemsize > 4):
        raise TypeError(f"samples of {dtype} cannot be coded as a frame: bool, and integers of 8, 16 and 32 bits can")
    along = _count_components(shape, components)
    planes = shape[:-1] if along else shape
    if len(planes) not in (2, 3) or min(shape) < 1:
        raise ValueError(f"an array of shape {shape} is not an image, nor frames of one")
    frames = planes[0] if len(planes) == 3 else 1
    image = _native.tsr_image()
    rows, columns = planes[-2:]
    if one_frame and frames > 1:
        image.stacked_rows = rows
        rows, frames = rows * frames, 1
    if max(rows, columns) > 65535 or frames > 2**31 - 1 or along > 255:
        raise ValueError(f"an array of shape {shape} is too large: frames have at most 65535 x 65535 samples")
    image.frames, image.rows, image.columns, image.components = frames, rows, columns, along or 1
    image.bits_allocated = 1 if dtype == np.bool_ else dtype.itemsize * 8
    image.is_signed = dtype.kind == "i"
    image.is_float = dtype.kind == "f"
    image.planar = len(planes) == 3 and frames == 1 and not along and not one_frame
    stored = image.bits_allocated if bits is None else integer("bits", bits, 1, 2**31)
    if stored > image.bits_allocated:
        raise ValueError(f"{bits} bits do not fit samples of {dtype}")
    image.bits_stored, image.high_bit = stored, stored - 1
    error = _native.tsr_error()
    check(_native.library.tsr_check_image(ctypes.byref(image), ctypes.byref(error)), error)
    return image


def refuse_mask(array: Any) -> None:
    """TypeError for an array with masked values, of which no mask would be kept."""
    if np.ma.is_masked(array):
        raise TypeError("the mask of a masked array cannot be kept: give its filled() values or its data")


def pack(array: Array, image: _native.tsr_image) -> Array:
    """The raster of an array, as bytes; without a copy where the array has its layout."""
    refuse_mask(array)
    if image.bits_allocated == 1:
        return np.packbits(np.ascontiguousarray(array).reshape(-1), bitorder="little")
    if image.bits_stored < image.bits_allocated:
        low, high = (-(1 << image.bits_stored - 1), (1 << image.bits_stored - 1) - 1) if image.is_signed else (
            0, (1 << image.bits_stored) - 1)
        least, most = int(array.min()), int(array.max())
        if least < low or most > high:
            raise ValueError(f"values of {least} to {most} do not fit {image.bits_stored} bits")
    stored = array.dtype.newbyteorder("<")
    return np.ascontiguousarray(array, dtype=stored).reshape(-1).view(np.uint8)


def empty_raster(image: _native.tsr_image) -> Array:
    bits = _native.library.tsr_frame_bits(ctypes.byref(image))
    return np.empty((bits + 7) // 8, np.uint8)
