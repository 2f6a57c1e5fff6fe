"""The temperature of GPUs over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Sequence

from zeus._core.recording import Quantity
from zeus.errors import InvalidArgumentError
from zeus.monitor.recorded import RecordedGpus, check_count, check_period, check_time

if TYPE_CHECKING:
    from zeus.monitor.energy import ZeusMonitor

__all__ = ["TemperatureMonitor"]


class TemperatureMonitor:
    """Records the temperature of GPUs, from its construction to `stop()`.

        monitor = TemperatureMonitor(update_period=0.5)
        train()
        print(monitor.get_temperature())  # {0: 61, 1: 58}

    One native thread records all GPUs; a GPU without a temperature does not affect the others.
    Times are seconds since 1970. Thread-safe.

    Args:
        gpu_indices: Indices among the GPUs that this process sees; None: all.
        update_period: Seconds between two readings.
        max_samples_per_gpu: Timelines hold at most this many of the newest samples; None: all.
        monitor: A `ZeusMonitor` whose recording, with a reading per second, is used instead of a
            new one.
    """

    def __init__(
        self,
        gpu_indices: Sequence[int] | None = None,
        update_period: float = 1.0,
        max_samples_per_gpu: int | None = None,
        *,
        monitor: ZeusMonitor | None = None,
    ) -> None:
        period = check_period(update_period) or 1.0
        self.max_samples_per_gpu = check_count(max_samples_per_gpu, "max_samples_per_gpu")
        self._recorded = RecordedGpus(gpu_indices, period, monitor)
        self.gpu_indices = list(self._recorded.positions)
        self.update_period = period
        missing = self._recorded.unsupported(Quantity.TEMPERATURE)
        if len(missing) == len(self.gpu_indices):
            self.stop()
            raise InvalidArgumentError(f"no GPU tells its temperature: {missing}")

    def get_temperature(self, time: float | None = None) -> dict[int, int] | None:
        """Returns degrees Celsius by GPU, at present or at a time, without GPUs that had no value.

        The same holds for times before the recording. None if nothing was recorded at all.
        """
        values = (
            self._recorded.now(Quantity.TEMPERATURE)
            if time is None
            else self._recorded.at(Quantity.TEMPERATURE, check_time(time, "time"))
        )
        if values is None:
            return None
        return {gpu: round(value) for gpu, value in values.items() if not math.isnan(value)}

    def get_temperature_timeline(
        self,
        gpu_index: int | None = None,
        start_time: float | None = None,
        end_time: float | None = None,
    ) -> dict[int, list[tuple[float, int]]]:
        """Returns times and degrees by GPU, oldest first. A value holds until the next."""
        lines = self._recorded.timeline(
            Quantity.TEMPERATURE, gpu_index, start_time, end_time, self.max_samples_per_gpu
        )
        return {gpu: [(time, round(value)) for time, value in line] for gpu, line in lines.items()}

    def stop(self) -> None:
        """Ends the recording, unless it belongs to another monitor. It stays readable.

        A second call does nothing, nor does a call in a forked child.
        """
        self._recorded.stop()

    def __enter__(self) -> TemperatureMonitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
