#!/usr/bin/env python3
"""Runs clang-tidy over our .cc files in parallel, skipping those that were clean before.

A file is skipped when nothing that can change the verdict has changed: its text, the text of every
header of ours that it includes (directly or not), its compile command, the checks, clang-tidy. All
checkouts of a user share what is known, as they share what ccache compiled.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import repository

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)

MONTHS = 60 * 24 * 3600

# Clang refuses the headers of torch as C++20: files that include it are compiled by GCC alone.
TORCH = re.compile(r"^\s*#\s*include\s+<torch/", re.MULTILINE)


def worth_checking(source: pathlib.Path) -> bool:
    """Tests and benchmarks are straight-line code made of macros, compiled with -Werror and run
    under sanitizers: a third of the time for hardly a finding."""
    if source.name.endswith("_test.cc") or source.parent.name == "bench":
        return False
    return not TORCH.search(source.read_text())


def closure(root: pathlib.Path, start: pathlib.Path) -> list[pathlib.Path]:
    """`start` and every file of ours that it includes, sorted."""
    seen, todo = set(), [start]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in INCLUDE.findall(path.read_text(errors="replace")):
            todo += [found for found in (root / name, path.parent / name) if found.is_file()][:1]
    return sorted(seen)


def fingerprint(root: pathlib.Path, source: pathlib.Path, *settings: str) -> str:
    digest = hashlib.sha256()
    for setting in settings:
        digest.update(setting.encode() + b"\0")
    for path in closure(root, source):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def compile_commands(root: pathlib.Path, build: pathlib.Path) -> dict[pathlib.Path, str]:
    """By file, without the place of the checkout."""
    database = json.loads((build / "compile_commands.json").read_text())
    return {pathlib.Path(entry["file"]): entry["command"].replace(f"{root}", ".")
            for entry in database}


def cache_folder() -> pathlib.Path:
    """Of stamps, which say that a file was clean. Those that nobody asked for in months go."""
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(home) / "zeus-clang-tidy"
    folder.mkdir(parents=True, exist_ok=True)
    for stamp in folder.iterdir():
        if stamp.stat().st_mtime < time.time() - MONTHS:
            stamp.unlink(missing_ok=True)
    return folder


def tidy(tool: str, build: pathlib.Path, source: pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run([tool, "-p", str(build), "--quiet", str(source)], capture_output=True,
                          text=True)


def check(todo: dict[pathlib.Path, pathlib.Path], tool: str, build: pathlib.Path) -> int:
    """Runs over {source: stamp}; leaves a stamp for each clean source. Returns the failures."""
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {pool.submit(tidy, tool, build, source): source for source in todo}
        for run in concurrent.futures.as_completed(runs):
            done, source = run.result(), runs[run]
            if done.returncode == 0:
                todo[source].touch()
                continue
            failures += 1
            print(done.stdout or done.stderr, flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", default="clang-tidy-16")
    parser.add_argument("--build", type=pathlib.Path, default=repository.ROOT / "build/release")
    parser.add_argument("only", nargs="*", help="files or folders to check; all without them")
    options = parser.parse_args()

    root = repository.ROOT
    cache = cache_folder()
    version = subprocess.run([options.tool, "--version"], capture_output=True, text=True).stdout
    settings = (version, (root / ".clang-tidy").read_text())
    commands = compile_commands(root, options.build)
    sources = [root / path for path in repository.files("*.cc")
               if root / path in commands and worth_checking(root / path)]

    if options.only:
        wanted = [pathlib.Path(path).resolve() for path in options.only]
        sources = [source for source in sources
                   if any(source.is_relative_to(path) for path in wanted)]
    stamps = {source: cache / fingerprint(root, source, *settings, commands[source])
              for source in sources}
    todo = {source: stamp for source, stamp in stamps.items() if not stamp.exists()}
    for stamp in set(stamps.values()) - set(todo.values()):
        stamp.touch()
    print(f"clang-tidy: {len(todo)} of {len(sources)} files to check", flush=True)
    failures = check(todo, options.tool, options.build)
    print(f"clang-tidy: {failures} files with findings" if failures else "clang-tidy ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
