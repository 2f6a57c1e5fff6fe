"""Programs that turn power limits are killed at random moments, in and out of pid namespaces.

The GPUs begin at 300 W, an administrator's cap on boards of 400 W. After a signal that a program can
see they must be at 300 W when it is gone; after SIGKILL either so, or `zeus doctor` names them and
the next start, or `zeus knobs restore`, puts them back. Nobody ever sets more than 300 W.

KNOB_KILLS=200 makes it a soak; KNOB_SEED repeats a run.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

from limits_testing import Limits
from sim_testing import ZEUS, SimTestCase, wait_until

PROGRAM = os.environ.get("KNOB_PROGRAM", "build/dev/tests/knob_program")
C_PROGRAM = os.environ.get("KNOB_C_PROGRAM", "build/dev/tests/knob_c_program")
TRAIN_JOB = os.path.abspath(os.environ.get("TRAIN_JOB", "build/dev/examples/train_job"))
PYTHON_PATH = os.environ.get("ZEUS_PYTHON_PATH")
KILLS = int(os.environ.get("KNOB_KILLS", "16"))
GPUS = 2
FOUND = 300

LOOP = "i=0; while :; do i=$((i+1)); echo step $i; sleep 0.02; done"
EPOCHS = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); sleep 0.1; echo acc=0.1; done"
PYTHON_LOOP = """
from zeus.device import get_gpus
gpu = get_gpus()[0]
print("set", flush=True)
while True:
    with gpu.power_limit(150_000):
        pass
"""
PYTHON_JIT = """
import time
from zeus.monitor import ZeusMonitor
from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer
print("set", flush=True)
while True:
    plo = GlobalPowerLimitOptimizer(ZeusMonitor(), warmup_steps=1, profile_steps=2)
    for _ in range(60):
        plo.on_step_begin()
        time.sleep(0.01)
    plo.on_train_end()
    plo.close()
"""
TRAIN_EPOCHS = ": {batch_size}; i=0; while [ $i -lt 50 ]; do i=$((i+1)); sleep 0.1; echo val_acc=0.1; done"
PYTHON_TRAIN = f"""
import zeus
zeus.train(["sh", "-c", {TRAIN_EPOCHS!r}], job="kill", batch_sizes=[32], default=32, target=0.9,
           metric_regex="val_acc=([0-9.]+)", max_epochs=50, eta=0, database="sqlite:jobs.db")
