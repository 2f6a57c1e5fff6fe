"""A user without rights on a node with zeusd: `zeus run`, `zeus profile`, optimisers and clients in Python."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

from sim_testing import copy_zeus, wait_until
from zeusd_testing import LIMIT, LOWEST, ZeusdTestCase

USER = 12001
CONFIGURATION = f"""
[defaults]
scopes = ["gpu-read"]

[[rule]]
name = "researchers"
match = {{ uids = [{USER}] }}
scopes = ["gpu-read", "gpu-control"]
"""
OPTIMISER = """
import sys, time
from zeus.monitor import ZeusMonitor
from zeus.optimizer.power_limit import Energy, GlobalPowerLimitOptimizer

monitor = ZeusMonitor(gpu_indices=[0])
plo = GlobalPowerLimitOptimizer(monitor, Energy(), warmup_steps=1, profile_steps=10, power_limits=[250, 175, 100])
for _ in range(2000):
    if plo.done:
        break
    plo.on_step_begin()
    time.sleep(0.05)
print(plo.done, plo.optimal_power_limit, plo.trouble, flush=True)
sys.stdin.read()
"""
CLIENT = """
import sys
from zeus.utils.zeusd import ZeusdClient, require_capabilities

client = ZeusdClient()
require_capabilities(client, read_gpu=True, control_gpu=True, gpu_ids=[0, 1])
before = client.get_gpu_energy()
client.set_power_limit([1], 150_000)
print(client.gpu_ids, client.get_power_limit(), client.get_power_limit_constraints([0]),
      all(power > 0 for power in client.get_gpu_power().power_mw.values()),
      all(client.get_gpu_energy()[index] >= before[index] for index in before), flush=True)
