"""Arguments from programs, turned down with one sentence."""

from __future__ import annotations

import math
import operator
from typing import SupportsFloat, SupportsIndex


def index(value: SupportsIndex, what: str) -> int:
    """A position, which counts from 0."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} is a whole number, not {value!r}")
    number = operator.index(value)
    if number < 0:
        raise ValueError(f"{what} counts from 0, and is not {number}")
    return number


def number(value: SupportsFloat, what: str) -> float:
    """A number above 0."""
    if isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{what} is a number, not {value!r}")
    result = float(value)
    if not (math.isfinite(result) and result > 0):
        raise ValueError(f"{what} is a number above 0, not {result:g}")
    return result


def flag(value: bool, what: str) -> bool:
    """True or False, and nothing that is merely as good as true."""
    if not isinstance(value, bool):
        raise TypeError(f"{what} is True or False, not {value!r}")
    return value
