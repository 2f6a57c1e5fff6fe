"""The life of the packages on a clean Debian that systemd-nspawn boots: installed, used, upgraded, removed, purged.
`./dev deb --check` runs it and shows the transcript. Needs root, debootstrap and a Debian mirror."""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "deb"
os.environ.setdefault("ZEUS_BINARY", str(BUILD / "bin" / "zeus"))
os.environ.setdefault("ZEUSD_BINARY", str(BUILD / "bin" / "zeusd"))

import zeusd_systemd_test  # noqa: E402  (it wants the variables above)

SUITE = "bookworm"
MIRROR = os.environ.get("ZEUS_MIRROR", "http://deb.debian.org/debian")
PACKAGES = ["zeus", "zeusd", "libzeus-dev", "python3-zeus", "zeus-sim", "zeus-slurm"]
# Package managers and systemd write here, whatever is installed.
RECORDS = ("/var/lib/dpkg/", "/var/lib/apt/", "/var/cache/", "/var/log/", "/var/lib/systemd/", "/etc/ld.so.cache",
           "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/.pwd.lock", "/packages/",
           "/etc/machine-id", "/etc/resolv.conf", "/root/", "/tmp/", "/var/tmp/", "/run/", "/proc/", "/sys/", "/dev/",
           # Debian's python3 and readline, which come along, make these when they are first installed.
           "/etc/python3", "/etc/inputrc", "/var/lib/python", "/usr/local/lib/python3")


def clean_debian():
    """A root as debootstrap makes it, with a systemd; it is made once."""
    base = BUILD / "debian-root"
    if not (base / "made").exists():
        shutil.rmtree(base, ignore_errors=True)
        print(f"debootstrap {SUITE} from {MIRROR}", flush=True)
        done = subprocess.run(["debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv,dbus", SUITE, base,
                               MIRROR], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise unittest.SkipTest(f"debootstrap could not make a Debian: {done.stderr[-300:]}")
        (base / "made").touch()
    return base


class PackageLifeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = zeusd_systemd_test.reason_to_skip()
        if reason is None and shutil.which("debootstrap") is None:
            reason = "debootstrap is not installed"
        if reason is not None:
            raise unittest.SkipTest(reason)
        cls.base = clean_debian()

    def show(self, command, expect=0, keep=lambda line: True):
        """Runs a shell command in the machine and prints it, and of what it says the lines that matter."""
        print(f"\n# {command}", flush=True)
        done = self.machine.run("env", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "HOME=/root",
                                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-c", f"{{ {command}\n}} 2>&1", check=False)
        for line in done.stdout.splitlines():
            if keep(line):
                print(line[:160], flush=True)
        if expect is not None:
            self.assertEqual(done.returncode, expect, done.stdout[-3000:])
        return done.stdout

    def install(self, folder):
        return self.show(f"apt-get install --yes --no-install-recommends -o Dpkg::Options::=--force-confold /packages/{folder}/*.deb",
                         keep=lambda line: line.startswith(("Setting up", "Preparing", "E:", "W:")) and "zeus" in line)

    def files(self):
        """All files of the machine that belong to no package."""
        listing = self.machine.run("find", "/", "-xdev").stdout.splitlines()
        owned = set(self.machine.run("sh", "-c", "cat /var/lib/dpkg/info/*.list").stdout.splitlines())
        owned |= {"/usr" + path for path in owned if path.startswith(("/lib", "/bin", "/sbin"))}
        return {path for path in listing
                if path not in owned and not (path + "/").startswith(RECORDS) and not path.startswith(RECORDS)
                and "__pycache__" not in path}

    def boot(self):
        self.machine = zeusd_systemd_test.Machine(self, lower=self.base, network=("--resolv-conf=copy-host",))
        for folder, source in (("old", "old-packages"), ("new", "packages")):
            target = self.machine.root / "packages" / folder
            target.mkdir(parents=True)
            for package in (BUILD / source).glob("*.deb"):
                shutil.copy(package, target)
        self.machine.boot()

    def test_install_upgrade_remove_purge(self):
        self.boot()
        before = self.files()
        users = self.machine.run("cat", "/etc/passwd", "/etc/group").stdout

        self.install("old")
        self.assertIn("zeus 0.", self.show("zeus --version"))
        self.assertIn("active", self.show("systemctl is-active zeusd.service zeusd.socket zeusd-board.socket"))
        self.assertNotIn("disabled", self.show("systemctl is-enabled zeusd.service zeusd.socket zeusd-board.socket"))
        self.show("ls /usr/share/man/man1/zeus-run.1.gz /usr/share/bash-completion/completions/zeus", expect=None)
        self.assertIn("CPU energy", self.show("zeus doctor", expect=None))
        self.show("setpriv --reuid=65534 --clear-groups zeus lease list")  # The daemon answers everybody.
        self.show("zeus sim start --gpus 2xA100 && eval \"$(zeus sim env)\" && nvidia-smi -L && zeus run -- sleep 1"
                  " && python3 -c 'from zeus.monitor import ZeusMonitor; print(ZeusMonitor())' && zeus sim stop")
        daemon = self.show("systemctl show --property=MainPID --value zeusd.service").strip()
        self.assertNotEqual(daemon, "0")
        self.show("echo '# ours' >> /etc/zeus/zeusd.toml")

        self.install("new")
        versions = self.show(f"dpkg-query --show {' '.join(PACKAGES)}")
        self.assertEqual(len(set(line.split()[1] for line in versions.splitlines())), 1)
        self.assertNotIn("0.0.9", versions)
        self.assertIn("active", self.show("systemctl is-active zeusd.service"))
        self.assertNotEqual(self.show("systemctl show --property=MainPID --value zeusd.service").strip(), daemon)
        self.assertIn("# ours", self.show("tail -n 1 /etc/zeus/zeusd.toml"))

        self.show(f"apt-get remove --yes {' '.join(PACKAGES)}", keep=lambda line: line.startswith("Removing"))
        self.show("systemctl is-active zeusd.service", expect=None)
        self.show("ls /etc/zeus")
        self.show(f"dpkg --purge {' '.join(PACKAGES)}", keep=lambda line: line.startswith("Purging"))
        self.assertEqual(self.machine.run("cat", "/etc/passwd", "/etc/group").stdout, users)
        self.assertEqual(self.machine.run("sh", "-c", "find /run/zeus* /var/log/zeus* 2>/dev/null; true").stdout, "")
        self.assertEqual(self.files() - before, set())
        self.assertEqual(self.machine.run("sh", "-c", "systemctl list-unit-files | grep zeus; true").stdout, "")
        print("\n# nothing is left: no file, user, group or unit", flush=True)


if __name__ == "__main__":
    if not list((BUILD / "packages").glob("*.deb")):
        sys.exit("there are no packages: ./dev deb --check makes them")
    unittest.main()
