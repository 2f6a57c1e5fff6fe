"""zeus.sim: simulated nodes from Python."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from node_testing import wait_until

import zeus.sim
from zeus import _native_files
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
                begin = node.truth()
                work.step(20)
                end = node.truth()
            after = node.truth()
            measured = epoch.measurement.refined()
            for gpu in (0, 1):
                # The window lies between the outer two looks, and around the inner two.
                least = end[gpu].energy - begin[gpu].energy
                most = after[gpu].energy - before[gpu].energy
                device = measured.devices[f"gpu:{gpu}"]
                self.assertGreater(device.energy, 0.9 * least - 4 * device.sigma)
                self.assertLess(device.energy, 1.1 * most + 4 * device.sigma)
        self.assertGreater(measured.gpu_energy[1], 2 * measured.gpu_energy[0])

    def test_a_child_works_on_the_node_of_its_parent(self):
        with zeus.sim.Node("2xA100", time_scale=10) as node:
            before = node.truth()
            out = python(
                "import zeus.sim\n"
                "from zeus.monitor import ZeusMonitor\n"
                "node = zeus.sim.attach()\n"
                "before = node.truth()\n"
                "node.run(operations=1e14, bytes=1e11, gpus=[1]).step(5)\n"
                "print(*(b.energy - a.energy for a, b in zip(before, node.truth())))\n"
                "print(len(ZeusMonitor().gpu_indices))\n")
            after = node.truth()
            used, count = out.splitlines()
            self.assertEqual(count, "2")
            self.assertFalse(node.stopped)
        idle, worked = map(float, used.split())
        self.assertGreater(worked, 1.5 * idle)
        for gpu, joules in enumerate((idle, worked)):
            self.assertGreater(after[gpu].energy - before[gpu].energy, joules)

    def test_visible_devices_count_for_work_as_for_monitors(self):
        with zeus.sim.Node("4xA100", time_scale=10) as node:
            os.environ["CUDA_VISIBLE_DEVICES"] = "3,1"
            before = node.truth()
            with node.draw(300, gpus=[0]):
                wait_until(lambda: node.truth()[3].power > 200, "GPU 3 draws nothing")
                drawn = node.truth()
            self.assertGreater(drawn[3].power, 200)
            self.assertLess(drawn[0].power, 100)
            self.assertGreater(drawn[3].energy, before[3].energy)
            self.assertLess(node.truth()[3].power, 200)

    def test_another_user_of_the_gpus_is_in_the_way_of_the_next_node(self):
        with zeus.sim.Node("A100"):
            nvml = ctypes.CDLL(os.environ["ZEUS_NVML_LIBRARY"])
            self.assertEqual(nvml.nvmlInit_v2(), 0)
        with self.assertRaisesRegex(ConflictError, "still in use here"):
            zeus.sim.Node("A100")
        self.assertNotIn("ZEUS_SIM_NODE", os.environ)
        nvml.nvmlShutdown()
        with zeus.sim.Node("2xA100"):
            self.assertEqual(len(ZeusMonitor().gpu_indices), 2)

    def test_a_program_that_uses_another_driver_may_start_a_node(self):
        # A copy of the library stands for the driver of the machine, with one GPU.
        with tempfile.TemporaryDirectory() as folder:
            driver = os.path.join(folder, "libnvidia-ml.so.1")
            shutil.copy(_native_files.simulated_nvml(), driver)
            out = python(
                "import ctypes, os\n"
                "os.environ['ZEUS_SIM'] = 'V100'\n"
                f"driver = ctypes.CDLL('{driver}')\n"
                "count = ctypes.c_uint()\n"
                "assert driver.nvmlInit_v2() == 0\n"
                "import zeus.sim\n"
                "from zeus.monitor import ZeusMonitor\n"
                "with zeus.sim.Node('3xA100'):\n"
                "    print(len(ZeusMonitor().gpu_indices))\n"
                "    driver.nvmlDeviceGetCount_v2(ctypes.byref(count))\n"
                "    print(count.value)\n")
        self.assertEqual(out, "3\n1\n")

    def test_bad_input(self):
        for gpus, kind in (("4xB999", ValueError), ("", ValueError), (4, TypeError)):
            with self.assertRaises(kind):
                zeus.sim.Node(gpus)
        for scale in (0, -1, float("nan"), float("inf"), 1e9):
            with self.assertRaises(ValueError):
                zeus.sim.Node("A100", time_scale=scale)
        with self.assertRaises(TypeError):
            zeus.sim.Node("A100", time_scale="fast")
        for seed in (-1, 2**64):
            with self.assertRaises(ValueError):
                zeus.sim.Node("A100", seed=seed)
        with self.assertRaises(ValueError):
            zeus.sim.Node("A100", ambient=float("nan"))
        self.assertNotIn("ZEUS_SIM_NODE", os.environ)

    def test_bad_work(self):
        with zeus.sim.Node("2xA100", time_scale=20) as node:
            for arguments in ({}, {"operations": 1e12}, {"operations": 0, "bytes": 1},
                              {"operations": float("nan"), "bytes": 1}, {"workload": "no such"},
                              {"workload": "resnet50", "batch_size": 0},
                              {"workload": "resnet50", "bytes": 1},
                              {"workload": "resnet50", "gpus": [2]},
                              {"workload": "resnet50", "gpus": [-1]},
                              {"workload": "resnet50", "gpus": [0, 0]},
                              {"workload": "resnet50", "gpus": []}):
                with self.assertRaises(ValueError, msg=str(arguments)):
                    node.run(**arguments)
            with self.assertRaises(TypeError):
                node.run("resnet50", gpus="0")
            work = node.run("resnet50")
            for steps in (0, -1, float("nan"), float("inf")):
                with self.assertRaises(ValueError):
                    work.step(steps)
            with self.assertRaises(TypeError):
                work.step("1")
            with self.assertRaises(ValueError):
                node.draw(-5)
            for kind in ("broken", "oob-cap", "slow:1h", "lost:1"):
                with self.assertRaisesRegex(ValueError, "use one of lost, reset"):
                    node.fault(0, kind)
            with self.assertRaises(ValueError):
                node.fault(0, "frozen", probability=0.5)
            with self.assertRaises(ValueError):
                node.fault(0, "lost", at=float("nan"))
            with self.assertRaises(ZeusError):
                node.fault(7, "lost")
        with self.assertRaisesRegex(ConflictError, "this work is closed"):
            work.step()
        with self.assertRaisesRegex(ConflictError, "this simulated node is closed"):
            node.run("resnet50")

    def test_what_a_function_raises_is_raised_and_the_gpus_stop(self):
        with zeus.sim.Node("A100", time_scale=20) as node:
            work = node.run(operations=1e18, bytes=1e10)
            with self.assertRaisesRegex(KeyError, "mine"):
                work.step(lambda: {}["mine"])
            self.assertLess(node.truth()[0].power, 100)
            self.assertEqual(node.run(operations=1e12, bytes=1e9).step(2, lambda: "result"), "result")

    def test_models_and_workloads(self):
        self.assertIn("A100", [model["id"] for model in zeus.sim.models()])
        self.assertIn("resnet50", [workload["name"] for workload in zeus.sim.workloads()])

    def test_no_node(self):
        with self.assertRaisesRegex(NotFoundError, "no simulated node is here"):
            zeus.sim.attach()


if __name__ == "__main__":
    unittest.main()
