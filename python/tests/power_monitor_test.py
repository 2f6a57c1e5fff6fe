"""Power and temperature over time, on simulated GPUs."""

import json
import math
import os
import subprocess
import time
import unittest

from node_testing import ZEUS, NodeTestCase, zeus

from zeus.device.gpu import ZeusGPUInitError, ZeusGPUNotFoundError
from zeus.monitor import PowerDomain, PowerMonitor, TemperatureMonitor, ZeusMonitor


def energy_of(gpu: int) -> float:
    return json.loads(zeus("sim", "truth", "--json"))[gpu]["energy_joules"]


def wait_until(holds, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("it did not happen")
        time.sleep(0.05)


class Load:
    """A load on a GPU as long as the block lasts."""

    def __init__(self, gpu: int, watts: int) -> None:
        self.command = [ZEUS, "sim", "load", "--gpu", str(gpu), "--watts", str(watts)]

    def __enter__(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


class PowerMonitorTest(NodeTestCase):
    GPUS = "1xH100,1xA100,1xP100"

    def tearDown(self):
        for gpu in range(3):
            zeus("sim", "fault", "--gpu", str(gpu), "--kind", "clear")

    def test_steady_power_has_energy(self):
        with PowerMonitor() as monitor:
            time.sleep(0.3)
            true_start, start = energy_of(0), time.time()
            time.sleep(1.5)
            true_end, end = energy_of(0), time.time()
            time.sleep(0.3)
            energy = monitor.get_energy(start, end)
            sigma = monitor.get_energy_sigma(start, end)
        self.assertEqual(list(energy), [0, 1, 2])
        # `truth` runs in a process of its own, within some hundredths of a second.
        self.assertAlmostEqual(energy[0], true_end - true_start, delta=0.15 * energy[0])
        self.assertTrue(0 < sigma[0] < 0.2 * energy[0], sigma)

    def test_energy_of_parts_is_the_energy_of_the_whole(self):
        with PowerMonitor([0]) as monitor, Load(0, 250):
            begin = time.time()
            time.sleep(0.8)
            middle = time.time()
            time.sleep(0.8)
            end = time.time()
            time.sleep(0.4)
            whole = monitor.get_energy(begin, end)[0]
            parts = monitor.get_energy(begin, middle)[0] + monitor.get_energy(middle, end)[0]
        self.assertAlmostEqual(whole, parts, places=3)

    def test_a_timeline_shows_when_a_load_began(self):
        with PowerMonitor([1]) as monitor:
            time.sleep(0.5)
            began = time.time()
            with Load(1, 300):
                time.sleep(1.5)
            line = monitor.get_power_timeline(gpu_index=1)[1]
            limited = monitor.get_power_timeline(gpu_index=1, start_time=began)[1]
        self.assertEqual(line, sorted(line))
        self.assertLess(line[0][1], 150)
        self.assertGreater(max(watts for _, watts in line), 200)
        peak = max(line, key=lambda sample: sample[1])[0]
        self.assertTrue(began < peak < time.time())
        self.assertLess(len(limited), len(line))

    def test_power_now_and_then(self):
        with PowerMonitor([0]) as monitor:
            begin = time.time()
            time.sleep(0.5)
            true = json.loads(zeus("sim", "truth", "--json"))[0]["power_watts"]
            self.assertAlmostEqual(monitor.get_power()[0], true, delta=0.2 * true)
            self.assertAlmostEqual(monitor.get_power(time.time())[0], true, delta=0.2 * true)
            self.assertIsNone(monitor.get_power(begin - 100))
            wait_until(
                lambda: abs(monitor.get_power(power_domain=PowerDomain.DEVICE_AVERAGE)[0] - true)
                < 0.2 * true
            )

    def test_averages_are_recorded_as_often_as_asked(self):
        with PowerMonitor([0], update_period=0.1) as monitor, Load(0, 250):
            begin = time.time()
            time.sleep(1.5)
            end = time.time()
            domain = PowerDomain.DEVICE_AVERAGE
            instant, average = (monitor.get_energy(begin, end, d)[0] for d in (None, domain))
            timelines = monitor.get_all_power_timelines()
        self.assertGreater(len(timelines[domain][0]), 5)
        self.assertTrue(0.3 * instant < average < 1.3 * instant, (instant, average))

    def test_time_before_the_recording_is_not_counted_silently(self):
        with PowerMonitor([0]) as monitor:
            time.sleep(0.3)
            now = time.time()
            self.assertIsNone(monitor.get_energy(now - 100, now - 50))
            with self.assertWarnsRegex(UserWarning, "are not in the energy"):
                energy = monitor.get_energy(now - 100, now)[0]
        self.assertTrue(0 < energy < 400)

    def test_a_lost_gpu_is_not_a_zero(self):
        with PowerMonitor([0, 1]) as monitor:
            time.sleep(0.3)
            zeus("sim", "fault", "--gpu", "1", "--kind", "lost")
            time.sleep(0.5)
            begin = time.time()
            time.sleep(0.5)
            self.assertTrue(math.isnan(monitor.get_power()[1]))
            self.assertTrue(math.isnan(monitor.get_energy(begin, time.time())[1]))
            self.assertGreater(monitor.get_energy(begin, time.time())[0], 10)

    def test_what_was_recorded_can_be_read_after_stop(self):
        monitor = PowerMonitor([0])
        begin = time.time()
        time.sleep(0.6)
        monitor.stop()
        monitor.stop()
        energy = monitor.get_energy(begin, begin + 0.4)[0]
        self.assertAlmostEqual(energy, 0.4 * monitor.get_power()[0], delta=0.2 * energy)
        self.assertGreater(len(monitor.get_power_timeline()[0]), 0)

    def test_a_shared_monitor_goes_on_when_it_stops(self):
        with ZeusMonitor(gpu_indices=[1, 2]) as shared:
            heat = TemperatureMonitor([2], monitor=shared)
            with PowerMonitor(monitor=shared) as power, heat:
                self.assertEqual(power.gpu_indices, [1, 2])
                self.assertEqual(list(heat.get_temperature()), [2])
            self.assertFalse(shared.closed)
            self.assertRaises(ZeusGPUNotFoundError, PowerMonitor, [0], monitor=shared)

    def test_an_unsupported_domain_is_refused_with_the_reason(self):
        with self.assertRaisesRegex(ValueError, "GPU 2 has no memory_average power"):
            PowerMonitor([2], power_domains=[PowerDomain.MEMORY_AVERAGE])

    def test_nonsense_is_refused_with_a_sentence(self):
        self.assertRaisesRegex(ValueError, "gpu_indices is empty", PowerMonitor, [])
        self.assertRaisesRegex(ValueError, "power_domains is empty", PowerMonitor, power_domains=[])
        self.assertRaisesRegex(TypeError, "PowerDomain", PowerMonitor, power_domains=["x"])
        self.assertRaisesRegex(ValueError, "update_period", PowerMonitor, update_period=math.nan)
        self.assertRaisesRegex(ValueError, "max_samples", PowerMonitor, max_samples_per_gpu=0)
        self.assertRaisesRegex(ZeusGPUNotFoundError, "no GPU 9", PowerMonitor, [9])
        self.assertRaises(TypeError, PowerMonitor, "0")
        with PowerMonitor([0], power_domains=[PowerDomain.DEVICE_INSTANT]) as monitor:
            self.assertRaisesRegex(ValueError, "before its begin", monitor.get_energy, 2, 1)
            self.assertRaises(ValueError, monitor.get_energy, math.nan, 1)
            self.assertRaisesRegex(
                ValueError, "is not recorded", monitor.get_power, None, PowerDomain.DEVICE_AVERAGE
            )
            self.assertRaises(KeyError, monitor.get_power_timeline, gpu_index=1)

    def test_no_gpu_at_all_is_an_error_with_the_reason(self):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        self.addCleanup(os.environ.pop, "CUDA_VISIBLE_DEVICES")
        self.assertRaisesRegex(ZeusGPUInitError, "CUDA_VISIBLE_DEVICES", PowerMonitor)

    def test_temperature_follows_a_load(self):
        with TemperatureMonitor(update_period=0.1) as monitor, Load(0, 400):
            begin = time.time()
            time.sleep(1.5)
            self.assertEqual(list(monitor.get_temperature()), [0, 1, 2])
            line = monitor.get_temperature_timeline(0)[0]
            self.assertIsNone(monitor.get_temperature(begin - 10))
        self.assertGreaterEqual(line[-1][1], line[0][1])
        self.assertTrue(all(isinstance(value, int) for _, value in line))

    def test_at_most_so_many_samples(self):
        with PowerMonitor([0], max_samples_per_gpu=2) as monitor, Load(0, 200):
            time.sleep(0.8)
            self.assertLessEqual(len(monitor.get_power_timeline()[0]), 2)


class HurryTest(NodeTestCase):
    GPUS = "1xH100"
    TIME_SCALE = 20

    def test_energy_is_that_of_the_node(self):
        with PowerMonitor() as monitor:
            time.sleep(0.3)
            true_start, start = energy_of(0), time.time()
            time.sleep(1.0)
            true_end, end = energy_of(0), time.time()
            time.sleep(0.2)
            energy = monitor.get_energy(start, end)[0]
            average = monitor.get_energy(start, end, PowerDomain.DEVICE_AVERAGE)[0]
        self.assertAlmostEqual(energy, true_end - true_start, delta=0.2 * energy)
        self.assertAlmostEqual(average, energy, delta=0.2 * energy)


if __name__ == "__main__":
    unittest.main()
