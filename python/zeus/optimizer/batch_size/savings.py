"""The savings of a recurring job, as the server computes them."""

from __future__ import annotations

import dataclasses
from typing import Any

from zeus import _core

_JOULES_PER_KILOWATT_HOUR = 3.6e6


@dataclasses.dataclass(frozen=True)
class Mean:
    """A mean over trainings, in joules or seconds.

    Attributes:
        mean: 0 while there is none.
        sigma: One standard deviation of the mean, from the scatter; None for fewer than two.
    """

    mean: float
    sigma: float | None


@dataclasses.dataclass(frozen=True)
class Usual:
    """The usage of a training that reaches the target.

    Attributes:
        count: Trainings that reached the target.
        energy: Joules.
        time: Seconds.
        cost: Joules, in the blend of the job.
    """

    count: int
    energy: Mean
    time: Mean
    cost: Mean


@dataclasses.dataclass(frozen=True)
class Saved:
    """A saving; negative if Zeus took more. Every sigma is one standard deviation.

    Attributes:
        percent: Relative to the default.
        percent_sigma: Standard deviation of `percent`.
        total: Joules or seconds, over all recurrences.
        total_sigma: Standard deviation of `total`.
    """

    percent: float
    percent_sigma: float
    total: float
    total_sigma: float

    @property
    def kwh(self) -> float:
        """The total of an energy in kilowatt-hours."""
        return self.total / _JOULES_PER_KILOWATT_HOUR

    @property
    def kwh_sigma(self) -> float:
        """One standard deviation of `kwh`."""
        return self.total_sigma / _JOULES_PER_KILOWATT_HOUR

    def __str__(self) -> str:
        return _core.percent_with_sigma(self.percent, self.percent_sigma)


@dataclasses.dataclass(frozen=True)
class SavedCarbon:
    """Emissions of the energy that was saved; negative if Zeus took more.

    Attributes:
        grams_co2e: None if no source knows the intensity; `notes` say why.
        sigma: One standard deviation, of energy and intensity together.
        sources: Where the intensities come from.
        notes: What a reader should know: stale values, fallbacks.
    """

    grams_co2e: float | None
    sigma: float | None
    sources: tuple[str, ...]
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class SavedMoney:
    """Price of the energy that was saved; negative if Zeus took more.

    Attributes:
        amount: None if no source knows the price; `notes` say why.
        sigma: One standard deviation.
        currency: Three letters.
        sources: Where the prices come from.
        notes: What a reader should know.
    """

    amount: float | None
    sigma: float | None
    currency: str
    sources: tuple[str, ...]
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class JobSavings:
    """The savings of a job against undisturbed runs of its default.

    Everything that ran under Zeus is charged to it: exploration, profiling of power limits, runs
    that were stopped or failed. While there are fewer than two undisturbed runs of the default
    (``BatchSizeOptimizer(..., baseline=True)``), or fewer than two recurrences, the saving is not
    known: `energy`, `time` and `cost` are None, and `unknown_because` says what is missing.

    Attributes:
        job_id: Id of the job.
        gpu_model: Only runs on this model count.
        default_batch_size: Batch size of the undisturbed runs.
        baseline: Undisturbed runs of the default.
        zeus: Recurrences of the job, with everything that is charged to them.
        runs: Runs that are charged.
        shared_runs: Runs left out because other processes used their GPUs.
        energy: None while the saving is unknown, as are the next two.
        time: In seconds.
        cost: In joules, in the blend of the job.
        unknown_because: Empty if the saving is known.
        carbon: Emissions of the saved energy; None unless it is known and sources were named, in
            the call or for the server.
        money: Price of the saved energy; None likewise.
    """

    job_id: str
    gpu_model: str
    default_batch_size: int
    baseline: Usual
    zeus: Usual
    runs: int
    shared_runs: int
    energy: Saved | None
    time: Saved | None
    cost: Saved | None
    unknown_because: str
    carbon: SavedCarbon | None = None
    money: SavedMoney | None = None

    def __str__(self) -> str:
        if self.energy is None:
            return f"not known yet: {self.unknown_because}"
        return (
            f"energy {self.energy}, time {self.time}, cost {self.cost} less than "
            f"{self.baseline.count} undisturbed runs of the default"
        )


def _saved_carbon(numbers: dict[str, Any] | None) -> SavedCarbon | None:
    if numbers is None:
        return None
    return SavedCarbon(
        grams_co2e=numbers["amount"],
        sigma=numbers["sigma"],
        sources=tuple(numbers["sources"]),
        notes=tuple(numbers["notes"]),
    )


def _saved_money(numbers: dict[str, Any] | None) -> SavedMoney | None:
    if numbers is None:
        return None
    return SavedMoney(
        amount=numbers["amount"],
        sigma=numbers["sigma"],
        currency=numbers["currency"],
        sources=tuple(numbers["sources"]),
        notes=tuple(numbers["notes"]),
    )


def _usual(numbers: dict[str, Any]) -> Usual:
    return Usual(
        numbers["count"],
        Mean(*numbers["energy"]),
        Mean(*numbers["time"]),
        Mean(*numbers["cost"]),
    )


def savings_of(numbers: dict[str, Any]) -> JobSavings:
    """Converts the result of the library."""
    saved = numbers["saved"]
    return JobSavings(
        job_id=numbers["job_id"],
        gpu_model=numbers["gpu_model"],
        default_batch_size=numbers["default_batch_size"],
        baseline=_usual(numbers["baseline"]),
        zeus=_usual(numbers["zeus"]),
        runs=numbers["runs"],
        shared_runs=numbers["shared_runs"],
        energy=None if saved is None else Saved(*saved["energy"]),
        time=None if saved is None else Saved(*saved["time"]),
        cost=None if saved is None else Saved(*saved["cost"]),
        unknown_because=numbers["unknown_because"],
        carbon=None if saved is None else _saved_carbon(saved.get("carbon")),
        money=None if saved is None else _saved_money(saved.get("money")),
    )
