"""Power and temperature over time, on simulated GPUs."""

import json
import math
import os
import subprocess
import time
import unittest

from node_testing import ZEUS, NodeTestCase, zeus
from process_testing import WITHOUT_NODE, run_python

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
            self.assertAlmostEqual(monitor.get_power(begin - 0.1)[0], true, delta=0.2 * true)
            self.assertTrue(math.isnan(monitor.get_power(begin - 100)[0]))
            self.assertTrue(math.isnan(monitor.get_power(begin + 100)[0]))
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

    def test_the_time_in_which_a_gpu_was_lost_has_no_values(self):
        monitor = PowerMonitor(update_period=0.2)
        heat = TemperatureMonitor(update_period=0.2)
        self.addCleanup(heat.stop)
        time.sleep(1.0)
        begin = time.time()
        time.sleep(1.0)
        lost = time.time()
        for gpu in range(3):
            self.node.fault(gpu, "lost")
        time.sleep(2.0)
        now = time.time()
        for domain in PowerDomain:
            for when in (now, now - 1):
                watts = monitor.get_power(when, domain)
                self.assertTrue(all(map(math.isnan, watts.values())), (domain, watts))
        self.assertEqual(heat.get_temperature(now), {})
        self.assertEqual(heat.get_temperature(now - 1), {})
        for gpu in range(3):
            self.node.fault(gpu, "clear")
        time.sleep(1.0)
        back = time.time()
        time.sleep(1.0)
        end = time.time()
        time.sleep(0.5)

        def energies(since, until):
            return [
                joules
                for domain in PowerDomain
                for joules in monitor.get_energy(since, until, domain).values()
            ]

        whole_before = energies(back, end)
        for _ in range(2):  # Also after stop().
            self.assertTrue(all(map(math.isnan, energies(begin, end))), energies(begin, end))
            for gpu, line in monitor.get_power_timeline().items():
                dark = [when - lost for when, _ in line if lost + 0.5 < when < now - 0.1]
                self.assertEqual(dark, [], gpu)
            for before, joules in zip(whole_before, energies(back, end)):
                self.assertAlmostEqual(joules, before, delta=0.1 * before)
            self.assertGreater(monitor.get_energy(begin, lost - 0.2)[0], 10)
            self.assertGreater(monitor.get_power(lost - 0.2)[0], 10)
            self.assertTrue(math.isnan(monitor.get_power(now - 1)[0]))
            monitor.stop()

    def test_the_future_has_no_energy(self):
        with PowerMonitor([0]) as monitor:
            time.sleep(0.5)
            then = time.time() + 10
            for domain in PowerDomain:
                self.assertTrue(math.isnan(monitor.get_energy(then, then + 1, domain)[0]), domain)

    def test_the_time_after_stop_is_not_counted_silently(self):
        with PowerMonitor([0], power_domains=[PowerDomain.DEVICE_INSTANT]) as monitor:
            time.sleep(0.5)
        begin = time.time() - 0.4
        time.sleep(3.0)
        with self.assertWarnsRegex(UserWarning, "recording was stopped"):
            self.assertGreater(monitor.get_energy(begin, time.time())[0], 5)

    def test_a_forked_child_may_leave_the_block_of_its_parent(self):
        out = run_python("""
            import os, sys
            from zeus.monitor import PowerMonitor, TemperatureMonitor
            with PowerMonitor() as monitor, TemperatureMonitor() as heat:
                child = os.fork()
                if child == 0:
                    monitor.stop()
                    sys.exit(5)
                print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
                print(monitor.get_power()[0] > 0)
        """)
        self.assertEqual(out, "5\nTrue\n")

    def test_it_outlives_its_node_and_the_monitor_that_it_shares(self):
        out = run_python(WITHOUT_NODE + """
import time
from zeus.monitor import PowerMonitor, ZeusMonitor
from zeus.sim import Node

with Node("1xH100") as node:
    monitor, shared = PowerMonitor(), ZeusMonitor()
    other = PowerMonitor(monitor=shared)
    begin = time.time()
    time.sleep(0.8)
    end = time.time()
    shared.close()
    print(other.get_energy(begin, end - 0.2)[0] > 10)
for each in (monitor, other, monitor, other):
    each.stop()
    print(each.get_energy(begin, end - 0.2)[0] > 10)
""")
        self.assertEqual(out, 5 * "True\n")

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
        for kind in (PowerMonitor, TemperatureMonitor):
            self.assertRaisesRegex(TypeError, "^monitor is a ZeusMonitor, not 5$", kind, monitor=5)
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
            self.assertEqual(monitor.get_temperature(begin - 10), {})
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
