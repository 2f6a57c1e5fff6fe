"""Lines for the person who watches a training: to the log if the program has set one up, else to standard error."""

from __future__ import annotations

import logging
import sys

_log = logging.getLogger("zeus")


def announce(text: str) -> None:
    """Logs a sentence. Where nobody has set up logging it is printed, since INFO would be lost."""
    if _log.hasHandlers():
        _log.info(text)
    else:
        print(f"zeus: {text}", file=sys.stderr, flush=True)
