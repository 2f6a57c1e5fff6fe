"""The right to set devices of all kinds."""

from __future__ import annotations

from zeus._core.device import is_root

__all__ = ["has_sys_admin"]


def has_sys_admin() -> bool:
    """Returns whether this process has the right to set limits and clocks (CAP_SYS_ADMIN)."""
    return is_root()
