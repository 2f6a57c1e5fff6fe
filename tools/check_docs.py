#!/usr/bin/env python3
"""Fails if a Markdown link, or the name of a source file in a page or a comment, leads nowhere, if an
ADR is missing from the index, if a folder of zeus/ has no README, or if a comment begins without a subject."""
import pathlib
import re
import sys

import repository

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*\s*$", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
SOURCE = re.compile(r"`((?:[\w-]+/)*\w+\.(?:h|cc))`")
COMMENT = re.compile(r"//.*?\b((?:zeus|apps|studies)/[\w/]+\.(?:h|cc))\b")
# Comments that begin so are riddles: "Of both.", "Who is too many gets none."
RIDDLE = re.compile(r"(?:Of|What|Who|Whose|Whoever|Nobody|Somebody)\b")
EXAMPLES = {"x_test.cc", "page_template.cc", "application_files.cc"}  # A stand-in, and files that are made.


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


def unknown_sources(root: pathlib.Path) -> list[str]:
    """Names of files that are not there any more. Decisions and the changelog tell of the past."""
    known = {str(path) for path in repository.files("*.h", "*.cc", root=root)}
    ends = {path[at + 1:] for path in known for at in [i for i, c in enumerate(path) if c == "/"]} | known
    found = []
    for page in repository.files("*.md", root=root):
        if page.parts[:2] != ("docs", "adr") and page.name != "CHANGELOG.md":
            found += [f"{page}: no such file: {name}" for name in
                      SOURCE.findall(FENCE.sub("", (root / page).read_text()))
                      if name not in ends and name not in EXAMPLES]
    for path in repository.files("*.h", "*.cc", "*.ts", root=root):
        found += [f"{path}: no such file: {name}" for name in COMMENT.findall((root / path).read_text())
                  if name not in known]
    return found


def folders_without_readme(root: pathlib.Path) -> list[str]:
    """Folders called testing belong to the one above them."""
    folders = {path.parent for path in repository.files("*.h", "*.cc", root=root)
               if path.parts[0] == "zeus" and "testing" not in path.parts}
    return [f"{folder}: has no README.md: say what it is for and where to start"
            for folder in sorted(folders) if not (root / folder / "README.md").exists()]


def opening(line: str, mark: str, goes_on: bool) -> str:
    """The text with which a comment in this line begins; empty if none begins here."""
    text = line.strip()
    if text.startswith(mark):
        return "" if goes_on else text.lstrip(mark).lstrip()
    if text.startswith('"""'):
        return text[3:]
    return line.rsplit(f"  {mark} ", 1)[1] if f"  {mark} " in line else ""


def riddles(root: pathlib.Path) -> list[str]:
    found = []
    for path in repository.files("*.h", "*.cc", "*.c", "*.ts", "*.py", root=root):
        mark = "#" if path.suffix == ".py" else "//"
        goes_on = False
        for number, line in enumerate((root / path).read_text().splitlines(), 1):
            text = opening(line, mark, goes_on)
            goes_on = line.strip().startswith(mark)
            if RIDDLE.match(text):
                found.append(f"{path}:{number}: a comment is a sentence with a subject: {text[:60]}")
    return found


def mistakes(root: pathlib.Path) -> list[str]:
    found = []
    for page in repository.files("*.md", root=root):
        for link in links((root / page).read_text()):
            if why := broken_link(root, page, link):
                found.append(why)
    return (found + unlisted_decisions(root) + unknown_sources(root) + folders_without_readme(root)
            + riddles(root))


def main() -> int:
    found = mistakes(repository.ROOT)
    print("\n".join(found) or "docs ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
