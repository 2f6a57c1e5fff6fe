from __future__ import annotations

from typing import Any

from zeus._core.monitor import Monitor

class JobRun:
    """One run of a recurring job: see zeus.optimizer.batch_size.BatchSizeOptimizer."""

    def __init__(
        self,
        monitor: Monitor,
        server: tuple[str, str, str],
        job: dict[str, Any],
        options: dict[str, Any],
        collective: Any,
    ) -> None:
        """Registers the job with the server: its URL, a token and a file of authorities."""
    def begin_trial(self) -> None:
        """Asks for a batch size, once."""
    def observe(self, power_limit_optimizer: Any) -> None:
        """Something with `closed` and `done`."""
    def on_train_begin(self) -> None: ...
    def on_evaluate(self, metric: float) -> None: ...
    def on_train_end(self) -> None:
        """The run came to its end by itself."""
    def savings(self, carbon: dict[str, str]) -> dict[str, Any]:
        """The savings of the job, in the form that zeus.optimizer.batch_size.JobSavings reads."""
    def close(self) -> None:
        """Ends the run; if it has not ended before, it counts as given up."""
    @property
    def closed(self) -> bool: ...
    @property
    def job_id(self) -> str: ...
    @property
    def gpu_model(self) -> str: ...
    @property
    def max_power(self) -> float:
        """Watts, of all GPUs of all ranks."""
    @property
    def number_of_gpus(self) -> int:
        """The number of GPUs of all ranks."""
    @property
    def batch_size(self) -> int:
        """0 before the trial has begun, as are the next three."""
    @property
    def max_epochs(self) -> int: ...
    @property
    def trial(self) -> int: ...
    @property
    def recurrence(self) -> int: ...
    @property
    def stop(self) -> bool: ...
    @property
    def converged(self) -> bool: ...
    @property
    def retry(self) -> bool: ...
    @property
    def message(self) -> str: ...
    @property
    def trouble(self) -> str | None: ...
