"""The base of all exceptions, under the name that earlier tools have for it."""

from __future__ import annotations

from zeus.errors import ZeusError as ZeusBaseError

__all__ = ["ZeusBaseError"]
