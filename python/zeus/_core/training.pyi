"""The loop around training."""

from __future__ import annotations

from typing import Any

from zeus._core.monitor import Monitor

class Training:
    """Epochs and steps that are measured and may end early: see `zeus.data_loader`."""

    def __init__(
        self, monitor: Monitor, callbacks: list[Any], collective: Any, options: dict[str, Any]
    ) -> None: ...
    def begin_training(self) -> bool:
        """Begins the first epoch, or the next after a break; False if there is none to train."""
    def next_epoch(self) -> bool:
        """Ends the epoch and begins another one; False if training is over."""
    def leave_training(self, by_exception: bool) -> None:
        """Ends training within an epoch."""
    def begin_batches(self) -> None: ...
    def end_batches(self) -> None: ...
    def may_step(self) -> bool:
        """False when training should end within the epoch."""
    def begin_step(self) -> None: ...
    def end_step(self) -> None: ...
    def report_metric(self, metric: float) -> None: ...
    def stop(self) -> None: ...
    def summary(self, timeout: float) -> dict[str, Any]: ...
    @property
    def epoch(self) -> int:
        """That is under way, or the last one; -1 before the first."""
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
