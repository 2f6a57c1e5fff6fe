"""The tarball on machines that are not this one: in somebody's $HOME, in a root without any library, and where another
distribution can be fetched, in that. `./dev deb --check` runs it."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = pathlib.Path(os.environ.get("ZEUS_PACKAGES_FOLDER", ROOT / "build" / "deb" / "packages"))
CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin")
OTHERS = (("bullseye", "http://deb.debian.org/debian", "2.31"), ("jammy", "http://archive.ubuntu.com/ubuntu", "2.35"))
SIMULATE = ('zeus sim start --name tarball --gpus 2xA100 >/dev/null && eval "$(zeus sim env --name tarball)" && {smi} && '
            "zeus run -- {command} ; zeus sim stop --name tarball >/dev/null")


def say(*words, **options):
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, **options)
    except subprocess.TimeoutExpired as error:
        return 124, str(error)
    return done.returncode, done.stdout + done.stderr


class TarballTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        [cls.tarball] = PACKAGES.glob("zeus-*-linux-x86_64.tar.xz")
        folder = tempfile.TemporaryDirectory(prefix="zeus-tarball-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.folder.chmod(0o755)

    def unpack(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-xf", self.tarball, "-C", folder, "--strip-components=1", "--no-same-owner"], check=True)
        return folder

    def test_in_the_home_of_somebody_without_rights(self):
        home = self.folder / "home"
        self.unpack(home / ".local")
        user = []
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "65534:65534", home], check=True)
            user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
        environment = {"HOME": str(home), "PATH": f"{home}/.local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        code, text = say(*user, "sh", "-c", SIMULATE.format(smi="nvidia-smi -L", command="sleep 0.5"), env=environment,
                         cwd=home)
        print(text, flush=True)
        self.assertEqual(code, 0, text)
        self.assertIn("A100", text)
        self.assertIn("total", text)
        # The command goes on in zeus-servers, with the words that it was given.
        tokens = home / "tokens.toml"
        code, text = say(*user, "zeus", "serve", "--new-token", "tarball", "--tokens", tokens, env=environment, cwd=home)
        self.assertEqual(code, 0, text)
        # To call a server it loads a module; nobody listens at this port.
        code, text = say(*user, "zeus", "job", "list", "--server", "http://127.0.0.1:1", env=environment, cwd=home)
        self.assertEqual(code, 6, text)
        self.assertIn("127.0.0.1:1", text)
        code, text = say(*user, "zeusd", "--version", env=environment, cwd=home)
        self.assertEqual(code, 0, text)
        code, text = say(*user, "man", "-M", f"{home}/.local/share/man", "zeus-run", env=environment, cwd=home)
        if shutil.which("man"):
            self.assertIn("zeus-run", text)

    def test_in_a_root_that_has_nothing_else(self):
        if os.geteuid() != 0 or CHROOT is None:
            self.skipTest("chroot needs root")
        root = self.folder / "empty"
        self.unpack(root / "usr")
        (root / "proc").mkdir()
        (root / "tmp/sim").mkdir(parents=True)
        mounted, reason = say("mount", "-t", "proc", "proc", root / "proc")
        if mounted != 0:
            self.skipTest(f"/proc cannot be mounted: {reason}")
        try:
            environment = {"PATH": "/usr/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8", "ZEUS_SIM_DIR": "/tmp/sim"}
            for words in (["/usr/bin/zeus", "--version"], ["/usr/bin/zeus", "sim", "start", "--name", "n", "--gpus", "2xA100"],
                          ["/usr/bin/zeus", "sim", "env", "--name", "n"], ["/usr/bin/zeus", "help", "configuration"],
                          ["/usr/bin/zeus", "sim", "stop", "--name", "n"]):
                code, text = say(CHROOT, root, *words, env=environment)
                print(f"# {' '.join(words)}\n{text[:400]}", flush=True)
                self.assertEqual(code, 0, text)
        finally:
            subprocess.run(["umount", root / "proc"], check=True)

    def test_every_library_is_there(self):
        root = self.unpack(self.folder / "libraries")
        runtime = {path.name for path in (root / "lib/zeus/runtime").iterdir()}
        for path in [root / "lib/zeus/libzeus_http_client.so", *(root / "lib/zeus/runtime").iterdir(), *(root / "lib/zeus/program").iterdir()]:
            _, text = say("readelf", "-d", path)
            missing = set(re.findall(r"NEEDED.*\[(.*)\]", text)) - runtime
            self.assertEqual(missing, set(), path.name)
        for name in ("bin/zeus", "bin/zeusd", "lib/zeus/zeus-servers", "lib/zeus/sim/bin/nvidia-smi"):
            _, text = say("readelf", "-ld", root / name)
            self.assertNotIn("INTERP", text, name)
            self.assertNotIn("NEEDED", text, name)

    def test_what_machines_must_have_is_said(self):
        root = self.unpack(self.folder / "requirements")
        said = (root / "share/doc/zeus/README.txt").read_text()
        [glibc] = re.findall(r"needs glibc (\S+) or newer", said)
        versions = set()
        for path in [*(root / "lib/zeus").glob("*/libnvidia-ml.so.1"), *(root / "lib/zeus/drivers").iterdir()]:
            _, text = say("objdump", "-T", path)
            versions |= {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_(\d[\d.]*)", text)}
        self.assertEqual(max(versions), tuple(map(int, glibc.split("."))))

    def test_in_other_distributions(self):
        if os.geteuid() != 0 or shutil.which("debootstrap") is None:
            self.skipTest("debootstrap and root are needed to make a root of another distribution")
        tried = []
        for suite, mirror, glibc in OTHERS:
            root = ROOT / "build" / "deb" / f"{suite}-root"
            if not (root / "made").exists():
                shutil.rmtree(root, ignore_errors=True)
                code, text = say("debootstrap", "--variant=minbase", "--no-check-gpg", suite, root, mirror)
                if code != 0:
                    print(f"{suite} cannot be fetched: {text[-200:]}", flush=True)
                    continue
                (root / "made").touch()
            self.unpack(root / "opt/zeus")
            subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
            try:
                environment = {"PATH": "/opt/zeus/bin:/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8",
                               "ZEUS_SIM_DIR": "/tmp/sim"}
                command = "mkdir -p /tmp/sim; ldd --version | head -n 1; " + SIMULATE.format(smi="nvidia-smi -L", command="sleep 0.5")
                code, text = say(CHROOT, root, "sh", "-c", command, env=environment)
            finally:
                subprocess.run(["umount", root / "proc"], check=True)
            print(f"# {suite}\n{text}", flush=True)
            self.assertEqual(code, 0, text)
            self.assertIn(glibc, text)
            self.assertIn("total", text)
            tried.append(suite)
        if not tried:
            self.skipTest("no other distribution can be fetched here")


if __name__ == "__main__":
    if not list(PACKAGES.glob("zeus-*-linux-x86_64.tar.xz")):
        sys.exit("there is no tarball: ./dev deb --check makes it")
    unittest.main()
