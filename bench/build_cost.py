#!/usr/bin/env python3
"""Measures the cost of building Zeus: headers, a whole build, an edit (docs/building.md has the results).

usage: build_cost.py headers | build [DIRECTORY] | edits

headers  CPU seconds to compile a file that includes only this.
build    A whole build of the release preset without ccache in DIRECTORY (build/cost, removed before
         and after): units, CPU seconds, the most memory that one compilation took, sizes.
edits    Seconds from a changed file to a tested build of the preset release, which must be built.
"""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = ["-std=c++20", f"-I{ROOT}", "-DFMT_SHARED"]
HEADERS = (
    ("the usual standard headers", "-O2", "<string> <vector> <map> <functional> <filesystem> "
     "<optional> <variant> <chrono> <algorithm>"),
    ("fmt", "-O2", "<fmt/format.h>"),
    ("zeus/base/json_fwd.h", "-O2", '"zeus/base/json_fwd.h"'),
    ("zeus/base/json.h", "-O2", '"zeus/base/json.h"'),
    ("cpp-httplib", "-O2", "<httplib.h>"),
    ("CLI11", "-O2", "<CLI/CLI.hpp>"),
    ("GoogleMock, as tests are compiled", "-O0", "<gmock/gmock.h>"),
    ("Boost.Beast", "-O2", "<boost/beast.hpp> <boost/asio.hpp>"),
)
# Each edited file, and the test program that proves the edit.
EDITS = (
    ("zeus/monitor/energy_curve.cc", "monitor_test"),
    ("apps/zeus/run/report.cc", "cli_test"),
    ("zeus/base/units.h", "cli_test"),  # Compiles nearly everything again.
)


def cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def compile_time(level: str, includes: str) -> float:
    text = "".join(f"#include {name}\n" for name in includes.split())
    before = cpu_of_children()
    subprocess.run(["g++", *FLAGS, level, "-c", "-x", "c++", "-", "-o", os.devnull],
                   input=text, text=True, check=True)
    return cpu_of_children() - before


def headers() -> None:
    print("| included | CPU s |\n|---|---|")
    for title, level, includes in HEADERS:
        print(f"| {title} | {min(compile_time(level, includes) for _ in range(3)):.1f} |")


def build(directory: pathlib.Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    quiet = {"stdout": subprocess.DEVNULL, "check": True}
    subprocess.run(["cmake", "--preset", "release", "-B", directory], cwd=ROOT, **quiet)
    units = json.loads((directory / "compile_commands.json").read_text())
    before, start = cpu_of_children(), time.monotonic()
    subprocess.run(["ninja", "-C", directory], env={**os.environ, "CCACHE_DISABLE": "1"}, **quiet)
    print(f"units: {len(units)}")
    print(f"CPU seconds: {cpu_of_children() - before:.0f}")
    print(f"seconds: {time.monotonic() - start:.0f}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"most memory of one process: {peak / 1024:.0f} MiB")
    for name in ("bin/zeus", "lib/libzeus.so.0.1.0"):
        print(f"{name}: {(directory / name).stat().st_size / 1e6:.1f} MB")
    shutil.rmtree(directory)


def edits() -> None:
    tree = ROOT / "build/release"
    if not (tree / "build.ninja").exists():
        raise SystemExit("build_cost.py: build/release is not there: ./dev build first")
    print("| edited | CPU s | s |\n|---|---|---|")
    for name, program in EDITS:
        path = ROOT / name
        before = path.read_text()
        try:
            path.write_text(f"{before}static_assert({time.time_ns()} > 0);\n")
            cpu, start = cpu_of_children(), time.monotonic()
            subprocess.run(["ninja", "-C", tree, program], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([tree / "tests" / program], check=True, stdout=subprocess.DEVNULL)
            print(f"| `{name}` | {cpu_of_children() - cpu:.0f} | {time.monotonic() - start:.0f} |",
                  flush=True)
        finally:
            path.write_text(before)


def main() -> int:
    words = sys.argv[1:]
    if words == ["headers"]:
        headers()
    elif words[:1] == ["build"] and len(words) <= 2:
        build(pathlib.Path(words[1]).resolve() if words[1:] else ROOT / "build/cost")
    elif words == ["edits"]:
        edits()
    else:
        raise SystemExit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
