"""What can go wrong with a GPU.

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
    """No GPU can be used; the message says why, and what would help."""


class ZeusGPUInvalidArgError(ZeusBaseGPUError, InvalidArgumentError):
    """Outside of what the GPU offers."""


class ZeusGPUNotSupportedError(ZeusBaseGPUError, NotSupportedError):
    """This GPU cannot do it, ever."""


class ZeusGPUNoPermissionError(ZeusBaseGPUError, PermissionDeniedError):
    """Needs more rights."""


class ZeusGPUAlreadyInitializedError(ZeusBaseGPUError, ConflictError):
    """At odds with what this program, or another one, does to the GPU."""


class ZeusGPUNotFoundError(ZeusBaseGPUError, NotFoundError):
    """No such GPU."""


class ZeusGPUInternalError(ZeusBaseGPUError, InternalError):
    """A bug in Zeus, or data that were damaged."""


class ZeusGPUInsufficientSizeError(ZeusGPUInternalError):
    """The driver has more to say than fits."""


class ZeusGPUUnknownError(ZeusBaseGPUError, UnavailableError):
    """Failed now, for a reason that has no exception of its own; the message tells it."""


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
    """This driver does not know the function."""


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


# What the library says in its one sentence, where a reason has an exception of its own.
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
