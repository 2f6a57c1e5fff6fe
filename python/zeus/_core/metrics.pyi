"""Prometheus."""

from __future__ import annotations

from zeus._core.monitor import Measurement, Monitor

def gpu_temperatures(monitor: Monitor) -> list[float]:
    """Degrees Celsius of the GPUs that tell, from the recording."""

class Kind:
    """The type of a metric in Prometheus."""

    COUNTER: Kind
    GAUGE: Kind

class Publisher:
    """The metrics of one job, and the native thread that keeps them fresh and pushes them.

    A gateway that is down is said once, in the log, and tried again. Without a URL nothing is
    pushed: the metrics wait to be served.
    """

    def __init__(self, url: str, job: str, instance: str) -> None: ...
    def begin(self, kind: Kind, monitor: Monitor, key: str, window: str, period: float) -> None:
        """A window that is open from now on as `key` of the monitor."""
    def end(self, kind: Kind, key: str, window: str, measurement: Measurement | None) -> None:
        """It was ended."""
    def observe(
        self,
        window: str,
        measurement: Measurement,
        gpu_buckets: list[float],
        cpu_buckets: list[float],
        dram_buckets: list[float],
    ) -> None:
        """Counts a finished window in histograms."""
    def flush(self, timeout: float) -> bool:
        """Whether the gateway has, within so many seconds, everything that is known now."""
    def text(self) -> str:
        """The metrics as Prometheus reads them."""
    def close(self) -> None:
        """Pushes what is new, and ends the thread."""
    @property
    def closed(self) -> bool: ...

class Server:
    """Answers Prometheus until it is closed."""

    def __init__(self, address: str, monitor: Monitor | None) -> None: ...
    def add(self, publisher: Publisher) -> None: ...
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
    @property
    def url(self) -> str: ...
