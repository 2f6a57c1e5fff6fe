"""Checks of what a program gives us: one sentence that names the field and the fix."""

from __future__ import annotations

import math
from typing import Any

from zeus._core.monitor import Monitor
from zeus.utils.distributed import Collective, check_collective

LARGEST_COUNT = 1_000_000_000


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is a string, not {value!r}")
    return value


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r}")
    return value


def whole(name: str, value: Any, least: int, most: int = LARGEST_COUNT) -> int:
    """A whole number, also one of numpy's, between two others."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    number = value.__index__()
    if not least <= number <= most:
        raise ValueError(f"{name} is {least} to {most}, not {number}")
    return int(number)


def number(name: str, value: Any) -> float:
    """A finite number, also one of numpy's or torch's."""
    if isinstance(value, (bool, str, bytes)) or not (
        hasattr(type(value), "__float__") or hasattr(type(value), "__index__")
    ):
        raise TypeError(f"{name} is a number, not {value!r}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ValueError(f"{name} is a finite number, not {value!r}")
    return result


def positive(name: str, value: Any, most: float = math.inf) -> float:
    result = number(name, value)
    if not 0 < result <= most:
        limit = "" if most == math.inf else f" and at most {most:g}"
        raise ValueError(f"{name} is greater than 0{limit}, not {value!r}")
    return result


def monitor(value: Any) -> Monitor:
    if not isinstance(value, Monitor):
        raise TypeError(f"monitor is a ZeusMonitor, not {value!r}")
    return value


def collective(given: Any, rank: int, world_size: int | None = None) -> Collective | None:
    """How the ranks talk; None for one process alone. It must see the ranks as the program does."""
    found = check_collective(given)
    if found is None:
        if rank != 0 or (world_size or 1) > 1:
            raise ValueError(
                f"rank {rank} of several needs a collective: initialise torch.distributed first, "
                "or pass collective="
            )
        return None
    if found.rank != rank:
        raise ValueError(f"rank is {rank}, and the collective says {found.rank}")
    if world_size is not None and found.size != world_size:
        raise ValueError(f"world_size is {world_size}, and the collective says {found.size}")
    return found
