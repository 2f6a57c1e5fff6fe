"""Ranks that train together, each with its own GPU of one simulated node: torch and gloo."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from limit_testing import limits, monitor_of, quick, true_energy
from one_node_testing import OneNodeTestCase

HEAD = """
import json, os, sys, time
sys.path.insert(0, {tests!r})
rank, size, rendezvous = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
import torch
import torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + rendezvous, rank=rank, world_size=size)
from limit_testing import BYTES, OPERATIONS, Lowest, limits, monitor_of, quick, train
import zeus.sim
from zeus import ZeusDataLoader
from zeus.optimizer.power_limit import Energy, OptimumSelector, ZeusCost

node = zeus.sim.attach()
monitor = monitor_of(rank)
work = node.run(operations=OPERATIONS, bytes=BYTES, gpus=[rank])
def say(*words):
    print(*words, flush=True)
"""

OPTIMIZE = """
dist.barrier()
plo = quick(monitor, ZeusCost(0.5))
steps = train(plo, work)
say(json.dumps([steps, plo.optimal_power_limit, plo.measurements, limits([rank]),
                str(plo.trouble)]))
plo.on_train_end()
say(json.dumps([plo.used().energy, str(plo.savings()), limits([rank])]))
dist.barrier()
"""

LOADER = """
class Mine(OptimumSelector):  # Ranks that want different things still do the same.
    def select(self, measurements):
        return measurements[rank].power_limit

loader = ZeusDataLoader(range(60), 4, 8, 0.45, monitor=monitor, seconds_per_limit=0.5, pl_step=100,
                        optimum_selector=Mine())
for epoch in loader.epochs():
    for batch in loader:
        work.step()
    if rank == 0:
        loader.report_metric((epoch + 1) / 10)
summary = loader.summary()
say(json.dumps([summary.epochs, summary.reason, summary.energy, loader.optimizer.chosen,
                str(loader.optimizer.trouble), limits([rank])]))
dist.barrier()
"""

# One rank is killed in the middle of it; the others notice, and end.
KILLED = """
plo = quick(monitor, Lowest(), power_limits=[150])
plo.on_train_begin()
for step in range(100000):
    plo.on_step_begin()
    work.step()
    if limits([rank]) == [150]:
        say("capped")
        break
if rank == size - 1:
    os.kill(os.getpid(), 9)
try:
    for step in range(10):
        dist.all_reduce(torch.ones(1))  # As the gradients do.
except RuntimeError:
    say("alone")
    sys.exit(1)
"""

SHARED = """
monitor.close()
monitor = monitor_of(*range(size))
plo = quick(monitor, Energy())
for step in range(60):
    plo.on_step_begin()
say(json.dumps([plo.done, str(plo.trouble)]))
dist.barrier()
"""


class RanksTest(OneNodeTestCase):
    GPUS = "4xA100"
    TIME_SCALE = 20

    def setUp(self) -> None:
        self.original = limits()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.rendezvous = os.path.join(folder.name, "ranks")

    def start(self, ranks: int, program: str) -> list[subprocess.Popen]:
        text = HEAD.format(tests=os.path.dirname(os.path.abspath(__file__))) + program
        children = []
        for rank in range(ranks):
            child = subprocess.Popen(
                [sys.executable, "-c", text, str(rank), str(ranks), self.rendezvous],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(child.stdout.close)
            self.addCleanup(child.stderr.close)
            self.addCleanup(child.wait)
            self.addCleanup(child.kill)
            children.append(child)
        return children

    def outcomes(self, ranks: int, program: str) -> list[list]:
        """Returns the output of each rank, line by line."""
        said = []
        for child in self.start(ranks, program):
            output, errors = child.communicate(timeout=200)
            self.assertEqual(child.returncode, 0, errors)
            said.append([json.loads(line) for line in output.splitlines()])
        return said

    def check_one_decision(self, ranks: int) -> None:
        gpus = range(ranks)
        before = true_energy(self.node, gpus)
        said = self.outcomes(ranks, OPTIMIZE)
        truth = true_energy(self.node, gpus) - before
        steps, best, measurements, _, trouble = said[0][0]
        self.assertEqual(trouble, "None")
        for decided, ended in said:
            self.assertEqual(decided, [steps, best, measurements, [best], "None"])
            # Summed over ranks, on all alike, and none of it twice: the truth has more than the
            # training, the time at which processes start and end.
            self.assertAlmostEqual(ended[0], said[0][1][0], places=6)
            self.assertLess(ended[0], 1.05 * truth)
            self.assertEqual(ended[2], [self.original[0]])
        # Energies of all GPUs weigh against the highest power of all GPUs (eta 0.5).
        def cost(one):
            return one[1] + ranks * 400 * one[2]

        chosen = next(one for one in measurements if one[0] == best)
        self.assertLess(cost(chosen), 1.25 * min(map(cost, measurements)))
        # Each of the GPUs draws between idle and its highest power.
        for one in measurements:
            self.assertTrue(40 < one[1] / one[2] / ranks < 420, one)
        self.assertEqual(limits(), self.original)

    def test_two_ranks_make_one_decision(self):
        self.check_one_decision(2)

    def test_four_ranks_make_one_decision(self):
        self.check_one_decision(4)

    def test_data_loaders_stop_after_the_same_epoch(self):
        before = true_energy(self.node, range(2))
        said = self.outcomes(2, LOADER)
        truth = true_energy(self.node, range(2)) - before
        self.assertEqual(said[0][0][:2], [5, "target_reached"])
        self.assertEqual(said[0][0][4], "None")
        self.assertEqual(said[1][0][:5], said[0][0][:5])
        self.assertLess(said[0][0][2], 1.05 * truth)
        self.assertEqual(limits(), self.original)

    def test_a_killed_rank_leaves_no_gpu_capped(self):
        children = self.start(2, KILLED)
        for child in children:
            child.communicate(timeout=200)
        self.assertEqual(children[1].returncode, -signal.SIGKILL)
        self.assertNotEqual(limits([0]), [150])
        # The next start, of whatever uses limits, puts back what the killed one left.
        monitor = monitor_of(0, 1)
        self.addCleanup(monitor.close)
        with quick(monitor) as plo:
            self.assertIsNone(plo.trouble)
        self.assertEqual(limits(), self.original)

    def test_ranks_that_measure_the_same_gpus_are_told(self):
        said = self.outcomes(2, SHARED)
        for (done, trouble), in said:
            self.assertTrue(done)
            self.assertNotEqual(trouble, "None")
        self.assertIn("gpu:0 is measured by rank 0, too", said[1][0][1])
        self.assertEqual(limits(), self.original)


if __name__ == "__main__":
    unittest.main()
