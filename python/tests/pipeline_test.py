"""PipelineFrequencyOptimizer on simulated GPUs: two stages, as threads that wait for each other."""

import math
import queue
import signal
import subprocess
import sys
import unittest

from node_testing import NodeTestCase, zeus
from ranks_testing import Ranks

from zeus.errors import UnavailableError
from zeus.monitor import ZeusMonitor
from zeus.optimizer.batch_size import LocalServer
from zeus.optimizer.pipeline_frequency import PipelineFrequencyOptimizer

ALONE = {"rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0, "device_id": 0, "dp_degree": 1,
         "pp_degree": 1, "tp_degree": 1, "world_size": 1}
QUICK = {"schedule": "gpipe", "frequency_stride": 400.0, "straggler_threshold": None}
MOST_ITERATIONS = 150


class Link:
    """Between two stages: activations one way, gradients the other."""

    def __init__(self) -> None:
        self.forward: queue.Queue = queue.Queue()
        self.backward: queue.Queue = queue.Queue()


class Stage:
    """A stage of a pipeline: computes on its GPU, and waits for its neighbour."""

    def __init__(self, node, rank: int = 0, link: Link | None = None):
        # The second stage is the quicker one: it has time to spare.
        self.work = node.run(operations=(2.0 - rank) * 3e13, bytes=5e9, gpus=[rank])
        self.link, self.last = link, rank == 1

    def iterate(self, optimizer: PipelineFrequencyOptimizer, microbatches: int = 2) -> None:
        optimizer.on_step_begin()
        for _ in range(microbatches):
            if self.link and self.last:
                self.link.forward.get(timeout=60)
            self.do(optimizer, "forward", 1)
            if self.link and not self.last:
                self.link.forward.put(None)
        for _ in range(microbatches):
            if self.link and not self.last:
                self.link.backward.get(timeout=60)
            self.do(optimizer, "backward", 2)
            if self.link and self.last:
                self.link.backward.put(None)
        optimizer.on_step_end()

    def do(self, optimizer: PipelineFrequencyOptimizer, name: str, steps: int) -> None:
        optimizer.on_instruction_begin(name)
        self.work.step(steps)
        optimizer.on_instruction_end(name)


class PipelineTestCase(NodeTestCase):
    GPUS = "2xA100"
    TIME_SCALE = 20

    def train_alone(self, optimizer: PipelineFrequencyOptimizer, iterations: int) -> None:
        stage = Stage(self.node)
        for _ in range(iterations):
            stage.iterate(optimizer)
        stage.work.close()

    def train_until_planned(self, optimizer: PipelineFrequencyOptimizer) -> None:
        for _ in range(MOST_ITERATIONS):
            if optimizer.plan is not None or optimizer.trouble:
                break
            self.train_alone(optimizer, 1)
        self.assertIsNone(optimizer.trouble)
        self.assertIsNotNone(optimizer.plan)

    def assertClocksAreFree(self) -> None:
        self.assertNotIn("clock", zeus("knobs", "list"))


class TwoStagesTest(PipelineTestCase):
    def test_a_pipeline_is_measured_planned_and_followed(self):
        link = Link()

        def train(member):
            rank = member.rank
            stage = Stage(self.node, rank, link)
            with PipelineFrequencyOptimizer(
                rank, 0, rank, 0, rank, 1, 2, 1, 2, None,
                collective=member, **QUICK,
            ) as optimizer:
                for _ in range(MOST_ITERATIONS):
                    if optimizer.plan is not None:
                        break
                    stage.iterate(optimizer)
                for _ in range(2):
                    stage.iterate(optimizer)
            return optimizer

        optimizers = Ranks(2).run(train)
        for optimizer in optimizers:
            self.assertIsInstance(optimizer, PipelineFrequencyOptimizer)
            self.assertIsNone(optimizer.trouble)
            self.assertEqual(optimizer.profile.stages, 2)
            self.assertGreater(optimizer.profiling_iterations, 3)
            self.assertGreater(optimizer.saving, 0)
            self.assertGreater(optimizer.clock_changes, 0)
        self.assertEqual(optimizers[0].plan.clocks, optimizers[1].plan.clocks)
        self.assertEqual(optimizers[0].plan_id, optimizers[1].plan_id)
        names = [[name for name, _ in stage] for stage in optimizers[0].plan.clocks]
        self.assertEqual(names, [["forward"] * 2 + ["backward"] * 2] * 2)
        self.assertClocksAreFree()


