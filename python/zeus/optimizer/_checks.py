"""Checks of the arguments of the optimisers."""

from __future__ import annotations

from typing import Any

from zeus._checks import flag, number, positive, text, whole
from zeus._core.monitor import Monitor
from zeus.errors import InvalidArgumentError
from zeus.utils.distributed import Collective, check_collective

__all__ = ["collective", "flag", "monitor", "number", "positive", "text", "whole"]


def monitor(value: Any) -> Monitor:
    if not isinstance(value, Monitor):
        raise TypeError(f"monitor is a ZeusMonitor, not {value!r}")
    return value


def collective(given: Any, rank: int, world_size: int | None = None) -> Collective | None:
    """Returns the collective; None: one process. It must agree with the program's ranks."""
    found = check_collective(given)
    if found is None:
        if rank != 0 or (world_size or 1) > 1:
            raise InvalidArgumentError(
                f"rank {rank} of several needs a collective: initialise torch.distributed first, "
                "or pass collective="
            )
        return None
    if found.rank != rank:
        raise InvalidArgumentError(f"rank is {rank}, and the collective says {found.rank}")
    if world_size is not None and found.size != world_size:
        raise InvalidArgumentError(
            f"world_size is {world_size}, and the collective says {found.size}"
        )
    return found
