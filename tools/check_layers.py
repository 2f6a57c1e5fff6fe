#!/usr/bin/env python3
"""Fails if a file includes a layer it must not know. The tables below are the architecture."""
import pathlib
import re
import sys

import repository

ALLOWED = {  # layer: the layers it includes, besides itself; exactly those that some file of it uses
    "base": set(),
    "process": {"base"},
    "http": {"base"},
    "device": {"base"},
    "metrics": {"base", "http"},
    "recording": {"base", "device"},
    "monitor": {"base", "device"},
    "ranks": {"base", "monitor"},
    "carbon": {"base", "http", "optimizer/shift"},
    "c": {"base", "client/node", "device", "monitor"},
    "optimizer": {"base"},
    "optimizer/batch_size": {"base"},
    "optimizer/budget": {"base"},
    "optimizer/clock": {"base"},
    "optimizer/pipeline": {"base"},
    "optimizer/power_limit": {"base", "device", "monitor", "optimizer"},
    "optimizer/shift": {"base"},
    "training": {"base", "device", "monitor", "optimizer", "optimizer/pipeline",
                 "optimizer/power_limit", "plan"},
    "mpi": {"base", "optimizer"},
    "export": {"base", "device", "http", "metrics", "monitor"},
    "job": {"base", "carbon", "optimizer/batch_size", "optimizer/shift"},
    "plan": {"base", "optimizer/pipeline"},
    "colosseum": {"base"},
    "budget": {"base", "optimizer/budget"},
    "store": {"base", "budget", "colosseum", "job", "plan"},
    "wire": {"base", "job", "optimizer/pipeline", "plan"},
    "wire/llm": {"base"},
    "wire/node": {"base", "device"},
    "kubernetes": {"base", "http"},
    "daemon": {"base", "device", "http", "kubernetes", "process", "wire/node"},
    "daemon/api": {"base", "budget", "daemon", "device", "export", "http", "live", "metrics", "monitor", "web", "wire/node"},
    "web": {"base", "http"},
    "fleet": {"base", "http", "web"},
    "live": {"base", "device", "http", "monitor", "web"},
    "server": {"base", "budget", "carbon", "http", "job", "metrics", "optimizer/pipeline", "plan", "web", "wire"},
    "gateway": {"base", "http", "metrics", "monitor", "optimizer/clock", "wire/llm"},
    "colosseum/api": {"base", "colosseum", "http", "metrics", "web"},
    "inference": {"base", "device", "http", "metrics"},
    "inference/benchmark": {"base", "http", "monitor", "report", "wire/llm"},
    "client": {"base", "http", "job", "monitor", "optimizer", "optimizer/pipeline", "plan", "training", "wire"},
    "client/node": {"base", "device", "http", "wire/node"},
    "session": {"base", "carbon", "device", "monitor", "optimizer", "optimizer/power_limit", "optimizer/shift", "training", "job", "store", "client",
                "client/node", "process"},
    "report": {"base"},
    "replay": {"base", "device", "job", "optimizer/batch_size", "optimizer/budget", "report"},
}

# Folders of zeus/device that do not know each other. Discovery puts them together.
VENDORS = {"nvml", "amd", "rapl", "soc", "sim"}
COMPOSERS = re.compile(r"(node|discover)\w*\.(h|cc)")

# Libraries that are not called like their folder.
LIBRARIES = {"http_server": "http", "inference_server": "inference",
             "inference_benchmark": "inference/benchmark", "collective": "optimizer",
             "batch_size": "optimizer/batch_size", "clock": "optimizer/clock",
             "pipeline": "optimizer/pipeline", "shift": "optimizer/shift", "water_filling": "optimizer/budget",
             "power_limit": "optimizer/power_limit", "llm_dialects": "wire/llm",
             "colosseum_api": "colosseum/api", "daemon_api": "daemon/api", "node_client": "client/node", "node_messages": "wire/node"}
LIBRARY = re.compile(r"zeus_library\((\w+)[^)]*?\bDEPENDS([^)]*)\)", re.DOTALL)

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def is_test(path: pathlib.PurePath) -> bool:
    return path.name.endswith("_test.cc") or "testing" in path.parts


