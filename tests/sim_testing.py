"""Shared by the tests of `zeus sim`: a directory of nodes of their own, and the program."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ZEUS = os.environ.get("ZEUS_BINARY", "build/dev/bin/zeus")


def copy_zeus(folder):
    """Copies the program, and beside it the part that speaks HTTP, into a folder; its path there."""
    module = os.path.join(os.path.dirname(ZEUS), "../lib/zeus/libzeus_http_client.so")
    if os.path.exists(module):  # Not where Zeus is built without its servers.
        shutil.copy(module, folder)
    return shutil.copy(ZEUS, os.path.join(folder, "zeus"))


def wait_until(condition, what, seconds=60):
    """Returns as soon as the condition holds; the deadline is reached only on failure."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(what)
        time.sleep(0.02)


class PipedProgram:
    """A program in `process` whose outputs are pipes."""

    def stop(self, number=signal.SIGTERM):
        """Ends it in good order: exit code and what it wrote to standard error."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()


class SimTestCase(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="zeus-sim-test-")
        self.addCleanup(self.directory.cleanup)
        os.chmod(self.directory.name, 0o755)  # Other users may look.
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith("ZEUS_SIM")
        }
        self.environment["ZEUS_SIM_DIR"] = self.directory.name
        # Simulated GPUs of other tests have the same UUIDs.
        self.environment["ZEUS_ACTIVITY_DIR"] = self.directory.name
        self.environment["ZEUS_KNOB_DIR"] = os.path.join(self.directory.name, "knobs")

    def run_sim(self, *arguments, **options):
        return subprocess.run(
            [ZEUS, "sim", *arguments],
            env=self.environment, capture_output=True, text=True, timeout=60, **options,
        )

    def sim(self, *arguments):
        """Runs a verb that must succeed; its output."""
        done = self.run_sim(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def start_load(self, *arguments):
        load = subprocess.Popen(
            [ZEUS, "sim", "load", *arguments],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self.addCleanup(lambda: (load.kill(), load.communicate()) if load.poll() is None else None)
        return load

    def evaluated_environment(self, *arguments):
        """The environment of a shell after eval "$(zeus sim env)"."""
        script = 'eval "$1" && env -0'
        shell = subprocess.run(
            ["sh", "-c", script, "sh", self.sim("env", *arguments)],
            env=self.environment, capture_output=True, check=True,
        )
        entries = shell.stdout.decode().split("\0")
        return dict(entry.split("=", 1) for entry in entries if "=" in entry)
