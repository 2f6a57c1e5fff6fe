"""Power limits, just in time: tried while a job trains, the best one kept.

    from zeus.monitor import ZeusMonitor
    from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer, MaxSlowdownConstraint

    plo = GlobalPowerLimitOptimizer(ZeusMonitor(), MaxSlowdownConstraint(factor=1.1))
    for epoch in range(epochs):
        for batch in loader:
            plo.on_step_begin()
            train(batch)
        plo.on_epoch_end()
    print(plo.savings())
"""

from __future__ import annotations

import importlib
import os
import warnings
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Sequence

from zeus._announce import announce
from zeus._core import power_limit as _core
from zeus._core.monitor import Monitor
from zeus.callback import Callback
from zeus.errors import InvalidArgumentError, ZeusError
from zeus.optimizer import _checks
from zeus.optimizer.power_limit_selectors import (
    Energy,
    MaxSlowdownConstraint,
    OptimumSelector,
    PowerLimitMeasurement,
    Time,
    ZeusCost,
    _BuiltIn,
    measurements_of,
)
from zeus.optimizer.power_limit_states import (
    Confirming,
    Done,
    JobUse,
    Profiling,
    Ready,
    Savings,
    State,
    Warmup,
    savings_of,
    state_of,
)
from zeus.utils.distributed import Collective, check_collective
from zeus.utils.framework import get_rank

if TYPE_CHECKING:
    from zeus.integration.huggingface import (
        HFGlobalPowerLimitOptimizer as HFGlobalPowerLimitOptimizer,
    )

__all__ = [
    "Confirming",
    "Done",
    "Energy",
    "GlobalPowerLimitOptimizer",
    "HFGlobalPowerLimitOptimizer",
    "JobUse",
    "MaxSlowdownConstraint",
    "OptimumSelector",
    "PowerLimitMeasurement",
    "Profiling",
    "Ready",
    "Savings",
    "State",
    "Time",
    "Warmup",
    "ZeusCost",
    "read_profile",
]

_KNOBS = ("gpu_power_limit", "graphics_clock", "cpu_power_limit")
_NAMES = {
    "gpu_power_limit": ("power limit", "W"),
    "graphics_clock": ("graphics clock", "MHz"),
    "cpu_power_limit": ("power limit of the CPU", "W"),
}
_DEFAULT_STRIDE = 25


def __getattr__(name: str) -> Any:
    if name == "HFGlobalPowerLimitOptimizer":  # Its base class belongs to another package.
        return importlib.import_module("zeus.integration.huggingface").HFGlobalPowerLimitOptimizer
    raise AttributeError(f"module 'zeus.optimizer.power_limit' has no attribute {name!r}")


class _ForeignMeter:
    """Measures slices by windows of a foreign monitor, with its begin_window() and end_window()."""

    def __init__(self, monitor: Any) -> None:
        self._monitor = monitor

    def begin(self, window: str) -> None:
        self._monitor.begin_window(window)

    def end(self, window: str) -> tuple[float, float]:
        measurement = self._monitor.end_window(window)
        energies = getattr(measurement, "gpu_energy", None) or {}
        return float(measurement.time), float(sum(energies.values()))

    def cancel(self, window: str) -> None:
        self._monitor.end_window(window, cancel=True)


