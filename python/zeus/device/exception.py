"""Base classes of exceptions about devices."""

from __future__ import annotations

from zeus.errors import ZeusError

__all__ = ["ZeusBaseCPUError", "ZeusBaseError", "ZeusBaseGPUError", "ZeusBaseSoCError"]


class ZeusBaseError(ZeusError):
    """An error of a device; `message` describes it and a fix."""


class ZeusBaseGPUError(ZeusBaseError):
    """The base of all exceptions about GPUs."""


class ZeusBaseCPUError(ZeusBaseError):
    """The base of all exceptions about CPUs."""


class ZeusBaseSoCError(ZeusBaseError):
    """The base of all exceptions about boards."""
