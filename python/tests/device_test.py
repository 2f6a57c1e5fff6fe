"""zeus.device on simulated GPUs."""

import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from node_testing import NodeTestCase, zeus

from zeus._core.device import Devices
from zeus.device import get_cpus, get_gpus, get_soc
from zeus.device.cpu import CPUs, CpuDramMeasurement, EmptyCPUs, ZeusCPUInitError
from zeus.device.exception import ZeusBaseError
from zeus.device.gpu import (
    EmptyGPUs,
    ZeusBaseGPUError,
    ZeusGPUHeterogeneousError,
    ZeusGPUInitError,
    ZeusGPUInvalidArgError,
    ZeusGPULostError,
    ZeusGPUNoPermissionError,
    ZeusGPUNotFoundError,
    ZeusGPUNotSupportedError,
)
from zeus.device.soc import EmptySoC, JetsonMeasurement, SoC, ZeusSoCInitError
from zeus.errors import ZeusError


def truth(gpu: int) -> dict:
    return json.loads(zeus("sim", "truth", "--json"))[gpu]


class ReadingTest(NodeTestCase):
    GPUS = "2xA100,1xH100,1xP100"

    def tearDown(self):
        for gpu in range(4):
            zeus("sim", "fault", "--gpu", str(gpu), "--kind", "clear")

    def test_gpus_are_numbered_and_have_an_identity(self):
        gpus = get_gpus()
        self.assertEqual(len(gpus), 4)
        self.assertIn("A100", gpus.get_name(0))
        self.assertIn("H100", gpus[2].get_name())
        self.assertEqual(gpus.get_uuid(1), truth(1)["uuid"])
        self.assertEqual([gpu.gpu_index for gpu in gpus], [0, 1, 2, 3])
        self.assertRegex(gpus[0].pci_address, r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d$")
        self.assertEqual(gpus[0].vendor, "NVIDIA")

    def test_the_same_object_every_time(self):
        self.assertIs(get_gpus(), get_gpus())

    def test_energy_and_power_are_those_of_the_node(self):
        gpus = get_gpus()
        looks = [self.moment()]
        before = gpus.get_total_energy_consumption(0)
        looks += [self.moment(), self.spend(30)]
        used = gpus.get_total_energy_consumption(0) - before
        looks += [self.moment()]
        self.assertIsInstance(used, int)
        first, second, third, last = (look.joules[0] for look in looks)
        aged = 0.12 * truth(0)["power_watts"]  # The counter is up to 0.1 s old.
        self.assertGreater(used / 1000, 0.9 * (third - second) - aged)
        self.assertLess(used / 1000, 1.1 * (last - first) + aged)
        watts = truth(2)["power_watts"]  # A sensor is off by some percent.
        self.assertAlmostEqual(gpus.get_instant_power_usage(2) / 1000, watts, delta=0.2 * watts)
        self.assertAlmostEqual(gpus.get_average_power_usage(2) / 1000, watts, delta=0.2 * watts)
        self.assertLess(gpus.get_average_memory_power_usage(2), gpus.get_average_power_usage(2))
        self.assertTrue(gpus.supports_get_total_energy_consumption(0))

    def test_what_else_a_gpu_tells(self):
        gpu = get_gpus()[0]
        low, high = gpu.get_power_management_limit_constraints()
        self.assertLess(low, high)
        self.assertEqual(gpu.get_power_management_limit(), gpu.get_enforced_power_limit())
        self.assertTrue(low <= gpu.get_default_power_management_limit() <= high)
        self.assertTrue(10 < gpu.get_gpu_temperature() < 110)
        self.assertTrue(0 <= gpu.get_utilization().compute <= 1)
        self.assertLessEqual(gpu.get_memory_use().used, gpu.get_memory_use().total)
        self.assertIsInstance(gpu.get_throttle_reasons(), frozenset)
        graphics = gpu.get_supported_graphics_clocks()
        self.assertEqual(graphics, sorted(graphics, reverse=True))
        memory = gpu.get_supported_memory_clocks()
        self.assertEqual(gpu.get_supported_graphics_clocks(memory[0]), graphics)
        self.assertRaisesRegex(ValueError, "no memory clock", gpu.get_supported_graphics_clocks, 1)

    def test_a_wrong_index_is_refused_with_a_sentence(self):
        gpus = get_gpus()
        sentence = "no GPU 7: this process sees GPUs 0 to 3"
        self.assertRaisesRegex(ZeusGPUNotFoundError, sentence, gpus.get_name, 7)
        self.assertRaises(KeyError, gpus.get_name, 7)
        self.assertRaisesRegex(ValueError, "gpu_index is 0 or more, not -1", gpus.get_name, -1)
        for wrong in ("0", None, 0.0, True, math.nan):
            with self.assertRaisesRegex(TypeError, "gpu_index is a whole number"):
                gpus.get_name(wrong)

    def test_a_lost_gpu_is_an_error_and_not_a_zero(self):
        gpus = get_gpus()
        zeus("sim", "fault", "--gpu", "1", "--kind", "lost")
        with self.assertRaises(ZeusGPULostError) as caught:
            gpus.get_total_energy_consumption(1)
        self.assertIsInstance(caught.exception, (ZeusBaseGPUError, RuntimeError))
        self.assertIn("gpu:1", str(caught.exception))
        self.assertGreater(gpus.get_total_energy_consumption(0), 0)

    def test_a_gpu_that_is_lost_at_the_start_keeps_its_number(self):
        zeus("sim", "fault", "--gpu", "1", "--kind", "lost")
        with mock.patch.dict(os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID"):
            gpus = get_gpus()
            self.assertEqual(len(gpus), 4)
            self.assertEqual([gpu.gpu_index for gpu in gpus], [0, 2, 3])
            self.assertIn("H100", gpus.get_name(2))
            self.assertRaisesRegex(ZeusGPULostError, "gpu:1", gpus.get_name, 1)

    def test_what_a_gpu_does_not_support_is_said(self):
        old = get_gpus()[3]
        self.assertFalse(old.supports_get_total_energy_consumption())
        self.assertRaises(ZeusGPUNotSupportedError, old.get_total_energy_consumption)
        self.assertRaises(NotImplementedError, old.get_average_power_usage)
        zeus("sim", "fault", "--gpu", "0", "--kind", "not-supported")
        self.assertRaises(NotImplementedError, get_gpus().set_power_management_limit, 0, 200_000)

    def test_models_are_compared_every_time(self):
        get_gpus()
        with self.assertRaisesRegex(ZeusGPUHeterogeneousError, "A100.* and .*H100"):
            get_gpus(ensure_homogeneous=True)
        with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="0,1"):
            self.assertEqual(len(get_gpus(ensure_homogeneous=True)), 2)
        self.assertEqual(len(get_gpus()), 4)

    def test_a_changed_environment_is_noticed(self):
        first = get_gpus()
        with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="2"):
            gpus = get_gpus()
            self.assertEqual(len(gpus), 1)
            self.assertEqual(gpus.get_uuid(0), first.get_uuid(2))

    def test_nothing_visible_is_an_error_with_the_reason(self):
        with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES=""):
            self.assertRaisesRegex(ZeusGPUInitError, "CUDA_VISIBLE_DEVICES", get_gpus)
        with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="zero"):
            self.assertRaisesRegex(ZeusGPUInitError, "zero", get_gpus)
        with mock.patch.dict(os.environ, ZEUS_NVML_LIBRARY="/nonexistent/libnvidia-ml.so.1"):
            with self.assertRaisesRegex(ZeusGPUInitError, "no GPU can be used here.*nonexistent"):
                get_gpus()

    def test_a_forked_child_looks_for_itself(self):
        parent = get_gpus()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            own = get_gpus()
            # The counter of a node that has just begun may still be 0.
            fine = own is not parent and own.get_total_energy_consumption(0) >= 0
            os.write(write, b"1" if fine else b"0")
            os._exit(0)
        os.close(write)
        self.assertEqual(os.read(read, 1), b"1")
        os.close(read)
        os.waitpid(child, 0)

    def test_old_names_work_and_warn_once(self):
        program = (
            "import warnings\n"
            "from zeus.device import get_gpus\n"
            "with warnings.catch_warnings(record=True) as told:\n"
            "    warnings.simplefilter('always')\n"
            "    gpus = get_gpus()\n"
            "    assert gpus.getName(0) == gpus.getName(1) == gpus[0].getName()\n"
            "    gpus.getTotalEnergyConsumption(0)\n"
            "    gpus.setPowerManagementLimit(0, gpus.get_power_management_limit(0))\n"
            "print([str(w.message) for w in told])\n"
        )
        told = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        self.assertEqual(told.count("getName() is now called get_name()"), 1)
        self.assertEqual(told.count("is now called"), 3)


