"""What can go wrong with a CPU; see `zeus.device.gpu.exception`."""

from __future__ import annotations

from zeus.device.exception import ZeusBaseError
from zeus.errors import (
    InvalidArgumentError,
    NotFoundError,
    NotSupportedError,
    PermissionDeniedError,
    UnavailableError,
    register_family,
)


class ZeusBaseCPUError(ZeusBaseError):
    """Of all exceptions about CPUs."""


class ZeusCPUInitError(ZeusBaseCPUError, NotFoundError):
    """The energy of no CPU can be read; the message says why, and what would help."""


class ZeusCPUInvalidArgError(ZeusBaseCPUError, InvalidArgumentError):
    """Means nothing to the CPU."""


class ZeusCPUNotFoundError(ZeusBaseCPUError, NotFoundError):
    """No such CPU."""


class ZeusCPUNotSupportedError(ZeusBaseCPUError, NotSupportedError):
    """This CPU cannot do it, ever."""


class ZeusCPUNoPermissionError(ZeusBaseCPUError, PermissionDeniedError):
    """Needs more rights."""


class ZeusCPUUnknownError(ZeusBaseCPUError, UnavailableError):
    """Failed now; the message tells why."""


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
