"""The common part of the callbacks for all frameworks."""

from __future__ import annotations

import warnings
from typing import Any, Sequence

from zeus.monitor import Measurement, ZeusMonitor

EPOCH = "epoch"


class Course:
    """Measures the epochs of a training and passes its events to Zeus callbacks.

    A framework may leave out or repeat events: an epoch that was never begun, a
    training that ends without its last epoch having ended.
    """

    def __init__(self, monitor: Any, callbacks: Sequence[Any]) -> None:
        self.monitor = monitor
        self.callbacks = list(callbacks)
        self.epochs: list[Measurement] = []
        self.training: Measurement | None = None
        self._open: dict[str, Any] = {}

    def train_begin(self) -> None:
        self._close_all()
        self.epochs.clear()
        self.training = None
        self._begin("training")
        self._tell("on_train_begin")

    def epoch_begin(self) -> None:
        self._begin(EPOCH)
        self._tell("on_epoch_begin")

    def step_begin(self) -> None:
        self._tell("on_step_begin")

    def step_end(self) -> None:
        self._tell("on_step_end")

    def epoch_end(self) -> Measurement | None:
        self._tell("on_epoch_end")
        measurement = self._end(EPOCH)
        if measurement is not None:
            self.epochs.append(measurement)
        return measurement

    def evaluate(self, metric: float) -> None:
        self._tell("on_evaluate", metric)

    def train_end(self) -> Measurement | None:
        """Ends everything that is open, also after an exception."""
        if EPOCH in self._open:
            self.epoch_end()
        self._tell("on_train_end")
        self.training = self._end("training") or self.training
        return self.training

    def _tell(self, event: str, *arguments: Any) -> None:
        for callback in self.callbacks:
            function = getattr(callback, event, None)
            if function is not None:
                function(*arguments)

    def _begin(self, window: str) -> None:
        if self.monitor is None:
            return
        self._end(window)
        # A window that another training or the user left open is replaced.
        self._open[window] = self.monitor.window(window).__enter__()

    def _end(self, window: str) -> Measurement | None:
        if window not in self._open:
            return None
        measured = self._open.pop(window)
        measured.__exit__(None, None, None)
        measurement: Measurement | None = measured.measurement
        return measurement

    def _close_all(self) -> None:
        for window in list(self._open):
            self._end(window)


class CourseCallback:
    """The base of the callbacks for all trainers."""

    def __init__(
        self, monitor: Any = None, callbacks: Sequence[Any] = (), metric: str | None = None
    ) -> None:
        super().__init__()
        self._course = Course(default_monitor(monitor), callbacks)
        self._metric = metric

    @property
    def epochs(self) -> list[Measurement]:
        """Measurements of the epochs of the present or last training."""
        return self._course.epochs

    @property
    def training(self) -> Measurement | None:
        """Measurement from the begin to the end of training; None before the end."""
        return self._course.training


def logs_of(measurement: Measurement | None) -> dict[str, float]:
    """Returns the values for the logger of a framework: one number per name."""
    if measurement is None:
        return {}
    return {
        "energy_joules": measurement.total_energy,
        "energy_sigma_joules": measurement.total_sigma,
        "energy_seconds": measurement.time,
    }


def default_monitor(monitor: Any) -> Any:
    """Makes a monitor if None is given; logs that there is nothing to measure, and continues."""
    if monitor is not None:
        return monitor
    try:
        return ZeusMonitor()
    except Exception as exception:
        warnings.warn(f"training is not measured: {exception}", stacklevel=3)
        return None
