"""The power of many machines, from their daemons.

    client = PowerStreamingClient([ZeusdConfig.tcp("node1", 4938), ZeusdConfig.tcp("node2", 4938)])
    for readings in client:
        print({node: reading.gpu_power_w for node, reading in readings.items()})
"""

from __future__ import annotations

import copy
import http.client
import json
import os
import socket
import statistics
import threading
import time
import warnings
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Iterator, Sequence

from zeus import _checks
from zeus.device.exception import ZeusdError
from zeus.errors import InvalidArgumentError
from zeus.utils._zeusd import ZeusdAuthError, ZeusdConfig, check_status
from zeus.utils.zeusd import ZeusdClient, path_with, require_capabilities

__all__ = ["CpuPowerReading", "PowerReadings", "PowerStreamingClient"]

_ROUND_TRIPS = 5


@dataclass
class CpuPowerReading:
    """Watts of a CPU package, and of its memory if that can be measured."""

    cpu_w: float
    dram_w: float | None = None


@dataclass
class PowerReadings:
    """The latest readings of one machine, in watts by id, with the time of this machine."""

    timestamp_s: float = 0.0
    gpu_power_w: dict[int, float] = field(default_factory=dict)
    cpu_power_w: dict[int, CpuPowerReading] = field(default_factory=dict)


class _Stream(threading.Thread):
    """Reads one stream of one daemon until it is stopped, and reconnects when it breaks."""

    def __init__(self, owner: PowerStreamingClient, client: ZeusdClient, kind: str, ids: list[int]):
        super().__init__(name=f"zeus-{kind}-stream", daemon=True)
        self._owner = owner
        self._client = client
        self._kind = kind
        self._path = path_with(f"/{kind}/stream_power", **{f"{kind}_ids": ids})
        self._connection: http.client.HTTPConnection | None = None
        self._offset = 0.0
        self._stopped = threading.Event()

    def run(self) -> None:
        endpoint = self._client.config.endpoint
        while not self._stopped.is_set():
            try:
                self._offset = clock_offset(self._client)
                self._read()
                trouble = "the stream ended"
            except ZeusdAuthError as error:
                self._owner._note(endpoint, error.message)
                return
            except (OSError, ZeusdError, ValueError, http.client.HTTPException) as error:
                trouble = str(error)
            if not self._stopped.is_set():
                self._owner._note(endpoint, trouble)
            self._stopped.wait(self._owner.reconnect_delay_s)

    def stop(self) -> None:
        self._stopped.set()
        sock = getattr(self._connection, "sock", None)
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)  # Wakes the reading thread.
            except OSError:
                pass

    def _read(self) -> None:
        source = self._client.config.make_client()
        connection = self._connection = source.open()
        try:
            connection.request("GET", self._path, headers=source.headers())
            # The response of a stream (Connection: close) owns the socket, so it is waited on here.
            sock = connection.sock
            answer = connection.getresponse()
            if answer.status != 200:
                check_status(answer.status, answer.read(), f"GET {self._path}", source.config)
            connection.sock = sock
            _enable_keep_alive(sock)
            while not self._stopped.is_set() and (line := answer.readline()):
                if line.startswith(b"data:"):
                    self._take(line[5:])
        finally:
            connection.close()

    def _take(self, data: bytes) -> None:
        try:
            self._owner._take(self._client, self._kind, json.loads(data), self._offset)
        except (AttributeError, KeyError, RecursionError, TypeError) as error:
            raise InvalidArgumentError(
                f"{self._path} sent a reading that makes no sense: {type(error).__name__}: {error}"
            ) from error


def _enable_keep_alive(sock: socket.socket) -> None:
    """A steady device may be silent for hours; keep-alive detects a machine that is gone."""
    sock.settimeout(None)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sock.family != getattr(socket, "AF_UNIX", None) and hasattr(socket, "TCP_KEEPIDLE"):
        for option, value in ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5),
                              (socket.TCP_KEEPCNT, 3)):  # fmt: skip
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def clock_offset(client: ZeusdClient) -> float:
    """Returns the seconds that our clock is ahead of the daemon's: a median of round trips."""
    offsets = []
    for _ in range(_ROUND_TRIPS):
        begin = time.time()
        there = client.get_time()
        offsets.append((begin + time.time()) / 2 - there)
    return statistics.median(offsets)


