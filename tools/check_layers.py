#!/usr/bin/env python3
"""Fails if a file includes a layer it must not know. The tables below are the architecture."""
import pathlib
import re
import sys

import repository

ALLOWED = {  # layer: layers it may include, besides itself
    "base": set(),
    "process": {"base"},
    "device": {"base"},
    "monitor": {"base", "device"},
    "carbon": {"base"},
    "c": {"base", "device", "monitor"},
    "optimizer": {"base", "device", "monitor"},
    "training": {"base", "device", "monitor", "optimizer", "plan"},
    "mpi": {"base", "optimizer"},
    "export": {"base", "device", "monitor"},
    "job": {"base", "optimizer"},
    "plan": {"base", "optimizer"},
    "store": {"base", "optimizer", "job", "plan"},
    "wire": {"base", "optimizer", "job", "plan"},
    "daemon": {"base", "device", "wire"},
    "server": {"base", "optimizer", "job", "plan", "wire", "export"},
    "client": {"base", "device", "monitor", "optimizer", "training", "job", "plan", "wire"},
    "session": {"base", "device", "monitor", "optimizer", "training", "job", "store", "client",
                "process"},
    "report": {"base"},
    "replay": {"base", "device", "monitor", "optimizer", "job", "report"},
}

# Folders of zeus/device that do not know each other. Discovery puts them together.
VENDORS = {"nvml", "amd", "rapl", "soc", "sim"}
COMPOSERS = re.compile(r"(node|discover)\w*\.(h|cc)")

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


def mistake(path: pathlib.PurePath, include: str) -> str | None:
    """Why `path`, a file below zeus/, must not include `include`; None if it may."""
    used = pathlib.PurePosixPath(include)
    if used.parts[0] != "zeus" or len(used.parts) < 3:
        return f'"{include}" is not a path from the repository root into zeus/'
    layer, used_layer = path.parts[1], used.parts[1]
    if layer not in ALLOWED:
        return f"{layer} is not a layer: add it to {pathlib.Path(__file__).name}"
    if used_layer != layer and used_layer not in ALLOWED[layer]:
        return f"{layer} must not include {used_layer}"
    if "testing" in used.parts and not is_test(path):
        return f'"{include}" is for tests'
    if layer == "device" and used_layer == "device":
        return vendor_mistake(path, used)
    return None


def mistakes(root: pathlib.Path) -> list[str]:
    found = []
    for path in repository.files("*.h", "*.cc", root=root):
        if path.parts[0] != "zeus":
            continue  # apps/, python/, tests/, bench/ and fuzz/ compose: they include everything.
        for include in INCLUDE.findall((root / path).read_text()):
            if why := mistake(path, include):
                found.append(f"{path}: {why}")
    return found


def main() -> int:
    found = mistakes(repository.ROOT)
    print("\n".join(found) or "layers ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
