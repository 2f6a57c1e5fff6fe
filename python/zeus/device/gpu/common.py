"""One GPU."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, Iterator, NamedTuple

from zeus import _checks
from zeus._core.device import Gpu
from zeus.device.gpu.aliases import OldNames
from zeus.device.gpu.exception import *  # noqa: F403  (Programs look for them here, too.)
from zeus.device.gpu.exception import ZeusGPUInvalidArgError, ZeusGPUNotSupportedError

__all__ = ["GPU", "MemoryUse", "Utilization"]


def __getattr__(name: str) -> Any:
    if name in ("EmptyGPUs", "GPUs"):  # Programs also look for them here.
        return getattr(importlib.import_module("zeus.device.gpu.gpus"), name)
    raise AttributeError(f"module 'zeus.device.gpu.common' has no attribute {name!r}")


class Utilization(NamedTuple):
    """Shares of time, from 0 to 1."""

    compute: float
    memory: float


class MemoryUse(NamedTuple):
    """Sizes in bytes."""

    used: int
    total: int


def _milli(value: float) -> int:
    return round(value * 1000)


class GPU(OldNames):
    """One GPU: its readings and its knobs.

    Units are milliwatts, millijoules, megahertz and degrees Celsius. A value that a GPU does not
    provide raises an exception with the reason; it is never zero. Settings are restored when the
    process ends. Thread-safe.

    `block` is accepted for compatibility: setters always return when the driver has accepted the
    value, within milliseconds, so that errors are raised where they happen.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    def __repr__(self) -> str:
        return f"<GPU {self.gpu_index}: {self._gpu.model} ({self._gpu.uuid or self.pci_address})>"

    @property
    def gpu_index(self) -> int:
        """Index among the GPUs that this process sees."""
        return int(self._gpu.name.split(":")[1])

    @property
    def uuid(self) -> str:
        """Unlike an index, the same in every process and after every boot; empty if unknown."""
        return self._gpu.uuid

    @property
    def pci_address(self) -> str:
        """For example ``0000:3b:00.0``."""
        return self._gpu.pci_address

    @property
    def vendor(self) -> str:
        """``NVIDIA``, ``AMD`` or ``Intel``."""
        return self._gpu.vendor

    @property
    def driver_version(self) -> str:
        """Empty if the driver does not report it."""
        return self._gpu.driver

    def get_name(self) -> str:
        """Returns the name of the model."""
        return self._gpu.model

    # Readings.

    def get_average_power_usage(self) -> int:
        """Returns milliwatts, averaged over about a second."""
        return _milli(self._gpu.power("average"))

    def get_instant_power_usage(self) -> int:
        """Returns milliwatts, averaged over the sensor's own short window."""
        return _milli(self._gpu.power("instant"))

    def get_average_memory_power_usage(self) -> int:
        """Returns milliwatts of the memory alone."""
        return _milli(self._gpu.power("memory"))

    def supports_get_total_energy_consumption(self) -> bool:
        """Returns whether there is an energy counter, by reading it."""
        try:
            self._gpu.energy()
        except NotImplementedError:
            return False
        return True

    def get_total_energy_consumption(self) -> int:
        """Millijoules since an arbitrary origin; never decreases. Subtract two of them."""
        return _milli(self._gpu.energy())

    def get_gpu_temperature(self) -> int:
        """Returns degrees Celsius."""
        return round(self._gpu.temperature())

    def get_utilization(self) -> Utilization:
        """Returns recent shares of time with a running kernel, and with memory traffic."""
        return Utilization(*self._gpu.utilization())

    def get_memory_use(self) -> MemoryUse:
        """Returns bytes, summed over all processes."""
        return MemoryUse(*self._gpu.memory_use())

    def get_throttle_reasons(self) -> frozenset[str]:
        """Returns why the GPU runs below the requested clock.

        Some of ``idle``, ``power_cap``, ``thermal``, ``locked_clock`` and ``other``.
        """
        return frozenset(self._gpu.throttle_reasons())

    # Power limit.

    def get_power_management_limit_constraints(self) -> tuple[int, int]:
        """Returns the lowest and the highest power limit in milliwatts."""
        limits = self._gpu.power_limits()
        return _milli(limits["min"]), _milli(limits["max"])

    def get_power_management_limit(self) -> int:
        """Returns the requested limit in milliwatts."""
        return _milli(self._gpu.power_limits()["requested"])

    def get_default_power_management_limit(self) -> int:
        """Returns the driver's default in milliwatts, which is not always the highest."""
        return _milli(self._gpu.power_limits()["default"])

    def get_enforced_power_limit(self) -> int:
        """Returns the enforced limit in milliwatts, which another controller may have lowered."""
        return _milli(self._gpu.power_limits()["enforced"])

    def set_power_management_limit(
        self, power_limit_mw: int, block: bool = True, *, may_raise: bool = False
    ) -> None:
        """In milliwatts, until the process ends or the limit is reset.

        A limit above the one that was found is refused unless `may_raise`: that one may be a cap.
        """
        watts = _checks.positive("power_limit_mw", power_limit_mw) / 1000
        self._gpu.set_power_limit(watts, may_raise)

    def reset_power_management_limit(self, block: bool = True) -> None:
        """Resets the limit to the driver's default, which stays when the process ends."""
        self._gpu.reset_power_limit()

    @contextlib.contextmanager
    def power_limit(self, power_limit_mw: int, *, may_raise: bool = False) -> Iterator[GPU]:
        """Sets a limit for a block and restores the previous one afterwards.

            with gpu.power_limit(150_000):
                train()
        """
        before = self.get_power_management_limit() if self._gpu.holds_power_limit else None
        self.set_power_management_limit(power_limit_mw, may_raise=may_raise)
        try:
            yield self
        finally:
            if before is None:
                self._gpu.restore_power_limit()
            else:
                self.set_power_management_limit(before)

    # Clocks.

    def get_supported_memory_clocks(self) -> list[int]:
        """Returns megahertz, the highest first."""
        return [round(clock) for clock in reversed(self._gpu.supported_clocks("memory"))]

    def get_supported_graphics_clocks(self, memory_clock_mhz: int | None = None) -> list[int]:
        """Megahertz, the highest first: those available at the highest memory clock.

        Another memory clock is refused instead of answered with what may not hold for it.
        """
        if memory_clock_mhz is not None:
            wanted = _checks.positive("memory_clock_mhz", memory_clock_mhz)
            clocks = self.get_supported_memory_clocks()
            if round(wanted) not in clocks:
                raise ZeusGPUInvalidArgError(f"there is no memory clock of {wanted:g} MHz: {clocks}")
            if round(wanted) != clocks[0]:
                raise ZeusGPUNotSupportedError(
                    f"graphics clocks are known at the highest memory clock, {clocks[0]} MHz, only"
                )
        return [round(clock) for clock in reversed(self._gpu.supported_clocks("graphics"))]

    def get_graphics_clock(self) -> int:
        """Returns the present clock in megahertz."""
        return round(self._gpu.clock("graphics"))

    def get_memory_clock(self) -> int:
        """Returns the present clock in megahertz."""
        return round(self._gpu.clock("memory"))

    def set_gpu_locked_clocks(
        self, min_clock_mhz: int, max_clock_mhz: int, block: bool = True, *, may_raise: bool = False
    ) -> None:
        """Keeps the graphics clock in the range until the process ends or resets it.

        If the GPU reports that another program has locked it, a higher clock needs `may_raise`.
        """
        self._lock("graphics", min_clock_mhz, max_clock_mhz, may_raise)

    def reset_gpu_locked_clocks(self, block: bool = True) -> None:
        """Unlocks the graphics clock, no matter which program locked it."""
        self._gpu.reset_clock("graphics")

    def set_memory_locked_clocks(
        self, min_clock_mhz: int, max_clock_mhz: int, block: bool = True
    ) -> None:
        """Keeps the memory clock in the range until the process ends or resets it."""
        self._lock("memory", min_clock_mhz, max_clock_mhz, False)

    def reset_memory_locked_clocks(self, block: bool = True) -> None:
        """Unlocks the memory clock, no matter which program locked it."""
        self._gpu.reset_clock("memory")

    def reset_locked_clocks(self, block: bool = True) -> None:
        """Unlocks both clocks."""
        self.reset_gpu_locked_clocks()
        try:
            self.reset_memory_locked_clocks()
        except NotImplementedError:  # A memory clock that cannot be locked is not locked.
            pass

    def _lock(self, domain: str, low: int, high: int, may_raise: bool) -> None:
        bounds = _checks.positive("min_clock_mhz", low), _checks.positive("max_clock_mhz", high)
        self._gpu.lock_clock(domain, *bounds, may_raise)

    # Persistence mode.

    def get_persistence_mode(self) -> bool:
        """Returns whether the driver stays loaded without clients."""
        return self._gpu.persistence()

    def set_persistence_mode(self, enabled: bool, block: bool = True) -> None:
        """Whether the driver stays loaded without clients. Put back when the process ends.

        (Not after a SIGKILL: it changes neither speed nor power.)
        """
        self._gpu.set_persistence(_checks.flag("enabled", enabled))

    @property
    def supports_nonblocking_setters(self) -> bool:
        """Returns False: see `block` above."""
        return False
