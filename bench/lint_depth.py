#!/usr/bin/env python3
"""Measures how deep clang-tidy's analyser must look (docs/building.md has the results).

usage: lint_depth.py [UNIT ...]

Null dereferences are put at the end of the functions of each unit (a part of its name; without names:
some large ones), which the analyser finds only when it gets so far. A row for each number of steps that
it may take in a function: how many of them were found, and the CPU seconds of it. The preset release
must be configured.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_cpp  # noqa: E402

BUILD = ROOT / "build/release"
UNITS = ("zeus_daemon.dir/Unity/unity_0", "zeus_monitor.dir/Unity/unity_0",
         "zeus_gateway.dir/Unity/unity_0", "zeus_device.dir/Unity/unity_2")
STEPS = (75000, 25000, 10000, 5000)  # The first is what the shallow analyser takes by itself.
SHORTEST = 8  # Lines of a function that is worth it.
FOUND = re.compile(r"loaded from variable 'seeded_(\d+)'")


def seeded(text: str) -> tuple[str, int]:
    """The text with defects at the end of its functions, before a return in one line; and how many."""
    lines, count, start = [], 0, None
    for line in text.split("\n"):
        if line and not line[0].isspace() and line.endswith("{"):
            function = "(" in line or (lines and "(" in lines[-1])
            start = len(lines) if function and not line.startswith("namespace") else None
        elif line == "}" and start is not None:
            end = len(lines)
            returns = re.search(r"^  return", "\n".join(lines[-4:]), re.MULTILINE)
            if re.fullmatch(r"  return .*;", lines[-1]):
                end -= 1
            if end - start >= SHORTEST and (not returns or end < len(lines)):
                lines.insert(end, f"  {{ int* seeded_{count} = nullptr; "
                                  f"if (__COUNTER__ >= 0) *seeded_{count} = 1; }}")
                count += 1
            start = None
        lines.append(line)
    return "\n".join(lines), count


def analyse(file: pathlib.Path, flags: list[str], steps: int) -> tuple[int, float]:
    """Defects found, and CPU seconds."""
    words = ", ".join(f"-Xclang, -analyzer-config, -Xclang, {setting}"
                      for setting in ("mode=shallow", f"max-nodes={steps}"))
    config = f"{{Checks: '-*,clang-analyzer-*', ExtraArgs: [-w, {words}]}}"
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            ["clang-tidy-16", f"--config={config}", "--quiet", str(file), "--", *flags],
            cwd=BUILD, stdout=output, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if "clang-diagnostic-" in text:
        raise SystemExit(f"lint_depth.py: {file.name} does not compile:\n{text}")
    return len(set(FOUND.findall(text))), usage.ru_utime + usage.ru_stime


def main() -> int:
    names = sys.argv[1:] or UNITS
    if any(name.startswith("-") for name in names):
        raise SystemExit(__doc__)
    totals = {steps: [0, 0.0] for steps in STEPS}
    defects = 0
    with tempfile.TemporaryDirectory() as folder:
        for unit in check_cpp.units(ROOT, BUILD):
            if not any(name in str(unit.source) for name in names):
                continue
            text, count = seeded("".join(f"{path.read_text()}\n" for path in unit.members))
            defects += count
            file = pathlib.Path(folder) / f"{unit.source.parent.parent.stem}.cc"
            file.write_text(text)
            for steps, total in totals.items():
                found, seconds = analyse(file, unit.flags(), steps)
                total[0] += found
                total[1] += seconds
    print(f"| steps in a function | found of {defects} | CPU s |\n|---|---|---|")
    for steps, (found, seconds) in totals.items():
        print(f"| {steps} | {found} | {seconds:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
