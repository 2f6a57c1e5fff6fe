"""What can go wrong with a board; see `zeus.device.gpu.exception`."""

from __future__ import annotations

from zeus.device.exception import ZeusBaseError
from zeus.errors import InvalidArgumentError, NotFoundError


class ZeusBaseSoCError(ZeusBaseError):
    """Of all exceptions about boards."""


class ZeusSoCInitError(ZeusBaseSoCError, NotFoundError):
    """No rail of this board is measured; the message says why, and what would help."""


class ZeusSoCNotFoundError(ZeusBaseSoCError, NotFoundError):
    """No such window, or no board."""


class ZeusSoCInvalidArgError(ZeusBaseSoCError, InvalidArgumentError):
    """Means nothing here."""
