"""What the tests share: a simulated node that this process, and those that it starts, see."""

import os
import shlex
import subprocess
import tempfile
import unittest

import process_testing  # noqa: F401  (what the processes that it starts are told)

from zeus.sim import Node

ZEUS = os.environ["ZEUS_BINARY"]

_directory = tempfile.TemporaryDirectory(prefix="zeus-python-test-")
# Of their own: simulated GPUs of other tests have the same UUIDs.
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


class NodeTestCase(unittest.TestCase):
    """All tests of a class see one simulated node: `node`."""

    GPUS = "4xA100"
    TIME_SCALE = 1

    node: Node

    @classmethod
    def setUpClass(cls) -> None:
        cls.node = Node(cls.GPUS, time_scale=cls.TIME_SCALE)
        cls.addClassCleanup(cls.node.stop)
