"""`zeus train --epochs`: recurring jobs without a known target metric."""

import json
import sys
import unittest

from train_testing import TrainTestCase

# Each epoch of this program costs what COSTS says of its batch size, on a clock of its own. It says
# nothing about what it learns.
PROGRAM = r'''
import json, os, socket, sys
size, epochs, costs = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
for epoch in range(1, epochs + 1):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ["ZEUS_REPORT_SOCKET"])
        connection.sendall(json.dumps({"epoch": epoch, "metric": None, "time_seconds": 2.0 * epoch,
                                       "energy_joules": costs[size] * epoch}).encode() + b"\n")
        connection.recv(4096)
print("the model is saved")
'''
COSTS = {"32": 300.0, "64": 200.0, "128": 120.0}


class TrainEpochsTest(TrainTestCase):
    def job_of(self, epochs, *more, eta=1):
        return ["--job", "fixed", "--batch-sizes", "32,64,128", "--default", "64", "--epochs", str(epochs),
                "--eta", str(eta), *self.itself(), *more]

    def training(self, epochs, costs=None):
        return ["--", sys.executable, "-c", PROGRAM, "{batch_size}", str(epochs), json.dumps(costs or COSTS)]

    def test_every_run_is_as_long_and_the_cheapest_epochs_win(self):
        done = self.train(*self.job_of(4, "--recurrences", "8", "--beta", "none", "--seed", "7"), *self.training(4))
        self.assertIn("without a target, every run is 4 epochs", done.stderr)
        self.assertIn("speed and power of their epochs alone", done.stderr)
        self.assertEqual(done.stdout.count("the model is saved"), 8, "no run is stopped at its last epoch")
        trials = self.trials("fixed")
        self.assertEqual({trial["epochs"] for trial in trials}, {4})
        self.assertEqual({trial["status"] for trial in trials}, {"converged"})
        self.assertEqual({trial["metric"] for trial in trials}, {4})
        shown = json.loads(self.job("show", "fixed", "--json"))
        self.assertEqual(shown["arms"]["best_batch_size"], 128)
        self.assertEqual(shown["job"]["spec"]["labels"], {"goal": "epochs"})
        text = self.job("show", "fixed")
        self.assertIn("job fixed: 4 epochs a run, without a target", text)
        self.assertIn("batch sizes are compared by the speed and power", text)
        self.assertIn("fixed", self.job("list", "--label", "goal=epochs"))
        self.job("check", "fixed")

    def test_a_batch_size_that_is_too_dear_is_stopped_early(self):
        costs = {"32": 5000.0, "64": 100.0, "128": 5000.0}
        self.train(*self.job_of(10, "--recurrences", "6", "--tries", "3"), *self.training(10, costs), code=0)
        by_size = {trial["batch_size"]: trial for trial in self.trials("fixed")}
        self.assertEqual(by_size[64]["epochs"], 10)
        for size in set(by_size) - {64}:
            self.assertLess(by_size[size]["epochs"], 10, by_size[size])

    def test_a_program_that_ends_sooner_has_not_done_its_epochs(self):
        done = self.train(*self.job_of(5, "--tries", "1"), *self.training(3), code=1)
        self.assertIn("did not reach the target", done.stderr)
        (trial,) = self.trials("fixed")
        self.assertEqual((trial["status"], trial["epochs"]), ("stopped", 3))

    def test_matches_alone_are_epochs(self):
        words = ["--", "sh", "-c", "for i in 1 2 3; do echo end of epoch $i of {batch_size}; sleep 0.05; done"]
        self.train(*self.job_of(3, "--metric-regex", "end of epoch", eta=0), *words)
        self.assertEqual(self.trials("fixed")[0]["epochs"], 3)

    def test_a_program_that_tells_nothing_is_an_error(self):
        done = self.train(*self.job_of(3), "--", "true", "{batch_size}", code=6)
        self.assertIn("told no epoch", done.stderr)

    def test_mistakes_are_told_in_one_sentence(self):
        base = ["--job", "j", "--batch-sizes", "32", "--default", "32", *self.itself()]
        for arguments, message in (
            ([], "say when a run is done"),
            (["--epochs", "3", "--target", "0.9"], "give one of them"),
            (["--epochs", "3", "--lower-is-better"], "--lower-is-better"),
            (["--epochs", "0"], "--epochs"),
            (["--epochs", "3", "--label", "goal=paper"], "goal=paper"),
        ):
            with self.subTest(message=message):
                done = self.train(*base, *arguments, "--", "true", code=2)
                self.assertIn(message, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
