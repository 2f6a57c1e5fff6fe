"""The recording of some GPUs, shared by the monitors of power and temperature."""

from __future__ import annotations

import bisect
import math
import time as _time
from typing import TYPE_CHECKING, Sequence, SupportsFloat, SupportsIndex

from zeus import _checks
from zeus._core.monitor import Monitor
from zeus._core.recording import Quantity, Recording
from zeus.device.gpu.exception import ZeusGPUInitError, ZeusGPUNotFoundError
from zeus.errors import InvalidArgumentError, NotFoundError, ZeusError

if TYPE_CHECKING:
    from zeus.monitor.energy import ZeusMonitor

_Span = tuple[float, float, float]  # Begin, end, and the mean.
_UNKNOWN = (math.nan, math.nan)

# Seconds between two readings of another monitor's recording.
_SHARED_INTERVAL = 1.0
# Seconds until even the slowest sensor has shown a change.
_SENSOR_LAG = 0.5
# A recorder that waits for a processor is late by less than this many seconds of wall time.
_LATE = 1.0


class RecordedGpus:
    """Some GPUs of a recording of its own or of another monitor."""

    def __init__(
        self,
        gpu_indices: Sequence[int] | None,
        telemetry_interval: float,
        monitor: ZeusMonitor | None,
    ) -> None:
        wanted = _indices(gpu_indices)
        if monitor is not None and not isinstance(monitor, Monitor):
            raise TypeError(f"monitor is a ZeusMonitor, not {monitor!r}")
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
        self._interval = telemetry_interval if self._owned else _SHARED_INTERVAL
        self._never: dict[str, dict[int, str]] = {}

    def now(self, quantity: Quantity) -> dict[int, float]:
        """Returns present values; NaN for a GPU without one, without GPUs that never have one."""
        values: dict[int, float] = {}
        for gpu, position in self._those_with(quantity):
            try:
                values[gpu] = self._recording.present(position, quantity)
            except ZeusError:
                values[gpu] = math.nan
        return values

    def unsupported(self, quantity: Quantity) -> dict[int, str]:
        """Returns the GPUs without such a sensor, and the reasons."""
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
        """Returns the reading that holds at a time, or the nearest one.

        NaN for a GPU that could not be read then; None if none was ever read.
        """
        values: dict[int, float] = {}
        recorded = False
        for gpu, position in self._those_with(quantity):
            spans = self._recording.history(position, quantity)
            recorded = recorded or bool(spans)
            values[gpu] = self._value_at(position, quantity, spans, time)
        return values if recorded else None

    def _value_at(
        self, position: int, quantity: Quantity, spans: list[_Span], time: float
    ) -> float:
        if not spans:
            return math.nan
        after = bisect.bisect_right([since for since, _, _ in spans], time)
        if after == 0:
            since, _, value = spans[0]
            return value if since - time <= self._period(quantity) else math.nan
        _, until, value = spans[after - 1]
        if time <= until:
            return value
        if after < len(spans):
            nearest = value if time - until < spans[after][0] - time else spans[after][2]
            short = spans[after][0] - until <= self._longest_gap(quantity)
            return nearest if short else math.nan
        holds = time - until <= 3 * self._period(quantity) + _LATE
        return value if holds and self._answers(position, quantity) else math.nan

    def _answers(self, position: int, quantity: Quantity) -> bool:
        """Returns whether the last reading succeeded."""
        try:
            self._recording.present(position, quantity)
        except ZeusError:
            return False
        return True

    def _period(self, quantity: Quantity) -> float:
        """Returns the seconds of wall time that one reading may stand for."""
        node_seconds = _SENSOR_LAG if quantity == Quantity.POWER else self._interval
        return node_seconds / self._recording.time_scale

    def _longest_gap(self, quantity: Quantity) -> float:
        """One reading may fail; a gap in recorded power already stands for many."""
        return 0.001 if quantity == Quantity.POWER else 1.5 * self._period(quantity) + 0.1

    def since(self, quantity: Quantity) -> float | None:
        """Returns when the recording began; None if there is none."""
        begins = [
            begin
            for position in self.positions.values()
            if (begin := self._recording.since(position, quantity)) is not None
        ]
        return min(begins) if begins else None

    def until(self, quantity: Quantity) -> float:
        """Returns when the recording was stopped; infinity while it continues."""
        ends = [
            spans[-1][1] + self._period(quantity)
            for _, position in self._those_with(quantity)
            if (spans := self._recording.history(position, quantity))
            and self._answers(position, quantity)
        ]
        late = 2 * self._period(quantity) + _LATE
        return max(ends) if ends and _time.time() > max(ends) + late else math.inf

    def energy(
        self, quantity: Quantity, begin: float, end: float
    ) -> dict[int, tuple[float, float]]:
        """Returns joules and their standard deviation; NaN if there is a gap."""
        now = _time.time()
        if begin > now:
            return {gpu: _UNKNOWN for gpu, _ in self._those_with(quantity)}
        return {
            gpu: self._energy(position, quantity, begin, min(end, now))
            for gpu, position in self._those_with(quantity)
        }

    def _energy(
        self, position: int, quantity: Quantity, begin: float, end: float
    ) -> tuple[float, float]:
        spans = self._without_gaps(position, quantity, begin, end)
        if not spans:
            return _UNKNOWN
        if quantity == Quantity.POWER:
            try:
                both = self._recording.energy(position, begin, end)
            except ZeusError:
                return _UNKNOWN
            if not math.isnan(both[1]):
                return both
        joules = sum(
            watts * max(0.0, min(end, until) - max(begin, since)) for since, until, watts in spans
        )
        return joules * self._recording.time_scale, math.nan

    def _without_gaps(
        self, position: int, quantity: Quantity, begin: float, end: float
    ) -> list[_Span]:
        """Returns spans from `begin` to `end`, each up to the next; none if the GPU was not read.

        The time before the recording is no gap, nor is that after it was stopped.
        """
        spans = self._recording.history(position, quantity)
        started = self.since(quantity)
        if not spans or started is None or end < spans[0][0]:
            return []
        period, longest = self._period(quantity), self._longest_gap(quantity)
        if spans[0][0] - max(begin, started) > period:
            return []
        held: list[_Span] = []
        for (since, until, value), (following, _, _) in zip(spans, spans[1:]):
            if following > begin and until < end and following - until > longest:
                return []
            held.append((since, following, value))
        since, until, value = spans[-1]
        if self._answers(position, quantity):
            if begin > until + 3 * period + _LATE:
                return []
            until += period
        elif end - until > period:
            return []
        else:
            until = max(until, end)
        return [*held, (since, until, value)]

    def timeline(
        self,
        quantity: Quantity,
        gpu_index: int | None,
        start_time: float | None,
        end_time: float | None,
        most: int | None,
    ) -> dict[int, list[tuple[float, float]]]:
        """Returns times and values by GPU, oldest first; at most the newest `most` samples."""
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
            # The first reading of an average does not cover any time yet.
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
    """Returns seconds between readings."""
    if value is None:
        return None
    period = _checks.number("update_period", value)
    if not 0.001 <= period <= 3600:
        raise InvalidArgumentError(f"update_period is 0.001 to 3600 s, not {period:g}")
    return period


def check_count(value: SupportsIndex | None, what: str) -> int | None:
    """Returns a count of at least one."""
    return None if value is None else _checks.whole(what, value, 1)


def check_time(value: SupportsFloat, what: str) -> float:
    """Returns seconds since 1970."""
    return _checks.positive(what, value)
