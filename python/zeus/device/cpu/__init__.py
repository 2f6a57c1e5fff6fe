"""CPUs: see `zeus.device`."""

from __future__ import annotations

from zeus.device.cpu.common import CPU, CpuDramMeasurement, CPUs, EmptyCPUs
from zeus.device.cpu.exception import (
    ZeusCPUInitError,
    ZeusCPUInvalidArgError,
    ZeusCPUNoPermissionError,
    ZeusCPUNotFoundError,
    ZeusCPUNotSupportedError,
    ZeusCPUUnknownError,
)
from zeus.device.discovery import find_devices, rapl_is_available, reasons, view
from zeus.device.exception import ZeusBaseCPUError

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
    "rapl_is_available",
]


def get_cpus() -> CPUs:
    """Returns the CPU sockets whose energy can be read; always the same object.

    Raises:
        ZeusCPUInitError: If there is none. The message holds the reason and a fix.
    """
    cpus = view(CPUs)
    if not cpus.cpus:
        why = reasons(find_devices(), "CPU") or "none was found"
        raise ZeusCPUInitError(f"the energy of no CPU can be read here (see zeus doctor): {why}")
    return cpus
