"""Recurring jobs of a foreign command: what `zeus train` does, from Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

from zeus._core import train as _core


@dataclasses.dataclass(frozen=True)
class Trial:
    """One run of the command with one batch size."""

    recurrence: int
    batch_size: int
    converged: bool
    time: float  #: seconds
    energy: float  #: joules
    power_limit: float | None  #: watts; None if there was no single one
    reason: str  #: why the run ended


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """What `train()` did."""

    job: str
    gpu_model: str
    reached: bool  #: every recurrence reached the target
    exit_code: int | None  #: of a command that failed
    trials: list[Trial]


def train(
    command: Sequence[str],
    *,
    job: str,
    batch_sizes: Sequence[int],
    default: int,
    target: float,
    metric_regex: str | None = None,
    metric_file: str | None = None,
    progress_regex: str | None = None,
    lower_is_better: bool = False,
    eta: float = 0.5,
    beta: float | None = 2.0,
    max_epochs: int = 100,
    policy: str = "knowledge_gradient",
    seed: int | None = None,
    deadline: float | None = None,
    recurrences: int = 1,
    baseline: int = 0,
    lr: float | None = None,
    power_limit: Literal["jit", "observe", "max", "found"] | float = "jit",
    gpus: Sequence[int] | None = None,
    server: str | None = None,
    database: str | None = None,
) -> TrainResult:
    """Run a command that trains, with the batch size and the power limit that cost least.

    Words of the command may contain `{batch_size}`, `{lr}` and the other placeholders of
    `zeus train` (docs/train.md); the metric comes from its output (`metric_regex`), from a file, or
    from the socket that ZEUS_REPORT_SOCKET names. Other Python threads run meanwhile. Ctrl-C stops
    the command and raises KeyboardInterrupt.
    """
    result = _core.run_job({
        "command": [str(word) for word in command],
        "job": job,
        "batch_sizes": list(batch_sizes),
        "default": default,
        "target": target,
        "metric_regex": metric_regex,
        "metric_file": metric_file,
        "progress_regex": progress_regex,
        "lower_is_better": lower_is_better,
        "eta": eta,
        "beta": beta,
        "max_epochs": max_epochs,
        "policy": policy,
        "seed": seed,
        "deadline": deadline,
        "recurrences": recurrences,
        "baseline": baseline,
        "lr": lr,
        "power_limit": power_limit,
        "gpus": None if gpus is None else list(gpus),
        "server": server,
        "database": database,
    })
    return TrainResult(
        job=result["job"],
        gpu_model=result["gpu_model"],
        reached=result["reached"],
        exit_code=result["exit_code"],
        trials=[Trial(**trial) for trial in result["trials"]],
    )
