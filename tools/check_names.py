#!/usr/bin/env python3
"""Fails if two headers define a type of the same name in the same namespace.

Each compiles alone, and a program that links both gets one of them for either: the compiler need not
tell. Types in anonymous namespaces, inside classes, and forward declarations do not count.
"""
import collections
import pathlib
import re
import sys

import repository

NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.MULTILINE)
TYPE = re.compile(r"^(?:template <[^>]*>\n)?(?:struct|class|enum class|enum|union)"
                  r"(?: \[\[\w+\]\])? (\w+)(?!::)\b[^;{]*\{", re.MULTILINE)


def types(text: str) -> list[str]:
    """Full names of the types that the text of a header defines."""
    spaces = [(found.start(), found.group(1)) for found in NAMESPACE.finditer(text)]
    names = []
    for found in TYPE.finditer(text):
        inside = [name for start, name in spaces if start < found.start()]
        names.append("::".join([inside[-1] if inside else "", found.group(1)]))
    return names


def duplicates(root: pathlib.Path) -> list[str]:
    places = collections.defaultdict(list)
    for path in repository.files("*.h", root=root):
        for name in set(types((root / path).read_text())):
            places[name].append(str(path))
    return [f"{name} is defined in {' and in '.join(where)}: rename one of them"
            for name, where in sorted(places.items()) if len(where) > 1]


def main() -> int:
    found = duplicates(repository.ROOT)
    print("\n".join(found) or "names ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
