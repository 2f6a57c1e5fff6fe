"""Optimisers that save energy: power limits, batch sizes, and clocks of pipelines."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer as GlobalPowerLimitOptimizer

__all__ = ["GlobalPowerLimitOptimizer"]


def __getattr__(name: str) -> Any:
    # Each optimiser is imported on first use.
    if name == "GlobalPowerLimitOptimizer":
        return importlib.import_module("zeus.optimizer.power_limit").GlobalPowerLimitOptimizer
    raise AttributeError(f"module 'zeus.optimizer' has no attribute {name!r}")
