"""What a key of NumPy's takes of an image: the frames, rows and columns that are read, and the key within these."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Axis:
    """The numbers from first on, count of them, that are read of an axis; which of them are kept, and the key of those."""

    first: int
    count: int
    kept: Any
    key: Any

    @property
    def numbers(self) -> list[int]:
        """The numbers that are kept."""
        numbers: list[int] = np.arange(self.first, self.first + self.count)[self.kept].tolist()
        return numbers


def _choose_number(number: int, size: int) -> Axis:
    if not -size <= number < size:
        raise IndexError(f"index {number} is outside of an axis of {size}")
    return Axis(number % size, 1, slice(None), 0)


def _choose_slice(part: slice, size: int) -> Axis:
    numbers = range(*part.indices(size))
    if not numbers:
        return Axis(0, 0, slice(None), slice(None))
    first = min(numbers[0], numbers[-1])
    count = max(numbers[0], numbers[-1]) - first + 1
    return Axis(first, count, slice(None, None, abs(numbers.step)), slice(None, None, 1 if numbers.step > 0 else -1))


def _choose_list(part: np.ndarray[Any, Any], size: int) -> Axis:
    if part.size and not (-size <= part.min() and part.max() < size):
        raise IndexError(f"indices of {part.min()} to {part.max()} are outside of an axis of {size}")
    kept, key = np.unique(np.where(part < 0, part + size, part), return_inverse=True)
    key = key.reshape(part.shape)  # NumPy 2.0 does, others do not
    if not part.size:
        return Axis(0, 0, slice(None), key)
    first = int(kept[0])
    return Axis(first, int(kept[-1]) - first + 1, kept - first, key)


def _to_parts(part: Any) -> list[Any]:
    """A part of a key as ..., None, slices, integers and arrays of integers; a mask becomes an array for each of its axes."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return [part]
    if not isinstance(part, (bool, np.bool_)) and hasattr(part, "__index__") and not np.ndim(part):
        return [operator.index(part)]
    array = np.asarray(part) if isinstance(part, (list, np.ndarray)) else np.array(0.0)
    if not array.size and isinstance(part, list):
        array = array.astype(np.intp)
    if not array.ndim or array.dtype.kind not in "biu":
        raise TypeError(
            f"an index is an integer, a slice, ..., None, or an array of integers or of bool, not {type(part).__name__}"
        )
    return list(_Mask.of(array)) if array.dtype.kind == "b" else [array.astype(np.intp)]


class _Mask(np.ndarray[Any, Any]):
    """The places along one axis where a mask is true; and that axis's size in the mask."""

    size_of_axis: int

    @staticmethod
    def of(mask: Any) -> list[_Mask]:
        made = []
        for places, size in zip(np.nonzero(mask), mask.shape):
            made.append(places.view(_Mask))
            made[-1].size_of_axis = size
        return made


def fill(key: Any, axes: int) -> list[Any]:
    """The parts of a key, and full slices for axes that it does not name."""
    parts = [made for part in (key if isinstance(key, tuple) else (key,)) for made in _to_parts(part)]
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    named = sum(part is not None and part is not Ellipsis for part in parts)
    if len(dots) > 1:
        raise IndexError("an index has one ... at most")
    if named > axes:
        raise IndexError(f"{named} indices for {axes} axes")
    at = dots[0] if dots else len(parts)
    return parts[:at] + [slice(None)] * (axes - named) + parts[at + len(dots) :]


def choose(parts: list[Any], shape: tuple[int, ...]) -> tuple[list[Axis], tuple[Any, ...]]:
    """What is taken of each axis, and the key of the kept. parts: of fill, for all axes."""
    axes: list[Axis] = []
    key: list[Any] = []
    for part in parts:
        if part is None:
            key.append(None)
            continue
        size = shape[len(axes)]
        if isinstance(part, _Mask) and part.size_of_axis != size:
            raise IndexError(f"a mask of {part.size_of_axis} along an axis of {size}")
        how = _choose_slice if isinstance(part, slice) else _choose_list if isinstance(part, np.ndarray) else _choose_number
        axes.append(how(part, size))
        key.append(axes[-1].key)
    return axes, tuple(key)
