"""What the monitors of power and temperature share: the recording of some GPUs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Sequence, SupportsFloat, SupportsIndex

from zeus import _checks
from zeus._core.recording import Quantity, Recording
from zeus.device.gpu.exception import ZeusGPUInitError, ZeusGPUNotFoundError
from zeus.errors import InvalidArgumentError, NotFoundError, ZeusError

if TYPE_CHECKING:
    from zeus.monitor.energy import ZeusMonitor


class RecordedGpus:
    """Some GPUs of a recording, its own or another monitor's."""

    def __init__(
        self,
        gpu_indices: Sequence[int] | None,
        telemetry_interval: float,
        monitor: ZeusMonitor | None,
    ) -> None:
        wanted = _indices(gpu_indices)
        self._owned = monitor is None
        if monitor is None:
            self._recording = _start(wanted, telemetry_interval)
        else:
            self._recording = Recording(monitor)
        recorded = {
            int(name.split(":")[1]): position
            for position, name in enumerate(self._recording.device_names)
            if name.startswith("gpu:")
        }
        if not recorded:
            raise ZeusGPUInitError("the monitor records no GPU: see zeus doctor")
        for gpu in wanted or []:
            if gpu not in recorded:
                raise ZeusGPUNotFoundError(f"there is no GPU {gpu} among {sorted(recorded)}")
        #: Position in the recording by index of the GPU.
        self.positions = {gpu: recorded[gpu] for gpu in wanted or recorded}
        self._interval = telemetry_interval
        self._never: dict[str, dict[int, str]] = {}

    def now(self, quantity: Quantity) -> dict[int, float]:
        """Not a number for a GPU that does not tell; those that never do are left out."""
        values: dict[int, float] = {}
        for gpu, position in self._those_with(quantity):
            try:
                values[gpu] = self._recording.present(position, quantity)
            except ZeusError:
                values[gpu] = math.nan
        return values

    def unsupported(self, quantity: Quantity) -> dict[int, str]:
        """The GPUs that will never tell, and why."""
        if quantity.name in self._never:
            return self._never[quantity.name]
        reasons = self._never[quantity.name] = {}
        for gpu, position in self.positions.items():
            try:
                self._recording.present(position, quantity)
            except NotImplementedError as failure:
                reasons[gpu] = str(failure)
            except ZeusError:
                continue
        return reasons

    def _those_with(self, quantity: Quantity) -> list[tuple[int, int]]:
        never = self.unsupported(quantity)
        return [both for both in self.positions.items() if both[0] not in never]

    def at(self, quantity: Quantity, time: float) -> dict[int, float] | None:
        """The reading that holds at a time, or the one nearest to it."""
        values: dict[int, float] = {}
        recorded = False
        after = math.nextafter(time, math.inf)
        for gpu, position in self._those_with(quantity):
            spans = self._recording.history(position, quantity, time, after)
            spans = spans or self._recording.history(position, quantity)
            if not spans:
                values[gpu] = math.nan
                continue
            recorded = recorded or time >= spans[0][0]
            nearest = min(spans, key=lambda span: max(span[0] - time, time - span[1], 0.0))
            values[gpu] = nearest[2]
        return values if recorded else None

    def since(self, quantity: Quantity) -> float | None:
        """When the recording began; None if there is none."""
        begins = [
            begin
            for position in self.positions.values()
            if (begin := self._recording.since(position, quantity)) is not None
        ]
        return min(begins) if begins else None

    def energy(
        self, quantity: Quantity, begin: float, end: float
    ) -> dict[int, tuple[float, float]]:
        """Joules and their standard deviation."""
        unknown = (math.nan, math.nan)
        energies: dict[int, tuple[float, float]] = {}
        for gpu, position in self._those_with(quantity):
            if quantity != Quantity.POWER:
                energies[gpu] = self._integral(position, quantity, begin, end)
                continue
            try:
                energies[gpu] = self._recording.energy(position, begin, end)
            except ZeusError:
                energies[gpu] = unknown
        return energies

    def _integral(
        self, position: int, quantity: Quantity, begin: float, end: float
    ) -> tuple[float, float]:
        spans = self._recording.history(position, quantity, begin, end)
        if not spans:
            return math.nan, math.nan
        # The last reading holds as long as the next one may take.
        since, until, watts = spans[-1]
        spans[-1] = (since, until + self._interval / self._recording.time_scale, watts)
        joules = sum(
            watts * max(0.0, min(end, until) - max(begin, since)) for since, until, watts in spans
        )
        return joules * self._recording.time_scale, math.nan

    def timeline(
        self,
        quantity: Quantity,
        gpu_index: int | None,
        start_time: float | None,
        end_time: float | None,
        most: int | None,
    ) -> dict[int, list[tuple[float, float]]]:
        """Times and values by GPU, oldest first; of `most` samples the newest."""
        begin = None if start_time is None else check_time(start_time, "start_time")
        end = None if end_time is None else check_time(end_time, "end_time")
        gpus = list(self.positions)
        if gpu_index is not None:
            gpus = [_checks.index("gpu_index", gpu_index)]
            if gpus[0] not in self.positions:
                raise ZeusGPUNotFoundError(f"GPU {gpus[0]} is not recorded: {list(self.positions)}")
        lines: dict[int, list[tuple[float, float]]] = {}
        for gpu in gpus:
            spans = self._recording.history(self.positions[gpu], quantity, begin, end)
            # The first reading of averages stands for no time yet.
            line = [(since, value) for since, until, value in spans if until > since]
            line = line or [(since, value) for since, _, value in spans]
            lines[gpu] = line if most is None else line[-most:]
        return lines

    def stop(self) -> None:
        if self._owned:
            self._recording.stop()


def _start(gpus: list[int] | None, telemetry_interval: float) -> Recording:
    try:
        return Recording.start(gpus, telemetry_interval)
    except NotFoundError as failure:
        kind = ZeusGPUInitError if gpus is None else ZeusGPUNotFoundError
        raise kind(failure.message) from None


def _indices(given: Sequence[int] | None) -> list[int] | None:
    if given is None:
        return None
    indices = _checks.indices("gpu_indices", given)
    if not indices:
        raise InvalidArgumentError("gpu_indices is empty: leave it out for all GPUs")
    return indices


def check_period(value: float | None) -> float | None:
    """Seconds between readings."""
    if value is None:
        return None
    period = _checks.number("update_period", value)
    if not 0.001 <= period <= 3600:
        raise InvalidArgumentError(f"update_period is 0.001 to 3600 s, not {period:g}")
    return period


def check_count(value: SupportsIndex | None, what: str) -> int | None:
    """A number of things, at least one."""
    return None if value is None else _checks.whole(what, value, 1)


def check_time(value: SupportsFloat, what: str) -> float:
    """Seconds since 1970."""
    return _checks.positive(what, value)
