"""Energy and power of windows for Prometheus: pushed to a gateway, or served to be scraped.

    histogram = EnergyHistogram(cpu_indices=[], gpu_indices=[0], job="training",
                                pushgateway_url="http://localhost:9091")
    histogram.begin_window("epoch")
    ...
    histogram.end_window("epoch")

A native thread does the pushing. Training never waits for it, and a gateway that is down is
warned of once and tried again. Jobs on several nodes or ranks do not replace each other's metrics:
each has an `instance` of its own. Without a gateway, `serve()` lets Prometheus come and ask.
"""

from __future__ import annotations

import math
import os
import weakref
from typing import Any, Sequence

from zeus import _checks
from zeus._core.metrics import Kind, Publisher, Server
from zeus._core.monitor import Measurement, Monitor
from zeus.errors import InvalidArgumentError
from zeus.monitor.energy import ZeusMonitor

__all__ = [
    "EnergyCumulativeCounter",
    "EnergyHistogram",
    "Metric",
    "MetricServer",
    "PowerGauge",
    "serve",
]

_publishers: dict[tuple[int, str, str, str], Publisher] = {}
_servers: weakref.WeakSet[MetricServer] = weakref.WeakSet()


def default_instance() -> str:
    """Returns the host and, with several processes, the rank: `node1`, `node1-rank3`."""
    import socket

    from zeus.utils.framework import get_rank, is_distributed

    host = socket.gethostname() or "localhost"
    return f"{host}-rank{get_rank()}" if is_distributed() else host


def _publisher(url: str | None, job: str, instance: str | None) -> Publisher:
    """That of the job: metrics of one job and instance are pushed together, or they would replace
    each other."""
    _checks.text("pushgateway_url", "" if url is None else url)
    _checks.text("instance", "" if instance is None else instance)
    if not _checks.text("job", job):
        raise InvalidArgumentError("job is empty: the metrics need the name of a job")
    address = url if not url or "://" in url else f"http://{url}"
    key = (os.getpid(), address or "", job, instance or default_instance())
    publisher = _publishers.get(key)
    if publisher is None or publisher.closed:
        publisher = _publishers[key] = Publisher(*key[1:])
        for server in _servers:
            if not server.closed:
                server._add(publisher)
    return publisher


