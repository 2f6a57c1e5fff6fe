"""Which files belong to the repository, the question that every check asks first, and pages that are made from
what the program says."""
import argparse
import fnmatch
import pathlib
import subprocess
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOT_OURS = {".git", "build", "__pycache__"}


def files(*patterns: str, root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """Paths, relative to root, whose name matches a pattern: tracked ones and new ones alike."""
    return [path for path in _all_files(root)
            if any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns)]


def _all_files(root: pathlib.Path) -> list[pathlib.Path]:
    if not (root / ".git").exists():  # A source archive.
        return sorted(path.relative_to(root) for path in root.rglob("*")
                      if path.is_file() and not NOT_OURS & set(path.relative_to(root).parts))
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, check=True, capture_output=True, text=True).stdout
    names = sorted(set(filter(None, listing.split("\0"))))
    return [pathlib.Path(name) for name in names if (root / name).is_file()]


def write_or_check(name: str, page: str, description: str | None,
                   reference: typing.Callable[[str], str]) -> int:
    """The main program of a tool that makes a page from what the program says; the exit code."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--zeus", default=str(ROOT / "build/release/bin/zeus"))
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / page)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()

    text = reference(options.zeus)
    if not options.check:
        options.output.write_text(text, encoding="utf-8")
        return 0
    if options.output.exists() and options.output.read_text(encoding="utf-8") == text:
        print(f"{name} ok")
        return 0
    print(f"{options.output}: does not match the program: run ./dev docs --write")
    return 1
