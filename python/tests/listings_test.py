"""The talk's three listings and the paper's Listing 1, as printed, on simulated GPUs.

What they leave out is filled in: the model, the data, and what "..." and a comment stand for.
"""

import math
import textwrap
import unittest

from limit_testing import limits, true_energy
from one_node_testing import OneNodeTestCase

MEASURING = '''
from zeus.monitor import ZeusMonitor


monitor = ZeusMonitor(gpu_indices=[0,1,2,3])

monitor.begin_window("training")
for e in range(epochs):
    monitor.begin_window(f"epoch {e}")
    for x, y in train_data_loader:

        y_hat = model(x)
        loss = criterion(y, y_hat)
        ...
    mes = monitor.end_window(f"epoch {e}")
mes = monitor.end_window("training")
'''

OPTIMIZING = '''
from zeus.monitor import ZeusMonitor
from zeus.optimizer import GlobalPowerLimitOptimizer

monitor = ZeusMonitor(gpu_indices=[0,1,2,3])
plo = GlobalPowerLimitOptimizer(monitor)

for e in range(epochs):
    plo.on_epoch_begin()
    for x, y in train_data_loader:
        plo.on_step_begin()
        y_hat = model(x)
        loss = criterion(y, y_hat)
        ...
        plo.on_step_end()
    plo.on_epoch_end()
'''

OBJECTIVE = '''
from zeus.optimizer import GlobalPowerLimitOptimizer
from zeus.optimizer.power_limit import (
    Time,
    Energy,
    MaxSlowdownConstraint,
)

plo = GlobalPowerLimitOptimizer(
    monitor,
    MaxSlowdownConstraint(factor=1.1),
)
'''

PAPER = '''
from zeus import ZeusDataLoader

train_loader = ZeusDataLoader(
    train_set, batch_size, max_epochs, target_metric)
eval_loader = ZeusDataLoader(eval_set, batch_size)

for epoch in train_loader.epochs(): # may early stop
    for batch in train_loader:
        # Learn from batch
    for batch in eval_loader:
        # Evaluate on batch
    train_loader.report_metric(validation_metric)
'''


