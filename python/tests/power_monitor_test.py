"""Power and temperature over time, on simulated GPUs."""

import math
import os
import statistics
import time
import unittest
import warnings

from node_testing import NodeTestCase, wait_until
from process_testing import WITHOUT_NODE, run_python, without_sanitizer

from zeus._core.recording import Quantity
from zeus.device.gpu import ZeusGPUInitError, ZeusGPUNotFoundError
from zeus.monitor import PowerDomain, PowerMonitor, TemperatureMonitor, ZeusMonitor


def wait_for_samples(monitor, count=1, gpu=0):
    """Until the timeline of the GPU has so many samples."""
    wait_until(lambda: len(monitor.get_power_timeline(gpu_index=gpu)[gpu]) >= count,
               f"there are no {count} samples of GPU {gpu}")


def wait_for_recording(monitor, moment, gpu=0):
    """Until the recording of the GPU has come to a time."""
    wait_until(lambda: recorded_until(monitor, gpu) >= moment, "the recording does not go on")


def recorded_until(monitor, gpu):
    recorded = monitor._recorded
    spans = recorded._recording.history(recorded.positions[gpu], Quantity.POWER)
    return spans[-1][1] if spans else -math.inf


class PowerMonitorTest(NodeTestCase):
    GPUS = "1xH100,1xA100,1xP100"

    def tearDown(self):
        for gpu in range(3):
            self.node.fault(gpu, "clear")

    def test_steady_power_has_energy(self):
        with PowerMonitor() as monitor:
            wait_for_samples(monitor)
            begin = self.moment()
            end = self.spend(100)
            wait_for_recording(monitor, end.time)
            energy = monitor.get_energy(begin.time, end.time)
            sigma = monitor.get_energy_sigma(begin.time, end.time)
        self.assertEqual(list(energy), [0, 1, 2])
        self.assertAlmostEqual(energy[0], end.joules[0] - begin.joules[0], delta=0.15 * energy[0])
        self.assertTrue(0 < sigma[0] < 0.2 * energy[0], sigma)

    def test_energy_of_parts_is_the_energy_of_the_whole(self):
        with PowerMonitor([0]) as monitor, self.node.draw(250, gpus=[0]):
            begin, middle, end = self.spend(1).time, self.spend(150).time, self.spend(150).time
            wait_for_recording(monitor, end)

            def energies():
                """The whole is read before and after its parts, because the recording goes on."""
                return [monitor.get_energy(since, until)[0] for since, until in
                        ((begin, end), (begin, middle), (middle, end), (begin, end))]

            wait_until(lambda: (found := energies())[0] == found[3], "the energy keeps changing")
            whole, first, second, again = energies()
        self.assertEqual(whole, again)
        self.assertAlmostEqual(whole, first + second, places=3)

    def test_a_timeline_shows_when_a_load_began(self):
        with PowerMonitor([1]) as monitor:
            wait_for_samples(monitor, gpu=1)
            self.pass_time(0.3)
            began = time.time()
            with self.node.draw(300, gpus=[1]):
                wait_until(lambda: any(when > began and watts > 200 for when, watts in
                                       monitor.get_power_timeline(gpu_index=1)[1]),
                           "the load does not show")
            line = monitor.get_power_timeline(gpu_index=1)[1]
            limited = monitor.get_power_timeline(gpu_index=1, start_time=began)[1]
        self.assertEqual(line, sorted(line))
        self.assertLess(line[0][1], 150)
        self.assertGreater(max(watts for _, watts in line), 200)
        # A sample begins with the update of the sensor before it, up to 0.1 s ago.
        peak = max(line, key=lambda sample: sample[1])[0]
        self.assertTrue(began - 0.11 < peak < time.time(), (began, line))
        self.assertLess(max(watts for when, watts in line if when < began - 0.11), 150)
        self.assertLess(len(limited), len(line))

    def test_power_now_and_then(self):
        with PowerMonitor([0]) as monitor:
            wait_for_samples(monitor)
            begin = monitor.get_power_timeline()[0][0][0]
            true = self.node.truth()[0].power
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
        domain = PowerDomain.DEVICE_AVERAGE
        with PowerMonitor([0], update_period=0.1) as monitor, self.node.draw(250, gpus=[0]):
            begin = time.time()
            end = self.spend(375).time
            wait_for_recording(monitor, end)
            wait_until(lambda: len(monitor.get_power_timeline(domain)[0]) > 5, "too few averages")
            instant, average = (monitor.get_energy(begin, end, d)[0] for d in (None, domain))
            times = [when for when, _ in monitor.get_all_power_timelines()[domain][0][:6]]
        self.assertLess(statistics.median(b - a for a, b in zip(times, times[1:])), 0.5)
        self.assertTrue(0.3 * instant < average < 1.3 * instant, (instant, average))

    def test_time_before_the_recording_is_not_counted_silently(self):
        before = self.moment()
        with PowerMonitor([0]) as monitor:
            wait_for_samples(monitor)
            now = self.spend(10)
            wait_for_recording(monitor, now.time)
            self.assertIsNone(monitor.get_energy(now.time - 100, now.time - 50))
            with self.assertWarnsRegex(UserWarning, "are not in the energy"):
                energy = monitor.get_energy(now.time - 100, now.time)[0]
        # The first reading tells of the update of the sensor before it, up to 0.1 s ago.
        most = now.joules[0] - before.joules[0] + 0.2 * self.node.truth()[0].power
        self.assertTrue(8 < energy < 1.2 * most, (energy, most))

    def test_a_lost_gpu_is_not_a_zero(self):
        with PowerMonitor([0, 1]) as monitor:
            wait_for_samples(monitor, gpu=1)
            self.node.fault(1, "lost")
            wait_until(lambda: math.isnan(monitor.get_power()[1]), "the loss is not noticed")
            begin = time.time()
            end = self.spend(20).time
            wait_for_recording(monitor, end)
            self.assertTrue(math.isnan(monitor.get_power()[1]))
            self.assertTrue(math.isnan(monitor.get_energy(begin, end)[1]))
            self.assertGreater(monitor.get_energy(begin, end)[0], 10)

    def test_the_time_in_which_a_gpu_was_lost_has_no_values(self):
        monitor = PowerMonitor(update_period=0.2)
        heat = TemperatureMonitor(update_period=0.2)
        self.addCleanup(monitor.stop)
        self.addCleanup(heat.stop)

        def known(when=None):
            """The values of all domains and GPUs, and of the temperature, where there are any."""
            watts = [w for d in PowerDomain for w in monitor.get_power(when, d).values()]
            return [w for w in watts if not math.isnan(w)] + [*heat.get_temperature(when).values()]

        def energies(since, until):
            return [
                joules
                for domain in PowerDomain
                for joules in monitor.get_energy(since, until, domain).values()
            ]

        def wait_for_all(moment):
            for gpu in range(3):
                wait_for_recording(monitor, moment, gpu)

        everything = len(known())
        wait_until(lambda: len(known(time.time())) == everything, "something is not recorded")
        begin = time.time()
        seen = self.spend(30).time
        self.pass_time(0.3)  # The last update of a sensor before the loss may be 0.1 s old.
        wait_for_all(time.time())
        for gpu in range(3):
            self.node.fault(gpu, "lost")
        wait_until(lambda: not known(), "the loss is not noticed")
        noticed = time.time()
        self.pass_time(1.0)
        now = time.time()
        for when in (now, (noticed + now) / 2):
            self.assertEqual(known(when), [], now - when)
        self.pass_time(0.5)  # The first reading afterwards tells of the update before it.
        for gpu in range(3):
            self.node.fault(gpu, "clear")
        wait_until(lambda: len(known()) == everything, "the GPUs do not come back")
        self.pass_time(1.0)
        back = time.time()
        self.pass_time(1.0)
        end = time.time()
        wait_for_all(end)
        wait_until(lambda: not any(map(math.isnan, energies(back, end))), "something is missing")

        whole_before = energies(back, end)
        for _ in range(2):  # Also after stop().
            self.assertTrue(all(map(math.isnan, energies(begin, end))), energies(begin, end))
            for gpu, line in monitor.get_power_timeline().items():
                dark = [when - noticed for when, _ in line if noticed < when < now]
                self.assertEqual(dark, [], gpu)
            for before, joules in zip(whole_before, energies(back, end)):
                self.assertAlmostEqual(joules, before, delta=0.1 * before)
            self.assertGreater(monitor.get_energy(begin, seen)[0], 10)
            self.assertGreater(monitor.get_power(seen)[0], 10)
            self.assertTrue(math.isnan(monitor.get_power((noticed + now) / 2)[0]))
            monitor.stop()

    def test_the_future_has_no_energy(self):
        with PowerMonitor([0]) as monitor:
            wait_for_samples(monitor)
            then = time.time() + 10
            for domain in PowerDomain:
                self.assertTrue(math.isnan(monitor.get_energy(then, then + 1, domain)[0]), domain)

    def test_the_time_after_stop_is_not_counted_silently(self):
        with PowerMonitor([0], power_domains=[PowerDomain.DEVICE_INSTANT]) as monitor:
            wait_for_samples(monitor)
            begin = time.time()
            wait_for_recording(monitor, self.spend(20).time)

        def energy_and_warnings():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                energy = monitor.get_energy(begin, time.time())[0]
            return energy, [str(warning.message) for warning in caught]

        # A recorder may be late by a second or two before it is known to have stopped.
        wait_until(lambda: energy_and_warnings()[1], "there is no warning")
        energy, messages = energy_and_warnings()
        self.assertRegex(messages[0], "recording was stopped")
        self.assertGreater(energy, 5)

    @without_sanitizer  # Its allocator may hang in a child that was forked beside other threads.
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
    joules = node.truth()[0].energy
    while node.truth()[0].energy < joules + 40:
        time.sleep(0.01)
    end = time.time()
    while not all(each.get_power_timeline(start_time=end)[0] for each in (monitor, other)):
        time.sleep(0.01)
    shared.close()
    print(other.get_energy(begin, end)[0] > 10)
