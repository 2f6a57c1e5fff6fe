"""examples/python: each runs, and says what it is there to say."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import unittest

import node_testing  # noqa: F401  (directories of our own)
import zeus.sim
from process_testing import without_sanitizer

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples/python"

torch = importlib.util.find_spec("torch")


class WithoutTorchTest(unittest.TestCase):
    def test_each_says_what_it_needs(self):
        for name in ("measure.py", "optimize_power_limit.py", "recurring_job.py", "train_ddp.py",
                     "power_over_epoch.py"):
            with self.subTest(example=name):
                program = ("import runpy, sys\n"
                           "sys.modules['torch'] = None\n"
                           f"sys.path.insert(0, {str(EXAMPLES)!r})\n"
                           f"runpy.run_path({str(EXAMPLES / name)!r}, run_name='__main__')")
                done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True,
                                      text=True, timeout=120)
                self.assertEqual(done.returncode, 1)
                self.assertIn("trains with torch, which is not installed", done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


@without_sanitizer
@unittest.skipIf(torch is None, "torch is not installed")
class ExamplesTest(unittest.TestCase):
    def run_example(self, name: str, *arguments: str) -> str:
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, "-B", str(EXAMPLES / name), *arguments],
                              env=environment, capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        decision = "zeus: the power limit is from now on "  # Some examples optimise it.
        self.assertEqual([line for line in done.stderr.splitlines() if not line.startswith(decision)], [])
        return done.stdout

    def numbers(self, pattern: str, text: str) -> list:
        found = [float(number) for number in re.findall(pattern, text)]
        self.assertTrue(found, text)
        return found

    def test_measure(self):
        said = self.run_example("measure.py", "--epochs", "3")
        accuracies = self.numbers(r"accuracy ([\d.]+)", said)
        self.assertEqual(len(accuracies), 3)
        self.assertGreater(accuracies[-1], accuracies[0])
        energies = self.numbers(r"accuracy [\d.]+, (\d+) ± \d+ J", said)
        [total] = self.numbers(r"training: ([\d.]+) ± [\d.]+ kJ", said)
        self.assertGreater(1000 * total, 0.98 * sum(energies))  # It has two digits of its sigma.
        [watts] = self.numbers(r"gpu:0: (\d+) W on average", said)
        self.assertTrue(40 < watts < 400, said)

    def test_each_works_on_a_node_that_runs_already(self):
        with zeus.sim.Node("2xA100", time_scale=20) as node:
            for name, words in (("measure.py", ["--epochs", "1"]), ("optimize_power_limit.py", []),
                                ("recurring_job.py", ["--recurrences", "1"]), ("train_ddp.py", [])):
                with self.subTest(example=name):
                    before = node.truth()[0].energy
                    self.run_example(name, *words)
                    self.assertFalse(node.stopped)
                    self.assertGreater(node.truth()[0].energy, before)

    def test_optimize_power_limit(self):
        said = self.run_example("optimize_power_limit.py", "--eta", "1")
        energies = dict(re.findall(r"(?m)^ ?(\d+) W: [\d.]+ s, ([\d.]+) J$", said))
        self.assertEqual(list(energies), ["250", "225", "200", "175", "150", "125", "100"])
        [chosen] = re.findall(r"chosen: (\d+) W", said)
        # It is the fastest of those that cost about the least: on a busy machine none may be told from the first.
        cheapest = min(energies, key=lambda limit: float(energies[limit]))
        self.assertGreaterEqual(int(chosen), int(cheapest), said)
        self.assertRegex(said, "saved: " if chosen == "250"
                         else rf"saved: {chosen} W instead of 250 W: energy -\d")

    def test_recurring_job(self):
        said = self.run_example("recurring_job.py", "--recurrences", "6")
        sizes = self.numbers(r"batch size +(\d+)", said)
        self.assertEqual(len(sizes), 6)
        self.assertEqual(sizes[0], 16)
        self.assertGreater(len(set(sizes)), 1)
        self.assertEqual(len(re.findall(r"(?m)^run \d: .* \S+$", said)), 6)
        # On a busy machine steps take longer, and a run that costs too much is stopped early.
        self.assertGreaterEqual(said.count("reached the target"), 4, said)
        self.assertRegex(said, r"first run \d+ J, best \d+ J, last \d+ J")

    def test_train_ddp(self):
        said = self.run_example("train_ddp.py")
        chosen = self.numbers(r"rank \d: chose (\d+) W", said)
        self.assertEqual(len(chosen), 2)
        self.assertEqual(len(set(chosen)), 1)
        self.assertEqual(len(self.numbers(r"all GPUs (\d+) J", said)), 8)
        self.assertIn("saved: ", said)


if __name__ == "__main__":
    unittest.main()
