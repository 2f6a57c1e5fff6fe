"""Exceptions about boards; see `zeus.device.gpu.exception`."""

from __future__ import annotations

from zeus.device.exception import ZeusBaseSoCError
from zeus.errors import InvalidArgumentError, NotFoundError


class ZeusSoCInitError(ZeusBaseSoCError, NotFoundError):
    """No rail of this board is measured; the message holds the reason and a fix."""


class ZeusSoCNotFoundError(ZeusBaseSoCError, NotFoundError):
    """There is no such window, or no board."""


class ZeusSoCInvalidArgError(ZeusBaseSoCError, InvalidArgumentError):
    """The argument is invalid."""
