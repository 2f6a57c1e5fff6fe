"""Boards with measured supply rails: see `zeus.device`."""

from __future__ import annotations

import os

from zeus.device.discovery import find_devices, jetson_is_available, reasons
from zeus.device.exception import ZeusBaseSoCError
from zeus.device.soc.common import EmptySoC, JetsonMeasurement, SoC, SoCMeasurement
from zeus.device.soc.exception import (
    ZeusSoCInitError,
    ZeusSoCInvalidArgError,
    ZeusSoCNotFoundError,
)

__all__ = [
    "EmptySoC",
    "JetsonMeasurement",
    "SoC",
    "SoCMeasurement",
    "ZeusBaseSoCError",
    "ZeusSoCInitError",
    "ZeusSoCInvalidArgError",
    "ZeusSoCNotFoundError",
    "get_soc",
    "jetson_is_available",
]

_soc: tuple[int, SoC] | None = None


def get_soc() -> SoC:
    """Returns the board with measured rails; always the same object, but a new one after a fork.

    Raises:
        ZeusSoCInitError: If no rail is measured. The message holds the reason and a fix.
    """
    global _soc
    if _soc is not None and _soc[0] == os.getpid():
        return _soc[1]
    devices = find_devices()
    if not devices.rails:
        why = reasons(devices, "rail") or "this machine is no board with power monitors"
        raise ZeusSoCInitError(f"no supply rail can be read here: {why}")
    from zeus._core.recording import Recording

    _soc = (os.getpid(), SoC(Recording.start(None, 1.0, rails=True)))
    return _soc[1]
