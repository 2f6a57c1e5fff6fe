"""Trouble around a power limit optimiser, in which nothing may be lost, destroyed or mixed up."""

import os
import signal
import sys
import tempfile
import unittest
import warnings

from limit_testing import Lowest, limits, quick, train
from ranks_testing import Ranks
from trained_node_testing import TrainedNodeTestCase

from zeus.monitor import ZeusMonitor
from zeus.optimizer.power_limit import Energy, GlobalPowerLimitOptimizer, OptimumSelector


class Raising(OptimumSelector):
    """Raises what it is given, by itself or in the handler of a signal."""

    def __init__(self, action) -> None:
        self.action = action

    def select(self, measurements):
        self.action()
        return measurements[0].power_limit


class InterruptTest(TrainedNodeTestCase):
    def test_ctrl_c_in_a_selector_passes(self):
        def interrupt():
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            train(quick(self.monitor, Raising(interrupt)), self.work)
            for _ in range(100):
                pass

    def test_the_end_of_the_program_asked_for_by_a_signal_passes(self):
        before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        with self.assertRaises(SystemExit) as ended:
            train(quick(self.monitor, Raising(lambda: os.kill(os.getpid(), signal.SIGTERM))),
                  self.work)
            for _ in range(100):
                pass
        self.assertEqual(ended.exception.code, 9)


class ProfileFileTest(TrainedNodeTestCase):
    def test_a_file_of_somebody_else_is_left_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "profile.json")
            for text in ('{"batch_size": 32}', "print(1)\n", '{"schema": "zeus.power_profile/2"}'):
                with open(path, "w") as file:
                    file.write(text)
                with quick(self.monitor, Energy(), profile_path=path) as plo:
                    train(plo, self.work)
                with open(path) as file:
                    self.assertEqual(file.read(), text)

    def test_a_pipe_is_neither_read_nor_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pipe")
            os.mkfifo(path)
            with quick(self.monitor, Energy(), profile_path=path) as plo:
                train(plo, self.work)
            self.assertEqual(os.listdir(folder), ["pipe"])
            self.assertFalse(os.path.isfile(path))

    def test_a_profile_that_was_cut_off_is_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "profile.json")
            with open(path, "w") as file:
                file.write('{"schema": "zeus.power_profile/1", "kn')
            with quick(self.monitor, Energy(), profile_path=path) as plo:
                train(plo, self.work)
            self.assertTrue(quick(self.monitor, Energy(), profile_path=path).done)


class SharingTest(TrainedNodeTestCase):
    def test_two_knobs_of_one_monitor_know_what_the_job_used(self):
        limit = quick(self.monitor, Lowest())
        clock = GlobalPowerLimitOptimizer(self.monitor, knob="graphics_clock", observe=True)
        limit.on_train_begin()
        self.work.step(5)
        clock.on_train_begin()
        self.work.step(5)
        both, second = limit.used().energy, clock.used().energy
        self.assertGreater(both, 1.5 * second)
        clock.on_train_end()
        self.assertGreaterEqual(limit.used().energy, both)

    def test_ranks_with_different_options_are_told(self):
        def steps(member):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                monitor = ZeusMonitor(gpu_indices=[member.rank])
            with monitor:
                plo = quick(monitor, Energy(), profile_steps=4 + member.rank, collective=member)
                for _ in range(10):
                    plo.on_step_begin()
                return str(plo.trouble)

        self.monitor.close()
        for trouble in Ranks(2).run(steps):
            self.assertIn("different options", trouble)
        self.assertEqual(limits(), self.original)

    def test_a_collective_that_cannot_be_is_refused(self):
        for rank, size in ((7, 2), (-1, 2), (0, 0), ("0", 2)):
            member = Ranks(2).member(0)
            member.rank, member.size = rank, size
            with self.assertRaises((TypeError, ValueError)):
                quick(self.monitor, collective=member)


if __name__ == "__main__":
    unittest.main()
