"""Batches of a torch Dataset, a loader, a list, or any iterable."""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any, Iterable, Iterator

from zeus.errors import InvalidArgumentError
from zeus.optimizer import _checks


class Batches:
    """Yields lists of `batch_size` samples in order; the last one may be shorter."""

    def __init__(self, data: Iterable[Any], batch_size: int) -> None:
        self.dataset = data
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[list[Any]]:
        samples = _iterate(self.dataset)
        while batch := list(islice(samples, self.batch_size)):
            yield batch

    def __len__(self) -> int:
        samples: Any = self.dataset
        return -(-len(samples) // self.batch_size)


class Samples:
    """The samples of a data set; it ends at its length."""

    def __init__(self, data: Any) -> None:
        self.dataset = data

    def __iter__(self) -> Iterator[Any]:
        return _iterate(self.dataset)

    def __len__(self) -> int:
        return len(self.dataset)


def _iterate(data: Any) -> Iterator[Any]:
    """Like iter(), but also ends data sets that only their length bounds."""
    if hasattr(data, "__iter__"):
        return iter(data)
    return (data[index] for index in range(len(data)))


def batches_of(data: Any, batch_size: int | None, loader_options: dict[str, Any]) -> Any:
    """Returns an iterable over the batches of an epoch."""
    sequence = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    if not hasattr(data, "__iter__") and not sequence:
        raise TypeError(f"data is something to iterate over, or a data set, not {data!r}")
    if _is_torch_dataset(data) or (loader_options and batch_size is not None):
        from torch.utils.data import DataLoader

        if batch_size is None:
            raise InvalidArgumentError("a torch Dataset needs a batch_size")
        return DataLoader(data, _checks.whole("batch_size", batch_size, 1), **loader_options)
    if loader_options:
        raise TypeError(f"{next(iter(loader_options))} is an option of a loader that is made here")
    if isinstance(data, Iterator):
        raise TypeError(
            "data is used up after one epoch: pass what it is an iterator of, such as a list"
        )
    if batch_size is None:
        return data if hasattr(data, "__iter__") else Samples(data)
    if _is_torch_loader(data):
        raise InvalidArgumentError(
            "the DataLoader has a batch size of its own: leave batch_size out"
        )
    return Batches(data, _checks.whole("batch_size", batch_size, 1))


def _is_torch_dataset(data: Any) -> bool:
    module: Any = sys.modules.get("torch.utils.data")
    return module is not None and isinstance(data, module.Dataset)


def _is_torch_loader(data: Any) -> bool:
    module: Any = sys.modules.get("torch.utils.data")
    return module is not None and isinstance(data, module.DataLoader)
