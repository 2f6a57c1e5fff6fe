"""Runs the Python blocks of a Markdown page, in order, in one namespace.

A block after a line `<!-- not run: why -->` is left out. Errors name the line of the page.
"""

import pathlib
import re
import sys
from typing import Iterator, NamedTuple

FENCE = re.compile(r"^( *)```(\w*)\s*$")
NOT_RUN = re.compile(r"^\s*<!-- not run: .+ -->\s*$")


class Block(NamedTuple):
    """Lines of Python, and where they begin."""

    line: int
    code: str
    is_run: bool


def blocks(text: str) -> Iterator[Block]:
    lines = text.splitlines()
    before = ""
    position = 0
    while position < len(lines):
        fence = FENCE.match(lines[position])
        if not fence:
            before = lines[position] if lines[position].strip() else before
            position += 1
            continue
        end = position + 1
        while not lines[end].strip().startswith("```"):
            end += 1
        if fence[2] == "python":
            indent = len(fence[1])
            code = "\n".join(line[indent:] for line in lines[position + 1:end])
            yield Block(position + 1, code, not NOT_RUN.match(before))
        before = ""
        position = end + 1


def main() -> int:
    page = pathlib.Path(sys.argv[1])
    namespace = {"__name__": "__main__"}
    ran, left_out = 0, 0
    for block in blocks(page.read_text()):
        if not block.is_run:
            left_out += 1
            continue
        # Lines of the traceback are then those of the page.
        code = compile("\n" * block.line + block.code + "\n", str(page), "exec")
        exec(code, namespace)
        ran += 1
    print(f"docs_page: {ran} blocks ran, {left_out} were left out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