class PowerStreamingClient:
    """Keeps the latest power of the devices of several daemons, and yields updates.

    Broken connections are opened again; `troubles` lists them. A daemon that rejects the token is
    given up with a warning.

    Args:
        servers: The daemons. Their `gpu_indices` and `cpu_indices` select devices: None for all,
            [] for none; named ones must exist and be permitted.
        reconnect_delay_s: Seconds before a broken connection is opened again.

    Raises:
        ValueError: If a daemon is named twice.
        ZeusdError: If one does not answer or lacks a named device.
    """

    def __init__(self, servers: Sequence[ZeusdConfig], reconnect_delay_s: float = 1.0) -> None:
        endpoints = [server.endpoint for server in servers]
        twice = {endpoint for endpoint in endpoints if endpoints.count(endpoint) > 1}
        if twice:
            raise InvalidArgumentError(f"servers has {min(twice)} twice")
        self.reconnect_delay_s = _checks.not_negative("reconnect_delay_s", reconnect_delay_s)
        #: Present problems by endpoint.
        self.troubles: dict[str, str] = {}
        self._news = threading.Condition()
        self._version = 0
        self._stopped = False
        self._process = os.getpid()
        self._readings = {endpoint: PowerReadings() for endpoint in endpoints}
        self._streams = [stream for server in servers for stream in self._streams_of(server)]
        for stream in self._streams:
            stream.start()

    def _streams_of(self, server: ZeusdConfig) -> Iterator[_Stream]:
        client = ZeusdClient(server)
        for kind, wanted, present, allowed in (
            ("gpu", server.gpu_indices, client.gpu_ids, client.can_read_gpu),
            ("cpu", server.cpu_indices, client.cpu_ids, client.can_read_cpu),
        ):
            if wanted:
                needs: dict[str, Any] = {f"read_{kind}": True, f"{kind}_ids": wanted}
                require_capabilities(client, **needs)
            ids = list(present if wanted is None else wanted)
            if ids and allowed:
                yield _Stream(self, client, kind, ids)

    def get_power(self) -> dict[str, PowerReadings]:
        """Returns a copy of the latest readings by endpoint."""
        with self._news:
            return copy.deepcopy(self._readings)

    def stop(self) -> None:
        """Ends all connections and iterations. Does nothing in a forked child."""
        if os.getpid() != self._process:
            return  # The threads, which may hold the lock, belong to the parent.
        with self._news:
            self._stopped = True
            self._news.notify_all()
        for stream in self._streams:
            stream.stop()
        for stream in self._streams:
            stream.join(timeout=10)

    def __iter__(self) -> Iterator[dict[str, PowerReadings]]:
        """Yields the readings whenever there are new ones; it skips those that come too fast."""
        seen = 0
        while True:
            version = self._wait(seen, None)
            if version is None:
                return
            if version != seen:
                seen = version
                yield self.get_power()

    async def __aiter__(self) -> AsyncIterator[dict[str, PowerReadings]]:
        """Does the same without blocking other coroutines."""
        import asyncio

        loop = asyncio.get_running_loop()
        seen = 0
        while True:
            version = await loop.run_in_executor(None, self._wait, seen, 0.2)
            if version is None:
                return
            if version != seen:
                seen = version
                yield self.get_power()

    def __enter__(self) -> PowerStreamingClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _wait(self, seen: int, timeout: float | None) -> int | None:
        """Returns the version of the readings after `seen`, or after a while; None once stopped."""
        with self._news:
            self._news.wait_for(lambda: self._version != seen or self._stopped, timeout)
            return None if self._stopped else self._version

    def _take(self, client: ZeusdClient, kind: str, event: dict[str, Any], offset: float) -> None:
        endpoint = client.config.endpoint
        with self._news:
            readings = self._readings[endpoint]
            readings.timestamp_s = float(event["timestamp_ms"]) / 1e3 + offset
            if kind == "gpu":
                readings.gpu_power_w[int(event["gpu_id"])] = float(event["power_mw"]) / 1e3
            else:
                dram = event.get("dram_mw")
                readings.cpu_power_w[int(event["cpu_id"])] = CpuPowerReading(
                    float(event["cpu_mw"]) / 1e3, None if dram is None else float(dram) / 1e3
                )
            self.troubles.pop(endpoint, None)
            self._version += 1
            self._news.notify_all()

    def _note(self, endpoint: str, trouble: str) -> None:
        with self._news:
            known = endpoint in self.troubles
            self.troubles[endpoint] = trouble
        if not known:
            warnings.warn(f"power of {endpoint}: {trouble}", RuntimeWarning, stacklevel=2)