class OneStageTest(PipelineTestCase):
    def test_microbatches_are_counted_and_a_known_plan_is_followed_at_once(self):
        with LocalServer() as server:
            with PipelineFrequencyOptimizer(
                **ALONE, server_url=server.url, job_metadata="GPT 3, try", **QUICK
            ) as first:
                self.train_until_planned(first)
                self.assertEqual(len(first.plan.clocks[0]), 4)
                self.assertIn("dp1.pp1.tp1.GPT-3--try", first.plan_id)
                self.assertIn("clock", zeus("knobs", "list"))
            self.assertClocksAreFree()
            with PipelineFrequencyOptimizer(
                **ALONE, server_url=server.url, plan_id=first.plan_id, **QUICK
            ) as second:
                self.assertEqual(second.plan.clocks, first.plan.clocks)
                self.assertEqual(second.profiling_iterations, 0)
                server.process.kill()
                self.train_alone(second, 3)  # A server that is gone changes nothing.
                self.assertIsNone(second.trouble)
                second.on_train_end()
                self.train_alone(second, 1)
        self.assertClocksAreFree()

    def test_a_program_that_does_something_else_is_told_and_goes_on(self):
        with PipelineFrequencyOptimizer(**ALONE, **QUICK) as optimizer:
            self.train_until_planned(optimizer)
            Stage(self.node).do(optimizer, "sideways", 1)
            optimizer.on_step_end()
            self.assertIn("sideways", optimizer.trouble)
            self.train_alone(optimizer, 1)

    def test_the_end_of_the_program_puts_the_clocks_back(self):
        program = (
            "import os, signal\n"
            "from zeus.optimizer.pipeline_frequency import PipelineFrequencyOptimizer\n"
            "optimizer = PipelineFrequencyOptimizer(0, 0, 0, 0, 0, 1, 1, 1, 1)\n"
            "for _ in range(3):\n"
            "    optimizer.on_instruction_begin('forward')\n"
            "    optimizer.on_instruction_end('forward')\n"
            "    optimizer.on_step_end()\n")
        for end in ("", "raise ZeroDivisionError", f"os.kill(os.getpid(), {int(signal.SIGTERM)})",
                    f"os.kill(os.getpid(), {int(signal.SIGINT)})"):
            with self.subTest(end=end):
                subprocess.run([sys.executable, "-c", program + end], capture_output=True,
                               timeout=60)
                self.assertClocksAreFree()


class BadInputTest(PipelineTestCase):
    def refused(self, kind: type, word: str, **changes) -> None:
        with self.subTest(**changes), self.assertRaisesRegex(kind, word):
            PipelineFrequencyOptimizer(**{**ALONE, **changes})

    def test_ranks_and_degrees_must_fit(self):
        for name in ALONE:
            for value in (None, "0", 1.0, True):
                self.refused(TypeError, name, **{name: value})
            self.refused(ValueError, name, **{name: -1})
        self.refused(ValueError, "world_size", world_size=2)
        self.refused(ValueError, "pp_rank", pp_rank=1)
        self.refused(ValueError, "rank", rank=1)
        self.refused(ValueError, "torch.distributed", pp_degree=2, world_size=2)

    def test_options_are_checked(self):
        self.refused(TypeError, "server_url", server_url=3)
        self.refused(TypeError, "job_metadata", job_metadata=3)
        self.refused(TypeError, "plan_id", plan_id=3)
        self.refused(TypeError, "monitor", monitor="gpu")
        self.refused(TypeError, "collective", collective=3)
        self.refused(ValueError, "schedule", schedule="fast")
        self.refused(ValueError, "microbatches", microbatches=0)
        for value in (0, -1, math.nan):
            self.refused(ValueError, "slowdown", slowdown=value)
            self.refused(ValueError, "frequency_stride", frequency_stride=value)
            self.refused(ValueError, "straggler_threshold", straggler_threshold=value)
            self.refused(ValueError, "poll_interval", poll_interval=value)

    def test_a_gpu_or_a_server_that_is_not_there_is_one_sentence(self):
        self.refused(KeyError, "", device_id=7)
        with LocalServer() as server:
            url = server.url
        with ZeusMonitor([0], []) as monitor, self.assertRaises(UnavailableError) as raised:
            PipelineFrequencyOptimizer(**ALONE, server_url=url, monitor=monitor)
        self.assertEqual(len(str(raised.exception).splitlines()), 1)
        self.assertIn(url.rsplit(":", 1)[1], str(raised.exception))

    def test_a_straggler_is_a_positive_number(self):
        with PipelineFrequencyOptimizer(**ALONE) as optimizer:
            optimizer.report_straggler(1.5)
            for value in (0, math.nan):
                with self.assertRaises(ValueError):
                    optimizer.report_straggler(value)


if __name__ == "__main__":
    unittest.main()
