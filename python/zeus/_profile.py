"""Trials and their results: the parts of zeus.profile."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass
from typing import Any, Callable, Sequence

from zeus import _checks, _core
from zeus.errors import InvalidArgumentError
from zeus.utils.framework import all_reduce, get_rank, get_world_size

_WINDOW = "__zeus_profile_run_trial"
_CLOCK = "__zeus_profile_clock"


@dataclass
class TrialResult:
    """One measurement. With several processes, energy is their sum and time that of the slowest."""

    energy_per_iter: float  #: Joules of one call.
    time_per_iter: float  #: Seconds of one call.
    total_energy: float
    total_time: float
    iterations: int
    temperature_before: float  #: Mean of the GPUs in degrees Celsius; NaN if unknown.
    temperature_after: float


@dataclass
class SweepResult:
    """The summary of repeated measurements with the same durations."""

    measurement_duration: float
    cooldown_duration: float
    trials: list[TrialResult]
    energy_mean: float  #: Joules of one call.
    energy_std: float  #: Standard deviation between trials.
    avg_temperature_before: float
    avg_temperature_after: float
    avg_total_time: float
    avg_total_energy: float
    is_valid: bool  #: Whether `energy_std` is a small enough share of `energy_mean`.

    @property
    def relative_std(self) -> float:
        """The standard deviation as a share of the mean; NaN without energy."""
        return self.energy_std / self.energy_mean if self.energy_mean else math.nan

    @staticmethod
    def of(length: float, rest: float, trials: list[TrialResult], threshold: float) -> SweepResult:
        """Summarises trials; `threshold` is relative."""
        mean, deviation = mean_and_deviation([trial.energy_per_iter for trial in trials])
        return SweepResult(
            measurement_duration=length,
            cooldown_duration=rest,
            trials=trials,
            energy_mean=mean,
            energy_std=deviation,
            avg_temperature_before=statistics.fmean(t.temperature_before for t in trials),
            avg_temperature_after=statistics.fmean(t.temperature_after for t in trials),
            avg_total_time=statistics.fmean(trial.total_time for trial in trials),
            avg_total_energy=statistics.fmean(trial.total_energy for trial in trials),
            is_valid=mean > 0 and deviation / mean < threshold,
        )

    def __str__(self) -> str:
        return (
            f"{_core.with_sigma(self.energy_mean, self.energy_std, 'J')} per call in "
            f"{len(self.trials)} trials, {'valid' if self.is_valid else 'not valid'}"
        )


@dataclass
class SweepReport:
    """The results of trying several durations. Prints as a table."""

    sweep_param: str
    fixed_param: dict[str, float]
    entries: list[SweepResult]

    @property
    def best(self) -> SweepResult | None:
        """The shortest duration that is precise enough; None if none is."""
        valid = [entry for entry in self.entries if entry.is_valid]
        return min(valid, key=lambda entry: float(getattr(entry, self.sweep_param)), default=None)

    def __str__(self) -> str:
        fixed = ", ".join(f"{name} {value:g} s" for name, value in self.fixed_param.items())
        lines = [f"{self.sweep_param} with {fixed}"]
        for entry in self.entries:
            before, after = entry.avg_temperature_before, entry.avg_temperature_after
            seconds = getattr(entry, self.sweep_param)
            lines.append(f"{seconds:8g} s: {entry}, {before:.0f} to {after:.0f} °C")
        best = self.best
        lines.append(
            "none of them is good enough"
            if best is None
            else f"use {self.sweep_param} {getattr(best, self.sweep_param):g} s"
        )
        return "\n".join(lines)


class Trials:
    """Calls the function and measures, all in the monitor's time: that of a simulated node may run
    faster than ours."""

    def __init__(self, fn: Callable[[], Any], monitor: Any, warmup_iterations: int) -> None:
        if not callable(fn):
            raise TypeError(f"fn is a function, not {fn!r}")
        if warmup_iterations < 0:
            raise InvalidArgumentError(
                f"num_warmup_iterations is {warmup_iterations}: it must be 0 or more"
            )
        self._fn = fn
        self._monitor = monitor
        self._warmup_iterations = warmup_iterations
        self.is_first_rank = get_rank() == 0

    def __enter__(self) -> Trials:
        self._monitor.begin_window(_CLOCK, sync_execution=False, restart=True)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._monitor.closed:
            self._monitor.end_window(_CLOCK, sync_execution=False, cancel=True)

    def calibrate(self, iterations: int) -> float:
        """Returns the seconds that a call takes in the slowest process."""
        if iterations < 1:
            raise InvalidArgumentError(
                f"num_calibration_iterations is {iterations}: it must be at least 1"
            )
        self._call(self._warmup_iterations)
        seconds = self._measured(iterations).time / iterations
        if not seconds > 0:
            raise InvalidArgumentError("fn takes no time that could be measured: let it do more")
        return float(all_reduce([seconds], "max")[0])

    def rest(self, seconds: float) -> None:
        """Waits for a duration in the monitor's time."""
        _checks.not_negative("cooldown_duration", seconds)
        begin, deadline = time.monotonic(), self._now() + seconds
        started = deadline - seconds
        pause = min(seconds, 0.001)
        while (now := self._now()) < deadline:
            time.sleep(pause)
            # The time scale of the monitor is found out on the way.
            rate = max(1e-9, (self._now() - started) / (time.monotonic() - begin))
            pause = max(0.0005, min(1.0, (deadline - now) / rate / 2))

    def run(self, length: float, rest: float, seconds_per_call: float) -> TrialResult:
        """Runs one trial."""
        self.rest(rest)
        self._call(self._warmup_iterations)
        iterations = max(1, math.ceil(length / seconds_per_call))
        before = self._temperature()
        measurement = self._measured(iterations).refined()
        return self._result(measurement, iterations, before, self._temperature())

    def _result(self, measurement: Any, calls: int, before: float, after: float) -> TrialResult:
        energy = float(all_reduce([measurement.total_energy], "sum")[0])
        seconds = float(all_reduce([measurement.time], "max")[0])
        sums = all_reduce([before, after], "sum")
        return TrialResult(
            energy_per_iter=energy / calls,
            time_per_iter=seconds / calls,
            total_energy=energy,
            total_time=seconds,
            iterations=calls,
            temperature_before=sums[0] / get_world_size(),
            temperature_after=sums[1] / get_world_size(),
        )

    def _call(self, iterations: int) -> None:
        for _ in range(iterations):
            self._fn()

    def _measured(self, iterations: int) -> Any:
        self._monitor.begin_window(_WINDOW, restart=True)
        try:
            self._call(iterations)
        except BaseException:
            self._monitor.end_window(_WINDOW, sync_execution=False, cancel=True)
            raise
        return self._monitor.end_window(_WINDOW)

    def _now(self) -> float:
        return float(self._monitor.peek_window(_CLOCK).time)

    def _temperature(self) -> float:
        from zeus._core.metrics import gpu_temperatures

        known: Sequence[float] = gpu_temperatures(self._monitor)
        return statistics.fmean(known) if known else math.nan


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Returns both for at least two values; NaN if one is NaN, unlike statistics.stdev."""
    mean = statistics.fmean(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return mean, math.sqrt(squares / (len(values) - 1))
