"""All GPUs that a process sees."""

from __future__ import annotations

from typing import ContextManager, Iterator, SupportsIndex

from zeus import _checks
from zeus._core.device import Devices
from zeus.device.discovery import reasons
from zeus.device.gpu.aliases import OldNames
from zeus.device.gpu.common import GPU, MemoryUse, Utilization
from zeus.device.gpu.exception import ZeusGPULostError, ZeusGPUNotFoundError

__all__ = ["GPUs", "EmptyGPUs"]


class GPUs(OldNames):
    """The GPUs that this process sees, by the index that frameworks use.

        gpus = get_gpus()
        gpus.get_name(0)          # or gpus[0].get_name()
        [gpu.uuid for gpu in gpus]

    Every method is that of `GPU`, with the index first. A GPU that is lost keeps its number, counts
    in ``len(gpus)`` and raises `ZeusGPULostError`; a loop over the GPUs leaves it out.
    """

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._gpus = {gpu.gpu_index: gpu for gpu in map(GPU, devices.gpus)}

    @property
    def gpus(self) -> list[GPU]:
        """The GPUs that answer."""
        return list(self._gpus.values())

    @property
    def absent(self) -> list[tuple[str, str, str]]:
        """Devices that were looked for but are absent, with reason and fix."""
        return self._devices.absent

    def __len__(self) -> int:
        return len(self._gpus) + self._devices.lost_gpus

    def __iter__(self) -> Iterator[GPU]:
        return iter(self._gpus.values())

    def __getitem__(self, gpu_index: SupportsIndex) -> GPU:
        position = _checks.index("gpu_index", gpu_index)
        if position in self._gpus:
            return self._gpus[position]
        if position < len(self):
            raise ZeusGPULostError(
                reasons(self._devices, f"gpu:{position}") or f"gpu:{position} is lost"
            )
        raise ZeusGPUNotFoundError(f"there is no GPU {position}: this process sees {self._range()}")

    def __repr__(self) -> str:
        return f"<GPUs: {', '.join(gpu.get_name() for gpu in self)}>"

    def _range(self) -> str:
        return "GPU 0 only" if len(self) == 1 else f"GPUs 0 to {len(self) - 1}"

    def get_name(self, gpu_index: int) -> str:
        """See `GPU.get_name`."""
        return self[gpu_index].get_name()

    def get_uuid(self, gpu_index: int) -> str:
        """See `GPU.uuid`."""
        return self[gpu_index].uuid

    def get_pci_address(self, gpu_index: int) -> str:
        """See `GPU.pci_address`."""
        return self[gpu_index].pci_address

    def get_average_power_usage(self, gpu_index: int) -> int:
        """See `GPU.get_average_power_usage`."""
        return self[gpu_index].get_average_power_usage()

    def get_instant_power_usage(self, gpu_index: int) -> int:
        """See `GPU.get_instant_power_usage`."""
        return self[gpu_index].get_instant_power_usage()

    def get_average_memory_power_usage(self, gpu_index: int) -> int:
        """See `GPU.get_average_memory_power_usage`."""
        return self[gpu_index].get_average_memory_power_usage()

    def supports_get_total_energy_consumption(self, gpu_index: int) -> bool:
        """See `GPU.supports_get_total_energy_consumption`."""
        return self[gpu_index].supports_get_total_energy_consumption()

    def get_total_energy_consumption(self, gpu_index: int) -> int:
        """See `GPU.get_total_energy_consumption`."""
        return self[gpu_index].get_total_energy_consumption()

    def get_gpu_temperature(self, gpu_index: int) -> int:
        """See `GPU.get_gpu_temperature`."""
        return self[gpu_index].get_gpu_temperature()

    def get_utilization(self, gpu_index: int) -> Utilization:
        """See `GPU.get_utilization`."""
        return self[gpu_index].get_utilization()

    def get_memory_use(self, gpu_index: int) -> MemoryUse:
        """See `GPU.get_memory_use`."""
        return self[gpu_index].get_memory_use()

    def get_throttle_reasons(self, gpu_index: int) -> frozenset[str]:
        """See `GPU.get_throttle_reasons`."""
        return self[gpu_index].get_throttle_reasons()

    def get_power_management_limit_constraints(self, gpu_index: int) -> tuple[int, int]:
        """See `GPU.get_power_management_limit_constraints`."""
        return self[gpu_index].get_power_management_limit_constraints()

    def get_power_management_limit(self, gpu_index: int) -> int:
        """See `GPU.get_power_management_limit`."""
        return self[gpu_index].get_power_management_limit()

    def get_default_power_management_limit(self, gpu_index: int) -> int:
        """See `GPU.get_default_power_management_limit`."""
        return self[gpu_index].get_default_power_management_limit()

    def get_enforced_power_limit(self, gpu_index: int) -> int:
        """See `GPU.get_enforced_power_limit`."""
        return self[gpu_index].get_enforced_power_limit()

    def set_power_management_limit(
        self, gpu_index: int, power_limit_mw: int, block: bool = True, *, may_raise: bool = False
    ) -> None:
        """See `GPU.set_power_management_limit`."""
        self[gpu_index].set_power_management_limit(power_limit_mw, block, may_raise=may_raise)

    def reset_power_management_limit(self, gpu_index: int, block: bool = True) -> None:
        """See `GPU.reset_power_management_limit`."""
        self[gpu_index].reset_power_management_limit(block)

    def power_limit(
        self, gpu_index: int, power_limit_mw: int, *, may_raise: bool = False
    ) -> ContextManager[GPU]:
        """See `GPU.power_limit`."""
        return self[gpu_index].power_limit(power_limit_mw, may_raise=may_raise)

    def get_supported_memory_clocks(self, gpu_index: int) -> list[int]:
        """See `GPU.get_supported_memory_clocks`."""
        return self[gpu_index].get_supported_memory_clocks()

    def get_supported_graphics_clocks(
        self, gpu_index: int, memory_clock_mhz: int | None = None
    ) -> list[int]:
        """See `GPU.get_supported_graphics_clocks`."""
        return self[gpu_index].get_supported_graphics_clocks(memory_clock_mhz)

    def get_graphics_clock(self, gpu_index: int) -> int:
        """See `GPU.get_graphics_clock`."""
        return self[gpu_index].get_graphics_clock()

    def get_memory_clock(self, gpu_index: int) -> int:
        """See `GPU.get_memory_clock`."""
        return self[gpu_index].get_memory_clock()

    def set_gpu_locked_clocks(
        self, gpu_index: int, min_clock_mhz: int, max_clock_mhz: int, block: bool = True
    ) -> None:
        """See `GPU.set_gpu_locked_clocks`."""
        self[gpu_index].set_gpu_locked_clocks(min_clock_mhz, max_clock_mhz, block)

    def reset_gpu_locked_clocks(self, gpu_index: int, block: bool = True) -> None:
        """See `GPU.reset_gpu_locked_clocks`."""
        self[gpu_index].reset_gpu_locked_clocks(block)

    def set_memory_locked_clocks(
        self, gpu_index: int, min_clock_mhz: int, max_clock_mhz: int, block: bool = True
    ) -> None:
        """See `GPU.set_memory_locked_clocks`."""
        self[gpu_index].set_memory_locked_clocks(min_clock_mhz, max_clock_mhz, block)

    def reset_memory_locked_clocks(self, gpu_index: int, block: bool = True) -> None:
        """See `GPU.reset_memory_locked_clocks`."""
        self[gpu_index].reset_memory_locked_clocks(block)

    def reset_locked_clocks(self, gpu_index: int, block: bool = True) -> None:
        """See `GPU.reset_locked_clocks`."""
        self[gpu_index].reset_locked_clocks(block)

    def get_persistence_mode(self, gpu_index: int) -> bool:
        """See `GPU.get_persistence_mode`."""
        return self[gpu_index].get_persistence_mode()

    def set_persistence_mode(self, gpu_index: int, enabled: bool, block: bool = True) -> None:
        """See `GPU.set_persistence_mode`."""
        self[gpu_index].set_persistence_mode(enabled, block)

    def supports_nonblocking_setters(self, gpu_index: int) -> bool:
        """See `GPU.supports_nonblocking_setters`."""
        return self[gpu_index].supports_nonblocking_setters


class EmptyGPUs(GPUs):
    """Stands in for missing GPUs, so that a program can continue. All methods raise."""

    def __init__(self, ensure_homogeneous: bool = False) -> None:
        self._gpus = {}

    @property
    def absent(self) -> list[tuple[str, str, str]]:
        """Nothing was looked for."""
        return []

    def __len__(self) -> int:
        return 0

    def __getitem__(self, gpu_index: SupportsIndex) -> GPU:
        raise ZeusGPUNotFoundError(f"there is no GPU {gpu_index}: there are none at all")
