"""CPU sockets and the memory next to them."""

from __future__ import annotations

from typing import Iterator, SupportsIndex

from zeus import _checks
from zeus._core.device import Cpu, Devices
from zeus.device._alias import deprecated
from zeus.device.cpu.exception import (
    ZeusCPUInitError,
    ZeusCPUNoPermissionError,
    ZeusCPUNotFoundError,
)
from zeus.errors import InvalidArgumentError

__all__ = [
    "CPU",
    "CPUs",
    "CpuDramMeasurement",
    "EmptyCPUs",
    "ZeusCPUInitError",
    "ZeusCPUNoPermissionError",
    "ZeusCPUNotFoundError",
]


class CpuDramMeasurement:
    """Millijoules of a socket and of its memory; None if the memory has no counter.

        after = cpu.get_total_energy_consumption()
        used = after - before
        print(used / 1000)  # joules
    """

    __slots__ = ("cpu_mj", "dram_mj")

    def __init__(self, cpu_mj: float, dram_mj: float | None = None) -> None:
        self.cpu_mj = cpu_mj
        self.dram_mj = dram_mj

    def __sub__(self, other: CpuDramMeasurement) -> CpuDramMeasurement:
        if not isinstance(other, CpuDramMeasurement):
            return NotImplemented
        if (self.dram_mj is None) != (other.dram_mj is None):
            raise InvalidArgumentError("one of the measurements has memory and the other has none")
        dram = None
        if self.dram_mj is not None and other.dram_mj is not None:
            dram = self.dram_mj - other.dram_mj
        return CpuDramMeasurement(self.cpu_mj - other.cpu_mj, dram)

    def __truediv__(self, divisor: float) -> CpuDramMeasurement:
        if isinstance(divisor, bool) or not isinstance(divisor, (int, float)):
            return NotImplemented
        dram = None if self.dram_mj is None else self.dram_mj / divisor
        return CpuDramMeasurement(self.cpu_mj / divisor, dram)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CpuDramMeasurement):
            return NotImplemented
        return (self.cpu_mj, self.dram_mj) == (other.cpu_mj, other.dram_mj)

    def __hash__(self) -> int:
        return hash((self.cpu_mj, self.dram_mj))

    def __repr__(self) -> str:
        return f"CpuDramMeasurement(cpu_mj={self.cpu_mj}, dram_mj={self.dram_mj})"


class CPU:
    """One CPU socket. Thread-safe."""

    def __init__(self, cpu: Cpu) -> None:
        self._cpu = cpu

    def __repr__(self) -> str:
        return f"<CPU {self.cpu_index}: {self.model or 'unknown model'} ({self.source})>"

    @property
    def cpu_index(self) -> int:
        """Index among the sockets whose energy can be read."""
        return int(self._cpu.name.split(":")[1])

    @property
    def model(self) -> str:
        """Name of the model; empty if unknown."""
        return self._cpu.model

    @property
    def source(self) -> str:
        """The source of its energy: ``perf``, ``powercap`` or ``hwmon``."""
        return self._cpu.source

    def get_total_energy_consumption(self) -> CpuDramMeasurement:
        """Millijoules since an arbitrary origin; never decreases. Subtract two of them."""
        dram = self._cpu.dram_energy()
        return CpuDramMeasurement(
            cpu_mj=self._cpu.energy() * 1000, dram_mj=None if dram is None else dram * 1000
        )

    def supports_get_dram_energy_consumption(self) -> bool:
        """Returns whether the memory of this socket has its own counter."""
        return self._cpu.has_dram

    getTotalEnergyConsumption = deprecated(
        "getTotalEnergyConsumption", "get_total_energy_consumption"
    )
    supportsGetDramEnergyConsumption = deprecated(
        "supportsGetDramEnergyConsumption", "supports_get_dram_energy_consumption"
    )


class CPUs:
    """The sockets whose energy can be read. Methods are those of `CPU` with an index first."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._cpus = [CPU(cpu) for cpu in devices.cpus]

    @property
    def cpus(self) -> list[CPU]:
        """The sockets."""
        return list(self._cpus)

    def __len__(self) -> int:
        return len(self._cpus)

    def __iter__(self) -> Iterator[CPU]:
        return iter(self._cpus)

    def __getitem__(self, cpu_index: SupportsIndex) -> CPU:
        position = _checks.index("cpu_index", cpu_index)
        if position >= len(self._cpus):
            raise ZeusCPUNotFoundError(
                f"there is no CPU {position}: the energy of {len(self)} can be read"
            )
        return self._cpus[position]

    def get_total_energy_consumption(self, index: int) -> CpuDramMeasurement:
        """Millijoules of a socket: see `CPU.get_total_energy_consumption`."""
        return self[index].get_total_energy_consumption()

    def supports_get_dram_energy_consumption(self, index: int) -> bool:
        """Returns whether the memory of a socket has its own counter."""
        return self[index].supports_get_dram_energy_consumption()

    getTotalEnergyConsumption = deprecated(
        "getTotalEnergyConsumption", "get_total_energy_consumption"
    )
    supportsGetDramEnergyConsumption = deprecated(
        "supportsGetDramEnergyConsumption", "supports_get_dram_energy_consumption"
    )


class EmptyCPUs(CPUs):
    """Stands in for missing CPUs, so that a program can continue. All methods raise."""

    def __init__(self) -> None:
        self._cpus = []

    def __getitem__(self, cpu_index: SupportsIndex) -> CPU:
        raise ZeusCPUNotFoundError(f"there is no CPU {cpu_index}: the energy of none can be read")
