"""A client of zeusd, the daemon that reads and sets devices for unprivileged programs.

    client = ZeusdClient(ZeusdConfig.uds("/run/zeusd/zeusd.sock"))
    print(client.get_gpu_power().power_mw)  # {0: 61000, 1: 61000}

Over a Unix socket or TCP, with nothing but the standard library. Every call ends within the
configuration's time-out, with an answer or with a `ZeusdError`.
"""

from __future__ import annotations

import json
from typing import Any, Sequence
from urllib.parse import urlencode

from zeus.device.exception import ZeusdError
from zeus.utils._zeusd import (
    CpuDramPower,
    CpuEnergyResult,
    CpuInfo,
    CpuPowerSnapshot,
    GpuInfo,
    GpuPowerSnapshot,
    ZeusdAuthError,
    ZeusdCapabilityError,
    ZeusdConfig,
    ZeusdConnection,
    ZeusdConnectionError,
    ZeusdResponseError,
    check_status,
)

__all__ = [
    "CpuDramPower",
    "CpuEnergyResult",
    "CpuInfo",
    "CpuPowerSnapshot",
    "GpuInfo",
    "GpuPowerSnapshot",
    "ZeusdAuthError",
    "ZeusdCapabilityError",
    "ZeusdClient",
    "ZeusdConfig",
    "ZeusdConnection",
    "ZeusdConnectionError",
    "ZeusdError",
    "ZeusdResponseError",
    "require_capabilities",
]

_IDs = Sequence[int]


