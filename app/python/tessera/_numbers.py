"""Numbers that go to the C library, where one that does not fit its type would become another."""

from __future__ import annotations

import math
import operator
from typing import Any

# Callers give the library's ranges: its own errors name no keyword and no range, and it takes effort 0 as default.


def integer(name: str, value: Any, low: int, high: int) -> int:
    """A number that was checked. Errors: ValueError."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        raise ValueError(f"{name} is {value!r}, not an integer of {low} to {high}")
    return number


def parts(name: str, value: Any, scale: int, low: float, high: float) -> int:
    """A number of low to high in integer parts of 1 / scale. Errors: ValueError."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not low <= number <= high:  # no comparison with a NaN is true
        raise ValueError(f"{name} is {value!r}, not a number of {low:g} to {high:g}")
    return round(number * scale)
