"""The wheel in a clean environment, away from the sources."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCES = pathlib.Path(__file__).resolve().parents[1]
TREE = os.environ["ZEUS_BUILD_DIR"]

MEASURE = """
import re

def loaded():
    return set(re.findall(r"/\\S+[.]so\\S*$", open("/proc/self/maps").read(), re.MULTILINE))

before = loaded()  # The interpreter may be linked to some of the same libraries.
from zeus.monitor import ZeusMonitor

monitor = ZeusMonitor(gpu_indices=[0, 1])
with monitor.window("epoch") as epoch:
    pass
assert sorted(epoch.measurement.gpu_energy) == [0, 1], epoch.measurement
print(*(loaded() - before), sep="\\n")
"""


def run(*command: "str | os.PathLike[str]", **options: object) -> str:
    """Returns what the command printed; it must succeed."""
    done = subprocess.run([os.fspath(part) for part in command], capture_output=True, text=True,
                          timeout=280, **options)  # type: ignore[call-overload]
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return str(done.stdout)


def kind_of(path: str) -> str:
    """libfmt of /usr/lib/libfmt.so.9.1.0."""
    return os.path.basename(path).split(".so")[0]


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="zeus-wheel-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        run(sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check", "--wheel",
            f"--config-setting=build-dir={TREE}", "--outdir", cls.folder, SOURCES, cwd=cls.folder)
        (cls.wheel,) = cls.folder.glob("*.whl")
        cls.names = set(zipfile.ZipFile(cls.wheel).namelist())
        run(sys.executable, "-m", "venv", cls.folder / "venv", cwd=cls.folder)
        cls.bin = cls.folder / "venv/bin"
        cls.environment = {"PATH": f"{cls.bin}:/usr/bin:/bin", "HOME": str(cls.folder)}
        for variable in ("ZEUS_SIM_DIR", "ZEUS_ACTIVITY_DIR", "ZEUS_KNOB_DIR"):
            cls.environment[variable] = str(cls.folder / variable)
            (cls.folder / variable).mkdir()
        cls.install()

    @classmethod
    def install(cls) -> None:
        cls.inside("pip", "install", "--quiet", "--disable-pip-version-check", "--no-index",
                   "--no-deps", cls.wheel)

    @classmethod
    def inside(cls, program: str, *arguments: "str | os.PathLike[str]") -> str:
        """Runs a program of the environment, in a folder that knows nothing of the sources."""
        return run(cls.bin / program, *arguments, cwd=cls.folder, env=cls.environment)

    def simulated_node(self) -> None:
        self.inside("zeus", "sim", "start", "--gpus", "2xA100")
        self.addCleanup(self.inside, "zeus", "sim", "stop")
        for line in self.inside("zeus", "sim", "env").splitlines():
            name, value = line.removeprefix("export ").split("=", 1)
            if name in ("ZEUS_SIM_NODE", "ZEUS_NVML_LIBRARY"):
                self.environment[name] = value.strip("'")
                self.addCleanup(self.environment.pop, name)

    def test_is_named_for_this_interpreter_and_platform(self) -> None:
        version = f"cp{sys.version_info.major}{sys.version_info.minor}"
        self.assertRegex(self.wheel.name,
                         rf"^zeus_energy-\d+\.\d+\.\d+-{version}-{version}-linux_\w+\.whl$")

    def test_needs_nothing_and_says_what_it_is(self) -> None:
        metadata = self.read("METADATA")
        self.assertIn("\nRequires-Python: >=3.9\n", metadata)
        self.assertIn("\nLicense: Apache-2.0\n", metadata)
        self.assertNotIn("Requires-Dist", metadata)
        self.assertIn("Apache License", self.read("LICENSE"))

    def test_brings_types_and_no_tests(self) -> None:
        for name in ("zeus/py.typed", "zeus/_core/monitor.pyi", "zeus/monitor/energy.py"):
            self.assertIn(name, self.names)
        self.assertEqual([name for name in self.names if "test" in name and "/tests/" in name], [])
        self.assertEqual([name for name in self.names if "__pycache__" in name], [])

    def test_says_whose_libraries_come_along(self) -> None:
        notice = self.read("NOTICE")
        libraries = [name for name in self.names
                     if re.fullmatch(r"zeus/_native/lib/lib(?!zeus)[^/]+", name)]
        self.assertGreater(len(libraries), 5)
        for library in libraries:
            row = re.search(rf"^ *{re.escape(os.path.basename(library))} +(\S+) \S+$", notice, re.M)
            self.assertIsNotNone(row, library)
            self.assertIn("opyright", self.read(f"licenses/{row[1]}/copyright"))

    def test_measures_and_takes_no_library_of_the_system_that_came_along(self) -> None:
        self.simulated_node()
        loaded = set(self.inside("python", "-I", "-c", MEASURE).split())
        # Without versions: Debian's libfmt.so.9 is a link to libfmt.so.9.1.0.
        ours = {kind_of(name) for name in self.names if ".so" in name}
        elsewhere = [path for path in loaded
                     if kind_of(path) in ours and not path.startswith(str(self.folder))]
        self.assertEqual(elsewhere, [])
        inside = {kind_of(path) for path in loaded if path.startswith(str(self.folder))}
        self.assertLessEqual({"libzeus", "libfmt", "libcrypto", "libnvidia-ml"}, inside)

    def test_every_binary_finds_its_libraries_inside(self) -> None:
        sys.path.insert(0, str(SOURCES))
        self.addCleanup(sys.path.remove, str(SOURCES))
        import bundled_libraries
        (package,) = self.folder.glob("venv/lib/python*/site-packages/zeus")
        for binary in bundled_libraries.binaries(package):
            for name, path in bundled_libraries.needed_by(binary).items():
                self.assertTrue(bundled_libraries.is_inside(path, package), f"{binary}: {path}")

    def test_has_the_command_line(self) -> None:
        version = self.inside("python", "-c", "import zeus; print(zeus.__version__)").strip()
        self.assertIn(version, self.inside("zeus", "--version"))
        self.assertIn("usage", self.inside("python", "-m", "zeus", "--help").lower())

    def test_the_command_tells_how_it_ended(self) -> None:
        done = subprocess.run([self.bin / "zeus", "no-such-verb"], capture_output=True,
                              env=self.environment, cwd=self.folder)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"")

    def test_simulated_gpus_are_shown_by_the_command_line(self) -> None:
        self.simulated_node()
        self.assertIn("A100", self.inside("zeus", "sim", "list"))
        self.assertIn("A100", self.inside("zeus", "doctor"))

    def test_leaves_nothing_when_it_is_uninstalled(self) -> None:
        self.addCleanup(self.install)
        self.inside("pip", "uninstall", "--quiet", "--yes", "zeus-energy")
        self.assertFalse((self.bin / "zeus").exists())
        self.assertEqual(list(self.folder.glob("venv/lib/python*/site-packages/zeus")), [])

    def read(self, name: str) -> str:
        with zipfile.ZipFile(self.wheel) as wheel:
            (path,) = [path for path in self.names if path.endswith(f".dist-info/{name}")]
            return wheel.read(path).decode()


if __name__ == "__main__":
    unittest.main()
