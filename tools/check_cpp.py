#!/usr/bin/env python3
"""Checks the C++ code: clang-tidy finds nothing, and every file compiles without its neighbours.

clang-tidy looks at the units that the build compiles: several .cc files at once, which costs a fifth
of looking at each. It gets the text of those files as one file, since its analyser looks only into
the file that it is given: told to look into #included files, too, it analyses the system's headers as
well, which takes four times as long. Such a unit hides an #include that a file forgot, so each .cc
file of a unit, and each header of several .cc files that is not the first include of its own, is also
parsed alone, with the help of precompiled headers (see PRECOMPILED).
Tests are left out: they are straight-line code made of macros, compiled with -Werror and run under sanitizers.

Only files are looked at whose text, or a header of ours that they include, changed since a commit:
$ZEUS_LINT_BASE, else where this branch left its upstream, else fifty commits ago. --all looks at
every file. A file that was found clean before is skipped: all checkouts of a user share what is
known, as they share what ccache compiled.
"""
import argparse
import bisect
import collections
import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

import repository

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SYSTEM_INCLUDE = re.compile(r"^\s*#\s*include\s+<([^>]+)>", re.MULTILINE)

# Clang refuses the headers of torch as C++20: files that include it are compiled by GCC alone.
TORCH = re.compile(r"^\s*#\s*include\s+<torch/", re.MULTILINE)

# Sets of headers that are parsed once for many files. A file gets the first set whose headers it all
# includes, itself or through headers of ours: so a set never lends it an #include that it forgot.
RESULT, UNITS, FMT, JSON = "zeus/base/result.h", "zeus/base/units.h", "fmt/format.h", "zeus/base/json.h"
PRECOMPILED = ((RESULT, UNITS, FMT, JSON), (RESULT, JSON), (RESULT, UNITS, FMT), (RESULT, FMT),
               (RESULT, UNITS), (RESULT,))

COMMITS_LOOKED_BACK = 50
STAMP_LIFETIME = 60 * 24 * 3600


@dataclasses.dataclass(frozen=True)
class Unit:
    """A unit that the build compiles at once: one .cc file, or a generated file that includes several."""
    source: pathlib.Path
    members: tuple[pathlib.Path, ...]
    command: str

    def flags(self) -> list[str]:
        """Those of the compiler, without its name and the names of input and output."""
        words = shlex.split(self.command)
        start = next(i for i, word in enumerate(words)
                     if re.fullmatch(r".*(clang\+\+|[gc]\+\+)(-\d+)?", word)) + 1
        kept, skip = [], False
        for word in words[start:]:
            if skip or word in ("-c", str(self.source)):
                skip = False
            elif word == "-o":
                skip = True
            else:
                kept.append(word)
        return kept


@dataclasses.dataclass(frozen=True)
class Task:
    """One run of clang over one file. The text of the inputs, and of what they include, and the
    settings decide how it ends."""
    title: str
    command: tuple[str, ...]
    inputs: tuple[pathlib.Path, ...]
    settings: tuple[str, ...] = ()
    joined: pathlib.Path | None = None    # The command reads this file, made of the text of the inputs.
    precompiled: tuple[str, ...] = ()     # Headers that a precompiled one may stand for.


def worth_tidying(source: pathlib.Path) -> bool:
    """Tests and benchmarks would take a third of the time, for hardly a finding."""
    return not source.name.endswith("_test.cc") and source.parent.name not in ("bench", "testing")


@functools.cache
def includes(root: pathlib.Path, path: pathlib.Path) -> tuple[pathlib.Path, ...]:
    found = []
    for name in INCLUDE.findall(path.read_text(errors="replace")):
        found += [place for place in (root / name, path.parent / name) if place.is_file()][:1]
    return tuple(found)


def closure(root: pathlib.Path, *start: pathlib.Path) -> list[pathlib.Path]:
    """These files and every file of ours that they include, sorted."""
    seen, todo = set(), list(start)
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo += includes(root, path)
    return sorted(seen)


def fingerprint(root: pathlib.Path, task: Task, *settings: str) -> str:
    digest = hashlib.sha256()
    for setting in (*settings, *task.settings, *task.command):
        digest.update(setting.replace(str(root), ".").encode() + b"\0")
    for path in closure(root, *task.inputs):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def units(root: pathlib.Path, build: pathlib.Path) -> list[Unit]:
    ours = {root / path for path in repository.files("*.cc", root=root)}
    found = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        members = (source,) if source in ours else tuple(
            pathlib.Path(name) for name in INCLUDE.findall(source.read_text())
            if pathlib.Path(name) in ours) if source.name.startswith("unity_") else ()
        if members and not any(TORCH.search(path.read_text()) for path in members):
            found.append(Unit(source, members, entry["command"]))
    return found


