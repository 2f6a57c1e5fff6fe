"""However a program ends, the power limits are as before."""

import os
import signal
import subprocess
import sys
import unittest

from limit_testing import limits, monitor_of, quick
from one_node_testing import OneNodeTestCase

# Says when the lower limit is set, and then does as it is told.
PROGRAM = """
import os, sys, time
sys.path.insert(0, {tests!r})
from limit_testing import BYTES, OPERATIONS, Lowest, limits, monitor_of, quick, train
import zeus.sim

monitor = monitor_of(0)
work = zeus.sim.attach().run(operations=OPERATIONS, bytes=BYTES, gpus=[0])
plo = quick(monitor, Lowest(), power_limits=[150])
train(plo, work)
assert plo.trouble is None, plo.trouble
assert limits([0]) == [150], limits()
print("set", flush=True)
{ending}
"""


class EndingTest(OneNodeTestCase):
    GPUS = "A100"
    TIME_SCALE = 50

    def start(self, ending: str) -> subprocess.Popen:
        text = PROGRAM.format(tests=os.path.dirname(os.path.abspath(__file__)), ending=ending)
        child = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        line = child.stdout.readline()
        self.assertEqual(line, "set\n", line or child.stderr.read())
        return child

    def setUp(self) -> None:
        self.original = limits()

    def ends(self, ending: str, code: int, sent=None) -> subprocess.Popen:
        child = self.start(ending)
        if sent is not None:
            child.send_signal(sent)
        self.assertEqual(child.wait(timeout=60), code)
        return child

    def test_by_itself(self):
        self.ends("", 0)
        self.assertEqual(limits(), self.original)

    def test_by_an_exception(self):
        self.ends("raise ValueError('no')", 1)
        self.assertEqual(limits(), self.original)

    def test_by_sys_exit(self):
        self.ends("sys.exit(3)", 3)
        self.assertEqual(limits(), self.original)

    def test_by_ctrl_c(self):
        child = self.ends("time.sleep(60)", -signal.SIGINT, signal.SIGINT)
        self.assertIn("KeyboardInterrupt", child.stderr.read())
        self.assertEqual(limits(), self.original)

    def test_by_sigterm(self):
        self.ends("time.sleep(60)", -signal.SIGTERM, signal.SIGTERM)
        self.assertEqual(limits(), self.original)

    def test_by_sigkill_and_the_next_start(self):
        self.ends("time.sleep(60)", -signal.SIGKILL, signal.SIGKILL)
        self.assertEqual(limits(), [150])
        # The next program that turns the limit puts back what was there first.
        monitor = monitor_of(0)
        self.addCleanup(monitor.close)
        with quick(monitor) as plo:
            self.assertIsNone(plo.trouble)
        self.assertEqual(limits(), self.original)

    def test_a_notebook_goes_on_after_ctrl_c(self):
        child = self.start("""
try:
    print("training", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    pass
print("interrupted", limits([0]), flush=True)
plo = quick(monitor, Lowest(), power_limits=[200])
train(plo, work)
print("again", plo.trouble, limits([0]), flush=True)
time.sleep(60)
""")
        self.assertEqual(child.stdout.readline(), "training\n")
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.stdout.readline(), f"interrupted {self.original}\n")
        self.assertEqual(child.stdout.readline(), "again None [200.0]\n")
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(timeout=60), -signal.SIGINT)
        self.assertEqual(limits(), self.original)


if __name__ == "__main__":
    unittest.main()
