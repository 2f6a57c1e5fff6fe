"""The cost that Zeus minimises, and energy from logs of power."""

from __future__ import annotations

import csv
import math
import os
from datetime import datetime

from zeus.errors import InvalidArgumentError

__all__ = ["avg_power", "energy", "zeus_cost"]


def zeus_cost(energy: float, time: float, eta_knob: float, max_power: int | float) -> float:
    """Combines energy and time into one number, in joules (Zeus, section 2.3).

    Args:
        energy: Joules.
        time: Seconds.
        eta_knob: From 0 (only time counts) to 1 (only energy counts).
        max_power: Watts of all GPUs together at their highest limit: what time is valued at.
    """
    for name, value in (("energy", energy), ("time", time), ("max_power", max_power)):
        if not value >= 0:
            raise InvalidArgumentError(f"{name} is {value}: it must be 0 or more")
    if not 0 <= eta_knob <= 1:
        raise InvalidArgumentError(f"eta_knob is {eta_knob}: it must be from 0 to 1")
    return eta_knob * energy + (1 - eta_knob) * max_power * time


def energy(
    logfile: str | os.PathLike[str], start: float | None = None, end: float | None = None
) -> float:
    """Returns the joules of a power log between two times, in seconds after its first line.

    The log has the columns `Time` (ISO 8601) and `Power` in milliwatts. Power is taken to go in
    straight lines from sample to sample, and the edges are cut where they are, between samples.
    """
    return _integrate(_samples(logfile), start, end)[0]


def avg_power(
    logfile: str | os.PathLike[str], start: float | None = None, end: float | None = None
) -> float:
    """Returns the mean watts of such a log: see `energy`. ValueError if no time passed."""
    joules, seconds = _integrate(_samples(logfile), start, end)
    if seconds <= 0:
        raise InvalidArgumentError(f"no time passes in {os.fspath(logfile)} between start and end")
    return joules / seconds


def _samples(logfile: str | os.PathLike[str]) -> list[tuple[float, float]]:
    """Returns seconds since the first line, and watts."""
    samples: list[tuple[float, float]] = []
    with open(logfile, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows:
        raise InvalidArgumentError(f"{os.fspath(logfile)} is empty")
    header = [name.strip() for name in rows[0]]
    power = next((i for i, name in enumerate(header) if name in ("Power", "Power(mW)")), None)
    if "Time" not in header or power is None:
        raise InvalidArgumentError(f"{os.fspath(logfile)} has no columns Time and Power")
    first: datetime | None = None
    for line, row in enumerate(rows[1:], start=2):
        try:
            time, watts = datetime.fromisoformat(row[header.index("Time")]), float(row[power]) / 1e3
        except (IndexError, ValueError) as error:
            if line == len(rows):  # The writer was stopped in the middle of the last line.
                break
            raise InvalidArgumentError(
                f"{os.fspath(logfile)}, line {line}: not a time and a power"
            ) from error
        first = first or time
        samples.append(((time - first).total_seconds(), watts))
    if not samples:
        raise InvalidArgumentError(f"{os.fspath(logfile)} has no samples")
    return sorted(samples)


def _integrate(
    samples: list[tuple[float, float]], start: float | None, end: float | None
) -> tuple[float, float]:
    """Returns joules and seconds of the part of the log between `start` and `end`."""
    begin = samples[0][0] if start is None else max(start, samples[0][0])
    finish = samples[-1][0] if end is None else min(end, samples[-1][0])
    if math.isnan(begin) or math.isnan(finish) or (start or 0) > (math.inf if end is None else end):
        raise InvalidArgumentError(f"start ({start}) must not be after end ({end})")
    joules = 0.0
    for (t0, p0), (t1, p1) in zip(samples, samples[1:]):
        left, right = max(t0, begin), min(t1, finish)
        if left >= right:
            continue
        slope = (p1 - p0) / (t1 - t0)
        joules += (right - left) * (p0 + slope * ((left + right) / 2 - t0))
    return joules, max(0.0, finish - begin)