for each in (monitor, other, monitor, other):
    each.stop()
    print(each.get_energy(begin, end)[0] > 10)
""")
        self.assertEqual(out, 5 * "True\n")

    def test_what_was_recorded_can_be_read_after_stop(self):
        monitor = PowerMonitor([0])
        wait_for_samples(monitor)
        begin, end = self.moment(), self.spend(40)
        wait_for_recording(monitor, end.time)
        monitor.stop()
        monitor.stop()
        energy = monitor.get_energy(begin.time, end.time)[0]
        self.assertAlmostEqual(energy, end.joules[0] - begin.joules[0], delta=0.2 * energy)
        self.assertAlmostEqual(energy / (end.time - begin.time), monitor.get_power()[0],
                               delta=0.2 * monitor.get_power()[0])
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
        self.assertRaisesRegex(ValueError, "device_instant", PowerMonitor, power_domains=["x"])
        self.assertRaisesRegex(TypeError, "PowerDomain", PowerMonitor, power_domains=[1])
        self.assertRaisesRegex(TypeError, "list of domains", PowerMonitor, power_domains="device_instant")
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
        with TemperatureMonitor(update_period=0.1) as monitor, self.node.draw(400, gpus=[0]):
            begin = time.time()

            def line():
                return monitor.get_temperature_timeline(0)[0]

            wait_until(lambda: line() and line()[-1][1] > line()[0][1], "it does not get warmer")
            self.assertEqual(list(monitor.get_temperature()), [0, 1, 2])
            self.assertEqual(monitor.get_temperature(begin - 10), {})
            self.assertTrue(all(isinstance(value, int) for _, value in line()))

    def test_at_most_so_many_samples(self):
        with ZeusMonitor(gpu_indices=[0]) as shared, self.node.draw(200, gpus=[0]):
            every = PowerMonitor(monitor=shared)
            limited = PowerMonitor(max_samples_per_gpu=2, monitor=shared)
            wait_for_samples(every, 4)
            self.assertEqual(len(limited.get_power_timeline()[0]), 2)


class HurryTest(NodeTestCase):
    GPUS = "1xH100"
    TIME_SCALE = 20

    def test_energy_is_that_of_the_node(self):
        with PowerMonitor() as monitor:
            wait_for_samples(monitor)
            begin = self.moment()
            end = self.spend(1400)
            wait_for_recording(monitor, end.time)
            energy = monitor.get_energy(begin.time, end.time)[0]
            average = monitor.get_energy(begin.time, end.time, PowerDomain.DEVICE_AVERAGE)[0]
        self.assertAlmostEqual(energy, end.joules[0] - begin.joules[0], delta=0.2 * energy)
        self.assertAlmostEqual(average, energy, delta=0.2 * energy)


if __name__ == "__main__":
    unittest.main()
