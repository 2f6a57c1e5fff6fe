"""Objectives: which power limit is best, given the usage of a training step at each limit.

All of these call a lower limit better only if the measurements say so: of the limits that are not
worse than the best one beyond doubt (95 %), the fastest is taken.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Sequence

from zeus._core import power_limit as _core
from zeus.errors import InvalidArgumentError

__all__ = [
    "Energy",
    "MaxSlowdownConstraint",
    "OptimumSelector",
    "PowerLimitMeasurement",
    "Time",
    "ZeusCost",
]


class PowerLimitMeasurement(NamedTuple):
    """The usage of a training step at one power limit, on all GPUs of the job."""

    #: Watts per GPU, or megahertz if the knob is a clock.
    power_limit: float
    #: Joules of a step on all GPUs together; of a slice, in files of other tools.
    energy: float
    #: Seconds of a step of the slowest rank.
    time: float
    #: Standard deviation of the part of the error that measurements do not share.
    energy_sigma: float = 0.0
    #: Likewise for the time.
    time_sigma: float = 0.0
    #: The number of measured steps.
    steps: int = 1


def measurements_of(points: Sequence[tuple[Any, ...]]) -> list[PowerLimitMeasurement]:
    """Converts the result of the library. Whole watts become whole numbers."""
    return [
        PowerLimitMeasurement(int(limit) if limit == int(limit) else limit, *others)
        for limit, *others in points
    ]


class OptimumSelector(ABC):
    """The base class of objectives. Derive from it for your own:

        class Coolest(OptimumSelector):
            def select(self, measurements):
                return min(m.power_limit for m in measurements)

    It may be asked several times while the last sensors settle, and the first rank's answer counts.
    What it raises does not stop the training: the power limit is put back, and the exception is the
    `__cause__` of the optimiser's `trouble`.
    """

    @abstractmethod
    def select(self, measurements: list[PowerLimitMeasurement]) -> float:
        """Returns the best `power_limit` of the measurements, of which there is at least one."""


class _BuiltIn(OptimumSelector):
    """An objective that the library implements."""

    def _specification(self) -> tuple[str, float]:
        raise NotImplementedError

    def _max_power(self, measurements: Sequence[PowerLimitMeasurement]) -> float:
        return max(one.power_limit for one in measurements)

    def select(self, measurements: Sequence[PowerLimitMeasurement]) -> float:
        """Returns the best `power_limit` of the measurements."""
        if not measurements:
            raise InvalidArgumentError("there is no measurement to select from")
        ordered = sorted(measurements, key=lambda one: -one.power_limit)
        points = [tuple(_complete(one)) for one in ordered]
        return ordered[
            _core.select(self._specification(), points, self._max_power(ordered))
        ].power_limit

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({parameters})"


class Energy(_BuiltIn):
    """The least energy."""

    def _specification(self) -> tuple[str, float]:
        return "energy", 0.0


class Time(_BuiltIn):
    """The least time."""

    def _specification(self) -> tuple[str, float]:
        return "time", 0.0


class ZeusCost(_BuiltIn):
    """The least ``eta_knob * energy + (1 - eta_knob) * max_power * time``.

    Args:
        eta_knob: Between 0, time is what counts, and 1, energy is.
        world_size: How many GPUs the measurements are of, for `select()`. An optimiser knows the
            GPUs of all its ranks by itself.
    """

    def __init__(self, eta_knob: float = 0.5, world_size: int = 1) -> None:
        if not _is_number(eta_knob) or not 0 <= eta_knob <= 1:
            raise InvalidArgumentError(f"eta_knob is a number between 0 and 1, not {eta_knob!r}")
        if not isinstance(world_size, int) or isinstance(world_size, bool) or world_size < 1:
            raise InvalidArgumentError(
                f"world_size is a number of GPUs, 1 or more, not {world_size!r}"
            )
        self.eta_knob = eta_knob
        self.world_size = world_size

    def _specification(self) -> tuple[str, float]:
        return "zeus_cost", float(self.eta_knob)

    def _max_power(self, measurements: Sequence[PowerLimitMeasurement]) -> float:
        return super()._max_power(measurements) * self.world_size


class MaxSlowdownConstraint(_BuiltIn):
    """The lowest limit at which a step takes at most `factor` times as long as at the highest."""

    def __init__(self, factor: float) -> None:
        if not _is_number(factor) or not 1 <= factor < math.inf:
            raise InvalidArgumentError(
                f"the factor of a slowdown is a number, 1 or more, not {factor!r}"
            )
        self.factor = factor

    def _specification(self) -> tuple[str, float]:
        return "max_slowdown", float(self.factor)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _complete(measurement: Any) -> PowerLimitMeasurement:
    """Completes an object that has only the three numbers."""
    defaults = PowerLimitMeasurement._field_defaults
    numbers: list[Any] = [
        getattr(measurement, name, defaults.get(name)) for name in PowerLimitMeasurement._fields
    ]
    if not all(_is_number(number) and math.isfinite(number) for number in numbers):
        raise InvalidArgumentError(
            f"a measurement has a power_limit, an energy and a time: {measurement!r}"
        )
    return PowerLimitMeasurement(*numbers)
