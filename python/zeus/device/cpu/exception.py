"""Exceptions about CPUs; see `zeus.device.gpu.exception`."""

from __future__ import annotations

from zeus.device.exception import ZeusBaseCPUError
from zeus.errors import (
    InvalidArgumentError,
    NotFoundError,
    NotSupportedError,
    PermissionDeniedError,
    UnavailableError,
    register_family,
)


class ZeusCPUInitError(ZeusBaseCPUError, NotFoundError):
    """No CPU's energy can be read; the message holds the reason and a fix."""


class ZeusCPUInvalidArgError(ZeusBaseCPUError, InvalidArgumentError):
    """The argument is invalid for the CPU."""


class ZeusCPUNotFoundError(ZeusBaseCPUError, NotFoundError):
    """There is no such CPU."""


class ZeusCPUNotSupportedError(ZeusBaseCPUError, NotSupportedError):
    """This CPU does not support it."""


class ZeusCPUNoPermissionError(ZeusBaseCPUError, PermissionDeniedError):
    """The process lacks a permission."""


class ZeusCPUUnknownError(ZeusBaseCPUError, UnavailableError):
    """The operation failed; the message holds the reason."""


register_family(
    "cpu",
    {
        "invalid_argument": ZeusCPUInvalidArgError,
        "not_found": ZeusCPUNotFoundError,
        "not_supported": ZeusCPUNotSupportedError,
        "permission_denied": ZeusCPUNoPermissionError,
        "unavailable": ZeusCPUUnknownError,
    },
)
