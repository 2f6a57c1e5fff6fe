"""`zeus` and `python -m zeus`: starts the command line, which is a separate program."""

from __future__ import annotations

import os
import sys

from zeus import _native_files
from zeus.errors import NotFoundError


def main() -> None:
    """Replaces this process by that program, with the same arguments."""
    try:
        program = _native_files.command()
        os.execv(program, ["zeus", *sys.argv[1:]])
    except NotFoundError as missing:
        sys.exit(f"zeus: {missing}")
    except OSError as failure:
        sys.exit(f"zeus: {program} cannot be started ({failure.strerror}): install Zeus again")


if __name__ == "__main__":
    main()
