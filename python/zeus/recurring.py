"""Recurring jobs of a foreign command: what `zeus train` does, from Python."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from zeus import _checks
from zeus._core import train as _core
from zeus.errors import InvalidArgumentError, ZeusError

_MODES = ("jit", "observe", "max", "found")
_LARGEST_BATCH = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class Trial:
    """One run of the command with one batch size."""

    recurrence: int
    batch_size: int
    converged: bool
    time: float  #: seconds; NaN if it was not measured
    energy: float  #: joules; NaN if it was not measured
    power_limit: float | None  #: watts; None if there was no single one
    reason: str  #: why the run ended
    epochs: int = 0
    metric: float | None = None  #: of the last epoch
    shared: bool = False  #: nothing was learned: other processes used the GPU, or it did not answer
    limit_trouble: str | None = None  #: why the power limit could not be set as asked for


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """The result of `train()`."""

    job: str
    gpu_model: str
    reached: bool  #: every recurrence reached the target
    exit_code: int | None  #: of a command that failed
    trials: list[Trial]


def _words(command: Any) -> list[str]:
    if isinstance(command, (str, bytes)) or not isinstance(command, Iterable):
        raise TypeError(
            "command is a list of words as in ['python3', 'train.py'], not "
            f"{_checks.shown(command)}"
        )
    return [_checks.text("each word of command", str(word)) for word in command]


def _whole_numbers(name: str, values: Any, least: int, most: int) -> list[int]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} is a list of whole numbers, not {_checks.shown(values)}")
    return [_checks.whole(f"each of {name}", value, least, most) for value in values]


def _limit(value: Any) -> str | float:
    if isinstance(value, str):
        if value not in _MODES:
            raise InvalidArgumentError(
                f"power_limit is {', '.join(_MODES)} or watts, not {_checks.shown(value)}"
            )
        return value
    return _checks.positive("power_limit", value)


def _optional(check: Any, name: str, value: Any, *bounds: Any) -> Any:
    return None if value is None else check(name, value, *bounds)


def _named_as_here(error: ZeusError) -> ZeusError:
    """Returns the error with options of the command line named as the arguments of train()."""
    text = re.sub(r"--([a-z][a-z-]*[a-z])", lambda found: found[1].replace("-", "_"), error.message)
    text = re.sub(r"\b(metric|progress)-(regex|file)\b", r"\1_\2", text)
    text = re.sub(r"^progress takes", "progress_regex takes", text)
    return type(error)(text)


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
    no_placeholder: bool = False,
    may_raise: bool = False,
    server_wait: float = 30.0,
    driver_timeout: float = 30.0,
    gpu_model: str | None = None,
    max_power: float | None = None,
) -> TrainResult:
    """Run a command that trains, with the batch size and the power limit that cost least.

    Words of the command may contain `{batch_size}`, `{lr}` and the other placeholders of
    `zeus train` (docs/train.md); the metric comes from its output (`metric_regex`), from a file, or
    from the socket that ZEUS_REPORT_SOCKET names. Other Python threads run meanwhile. Ctrl-C stops
    the command and raises KeyboardInterrupt.

    A power limit that could not be put back is an error whose `result` is the TrainResult.
    """
    fields = {
        "command": _words(command),
        "job": _checks.text("job", job),
        "batch_sizes": _whole_numbers("batch_sizes", batch_sizes, 1, _LARGEST_BATCH),
        "default": _checks.whole("default", default, 1, _LARGEST_BATCH),
        "target": _checks.number("target", target),
        "metric_regex": _optional(_checks.text, "metric_regex", metric_regex),
        "metric_file": _optional(_checks.text, "metric_file", metric_file),
        "progress_regex": _optional(_checks.text, "progress_regex", progress_regex),
        "lower_is_better": _checks.flag("lower_is_better", lower_is_better),
        "eta": _checks.number("eta", eta),
        "beta": _optional(_checks.number, "beta", beta),
        "max_epochs": _checks.whole("max_epochs", max_epochs, 1),
        "policy": _checks.text("policy", policy),
        "seed": _optional(_checks.whole, "seed", seed, 0, 2**64 - 1),
        "deadline": _optional(_checks.positive, "deadline", deadline),
        "recurrences": _checks.whole("recurrences", recurrences, 0),
        "baseline": _checks.whole("baseline", baseline, 0),
        "lr": _optional(_checks.not_negative, "lr", lr),
        "power_limit": _limit(power_limit),
        "gpus": _optional(_checks.indices, "gpus", gpus),
        "server": _optional(_checks.text, "server", server),
        "database": _optional(_checks.text, "database", database),
        "no_placeholder": _checks.flag("no_placeholder", no_placeholder),
        "may_raise": _checks.flag("may_raise", may_raise),
        "server_wait": _checks.not_negative("server_wait", server_wait),
        "driver_timeout": _checks.positive("driver_timeout", driver_timeout),
        "gpu_model": "" if gpu_model is None else _checks.text("gpu_model", gpu_model),
        "max_power": 0.0 if max_power is None else _checks.positive("max_power", max_power),
    }
    if fields["recurrences"] == 0 and fields["baseline"] == 0:
        raise InvalidArgumentError("recurrences=0 leaves nothing to run: it belongs to baseline")
    try:
        ended = _core.run_job(fields)
    except ZeusError as error:
        raise _named_as_here(error) from None
    result = TrainResult(
        job=ended["job"],
        gpu_model=ended["gpu_model"],
        reached=ended["reached"],
        exit_code=ended["exit_code"],
        trials=[Trial(**trial) for trial in ended["trials"]],
    )
    if ended["limit_left_changed"] is not None:
        left = _named_as_here(ended["limit_left_changed"])
        left.result = result  # type: ignore[attr-defined]
        raise left
    return result
