"""Boards with measured supply rails: Jetson and similar ones."""

from __future__ import annotations

from typing import Protocol

from zeus.device._alias import deprecated
from zeus.device.soc.exception import (
    ZeusSoCInitError,
    ZeusSoCInvalidArgError,
    ZeusSoCNotFoundError,
)
from zeus.errors import InvalidArgumentError

__all__ = ["EmptySoC", "JetsonMeasurement", "SoC", "SoCMeasurement", "ZeusSoCInitError"]

_NO_BOARD = "there is no board with measured supply rails: see zeus doctor"


class Rails(Protocol):
    """The interface of `zeus._core.recording.Recording` that integrates the power of rails."""

    @property
    def device_names(self) -> list[str]: ...

    def total_energy(self, device: int) -> tuple[float, float]: ...


class SoCMeasurement:
    """Millijoules by rail. Two can be subtracted.

    A rail that feeds the whole board contains the others: never add it to them. A rail that feeds
    several parts at once ("VDD_CPU_GPU_CV") counts neither as CPU nor as GPU.
    """

    def __init__(self, rails_mj: dict[str, float]) -> None:
        self.rails_mj = rails_mj

    @property
    def cpu_energy_mj(self) -> float | None:
        """None if no rail feeds the CPU alone."""
        return self._only("CPU", "GPU")

    @property
    def gpu_energy_mj(self) -> float | None:
        """None if no rail feeds the GPU alone."""
        return self._only("GPU", "CPU")

    @property
    def total_energy_mj(self) -> float | None:
        """Energy of the whole board; None if no rail feeds it."""
        for name, energy in self.rails_mj.items():
            upper = name.upper()
            if "TOTAL" in upper or "SYSTEM" in upper or upper.endswith("_IN"):
                return energy
        return None

    def _only(self, part: str, other: str) -> float | None:
        found = [
            energy
            for name, energy in self.rails_mj.items()
            if part in name.upper() and other not in name.upper()
        ]
        return sum(found) if found else None

    def __sub__(self, other: SoCMeasurement) -> SoCMeasurement:
        if not isinstance(other, SoCMeasurement):
            return NotImplemented
        if self.rails_mj.keys() != other.rails_mj.keys():
            raise InvalidArgumentError("the measurements are not of the same rails")
        return type(self)({name: mj - other.rails_mj[name] for name, mj in self.rails_mj.items()})

    def __truediv__(self, divisor: float) -> SoCMeasurement:
        if isinstance(divisor, bool) or not isinstance(divisor, (int, float)):
            return NotImplemented
        return type(self)({name: mj / divisor for name, mj in self.rails_mj.items()})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rails_mj})"

    def zero_all_fields(self) -> None:
        """Sets every rail to 0."""
        self.rails_mj = dict.fromkeys(self.rails_mj, 0.0)

    zeroAllFields = deprecated("zeroAllFields", "zero_all_fields")


class JetsonMeasurement(SoCMeasurement):
    """The measurement of a Jetson board."""


class SoC:
    """A board with measured rails; one native thread integrates their power."""

    def __init__(self, rails: Rails) -> None:
        self._rails = rails
        self._windows: dict[str, SoCMeasurement] = {}

    def get_available_metrics(self) -> set[str]:
        """Returns the names of the rails, and those of the parts that they add up to."""
        names = {name.split(":", 1)[-1] for name in self._rails.device_names}
        parts = ("cpu_energy_mj", "gpu_energy_mj", "total_energy_mj")
        present = JetsonMeasurement(dict.fromkeys(names, 0.0))
        return names | {part for part in parts if getattr(present, part) is not None}

    def get_total_energy_consumption(self) -> JetsonMeasurement:
        """Millijoules since the first use of the board in this process. Subtract two of them."""
        return JetsonMeasurement(
            {
                name.split(":", 1)[-1]: self._rails.total_energy(position)[0] * 1000
                for position, name in enumerate(self._rails.device_names)
            }
        )

    def begin_window(self, key: str, restart: bool = False) -> None:
        """Begins to measure; an open window is an error, or restarted."""
        if key in self._windows and not restart:
            raise ZeusSoCInvalidArgError(f"the window {key!r} is open already")
        self._windows[key] = self.get_total_energy_consumption()

    def end_window(self, key: str) -> SoCMeasurement:
        """Returns the energy of the board since begin_window()."""
        if key not in self._windows:
            raise ZeusSoCNotFoundError(f"no window {key!r} is open")
        begin = self._windows.pop(key)
        return self.get_total_energy_consumption() - begin

    getAvailableMetrics = deprecated("getAvailableMetrics", "get_available_metrics")
    getTotalEnergyConsumption = deprecated(
        "getTotalEnergyConsumption", "get_total_energy_consumption"
    )
    beginWindow = deprecated("beginWindow", "begin_window")
    endWindow = deprecated("endWindow", "end_window")


class EmptySoC(SoC):
    """Stands in for a missing board, so that a program can continue. Measuring with it raises."""

    def __init__(self) -> None:
        super().__init__(_NoRails())

    def get_available_metrics(self) -> set[str]:
        """Returns nothing: no rail is measured."""
        return set()

    def get_total_energy_consumption(self) -> JetsonMeasurement:
        """Raises ZeusSoCNotFoundError."""
        raise ZeusSoCNotFoundError(_NO_BOARD)

    def begin_window(self, key: str, restart: bool = False) -> None:
        """Raises ZeusSoCNotFoundError."""
        raise ZeusSoCNotFoundError(_NO_BOARD)

    def end_window(self, key: str) -> SoCMeasurement:
        """Raises ZeusSoCNotFoundError."""
        raise ZeusSoCNotFoundError(_NO_BOARD)


class _NoRails:
    device_names: list[str] = []

    def total_energy(self, device: int) -> tuple[float, float]:
        raise ZeusSoCNotFoundError(_NO_BOARD)
