"""What all exceptions about devices have in common."""

from __future__ import annotations

from zeus.errors import ZeusError


class ZeusBaseError(ZeusError):
    """Something went wrong with a device; `message` says what, and what would help."""
