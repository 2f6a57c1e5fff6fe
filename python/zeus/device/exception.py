"""Base classes of exceptions about devices."""

from __future__ import annotations

from zeus.exception import ZeusBaseError

__all__ = [
    "ZeusBaseCPUError",
    "ZeusBaseError",
    "ZeusBaseGPUError",
    "ZeusBaseSoCError",
    "ZeusdError",
]


class ZeusBaseGPUError(ZeusBaseError):
    """The base of all exceptions about GPUs."""


class ZeusBaseCPUError(ZeusBaseError):
    """The base of all exceptions about CPUs."""


class ZeusBaseSoCError(ZeusBaseError):
    """The base of all exceptions about boards."""


class ZeusdError(ZeusBaseError):
    """An error of zeusd or of a request to it."""
