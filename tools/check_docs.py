#!/usr/bin/env python3
"""Fails if a Markdown link leads nowhere, or if an ADR is missing from the index."""
import pathlib
import re
import sys

import repository

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")


def anchor(heading: str) -> str:
    """The fragment that GitHub gives to a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(markdown: str) -> set[str]:
    return {anchor(heading) for heading in HEADING.findall(FENCE.sub("", markdown))}


def links(markdown: str) -> list[str]:
    return LINK.findall(CODE.sub("", FENCE.sub("", markdown)))


def broken_link(root: pathlib.Path, page: pathlib.Path, link: str) -> str | None:
    if re.match(r"[a-z]+:", link):
        return None  # Elsewhere: tests do not use the network.
    target, _, fragment = link.partition("#")
    path = (root / page.parent / target).resolve() if target else root / page
    if not path.exists():
        return f"{page}: no such file: {link}"
    if not path.is_relative_to(root.resolve()):
        return f"{page}: leads out of the repository: {link}"
    if fragment and path.suffix == ".md" and fragment not in anchors(path.read_text()):
        return f"{page}: no such heading: {link}"
    return None


def unlisted_decisions(root: pathlib.Path) -> list[str]:
    folder = root / "docs" / "adr"
    index = folder / "README.md"
    listed = set(links(index.read_text())) if index.exists() else set()
    return [f"docs/adr/{path.name}: not listed in docs/adr/README.md"
            for path in sorted(folder.glob("[0-9]*.md")) if path.name not in listed]


def mistakes(root: pathlib.Path) -> list[str]:
    found = []
    for page in repository.files("*.md", root=root):
        for link in links((root / page).read_text()):
            if why := broken_link(root, page, link):
                found.append(why)
    return found + unlisted_decisions(root)


def main() -> int:
    found = mistakes(repository.ROOT)
    print("\n".join(found) or "docs ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
