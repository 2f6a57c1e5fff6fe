"""CPUs: see `zeus.device`."""

from __future__ import annotations

from zeus.device.cpu.common import CPU, CpuDramMeasurement, CPUs, EmptyCPUs
from zeus.device.cpu.exception import (
    ZeusBaseCPUError,
    ZeusCPUInitError,
    ZeusCPUInvalidArgError,
    ZeusCPUNoPermissionError,
    ZeusCPUNotFoundError,
    ZeusCPUNotSupportedError,
    ZeusCPUUnknownError,
)
from zeus.device.discovery import find_devices, reasons

__all__ = [
    "CPU",
    "CPUs",
    "CpuDramMeasurement",
    "EmptyCPUs",
    "ZeusBaseCPUError",
    "ZeusCPUInitError",
    "ZeusCPUInvalidArgError",
    "ZeusCPUNoPermissionError",
    "ZeusCPUNotFoundError",
    "ZeusCPUNotSupportedError",
    "ZeusCPUUnknownError",
    "get_cpus",
]

_cpus: CPUs | None = None


def get_cpus() -> CPUs:
    """The CPU sockets whose energy can be read; the same object every time.

    Raises:
        ZeusCPUInitError: If there is none; says why, and what would help.
    """
    global _cpus
    devices = find_devices()
    if _cpus is None or _cpus._devices is not devices:
        _cpus = CPUs(devices)
    if not _cpus.cpus:
        why = reasons(devices, "CPU") or "none was found"
        raise ZeusCPUInitError(f"the energy of no CPU can be read here (see zeus doctor): {why}")
    return _cpus
