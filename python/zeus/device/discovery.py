"""Looking for devices, once for a process and its surroundings."""

from __future__ import annotations

import os
from typing import Any, Callable, TypeVar, cast

from zeus._core.device import Devices

__all__ = ["find_devices", "forget", "reasons", "view"]

# Whatever decides which devices a process sees.
_VARIABLES = (
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZEUS_NVML_LIBRARY",
    "ZEUS_SIM",
    "ZEUS_SIM_DIR",
    "ZEUS_SIM_NODE",
)

_View = TypeVar("_View")

_found: tuple[tuple[object, ...], Devices] | None = None
_views: dict[object, Any] = {}


def find_devices() -> Devices:
    """The same object every time, unless the environment changed or this is a forked child."""
    global _found
    surroundings = (os.getpid(), *map(os.environ.get, _VARIABLES))
    if _found is None or _found[0] != surroundings:
        forget()
        _found = (surroundings, Devices())
    return _found[1]


def view(make: Callable[[Devices], _View]) -> _View:
    """What it makes of the devices; the same object as long as they are the same."""
    devices = find_devices()
    if make not in _views:
        _views[make] = make(devices)
    return cast(_View, _views[make])


def forget() -> None:
    """The next one looks anew: what is there now is about to vanish."""
    global _found
    _found = None
    _views.clear()


def reasons(devices: Devices, *kinds: str) -> str:
    """Why devices of some kinds ("GPU") are absent, and what would help, in one sentence."""
    return "; ".join(
        f"{what}: {why}" + (f" ({fix})" if fix else "")
        for what, why, fix in devices.absent
        if any(kind in what for kind in kinds)
    )
