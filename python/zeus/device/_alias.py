"""Names of earlier versions, which still work and warn once about the new name."""

from __future__ import annotations

import warnings
from typing import Any, Callable

_told: set[str] = set()


def deprecated(old: str, new: str) -> Callable[..., Any]:
    """Returns a method `old` that warns and calls the method `new`."""

    def call(self: object, *arguments: Any, **options: Any) -> Any:
        if old not in _told:
            _told.add(old)
            warnings.warn(f"{old}() is now called {new}()", DeprecationWarning, stacklevel=2)
        return getattr(self, new)(*arguments, **options)

    call.__name__ = call.__qualname__ = old
    call.__doc__ = f"Deprecated: use {new}()."
    return call
