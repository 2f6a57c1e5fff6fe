"""A simulated node for all test classes of a program."""

from node_testing import NodeTestCase

from zeus.sim import Node


class OneNodeTestCase(NodeTestCase):
    """All classes of a program share one node, which ends with it: GPUs once found stay open."""

    _shared = None

    @classmethod
    def setUpClass(cls) -> None:
        if OneNodeTestCase._shared is None:
            OneNodeTestCase._shared = Node(cls.GPUS, time_scale=cls.TIME_SCALE)
        cls.node = OneNodeTestCase._shared
