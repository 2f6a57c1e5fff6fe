"""`BatchSizeOptimizer`, at the place where earlier tools have it."""

from __future__ import annotations

from zeus.optimizer.batch_size.optimizer import BatchSizeOptimizer

__all__ = ["BatchSizeOptimizer"]
