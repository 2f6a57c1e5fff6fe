"""What exceptions about devices have in common."""

from __future__ import annotations

from zeus.errors import ZeusError

__all__ = ["ZeusBaseCPUError", "ZeusBaseError", "ZeusBaseGPUError", "ZeusBaseSoCError"]


class ZeusBaseError(ZeusError):
    """Something went wrong with a device; `message` says what, and what would help."""


class ZeusBaseGPUError(ZeusBaseError):
    """Of all exceptions about GPUs."""


class ZeusBaseCPUError(ZeusBaseError):
    """Of all exceptions about CPUs."""


class ZeusBaseSoCError(ZeusBaseError):
    """Of all exceptions about boards."""
