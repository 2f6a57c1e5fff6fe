"""Which files belong to the repository: the one question that every check asks first."""
import fnmatch
import pathlib
import subprocess

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
