"""What can go wrong, as exceptions.

Every exception of this package is a `ZeusError`; most are also the built-in exception that a
program would expect, so ``except ValueError`` works as well as ``except InvalidArgumentError``.
The message is one sentence that names the thing and the fix.
"""

from __future__ import annotations

from typing import Mapping, Sequence, Union


class ZeusError(Exception):
    """Whatever this package raises by itself."""

    # Without an __init__ in Python: daemon threads that meet an error while the interpreter ends must
    # not need it.

    @property
    def message(self) -> str:
        """One sentence."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:  # KeyError would show the sentence in quotes.
        return self.message


class InvalidArgumentError(ZeusError, ValueError):
    """What was asked for means nothing. Do not retry."""


class NotFoundError(ZeusError, KeyError, ValueError):
    """No such GPU, window or job. (A ValueError too, as in earlier tools of this kind.)"""


class ConflictError(ZeusError, RuntimeError):
    """Meaningful, but at odds with what is already there."""


class NotSupportedError(ZeusError, NotImplementedError):
    """This device cannot do it, ever."""


class PermissionDeniedError(ZeusError, PermissionError):
    """Needs more rights."""


class UnavailableError(ZeusError, RuntimeError):
    """Failed now, may work later."""


class InternalError(ZeusError, RuntimeError):
    """A bug in Zeus, or data that were damaged."""


_GENERAL: dict[str, type[ZeusError]] = {
    "invalid_argument": InvalidArgumentError,
    "not_found": NotFoundError,
    "conflict": ConflictError,
    "not_supported": NotSupportedError,
    "permission_denied": PermissionDeniedError,
    "unavailable": UnavailableError,
    "internal": InternalError,
}
#: A class; or several, each with words of the message that tell it apart, the last one with "".
Kinds = Union[type[ZeusError], Sequence[tuple[str, type[ZeusError]]]]
_FAMILIES: dict[str, Mapping[str, Kinds]] = {"general": _GENERAL}


def register_family(family: str, exceptions: Mapping[str, Kinds]) -> None:
    """Errors of that family of devices become these exceptions, by code."""
    _FAMILIES[family] = {**_GENERAL, **exceptions}
