"""`zeus` and `python -m zeus`: the command line, which is a program of its own."""

from __future__ import annotations

import os
import sys


def program() -> str:
    """Where the program is that came with this package."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_native", "bin", "zeus")


def main() -> None:
    """Becomes that program, with the same arguments."""
    try:
        os.execv(program(), ["zeus", *sys.argv[1:]])
    except OSError as failure:
        sys.exit(f"zeus: {program()} cannot be started ({failure.strerror}): install Zeus again")


if __name__ == "__main__":
    main()
