"""The examples run on simulated GPUs, and what they print makes sense."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from sim_testing import SimTestCase

EXAMPLES = pathlib.Path(os.environ["ZEUS_EXAMPLES"])
ROOT = pathlib.Path(__file__).parent.parent
WATTS = 220


class ExamplesTest(SimTestCase):
    def run_example(self, name):
        """Its lines, on one A100 that draws WATTS."""
        self.sim("start", "--gpus", "1xA100")
        self.start_load("--gpu", "0", "--watts", str(WATTS))
        while json.loads(self.sim("truth", "--json"))[0]["power_watts"] < WATTS - 5:
            pass
        done = subprocess.run(
            [EXAMPLES / name], env=self.evaluated_environment(), capture_output=True, text=True,
            timeout=100,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def assert_is_the_load(self, joules, seconds):
        self.assertAlmostEqual(float(joules) / float(seconds), WATTS, delta=0.25 * WATTS)

    def test_measure_window(self):
        lines = self.run_example("measure_window")
        titles = [line for line in lines if not line.startswith("  ")]
        self.assertEqual([title.split(":")[0] for title in titles], ["step"] * 3 + ["epoch"])
        seconds = re.search(r"([\d.]+) s", titles[-1]).group(1)
        refined = [line for line in lines if line.startswith("  gpu:0")][-1]
        joules, updates = re.search(r"gpu:0 ([\d.]+) ± .*, (\d+) updates", refined).groups()
        self.assert_is_the_load(joules, seconds)
        self.assertGreater(int(updates), 3)

    def test_measure_window_in_c(self):
        lines = self.run_example("measure_window_c")
        self.assertRegex(lines[0], r"^work: [\d.]+ s, [\d.]+ J \+- [\d.]+ J \(immediate\)$")
        title = [line for line in lines if "(refined)" in line][0]
        gpu = [line for line in lines if line.startswith("  gpu:0")][-1]
        self.assert_is_the_load(gpu.split()[1], re.search(r"([\d.]+) s", title).group(1))

    def test_power_timeline(self):
        lines = self.run_example("power_timeline")
        self.assertEqual(lines[0], "device,time_seconds,power_watts")
        samples = [line.split(",") for line in lines[1:] if line.startswith("gpu:0,")]
        self.assertGreater(len(samples), 5)
        times = [float(sample[1]) for sample in samples]
        self.assertEqual(times, sorted(times))
        mean = sum(float(sample[2]) for sample in samples) / len(samples)
        self.assert_is_the_load(mean, 1)

    def test_overlapping_windows(self):
        lines = self.run_example("overlapping_windows")
        pattern = r"^(\w+) +during it ([\d.]+) J, its part ([\d.]+) J$"
        parts = {}
        for line in lines:
            window, energy, attributed = re.match(pattern, line).groups()
            parts[window] = float(attributed)
            self.assertLess(float(attributed), float(energy))
        # Three to one by weight; a thread that starts late on a busy machine shifts it a little.
        self.assertEqual(set(parts), {"train", "evaluate"})
        self.assertGreater(parts["train"], 1.5 * parts["evaluate"])

    def test_training_loop(self):
        """It brings its own GPU and time, so it always prints the same."""
        outputs = {
            subprocess.run(
                [EXAMPLES / "training_loop"], capture_output=True, text=True, timeout=100, check=True,
            ).stdout for _ in range(2)
        }
        self.assertEqual(len(outputs), 1, outputs)
        result, saving = outputs.pop().splitlines()
        number = r"\d+(\.\d+)? ± \d+(\.\d+)? k?J"
        self.assertRegex(result, f"^target_reached after 11 epochs: .* s, {number}, cost {number}$")
        watts, energy = re.match(r"(\d+) W instead of 250 W: energy (-[\d.]+) ± [\d.]+ %", saving).groups()
        self.assertLess(int(watts), 250)
        self.assertLess(float(energy), -5)

    def test_recurring_job(self):
        done = subprocess.run(
            [EXAMPLES / "recurring_job"], capture_output=True, text=True, timeout=100, check=True,
        )
        runs = [re.match(r"batch size +(\d+): +(\d+) s, +(\d+) J, reached the target", line)
                for line in done.stdout.splitlines()]
        runs = [(int(run[1]), int(run[3])) for run in runs if run]
        self.assertGreaterEqual(len(runs), 10, done.stdout)
        self.assertEqual(runs[0][0], 1024)
        self.assertLess(runs[-1][1], runs[0][1])  # It has learned to use less energy.

    def test_train_job(self):
        """`zeus train` from C++: a command that trains, on a simulated GPU."""
        self.sim("start", "--gpus", "1xV100")
        environment = dict(self.evaluated_environment(), ZEUS_COMMAND=os.environ["ZEUS_BINARY"])
        with tempfile.TemporaryDirectory() as folder:
            environment["XDG_DATA_HOME"] = folder
            done = subprocess.run(
                [EXAMPLES / "train_job", "python3", ROOT / "examples/train.py", "--batch-size",
                 "{batch_size}"], env=environment, cwd=folder, capture_output=True, text=True,
                timeout=300,
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("val_acc=", done.stdout)  # The command's output is passed on.
        self.assertRegex(done.stdout, r"(?m)^digits on .*V100.*: reached its target$")

    def test_optimize_power_limit(self):
        done = subprocess.run(
            [EXAMPLES / "optimize_power_limit"], capture_output=True, text=True, timeout=100, check=True,
        )
        self.assertRegex(done.stdout, r"(?m)^ 250 W: [\d.]+ s, [\d.]+ ± [\d.]+ J per step$")
        self.assertRegex(done.stdout, r"(?m)^\d+ W instead of 250 W: energy -[\d.]+ ± [\d.]+ %, time")

    def test_without_a_device_they_say_so(self):
        done = subprocess.run(
            [EXAMPLES / "limit_power"], env=dict(self.environment, ZEUS_SIM_NODE="none"),
            capture_output=True, text=True, timeout=100,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("limit_power: ", done.stderr)

    def test_documents_show_the_examples(self):
        """Code in the guides is code of the examples, but for the indentation."""
        def flat(text):
            return "\n".join(line.strip() for line in text.strip().splitlines())

        sources = [flat(path.read_text()) for path in ROOT.glob("examples/*.c*")]
        for guide in ("docs/c-api.md", "docs/measuring.md", "docs/training.md"):
            snippets = re.findall(r"```(?:c|cpp)\n(.*?)```", (ROOT / guide).read_text(), re.DOTALL)
            self.assertTrue(snippets, guide)
            for snippet in snippets:
                self.assertTrue(any(flat(snippet) in source for source in sources), snippet)


if __name__ == "__main__":
    unittest.main()
