"""The result of a training with `zeus.ZeusDataLoader`."""

from __future__ import annotations

from typing import Any, NamedTuple

from zeus import _core

__all__ = ["EpochSummary", "TrainingSummary"]


class EpochSummary(NamedTuple):
    """One epoch with its evaluation. Sigmas are one standard deviation."""

    epoch: int
    steps: int
    #: Seconds of the slowest rank.
    time: float
    #: Joules of the GPUs of all ranks.
    energy: float
    energy_sigma: float
    #: Joules, energy and time weighted by eta; None if the GPUs do not report their highest power.
    cost: float | None
    cost_sigma: float | None
    metric: float | None


class TrainingSummary(NamedTuple):
    """All epochs so far. Prints in one line."""

    epochs: int
    #: "target_reached", "cost_bound", "max_epochs", "stopped_by_user" (also a break or an exception
    #: that left the epochs), "others_gone"; None while training goes on.
    reason: str | None
    steps: int
    time: float
    energy: float
    energy_sigma: float
    cost: float | None
    cost_sigma: float | None
    best_metric: float | None
    records: list[EpochSummary]
    #: Devices whose energy is missing or incomplete, because they could not be read.
    missing: list[str]

    def __str__(self) -> str:
        parts = [f"{self.epochs} epoch{'' if self.epochs == 1 else 's'}"]
        if self.reason is not None:
            parts[0] += f" ({self.reason.replace('_', ' ')})"
        energy = _core.with_sigma(self.energy, self.energy_sigma, "J")
        parts.append(f"{energy} over {self.time:.1f} s")
        if self.best_metric is not None:
            parts.append(f"best metric {self.best_metric:g}")
        if self.missing:
            parts.append(f"without {', '.join(self.missing)}")
        return ", ".join(parts)


def summary_of(numbers: dict[str, Any]) -> TrainingSummary:
    """Makes a summary from the result of the library."""
    records = []
    for epoch, amounts, metric in numbers["records"]:
        records.append(EpochSummary._make((epoch, *amounts, metric)))
    last = (numbers["best_metric"], records, numbers["missing"])
    return TrainingSummary._make((numbers["epochs"], numbers["reason"], *numbers["amounts"], *last))
