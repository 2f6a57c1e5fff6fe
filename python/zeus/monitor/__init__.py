"""Monitors of time, energy, power, temperature, emissions and cost."""

from __future__ import annotations

import importlib

from zeus.monitor.energy import DeviceEnergy, Measurement, Window, ZeusMonitor

TYPE_CHECKING = False  # As in zeus/__init__.py.
if TYPE_CHECKING:
    from typing import Any

    from zeus.monitor.power import PowerDomain as PowerDomain
    from zeus.monitor.power import PowerMonitor as PowerMonitor
    from zeus.monitor.temperature import TemperatureMonitor as TemperatureMonitor

__all__ = [
    "DeviceEnergy",
    "Measurement",
    "PowerDomain",
    "PowerMonitor",
    "TemperatureMonitor",
    "Window",
    "ZeusMonitor",
]

# These are imported on first use.
_HOMES = {
    "PowerDomain": "zeus.monitor.power",
    "PowerMonitor": "zeus.monitor.power",
    "TemperatureMonitor": "zeus.monitor.temperature",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'zeus.monitor' has no attribute {name!r}")