class Metric:
    """The base of all metrics: a monitor, a job, and windows."""

    _PREFIX = ""

    def __init__(
        self,
        monitor: ZeusMonitor,
        owns_monitor: bool,
        pushgateway_url: str | None,
        job: str,
        instance: str | None,
    ) -> None:
        self.monitor = monitor
        self.job = job
        self._owns_monitor = owns_monitor
        self._open: dict[str, str] = {}
        try:
            self._publisher = _publisher(pushgateway_url, job, instance)
        except BaseException:
            self.close()
            raise

    def begin_window(self, name: str, sync_execution: bool = True) -> None:
        """Begins a window. ValueError if one of this name is open."""
        key = f"{self._PREFIX}{_window(name)}"
        self.monitor.begin_window(key, sync_execution)
        self._open[name] = key

    def end_window(self, name: str, sync_execution: bool = True) -> Measurement:
        """Ends a window and returns its measurement; its metrics are pushed soon after."""
        measurement = self.monitor.end_window(f"{self._PREFIX}{_window(name)}", sync_execution)
        self._open.pop(name, None)
        return measurement

    def flush(self, timeout: float = 5.0) -> bool:
        """Waits until the gateway has everything; returns False after the timeout."""
        forever = timeout == math.inf
        return self._publisher.flush(timeout if forever else _checks.number("timeout", timeout))

    def text(self) -> str:
        """Returns all metrics of this job and instance in the format of Prometheus."""
        return self._publisher.text()

    def close(self) -> None:
        """Ends open windows, and the monitor if this metric made it.

        Does nothing in a forked child, because everything belongs to its parent.
        """
        if getattr(self.monitor, "in_forked_child", False):
            return
        for name in list(getattr(self, "_open", ())):
            if not self.monitor.closed:
                self.end_window(name, sync_execution=False)
        if self._owns_monitor:
            self.monitor.close()

    def __enter__(self) -> Metric:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class EnergyHistogram(Metric):
    """A histogram of the energy of windows, by window and device.

    The metrics are ``energy_monitor_{gpu,cpu,dram}_energy_joules`` with the labels `window` and
    `index`.

    Args:
        cpu_indices: CPUs to measure; None for all.
        gpu_indices: GPUs to measure; None for all.
        pushgateway_url: ``http://host:9091``; None: no pushing (see `serve`).
        job: The name of the job.
        gpu_bucket_range: Upper ends of the buckets, in joules; likewise for CPUs and memory.
        monitor: Used instead of a new one.
        instance: Tells processes of a job apart; None for the host, with the rank if there are
            several.
    """

    _PREFIX = "__EnergyHistogram_"

    def __init__(
        self,
        cpu_indices: Sequence[int] | None,
        gpu_indices: Sequence[int] | None,
        pushgateway_url: str | None,
        job: str,
        gpu_bucket_range: Sequence[float] = (50.0, 100.0, 200.0, 500.0, 1000.0),
        cpu_bucket_range: Sequence[float] = (10.0, 50.0, 100.0, 500.0, 1000.0),
        dram_bucket_range: Sequence[float] = (5.0, 10.0, 20.0, 50.0, 150.0),
        *,
        monitor: ZeusMonitor | None = None,
        instance: str | None = None,
    ) -> None:
        self.gpu_bucket_range = _buckets("gpu_bucket_range", gpu_bucket_range)
        self.cpu_bucket_range = _buckets("cpu_bucket_range", cpu_bucket_range)
        self.dram_bucket_range = _buckets("dram_bucket_range", dram_bucket_range)
        # Any object that measures windows is accepted, not only a ZeusMonitor.
        if monitor is not None and not hasattr(monitor, "begin_window"):
            raise TypeError(f"monitor is a ZeusMonitor, not {monitor!r}")
        super().__init__(
            ZeusMonitor(gpu_indices, cpu_indices) if monitor is None else monitor, monitor is None,
            pushgateway_url, job, instance,
        )  # fmt: skip

    def end_window(self, name: str, sync_execution: bool = True) -> Measurement:
        """Ends a window and counts it."""
        measurement = super().end_window(name, sync_execution)
        self._publisher.observe(
            name, measurement, self.gpu_bucket_range, self.cpu_bucket_range, self.dram_bucket_range
        )
        return measurement


class _Updated(Metric):
    """A metric that changes while a window is open."""

    _KIND = Kind.COUNTER

    def __init__(
        self,
        monitor: ZeusMonitor,
        owns_monitor: bool,
        update_period: float,
        pushgateway_url: str | None,
        job: str,
        instance: str | None,
    ) -> None:
        self.update_period = update_period
        super().__init__(monitor, owns_monitor, pushgateway_url, job, instance)

    def begin_window(self, name: str, sync_execution: bool = False) -> None:
        """Begins a window, whose metrics are pushed in every period from now on."""
        super().begin_window(name, sync_execution)
        key = self._open[name]
        self._publisher.begin(self._KIND, self.monitor, key, name, self.update_period)

    def end_window(self, name: str, sync_execution: bool = False) -> Measurement:
        """Ends a window. Its metrics keep their last value."""
        measurement = super().end_window(name, sync_execution)
        self._publisher.end(self._KIND, f"{self._PREFIX}{name}", name, measurement)
        return measurement


class EnergyCumulativeCounter(_Updated):
    """The cumulative energy of all windows of a name.

    The metrics are ``energy_monitor_{gpu,cpu,dram}_energy_joules_total`` with the labels `window`
    and `index`. They grow while a window is open, and nothing is lost between two pushes or two
    windows: a window is measured as one, from its begin to its end.

    Args:
        cpu_indices: CPUs to measure; None for all.
        gpu_indices: GPUs to measure; None for all.
        update_period: Seconds between two pushes while a window is open.
        pushgateway_url: ``http://host:9091``; None: no pushing (see `serve`).
        job: The name of the job.
        monitor, instance: As for `EnergyHistogram`.
    """

    _PREFIX = "__EnergyCumulativeCounter_"
    _KIND = Kind.COUNTER

    def __init__(
        self,
        cpu_indices: Sequence[int] | None,
        gpu_indices: Sequence[int] | None,
        update_period: float,
        pushgateway_url: str | None,
        job: str,
        *,
        monitor: ZeusMonitor | None = None,
        instance: str | None = None,
    ) -> None:
        period = _period(update_period)
        super().__init__(
            _native(monitor) or ZeusMonitor(gpu_indices, cpu_indices), monitor is None, period,
            pushgateway_url, job, instance,
        )  # fmt: skip


