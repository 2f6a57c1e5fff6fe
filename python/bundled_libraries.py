"""Lists what the binaries of a wheel need of the system beyond the C and C++ run-time libraries.

It is copied to zeus/_native/lib, where they look first (wheel.cmake), so that the wheel runs where
Debian's packages for developers are not installed.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
from typing import NamedTuple

# Every Linux with a Python has these, and two of them in a process do not get on.
OF_THE_SYSTEM = re.compile(
    r"(linux-vdso|ld-linux[\w-]*|lib(c|m|pthread|dl|rt|resolv|util|stdc\+\+|gcc_s))\.so(\.\d+)*")
NEEDED = re.compile(r"^\s*(\S+) => (.+) \(0x[0-9a-f]+\)$", re.MULTILINE)


class Library(NamedTuple):
    """One that comes along."""

    name: str
    package: str
    version: str


def bundle(package: pathlib.Path) -> list[Library]:
    """Copies what the binaries of the package need; what that was."""
    home = package / "_native/lib"
    found: dict[str, str] = {}
    for binary in binaries(package):
        found.update(needed_by(binary))
    for name, path in found.items():
        if not (home / name).exists():
            shutil.copy(os.path.realpath(path), home / name)
    outside = {name: path for name, path in found.items() if not is_inside(path, package)}
    return sorted(Library(name, *_debian_package(path)) for name, path in outside.items())


def binaries(package: pathlib.Path) -> list[pathlib.Path]:
    """Ours: the module, the library, the programs, the program's module and the simulated driver."""
    return [*package.glob("_core*.so"), *package.glob("_native/lib/libzeus.so*"),
            *package.glob("_native/lib/zeus/zeus-servers"), *package.glob("_native/lib/zeus/libzeus_*.so"),
            package / "_native/bin/zeus", package / "_native/lib/zeus/sim/libnvidia-ml.so.1"]


def needed_by(binary: pathlib.Path) -> dict[str, str]:
    """Name and place of each library, directly and indirectly, that is not always there."""
    environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    listing = subprocess.run(["ldd", binary], check=True, capture_output=True, text=True,
                             env=environment).stdout
    if missing := re.findall(r"(\S+) => not found", listing):
        raise SystemExit(f"{binary} needs {', '.join(missing)}, which this system lacks")
    return {name: path for name, path in NEEDED.findall(listing)
            if not OF_THE_SYSTEM.fullmatch(name)}


def is_inside(path: str, package: pathlib.Path) -> bool:
    return pathlib.Path(os.path.realpath(path)).is_relative_to(package.resolve())


def notice(libraries: list[Library]) -> str:
    """A paragraph for the file NOTICE of the wheel."""
    if not libraries:
        return ""
    rows = "".join(f"  {library.name:28} {library.package} {library.version}\n"
                   for library in libraries)
    return ("\nThis wheel contains these libraries, unchanged, as Debian distributes them. Their\n"
            "licences are in licenses/PACKAGE/copyright; their sources are those of the Debian\n"
            f"packages of these names and versions.\n\n{rows}")


def copy_licences(libraries: list[Library], destination: pathlib.Path) -> None:
    for package in {library.package for library in libraries}:
        text = pathlib.Path("/usr/share/doc") / package / "copyright"
        if text.exists():
            (destination / package).mkdir(parents=True)
            shutil.copy(text, destination / package / "copyright")


def _debian_package(path: str) -> tuple[str, str]:
    """Name and version of the package that a file belongs to."""
    real = os.path.realpath(path)
    for place in (real, real.removeprefix("/usr")):  # Some know it by the name before /usr/lib.
        asked = subprocess.run(["dpkg-query", "--search", place], capture_output=True, text=True)
        if asked.returncode == 0:
            name = asked.stdout.split(":")[0]
            version = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", name],
                                     capture_output=True, text=True, check=True).stdout
            return name, version
    raise SystemExit(f"{real} belongs to no Debian package, so its licence is not known")
