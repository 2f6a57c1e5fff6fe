"""Environment variables with a type."""

from __future__ import annotations

import os
from typing import Any, Callable, TypeVar

from zeus.errors import InvalidArgumentError

__all__ = ["get_env"]

_Value = TypeVar("_Value")
_BOOLEANS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off", ""), False),
}


def get_env(name: str, valtype: Callable[[str], _Value], default: _Value | None = None) -> _Value:
    """Returns an environment variable as a value of that type, or the default if it is not set.

        batch_size = get_env("BATCH_SIZE", int, default=128)

    A bool is written 1/0, true/false, yes/no or on/off. ValueError if the variable is not set and
    there is no default, or if its text is no such value.
    """
    text = os.environ.get(name)
    if text is None:
        if default is None:
            raise InvalidArgumentError(f"the environment variable {name} is not set")
        return default
    convert: Callable[[str], Any] = _boolean if valtype is bool else valtype
    try:
        value: _Value = convert(text)
    except (KeyError, TypeError, ValueError) as error:
        kind = getattr(valtype, "__name__", repr(valtype))
        raise InvalidArgumentError(
            f"the environment variable {name} is {text!r}: not a {kind}"
        ) from error
    return value


def _boolean(text: str) -> bool:
    return _BOOLEANS[text.strip().lower()]