def joined_file(root: pathlib.Path, build: pathlib.Path, unit: Unit) -> pathlib.Path:
    name = str(unit.source.with_suffix(".cc").relative_to(root)).replace("/", "_")
    return build / "lint" / name


def folder_checks(root: pathlib.Path, path: pathlib.Path) -> list[str]:
    """Arguments for the checks that a .clang-tidy in a folder of the file adds to the root's, which
    clang-tidy itself would find only beside the file that it reads."""
    folders = [folder for folder in path.parents if folder != root and root in folder.parents]
    texts = [(folder / ".clang-tidy").read_text() for folder in reversed(folders)
             if (folder / ".clang-tidy").is_file()]
    return [f"--checks={checks}" for text in texts
            for checks in re.findall(r"^Checks: '([^']*)'", text, re.MULTILINE)]


def precompiled_headers(root: pathlib.Path, path: pathlib.Path) -> tuple[str, ...]:
    files = [file for file in closure(root, path) if file != path]
    included = {str(file.relative_to(root)) for file in files}
    for file in (path, *files):
        included.update(SYSTEM_INCLUDE.findall(file.read_text(errors="replace")))
    return next((headers for headers in PRECOMPILED if included.issuperset(headers)), ())


def tasks(root: pathlib.Path, build: pathlib.Path) -> list[Task]:
    found, alone = [], {}
    checks = (root / ".clang-tidy").read_text() if (root / ".clang-tidy").exists() else ""
    for unit in units(root, build):
        if not any(worth_tidying(path) for path in unit.members):
            continue
        joined = None if len(unit.members) == 1 else joined_file(root, build, unit)
        found.append(Task(f"clang-tidy {unit.source}", (
            "clang-tidy-16", f"--config-file={root / '.clang-tidy'}", "--quiet",
            *folder_checks(root, unit.members[0]), str(joined or unit.source), "--",
            *unit.flags()), unit.members, (checks,), joined))
        for path in unit.members:
            alone.setdefault(path, unit)
    proven = {include for path in alone for include in includes(root, path)[:1]
              if include.stem == path.stem}
    users, shared = {}, {}
    for source, unit in alone.items():
        for path in closure(root, source):
            if path.suffix == ".h" and path not in proven and path in users:
                shared[path] = unit
            users.setdefault(path, unit)
    hidden = {path: unit for path, unit in alone.items() if len(unit.members) > 1}
    for path, unit in sorted((hidden | shared).items()):
        found.append(Task(f"{path} alone", (
            "clang++-16", *unit.flags(), "-fsyntax-only", "-w", "-x", "c++", str(path)), (path,),
            precompiled=precompiled_headers(root, path)))
    return found


def git(root: pathlib.Path, *words: str) -> str | None:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def base_commit(root: pathlib.Path) -> str | None:
    """Where the change to check begins; None: nothing is known, so everything is checked."""
    if chosen := os.environ.get("ZEUS_LINT_BASE"):
        if not (base := git(root, "merge-base", "HEAD", chosen)):
            raise SystemExit(f"ZEUS_LINT_BASE: there is no commit {chosen!r} to compare with")
        return base
    fork = git(root, "merge-base", "HEAD", "@{upstream}")
    if fork and fork != git(root, "rev-parse", "HEAD"):
        return fork
    return git(root, "rev-parse", "--verify", "--quiet", f"HEAD~{COMMITS_LOOKED_BACK}")


def changed(root: pathlib.Path, base: str) -> set[pathlib.Path]:
    names = (git(root, "diff", "--name-only", base) or "").splitlines()
    names += (git(root, "ls-files", "--others", "--exclude-standard") or "").splitlines()
    return {root / name for name in names}


def touched(root: pathlib.Path, task: Task, change: set[pathlib.Path]) -> bool:
    return root / ".clang-tidy" in change or not change.isdisjoint(closure(root, *task.inputs))


def cache_folder() -> pathlib.Path:
    """A folder of stamps, each of which says that a file was clean. Old ones are removed."""
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = pathlib.Path(home) / "zeus-lint"
    folder.mkdir(parents=True, exist_ok=True)
    for stamp in folder.iterdir():
        if stamp.stat().st_mtime < time.time() - STAMP_LIFETIME:
            stamp.unlink(missing_ok=True)
    return folder


def join(task: Task) -> None:
    task.joined.parent.mkdir(exist_ok=True)
    task.joined.write_text("".join(f"{path.read_text()}\n" for path in task.inputs))


