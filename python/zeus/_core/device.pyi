"""GPUs, CPUs and rails: what can be read and set."""

from __future__ import annotations

class Gpu:
    """One GPU, in watts, joules and megahertz. What it cannot tell is an exception, never a zero.

    What is set is put back when this process ends; see zeus.device.
    """

    @property
    def name(self) -> str:
        """``gpu:0``."""
    @property
    def uuid(self) -> str:
        """Empty if it has none."""
    @property
    def pci_address(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def driver(self) -> str: ...
    @property
    def vendor(self) -> str: ...
    def energy(self) -> float:
        """Joules since an arbitrary origin. Never decreases."""
    def power(self, kind: str) -> float:
        """Returns watts of the kind ``instant``, ``average`` or ``memory``."""
    def temperature(self) -> float: ...
    def utilization(self) -> tuple[float, float]:
        """Shares of time, 0 to 1: compute, memory."""
    def memory_use(self) -> tuple[int, int]:
        """Bytes: used, total."""
    def throttle_reasons(self) -> list[str]: ...
    def power_limits(self) -> dict[str, float]:
        """``min``, ``max``, ``default``, ``requested`` and ``enforced``."""
    def supported_clocks(self, domain: str) -> list[float]:
        """Ascending; `domain` is ``graphics`` or ``memory``."""
    def clock(self, domain: str) -> float: ...
    def persistence(self) -> bool: ...
    def set_power_limit(self, watts: float, may_raise: bool = False) -> None: ...
    def restore_power_limit(self) -> None:
        """Restores the setting before this process; does nothing if it set nothing."""
    @property
    def holds_power_limit(self) -> bool:
        """Whether this process set it, through this module."""
    def reset_power_limit(self) -> None:
        """The driver's default, which stays."""
    def lock_clock(
        self, domain: str, min: float, max: float, may_raise: bool = False
    ) -> None: ...
    def reset_clock(self, domain: str) -> None: ...
    def set_persistence(self, on: bool) -> None: ...

class Cpu:
    """One CPU socket."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def source(self) -> str:
        """``perf``, ``powercap`` or ``hwmon``."""
    @property
    def package(self) -> int: ...
    @property
    def has_dram(self) -> bool: ...
    def energy(self) -> float: ...
    def dram_energy(self) -> float | None: ...

class Rail:
    """A supply rail of a board."""

    @property
    def name(self) -> str: ...
    @property
    def is_total(self) -> bool:
        """Whether it contains the other rails."""
    def power(self) -> float: ...

class Devices:
    """Everything that this process may see; the roots are for tests."""

    def __init__(self, *, sysfs: str = "/sys", procfs: str = "/proc", dev: str = "/dev") -> None: ...
    @property
    def gpus(self) -> list[Gpu]: ...
    @property
    def lost_gpus(self) -> int:
        """GPUs that have a number and do not answer: see `absent`."""
    @property
    def cpus(self) -> list[Cpu]: ...
    @property
    def rails(self) -> list[Rail]: ...
    @property
    def absent(self) -> list[tuple[str, str, str]]:
        """Devices that were looked for but are absent: what, reason, and fix."""

def is_root() -> bool:
    """Whether this process may do what only root may."""
