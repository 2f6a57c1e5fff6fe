"""zeus.monitor on simulated GPUs."""

import time
import unittest

from node_testing import NodeTestCase

from zeus.monitor import ZeusMonitor


class WindowTest(NodeTestCase):
    def test_a_window_has_time_and_energy_of_every_gpu(self):
        with ZeusMonitor(gpu_indices=[0, 2]) as monitor:
            monitor.begin_window("epoch")
            time.sleep(0.3)
            measurement = monitor.end_window("epoch").refined()
        self.assertGreater(measurement.time, 0.3)
        self.assertEqual(list(measurement.gpu_energy), [0, 2])
        self.assertGreater(measurement.gpu_energy[0], 0.3 * 40)


if __name__ == "__main__":
    unittest.main()