class ZeusdClient:
    """The client of one daemon, whose devices are listed once, when the client is made.

    A token that the daemon refuses is no error yet: `auth_error` says what is wrong, and calls
    that need a token fail. Thread-safe.

    Args:
        config: Where the daemon is; None for what the environment says: see ZeusdConfig.from_env.
    """

    def __init__(self, config: ZeusdConfig | None = None) -> None:
        found = config or ZeusdConfig.from_env()
        if found is None:
            raise ZeusdConnectionError(
                "no zeusd is known: give a config, or set ZEUSD_SOCK_PATH or ZEUSD_HOST_PORT"
            )
        self.config = found
        self._connection = found.make_client()
        self._discover(self._call("GET", "/discover"))

    def _discover(self, about: dict[str, Any]) -> None:
        try:
            self.gpus = [
                GpuInfo(
                    id=int(gpu["id"]),
                    name=str(gpu["name"]),
                    pci_address=str(gpu["pci_address"]),
                    cumulative_energy_available=bool(gpu["cumulative_energy_available"]),
                )
                for gpu in about["gpus"]
            ]
            self.cpus = [
                CpuInfo(int(cpu["id"]), bool(cpu["dram_available"])) for cpu in about["cpus"]
            ]
            self.enabled_api_groups = frozenset(map(str, about["enabled_api_groups"]))
            self.auth_required = bool(about["auth_required"])
        except (KeyError, TypeError, ValueError) as error:
            raise ZeusdCapabilityError(
                f"zeusd at {self.config.endpoint} does not say what it has ({error!r}): upgrade it"
            ) from error
        self.auth_error: str | None = None
        self.granted_scopes = self.enabled_api_groups
        if self.auth_required:
            self.granted_scopes = frozenset()
            try:
                scopes = self._call("GET", "/auth/whoami")["scopes"]
                self.granted_scopes = frozenset(map(str, scopes))
            except ZeusdError as error:
                self.auth_error = error.message
            except (KeyError, TypeError) as error:
                self.auth_error = f"zeusd at {self.config.endpoint} does not say whose token it is: {error}"

    @property
    def gpu_ids(self) -> list[int]:
        """Ids of all GPUs of the daemon."""
        return [gpu.id for gpu in self.gpus]

    @property
    def cpu_ids(self) -> list[int]:
        """Ids of all CPU packages of the daemon."""
        return [cpu.id for cpu in self.cpus]

    @property
    def dram_available(self) -> list[bool]:
        """Whether the memory of each CPU can be measured."""
        return [cpu.dram_available for cpu in self.cpus]

    def _can(self, group: str) -> bool:
        return group in self.enabled_api_groups and group in self.granted_scopes

    @property
    def can_read_gpu(self) -> bool:
        """Whether GPUs may be read."""
        return self._can("gpu-read")

    @property
    def can_control_gpu(self) -> bool:
        """Whether power limits and clocks may be set."""
        return self._can("gpu-control")

    @property
    def can_read_cpu(self) -> bool:
        """Whether CPUs may be read."""
        return self._can("cpu-read")

    @property
    def endpoint(self) -> str:
        """Where the daemon is: the socket's path, or ``host:port``."""
        return self.config.endpoint

    def url(self, path: str) -> str:
        """Address for messages: ``http://host:port/path``."""
        return self.config.url(path)

    def make_client(self) -> ZeusdConnection:
        """Returns a connection that sends requests to the daemon."""
        return self.config.make_client()

    def get_time(self) -> float:
        """Returns the daemon's time in seconds since 1970."""
        return float(self._call("GET", "/time")["timestamp_ms"]) / 1e3

    def get_gpu_energy(self, gpu_ids: _IDs | None = None) -> dict[int, int]:
        """Returns millijoules since an arbitrary moment."""
        return self._gpu_values("/gpu/get_cumulative_energy", gpu_ids, "energy_mj", int)

    def get_gpu_power(self, gpu_ids: _IDs | None = None) -> GpuPowerSnapshot:
        """Returns present milliwatts."""
        answer = self._call("GET", "/gpu/get_power", gpu_ids=gpu_ids)
        power = {int(index): int(value) for index, value in answer["power_mw"].items()}
        return GpuPowerSnapshot(int(answer["timestamp_ms"]), power)

    def get_power_limit(self, gpu_ids: _IDs | None = None) -> dict[int, int]:
        """Returns milliwatts."""
        return self._gpu_values("/gpu/get_power_limit", gpu_ids, "power_limit_mw", int)

    def get_power_limit_constraints(
        self, gpu_ids: _IDs | None = None
    ) -> dict[int, tuple[int, int]]:
        """Returns the lowest and the highest power limit in milliwatts."""
        answer = self._call("GET", "/gpu/get_power_limit_constraints", gpu_ids=gpu_ids)
        return {
            int(index): (int(value["min_power_limit_mw"]), int(value["max_power_limit_mw"]))
            for index, value in answer.items()
        }

    def get_persistence_mode(self, gpu_ids: _IDs | None = None) -> dict[int, bool]:
        """Returns whether the driver stays loaded without clients."""
        return self._gpu_values("/gpu/get_persistence_mode", gpu_ids, "enabled", bool)

    def set_power_limit(self, gpu_ids: _IDs, power_limit_mw: int, block: bool = True) -> None:
        """Sets the limit. Without `block` the daemon answers at once, and only logs failures."""
        self._control("set_power_limit", gpu_ids, block, power_limit_mw=power_limit_mw)

    def set_persistence_mode(self, gpu_ids: _IDs, enabled: bool, block: bool = True) -> None:
        """Switches persistence mode on or off."""
        self._control("set_persistence_mode", gpu_ids, block, enabled=enabled)

    def set_gpu_locked_clocks(
        self, gpu_ids: _IDs, min_clock_mhz: int, max_clock_mhz: int, block: bool = True
    ) -> None:
        """Keeps the clock of the GPU in that range."""
        self._control(
            "set_gpu_locked_clocks", gpu_ids, block,
            min_clock_mhz=min_clock_mhz, max_clock_mhz=max_clock_mhz,
        )  # fmt: skip

    def reset_gpu_locked_clocks(self, gpu_ids: _IDs, block: bool = True) -> None:
        """Unlocks the clock of the GPU."""
        self._control("reset_gpu_locked_clocks", gpu_ids, block)

    def set_mem_locked_clocks(
        self, gpu_ids: _IDs, min_clock_mhz: int, max_clock_mhz: int, block: bool = True
    ) -> None:
        """Keeps the clock of the memory in that range."""
        self._control(
            "set_mem_locked_clocks", gpu_ids, block,
            min_clock_mhz=min_clock_mhz, max_clock_mhz=max_clock_mhz,
        )  # fmt: skip

    def reset_mem_locked_clocks(self, gpu_ids: _IDs, block: bool = True) -> None:
        """Unlocks the clock of the memory."""
        self._control("reset_mem_locked_clocks", gpu_ids, block)

    def reset_locked_clocks(self, gpu_ids: _IDs, block: bool = True) -> None:
        """Unlocks all clocks."""
        self._control("reset_locked_clocks", gpu_ids, block)

    def get_cpu_energy(
        self, cpu_ids: _IDs | None = None, cpu: bool = True, dram: bool = True
    ) -> dict[int, CpuEnergyResult]:
        """Returns microjoules since an arbitrary moment."""
        answer = self._call(
            "GET", "/cpu/get_cumulative_energy", cpu_ids=cpu_ids, cpu=cpu, dram=dram
        )
        return {
            int(index): CpuEnergyResult(value.get("cpu_energy_uj"), value.get("dram_energy_uj"))
            for index, value in answer.items()
        }

    def get_cpu_power(self, cpu_ids: _IDs | None = None) -> CpuPowerSnapshot:
        """Returns milliwatts, which the daemon averages over a short time."""
        answer = self._call("GET", "/cpu/get_power", cpu_ids=cpu_ids)
        power = {
            int(index): CpuDramPower(value["cpu_mw"], value.get("dram_mw"))
            for index, value in answer["power_mw"].items()
        }
        return CpuPowerSnapshot(int(answer["timestamp_ms"]), power)

    def _gpu_values(self, path: str, gpu_ids: _IDs | None, name: str, kind: Any) -> dict[int, Any]:
        answer = self._call("GET", path, gpu_ids=gpu_ids)
        return {int(index): kind(value[name]) for index, value in answer.items()}

    def _control(self, what: str, gpu_ids: _IDs, block: bool, **options: Any) -> None:
        self._call("POST", f"/gpu/{what}", gpu_ids=gpu_ids, **options, block=block)

    def _call(self, method: str, path: str, **options: Any) -> Any:
        status, body = self._connection.request(method, path_with(path, **options))
        check_status(status, body, f"{method} {path}", self.config)
        if not body:
            return {}
        try:
            return json.loads(body)
        except ValueError as error:
            raise ZeusdResponseError(
                f"{method} {path}: zeusd at {self.config.endpoint} answered with no JSON", status
            ) from error


