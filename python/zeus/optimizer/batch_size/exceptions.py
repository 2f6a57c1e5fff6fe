"""Exceptions about recurring jobs, under the names that training scripts use."""

from __future__ import annotations

from zeus.errors import (
    ConflictError,
    InvalidArgumentError,
    NotFoundError,
    NotSupportedError,
    PermissionDeniedError,
    ZeusError,
)

__all__ = [
    "ZeusBSOBadOperationError",
    "ZeusBSOConfigError",
    "ZeusBSOOperationOrderError",
    "ZeusBSORuntimError",
    "ZeusBSORuntimeError",
    "ZeusBSOTrainFailError",
]


class ZeusBSORuntimeError(ZeusError, RuntimeError):
    """The server cannot be reached, or failed."""


#: The spelling in scripts that were written for earlier tools.
ZeusBSORuntimError = ZeusBSORuntimeError


class ZeusBSOTrainFailError(ZeusError, RuntimeError):
    """This batch size did not reach the target within its epochs or its cost.

    The server has learnt from it; the job is run again, and is likely to get another batch size.
    """


class ZeusBSOConfigError(ZeusError, ValueError):
    """The job is invalid or registered differently, or there is no GPU for it."""


class ZeusBSOOperationOrderError(ZeusError, RuntimeError):
    """A call that must come first is missing."""


class ZeusBSOBadOperationError(ZeusError, RuntimeError):
    """This process must not make this call."""


def translated(error: ZeusError, registering: bool) -> ZeusError:
    """Returns the exception of this module that corresponds to one of the library."""
    if isinstance(error, (PermissionDeniedError, NotSupportedError)):
        return error
    if isinstance(error, ConflictError) and not registering:
        return ZeusBSOBadOperationError(error.message)
    if isinstance(error, (InvalidArgumentError, NotFoundError, ConflictError)):
        return ZeusBSOConfigError(error.message)
    return ZeusBSORuntimeError(error.message)
