"""GPUs: see `zeus.device`."""

from __future__ import annotations

from zeus.device.discovery import (
    amdsmi_is_available,
    find_devices,
    nvml_is_available,
    reasons,
    view,
)
from zeus.device.gpu.common import GPU, MemoryUse, Utilization
from zeus.device.gpu.exception import (
    ZeusBaseGPUError,
    ZeusGPUAlreadyInitializedError,
    ZeusGPUCorruptedInfoROMError,
    ZeusGPUDriverNotLoadedError,
    ZeusGPUFunctionNotFoundError,
    ZeusGPUHeterogeneousError,
    ZeusGPUInitError,
    ZeusGPUInsufficientPowerError,
    ZeusGPUInsufficientSizeError,
    ZeusGPUInternalError,
    ZeusGPUInvalidArgError,
    ZeusGPUIRQError,
    ZeusGPULibraryNotFoundError,
    ZeusGPULibRMVersionMismatchError,
    ZeusGPULostError,
    ZeusGPUMemoryError,
    ZeusGPUNoPermissionError,
    ZeusGPUNotFoundError,
    ZeusGPUNotSupportedError,
    ZeusGPUOperatingSystemError,
    ZeusGPUResetRequiredError,
    ZeusGPUTimeoutError,
    ZeusGPUUnknownError,
)
from zeus.device.gpu.gpus import EmptyGPUs, GPUs

__all__ = [
    "GPU",
    "EmptyGPUs",
    "GPUs",
    "MemoryUse",
    "Utilization",
    "ZeusBaseGPUError",
    "ZeusGPUAlreadyInitializedError",
    "ZeusGPUCorruptedInfoROMError",
    "ZeusGPUDriverNotLoadedError",
    "ZeusGPUFunctionNotFoundError",
    "ZeusGPUHeterogeneousError",
    "ZeusGPUIRQError",
    "ZeusGPUInitError",
    "ZeusGPUInsufficientPowerError",
    "ZeusGPUInsufficientSizeError",
    "ZeusGPUInternalError",
    "ZeusGPUInvalidArgError",
    "ZeusGPULibRMVersionMismatchError",
    "ZeusGPULibraryNotFoundError",
    "ZeusGPULostError",
    "ZeusGPUMemoryError",
    "ZeusGPUNoPermissionError",
    "ZeusGPUNotFoundError",
    "ZeusGPUNotSupportedError",
    "ZeusGPUOperatingSystemError",
    "ZeusGPUResetRequiredError",
    "ZeusGPUTimeoutError",
    "ZeusGPUUnknownError",
    "amdsmi_is_available",
    "get_gpus",
    "nvml_is_available",
]


def get_gpus(ensure_homogeneous: bool = False) -> GPUs:
    """Returns the GPUs that this process sees; always the same object.

    They are discovered again when the environment changed (CUDA_VISIBLE_DEVICES, ...), and in a
    forked child.

    Args:
        ensure_homogeneous: Whether GPUs of different models are an error. Checked every time.

    Raises:
        ZeusGPUInitError: If there is none. The message holds the reason and a fix.
        ZeusGPUHeterogeneousError: If models differ and `ensure_homogeneous` is set.
    """
    try:
        gpus = view(GPUs)
    except ZeusGPUInvalidArgError as failure:  # The value comes from the environment.
        raise ZeusGPUInitError(failure.message) from failure
    if not gpus.gpus:
        why = reasons(find_devices(), "GPU") or "none was found"
        raise ZeusGPUInitError(f"no GPU can be used here (see zeus doctor): {why}")
    models = sorted({gpu.get_name() for gpu in gpus})
    if ensure_homogeneous and len(models) > 1:
        raise ZeusGPUHeterogeneousError(
            f"the GPUs are not all of one model but {' and '.join(models)}: choose some with "
            "CUDA_VISIBLE_DEVICES"
        )
    return gpus