def path_with(path: str, **options: Any) -> str:
    """Returns the path with its query; None is left out, lists are joined by commas."""
    query = {}
    for name, value in options.items():
        if isinstance(value, bool):
            query[name] = "true" if value else "false"
        elif isinstance(value, (list, tuple, range)):
            if not value:
                raise ZeusdCapabilityError(f"{name} is empty: name at least one, or None for all")
            query[name] = ",".join(str(int(index)) for index in value)
        elif value is not None:
            query[name] = str(value)
    return f"{path}?{urlencode(query, safe=',')}" if query else path


def require_capabilities(
    client: ZeusdClient,
    *,
    read_gpu: bool = False,
    control_gpu: bool = False,
    read_cpu: bool = False,
    gpu_ids: _IDs | None = None,
    cpu_ids: _IDs | None = None,
) -> None:
    """Raises an exception if the daemon lacks a capability or does not permit it.

    Raises:
        ZeusdAuthError: If a token is missing, invalid, or lacks a scope.
        ZeusdCapabilityError: If an API is switched off, or a device is not there.
    """
    where = f"zeusd at {client.config.endpoint}"
    needed = {"gpu-read": read_gpu, "gpu-control": control_gpu, "cpu-read": read_cpu}
    for group in (group for group, wanted in needed.items() if wanted):
        if group not in client.enabled_api_groups:
            raise ZeusdCapabilityError(f"{where} has {group} switched off: enable it there")
        if client.auth_error is not None:
            raise ZeusdAuthError(client.auth_error)
        if group not in client.granted_scopes:
            raise ZeusdAuthError(f"{where}: the token lacks the scope {group}")
    for kind, wanted, present in (
        ("GPU", gpu_ids, client.gpu_ids),
        ("CPU", cpu_ids, client.cpu_ids),
    ):
        absent = sorted(set(wanted or ()) - set(present))
        if absent:
            raise ZeusdCapabilityError(f"{where} has no {kind} {absent[0]}: it has {present}")
