"""Windows that were measured before, given again."""

import math
import os
import tempfile
import unittest

from node_testing import NodeTestCase

from zeus.monitor import ZeusMonitor
from zeus.utils.testing import ReplayZeusMonitor

# As earlier tools of this kind wrote it, with their ways of writing numbers.
LOG = """start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy
526940.790905135,__GlobalPowerLimitOptimizer_250,10.353665743023157,1361.4429999999993,1402.245
526953.994876246,__GlobalPowerLimitOptimizer_225,10.476805733051151,1322.2749999999942,1331.84
"""
EXTENDED = """start_time,window_name,elapsed_time,gpu0_energy,cpu0_energy,""" \
    """gpu0_sigma,cpu0_sigma,flags
1.5,"a, b",2.0,100.5,,3.0,,short_window throttled
"""


class ReplayTestCase(unittest.TestCase):
    def log(self, text=LOG):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, "windows.csv")
        with open(path, "w") as file:
            file.write(text)
        return path

    def measure(self, monitor, name, **options):
        monitor.begin_window(name)
        return monitor.end_window(name, **options)


class ReplayTest(ReplayTestCase):
    def test_windows_have_the_numbers_of_the_log(self):
        monitor = ReplayZeusMonitor(log_file=self.log())
        self.assertEqual(monitor.gpu_indices, [0, 1])
        first = self.measure(monitor, "__GlobalPowerLimitOptimizer_250")
        self.assertEqual(first.time, 10.353665743023157)
        self.assertEqual(first.gpu_energy, {0: 1361.4429999999993, 1: 1402.245})
        self.assertEqual(first.total_energy, 1361.4429999999993 + 1402.245)
        self.assertEqual(first.start_time, 526940.790905)
        self.assertIsNone(first.cpu_energy)
        second = self.measure(monitor, "__GlobalPowerLimitOptimizer_225")
        self.assertEqual(second.gpu_energy[0], 1322.2749999999942)

    def test_the_standard_deviations_and_flags_of_longer_logs_are_read(self):
        monitor = ReplayZeusMonitor(log_file=self.log(EXTENDED))
        measurement = self.measure(monitor, "a, b")
        gpu = measurement.devices["gpu:0"]
        self.assertEqual((gpu.energy, gpu.sigma), (100.5, 3.0))
        self.assertEqual(set(gpu.flags), {"short_window", "throttled"})
        self.assertTrue(math.isnan(measurement.cpu_energy[0]))
        self.assertIn("no number", measurement.devices["cpu:0"].reason)

    def test_a_cancelled_window_takes_no_line(self):
        monitor = ReplayZeusMonitor(log_file=self.log())
        cancelled = self.measure(monitor, "something else", cancel=True)
        self.assertTrue(math.isnan(cancelled.total_energy))
        self.assertEqual(self.measure(monitor, "__GlobalPowerLimitOptimizer_250").gpu_energy[1],
                         1402.245)

    def test_names_must_match_unless_nobody_cares(self):
        with self.assertRaisesRegex(RuntimeError, 'line 2: the window is "__Global.*", not "x"'):
            self.measure(ReplayZeusMonitor(log_file=self.log()), "x")
        careless = ReplayZeusMonitor(log_file=self.log(), match_window_name=False)
        self.assertEqual(self.measure(careless, "x").window, "x")

    def test_a_log_that_does_not_fit_is_a_runtime_error(self):
        with self.assertRaisesRegex(RuntimeError, r"has the GPUs \[0, 1\], not \[0\]"):
            ReplayZeusMonitor(gpu_indices=[0], log_file=self.log())
        with self.assertRaisesRegex(RuntimeError, "no log of windows"):
            ReplayZeusMonitor(log_file=self.log("a,b\n1,2\n"))
        monitor = ReplayZeusMonitor(log_file=self.log(LOG.splitlines()[0] + "\n1,w,2,3\n"))
        with self.assertRaisesRegex(RuntimeError, "4 columns, but the header has 5"):
            self.measure(monitor, "w")
        with self.assertRaisesRegex(RuntimeError, 'has no line left for "w"'):
            self.measure(monitor, "w")
        monitor = ReplayZeusMonitor(log_file=self.log(LOG.splitlines()[0] + "\n1,w,2,x,4\n"))
        with self.assertRaisesRegex(RuntimeError, "line 2: could not convert"):
            self.measure(monitor, "w")

    def test_windows_misused_are_the_errors_of_a_monitor(self):
        monitor = ReplayZeusMonitor([0, 1], False, self.log())
        monitor.begin_window("w")
        with self.assertRaises(ValueError):
            monitor.begin_window("w")
        monitor.begin_window("w", restart=True)
        monitor.reset_windows()
        with self.assertRaises(ValueError):
            monitor.end_window("w")
        with self.assertRaises(TypeError):
            monitor.begin_window(3)
        with self.assertRaises(ValueError):
            ReplayZeusMonitor()
        with self.assertRaises(FileNotFoundError):
            ReplayZeusMonitor(log_file="/nonexistent/windows.csv")

    def test_blocks_work_as_well(self):
        with ReplayZeusMonitor(log_file=self.log()) as monitor:
            with monitor.window("__GlobalPowerLimitOptimizer_250") as window:
                pass
        self.assertEqual(window.measurement.gpu_energy[1], 1402.245)


class RoundTripTest(NodeTestCase):
    GPUS = "2xA100"

    def test_what_a_monitor_logged_is_what_the_replay_gives(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "windows.csv")
            with ZeusMonitor(log_file=path) as monitor:
                measured = []
                for name in ("first", 'second, "quoted"'):
                    monitor.begin_window(name)
                    measured.append(monitor.end_window(name))
            replay = ReplayZeusMonitor(log_file=path)
            for measurement in measured:
                replay.begin_window(measurement.window)
                again = replay.end_window(measurement.window)
                self.assertEqual(again.gpu_energy, measurement.gpu_energy)
                self.assertEqual(again.time, measurement.time)
                self.assertAlmostEqual(again.start_time, measurement.start_time, places=5)


if __name__ == "__main__":
    unittest.main()
