"""Discovers devices once per process and environment."""

from __future__ import annotations

import os
from typing import Any, Callable, TypeVar, cast

from zeus._core.device import Devices

__all__ = [
    "amdsmi_is_available",
    "find_devices",
    "forget",
    "jetson_is_available",
    "nvml_is_available",
    "rapl_is_available",
    "reasons",
    "view",
]

# Environment variables that decide which devices a process sees.
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
    """Returns the same object until the environment changes or the process forks."""
    global _found
    surroundings = (os.getpid(), *map(os.environ.get, _VARIABLES))
    if _found is None or _found[0] != surroundings:
        forget()
        _found = (surroundings, Devices())
    return _found[1]


def view(make: Callable[[Devices], _View]) -> _View:
    """Returns `make(devices)`, cached as long as the devices are the same."""
    devices = find_devices()
    if make not in _views:
        _views[make] = make(devices)
    return cast(_View, _views[make])


def forget() -> None:
    """Makes the next call discover again, because the present devices are about to vanish."""
    global _found
    _found = None
    _views.clear()


def nvml_is_available() -> bool:
    """Returns whether this process sees a GPU of NVIDIA."""
    return _has_vendor("NVIDIA")


def amdsmi_is_available() -> bool:
    """Returns whether this process sees a GPU of AMD."""
    return _has_vendor("AMD")


def rapl_is_available() -> bool:
    """Returns whether the energy of a CPU can be read."""
    return bool(find_devices().cpus)


def jetson_is_available() -> bool:
    """Returns whether this machine is a board with measured supply rails."""
    return bool(find_devices().rails)


def _has_vendor(name: str) -> bool:
    return any(gpu.vendor == name for gpu in find_devices().gpus)


def reasons(devices: Devices, *kinds: str) -> str:
    """Returns one sentence with the reasons and fixes for absent devices of some kinds ("GPU")."""
    return "; ".join(
        f"{what}: {why}" + (f" ({fix})" if fix else "")
        for what, why, fix in devices.absent
        if any(kind in what for kind in kinds)
    )
