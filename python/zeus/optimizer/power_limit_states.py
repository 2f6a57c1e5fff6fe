"""The states of a power limit optimiser, and its results."""

from __future__ import annotations

from typing import Any, NamedTuple, Union

__all__ = ["Confirming", "Done", "JobUse", "Profiling", "Ready", "Savings", "State", "Warmup"]


class Ready(NamedTuple):
    """Nothing was changed yet: the first steps of a job are unusual."""

    steps_left: int


class Warmup(NamedTuple):
    """A limit was just set; these steps are not measured."""

    current_power_limit: float
    steps: int
    time: float


class Profiling(NamedTuple):
    """A limit is being measured."""

    current_power_limit: float
    steps: int
    time: float


class Confirming(NamedTuple):
    """The sensors have not yet shown the end of the last slice."""

    time: float


class Done(NamedTuple):
    """Decided; the setting is None if that was impossible: see `trouble`."""

    optimal_power_limit: float | None


State = Union[Ready, Warmup, Profiling, Confirming, Done]


class JobUse(NamedTuple):
    """Energy and time of a job, with one standard deviation each: joules and seconds."""

    energy: float
    energy_sigma: float
    time: float
    time_sigma: float


class Savings(NamedTuple):
    """The usage of a job, and its estimate at one setting from beginning to end.

    Prints like ``175 W instead of 250 W: energy -12.14 ± 0.04 %, time +3.02 ± 0.01 %``.
    """

    text: str
    knob: str
    steps: int
    original: float
    best: float
    used: JobUse
    at_original: JobUse
    at_best: JobUse
    #: The change from the original setting to the best; more precise than the difference of both.
    change: JobUse

    def __str__(self) -> str:
        return self.text


def state_of(name: str, setting: float | None, steps: int, time: float, best: Any) -> State:
    """Converts the result of the library."""
    if name == "ready":
        return Ready(steps)
    if name == "warmup" and setting is not None:
        return Warmup(setting, steps, time)
    if name == "profiling" and setting is not None:
        return Profiling(setting, steps, time)
    if name == "confirming":
        return Confirming(time)
    return Done(best)


def savings_of(numbers: dict[str, Any]) -> Savings:
    """Converts the result of the library."""
    uses = ("used", "at_original", "at_best", "change")
    return Savings(**{k: JobUse(*v) if k in uses else v for k, v in numbers.items()})
