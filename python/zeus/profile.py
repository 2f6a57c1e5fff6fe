"""Measures the energy of one call of a function, and finds how long to measure for that.

    result = measure(lambda: model(batch), monitor, measurement_duration=5, cooldown_duration=10)
    print(result.energy_per_iter, "J")

Short measurements are noisy, and those on a chip that is still warm from the last one are biased.
`profile_measurement_duration` and `profile_cooldown_duration` find out how short is long enough.
"""

from __future__ import annotations

import logging
import math
from typing import Any, Callable, Sequence

from zeus import _checks
from zeus._profile import (
    SweepReport,
    SweepResult,
    TrialResult,
    Trials,
    mean_and_deviation,
)
from zeus.errors import InvalidArgumentError

__all__ = [
    "SweepReport",
    "SweepResult",
    "TrialResult",
    "measure",
    "profile_cooldown_duration",
    "profile_measurement_duration",
    "profile_parameters",
]

_log = logging.getLogger(__name__)
_RANGE = tuple(float(seconds) for seconds in range(1, 11))


def measure(
    target_function: Callable[[], Any],
    zeus_monitor: Any,
    measurement_duration: float,
    cooldown_duration: float,
    num_warmup_iterations: int = 10,
    num_calibration_iterations: int = 100,
    warmup_settle_duration: float | None = None,
) -> TrialResult:
    """Measures energy and time of one call of `target_function`, with as many calls as fill the duration.

    Calls it to warm up, then to learn how long a call takes, lets the devices rest, warms up again
    and measures.

    Args:
        target_function: What is to be measured.
        zeus_monitor: A ZeusMonitor. All its devices count.
        measurement_duration: Seconds that the measurement lasts, as far as calls last alike.
        cooldown_duration: Seconds of rest before it.
        num_warmup_iterations: Calls before each measurement.
        num_calibration_iterations: Calls from which the time of one is learnt.
        warmup_settle_duration: Seconds of rest after these; None for `cooldown_duration`.
    """
    trials = Trials(target_function, zeus_monitor, num_warmup_iterations)
    _checks.positive("measurement_duration", measurement_duration)
    with trials:
        seconds = trials.calibrate(num_calibration_iterations)
        settle = cooldown_duration if warmup_settle_duration is None else warmup_settle_duration
        trials.rest(max(0.0, settle - cooldown_duration))
        return trials.run(measurement_duration, cooldown_duration, seconds)


def profile_measurement_duration(
    target_function: Callable[[], Any],
    zeus_monitor: Any,
    measurement_duration_search_range: Sequence[float] | None = None,
    cooldown_duration: float = 10.0,
    num_trials: int = 10,
    num_warmup_trials: int = 2,
    trial_stddev_threshold: float = 0.01,
    num_warmup_iterations: int = 10,
    num_calibration_iterations: int = 100,
    iteration_duration: float | None = None,
    *,
    stop_when_valid: bool = False,
) -> SweepReport:
    """Returns how reproducible measurements of different lengths are.

    Args:
        target_function, zeus_monitor: As for `measure`.
        measurement_duration_search_range: The lengths to try, in seconds; None for 1 to 10.
        cooldown_duration: Seconds of rest before each trial.
        num_trials: Trials for each length, at most: they end once it is clear, with 95 %
            confidence, on which side of the threshold their standard deviation is.
        num_warmup_trials: Trials before them that do not count.
        trial_stddev_threshold: The standard deviation of the energy of a call that is good enough,
            as a share of the energy: 0.01 is one percent, for large models and small ones.
        num_warmup_iterations, num_calibration_iterations: As for `measure`.
        iteration_duration: Seconds of one call, where they are known.
        stop_when_valid: Leave out the lengths after the first that is good enough.
    """
    return _sweep(
        Trials(target_function, zeus_monitor, num_warmup_iterations),
        "measurement_duration",
        {"cooldown_duration": cooldown_duration},
        measurement_duration_search_range,
        (num_trials, num_warmup_trials, trial_stddev_threshold),
        (num_calibration_iterations, iteration_duration),
        stop_when_valid,
    )


def profile_cooldown_duration(
    target_function: Callable[[], Any],
    zeus_monitor: Any,
    cooldown_duration_search_range: Sequence[float] | None = None,
    measurement_duration: float = 10.0,
    num_trials: int = 10,
    num_warmup_trials: int = 2,
    trial_stddev_threshold: float = 0.01,
    num_warmup_iterations: int = 10,
    num_calibration_iterations: int = 100,
    iteration_duration: float | None = None,
    *,
    stop_when_valid: bool = False,
) -> SweepReport:
    """Returns how reproducible measurements are after rests of different lengths.

    See `profile_measurement_duration`; here `cooldown_duration_search_range` has the lengths of the rest.
    """
    return _sweep(
        Trials(target_function, zeus_monitor, num_warmup_iterations),
        "cooldown_duration",
        {"measurement_duration": measurement_duration},
        cooldown_duration_search_range,
        (num_trials, num_warmup_trials, trial_stddev_threshold),
        (num_calibration_iterations, iteration_duration),
        stop_when_valid,
    )


