#!/usr/bin/env python3
"""make_sbom.py BUILD FOLDER: writes FOLDER/zeus-VERSION.cdx.json, a list in CycloneDX 1.5 of what the programs of a build
consist of: libraries that they link, header libraries that are compiled in, and packages of the web pages."""
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILES = ("bin/zeus", "bin/zeusd", "lib/zeus/zeus-servers", "lib/zeus/libzeus_http_client.so", "lib/libzeus.so", "lib/zeus/sim/libnvidia-ml.so.1", "lib/zeus/sim/bin/nvidia-smi",
         "lib/slurm/spank_zeus.so", "lib/slurm/acct_gather_energy_zeus.so", "python/zeus/_core*.so")
# Compiled in, by the Debian package that has their headers.
HEADERS = ("libcli11-dev", "nlohmann-json3-dev", "libboost-dev", "pybind11-dev", "libslurm-dev")
OPENED = ("libpq5",)  # Loaded when a database in PostgreSQL is used.


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def owner(path):
    """The Debian package of a file, which may be known by its name before /usr was merged."""
    resolved = pathlib.Path(path).resolve()
    for name in (str(path), str(resolved), str(resolved).removeprefix("/usr"), str(path).removeprefix("/usr")):
        if found := run("dpkg", "-S", name):
            return found.split(": ")[0].split(",")[0].split(":")[0]
    return None


def linked(path):
    return {match[1] for match in re.finditer(r"=> (/\S+)", run("ldd", path))}


def licence(package):
    """The licences that Debian's machine-readable copyright file names."""
    try:
        text = pathlib.Path("/usr/share/doc", package, "copyright").read_text(errors="replace")
    except OSError:
        return []
    names = dict.fromkeys(name.strip() for name in re.findall(r"^License:[ \t]*(\S.*)$", text, re.MULTILINE))
    return [{"license": {"name": name}} for name in names]


def component(package, scope, files=()):
    version = run("dpkg-query", "-W", "-f", "${Version}", package)
    if not version:
        return None
    one = {
        "type": "library",
        "bom-ref": f"deb:{package}",
        "name": package,
        "version": version,
        "scope": scope,
        "purl": f"pkg:deb/debian/{package}@{version}?arch={run('dpkg', '--print-architecture').strip()}",
        "licenses": licence(package),
    }
    if files:
        digests = [hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest() for file in sorted(files)]
        one["hashes"] = [{"alg": "SHA-256", "content": digest} for digest in digests[:1]]
        one["properties"] = [{"name": "zeus:file", "value": pathlib.Path(file).name} for file in sorted(files)]
    return one


def web_components():
    """The packages that sources of the pages import: the build writes them into the pages."""
    lock = json.loads((ROOT / "web/package-lock.json").read_text())
    sources = [path for path in (ROOT / "web/src").rglob("*.ts*") if ".test." not in path.name]
    imported = set()
    for path in sources:
        for name in re.findall(r"""from ["']([@\w][^"']*)["']""", path.read_text()):
            imported.add("/".join(name.split("/")[: 2 if name.startswith("@") else 1]))
    for name in sorted(imported):
        if entry := lock["packages"].get(f"node_modules/{name}"):
            yield {"type": "library", "bom-ref": f"npm:{name}", "name": name, "version": entry["version"],
                   "scope": "required", "purl": f"pkg:npm/{name}@{entry['version']}",
                   "licenses": [{"license": {"id": entry["license"]}}] if "license" in entry else []}


def bill(build, version):
    packages = {}
    programs = []
    depends = []
    for pattern in FILES:
        for path in sorted(build.glob(pattern)):
            owners = set()
            for library in linked(path):
                if package := owner(library):
                    packages.setdefault(package, set()).add(library)
                    owners.add(package)
            ref = f"zeus:{path.name}"
            programs.append({"type": "application" if "bin/" in pattern else "library", "bom-ref": ref, "name": path.name,
                             "version": version, "licenses": [{"license": {"id": "Apache-2.0"}}],
                             "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}]})
            depends.append({"ref": ref, "dependsOn": sorted(f"deb:{package}" for package in owners)})
    libraries = [component(package, "required", files) for package, files in sorted(packages.items())]
    libraries += [component(package, "required") for package in HEADERS]
    libraries += [component(package, "optional") for package in OPENED]
    moment = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": "zeus", "name": "zeus", "version": version,
                          "licenses": [{"license": {"id": "Apache-2.0"}}]},
        },
        "components": programs + [one for one in libraries if one] + list(web_components()),
        "dependencies": [{"ref": "zeus", "dependsOn": [one["bom-ref"] for one in programs]}, *depends],
    }
    # The same content has the same number.
    content["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))}"
    return content


def main():
    build, target = map(pathlib.Path, sys.argv[1:3])
    version = re.search(r"^CMAKE_PROJECT_VERSION:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
    content = bill(build, version)
    if len(content["components"]) < 10:
        sys.exit(f"make_sbom: only {len(content['components'])} components were found in {build}")
    path = target / f"zeus-{version}.cdx.json"
    path.write_text(json.dumps(content, indent=2) + "\n")
    print(f"{path.name}: {len(content['components'])} components")


if __name__ == "__main__":
    main()