class GlobalPowerLimitOptimizer(_core.JitOptimizer, Callback):
    """Finds the best power limit of the monitor's GPUs while a job trains, and leaves it set.

    Each limit is tried for a while, beginning and ending at steps: the same limit on all GPUs,
    whose energies are summed; the slowest rank's time counts. Call `on_step_begin` before every
    step and `on_epoch_end` after the last step of an epoch. The original limit is restored when
    training or the program ends, also by an exception or a signal; after SIGKILL, the next Zeus
    program restores it.

    No error of the optimiser stops the training: `trouble` holds it.

    Args:
        monitor: A ZeusMonitor; or any object with `begin_window`, `end_window` and `gpu_indices`,
            which then measures, and whose numbers count as exact.
        optimum_selector: The objective; None: `ZeusCost` with eta 0.5.
        wait_steps: Steps before the first limit is tried.
        warmup_steps: Steps after each change that are not measured.
        profile_steps: Steps over which each limit is measured. Epochs may be shorter.
        pl_step: Watts from one limit to the next; megahertz for clocks.
        profile_path: File of the profile. If it exists and is from the same GPUs, nothing is
            measured again; files of other tools work, too.
        seconds_per_limit: Seconds for which each limit is measured, instead of steps, after half a
            second of warm-up; a limit ends earlier when it is known precisely enough. The paper
            uses 5.
        power_limits: The limits to try, in watts, instead of every `pl_step`.
        may_raise: Also try and set limits above the original one. By default that is the highest,
            because it may be a cap that an administrator set.
        knob: "gpu_power_limit", "graphics_clock" or "cpu_power_limit"; or several of them, which
            are optimised one after the other.
        observe: Only try the limits and decide: `savings` reports the possible savings.
        job, batch_size: Identify the profile in `profile_folder`.
        profile_folder: Folder of the profiles of many jobs, in which that of this job is found.
        collective: Communication of the ranks, see `zeus.utils.distributed`; None:
            torch.distributed if it is initialised. Each rank's monitor has its own GPUs.

    An older optimiser of the same GPUs, as when a cell of a notebook is run again, is closed with a
    warning, and its limit restored.

    Raises:
        TypeError, ValueError: For invalid arguments.
    """

    def __init__(
        self,
        monitor: Any,
        optimum_selector: OptimumSelector | None = None,
        wait_steps: int = 1,
        warmup_steps: int = 10,
        profile_steps: int = 40,
        pl_step: float = _DEFAULT_STRIDE,
        profile_path: str | os.PathLike[str] | None = None,
        *,
        seconds_per_limit: float | None = None,
        power_limits: Sequence[float] | None = None,
        may_raise: bool = False,
        knob: str | Sequence[str] = "gpu_power_limit",
        observe: bool = False,
        job: str = "",
        batch_size: int = 0,
        profile_folder: str | os.PathLike[str] | None = None,
        collective: Collective | None = None,
    ) -> None:
        knobs = _knobs(knob)
        stride = _checks.positive("pl_step", pl_step)
        if stride == _DEFAULT_STRIDE and knobs[0] == "graphics_clock":
            options_stride = None  # In watts; clocks have their own default.
        else:
            options_stride = stride
        options = {
            "wait_steps": _checks.whole("wait_steps", wait_steps, 0),
            "warmup_steps": _checks.whole("warmup_steps", warmup_steps, 0),
            "profile_steps": _checks.whole("profile_steps", profile_steps, 1),
            "seconds_per_limit": None
            if seconds_per_limit is None
            else _checks.positive("seconds_per_limit", seconds_per_limit),
            "stride": options_stride,
            "settings": [_checks.positive("power_limits", limit) for limit in power_limits or ()],
            "may_raise": _checks.flag("may_raise", may_raise),
            "knobs": knobs,
            "observe": _checks.flag("observe", observe),
            "job": _checks.text("job", job),
            "batch_size": _checks.whole("batch_size", batch_size, 0),
            "profile_path": "" if profile_path is None else os.fspath(profile_path),
            "profile_folder": "" if profile_folder is None else os.fspath(profile_folder),
        }
        selector = self._specification(optimum_selector)
        ranks = check_collective(collective)
        native, meter = _native(monitor)
        self._gpus = set(_gpu_indices(monitor))
        self._knobs = knobs
        _end_earlier(self)
        super().__init__(native, selector, meter, ranks, options)
        self.monitor = monitor
        self._native_monitor = native
        self._observes = options["observe"]
        self._announced = False
        _living.add(self)

    # The native on_step_begin() delegates to this method until everything is decided.
    def _on_step_begin(self) -> None:
        super()._on_step_begin()
        if not self._announced and self.done:
            self._announced = True
            if get_rank() == 0:
                for knob, setting in enumerate(self.chosen):
                    announce(self._decision(knob, setting))

    def _decision(self, knob: int, setting: float) -> str:
        """One sentence about the best setting of a knob, with what a step takes there."""
        name, unit = _NAMES[self._knobs[knob]]
        verb = "would be" if self._observes else "is from now on"
        text = f"the {name} {verb} {setting:g} {unit}"
        points = self.profile(knob)
        best = next((point for point in points if point.power_limit == setting), None)
        if best is None or best is points[0]:
            return text
        energy, time = best.energy / points[0].energy - 1, best.time / points[0].time - 1
        return (
            f"{text}: a step takes {energy:+.1%} energy and {time:+.1%} time against "
            f"{points[0].power_limit:g} {unit}"
        )

    def _specification(self, selector: Any) -> tuple[str, Any]:
        """Returns the objective in the form of the library: a name, or a function."""
        self._raised: Exception | None = None
        self.optimum_selector = ZeusCost() if selector is None else selector
        selector = self.optimum_selector
        if isinstance(selector, type) or not callable(getattr(selector, "select", None)):
            raise TypeError(
                f"optimum_selector has a method select(measurements), such as Energy(), not "
                f"{selector!r}"
            )
        if isinstance(selector, _BuiltIn) and type(selector).select is _BuiltIn.select:
            return selector._specification()
        # The reference is weak, because the library, which this object owns, holds the function.
        this = weakref.proxy(self)

        def choose(points: list[tuple[Any, ...]]) -> float:
            try:
                return _checks.number(
                    "the power limit that was selected", selector.select(measurements_of(points))
                )
            except Exception as exception:
                this._raised = exception
                raise

        return type(selector).__name__, choose

    @property
    def state(self) -> State:
        """The present state: `Ready`, `Warmup`, `Profiling`, `Confirming` or `Done`."""
        return state_of(*self._state(), self.optimal_power_limit)

    @property
    def optimal_power_limit(self) -> float | None:
        """The best setting of the first knob in watts (or megahertz); None if undecided."""
        return next(iter(self.chosen), None)

    @property
    def chosen(self) -> list[float]:
        """The best settings that were decided, in the order of the knobs."""
        return [_plain(number) for number in self._chosen()]

    @property
    def measurements(self) -> list[PowerLimitMeasurement]:
        """The usage of a step at each limit, highest first; complete once `done`."""
        return self.profile()

    def profile(self, knob: int = 0) -> list[PowerLimitMeasurement]:
        """Returns the profile of one of the knobs that were profiled so far."""
        return measurements_of(self._points(_checks.whole("knob", knob, 0)))

    def save_profile(self, path: str | os.PathLike[str], knob: int = 0) -> None:
        """Writes the profile as JSON, for `profile_path` and for other tools."""
        self._save_profile(_checks.whole("knob", knob, 0), os.fspath(path))

    @property
    def trouble(self) -> ZeusError | None:
        """The reason why the job is not being optimised; None if it is."""
        trouble = super().trouble
        if trouble is not None:
            trouble.__cause__ = self._raised
        return trouble

    def used(self) -> JobUse:
        """Returns the usage of the job's GPUs since training began. All ranks must call it."""
        return JobUse(*self._used())

    def savings(self, knob: int = 0) -> Savings:
        """Returns the savings of the best setting, with uncertainty. All ranks must call it.

        Raises:
            UnavailableError: If nothing is decided yet.
        """
        return savings_of(self._savings(_checks.whole("knob", knob, 0)))

    def __enter__(self) -> GlobalPowerLimitOptimizer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def read_profile(path: str | os.PathLike[str]) -> list[PowerLimitMeasurement]:
    """Reads a file of `profile_path` or of another tool; highest limit first."""
    return measurements_of(_core.read_profile(os.fspath(path)))


