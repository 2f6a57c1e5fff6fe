"""Shared by the tests: a simulated node that this process, and those that it starts, see."""

import os
import shlex
import subprocess
import tempfile
import time
import unittest
from typing import Callable, NamedTuple

import process_testing  # noqa: F401  (what the processes that it starts are told)

from zeus.sim import Node

ZEUS = os.environ["ZEUS_BINARY"]

_directory = tempfile.TemporaryDirectory(prefix="zeus-python-test-")
# Each test has folders of its own: simulated GPUs of other tests have the same UUIDs.
for variable in ("ZEUS_SIM_DIR", "ZEUS_ACTIVITY_DIR", "ZEUS_KNOB_DIR", "ZEUS_PROFILE_DIR",
                 "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
    os.environ[variable] = os.path.join(_directory.name, variable.lower())
    os.mkdir(os.environ[variable])


def zeus(*arguments: str) -> str:
    """Runs the command, which must succeed; what it printed."""
    done = subprocess.run([ZEUS, *arguments], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"zeus {shlex.join(arguments)}: {done.stderr}")
    return done.stdout


def wait_until(holds: Callable[[], object], what: str = "it did not happen") -> None:
    """Returns as soon as the condition holds; the deadline is reached only on failure."""
    deadline = time.monotonic() + 60
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(what)
        time.sleep(0.01)


class Moment(NamedTuple):
    """A time of day, and the joules that every GPU had truly used by then."""

    time: float
    joules: list


class NodeTestCase(unittest.TestCase):
    """All tests of a class see one simulated node: `node`."""

    GPUS = "4xA100"
    TIME_SCALE = 1

    node: Node

    @classmethod
    def setUpClass(cls) -> None:
        cls.node = Node(cls.GPUS, time_scale=cls.TIME_SCALE)
        cls.addClassCleanup(cls.node.stop)

    def moment(self) -> Moment:
        """The present. Both clocks are read within a millisecond, however busy the machine is."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            before = time.time()
            truth = self.node.truth()
            after = time.time()
            if after - before < 0.001:
                return Moment((before + after) / 2, [gpu.energy for gpu in truth])
        raise AssertionError("the clocks were never read within a millisecond")

    def spend(self, joules: float, gpu: int = 0) -> Moment:
        """Waits until the GPU has truly used so many joules more; the moment after that."""
        begin = self.node.truth()[gpu].energy
        wait_until(lambda: self.node.truth()[gpu].energy > begin + joules, "the GPU uses no energy")
        return self.moment()

    def pass_time(self, seconds: float) -> None:
        """Waits for so many seconds of the node."""
        end = self.node.now + seconds
        wait_until(lambda: self.node.now >= end, "the time of the node stands still")
