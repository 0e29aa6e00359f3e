"""Regions of interest: what of an image with loss comes back as it was."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Union

import numpy as np

from . import _native
from ._numbers import integer

Rectangle = tuple[int, int, int, int]
"""Column, row, columns and rows, in samples."""

RoiPart = Union[Rectangle, np.ndarray, Literal["auto"]]
Roi = Union[RoiPart, Sequence[RoiPart]]


class Exact(NamedTuple):
    """What of a file with loss comes back as it was, in each frame and component: samples, in so many rectangles, which
    all lie in box (`Reader.exact` lists them).
    """

    samples: int
    rectangles: int
    box: Rectangle


def rectangle_from_native(region: _native.tsr_region) -> Rectangle:
    return region.column, region.row, region.columns, region.rows


def exact_from_native(exact: _native.tsr_exact) -> Exact | None:
    if exact.samples == 0:
        return None
    return Exact(exact.samples, exact.rectangles, rectangle_from_native(exact.box))


def _is_rectangle(part: Any) -> bool:
    return isinstance(part, tuple) and len(part) == 4 and all(isinstance(n, (int, np.integer)) for n in part)


def _join_masks(masks: list[np.ndarray]) -> np.ndarray:
    for mask in masks:
        if mask.ndim != 2 or mask.shape != masks[0].shape:
            raise ValueError("a mask is an array of rows and columns, and all have one shape")
    return np.ascontiguousarray(np.any([mask != 0 for mask in masks], axis=0)).view(np.uint8)


def roi_to_native(roi: Roi, name: str = "roi") -> _native.tsr_roi:
    """As the C library's struct, which keeps alive what it points to.

    Raises
    ------
    ValueError
        For what is no region.
    """
    alone = _is_rectangle(roi) or isinstance(roi, (str, np.ndarray))
    given: Any = roi
    parts: list[Any] = [given] if alone else list(given)
    native = _native.sized(_native.tsr_roi)
    rectangles = [part for part in parts if _is_rectangle(part)]
    masks = [part for part in parts if isinstance(part, np.ndarray)]
    native.body = any(isinstance(part, str) and part == "auto" for part in parts)
    if not parts or len(rectangles) + len(masks) + sum(isinstance(p, str) and p == "auto" for p in parts) < len(parts):
        raise ValueError(
            f"{name} is (column, row, columns, rows), an array of rows and columns, 'auto', or a sequence of these"
        )
    list_of = (_native.tsr_region * max(1, len(rectangles)))()
    for region, (column, row, columns, rows) in zip(list_of, rectangles):
        region.column = integer(name, column, 0, 65535)
        region.row = integer(name, row, 0, 65535)
        region.columns = integer(name, columns, 1, 65535)
        region.rows = integer(name, rows, 1, 65535)
    native.rectangles = list_of
    native.rectangle_count = len(rectangles)
    if masks:
        mask = _join_masks(masks)
        native.mask = mask.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        native.mask_rows, native.mask_columns = mask.shape
        native.kept_alive = (list_of, mask)
    else:
        native.kept_alive = (list_of,)
    return native
