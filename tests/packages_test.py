"""The contents of the packages, seen in the trees that their install rules make: no package is built."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from sim_testing import ZEUS

BUILD = pathlib.Path(os.environ["ZEUS_BUILD"])
ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPONENTS = os.environ["ZEUS_PACKAGES"].split()


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="zeus-packages-")
        cls.addClassCleanup(folder.cleanup)
        cls.files = {}
        for component in COMPONENTS:
            tree = pathlib.Path(folder.name, component)
            subprocess.run(["cmake", "--install", BUILD, "--component", component], check=True, timeout=300,
                           stdout=subprocess.DEVNULL, env=os.environ | {"DESTDIR": str(tree)})
            cls.files[component] = {"/" + str(path.relative_to(tree)): path
                                    for path in tree.rglob("*") if not path.is_dir() or path.is_symlink()}

    def find(self, component, pattern):
        """The one file of a package whose path matches."""
        found = [path for path in self.files[component] if re.search(pattern, path)]
        self.assertEqual(len(found), 1, f"{component}: {pattern}: {found}")
        return self.files[component][found[0]]

    def test_no_file_is_in_two_packages(self):
        owners = {}
        for component, files in self.files.items():
            self.assertGreater(len(files), 2, component)
            for path in files:
                self.assertIsNone(owners.setdefault(path, component) if path in owners else None, path)
                owners[path] = component

    def test_every_package_says_what_changed_and_what_the_licence_is(self):
        for component in COMPONENTS:
            self.find(component, r"/share/doc/[\w-]+/copyright$")
            self.find(component, r"/share/doc/[\w-]+/changelog\.Debian\.gz$")

    def test_the_command_has_its_pages_and_completion(self):
        self.find("zeus", r"/bin/zeus$")
        self.find("zeus", r"/libzeus\.so\.\d+\.\d+$")
        self.find("zeus", r"^/etc/zeus/zeus\.toml$|/local/etc/zeus/zeus\.toml$")
        for page in ("zeus.1", "zeus-run.1", "zeus-sim.1", "zeus-configuration.7"):
            self.find("zeus", rf"/man/man\d/{re.escape(page)}\.gz$")
        self.find("zeus", r"/bash-completion/completions/zeus$")
        self.find("zeus", r"/zsh/vendor-completions/_zeus$")
        self.find("zeus", r"/fish/vendor_completions\.d/zeus\.fish$")

    def test_the_configuration_that_is_installed_sets_nothing(self):
        file = self.find("zeus", r"/zeus\.toml$")
        done = subprocess.run([ZEUS, "config", "show"], capture_output=True, text=True, check=True, timeout=60,
                              env={"ZEUS_CONFIG": str(file), "LC_ALL": "C.UTF-8"})
        self.assertIn("nothing is configured", done.stdout)

    def test_its_examples_can_be_used(self):
        text = self.find("zeus", r"/zeus\.toml$").read_text()
        examples = re.sub(r"^# (?=\[|\w+ = )", "", text, flags=re.MULTILINE)
        self.assertNotEqual(text, examples)
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(examples)
            file.flush()
            done = subprocess.run([ZEUS, "config", "show"], capture_output=True, text=True, check=False, timeout=60,
                                  env={"ZEUS_CONFIG": file.name, "LC_ALL": "C.UTF-8"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("run.carbon", done.stdout)

    def test_headers_are_in_the_package_for_developers_alone(self):
        self.find("dev", r"/zeus/base/result\.h$")
        self.find("dev", r"/pkgconfig/zeus\.pc$")
        self.find("dev", r"/libzeus\.so$")
        self.assertFalse([path for path in self.files["dev"] if "testing" in path])
        for component in set(COMPONENTS) - {"dev"}:
            self.assertFalse([path for path in self.files[component] if path.endswith((".h", ".a"))], component)

    @unittest.skipUnless("zeusd" in COMPONENTS, "the daemon is not built")
    def test_the_daemon_has_its_units_and_its_user(self):
        for pattern in (r"/sbin/zeusd$", r"/zeusd\.service$", r"/zeusd\.socket$", r"/zeusd-board\.socket$",
                        r"/sysusers\.d/zeusd\.conf$", r"/etc/zeus/zeusd\.toml$", r"/man8/zeusd\.8\.gz$"):
            self.find("zeusd", pattern)

    def test_maintainer_scripts_name_units_that_exist(self):
        units = {path.name for path in (ROOT / "packaging" / "systemd").iterdir()}
        for script in (ROOT / "packaging" / "debian").glob("zeusd.p*"):
            named = set(re.findall(r"zeusd[\w-]*\.(?:service|socket)", script.read_text()))
            self.assertTrue(named)
            self.assertLessEqual(named, units, script.name)

    def test_simulated_gpus_are_a_package_of_their_own(self):
        self.find("sim", r"/zeus/sim/libnvidia-ml\.so\.1$")
        self.find("sim", r"/zeus/sim/bin/nvidia-smi$")

    @unittest.skipIf("ZEUS_SANITIZED" in os.environ, "sanitizers want to be started by the kernel")
    def test_a_program_that_a_loader_starts_knows_where_it_is(self):
        loader = pathlib.Path("/lib64/ld-linux-x86-64.so.2")
        if not loader.exists():
            self.skipTest("this machine has another loader")
        with tempfile.TemporaryDirectory(prefix="zeus-loader-") as folder:
            environment = {"LC_ALL": "C.UTF-8", "ZEUS_SIM_DIR": folder, "ZEUS_CONFIG": ""}
            start = ["sim", "start", "--name", "loader", "--gpus", "1xA100"]
            subprocess.run([ZEUS, *start], check=True, timeout=60, env=environment, stdout=subprocess.DEVNULL)
            done = subprocess.run([loader, "--argv0", os.path.abspath(ZEUS), ZEUS, "sim", "env", "--name", "loader"],
                                  check=False, timeout=60, env=environment, text=True, capture_output=True)
            subprocess.run([ZEUS, "sim", "stop", "--name", "loader"], check=True, timeout=60, env=environment,
                           stdout=subprocess.DEVNULL)
        self.assertIn(str(BUILD / "lib/zeus/sim/libnvidia-ml.so.1"), done.stdout, done.stderr)

    @unittest.skipUnless("python3" in COMPONENTS, "the Python module is not built")
    def test_python_finds_the_files_of_the_other_packages(self):
        self.find("python3", r"/zeus/_core\..*\.so$")
        self.find("python3", r"/zeus/__init__\.py$")
        for link, component, wanted in (("bin", "zeus", "zeus"), ("lib", "sim", "zeus/sim/libnvidia-ml.so.1")):
            [place] = [path for path in self.files["python3"] if path.endswith(f"/_native/{link}")]
            target = os.readlink(self.files["python3"][place])
            self.assertIn(os.path.normpath(os.path.join(os.path.dirname(place), target, wanted)), self.files[component])


if __name__ == "__main__":
    unittest.main()
