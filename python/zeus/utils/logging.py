"""Copies the output of a program to a file."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import TextIO

__all__ = ["FileAndConsole"]


class FileAndConsole:
    """Writes to the console and to a file. In place of sys.stdout, every print() does:

        sys.stdout = FileAndConsole("train.log")

    As a context manager it takes the place of sys.stdout for a block only. The file is replaced if
    it exists, and complete up to the last line at any time.
    """

    def __init__(self, filepath: str | os.PathLike[str]) -> None:
        self.file: TextIO = open(filepath, "w", encoding="utf-8", buffering=1)
        self.stdout: TextIO = sys.stdout

    def write(self, message: str) -> int:
        """Writes to both."""
        if not self.file.closed:
            self.file.write(message)
        return self.stdout.write(message)

    def flush(self) -> None:
        """Flushes both."""
        if not self.file.closed:
            self.file.flush()
        self.stdout.flush()

    def isatty(self) -> bool:
        """Whether the console is a terminal: programs decide by it whether to use colours."""
        return self.stdout.isatty()

    def fileno(self) -> int:
        """The console's file descriptor."""
        return self.stdout.fileno()

    @property
    def encoding(self) -> str:
        """The console's encoding."""
        return self.stdout.encoding

    def close(self) -> None:
        """Closes the file. Later output goes to the console only."""
        self.file.close()

    def __enter__(self) -> FileAndConsole:
        sys.stdout = self  # type: ignore[assignment]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if sys.stdout is self:  # type: ignore[comparison-overlap]
            sys.stdout = self.stdout
        self.close()
