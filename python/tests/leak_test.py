"""Memory after very many windows, and GPUs that are lost on the way."""

import math
import unittest

from node_testing import NodeTestCase
from process_testing import WITHOUT_NODE, run_python, without_sanitizer

from zeus.monitor import ZeusMonitor

_MEMORY = """
import gc
def memory():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
"""


class LeakTest(NodeTestCase):
    TIME_SCALE = 10

    @without_sanitizer  # It keeps what was freed for a while, to tell who uses it.
    def test_a_million_windows_need_no_more_memory_than_a_few(self):
        out = run_python(_MEMORY + """
from zeus.monitor import ZeusMonitor
monitor = ZeusMonitor()
for number in range(1_000_000):
    monitor.begin_window("step")
    measurement = monitor.end_window("step")
    if number == 200_000:
        before = memory()
print(memory() - before)
""", timeout=250)
        # The part of the past that is kept grows until it is long enough; a leak would be 16 bytes for each.
        self.assertLess(int(out), 800_000 * 16 / 2)

    @without_sanitizer
    def test_whatever_is_looked_at_is_given_back(self):
        out = run_python(_MEMORY + """
from zeus.monitor import ZeusMonitor
monitor = ZeusMonitor()
for number in range(20_000):
    with monitor.window("step") as step:
        monitor.peek_window("step")
    step.measurement.to_dict(), str(step.measurement), step.measurement.devices
    try:
        monitor.end_window("never begun")
    except KeyError:
        pass
    if number == 10_000:
        before = memory()
print(memory() - before)
""", timeout=250)
        self.assertLess(int(out), 10_000 * 16 * 8)

    @without_sanitizer
    def test_nodes_monitors_and_work_are_given_back(self):
        out = run_python(WITHOUT_NODE + _MEMORY + """
import zeus.sim
from zeus.monitor import ZeusMonitor
for number in range(60):
    with zeus.sim.Node("2xA100", time_scale=1000) as node:
        monitor = ZeusMonitor()
        work = node.run(operations=1e12, bytes=1e10)
        for _ in range(10):
            with monitor.window("step"):
                work.step()
    if number == 30:
        before, files = memory(), len(os.listdir("/proc/self/fd"))
print(memory() - before, len(os.listdir("/proc/self/fd")) - files)
""", timeout=250)
        grown, files = map(int, out.split())
        self.assertLess(grown, 2 << 20)
        self.assertEqual(files, 0)


class LostGpuTest(NodeTestCase):
    TIME_SCALE = 10
    GPUS = "2xA100"

    def test_a_gpu_that_is_lost_on_the_way_is_known_in_part_and_the_other_goes_on(self):
        monitor = ZeusMonitor()
        work = self.node.run(operations=2e14, bytes=1e10, gpus=[0])
        self.addCleanup(self.node.fault, 1, "clear")
        before = self.node.truth()[1].energy
        with monitor.window("epoch") as epoch:
            work.step(2)
            self.node.fault(1, "lost")
            work.step(10)
        measured = epoch.measurement.refined()
        lost = measured.devices["gpu:1"]
        self.assertIn("partial", lost.flags)
        self.assertLess(lost.coverage, 0.5)
        self.assertLess(abs(self.node.truth()[1].energy - before - lost.energy), 4 * lost.sigma)
        self.assertGreater(measured.gpu_energy[0], 100)

        with monitor.window("epoch") as epoch:
            work.step(5)
        measured = epoch.measurement.refined()
        self.assertTrue(math.isnan(measured.gpu_energy[1]))
        self.assertTrue(math.isnan(measured.total_energy))
        self.assertIn("the GPU fell off the bus", measured.devices["gpu:1"].reason)
        self.assertGreater(measured.gpu_energy[0], 100)
        monitor.close()

    def test_a_node_that_somebody_stops_leaves_a_monitor_that_says_so(self):
        out = run_python(WITHOUT_NODE + """
import subprocess
import zeus.sim
from zeus.monitor import ZeusMonitor
node = zeus.sim.Node("A100", time_scale=10)
monitor = ZeusMonitor()
work = node.run(operations=1e13, bytes=1e10)
subprocess.run([os.environ["ZEUS_BINARY"], "sim", "stop"], check=True, capture_output=True)
monitor.begin_window("epoch")
print(monitor.end_window("epoch").refined().devices["gpu:0"].reason)
try:
    work.step()
except RuntimeError as error:
    print(error)
node.stop()
node.stop()
""")
        reason, error = out.splitlines()
        self.assertIn("the GPU fell off the bus", reason)
        self.assertEqual(error, 'node "default" was stopped under its work')


if __name__ == "__main__":
    unittest.main()
