"""What can go wrong with a recurring job, under the names that training scripts know."""

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
    """The server cannot be reached, or could not do what it was asked."""


#: As it is spelt in scripts that were written for earlier tools.
ZeusBSORuntimError = ZeusBSORuntimeError


class ZeusBSOTrainFailError(ZeusError, RuntimeError):
    """This batch size did not reach the target in the epochs, or at the cost, that it may take.

    The server has learnt from it; the job is run again, and is likely to get another batch size.
    """


class ZeusBSOConfigError(ZeusError, ValueError):
    """The job makes no sense, or is registered differently, or there is no GPU to run it on."""


class ZeusBSOOperationOrderError(ZeusError, RuntimeError):
    """Something was called before what must come first."""


class ZeusBSOBadOperationError(ZeusError, RuntimeError):
    """Something was called that this process must not call."""


def translated(error: ZeusError, registering: bool) -> ZeusError:
    """The exception of this module that says the same as the library's."""
    if isinstance(error, (PermissionDeniedError, NotSupportedError)):
        return error
    if isinstance(error, ConflictError) and not registering:
        return ZeusBSOBadOperationError(error.message)
    if isinstance(error, (InvalidArgumentError, NotFoundError, ConflictError)):
        return ZeusBSOConfigError(error.message)
    return ZeusBSORuntimeError(error.message)