def name_inputs(task: Task, output: str) -> str:
    """Findings in a joined file name the file and the line that the text came from."""
    starts, line = [], 1
    for path in task.inputs:
        starts.append(line)
        line += path.read_text().count("\n") + 1

    def origin(match: re.Match) -> str:
        index = bisect.bisect_right(starts, int(match[1])) - 1
        return f"{task.inputs[index]}:{int(match[1]) - starts[index] + 1}:"
    return re.sub(rf"{re.escape(str(task.joined))}:(\d+):", origin, output)


class PrecompiledHeaders:
    """Makes each set of headers once for the flags of its users. Thread-safe."""

    def __init__(self, build: pathlib.Path):
        self.folder = build / "lint"
        self.lock = threading.Lock()
        self.made: dict[tuple, concurrent.futures.Future] = {}

    def flags(self, task: Task) -> tuple[str, ...]:
        if not task.precompiled:
            return ()
        compiler = task.command[:task.command.index("-fsyntax-only")]
        key = (compiler, task.precompiled)
        with self.lock:
            mine = key not in self.made
            future = self.made.setdefault(key, concurrent.futures.Future())
            number = len(self.made)
        if mine:
            try:
                future.set_result(self.make(compiler, task.precompiled, number))
            except OSError as error:
                future.set_exception(error)
        made = future.result()
        return ("-include-pch", str(made)) if made else ()

    def make(self, compiler: tuple[str, ...], headers: tuple[str, ...],
             number: int) -> pathlib.Path | None:
        """None where a header cannot be compiled: then its users say why."""
        self.folder.mkdir(exist_ok=True)
        header = self.folder / f"precompiled_{number}.h"
        header.write_text("".join(f"#include <{name}>\n" for name in headers))
        made = header.with_suffix(".pch")
        done = subprocess.run([*compiler, "-w", "-fpch-instantiate-templates", "-x",
                               "c++-header", str(header), "-o", str(made)],
                              cwd=self.folder.parent, capture_output=True)
        return made if done.returncode == 0 else None


@dataclasses.dataclass(frozen=True)
class Outcome:
    status: int
    output: str
    seconds: float    # CPU time.


def run(task: Task, build: pathlib.Path, headers: PrecompiledHeaders) -> Outcome:
    if task.joined:
        join(task)
    with tempfile.TemporaryFile("w+") as found, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([*task.command, *headers.flags(task)], cwd=build, stdout=found,
                                   stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        for stream in (found, said):
            stream.seek(0)
        output = found.read() or said.read()
    return Outcome(process.returncode, name_inputs(task, output) if task.joined else output,
                   usage.ru_utime + usage.ru_stime)


def check(todo: dict[Task, pathlib.Path], build: pathlib.Path) -> int:
    """Runs {task: stamp}; leaves a stamp for each that finds nothing. Returns the failures."""
    failures = 0
    seconds = collections.Counter()
    headers = PrecompiledHeaders(build)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {pool.submit(run, task, build, headers): task for task in todo}
        for number, finished in enumerate(concurrent.futures.as_completed(runs), 1):
            outcome, task = finished.result(), runs[finished]
            seconds["alone" if "-fsyntax-only" in task.command else "clang-tidy"] += outcome.seconds
            if outcome.status == 0:
                todo[task].touch()
            else:
                failures += 1
                print(f"{task.title}\n{outcome.output}", flush=True)
            if number % 50 == 0:
                print(f"c++: {number} of {len(todo)} checked", flush=True)
    if todo:
        print(f"c++: {seconds['clang-tidy']:.0f} CPU s of clang-tidy over units, "
              f"{seconds['alone']:.0f} of files alone", flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=repository.ROOT / "build/release")
    parser.add_argument("--all", action="store_true", help="every file, whatever changed")
    options = parser.parse_args()

    root, build = repository.ROOT, options.build.resolve()
    if not (build / "compile_commands.json").exists():
        raise SystemExit(f"check_cpp.py: {build} is not configured: run ./dev build first")
    chosen = tasks(root, build)
    scope = "all files"
    if not options.all and (base := base_commit(root)):
        change = changed(root, base)
        chosen = [task for task in chosen if touched(root, task, change)]
        scope = f"what changed since {base[:10]} (--all: everything)"
    cache = cache_folder()
    version = subprocess.run(["clang-tidy-16", "--version"], capture_output=True, text=True).stdout
    stamps = {task: cache / fingerprint(root, task, version) for task in chosen}
    todo = {task: stamp for task, stamp in stamps.items() if not stamp.exists()}
    for stamp in set(stamps.values()) - set(todo.values()):
        stamp.touch()
    print(f"c++: {len(todo)} of {len(chosen)} checks to do: {scope}", flush=True)
    failures = check(todo, build)
    print(f"c++: {failures} checks failed" if failures else "c++ ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
