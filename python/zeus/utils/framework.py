"""torch, JAX and CuPy, if a program uses them. Importing this module imports none of them."""

from __future__ import annotations

import sys
from typing import Any, Callable, Literal, Sequence

from zeus.errors import InvalidArgumentError, NotSupportedError, UnavailableError
from zeus.utils.distributed import exchange_tensor

__all__ = [
    "all_reduce",
    "cupy_is_available",
    "get_rank",
    "get_world_size",
    "is_distributed",
    "jax_is_available",
    "sync_execution",
    "synchronizer",
    "torch_is_available",
]


def _used_torch_devices(torch: Any, gpus: Sequence[int]) -> list[int]:
    """Returns devices with a context of this process: waiting for others would create one."""
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
    except RuntimeError:  # JAX has no GPU.
        return None
    wanted = [device for device in devices if not gpus or device.id in gpus]

    def synchronize() -> None:
        # A device works in order: what is submitted last is ready last.
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
    """Returns a function that waits for the framework's work on these GPUs; none means all.

    None if the framework, which the program has imported, has no GPU to wait for, and
    NotImplemented while it is still being imported.
    """
    try:
        return _SYNCHRONIZERS[framework](gpus)
    except (AttributeError, KeyError):
        return NotImplemented


def sync_imported(gpu_devices: Sequence[int]) -> None:
    """Waits for the GPUs of the framework that the program has imported, if any."""
    for framework in _SYNCHRONIZERS:
        if framework in sys.modules:
            wait = synchronizer(framework, gpu_devices)
            if callable(wait):
                wait()
                return


def sync_execution(
    gpu_devices: Sequence[int], sync_with: Literal["torch", "jax", "cupy"] = "torch"
) -> None:
    """Waits until these GPUs have finished the work of the framework; none means all.

    A framework that is installed but that the program does not use has nothing to wait for.

    Raises:
        InvalidArgumentError: (a ValueError) if Zeus does not know the framework.
        UnavailableError: (a RuntimeError) if it is not installed.
    """
    if sync_with not in _SYNCHRONIZERS:
        raise InvalidArgumentError(f'sync_with is {sync_with!r}: one of "torch", "jax" and "cupy"')
    if sync_with not in sys.modules:
        from importlib.util import find_spec

        if find_spec(sync_with) is None:
            raise UnavailableError(f"{sync_with} is not installed, so there is nothing to wait for")
        return
    wait = synchronizer(sync_with, gpu_devices)
    if callable(wait):
        wait()


def _is_available(name: str, has_gpu: Callable[[Any], bool] | None, ensure_available: bool) -> bool:
    """Imports a framework and returns whether it is there, with a GPU if that is wanted."""
    import importlib

    trouble = ""
    try:
        framework = importlib.import_module(name)
        if has_gpu is not None and not has_gpu(framework):
            trouble = f"{name} is installed, but sees no GPU"
    except ImportError as error:
        trouble = f"{name} cannot be imported: {error}"
    if trouble and ensure_available:
        raise UnavailableError(trouble)
    return not trouble


def torch_is_available(ensure_available: bool = False, ensure_cuda: bool = True) -> bool:
    """Returns whether torch can be imported, and has a GPU unless `ensure_cuda` is False.

    Raises:
        UnavailableError: (a RuntimeError) if it is not and `ensure_available` is set.
    """
    has_gpu = (lambda torch: bool(torch.cuda.is_available())) if ensure_cuda else None
    return _is_available("torch", has_gpu, ensure_available)


def jax_is_available(ensure_available: bool = False, ensure_cuda: bool = True) -> bool:
    """Returns whether JAX can be imported, and has a GPU unless `ensure_cuda` is False.

    Raises:
        UnavailableError: (a RuntimeError) if it is not and `ensure_available` is set.
    """

    def has_gpu(jax: Any) -> bool:
        try:
            return bool(jax.devices("gpu"))
        except RuntimeError:
            return False

    return _is_available("jax", has_gpu if ensure_cuda else None, ensure_available)


def cupy_is_available(ensure_available: bool = False) -> bool:
    """Returns whether CuPy can be imported and has a GPU.

    Raises:
        UnavailableError: (a RuntimeError) if it is not and `ensure_available` is set.
    """
    return _is_available("cupy", lambda cupy: bool(cupy.cuda.is_available()), ensure_available)


def _torch_distributed() -> Any:
    """Returns torch.distributed if the program has initialised a process group."""
    distributed: Any = getattr(sys.modules.get("torch"), "distributed", None)
    try:
        if distributed.is_available() and distributed.is_initialized():
            return distributed
    except AttributeError:  # torch is missing or just being imported.
        pass
    return None


def _jax_processes() -> tuple[int, int]:
    """Returns rank and number of JAX's processes; (0, 1) without JAX or without a backend."""
    jax: Any = sys.modules.get("jax")
    try:
        return int(jax.process_index()), int(jax.process_count())
    except (AttributeError, RuntimeError):
        return 0, 1


def is_distributed() -> bool:
    """Returns whether this process trains together with others."""
    return get_world_size() > 1


def get_rank() -> int:
    """Returns the rank of this process; 0 if it is alone."""
    distributed = _torch_distributed()
    return int(distributed.get_rank()) if distributed else _jax_processes()[0]


def get_world_size() -> int:
    """Returns the number of processes that train together; 1 if this one is alone."""
    distributed = _torch_distributed()
    return int(distributed.get_world_size()) if distributed else _jax_processes()[1]


def all_reduce(
    object: Sequence[int] | Sequence[float], operation: Literal["sum", "max"]
) -> list[int] | list[float]:
    """Returns the sum or the maximum over all processes, element by element. All must call it.

    Without torch.distributed it gives back the numbers. Whole numbers stay whole.

    Raises:
        NotSupportedError: (a NotImplementedError) with several processes of JAX.
    """
    if operation not in ("sum", "max"):
        raise InvalidArgumentError(f'operation is {operation!r}: "sum" or "max"')
    numbers: list[Any] = list(object)
    distributed = _torch_distributed()
    if distributed is not None:
        return _torch_all_reduce(distributed, numbers, operation)
    if _jax_processes()[1] > 1:
        raise NotSupportedError("all_reduce over processes of JAX: use torch.distributed for it")
    return numbers


def _torch_all_reduce(distributed: Any, numbers: list[Any], operation: str) -> list[Any]:
    torch: Any = sys.modules["torch"]
    whole = all(isinstance(number, int) for number in numbers)
    tensor = exchange_tensor(numbers, torch.int64 if whole else torch.float64)
    reduction = distributed.ReduceOp.SUM if operation == "sum" else distributed.ReduceOp.MAX
    distributed.all_reduce(tensor, op=reduction)
    return list(tensor.cpu().tolist())
