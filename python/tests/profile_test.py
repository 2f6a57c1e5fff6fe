"""zeus.profile on simulated GPUs that are in a hurry."""

import math
import time
import unittest

from node_testing import NodeTestCase

from zeus import profile
from zeus.monitor import ZeusMonitor
from zeus.profile import SweepReport, SweepResult, TrialResult


def trial(joules):
    return TrialResult(joules, 0.1, joules * 10, 1.0, 10, 30.0, 40.0)


def work():
    time.sleep(0.002)


class ProfileTest(NodeTestCase):
    GPUS = "A100"
    TIME_SCALE = 20

    def setUp(self):
        self.monitor = ZeusMonitor(cpu_indices=[])
        self.addCleanup(self.monitor.close)

    def test_a_measurement_is_long_enough_and_divides_by_its_calls(self):
        calls = []

        def fn():
            calls.append(None)
            work()
        began = time.monotonic()
        result = profile.measure(fn, self.monitor, 2.0, 1.0, num_warmup_iterations=3,
                                 num_calibration_iterations=10)
        self.assertEqual(len(calls), 3 + 10 + 3 + result.iterations)
        self.assertAlmostEqual(result.energy_per_iter * result.iterations, result.total_energy)
        self.assertAlmostEqual(result.time_per_iter * result.iterations, result.total_time)
        self.assertGreater(result.total_time, 0.1)  # Time of the node: calls vary in length.
        self.assertGreater(result.total_energy, 40 * result.total_time)
        self.assertGreater(result.temperature_before, 10)
        with self.assertRaises(KeyError):
            self.monitor.end_window("__zeus_profile_clock")
        self.assertGreater(time.monotonic() - began, 3.0 / self.TIME_SCALE)

    def test_rest_is_in_the_time_of_the_node(self):
        with profile.Trials(work, self.monitor, 0) as trials:
            before = trials._now()
            began = time.monotonic()
            trials.rest(4.0)
            self.assertGreaterEqual(trials._now() - before, 4.0)
            self.assertGreaterEqual(time.monotonic() - began, 0.9 * 4.0 / self.TIME_SCALE)

    def test_a_sweep_says_what_to_use(self):
        report = profile.profile_measurement_duration(
            work, self.monitor, measurement_duration_search_range=[1.0, 2.0], cooldown_duration=0.0, num_trials=3,
            num_warmup_trials=0, trial_stddev_threshold=10.0, num_warmup_iterations=1,
            num_calibration_iterations=5, stop_when_valid=True)
        self.assertEqual(report.sweep_param, "measurement_duration")
        (entry,) = report.entries
        self.assertTrue(entry.is_valid)
        self.assertIs(report.best, entry)
        self.assertEqual(len(entry.trials), 3)
        self.assertIn("use measurement_duration 1 s", str(report))

    def test_both_parameters_one_after_the_other(self):
        lengths, rests = profile.profile_parameters(
            work, self.monitor, [1.0], [0.0, 0.5], cooldown_duration=0.0, num_trials=2,
            num_warmup_trials=1, trial_stddev_threshold=10.0, num_warmup_iterations=0,
            iteration_duration=0.1)
        self.assertEqual(rests.fixed_param, {"measurement_duration": 1.0})
        self.assertEqual([entry.cooldown_duration for entry in rests.entries], [0.0, 0.5])
        self.assertEqual([t.iterations for t in lengths.entries[0].trials], [10, 10])

    def test_a_window_does_not_stay_open_when_the_function_raises(self):
        def broken():
            raise OSError("disk")
        for _ in range(2):
            with self.assertRaises(OSError):
                profile.measure(broken, self.monitor, 1, 0, num_warmup_iterations=0)
        with self.assertRaises(KeyError):
            self.monitor.end_window("__zeus_profile_run_trial")

    def test_nonsense_is_refused(self):
        measure, sweep = profile.measure, profile.profile_measurement_duration
        for call, error, message in (
            (lambda: measure(work, self.monitor, 0, 1), ValueError, "measurement_duration is greater than 0"),
            (lambda: measure(work, self.monitor, 1, -1), ValueError, "cooldown_duration is 0 or more"),
            (lambda: measure(work, self.monitor, math.nan, 1), ValueError, "not nan"),
            (lambda: measure(work, self.monitor, "1", 1), TypeError, "is a number, not '1'"),
            (lambda: measure(None, self.monitor, 1, 1), TypeError, "fn is a function"),
            (lambda: sweep(work, self.monitor, []), ValueError, "range is empty"),
            (lambda: sweep(work, self.monitor, [1, -2]), ValueError, "each of measurement_duration_search_range is greater than 0, not -2"),
            (lambda: sweep(work, self.monitor, [1], num_trials=1), ValueError, "at least 2"),
        ):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                call()


class ValidityTest(unittest.TestCase):
    def result(self, energies, threshold=0.01):
        return SweepResult.of(1.0, 2.0, [trial(joules) for joules in energies], threshold)

    def test_validity_does_not_depend_on_the_size_of_the_work(self):
        for scale in (1e-6, 1.0, 1e6):
            self.assertTrue(self.result([scale * x for x in (1.0, 1.002, 0.998)]).is_valid)
            self.assertFalse(self.result([scale * x for x in (1.0, 1.05, 0.95)]).is_valid)

    def test_energy_that_nobody_knows_is_not_valid(self):
        self.assertFalse(self.result([math.nan, 1.0]).is_valid)
        self.assertFalse(self.result([0.0, 0.0]).is_valid)

    def test_the_best_is_the_shortest_that_is_valid(self):
        good, bad = self.result([1.0, 1.0]), self.result([1.0, 2.0])
        longer = SweepResult.of(5.0, 2.0, good.trials, 0.01)
        self.assertIs(SweepReport("measurement_duration", {}, [bad, longer, good]).best, good)
        self.assertIsNone(SweepReport("measurement_duration", {}, [bad]).best)

    def test_bounds_of_the_deviation_enclose_it_and_narrow_with_trials(self):
        few = profile._deviation_bounds([1.0, 1.01, 0.99])
        many = profile._deviation_bounds([1.0, 1.01, 0.99] * 20)
        self.assertLess(few[0], 0.01)
        self.assertGreater(few[1], 0.01)
        self.assertGreater(many[0], few[0])
        self.assertLess(many[1], few[1])
        # Tables of the chi-square distribution: 9 degrees, 2.5 % is 2.700, 97.5 % is 19.023.
        self.assertAlmostEqual(profile._chi_square(9, -1.959964), 2.700, delta=0.03)
        self.assertAlmostEqual(profile._chi_square(9, 1.959964), 19.023, delta=0.05)


if __name__ == "__main__":
    unittest.main()
