"""Power and temperature over time."""

from __future__ import annotations

from zeus._core.monitor import Monitor

class Quantity:
    """The recorded quantities of a device."""

    @property
    def name(self) -> str: ...
    POWER: Quantity
    AVERAGE_POWER: Quantity
    MEMORY_POWER: Quantity
    TEMPERATURE: Quantity
    GRAPHICS_CLOCK: Quantity
    POWER_LIMIT: Quantity
    UTILIZATION: Quantity

class Recording:
    """The recording of a monitor. Times are seconds since 1970; devices count from 0."""

    def __init__(self, monitor: Monitor) -> None: ...
    @staticmethod
    def start(
        gpus: list[int] | None, telemetry_interval: float, rails: bool = False
    ) -> Recording: ...
    @property
    def device_names(self) -> list[str]: ...
    @property
    def time_scale(self) -> float:
        """Above 1 on a simulated node in a hurry."""
    def present(self, device: int, quantity: Quantity) -> float: ...
    def history(
        self,
        device: int,
        quantity: Quantity,
        begin: float | None = None,
        end: float | None = None,
    ) -> list[tuple[float, float, float]]:
        """Begin, end and mean of each span that overlaps the time between."""
    def since(self, device: int, quantity: Quantity) -> float | None:
        """When the first span began."""
    def energy(self, device: int, begin: float, end: float) -> tuple[float, float]:
        """Joules and one standard deviation."""
    def total_energy(self, device: int) -> tuple[float, float]:
        """Since recording began."""
    def stop(self) -> None:
        """Closes the monitor; what it recorded can still be read."""
