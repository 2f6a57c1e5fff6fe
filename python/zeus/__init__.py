"""Zeus measures the energy of deep-learning work and lowers it.

    from zeus.monitor import ZeusMonitor

    monitor = ZeusMonitor()
    with monitor.window("epoch") as epoch:
        train()
    print(epoch.measurement)  # 1234 ± 31 J over 10.2 s (gpu:0)

Nothing heavy is imported before it is used, and no other Python package is needed.
"""

from __future__ import annotations

import importlib

# True for type checkers alone: at run time, importing typing would take a third of the time that
# importing zeus.monitor does.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zeus.data_loader import ZeusDataLoader as ZeusDataLoader
    from zeus.errors import ZeusError as ZeusError
    from zeus.monitor import ZeusMonitor as ZeusMonitor
    from zeus.recurring import train as train

__all__ = ["ZeusDataLoader", "ZeusError", "ZeusMonitor", "__version__", "train"]

_HOMES = {
    "ZeusDataLoader": "zeus.data_loader",
    "ZeusError": "zeus.errors",
    "ZeusMonitor": "zeus.monitor",
    "train": "zeus.recurring",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("zeus._core").version
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'zeus' has no attribute {name!r}")
