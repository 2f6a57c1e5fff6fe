"""zeus.sim: simulated nodes from Python."""

import os
import subprocess
import sys
import time
import unittest

import node_testing  # noqa: F401  (directories of our own)

import zeus.sim
from zeus.errors import ConflictError, NotFoundError, ZeusError
from zeus.monitor import ZeusMonitor

VARIABLES = ("ZEUS_SIM_DIR", "ZEUS_SIM_NODE", "ZEUS_NVML_LIBRARY", "ZEUS_ACTIVITY_DIR",
             "ZEUS_KNOB_DIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")


def python(program: str) -> str:
    """Runs the program in a process of its own; what it printed."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=120)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


class NodeTest(unittest.TestCase):
    def test_a_monitor_sees_the_node_and_the_environment_is_put_back(self):
        before = {variable: os.environ.get(variable) for variable in VARIABLES}
        with zeus.sim.Node("2xA100,1xH100") as node:
            place = os.environ["ZEUS_SIM_DIR"]
            monitor = ZeusMonitor()
            self.assertEqual(monitor.gpu_indices, [0, 1, 2])
            self.assertEqual([gpu.model for gpu in node.truth()], ["A100", "A100", "H100"])
        self.assertTrue(node.stopped)
        self.assertTrue(monitor.closed)
        self.assertEqual(before, {variable: os.environ.get(variable) for variable in VARIABLES})
        self.assertFalse(os.path.exists(place))

    def test_one_node_after_the_other(self):
        for gpus, count in (("1xV100", 1), ("3xA100", 3), ("2xH100", 2)):
            with zeus.sim.Node(gpus, time_scale=10):
                self.assertEqual(len(ZeusMonitor().gpu_indices), count)

    def test_a_node_inside_a_node_is_refused(self):
        with zeus.sim.Node("A100"):
            with self.assertRaisesRegex(ConflictError, "stop that one first"):
                zeus.sim.start("A100")

    def test_a_step_takes_as_long_as_the_limit_says(self):
        with zeus.sim.start("1xA100", time_scale=5) as node:
            work = node.run(operations=1e14, bytes=1e10)
            begin = node.now
            work.step()
            self.assertGreater(node.now - begin, 0.3)

    def test_measured_energy_agrees_with_the_truth(self):
        with zeus.sim.Node("2xA100", time_scale=10) as node:
            monitor = ZeusMonitor()
            work = node.run("resnet50", batch_size=256, gpus=[1])
            before = node.truth()
            with monitor.window("epoch") as epoch:
                work.step(20)
            after = node.truth()
            measured = epoch.measurement.refined()
            for gpu in (0, 1):
                truth = after[gpu].energy - before[gpu].energy
                device = measured.devices[f"gpu:{gpu}"]
                self.assertLess(abs(device.energy - truth), 4 * device.sigma + 0.1 * truth)
        self.assertGreater(measured.gpu_energy[1], 2 * measured.gpu_energy[0])

    def test_a_child_works_on_the_node_of_its_parent(self):
        with zeus.sim.Node("2xA100", time_scale=10) as node:
            before = node.truth()
            out = python(
                "import zeus.sim\n"
                "from zeus.monitor import ZeusMonitor\n"
                "node = zeus.sim.attach()\n"
                "node.run(operations=1e14, bytes=1e11, gpus=[1]).step(5)\n"
                "print(len(ZeusMonitor().gpu_indices))\n")
            after = node.truth()
            self.assertEqual(out, "2\n")
            self.assertFalse(node.stopped)
        self.assertGreater(after[1].energy - before[1].energy, 1.1 * (after[0].energy - before[0].energy))

    def test_visible_devices_count_for_work_as_for_monitors(self):
        with zeus.sim.Node("4xA100", time_scale=10) as node:
            os.environ["CUDA_VISIBLE_DEVICES"] = "3,1"
            before = node.truth()
            with node.draw(300, gpus=[0]):
                time.sleep(0.2)
                drawn = node.truth()
            self.assertGreater(drawn[3].power, 200)
            self.assertLess(drawn[0].power, 100)
            self.assertGreater(drawn[3].energy, before[3].energy)
            self.assertLess(node.truth()[3].power, 200)

    def test_no_node(self):
        with self.assertRaisesRegex(NotFoundError, "no simulated node is here"):
            zeus.sim.attach()


if __name__ == "__main__":
    unittest.main()
