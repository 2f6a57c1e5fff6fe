"""A job on a simulated node whose power limits must be back after every test."""

from limit_testing import BYTES, OPERATIONS, limits, monitor_of
from one_node_testing import OneNodeTestCase


class TrainedNodeTestCase(OneNodeTestCase):
    """`monitor` and `work` of both GPUs, and the limits that they had: `original`."""

    GPUS = "2xA100"
    TIME_SCALE = 50

    def setUp(self) -> None:
        self.monitor = monitor_of(0, 1)
        self.addCleanup(self.monitor.close)
        self.work = self.node.run(operations=OPERATIONS, bytes=BYTES)
        self.addCleanup(self.work.close)
        self.original = limits()

    def tearDown(self) -> None:
        self.monitor.close()
        self.assertEqual(limits(), self.original)
