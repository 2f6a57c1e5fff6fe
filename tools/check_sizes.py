#!/usr/bin/env python3
"""Fails if a source file is too long to be read in one sitting. Aim for 80 to 300 lines."""
import pathlib
import sys

import repository

LIMIT = 700
SOURCES = ("*.h", "*.cc", "*.c", "*.py", "*.pyi", "*.sh", "*.ts", "*.tsx", "*.css", "*.mjs", "*.cmake", "CMakeLists.txt", "dev")

# path: why it may be longer. For generated data only; code is split instead.
LONGER: dict[str, str] = {}


def mistakes(root: pathlib.Path, longer: dict[str, str]) -> list[str]:
    lines = {str(path): len((root / path).read_text().splitlines())
             for path in repository.files(*SOURCES, root=root)}
    found = [f"{path}: {count} lines, the limit is {LIMIT}: split it"
             for path, count in lines.items() if count > LIMIT and path not in longer]
    found += [f"{path}: no longer needs its exception in check_sizes.py"
              for path in longer if lines.get(path, 0) <= LIMIT]
    return found


def main() -> int:
    found = mistakes(repository.ROOT, LONGER)
    print("\n".join(found) or "sizes ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