"""


def users(folder):
    """The programs that turn knobs: a name and a command each."""
    inside = ["sh", "-c", 'cd "$0" && exec "$@"', folder]  # Where their databases go.
    profile = ["profile", "--limits", "300,150,100", "--slice", "100ms", "--warmup", "0s"]
    listed = [
        ("cli profile", [ZEUS, *profile, "--until-done", "--quiet", "--", "sh", "-c", LOOP]),
        ("cli sweep", [ZEUS, "profile", "--stride", "50", "--slice", "100ms", "--warmup", "0s",
                       "--eta", "0", "--keep", "--progress", r"step (\d+)", "--quiet", "--", "sh",
                       "-c", LOOP]),
        ("cli train", [ZEUS, "train", "--job", "kill", "--batch-sizes", "32", "--default", "32",
                       "--target", "0.9", "--max-epochs", "50", "--metric-regex", "acc=([0-9.]+)",
                       "--no-placeholder", "--eta", "0", "--stride", "100", "--quiet",
                       "--database", "sqlite://" + os.path.join(folder, "jobs.db"), "--profiles",
                       os.path.join(folder, "profiles"), "--", "sh", "-c", EPOCHS]),
        ("c++ scoped", [PROGRAM, "loop"]),
        ("c++ scoped wait", [PROGRAM, "wait", "scoped"]),
        ("c++ guard", [PROGRAM, "wait"]),
        ("c++ train", [*inside, TRAIN_JOB, "sh", "-c", TRAIN_EPOCHS]),
        ("c", [C_PROGRAM, "loop"]),
        ("c wait", [C_PROGRAM]),
    ]
    if PYTHON_PATH:
        listed += [("python", [sys.executable, "-c", PYTHON_LOOP]),
                   ("python jit", [sys.executable, "-c", PYTHON_JIT]),
                   ("python train", [*inside, sys.executable, "-c", PYTHON_TRAIN])]
    return listed


def can_unshare():
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"],
                          capture_output=True, check=False).returncode == 0


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


class KnobKillTest(SimTestCase):
    def setUp(self):
        super().setUp()
        for name in ("CUDA_VISIBLE_DEVICES", "ZEUS_NVML_LIBRARY"):
            self.environment.pop(name, None)
        # Programs that are started in the background of a shell ignore SIGINT, those of nohup
        # SIGHUP, and so do the programs that they start.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        folder = self.directory.name
        self.environment |= {"HOME": folder, "XDG_DATA_HOME": os.path.join(folder, "data"),
                             "XDG_CONFIG_HOME": os.path.join(folder, "config")}
        if PYTHON_PATH:
            self.environment["PYTHONPATH"] = PYTHON_PATH
        self.errors = os.path.join(folder, "errors")
        self.sim("start", "--gpus", f"{GPUS}xA100")
        self.addCleanup(self.run_sim, "stop")
        self.environment = self.evaluated_environment()
        self.limits = Limits(self, GPUS)
        self.limits.set_all(FOUND)
        self.limits.watch()
        seed = int(os.environ.get("KNOB_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"KNOB_SEED={seed}", flush=True)
        self.random = random.Random(seed)
        self.namespaces = can_unshare()
        self.seen = {"kills": 0, "in pid namespaces": 0, "while a limit was lowered": 0,
                     "left by SIGKILL and named": 0,
                     "below without a warning": 0}

    def zeus(self, *arguments, check=None):
        done = subprocess.run([ZEUS, *arguments], env=self.environment, capture_output=True,
                              text=True, timeout=120, check=False)
        if check is not None:
            self.assertEqual(done.returncode, check, done.stdout + done.stderr)
        return done

    def start(self, command, namespace):
        """The process, and the pid of the program that is to be killed."""
        prefix = []
        if namespace:
            # The shell is the first process of the namespace, which ignores most signals.
            prefix = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                      '"$@"; exit $?', "sh"]
        with open(self.errors, "w", encoding="utf-8") as errors:
            process = subprocess.Popen([*prefix, *command], env=self.environment,
                                       stdout=subprocess.DEVNULL, stderr=errors,
                                       start_new_session=True)
        self.addCleanup(self.end, process)
        if not namespace:
            return process, process.pid
        found = []

        def started():
            shells = children(process.pid)
            found[:] = children(shells[0]) if shells else []
            return bool(found) or process.poll() is not None

        wait_until(started, "the program in its pid namespace")
        return process, found[0] if found else None

    @staticmethod
    def end(process):
        """All of its group, too: a command outlives a zeus that was killed."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def kill_one(self, name, command, number, namespace):
        process, pid = self.start(command, namespace)
        # A moment like any other; an interpreter takes a while to start.
        time.sleep(self.random.uniform(0, 2 if name.startswith("python") else 0.8))
        if pid is None or process.poll() is not None:
            with open(self.errors, encoding="utf-8") as errors:
                self.fail(f"{name} ended by itself: {errors.read()}")
        if namespace and number != signal.SIGKILL:
            wait_until(lambda: process.poll() is not None or self.heeds(pid, number),
                       f"{name} never heeds signal {number}")
        self.seen["while a limit was lowered"] += bool(self.below())
        os.kill(pid, number)
        self.wait_for_end(process, pid, number)
        self.end(process)
        self.seen["kills"] += 1
        self.seen["in pid namespaces"] += namespace

    @staticmethod
    def heeds(pid, number):
        """Whether it has a handler for the signal, or reads it. The first process of a pid
        namespace ignores all others."""
        try:
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                masks = [int(line.split()[1], 16) for line in file
                         if line.startswith(("SigCgt", "SigBlk"))]
        except OSError:
            return True
        return any(mask >> (number - 1) & 1 for mask in masks)

    @staticmethod
    def wait_for_end(process, pid, number):
        def gone():
            if process.poll() is not None:
                return True
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                    return file.read().rpartition(")")[2].split()[0] in "ZX"
            except OSError:
                return True

        wait_until(gone, f"the end of a program after signal {number}")

    def below(self):
        return [f"gpu:{index}" for index, watts in enumerate(self.limits.read()) if watts < FOUND]

    def check_after(self, what, number):
        below = self.below()
        if not below:
            return
        self.assertEqual(number, signal.SIGKILL, f"{what}: {below} below {FOUND} W")
        leftovers = json.loads(self.zeus("doctor", "--json", "--seconds", "0").stdout)["leftovers"]
        named = {left["what"] for left in leftovers if left["fix"] == "zeus knobs restore"}
        for gpu in below:
            self.seen["below without a warning"] += f"power limit of {gpu}" not in named
            self.seen["left by SIGKILL and named"] += 1
        self.assertEqual(self.seen["below without a warning"], 0, (what, below, leftovers))
        self.repair(what)

    def repair(self, what):
        """By `zeus knobs restore`, or by the next start of somebody else, anywhere."""
        if self.random.random() < 0.5:
            self.zeus("knobs", "restore", check=0)
        else:
            namespace = self.namespaces and self.random.random() < 0.5
            prefix = ["unshare", "--pid", "--fork", "--mount-proc"] if namespace else []
            done = subprocess.run([*prefix, PROGRAM, "return"], env=self.environment, check=False,
                                  capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, (what, done.stderr))
        self.assertEqual(self.below(), [], what)

    def test_a_signal_ends_a_training_of_a_program_with_its_gpus_as_they_were(self):
        trainings = [user for user in users(self.directory.name) if user[0].endswith(" train")]
        for name, command in trainings:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                process, pid = self.start(command, False)
                wait_until(lambda process=process: self.below() or process.poll() is not None,
                           f"{name} lowers a limit")
                with open(self.errors, encoding="utf-8") as errors:
                    self.assertIsNone(process.poll(), f"{name}: {errors.read()}")
                os.kill(pid, number)
                self.wait_for_end(process, pid, number)
                self.assertEqual(self.below(), [], (name, number.name))
                self.end(process)

    def test_random_kills_leave_no_gpu_capped_and_no_cap_raised(self):
        listed = users(self.directory.name)
        signals = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL]
        for kill in range(KILLS):
            name, command = listed[kill % len(listed)]
            number = self.random.choice(signals)
            namespace = self.namespaces and self.random.random() < 0.5
            what = f"kill {kill}: {name}, {number.name}{', pid namespace' if namespace else ''}"
            self.kill_one(name, command, number, namespace)
            self.check_after(what, number)
            self.assertLessEqual(self.limits.highest, FOUND, what)
        print(", ".join(f"{value} {key}" for key, value in self.seen.items()),
              f"highest limit {self.limits.highest:g} W", sep=", ", flush=True)
        if not self.namespaces:
            self.skipTest("pid namespaces are not allowed here: killed outside of them only")


if __name__ == "__main__":
    unittest.main(verbosity=2)
