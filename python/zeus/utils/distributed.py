"""The processes that train one model together.

The optimisers ask `default_collective()`: `torch.distributed` if the program has initialised it,
else nothing. A program with another way of talking (MPI, a file, ...) passes an object of its own:
anything with the members of `Collective`.
"""

from __future__ import annotations

import collections
import sys
from typing import Any, Protocol

from zeus import _checks

__all__ = ["Collective", "TorchCollective", "check_collective", "default_collective"]


class Collective(Protocol):
    """Every process makes the same calls in the same order; each returns when all have made it.

    An exception means that the others are gone: the job goes on, and is not optimised any more.
    """

    @property
    def rank(self) -> int:
        """Rank of this process, from 0."""

    @property
    def size(self) -> int:
        """Number of processes."""

    def sum(self, values: list[float]) -> list[float]:
        """Sums the values over all processes, element by element."""

    def max(self, values: list[float]) -> list[float]:
        """Returns the maximum over all processes, element by element."""

    def broadcast(self, values: list[float], root: int) -> list[float]:
        """Returns the values of the process `root`."""


class TorchCollective:
    """The processes of a group of `torch.distributed`; None for all of them.

    Numbers travel in double precision: on the CPU with gloo and MPI, on the current CUDA device
    with NCCL, which knows no other.
    """

    def __init__(self, group: Any = None) -> None:
        self._torch: Any = sys.modules["torch"]
        self._group = group
        distributed = self._torch.distributed
        self.rank: int = distributed.get_rank(group)
        self.size: int = distributed.get_world_size(group)

    def _exchange(self, operation: str, values: list[float]) -> list[float]:
        distributed = self._torch.distributed
        tensor = exchange_tensor(values, self._torch.float64, self._group)
        distributed.all_reduce(
            tensor, op=getattr(distributed.ReduceOp, operation), group=self._group
        )
        return list(tensor.tolist())

    def sum(self, values: list[float]) -> list[float]:
        """Sums the values over all processes, element by element."""
        return self._exchange("SUM", values)

    def max(self, values: list[float]) -> list[float]:
        """Returns the maximum over all processes, element by element."""
        return self._exchange("MAX", values)

    def broadcast(self, values: list[float], root: int) -> list[float]:
        """Returns the values of the process `root` of the group."""
        distributed = self._torch.distributed
        tensor = exchange_tensor(values, self._torch.float64, self._group)
        source = root
        if self._group is not None and hasattr(distributed, "get_global_rank"):
            source = distributed.get_global_rank(self._group, root)
        distributed.broadcast(tensor, src=source, group=self._group)
        return list(tensor.tolist())


# The tensors exchanged last. A thread of gloo holds one for a moment longer than the exchange takes;
# if it were the last to let go, it would need the interpreter's lock, for which it waits for ever
# when the program destroys the process group meanwhile: destroying joins that thread, under the lock.
_exchanged: collections.deque[Any] = collections.deque(maxlen=16)


def exchange_tensor(values: list[Any], dtype: Any, group: Any = None) -> Any:
    """Makes a tensor that the processes of a group can exchange."""
    torch: Any = sys.modules["torch"]
    tensor = torch.tensor(values, dtype=dtype, device=exchange_device(group))
    _exchanged.append(tensor)
    return tensor


def exchange_device(group: Any = None) -> Any:
    """Returns the device of tensors that processes of a group of torch.distributed exchange.

    NCCL and its like know only those on the GPU; a group with several backends takes either.
    """
    torch: Any = sys.modules["torch"]
    backend = str(torch.distributed.get_backend(group))
    if any(name in backend for name in ("gloo", "mpi", "ucc")):
        return torch.device("cpu")
    return torch.device("cuda", torch.cuda.current_device())


def default_collective() -> Collective | None:
    """Returns the processes of `torch.distributed`, if it is initialised with more than one."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return TorchCollective() if distributed.get_world_size() > 1 else None


def check_collective(collective: Any) -> Collective | None:
    """Returns the argument ``collective=``, or the default; TypeError if it is invalid."""
    if collective is None:
        return default_collective()
    for member in ("rank", "size", "sum", "max", "broadcast"):
        if not hasattr(collective, member):
            raise TypeError(
                f"a collective has rank, size, sum(), max() and broadcast(): {collective!r} has "
                f"no {member}"
            )
    size = _checks.whole("size of the collective", collective.size, 1)
    _checks.whole("rank of the collective", collective.rank, 0, size - 1)
    checked: Collective = collective
    return checked