sys.stdin.read()
"""


@unittest.skipUnless(os.geteuid() == 0, "becoming another user needs root")
class ZeusdClientsTest(ZeusdTestCase):
    def setUp(self):
        super().setUp()
        self.start_daemon(CONFIGURATION)
        # The user may be unable to read the build tree.
        self.zeus = copy_zeus(self.folder)
        self.home = pathlib.Path(self.folder) / "home"
        self.home.mkdir()
        os.chown(self.home, USER, USER)
        self.user_environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8",
            "ZEUS_ACTIVITY_DIR": str(self.home), "ZEUSD_SOCK_PATH": self.socket_path}

    def as_user(self, *words):
        """The words of a command that the user runs."""
        return ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", "--no-new-privs", *words]

    def run_as_user(self, *words):
        return subprocess.run(self.as_user(*words), env=self.user_environment, cwd=self.home, capture_output=True,
                              text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)

    def start_as_user(self, *words):
        process = subprocess.Popen(self.as_user(*words), env=self.user_environment, cwd=self.home, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (process.kill(), process.communicate()) if process.poll() is None else None)
        return process

    def end(self, process):
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)

    def python(self):
        """An interpreter that the user can start, with a copy of the package that the user can read."""
        folder = os.environ.get("ZEUS_PYTHON_PATH")
        if folder is None:
            self.skipTest("the Python package is not built")
        if "ZEUS_SANITIZED" in os.environ:
            self.skipTest("an interpreter cannot load a sanitized library")
        package = os.path.join(self.folder, "python")
        shutil.copytree(os.path.join(folder, "zeus"), os.path.join(package, "zeus"), symlinks=False,
                        ignore=shutil.ignore_patterns("__pycache__"))
        self.user_environment["PYTHONPATH"] = package
        failure = ""
        for python in (sys.executable, "/usr/bin/python3"):
            done = self.run_as_user(python, "-B", "-c", "import zeus.device")
            if done.returncode == 0:
                return python
            failure += done.stderr
        self.skipTest(f"the user can start no interpreter that loads the package: {failure[-300:]}")
        return None

    def test_doctor_says_which_way_is_taken(self):
        done = self.run_as_user(self.zeus, "doctor", "--seconds", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"through the node daemon at unix:{self.socket_path}: ZEUSD_SOCK_PATH names it", done.stdout)
        self.assertIn("set power limit    allowed", done.stdout)
        node = self.run_as_user(self.zeus, "node")
        self.assertIn(f"You are uid:{USER} there, with the scopes gpu-read, gpu-control", node.stdout)
        self.daemon.stop()
        done = self.run_as_user(self.zeus, "doctor", "--seconds", "0")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(self.socket_path, done.stdout + done.stderr)

    def test_a_c_program_sets_a_limit_that_ends_with_it(self):
        program = shutil.copy(os.environ["KNOB_C_PROGRAM"], os.path.join(self.folder, "knob_c_program"))
        process = self.start_as_user(program)
        self.assertEqual(process.stdout.readline(), "set\n", self.failure_of(process))
        self.assertEqual(self.limits(), [150, LIMIT])
        leases = self.ask("GET", "/v1/leases").json["leases"]
        self.assertEqual([lease["subject"] for lease in leases], [f"uid:{USER}"])
        self.end(process)
        wait_until(lambda: self.limits() == [LIMIT, LIMIT], "the limit of a killed C program is put back")

    @staticmethod
    def failure_of(process):
        """The words of a program that has ended too early."""
        return "" if process.poll() is None else process.stderr.read()

    def test_calibrations_are_shown_through_the_daemon_and_made_by_the_driver(self):
        shown = self.run_as_user(self.zeus, "calibrate", "--show", "--json")
        self.assertEqual((shown.returncode, shown.stderr), (1, ""), shown.stdout)
        made = self.run_as_user(self.zeus, "calibrate", "--seconds", "2", "--load-command", "cat > /dev/null")
        self.assertNotEqual(made.returncode, 0, made.stdout)
        self.assertIn("run it where the driver is, without ZEUSD_SOCK_PATH", made.stderr)

    def test_run_measures_without_rights(self):
        load = self.start_load("--gpu", "1", "--watts", "200")
        done = self.run_as_user(self.zeus, "run", "--json", "result.json", "--", "sleep", "2")
        load.kill()
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads((self.home / "result.json").read_text(encoding="utf-8"))
        self.assertEqual(result["total"]["contains"], ["gpu:0", "gpu:1"], done.stderr)
        idle, busy = (gpu["average_power_watts"] for gpu in result["devices"])
        self.assertLess(idle, 60)
        self.assertGreater(busy, 120)

    def profile(self):
        """The words of a profile of a job whose load on the GPU comes from elsewhere."""
        self.start_load("--gpu", "0", "--watts", "240")
        return [self.zeus, "profile", "--gpus", "0", "--limits", "250,175,100", "--slice", "1s", "--warmup", "200ms",
                "--progress", r"step ([\d.]+)", "--stop", "--json", "profile.json", "--", "sh", "-c",
                "step=0; while :; do step=$((step + 1)); echo step $step; sleep 0.05; done"]

    def test_profile_turns_limits_without_rights_and_puts_them_back(self):
        done = self.run_as_user(*self.profile())
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads((self.home / "profile.json").read_text(encoding="utf-8"))
        self.assertTrue(result["complete"], done.stderr)
        self.assertEqual({slice["setting"] for slice in result["slices"]}, {250, 175, 100})
        for slice in result["slices"]:
            self.assertEqual(slice.get("flags", []), [], result["slices"])
        wait_until(lambda: self.limits() == [LIMIT, LIMIT], "the limit is put back")

    def test_a_killed_profile_leaves_no_limit_behind(self):
        process = self.start_as_user(*self.profile())
        wait_until(lambda: self.limits()[0] != LIMIT, "the profile turns the limit")
        self.end(process)
        wait_until(lambda: self.limits() == [LIMIT, LIMIT], "the limit is put back")

    def test_an_optimiser_in_python_finds_the_limit_which_is_put_back_after_kill(self):
        python = self.python()
        self.start_load("--gpu", "0", "--watts", "240")
        process = self.start_as_user(python, "-B", "-c", OPTIMISER)
        line = process.stdout.readline()
        # Its steps take as long at each limit: the lowest one takes the least energy.
        self.assertEqual(line, f"True {LOWEST} None\n", "" if line else process.communicate()[1])
        self.assertEqual(self.limits(), [LOWEST, LIMIT])
        leases = self.ask("GET", "/v1/leases").json["leases"]
        self.assertEqual({lease["subject"] for lease in leases}, {f"uid:{USER}"}, leases)
        self.end(process)
        wait_until(lambda: self.limits() == [LIMIT, LIMIT], "the limit is put back")

    def test_the_client_of_the_reference_works_as_it_is(self):
        process = self.start_as_user(self.python(), "-B", "-c", CLIENT)
        line = process.stdout.readline()
        self.assertEqual(line, "[0, 1] {0: 250000, 1: 150000} {0: (100000, 250000)} True True\n",
                         "" if line else process.communicate()[1])
        self.assertEqual(self.limits(), [LIMIT, 150])
        self.end(process)
        wait_until(lambda: self.limits() == [LIMIT, LIMIT], "the limit is put back")


if __name__ == "__main__":
    unittest.main()
