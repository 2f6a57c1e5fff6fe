"""The exceptions of this package.

Every exception of this package is a `ZeusError`; most are also the built-in exception that a
program would expect, so ``except ValueError`` works as well as ``except InvalidArgumentError``.
The message is one sentence that names the thing and the fix.
"""

from __future__ import annotations

TYPE_CHECKING = False  # As in zeus/__init__.py.
if TYPE_CHECKING:
    from typing import Mapping, Sequence, Union

    #: A class; or several, each with words that identify it in the message, the last one with "".
    Kinds = Union[type["ZeusError"], Sequence[tuple[str, type["ZeusError"]]]]


class ZeusError(Exception):
    """The base of all exceptions that this package raises."""

    # There is no __init__ in Python: daemon threads that meet an error while the interpreter ends
    # must not execute Python code.

    @property
    def message(self) -> str:
        """The message, one sentence."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:  # KeyError would show the message in quotes.
        return self.message


class InvalidArgumentError(ZeusError, ValueError):
    """An argument is invalid. Do not retry."""


class NotFoundError(ZeusError, KeyError, ValueError):
    """There is no such GPU, window or job. (Also a ValueError, as in earlier tools.)"""


class ConflictError(ZeusError, RuntimeError):
    """Valid, but in conflict with the present state."""


class NotSupportedError(ZeusError, NotImplementedError):
    """This device does not support it."""


class PermissionDeniedError(ZeusError, PermissionError):
    """The process lacks a permission."""


class UnavailableError(ZeusError, RuntimeError):
    """Failed now, but may work later."""


class InternalError(ZeusError, RuntimeError):
    """A bug in Zeus, or damaged data."""


_GENERAL: dict[str, type[ZeusError]] = {
    "invalid_argument": InvalidArgumentError,
    "not_found": NotFoundError,
    "conflict": ConflictError,
    "not_supported": NotSupportedError,
    "permission_denied": PermissionDeniedError,
    "unavailable": UnavailableError,
    "internal": InternalError,
}
_FAMILIES: dict[str, Mapping[str, Kinds]] = {"general": _GENERAL}


def register_family(family: str, exceptions: Mapping[str, Kinds]) -> None:
    """Registers the exceptions, by code, that errors of a family of devices become."""
    _FAMILIES[family] = {**_GENERAL, **exceptions}