class NoDeviceTest(unittest.TestCase):
    def test_stand_ins_raise_whatever_they_are_asked(self):
        self.assertEqual(len(EmptyGPUs()), 0)
        self.assertRaises(ValueError, EmptyGPUs().get_name, 0)
        self.assertRaises(ValueError, lambda: EmptyGPUs()[0])
        self.assertRaises(ValueError, EmptyCPUs().get_total_energy_consumption, 0)
        self.assertRaises(ValueError, EmptySoC().get_total_energy_consumption)
        self.assertEqual(EmptySoC().get_available_metrics(), set())

    def test_no_cpu_counter_is_an_error_with_the_reason(self):
        with tempfile.TemporaryDirectory() as empty:
            devices = Devices(sysfs=empty, procfs=empty, dev=empty)
            with mock.patch("zeus.device.cpu.find_devices", return_value=devices):
                self.assertRaisesRegex(ZeusCPUInitError, "CPU energy", get_cpus)
            with mock.patch("zeus.device.soc.find_devices", return_value=devices):
                self.assertRaisesRegex(ZeusSoCInitError, "no supply rail", get_soc)


class CpuTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        zone = self.root / "class/powercap/intel-rapl:0"
        self.write(zone, name="package-0", energy_uj=5_000_000, max_energy_range_uj=10**12)
        memory = self.root / "class/powercap/intel-rapl:0:0"
        self.write(memory, name="dram", energy_uj=1_000_000, max_energy_range_uj=10**12)
        self.zone, self.memory = zone, memory
        devices = Devices(sysfs=str(self.root), procfs=str(self.root), dev=str(self.root))
        self.cpus = CPUs(devices)

    def write(self, folder, **files):
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in files.items():
            (folder / name).write_text(f"{value}\n")

    def test_sockets_and_their_memory_are_in_millijoules(self):
        self.assertEqual(len(self.cpus), 1)
        before = self.cpus.get_total_energy_consumption(0)
        self.write(self.zone, energy_uj=7_000_000)
        self.write(self.memory, energy_uj=1_500_000)
        used = self.cpus.get_total_energy_consumption(0) - before
        self.assertAlmostEqual(used.cpu_mj, 2000)
        self.assertAlmostEqual(used.dram_mj, 500)
        self.assertTrue(self.cpus.supports_get_dram_energy_consumption(0))
        self.assertEqual(self.cpus[0].source, "powercap")

    def test_a_wrong_index_is_refused(self):
        self.assertRaisesRegex(KeyError, "no CPU 3", self.cpus.get_total_energy_consumption, 3)
        self.assertRaises(TypeError, self.cpus.get_total_energy_consumption, "0")

    def test_measurements_are_subtracted_and_divided(self):
        used = CpuDramMeasurement(5.0, 3.0) - CpuDramMeasurement(1.0, 1.0)
        self.assertEqual(used / 2, CpuDramMeasurement(2.0, 1.0))
        self.assertIsNone((CpuDramMeasurement(5.0) - CpuDramMeasurement(1.0)).dram_mj)
        with self.assertRaises(ValueError):
            _ = CpuDramMeasurement(5.0, 1.0) - CpuDramMeasurement(1.0)
        self.assertRaises(TypeError, lambda: CpuDramMeasurement(5.0) / "2")


