"""torch, JAX and CuPy, where a program uses them. Importing this module imports none of them."""

from __future__ import annotations

import sys
from typing import Any, Callable, Sequence


def _used_torch_devices(torch: Any, gpus: Sequence[int]) -> list[int]:
    """Those on which this process has a context: waiting for another one would create it."""
    present = torch.cuda.current_device()
    return [
        index
        for index in (gpus or range(torch.cuda.device_count()))
        if index == present or torch.cuda.memory_reserved(index) > 0
    ]


def _torch_synchronizer(gpus: Sequence[int]) -> Callable[[], None] | None:
    torch: Any = sys.modules["torch"]
    if not torch.cuda.is_available():
        return None

    def synchronize() -> None:
        if torch.cuda.is_initialized():
            for index in _used_torch_devices(torch, gpus):
                torch.cuda.synchronize(index)

    return synchronize


def _jax_synchronizer(gpus: Sequence[int]) -> Callable[[], None] | None:
    jax: Any = sys.modules["jax"]
    try:
        devices = jax.devices("gpu")
    except RuntimeError:  # There is no GPU that JAX could use.
        return None
    wanted = [device for device in devices if not gpus or device.id in gpus]

    def synchronize() -> None:
        # Work of a device is done in order: what is put there last is ready last.
        for device in wanted:
            (jax.device_put(0.0, device=device) + 0).block_until_ready()

    return synchronize


def _cupy_synchronizer(gpus: Sequence[int]) -> Callable[[], None] | None:
    cupy: Any = sys.modules["cupy"]
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        return None

    def synchronize() -> None:
        for index in gpus or range(count):
            cupy.cuda.Device(index).synchronize()

    return synchronize


_SYNCHRONIZERS = {
    "torch": _torch_synchronizer,
    "jax": _jax_synchronizer,
    "cupy": _cupy_synchronizer,
}


def synchronizer(framework: str, gpus: Sequence[int]) -> Any:
    """What waits for the framework's work on these GPUs; all that it knows if there are none.

    None if the framework, which the program has imported, has no GPU to wait for, and
    NotImplemented while it is still being imported.
    """
    try:
        return _SYNCHRONIZERS[framework](gpus)
    except (AttributeError, KeyError):
        return NotImplemented