def profile_parameters(
    target_function: Callable[[], Any],
    zeus_monitor: Any,
    measurement_duration_search_range: Sequence[float] | None = None,
    cooldown_duration_search_range: Sequence[float] | None = None,
    num_trials: int = 10,
    num_warmup_trials: int = 2,
    trial_stddev_threshold: float = 0.01,
    num_warmup_iterations: int = 10,
    num_calibration_iterations: int = 100,
    *,
    cooldown_duration: float = 10.0,
    iteration_duration: float | None = None,
    stop_when_valid: bool = False,
) -> tuple[SweepReport, SweepReport]:
    """Both: first how long to measure, then, measuring so long, how long to rest before.

    `report.best` of each is the value to use; None if none of those tried is good enough. While
    the length is found the rest before each trial is `cooldown_duration`.
    """
    common: dict[str, Any] = {
        "num_trials": num_trials,
        "num_warmup_trials": num_warmup_trials,
        "trial_stddev_threshold": trial_stddev_threshold,
        "num_warmup_iterations": num_warmup_iterations,
        "num_calibration_iterations": num_calibration_iterations,
        "iteration_duration": iteration_duration,
        "stop_when_valid": stop_when_valid,
    }
    lengths = profile_measurement_duration(
        target_function,
        zeus_monitor,
        measurement_duration_search_range,
        cooldown_duration,
        **common,
    )
    best = lengths.best
    longest = max(measurement_duration_search_range or _RANGE)
    rests = profile_cooldown_duration(
        target_function,
        zeus_monitor,
        cooldown_duration_search_range,
        longest if best is None else best.measurement_duration,
        **common,
    )
    return lengths, rests


def _sweep(
    trials: Trials,
    swept: str,
    fixed: dict[str, float],
    given: Sequence[float] | None,
    repetitions: tuple[int, int, float],
    calibration: tuple[int, float | None],
    stop_when_valid: bool,
) -> SweepReport:
    searched = f"{swept}_search_range"
    values = _RANGE if given is None else given
    if not values:
        raise InvalidArgumentError(f"{searched} is empty: name at least one number of seconds")
    for name, value in (*fixed.items(), *((f"each of {searched}", value) for value in values)):
        if "cooldown" in name:
            _checks.not_negative(name, value)
        else:
            _checks.positive(name, value)
    most, uncounted, threshold = repetitions
    if most < 2:
        raise InvalidArgumentError(f"num_trials is {most}: a standard deviation needs at least 2")
    _checks.positive("trial_stddev_threshold", threshold)
    report = SweepReport(swept, fixed, [])
    with trials:
        seconds = calibration[1]
        if seconds is None:
            seconds = trials.calibrate(calibration[0])
        _checks.positive("iteration_duration", seconds)
        for value in values:
            durations = {**fixed, swept: value}
            length, rest = durations["measurement_duration"], durations["cooldown_duration"]
            for _ in range(uncounted):
                trials.run(length, rest, seconds)
            result = _repeat(trials, length, rest, seconds, most, threshold)
            report.entries.append(result)
            if trials.is_first_rank:
                _log.info("%s %g s: %s", swept, value, result)
            if stop_when_valid and result.is_valid:
                break
    return report


def _repeat(
    trials: Trials, length: float, rest: float, seconds: float, most: int, threshold: float
) -> SweepResult:
    """Repeats trials until it is clear on which side of the threshold they are, `most` at most."""
    done: list[TrialResult] = []
    while len(done) < most:
        done.append(trials.run(length, rest, seconds))
        if len(done) >= 3:
            low, high = _deviation_bounds([trial.energy_per_iter for trial in done])
            if high < threshold or low > threshold:
                break
    return SweepResult.of(length, rest, done, threshold)


def _deviation_bounds(energies: Sequence[float]) -> tuple[float, float]:
    """Returns 95 % bounds of the true standard deviation, relative to the mean."""
    degrees = len(energies) - 1
    mean, deviation = mean_and_deviation(energies)
    if not mean > 0:
        return 0.0, math.inf
    relative = deviation / mean
    return (
        relative * math.sqrt(degrees / _chi_square(degrees, 1.959964)),
        relative * math.sqrt(degrees / _chi_square(degrees, -1.959964)),
    )


def _chi_square(degrees: int, normal: float) -> float:
    """The quantile of the chi-square distribution that belongs to one of the normal distribution.

    Wilson and Hilferty's approximation, good to some percent from 2 degrees of freedom on.
    """
    spread = 2 / (9 * degrees)
    return degrees * max(0.05, 1 - spread + normal * math.sqrt(spread)) ** 3
