#!/usr/bin/env python3
"""Fails if the list of public headers (cmake/public_headers.cmake) and docs/api.md differ."""
import pathlib
import re
import sys

import repository

LISTED = re.compile(r"^  (zeus/\S+\.h)\)?$", re.MULTILINE)
DOCUMENTED = re.compile(r"^\| `(zeus/\S+\.h)` \| (.*) \|$", re.MULTILINE)


def mistakes(root: pathlib.Path) -> list[str]:
    listed = LISTED.findall((root / "cmake/public_headers.cmake").read_text())
    documented = dict(DOCUMENTED.findall((root / "docs/api.md").read_text()))
    found = [f"{path} is listed twice" for path in sorted(set(listed)) if listed.count(path) > 1]
    found += [f"{path} is public and does not exist" for path in listed if not (root / path).is_file()]
    found += [f"{path} is public: docs/api.md must say what it is for"
              for path in listed if not documented.get(path, "").strip()]
    found += [f"{path} is in docs/api.md and not public" for path in documented if path not in listed]
    return found


def main() -> int:
    found = mistakes(repository.ROOT)
    print("\n".join(found) or "api ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