def vendor(path: pathlib.PurePath) -> str | None:
    """The vendor folder of zeus/device/<vendor>/..., if it is one."""
    if path.parts[:2] == ("zeus", "device") and len(path.parts) > 3 and path.parts[2] in VENDORS:
        return path.parts[2]
    return None


def vendor_mistake(path: pathlib.PurePath, used: pathlib.PurePath) -> str | None:
    """Tests may mix vendors: a simulated GPU stands in for any of them."""
    if is_test(path) or vendor(used) in (None, vendor(path)):
        return None
    if vendor(path):
        return f"device/{vendor(path)} must not know device/{vendor(used)}"
    if len(path.parts) == 3 and COMPOSERS.fullmatch(path.name):
        return None
    return f"only discovery (node*.cc, discover*.cc) may include device/{vendor(used)}"


def layer(path: pathlib.PurePath) -> str:
    """zeus/job/a.h is of "job"; zeus/optimizer/pipeline/a.h is of "optimizer/pipeline"."""
    folder = "/".join(path.parts[1:3])
    return folder if len(path.parts) > 3 and folder in ALLOWED else path.parts[1]


def mistake(path: pathlib.PurePath, include: str) -> str | None:
    """Why `path`, a file below zeus/, must not include `include`; None if it may."""
    used = pathlib.PurePosixPath(include)
    if used.parts[0] != "zeus" or len(used.parts) < 3:
        return f'"{include}" is not a path from the repository root into zeus/'
    own, other = layer(path), layer(used)
    if own not in ALLOWED:
        return f"{own} is not a layer: add it to {pathlib.Path(__file__).name}"
    if other != own and other not in ALLOWED[own]:
        return f"{own} must not include {other}"
    if "testing" in used.parts and not is_test(path):
        return f'"{include}" is for tests'
    if own == other == "device":
        return vendor_mistake(path, used)
    return None


def includes(root: pathlib.Path) -> list[tuple[pathlib.Path, str]]:
    """Each include of each file below zeus/. The other folders compose: they may include everything."""
    return [(path, include) for path in repository.files("*.h", "*.cc", root=root)
            if path.parts[0] == "zeus" for include in INCLUDE.findall((root / path).read_text())]


def mistakes(root: pathlib.Path) -> list[str]:
    return [f"{path}: {why}" for path, include in includes(root) if (why := mistake(path, include))]


def linked(root: pathlib.Path) -> list[str]:
    """Libraries that link a layer which their files must not include: its code would come along."""
    found = []
    for path in repository.files("CMakeLists.txt", root=root):
        for name, depends in LIBRARY.findall((root / path).read_text()):
            own = LIBRARIES.get(name, name)
            others = {LIBRARIES.get(other, other) for other in re.findall(r"zeus::(\w+)", depends)}
            found += [f"{path}: {own} must not link {other}"
                      for other in sorted(others - ALLOWED.get(own, set()))]
    return found


def unused(root: pathlib.Path) -> list[str]:
    """Entries of the table that no include needs: the table says what is used, not what was once."""
    used = {(layer(path), layer(pathlib.PurePosixPath(include))) for path, include in includes(root)}
    return [f"{pathlib.Path(__file__).name}: {own} does not use {other}, take it out of the table"
            for own, others in ALLOWED.items() for other in sorted(others) if (own, other) not in used]


def undocumented(root: pathlib.Path) -> list[str]:
    """Layers whose row in docs/architecture.md says something else than the table here."""
    text = (root / "docs/architecture.md").read_text()
    rows = {cells[1].strip(" `"): cells[3].strip() for line in text.splitlines()
            if len(cells := line.split("|")) > 4}
    expected = {own: ", ".join(sorted(others)) or "no other layer" for own, others in ALLOWED.items()}
    return [f'docs/architecture.md: the row of `zeus/{own}` must say "{text}" under "may know"'
            for own, text in expected.items() if rows.get(f"zeus/{own}") != text]


def main() -> int:
    found = [line for check in (mistakes, linked, unused, undocumented) for line in check(repository.ROOT)]
    print("\n".join(found) or "layers ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
