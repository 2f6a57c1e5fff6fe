"""Makes the wheel (PEP 517): builds with CMake, and takes along what the binaries need of the system.

    python3 -m build --no-isolation --skip-dependency-check --wheel python   # or ./dev wheel

`--config-setting=build-dir=DIR` names the CMake tree. Without it, build/release is used if it was
made for this interpreter; otherwise build/wheel/cmake is configured.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from typing import Any

from wheel.wheelfile import WheelFile

import bundled_libraries

try:
    import tomllib
except ImportError:  # Python before 3.11
    import tomli as tomllib

PYTHON = pathlib.Path(__file__).resolve().parent
ROOT = PYTHON.parent
TARGETS = ["zeus_python", "zeus", "nvml_simulator"]
Settings = "dict[str, Any] | None"


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return []


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    tree = _built_tree(config_settings)
    with tempfile.TemporaryDirectory(prefix="zeus-wheel-") as folder:
        staging = pathlib.Path(folder)
        _run("cmake", "--install", tree, "--component", "python", "--strip", "--prefix", staging)
        _files_instead_of_links(staging)
        libraries = bundled_libraries.bundle(staging / "zeus")
        return _packed(staging, pathlib.Path(wheel_directory), libraries)


def build_editable(
    wheel_directory: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """The package of the build tree, which has links to the sources."""
    tree = _built_tree(config_settings)
    with tempfile.TemporaryDirectory(prefix="zeus-wheel-") as folder:
        staging = pathlib.Path(folder)
        (staging / "__editable__.zeus_energy.pth").write_text(f"{tree / 'python'}\n")
        return _packed(staging, pathlib.Path(wheel_directory), [])


# --- building ---


def _run(*command: str | os.PathLike[str]) -> None:
    subprocess.run([os.fspath(part) for part in command], check=True, stdout=sys.stderr)


def _built_tree(settings: dict[str, Any] | None) -> pathlib.Path:
    tree = _tree(settings or {})
    if not (tree / "CMakeCache.txt").exists():
        _run("cmake", "-S", ROOT, "-B", tree, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
             "-DCMAKE_UNITY_BUILD=ON",
             "-DZEUS_TESTS=OFF", "-DZEUS_BENCHMARKS=OFF", f"-DZEUS_PYTHON={sys.executable}")
    _run("cmake", "--build", tree, "--target", *TARGETS)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    if not (tree / "python/zeus" / f"_core{suffix}").exists():
        raise SystemExit(f"{tree} is not for Python {sysconfig.get_python_version()}: "
                         "name another one with --config-setting=build-dir=DIR")
    return tree


def _tree(settings: dict[str, Any]) -> pathlib.Path:
    if named := settings.get("build-dir"):
        return pathlib.Path(named).resolve()
    release = ROOT / "build/release"
    cache = release / "CMakeCache.txt"
    if cache.exists():
        found = re.search(r"^ZEUS_PYTHON:\w+=(.+)$", cache.read_text(), re.MULTILINE)
        if found and os.path.realpath(found[1]) == os.path.realpath(sys.executable):
            return release
    return ROOT / "build/wheel/cmake"


def _files_instead_of_links(staging: pathlib.Path) -> None:
    """libzeus.so.0.1 itself, not a link to libzeus.so.0.1.0: a wheel has no links."""
    for link in [path for path in staging.rglob("*") if path.is_symlink()]:
        os.replace(link.resolve(strict=True), link)


# --- packing ---


def _packed(
    staging: pathlib.Path, destination: pathlib.Path, libraries: list[bundled_libraries.Library]
) -> str:
    with open(PYTHON / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    name = f"{project['name'].replace('-', '_')}-{_version()}"
    tag = _tag()
    information = staging / f"{name}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(_metadata(project))
    (information / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: zeus-build-backend {_version()}\n"
        f"Root-Is-Purelib: false\nTag: {tag}\n")
    scripts = "".join(f"{script} = {target}\n" for script, target in project["scripts"].items())
    (information / "entry_points.txt").write_text(f"[console_scripts]\n{scripts}")
    shutil.copy(ROOT / "LICENSE", information)
    notice = (ROOT / "NOTICE").read_text()
    (information / "NOTICE").write_text(notice + bundled_libraries.notice(libraries))
    bundled_libraries.copy_licences(libraries, information / "licenses")
    with WheelFile(os.fspath(destination / f"{name}-{tag}.whl"), "w") as wheel:
        wheel.write_files(os.fspath(staging))
    return f"{name}-{tag}.whl"


def _version() -> str:
    found = re.search(r"^project\(zeus VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(),
                      re.MULTILINE)
    if not found:
        raise SystemExit("CMakeLists.txt has no project(zeus VERSION ...)")
    return found[1]


def _tag() -> str:
    interpreter = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"{interpreter}-{interpreter}{getattr(sys, 'abiflags', '')}-{platform}"


def _metadata(project: dict[str, Any]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {_version()}",
             f"Summary: {project['description']}", f"License: {project['license']['text']}",
             f"Keywords: {','.join(project['keywords'])}"]
    lines += [f"Classifier: {classifier}" for classifier in project["classifiers"]]
    lines += [f"Requires-Python: {project['requires-python']}", "License-File: LICENSE",
              "License-File: NOTICE", "Description-Content-Type: text/markdown", ""]
    return "\n".join(lines) + "\n" + (PYTHON / "README.md").read_text()