class FakeRails:
    device_names = ["rail:VDD_IN", "rail:VDD_CPU_GPU_CV", "rail:VDD_GPU_SOC"]
    joules = [1.0, 2.0, 3.0]

    def total_energy(self, device):
        return self.joules[device], 0.0


class SocTest(unittest.TestCase):
    def test_a_window_has_the_energy_of_every_rail(self):
        rails = FakeRails()
        soc = SoC(rails)
        soc.begin_window("step")
        self.assertRaisesRegex(ValueError, "open already", soc.begin_window, "step")
        rails.joules = [11.0, 4.0, 6.0]
        used = soc.end_window("step")
        self.assertIsInstance(used, JetsonMeasurement)
        self.assertEqual(used.total_energy_mj, 10_000)
        self.assertEqual(used.gpu_energy_mj, 3000)
        self.assertIsNone(used.cpu_energy_mj)  # A rail of several parts is nobody's.
        self.assertRaisesRegex(KeyError, "no window", soc.end_window, "step")
        self.assertIn("total_energy_mj", soc.get_available_metrics())
        self.assertNotIn("cpu_energy_mj", soc.get_available_metrics())
        used.zero_all_fields()
        self.assertEqual(used.total_energy_mj, 0)


class ExceptionTest(unittest.TestCase):
    def test_every_exception_is_ours_and_the_built_in_one(self):
        import zeus.device.gpu as gpu

        for name in gpu.__all__:
            if name.startswith("Zeus"):
                kind = getattr(gpu, name)
                self.assertTrue(issubclass(kind, (ZeusBaseError, ZeusError)), name)
                self.assertEqual(kind("a sentence").message, "a sentence")
                self.assertEqual(str(kind("a sentence")), "a sentence")
        self.assertTrue(issubclass(ZeusGPUNoPermissionError, PermissionError))
        self.assertTrue(issubclass(ZeusGPUInvalidArgError, ValueError))


if __name__ == "__main__":
    unittest.main()