class PowerGauge(_Updated):
    """The power of GPUs while a window is open.

    The metric is ``power_monitor_gpu_power_watts`` with the labels `window` and `index`.

    Args:
        gpu_indices: GPUs to measure; None for all.
        update_period: Seconds between two pushes while a window is open.
        pushgateway_url: ``http://host:9091``; None: no pushing (see `serve`).
        job: The name of the job.
        monitor, instance: As for `EnergyHistogram`.
    """

    _PREFIX = "__PowerGauge_"
    _KIND = Kind.GAUGE

    def __init__(
        self,
        gpu_indices: Sequence[int] | None,
        update_period: float,
        pushgateway_url: str | None,
        job: str,
        *,
        monitor: ZeusMonitor | None = None,
        instance: str | None = None,
    ) -> None:
        period = _period(update_period)
        super().__init__(
            _native(monitor) or ZeusMonitor(gpu_indices, []), monitor is None, period,
            pushgateway_url, job, instance,
        )  # fmt: skip


class MetricServer:
    """Serves metrics to Prometheus until it is closed: see `serve`."""

    def __init__(self, address: str, monitor: ZeusMonitor | None) -> None:
        self._server = Server(address, monitor)
        self.url = f"{self._server.url}/metrics"
        _servers.add(self)

    def _add(self, publisher: Publisher) -> None:
        self._server.add(publisher)

    @property
    def closed(self) -> bool:
        """Whether the server has ended."""
        return self._server.closed

    def close(self) -> None:
        """Ends the server."""
        self._server.close()

    def __enter__(self) -> MetricServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(
    port: int = 0, host: str = "127.0.0.1", *, monitor: ZeusMonitor | None = None
) -> MetricServer:
    """Serves all metrics of this process at ``/metrics``, including those made later.

        server = serve(port=9400)
        print(server.url)  # http://127.0.0.1:9400/metrics

    Args:
        port: 0: any free one.
        host: An address of this machine; the default is reachable only from this machine.
        monitor: Its devices are served, too, as by `zeus monitor --serve`.

    Raises:
        UnavailableError: If the address is taken, or none of this machine.
    """
    port = _checks.whole("port", port, 0, 65535)
    address = f"[{host}]:{port}" if ":" in _checks.text("host", host) else f"{host}:{port}"
    server = MetricServer(address, _native(monitor))
    for key, publisher in _publishers.items():
        if key[0] == os.getpid() and not publisher.closed:
            server._add(publisher)
    return server


def _window(name: Any) -> str:
    return _checks.text("the name of a window", name)


def _native(monitor: Any) -> ZeusMonitor | None:
    """Returns a monitor that native threads can use."""
    if monitor is not None and not isinstance(monitor, Monitor):
        raise TypeError(f"monitor is a ZeusMonitor, not {monitor!r}")
    return monitor  # type: ignore[return-value]


def _is_infinite(bound: Any) -> bool:
    return isinstance(bound, float) and bound == math.inf


def _period(value: float) -> float:
    return _checks.positive("update_period", value, 1e9)


def _buckets(name: str, bounds: Sequence[float]) -> list[float]:
    if isinstance(bounds, (str, bytes)) or not hasattr(type(bounds), "__iter__"):
        raise TypeError(f"{name} is a list of numbers, not {bounds!r}")
    bounds = list(bounds)
    numbers = [
        bound if _is_infinite(bound) else _checks.number(f"each of {name}", bound)
        for bound in bounds
    ]
    if not numbers or numbers[0] < 0:
        raise InvalidArgumentError(
            f"{name} is {list(bounds)}: at least one number of joules, 0 or more"
        )
    if numbers[-1] == math.inf:
        numbers.pop()  # This bucket exists anyway.
    if any(low >= high for low, high in zip(numbers, numbers[1:])):
        raise InvalidArgumentError(f"{name} is {list(bounds)}: the ends of buckets must rise")
    return numbers
