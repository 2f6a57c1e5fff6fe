"""The learning rate for another batch size.

    scaler = SquareRootScaler(bs=256, lr=1e-3)
    optimizer = Adam(model.parameters(), lr=scaler.compute_lr(new_bs=1024))  # 2e-3
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from zeus import _checks

__all__ = ["LRScaler", "LinearScaler", "SquareRootScaler"]


class LRScaler(ABC):
    """Derives learning rates from one good pair of batch size and learning rate.

    Args:
        bs: A batch size,
        lr: and the learning rate that is right for it.
    """

    bs: int
    lr: float

    def __init__(self, bs: int, lr: float) -> None:
        self.bs = _batch_size(bs)
        self.lr = _checks.positive("the learning rate", lr)

    @abstractmethod
    def compute_lr(self, new_bs: int) -> float:
        """Returns the learning rate for another batch size."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bs={self.bs}, lr={self.lr})"


class LinearScaler(LRScaler):
    """Scales in proportion to the batch size, as suits SGD."""

    def compute_lr(self, new_bs: int) -> float:
        """Returns the learning rate for another batch size."""
        return self.lr * _batch_size(new_bs) / self.bs


class SquareRootScaler(LRScaler):
    """Scales with the square root of the batch size, as suits adaptive optimisers such as Adam."""

    def compute_lr(self, new_bs: int) -> float:
        """Returns the learning rate for another batch size."""
        return self.lr * math.sqrt(_batch_size(new_bs) / self.bs)


def _batch_size(value: int) -> int:
    return _checks.whole("the batch size", value, 1)
