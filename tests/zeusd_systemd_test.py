"""zeusd under a real systemd, which systemd-nspawn boots from a throw-away copy of this machine's files: the shipped
unit, socket activation, restarts, the watchdog, and what becomes of leases. Needs root."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

from sim_testing import ZEUS, wait_until
from zeusd_testing import LIMIT, ZEUSD

PACKAGING = pathlib.Path(__file__).resolve().parent.parent / "packaging" / "systemd"
CLIENT = pathlib.Path(__file__).resolve().parent / "zeusd_client.py"
# The simulated one, as it lies beside the command.
DRIVER = pathlib.Path(ZEUS).resolve().parent.parent / "lib/zeus/sim/libnvidia-ml.so.1"
SOCKET = "/run/zeusd/zeusd.sock"
RECEIVE_BOARD = """
import socket
board = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
board.settimeout(60)
board.connect("/run/zeusd/board.sock")
message, descriptors, _, _ = socket.recv_fds(board, 1 << 20, 8)
print(message.decode(), len(descriptors))
"""


def reason_to_skip():
    if os.geteuid() != 0:
        return "booting a systemd needs root"
    if "ZEUS_SANITIZED" in os.environ:
        return "a sanitized program needs more than the unit allows"
    for program in ("systemd-nspawn", "nsenter"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    with tempfile.TemporaryDirectory(prefix="zeusd-mount-") as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False).returncode != 0:
            return "this machine does not let root mount"
        subprocess.run(["umount", folder], check=True)
    return None


class Machine:
    """A systemd with files of its own above those of this machine (or another), and its own /run, /tmp and network."""

    def __init__(self, test, lower="/", network=("--private-network",)):
        self.network = network
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="zeusd-systemd-"))
        test.addCleanup(self.remove)
        self.init = None
        self.nspawn = None
        upper = self.folder / "writable"
        self.root = self.folder / "root"
        for path in (upper, self.root):
            path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", upper], check=True)
        for name in ("up", "work"):
            (upper / name).mkdir()
        layers = f"lowerdir={lower},upperdir={upper}/up,workdir={upper}/work"
        mounted = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, self.root], capture_output=True,
                                 text=True, check=False)
        if mounted.returncode != 0:
            raise unittest.SkipTest(f"the files of this machine cannot be overlaid: {mounted.stderr.strip()}")

    def boot(self):
        with (self.folder / "console").open("wb") as log:
            self.nspawn = subprocess.Popen(
                ["systemd-nspawn", "-q", "-D", self.root, "--boot", "--register=no", "--keep-unit", *self.network,
                 "--capability=all", "--console=pipe", "systemd.unit=basic.target"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self.has_booted, "systemd boots")
        # nspawn hides the id of this boot behind another, which units with a /proc of their own do not see.
        while self.run("umount", "/proc/sys/kernel/random/boot_id", check=False).returncode == 0:
            pass

    def has_booted(self):
        if self.nspawn.poll() is not None:
            raise unittest.SkipTest("systemd-nspawn cannot boot here: "
                                    + (self.folder / "console").read_text(errors="replace")[-300:])
        children = pathlib.Path(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read_text().split()
        if not children:
            return False
        self.init = int(children[0])
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return state in ("running", "degraded")

    def command(self, *words):
        return ["nsenter", "-t", str(self.init), "-a", *map(str, words)]

    def run(self, *words, check=True, **options):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=120, check=False,
                              stdin=subprocess.DEVNULL, **options)
        if check and done.returncode != 0:
            raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
        return done

    def remove(self):
        if self.init is not None:
            self.signal_init(signal.SIGRTMIN + 14)  # systemd's sign to power off at once.
        if self.nspawn is not None:
            try:
                self.nspawn.wait(30)
            except subprocess.TimeoutExpired:
                if self.init is not None:
                    self.signal_init(signal.SIGKILL)
                self.nspawn.kill()
                self.nspawn.wait()
        for path in (self.root, self.folder / "writable"):
            subprocess.run(["umount", "-l", path], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def signal_init(self, number):
        if self.nspawn.poll() is None:  # Else the number may be another process's.
            os.kill(self.init, number)


class ZeusdSystemdTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = reason_to_skip()
        if reason:
            raise unittest.SkipTest(reason)

    def setUp(self):
        self.machine = Machine(self)
        root = self.machine.root
        shutil.copy(ZEUSD, root / "usr/sbin/zeusd")
        shutil.copy(ZEUS, root / "usr/bin/zeus-of-test")
        # A temporary directory of this machine is not on the other one.
        shutil.copy(CLIENT, root / "usr/bin/zeusd_client.py")
        shutil.copy(DRIVER, root / "usr/lib/libnvidia-ml-simulated.so.1")
        units = root / "etc/systemd/system"
        for name in ("zeusd.service", "zeusd.socket", "zeusd-board.socket", "zeusd-restore.service"):
            shutil.copy(PACKAGING / name, units / name)
        (root / "etc/zeus").mkdir(exist_ok=True)
        shutil.copy(PACKAGING / "zeusd.toml", root / "etc/zeus/zeusd.toml")
        shutil.copy(PACKAGING / "zeusd.sysusers", root / "usr/lib/sysusers.d/zeusd.conf")
        (root / "var/lib/zeus-sim").mkdir(mode=0o777)
        self.write_dropin()
        self.machine.boot()
        self.machine.run("systemd-sysusers")
        self.sim = {"ZEUS_SIM_DIR": "/var/lib/zeus-sim", "ZEUS_SIM_NODE": "node",
                    "ZEUS_NVML_LIBRARY": "/usr/lib/libnvidia-ml-simulated.so.1"}
        self.in_sim("/usr/bin/zeus-of-test", "sim", "start", "--gpus", "2xV100", "--name", "node")
        self.machine.run("chmod", "-R", "a+rwX", "/var/lib/zeus-sim")

    def write_dropin(self, text=""):
        for unit, more in (("zeusd", text), ("zeusd-restore", "")):
            folder = self.machine.root / f"etc/systemd/system/{unit}.service.d"
            folder.mkdir(exist_ok=True)
            (folder / "simulated.conf").write_text(
                "[Service]\nEnvironment=ZEUS_NVML_LIBRARY=/usr/lib/libnvidia-ml-simulated.so.1\n"
                "Environment=ZEUS_SIM_NODE=node ZEUS_SIM_DIR=/var/lib/zeus-sim\n"
                f"ReadWritePaths=/var/lib/zeus-sim\n{more}")

    def in_sim(self, *words, check=True):
        settings = [f"{name}={value}" for name, value in self.sim.items()]
        return self.machine.run("env", *settings, *words, check=check)

    def systemctl(self, *words, check=True):
        return self.machine.run("systemctl", *words, check=check).stdout.strip()

    def ask(self, method, target, body=None):
        words = ["/usr/bin/python3", "/usr/bin/zeusd_client.py", SOCKET, "ask", method, target]
        if body is not None:
            words.append(json.dumps(body))
        status, text = self.machine.run(*words).stdout.split(" ", 1)
        return int(status), json.loads(text) if text.strip().startswith(("{", "[")) else text

    def uuids(self):
        status, node = self.ask("GET", "/v1/node")
        self.assertEqual(status, 200)
        return [gpu["uuid"] for gpu in node["gpus"]]

    def hold(self, watts, uuid=None):
        """A process that holds a lease until its standard input ends."""
        uuid = uuid or self.uuids()[0]
        body = {"name": "test", "requests": [
            {"device": uuid, "knob": "gpu_power_limit", "exactly": {"watts": watts}}]}
        process = subprocess.Popen(
            self.machine.command("/usr/bin/python3", "/usr/bin/zeusd_client.py", SOCKET, "hold", "POST", "/v1/leases",
                                 json.dumps(body)),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        status, text = process.stdout.readline().split(" ", 1)
        self.assertEqual(int(status), 201, text)
        return process, json.loads(text)

    @staticmethod
    def end(process):
        """Ends a holder in good order: one that nsenter leaves behind delays the end of the machine."""
        process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def limit(self):
        text = self.in_sim("/usr/bin/zeus-of-test", "doctor", "--json", "--seconds", "0").stdout
        return json.loads(text)["gpus"][0]["power_limit"]["current"]

    def main_pid(self):
        return self.systemctl("show", "-P", "MainPID", "zeusd.service")

    def kill_daemon(self, number="KILL"):
        self.machine.run("kill", f"-{number}", self.main_pid())

    def test_a_request_starts_the_daemon_which_has_a_user_of_its_own_and_sets_a_limit(self):
        self.systemctl("start", "zeusd.socket")
        self.assertNotEqual(self.systemctl("is-active", "zeusd.service", check=False), "active")
        self.hold(200)
        self.assertEqual(self.systemctl("is-active", "zeusd.service"), "active")
        self.assertEqual(self.limit(), 200)
        user = self.machine.run("ps", "-o", "user=", "-p", self.main_pid()).stdout.strip()
        self.assertEqual(user, "zeusd")

    def test_root_of_the_machine_is_its_administrator_and_others_may_read(self):
        self.systemctl("start", "zeusd.socket")
        _, who = self.ask("GET", "/v1/whoami")
        self.assertEqual((who["contained"], "admin" in who["scopes"]), (False, True), who)
        ask = ["/usr/bin/python3", "/usr/bin/zeusd_client.py", SOCKET, "ask", "GET", "/v1/whoami"]
        other = self.machine.run("setpriv", "--reuid", "12001", "--regid", "12001", "--clear-groups", *ask).stdout
        who = json.loads(other.split(" ", 1)[1])
        self.assertEqual((who["contained"], who["scopes"]), (False, ["gpu-read"]), who)
        # Root with mounts of its own is taken for a container's.
        other = self.machine.run("unshare", "--mount", *ask).stdout
        who = json.loads(other.split(" ", 1)[1])
        self.assertEqual((who["contained"], "admin" in who["scopes"]), (True, False), who)

    def test_the_board_is_handed_out_by_a_socket_of_its_own(self):
        self.systemctl("start", "zeusd-board.socket", "zeusd.socket")
        self.assertNotEqual(self.systemctl("is-active", "zeusd.service", check=False), "active")
        text = self.machine.run("/usr/bin/python3", "-c", RECEIVE_BOARD).stdout
        message, descriptors = text.rsplit(" ", 1)
        self.assertEqual(json.loads(message)["schema"], "zeus.board/1")
        self.assertGreaterEqual(int(descriptors), 1)

    def test_a_killed_daemon_starts_again_adopts_the_living_and_restores_the_knobs_of_the_dead(self):
        self.systemctl("start", "zeusd.socket")
        holder, lease = self.hold(200)
        before = self.main_pid()
        self.kill_daemon()
        wait_until(lambda: self.main_pid() not in ("0", before), "systemd starts it again")
        status, view = self.ask("GET", f"/v1/leases/{lease['id']}")
        self.assertEqual((status, view["state"]), (200, "active"), view)
        self.assertEqual(self.limit(), 200)
        holder.stdin.close()
        holder.wait(60)
        wait_until(lambda: self.limit() == LIMIT, "the limit of the dead holder is put back")

    def test_a_crash_disturbs_no_knob_of_a_living_holder(self):
        # Each start of the daemon notes the limits that it finds.
        self.write_dropin("ExecStartPre=/bin/sh -c '/usr/bin/zeus-of-test doctor --json --seconds 0 "
                          ">> /var/lib/zeus-sim/found; echo >> /var/lib/zeus-sim/found'\n")
        self.systemctl("daemon-reload")
        self.systemctl("start", "zeusd.socket")
        self.hold(200)
        before = self.main_pid()
        self.kill_daemon()
        wait_until(lambda: self.main_pid() not in ("0", before), "systemd starts it again")
        found = (self.machine.root / "var/lib/zeus-sim/found").read_text()
        limits = [json.loads(text)["gpus"][0]["power_limit"]["current"] for text in self.documents(found)]
        self.assertEqual(limits, [LIMIT, 200])
        self.assertEqual(self.limit(), 200)

    @staticmethod
    def documents(text):
        """The JSON documents that follow each other in a text."""
        decoder, position, found = json.JSONDecoder(), 0, []
        while position < len(text.rstrip()):
            start = position + len(text[position:]) - len(text[position:].lstrip())
            _, position = decoder.raw_decode(text, start)
            found.append(text[start:position])
        return found

    def test_stop_puts_every_knob_back(self):
        self.systemctl("start", "zeusd.socket")
        self.hold(200)
        self.systemctl("stop", "zeusd.socket", "zeusd.service")
        self.assertEqual(self.limit(), LIMIT)

    def test_a_daemon_that_cannot_start_again_leaves_no_knob_turned(self):
        self.systemctl("start", "zeusd.socket")
        self.hold(200)
        config = self.machine.root / "etc/zeus/zeusd.toml"
        config.write_text("no such key = 1\n")
        self.kill_daemon()
        wait_until(lambda: self.limit() == LIMIT, "zeusd-restore.service puts the knob back without a daemon")

    def test_the_watchdog_ends_a_daemon_that_hangs(self):
        self.write_dropin("WatchdogSec=1s\n")
        self.systemctl("daemon-reload")
        self.systemctl("start", "zeusd.socket")
        holder, _ = self.hold(200)
        before = self.main_pid()
        self.kill_daemon("STOP")
        wait_until(lambda: self.main_pid() not in ("0", before), "the watchdog ends it and systemd starts it again")
        holder.stdin.close()
        holder.wait(60)
        wait_until(lambda: self.limit() == LIMIT, "the new one puts the limit back")

    def test_restart_with_leave_keeps_the_leases_of_living_holders(self):
        config = self.machine.root / "etc/zeus/zeusd.toml"
        config.write_text('stop_policy = "leave"\n')
        self.systemctl("start", "zeusd.socket")
        _, lease = self.hold(200)
        before = self.main_pid()
        self.systemctl("restart", "zeusd.service")
        self.assertNotEqual(self.main_pid(), before)
        status, view = self.ask("GET", f"/v1/leases/{lease['id']}")
        self.assertEqual((status, view["state"]), (200, "active"), view)
        self.assertEqual(self.limit(), 200)


if __name__ == "__main__":
    unittest.main()
