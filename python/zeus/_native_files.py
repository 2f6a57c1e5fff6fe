"""Paths of the files that belong to the extension module.

Installed, they are in ``zeus/_native``; in a build tree the package is in its ``python/zeus``.
"""

from __future__ import annotations

import os

from zeus.errors import NotFoundError

__all__ = ["command", "simulated_nvml"]

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def command() -> str:
    """The path of the command ``zeus``."""
    return _find("bin/zeus")


def simulated_nvml() -> str:
    """The path of the NVML library that shows simulated GPUs."""
    return _find("lib/zeus/sim/libnvidia-ml.so.1")


def _find(name: str) -> str:
    prefixes = [os.path.join(_PACKAGE, "_native"), os.path.dirname(os.path.dirname(_PACKAGE))]
    for prefix in prefixes:
        path = os.path.join(prefix, name)
        if os.path.exists(path):
            return path
    raise NotFoundError(
        f"{os.path.join(prefixes[0], name)} does not exist: install the package again, or build "
        "Zeus completely (ninja zeus nvml_simulator)"
    )
