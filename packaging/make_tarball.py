#!/usr/bin/env python3
"""make_tarball.py BUILD FOLDER: packs the programs of a build into FOLDER/zeus-VERSION-linux-x86_64.tar.xz, with every
library they need and the loader, for machines that are not Debian. Prints what a machine must have all the same."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOADER = "ld-linux-x86-64.so.2"
# Programs, each with the folder where its launcher lies; the module that zeus loads when it calls a server.
PROGRAMS = {"zeus": "bin", "zeusd": "bin", "zeus-servers": "lib/zeus", "nvidia-smi": "lib/zeus/sim/bin"}
MODULE = "libzeus_http_client.so"
# Loaded at run time, by name.
OPENED = ("libnss_files.so.2", "libnss_dns.so.2")
# The simulated, replayed and recording drivers live in processes of the machine, which have a C library of their own.
C_LIBRARY = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux")
TEXT = """Zeus {version} for Linux on x86-64, with all its libraries.

    tar -xf zeus-{version}-linux-x86_64.tar.xz -C ~/.local --strip-components=1     # or /usr/local, as root
    ~/.local/bin/zeus doctor

Programs here start with the loader and the libraries in lib/zeus/runtime, so they need no library of the machine, and Linux {kernel} or
newer. The simulated libnvidia-ml.so.1, which other programs load, needs glibc {glibc} or newer in them. So does the one of zeus record.
Databases in PostgreSQL need libpq.so.5 of the machine.
"""


def run(*words, **variables):
    return subprocess.run(words, check=True, capture_output=True, text=True, env=os.environ | variables).stdout


def needed(path):
    """The libraries that a file names, with where the loader of this machine finds them."""
    found = {}
    for line in run("ldd", path).splitlines():
        if match := re.match(r"\s*(\S+) => (/\S+)", line):
            found[match[1]] = pathlib.Path(match[2])
        elif "not found" in line:
            sys.exit(f"make_tarball: {path}: {line.strip()}")
    return found


def glibc_version(paths):
    """The newest version of glibc that a symbol of these files asks for."""
    text = "".join(run("objdump", "-T", path) for path in paths)
    versions = {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_(\d[\d.]*)", text)}
    return ".".join(map(str, max(versions)))


def kernel_version(library):
    """The oldest kernel that the C library accepts, as its note says."""
    return re.search(r"OS: Linux, ABI: (\S+)", run("readelf", "-n", library))[1]


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(pathlib.Path(source).resolve(), target)
    target.chmod(0o755)


def stage(build, root):
    install = root.parent / "installed"
    for component in ("zeus", "zeusd", "sim"):
        run("cmake", "--install", build, "--component", component, DESTDIR=str(install))
    launcher = root.parent / "launcher"
    run("gcc", "-O2", "-static", "-s", "-Wl,--build-id=none", "-o", str(launcher), str(ROOT / "packaging/tarball/launcher.c"))
    programs = {name: next(path for path in install.rglob(name) if path.is_file() and os.access(path, os.X_OK) and
                           path.parent.name in ("bin", "sbin", "zeus")) for name in PROGRAMS}
    runtime = root / "lib/zeus/runtime"
    for name, path in programs.items():
        copy(path, root / "lib/zeus/program" / name)
        copy(launcher, root / PROGRAMS[name] / name)
        for soname, file in needed(path).items():
            copy(file, runtime / soname)
    module = next(install.rglob(MODULE))
    copy(module, root / "lib/zeus" / MODULE)
    for soname, file in needed(module).items():
        copy(file, runtime / soname)
    copy(f"/lib64/{LOADER}", runtime / LOADER)
    for name in OPENED:
        file = pathlib.Path("/lib/x86_64-linux-gnu", name)
        if file.exists():
            copy(file, runtime / name)

    beside = []
    for library in sorted(install.rglob("libnvidia-ml.so.1")):
        driver = root / "lib/zeus" / library.parent.name / library.name
        copy(library, driver)
        beside.append(driver)
        for soname, file in needed(library).items():
            if not C_LIBRARY.match(soname) and not soname.startswith(("libstdc++", "libgcc_s")):
                copy(file, root / "lib/zeus/drivers" / soname)
                beside.append(root / "lib/zeus/drivers" / soname)
        run("patchelf", "--set-rpath", "$ORIGIN/../drivers", str(driver))

    for name in ("man", "bash-completion", "zsh", "fish"):
        shutil.copytree(next(install.rglob(f"share/{name}")), root / "share" / name)
    document = root / "share/doc/zeus"
    document.mkdir(parents=True)
    for name in ("LICENSE", "NOTICE", "CHANGELOG.md", "SECURITY.md"):
        shutil.copyfile(ROOT / name, document / name)
    for licence in sorted(licences(runtime)):
        target = document / "licences" / f"{licence.parent.name}.txt"
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(licence, target)
    shutil.copytree(ROOT / "packaging/systemd", document / "systemd")
    return kernel_version(runtime / "libc.so.6"), glibc_version(beside)


def licences(runtime):
    """Yields the copyright files of the libraries that come along."""
    for library in sorted(runtime.iterdir()):
        for folder in ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64"):
            done = subprocess.run(["dpkg", "-S", f"{folder}/{library.name}"], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                yield pathlib.Path("/usr/share/doc", done.stdout.split(":")[0], "copyright")
                break


def pack(folder, target):
    """The same bytes for the same files: sorted, of nobody, and of one time."""
    moment = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))

    def neutral(info):
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        info.mtime = moment
        info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
        return info

    with tarfile.open(target, "w:xz", format=tarfile.GNU_FORMAT, preset=6) as archive:
        for path in [folder, *sorted(folder.rglob("*"))]:
            archive.add(path, path.relative_to(folder.parent), recursive=False, filter=neutral)


def main():
    build, target = map(pathlib.Path, sys.argv[1:3])
    version = re.search(r"^CMAKE_PROJECT_VERSION:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
    name = f"zeus-{version}-linux-x86_64"
    with tempfile.TemporaryDirectory(prefix="zeus-tarball-") as scratch:
        root = pathlib.Path(scratch, name)
        root.mkdir()
        kernel, glibc = stage(build, root)
        (root / "share/doc/zeus/README.txt").write_text(TEXT.format(version=version, kernel=kernel, glibc=glibc))
        pack(root, target / f"{name}.tar.xz")
    print(f"{name}.tar.xz: programs need Linux {kernel} and no library; simulated libnvidia-ml.so.1: glibc {glibc}")


if __name__ == "__main__":
    main()
