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
        with self.assertRaisesRegex(ValueError, "^metric_regex takes a regular"):
            zeus.train(["true"], **arguments, metric_regex="((")
        with self.assertRaisesRegex(ValueError, "power_limit is jit"):
            zeus.train(["true"], **arguments, power_limit="low")
        with self.assertRaises(zeus.ZeusError):
            zeus.train(["there-is-no-such-command"], **arguments)

    def test_arguments_of_a_wrong_type_or_without_sense_are_named(self):
        usual = {"job": "j", "batch_sizes": [8], "default": 8, "target": 1}
        for name, values in {
            "batch_sizes": ([32.5], ["a"], "8", 8), "recurrences": (-1, 1.5), "seed": (-1,),
            "gpus": ([-1],), "power_limit": (None, True, float("nan"), 0), "job": (None,),
            "lr": (float("nan"), -1), "server_wait": (-1,),
        }.items():
            for value in values:
                with self.subTest(name=name, value=value), \
                        self.assertRaisesRegex((TypeError, ValueError), name):
                    zeus.train(["true"], **{**usual, name: value})
        with self.assertRaisesRegex(TypeError, "command is a list of words"):
            zeus.train("true", **usual)
        several = {**usual, "batch_sizes": [8, 16]}
        for arguments, words, sentence in (
            (several, ["true"], "no_placeholder"),
            (usual, ["true", "{lr}"], "say with lr"),
            ({**usual, "metric_regex": "a=(.)", "metric_file": "x"}, ["true"], "metric_file both"),
            (usual, ["true", "a\0b"], "NUL"),
        ):
            with self.subTest(sentence), self.assertRaisesRegex(ValueError, sentence):
                zeus.train(words, **arguments)

    def run_program(self, program):
        done = subprocess.run([sys.executable, "-B", "-c", program], cwd=self.folder,
                              env=self.environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_a_limit_that_no_gpu_allows_is_an_error(self):
        for watts in ("5", "1e6"):
            done = self.run_program(f"""
import zeus, zeus.sim
with zeus.sim.here("V100"):
    try:
        zeus.train(["echo", "acc=1"], job="limit", batch_sizes=[8], default=8, target=1,
                   metric_regex="acc=(.*)", power_limit={watts}, database="sqlite:jobs.db")
    except ValueError as error:
        print("refused:", error)
""")
            self.assertIn("refused: power_limit", done.stdout)

    def test_a_run_that_failed_says_what_it_took(self):
        done = self.run_program("""
import zeus, zeus.sim
with zeus.sim.here("V100"):
    result = zeus.train(["sh", "-c", "for i in 1 2 3; do sleep 0.2; echo acc=0.1; done; exit 3"],
                        job="fails", batch_sizes=[8], default=8, target=1, power_limit="found",
                        metric_regex="acc=(.*)", database="sqlite:jobs.db")
    run, = result.trials
    print(result.exit_code, run.epochs, run.time > 0.5, run.energy > 1, run.metric)
""")
        self.assertIn("3 3 True True 0.1", done.stdout)

    def test_two_trainings_in_one_program_share_the_energy_of_a_gpu(self):
        done = self.run_program("""
import threading, zeus, zeus.sim
def run(name):
    result = zeus.train(
        ["sh", "-c", "for i in 1 2 3 4 5; do sleep 0.7; echo acc=0.$i; done; echo acc=1"],
        job=name, batch_sizes=[8], default=8, target=1, power_limit="found",
        metric_regex="acc=(.*)", database=f"sqlite:{name}.db")
    print(f"{name}: shared {result.trials[0].shared}", flush=True)
with zeus.sim.here("V100"):
    threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
""")
        for name in ("one", "two"):
            # Two threads print: the ends of their lines may come together.
            self.assertIn(f"{name}: shared True", done.stdout, done.stderr)


if __name__ == "__main__":
    unittest.main()