class ListingsTest(OneNodeTestCase):
    GPUS = "4xA100"
    TIME_SCALE = 20

    def setUp(self) -> None:
        self.work = self.node.run("resnet50", batch_size=256)
        self.addCleanup(self.work.close)
        self.original = limits()

    def names(self, steps: int, epochs: int) -> dict:
        """The parts that the talk's listings leave out."""
        return {
            "epochs": epochs,
            "train_data_loader": [(x, 2 * x) for x in range(steps)],
            "model": lambda x: self.work.step(lambda: 2 * x),
            "criterion": lambda y, y_hat: (y - y_hat) ** 2,
        }

    def best_by_truth(self, value) -> tuple[dict[int, tuple[float, float]], int]:
        """Joules and seconds of a step at each limit, by what no sensor shows."""
        from zeus.device import get_gpus

        gpus, steps = get_gpus(), 10
        truth = {}
        for watts in range(400, 99, -25):
            self.set_limits(gpus, watts)
            self.work.step(2)
            energy, begin = true_energy(self.node, range(4)), self.node.now
            self.work.step(steps)
            energy = true_energy(self.node, range(4)) - energy
            truth[watts] = (energy / steps, (self.node.now - begin) / steps)
        for index in range(4):
            gpus.reset_power_management_limit(index)
        return truth, min(truth, key=lambda watts: value(*truth[watts]))

    def set_limits(self, gpus, watts: float) -> None:
        for index in range(4):
            gpus.set_power_management_limit(index, int(watts * 1000))

    def test_listing_1_of_the_talk_measures_the_truth(self):
        names = self.names(steps=20, epochs=2)
        energy = true_energy(self.node, range(4))
        exec(MEASURING, names)
        energy = true_energy(self.node, range(4)) - energy
        measured = names["mes"].refined()
        self.assertAlmostEqual(measured.total_energy / energy, 1, delta=0.06)
        self.assertLess(abs(measured.total_energy - energy),
                        5 * measured.total_sigma + 0.03 * energy)
        names["monitor"].close()

    def test_listing_2_of_the_talk_finds_the_best_limit(self):
        truth, best = self.best_by_truth(lambda joules, seconds: joules + 4 * 400 * seconds)
        names = self.names(steps=80, epochs=9)
        energy = true_energy(self.node, range(4))
        exec(OPTIMIZING, names)
        plo = names["plo"]
        used, energy = plo.used().energy, true_energy(self.node, range(4)) - energy
        self.assertAlmostEqual(used / energy, 1, delta=0.06)
        self.assertTrue(plo.done, plo.state)
        self.assertIsNone(plo.trouble)
        self.assertEqual(limits(), [plo.optimal_power_limit] * 4)

        def cost(watts):
            return truth[watts][0] + 4 * 400 * truth[watts][1]

        # Neighbours differ by less than anybody can measure in forty steps.
        self.assertLess(cost(plo.optimal_power_limit), 1.05 * cost(best))
        for one in plo.measurements:  # Steps have pauses that the truth above has not.
            self.assertGreater(one.energy, 0.9 * truth[one.power_limit][0])
        names["monitor"].close()
        self.assertEqual(limits(), self.original)

    def test_listing_3_of_the_talk_keeps_to_the_slowdown(self):
        from zeus.monitor import ZeusMonitor

        names = self.names(steps=80, epochs=9)
        names["monitor"] = ZeusMonitor(gpu_indices=[0, 1, 2, 3])
        exec(OBJECTIVE, names)
        plo = names["plo"]
        while not plo.done:
            plo.on_step_begin()
            self.work.step()
        self.assertIsNone(plo.trouble)
        # The lowest that surely keeps to it, by its own measurements: on a busy machine steps have pauses.
        fastest, *others = plo.measurements
        self.assertEqual(len(others), 12)
        within = [one.power_limit for one in others if one.time + 1.645 * math.hypot(
            one.time_sigma, 1.1 * fastest.time_sigma) <= 1.1 * fastest.time]
        self.assertEqual(plo.optimal_power_limit, min(within, default=400))
        names["monitor"].close()
        self.assertEqual(limits(), self.original)

    def paper(self, indentation: int) -> dict:
        """The text that we have of the paper does not say how deep the evaluation is indented."""
        head, evaluation = PAPER.split("    for batch in eval_loader:")
        evaluation = "    for batch in eval_loader:" + evaluation
        text = head + textwrap.indent(textwrap.dedent(evaluation), " " * indentation)
        text = text.replace("# Learn from batch", "learn(batch)  # Learn from batch")
        text = text.replace("# Evaluate on batch", "evaluate(batch)  # Evaluate on batch")
        seen = {"learned": [], "evaluated": []}

        def evaluate(batch):
            seen["evaluated"].append(batch)
            self.work.step(0.3)

        names = {
            "train_set": list(range(1200)),
            "eval_set": list(range(64)),
            "batch_size": 16,
            "max_epochs": 30,
            "target_metric": 0.8,
            "learn": lambda batch: self.work.step(lambda: seen["learned"].append(batch)),
            "evaluate": evaluate,
            "seen": seen,
        }
        # The metric gets better with every batch.
        names["Metric"] = type("Metric", (), {
            "__float__": lambda _: len(seen["learned"]) / (16 * 75)})
        names["validation_metric"] = names["Metric"]()
        energy = true_energy(self.node, range(4))
        exec(text, names)
        names["true energy"] = true_energy(self.node, range(4)) - energy
        return names

    def test_the_papers_listing_stops_at_the_target(self):
        names = self.paper(indentation=4)
        loader = names["train_loader"]
        summary = loader.summary()
        self.assertEqual(summary.reason, "target_reached")
        self.assertEqual(summary.epochs, 13)  # 13 * 75 batches are the first beyond 0.8.
        self.assertEqual(len(names["seen"]["learned"]), 13 * 75)
        self.assertEqual(len(names["seen"]["evaluated"]), 13 * 4)
        self.assertAlmostEqual(summary.energy / names["true energy"], 1, delta=0.06)
        self.assertAlmostEqual(sum(one.energy for one in summary.records) / summary.energy, 1,
                               delta=1e-6)
        self.assertIsNone(loader.optimizer.trouble)
        self.assertTrue(loader.optimizer.done, loader.optimizer.state)
        self.assertEqual(limits(), self.original)  # Training is over.
        loader.close()

    def test_the_papers_listing_with_an_evaluation_after_every_batch(self):
        names = self.paper(indentation=8)
        summary = names["train_loader"].summary()
        self.assertEqual(summary.reason, "target_reached")
        self.assertAlmostEqual(summary.energy / names["true energy"], 1, delta=0.06)
        self.assertEqual(limits(), self.original)
        names["train_loader"].close()


if __name__ == "__main__":
    unittest.main()
