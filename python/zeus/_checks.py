"""Checks arguments; an error is one sentence that names the argument and the fix."""

from __future__ import annotations

import math

from zeus.errors import InvalidArgumentError

TYPE_CHECKING = False  # As in zeus/__init__.py.
if TYPE_CHECKING:
    from typing import Any

LARGEST_COUNT = 1_000_000_000


def shown(value: Any) -> str:
    """Returns a short text of any value, even of one without repr(), such as a huge number."""
    try:
        text = repr(value)
    except Exception:
        return f"an object of the class {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}..."


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is a string, not {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(f"{name} is no text: {shown(value)}") from None
    return value


def flag(name: str, value: Any) -> bool:
    """Returns a bool, and rejects everything that is not exactly one."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {shown(value)}")
    return value


def whole(name: str, value: Any, least: int, most: int = LARGEST_COUNT) -> int:
    """Returns a whole number, also one of numpy's, within bounds."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} is a whole number, not {shown(value)}")
    number = value.__index__()
    if not least <= number <= most:
        bounds = f"{least} or more" if most == LARGEST_COUNT > number else f"{least} to {most}"
        raise InvalidArgumentError(f"{name} is {bounds}, not {shown(number)}")
    return int(number)


def index(name: str, value: Any) -> int:
    """Returns an index, counted from 0."""
    return whole(name, value, 0)


def indices(name: str, values: Any) -> list[int]:
    """Returns indices, counted from 0, without repetitions."""
    if isinstance(values, (str, bytes)) or not hasattr(type(values), "__iter__"):
        raise TypeError(f"{name} is a list of whole numbers, not {shown(values)}")
    positions = [index(f"each of {name}", value) for value in values]
    for position in positions:
        if positions.count(position) > 1:
            raise InvalidArgumentError(f"{name} has {position} twice")
    return positions


def number(name: str, value: Any) -> float:
    """Returns a finite number, also one of numpy's or torch's."""
    if isinstance(value, (bool, str, bytes)) or not (
        hasattr(type(value), "__float__") or hasattr(type(value), "__index__")
    ):
        raise TypeError(f"{name} is a number, not {shown(value)}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    except Exception:  # A tensor of several numbers raises, for example.
        raise TypeError(f"{name} is a number, not {shown(value)}") from None
    if not math.isfinite(result):
        raise InvalidArgumentError(f"{name} is a finite number, not {shown(value)}")
    return result


def positive(name: str, value: Any, most: float = math.inf) -> float:
    result = number(name, value)
    if not 0 < result <= most:
        limit = "" if most == math.inf else f" and at most {most:g}"
        raise InvalidArgumentError(f"{name} is greater than 0{limit}, not {shown(value)}")
    return result


def not_negative(name: str, value: Any) -> float:
    result = number(name, value)
    if result < 0:
        raise InvalidArgumentError(f"{name} is 0 or more, not {shown(value)}")
    return result
