"""The training examples learn for real, on simulated GPUs in virtual and in real time."""

import json
import os
import signal
import subprocess
import unittest

from sim_testing import SimTestCase

TRAIN = os.environ["ZEUS_TRAIN"]


class TrainingExamplesTest(SimTestCase):
    def setUp(self):
        super().setUp()
        self.environment.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1",
                                ZEUS_KNOB_DIR=os.path.join(self.directory.name, "knobs"))

    def run_train(self, *arguments):
        return subprocess.run([TRAIN, *arguments], env=self.environment, capture_output=True,
                              text=True, timeout=100)

    def train(self, *arguments):
        """Returns what a training that must succeed printed, and its JSON."""
        file = os.path.join(self.directory.name, "train.json")
        done = self.run_train("--json", file, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(file, encoding="utf-8") as text:
            return done.stdout, json.load(text)

    def epochs(self, model, target, batch_size, seed):
        """Epochs to the target, without an optimiser."""
        _, outcome = self.train("--model", model, "--target", str(target), "--batch-size",
                                str(batch_size), "--seed", str(seed), "--knob", "none")
        self.assertEqual(outcome["stopped"], "target_reached")
        accuracies = [epoch["accuracy"] for epoch in outcome["epochs"]]
        self.assertGreaterEqual(accuracies[-1], target)
        self.assertLess(max(accuracies[:-1]), target)
        return len(accuracies)

    def test_the_cnn_learns_and_needs_more_epochs_with_large_batches(self):
        epochs = {(size, seed): self.epochs("cnn", 0.8, size, seed)
                  for size in (16, 64) for seed in (1, 2)}
        for seed in (1, 2):
            self.assertLess(epochs[16, seed], epochs[64, seed])

    def test_the_transformer_learns_and_its_epochs_depend_on_the_batch_size(self):
        epochs = {(size, seed): self.epochs("transformer", 0.6, size, seed)
                  for size in (32, 64) for seed in (1, 2)}
        self.assertGreater(len(set(epochs.values())), 1, epochs)

    def test_the_same_seed_gives_the_same_bytes(self):
        arguments = ("--target", "0.6", "--slice-seconds", "2", "--gpus", "2")
        first = self.train(*arguments)
        self.assertEqual(first, self.train(*arguments))
        _, other = self.train(*arguments, "--seed", "2")
        self.assertNotEqual(first[1]["step_losses"], other["step_losses"])

    def test_the_optimiser_chooses_a_limit_and_does_not_change_what_is_computed(self):
        arguments = ("--target", "0.85", "--slice-seconds", "2", "--eta", "1")
        _, without = self.train(*arguments, "--knob", "none")
        text, optimised = self.train(*arguments)
        _, observed = self.train(*arguments, "--observe")
        for outcome in (optimised, observed):
            self.assertEqual(outcome["step_losses"], without["step_losses"])
            self.assertEqual([epoch["accuracy"] for epoch in outcome["epochs"]],
                             [epoch["accuracy"] for epoch in without["epochs"]])
        self.assertIn("chosen: ", text)
        points = optimised["profiles"][0]["points"]
        self.assertEqual([point["setting"] for point in points], [250, 225, 200, 175, 150, 125, 100])
        times = [point["time_per_step_seconds"] for point in points]
        self.assertEqual(times, sorted(times))
        self.assertLess(optimised["epochs"][-1]["power_limit_watts"], 250)
        self.assertEqual(observed["epochs"][-1]["power_limit_watts"], 250)
        self.assertLess(optimised["epochs"][-1]["energy_joules"],
                        without["epochs"][-1]["energy_joules"])
        self.assertLess(observed["savings"][0]["change"]["energy_joules"], 0)

    def test_a_step_may_cost_what_a_workload_of_the_catalogue_costs(self):
        _, outcome = self.train("--step-cost", "shufflenet", "--gpu", "A40", "--max-epochs", "2",
                                "--knob", "none")
        self.assertEqual(outcome["stopped"], "max_epochs")
        predicted = json.loads(self.sim("predict", "--gpu", "A40", "--workload", "shufflenet",
                                        "--batch-size", "64", "--json"))
        step = predicted["time_per_epoch_seconds"] / -(-50_000 // 64)
        # 32 steps, and the forward pass over 1024 samples.
        self.assertAlmostEqual(outcome["epochs"][0]["time_seconds"], step * (32 + 16 / 3), places=6)

    def test_in_real_time_on_a_shared_node(self):
        self.sim("start", "--gpus", "2xV100", "--time-scale", "20")
        self.addCleanup(self.run_sim, "stop")
        self.environment = self.evaluated_environment()
        arguments = ("--target", "0.5", "--gpus", "2")
        _, virtual = self.train(*arguments, "--knob", "none")
        _, tuned = self.train(*arguments, "--clock", "real", "--slice-seconds", "1")
        _, real = self.train(*arguments, "--clock", "real", "--knob", "none")
        self.assertEqual(tuned["step_losses"], virtual["step_losses"])
        self.assertEqual(real["step_losses"], virtual["step_losses"])
        if os.geteuid() == 0:  # Others may not set limits: see "trouble".
            self.assertEqual(len(tuned["profiles"][0]["points"]), 7, tuned.get("trouble"))
        for there, here in zip(real["epochs"], virtual["epochs"]):
            self.assertEqual(there["power_limit_watts"], 250)  # As before the optimiser came.
            self.assertGreater(there["time_seconds"], 0.99 * here["time_seconds"])
            power = there["energy_joules"] / there["time_seconds"]
            self.assertAlmostEqual(power / (here["energy_joules"] / here["time_seconds"]), 1,
                                   delta=0.15)
        truth = json.loads(self.sim("truth", "--json"))
        self.assertLess(truth[0]["power_watts"], 60)  # The load has ended with the program.

    def test_an_interrupted_training_reports_what_it_did(self):
        endless = subprocess.Popen([TRAIN, "--target", "1", "--max-epochs", "9999"], text=True,
                                   env=self.environment, stdout=subprocess.PIPE)
        self.addCleanup(lambda: endless.poll() is None and endless.kill())
        self.assertIn("epoch  1: loss", endless.stdout.readline())
        endless.send_signal(signal.SIGINT)
        text, _ = endless.communicate(timeout=60)
        self.assertEqual(endless.returncode, 128 + signal.SIGINT)
        self.assertIn("stopped: stopped_by_user", text)

    def test_mistakes_are_one_sentence(self):
        mistakes = {
            ("--model", "gpt"): 2,
            ("--batch-size", "0"): 2,
            ("--batch-size", "10", "--gpus", "3"): 2,
            ("--node", "x"): 2,
            ("--observe", "--knob", "none"): 2,
            ("--step-cost", "resnet50", "--gpu-width", "2"): 2,
            ("--eta", "2"): 2,
            ("--gpu", "Z9"): 3,
            ("--step-cost", "nothing"): 3,
            ("--clock", "real"): 3,
        }
        for arguments, code in mistakes.items():
            done = self.run_train(*arguments)
            self.assertEqual(done.returncode, code, (arguments, done.stderr))
            self.assertRegex(done.stderr, r"^train: [^A-Z].*\n$")
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
