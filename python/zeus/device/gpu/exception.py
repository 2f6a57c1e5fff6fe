"""Exceptions about GPUs.

Each exception is also the one of `zeus.errors` that says the same about anything else, and by it
the built-in one: ``except PermissionError`` catches `ZeusGPUNoPermissionError`.
"""

from __future__ import annotations

from zeus.device.exception import ZeusBaseGPUError
from zeus.errors import (
    ConflictError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    NotSupportedError,
    PermissionDeniedError,
    UnavailableError,
    register_family,
)

__all__ = [
    "ZeusBaseGPUError",
    "ZeusGPUAlreadyInitializedError",
    "ZeusGPUCorruptedInfoROMError",
    "ZeusGPUDriverNotLoadedError",
    "ZeusGPUFunctionNotFoundError",
    "ZeusGPUHeterogeneousError",
    "ZeusGPUIRQError",
    "ZeusGPUInitError",
    "ZeusGPUInsufficientPowerError",
    "ZeusGPUInsufficientSizeError",
    "ZeusGPUInternalError",
    "ZeusGPUInvalidArgError",
    "ZeusGPULibRMVersionMismatchError",
    "ZeusGPULibraryNotFoundError",
    "ZeusGPULostError",
    "ZeusGPUMemoryError",
    "ZeusGPUNoPermissionError",
    "ZeusGPUNotFoundError",
    "ZeusGPUNotSupportedError",
    "ZeusGPUOperatingSystemError",
    "ZeusGPUResetRequiredError",
    "ZeusGPUTimeoutError",
    "ZeusGPUUnknownError",
]


class ZeusGPUInitError(ZeusBaseGPUError, NotFoundError):
    """No GPU can be used; the message holds the reason and a fix."""


class ZeusGPUInvalidArgError(ZeusBaseGPUError, InvalidArgumentError):
    """The argument is outside of the range of the GPU."""


class ZeusGPUNotSupportedError(ZeusBaseGPUError, NotSupportedError):
    """This GPU does not support it."""


class ZeusGPUNoPermissionError(ZeusBaseGPUError, PermissionDeniedError):
    """The process lacks a permission."""


class ZeusGPUAlreadyInitializedError(ZeusBaseGPUError, ConflictError):
    """Another use of the GPU, by this program or another one, is in conflict."""


class ZeusGPUNotFoundError(ZeusBaseGPUError, NotFoundError):
    """There is no such GPU."""


class ZeusGPUInternalError(ZeusBaseGPUError, InternalError):
    """A bug in Zeus, or damaged data."""


class ZeusGPUInsufficientSizeError(ZeusGPUInternalError):
    """The answer of the driver does not fit its buffer."""


class ZeusGPUUnknownError(ZeusBaseGPUError, UnavailableError):
    """The operation failed for a reason without its own exception; see the message."""


class ZeusGPUInsufficientPowerError(ZeusGPUUnknownError):
    """The GPU lacks external power."""


class ZeusGPUDriverNotLoadedError(ZeusGPUUnknownError):
    """The kernel's driver is not loaded."""


class ZeusGPUTimeoutError(ZeusGPUUnknownError, TimeoutError):
    """The driver did not answer in time."""


class ZeusGPUIRQError(ZeusGPUUnknownError):
    """The GPU's interrupts do not arrive."""


class ZeusGPULibraryNotFoundError(ZeusGPUNotSupportedError):
    """The driver lacks a library."""


class ZeusGPUFunctionNotFoundError(ZeusGPUNotSupportedError):
    """This driver lacks the function."""


class ZeusGPUCorruptedInfoROMError(ZeusGPUUnknownError):
    """The GPU's information ROM is corrupted."""


class ZeusGPULostError(ZeusGPUUnknownError):
    """The GPU fell off the bus."""


class ZeusGPUResetRequiredError(ZeusGPUUnknownError):
    """The GPU must be reset before it can be used."""


class ZeusGPUOperatingSystemError(ZeusGPUNoPermissionError):
    """The operating system blocks the GPU."""


class ZeusGPULibRMVersionMismatchError(ZeusGPUUnknownError):
    """Library and kernel driver have different versions."""


class ZeusGPUMemoryError(ZeusGPUUnknownError, MemoryError):
    """The driver is out of memory."""


class ZeusGPUHeterogeneousError(ZeusBaseGPUError, NotSupportedError, ValueError):
    """The GPUs are not all of one model."""


# Words in the library's message that identify a reason with its own exception.
_UNAVAILABLE = (
    ("fell off the bus", ZeusGPULostError),
    ("must be reset", ZeusGPUResetRequiredError),
    ("did not answer in time", ZeusGPUTimeoutError),
    ("driver is not loaded", ZeusGPUDriverNotLoadedError),
    ("lacks external power", ZeusGPUInsufficientPowerError),
    ("interrupts do not arrive", ZeusGPUIRQError),
    ("information ROM", ZeusGPUCorruptedInfoROMError),
    ("different versions", ZeusGPULibRMVersionMismatchError),
    ("out of memory", ZeusGPUMemoryError),
    ("", ZeusGPUUnknownError),
)
_NOT_SUPPORTED = (
    ("lacks a library", ZeusGPULibraryNotFoundError),
    ("does not know the function", ZeusGPUFunctionNotFoundError),
    ("", ZeusGPUNotSupportedError),
)

register_family(
    "gpu",
    {
        "invalid_argument": ZeusGPUInvalidArgError,
        "not_found": ZeusGPUNotFoundError,
        "conflict": ZeusGPUAlreadyInitializedError,
        "not_supported": _NOT_SUPPORTED,
        "permission_denied": ZeusGPUNoPermissionError,
        "unavailable": _UNAVAILABLE,
        "internal": ZeusGPUInternalError,
    },
)
