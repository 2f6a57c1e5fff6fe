"""Connections to zeusd and its answers: the parts of zeus.utils.zeusd."""

from __future__ import annotations

import http.client
import json
import os
import socket
from dataclasses import dataclass, field
from typing import Sequence

from zeus.device.exception import ZeusdError
from zeus.errors import InvalidArgumentError

_DEFAULT_TIMEOUT = 5.0


class ZeusdConnectionError(ZeusdError, ConnectionError):
    """The daemon does not answer."""


class ZeusdAuthError(ZeusdError, PermissionError):
    """The token is missing, invalid, or lacks a scope."""


class ZeusdCapabilityError(ZeusdError, RuntimeError):
    """The daemon lacks the device or the API."""


class ZeusdResponseError(ZeusdError, RuntimeError):
    """The daemon rejected the request, or failed."""

    def __init__(self, message: str, status: int, errors: dict[int, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        #: Messages by device.
        self.errors = errors or {}


@dataclass(frozen=True)
class GpuInfo:
    """A GPU of the daemon's machine."""

    id: int
    name: str
    pci_address: str
    cumulative_energy_available: bool


@dataclass(frozen=True)
class CpuInfo:
    """A CPU package of the daemon's machine."""

    id: int
    dram_available: bool


class _Moment:
    timestamp_ms: int

    @property
    def timestamp_s(self) -> float:
        """Seconds since 1970."""
        return self.timestamp_ms / 1e3


@dataclass(frozen=True)
class GpuPowerSnapshot(_Moment):
    """Milliwatts by id, at one moment: milliseconds since 1970."""

    timestamp_ms: int
    power_mw: dict[int, int]


@dataclass(frozen=True)
class CpuEnergyResult:
    """Microjoules; None if they were not requested or cannot be measured."""

    cpu_energy_uj: int | None
    dram_energy_uj: int | None


@dataclass(frozen=True)
class CpuDramPower:
    """Milliwatts; None if memory cannot be measured."""

    cpu_mw: int
    dram_mw: int | None


@dataclass(frozen=True)
class CpuPowerSnapshot(_Moment):
    """Milliwatts by id, at one moment: milliseconds since 1970."""

    timestamp_ms: int
    power_mw: dict[int, CpuDramPower]


@dataclass(frozen=True)
class ZeusdConfig:
    """The address of a zeusd, and the devices of interest. Made by tcp(), uds() or from_env().

    The indices are for clients that stream power: None for all, [] for none.
    """

    host_port: str | None = None
    socket_path: str | None = None
    token: str | None = field(default=None, repr=False)
    gpu_indices: Sequence[int] | None = None
    cpu_indices: Sequence[int] | None = None
    timeout: float = _DEFAULT_TIMEOUT  #: Seconds for connecting, and for an answer.

    @classmethod
    def tcp(
        cls,
        host: str,
        port: int,
        *,
        token: str | None = None,
        gpu_indices: Sequence[int] | None = None,
        cpu_indices: Sequence[int] | None = None,
        timeout: float = _DEFAULT_TIMEOUT,
    ) -> ZeusdConfig:
        """A daemon at a host and port."""
        if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
            raise InvalidArgumentError(f"port is {port!r}: a whole number from 1 to 65535")
        if not host:
            raise InvalidArgumentError("host is empty: the name or address of a machine")
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return cls(address, None, token, gpu_indices, cpu_indices, _checked(timeout))

    @classmethod
    def uds(
        cls,
        socket_path: str | os.PathLike[str],
        *,
        token: str | None = None,
        gpu_indices: Sequence[int] | None = None,
        cpu_indices: Sequence[int] | None = None,
        timeout: float = _DEFAULT_TIMEOUT,
    ) -> ZeusdConfig:
        """A daemon of this machine, at a Unix socket."""
        path = os.fspath(socket_path)
        if not path:
            raise InvalidArgumentError("socket_path is empty: for example /run/zeusd/zeusd.sock")
        return cls(None, path, token, gpu_indices, cpu_indices, _checked(timeout))

    @classmethod
    def from_env(cls) -> ZeusdConfig | None:
        """Reads ZEUSD_SOCK_PATH or ZEUSD_HOST_PORT, and ZEUSD_TOKEN; None if neither is set."""
        token = os.environ.get("ZEUSD_TOKEN") or None
        if path := os.environ.get("ZEUSD_SOCK_PATH"):
            return cls.uds(path, token=token)
        if address := os.environ.get("ZEUSD_HOST_PORT"):
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit():
                raise InvalidArgumentError(f"ZEUSD_HOST_PORT is {address!r}: use host:port")
            return cls.tcp(host.strip("[]"), int(port), token=token)
        return None

    @property
    def host(self) -> str | None:
        """The host of `host_port`."""
        return None if self.host_port is None else self.host_port.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int | None:
        """The port of `host_port`."""
        return None if self.host_port is None else int(self.host_port.rpartition(":")[2])

    @property
    def endpoint(self) -> str:
        """The socket's path, or ``host:port``."""
        return self.socket_path or str(self.host_port)

    def url(self, path: str) -> str:
        """Address for messages: ``http://host:port/path``."""
        return f"http://{'localhost' if self.socket_path else self.endpoint}{path}"

    def make_client(self) -> ZeusdConnection:
        """Returns a connection that sends requests to the daemon."""
        return ZeusdConnection(self)


class ZeusdConnection:
    """Sends each request over a new connection, so there is nothing to keep alive or to lock."""

    def __init__(self, config: ZeusdConfig) -> None:
        self.config = config

    def open(self) -> http.client.HTTPConnection:
        """Opens a connection, for reading a stream."""
        if self.config.socket_path:
            return _UnixConnection(self.config.socket_path, self.config.timeout)
        return http.client.HTTPConnection(
            str(self.config.host), self.config.port, timeout=self.config.timeout
        )

    def headers(self) -> dict[str, str]:
        """The headers with the token."""
        token = self.config.token
        return {"Authorization": f"Bearer {token}"} if token else {}

    def request(self, method: str, path: str) -> tuple[int, bytes]:
        """Returns status and body. ZeusdConnectionError if none arrives in time."""
        connection = self.open()
        try:
            connection.request(method, path, headers=self.headers())
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise unreachable(self.config, error) from error
        finally:
            connection.close()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def unreachable(config: ZeusdConfig, error: Exception) -> ZeusdConnectionError:
    """Returns the exception for a daemon that cannot be reached."""
    return ZeusdConnectionError(f"zeusd at {config.endpoint} does not answer: {error}")


def check_status(status: int, body: bytes, what: str, config: ZeusdConfig) -> None:
    """Raises an exception for a status other than success."""
    if status < 300:
        return
    text, errors = _explanation(body)
    message = f"{what}: zeusd at {config.endpoint} answered {status}{': ' if text else ''}{text}"
    if status in (401, 403) and not errors:
        raise ZeusdAuthError(message)
    if status == 404:
        raise ZeusdCapabilityError(f"{message} (is the API enabled there?)")
    raise ZeusdResponseError(message, status, errors)


def _explanation(body: bytes) -> tuple[str, dict[int, str]]:
    """Returns the message of the daemon, and those by device if there are any."""
    text = body.decode("utf-8", "replace").strip()
    try:
        parsed = json.loads(text)
        errors = {int(device): str(error) for device, error in parsed["errors"].items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        return text[:500], {}
    return "; ".join(f"device {device}: {error}" for device, error in errors.items()), errors


def _checked(timeout: float) -> float:
    if not 0 < timeout < 1e6:
        raise InvalidArgumentError(f"timeout is {timeout}: seconds, above 0")
    return float(timeout)
