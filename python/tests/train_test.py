"""zeus.train(): a recurring job of a foreign command."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import node_testing  # noqa: F401  (directories of our own)
import zeus
from process_testing import without_sanitizer
from zeus import _native_files

ROOT = pathlib.Path(__file__).parents[2]

# Prints its own process id, so that the test can see it end.
ENDLESS = """
import zeus, zeus.sim
with zeus.sim.here("V100"):
    try:
        zeus.train(["sh", "-c", "echo started $$; sleep 1000"], job="endless", batch_sizes=[8],
                   default=8, target=1, metric_regex="acc=(.*)", power_limit="found",
                   database="sqlite:jobs.db")
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@without_sanitizer
class TrainTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {**os.environ, "ZEUS_COMMAND": _native_files.command(),
                            "XDG_DATA_HOME": folder.name}

    def test_the_example_reaches_its_target(self):
        done = subprocess.run(
            [sys.executable, "-B", str(ROOT / "examples/python/train_job.py")], cwd=self.folder,
            env=self.environment, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = [line for line in done.stdout.splitlines() if line.startswith("batch size")]
        self.assertGreaterEqual(len(runs), 2, done.stdout)
        self.assertIn("reached the target", runs[-1])

    def test_ctrl_c_stops_the_command_and_raises(self):
        with subprocess.Popen([sys.executable, "-B", "-c", ENDLESS], cwd=self.folder,
                              env=self.environment, stdout=subprocess.PIPE, text=True) as program:
            word, process = program.stdout.readline().split()
            self.assertEqual(word, "started")
            program.send_signal(signal.SIGINT)
            self.assertIn("interrupted", program.stdout.read())
        with self.assertRaises(ProcessLookupError):
            os.kill(int(process), 0)

    def test_mistakes_are_errors(self):
        arguments = {"job": "j", "batch_sizes": [8], "default": 8, "target": 1}
        with self.assertRaisesRegex(ValueError, "metric-regex takes a regular"):
            zeus.train(["true"], **arguments, metric_regex="((")
        with self.assertRaisesRegex(ValueError, "power_limit is jit"):
            zeus.train(["true"], **arguments, power_limit="low")
        with self.assertRaises(zeus.ZeusError):
            zeus.train(["there-is-no-such-command"], **arguments)


if __name__ == "__main__":
    unittest.main()