_living: weakref.WeakSet[GlobalPowerLimitOptimizer] = weakref.WeakSet()


def _end_earlier(newcomer: GlobalPowerLimitOptimizer) -> None:
    for other in list(_living):
        if other.closed or not set(other._knobs) & set(newcomer._knobs):
            continue
        shared = sorted(other._gpus & newcomer._gpus)
        if shared or "cpu_power_limit" in newcomer._knobs:
            warnings.warn(
                f"an earlier power limit optimiser of GPU {', '.join(map(str, shared))} was still "
                "there: it is ended, and its limit put back",
                stacklevel=3,
            )
            other.close()


def _native(monitor: Any) -> tuple[Monitor, _ForeignMeter | None]:
    """Returns the monitor whose devices have the knobs, and a foreign one that measures, if any."""
    if isinstance(monitor, Monitor):
        return monitor, None
    for member in ("begin_window", "end_window", "gpu_indices"):
        if not hasattr(monitor, member):
            raise TypeError(f"monitor is a ZeusMonitor, not {monitor!r}, which has no {member}")
    gpus = _gpu_indices(monitor)
    native = Monitor(gpus=gpus, cpus=[], share=True, log=(b"", False, False), framework="")
    return native, _ForeignMeter(monitor)


def _gpu_indices(monitor: Any) -> list[int]:
    return [_checks.whole("gpu_indices of the monitor", index, 0) for index in monitor.gpu_indices]


def _knobs(given: Any) -> list[str]:
    knobs = [given] if isinstance(given, str) else list(given)
    for knob in knobs:
        if knob not in _KNOBS:
            raise InvalidArgumentError(f"knob is one of {', '.join(_KNOBS)}, not {knob!r}")
    if not knobs or len(set(knobs)) != len(knobs):
        raise InvalidArgumentError(f"knob names each knob once, not {given!r}")
    return knobs


def _plain(number: float) -> float:
    return int(number) if number == int(number) else number
