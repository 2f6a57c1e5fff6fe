"""Finds out what saves energy, and does it: power limits, batch sizes, clocks of pipelines."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer as GlobalPowerLimitOptimizer

__all__ = ["GlobalPowerLimitOptimizer"]


def __getattr__(name: str) -> Any:
    # Each optimiser is loaded by who uses it.
    if name == "GlobalPowerLimitOptimizer":
        return importlib.import_module("zeus.optimizer.power_limit").GlobalPowerLimitOptimizer
    raise AttributeError(f"module 'zeus.optimizer' has no attribute {name!r}")
