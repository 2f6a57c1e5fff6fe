"""zeus.optimizer.power_limit on simulated GPUs."""

import contextlib
import gc
import io
import json
import os
import tempfile
import unittest
import warnings

from limit_testing import Lowest, limits, quick, train, true_energy
from trained_node_testing import TrainedNodeTestCase

from zeus.callback import Callback
from zeus.errors import ConflictError, UnavailableError
from zeus.monitor import Measurement
from zeus.optimizer.power_limit import (
    Done,
    Energy,
    GlobalPowerLimitOptimizer,
    MaxSlowdownConstraint,
    OptimumSelector,
    Profiling,
    Ready,
    Time,
    Warmup,
    ZeusCost,
    read_profile,
)


class AnnouncementTest(TrainedNodeTestCase):
    def test_the_decision_is_printed_once_where_no_logging_is_set_up(self):
        with contextlib.redirect_stderr(io.StringIO()) as printed:
            plo = quick(self.monitor, Energy(), profile_steps=20)
            train(plo, self.work)
        lines = [line for line in printed.getvalue().splitlines() if line.startswith("zeus: ")]
        self.assertEqual(len(lines), 1, printed.getvalue())
        self.assertIn(f"the power limit is from now on {plo.optimal_power_limit:g} W", lines[0])

    def test_the_decision_goes_to_the_log_where_there_is_one(self):
        with self.assertLogs("zeus", "INFO") as log:
            plo = quick(self.monitor, Energy(), profile_steps=20, observe=True)
            train(plo, self.work)
        self.assertEqual(len(log.output), 1)
        self.assertIn(f"would be {plo.optimal_power_limit:g} W", log.output[0])


class DecisionTest(TrainedNodeTestCase):
    def test_the_least_energy_is_that_of_the_truth(self):
        plo = quick(self.monitor, Energy(), profile_steps=20)
        before = true_energy(self.node, [0, 1])
        train(plo, self.work)
        used = true_energy(self.node, [0, 1]) - before
        self.assertEqual(limits(), [plo.optimal_power_limit] * 2)
        # Energies of a step, as measured, against what the GPUs take at each limit.
        self.assertIsNone(plo.trouble)
        best = min(plo.measurements, key=lambda one: one.energy)
        chosen = next(one for one in plo.measurements
                      if one.power_limit == plo.optimal_power_limit)
        self.assertLessEqual(chosen.energy, best.energy * 1.05)
        self.assertAlmostEqual(plo.used().energy / used, 1, delta=0.05)

    def test_the_least_time_is_the_highest_limit(self):
        plo = quick(self.monitor, Time())
        train(plo, self.work)
        fastest = min(plo.measurements, key=lambda one: one.time)
        chosen = next(one for one in plo.measurements
                      if one.power_limit == plo.optimal_power_limit)
        self.assertGreaterEqual(chosen.power_limit, fastest.power_limit)
        self.assertLess(chosen.time, fastest.time * 1.2)

    def test_states_follow_each_other(self):
        plo = quick(self.monitor, power_limits=[300, 200])
        self.assertEqual(plo.state, Ready(steps_left=1))
        seen = []
        while not plo.done:
            plo.on_step_begin()
            self.work.step()
            if not seen or type(plo.state) is not seen[-1]:
                seen.append(type(plo.state))
        self.assertEqual(seen[0], Ready)
        self.assertIn(Warmup, seen)
        self.assertIn(Profiling, seen)
        self.assertEqual(plo.state, Done(plo.optimal_power_limit))
        self.assertIsInstance(plo, Callback)

    def test_savings_are_numbers_with_sigma_and_a_text(self):
        plo = quick(self.monitor, Lowest(), power_limits=[250], profile_steps=20)
        with self.assertRaises(UnavailableError):
            plo.savings()
        train(plo, self.work)
        for _ in range(20):
            plo.on_step_begin()
            self.work.step()
        plo.on_train_end()
        savings = plo.savings()
        self.assertEqual(savings.original, self.original[0])
        self.assertEqual(savings.best, plo.optimal_power_limit)
        self.assertLess(savings.change.energy, 0)
        self.assertGreater(savings.change.energy_sigma, 0)
        self.assertRegex(str(savings), r"W instead of .* W: energy -")
        self.assertEqual(limits(), self.original)

    def test_an_observer_leaves_the_limit_as_it_was(self):
        plo = quick(self.monitor, Energy(), observe=True)
        train(plo, self.work)
        self.assertEqual(limits(), self.original)
        self.assertIsNotNone(plo.optimal_power_limit)

    def test_no_warm_up_and_epochs_of_three_steps_will_do(self):
        plo = quick(self.monitor, warmup_steps=0, profile_steps=8)
        for _ in range(200):
            if plo.done:
                break
            for _ in range(3):
                plo.on_step_begin()
                self.work.step()
            plo.on_epoch_end()
        self.assertTrue(plo.done)
        self.assertEqual({one.steps for one in plo.measurements}, {8})

    def test_slices_of_time_as_in_the_paper(self):
        plo = quick(self.monitor, Energy(), seconds_per_limit=2.0)
        train(plo, self.work)
        self.assertIsNone(plo.trouble)
        self.assertGreaterEqual(min(one.steps for one in plo.measurements), 2)

    def test_clocks_can_be_turned_instead(self):
        plo = quick(self.monitor, Energy(), knob="graphics_clock", pl_step=500)
        train(plo, self.work)
        self.assertIsNone(plo.trouble)
        self.assertGreater(plo.optimal_power_limit, 500)  # Megahertz.


class SelectorTest(TrainedNodeTestCase):
    def test_an_objective_of_ones_own(self):
        class SecondLowest(OptimumSelector):
            def select(self, measurements):
                return sorted(one.power_limit for one in measurements)[1]

        plo = quick(self.monitor, SecondLowest())
        train(plo, self.work)
        self.assertEqual(plo.optimal_power_limit, 200)
        self.assertEqual(limits(), [200, 200])

    def test_what_it_raises_is_seen_and_training_goes_on(self):
        class Broken(OptimumSelector):
            def select(self, measurements):
                raise KeyError("no such thing")

        plo = quick(self.monitor, Broken())
        train(plo, self.work)
        self.assertIsInstance(plo.trouble.__cause__, KeyError)
        self.assertIn("Broken", str(plo.trouble))
        self.assertEqual(plo.state, Done(None))
        self.assertEqual(limits(), self.original)
        plo.on_step_begin()

    def test_a_limit_that_was_not_measured_is_refused(self):
        class Dreamer(OptimumSelector):
            def select(self, measurements):
                return 123

        plo = quick(self.monitor, Dreamer())
        train(plo, self.work)
        self.assertIn("123", str(plo.trouble))

    def test_a_selector_may_look_at_its_optimiser_but_not_call_it(self):
        seen = []

        class Curious(OptimumSelector):
            def select(self, measurements):
                seen.append(plo.state)
                try:
                    plo.on_step_begin()
                except ConflictError as error:
                    seen.append(error)
                return measurements[0].power_limit

        plo = quick(self.monitor, Curious())
        train(plo, self.work)
        self.assertIsNone(plo.trouble)
        self.assertIsInstance(seen[1], ConflictError)


class RestoreTest(TrainedNodeTestCase):
    def optimized(self, **options) -> GlobalPowerLimitOptimizer:
        plo = quick(self.monitor, Lowest(), power_limits=[150, 200], **options)
        train(plo, self.work)
        self.assertNotEqual(limits(), self.original)
        return plo

    def test_deleting_it(self):
        plo = self.optimized()
        del plo
        gc.collect()
        self.assertEqual(limits(), self.original)

    def test_closing_it_or_the_monitor(self):
        with self.optimized():
            pass
        self.assertEqual(limits(), self.original)
        plo = self.optimized()
        self.monitor.close()
        self.assertTrue(plo.closed)
        self.assertEqual(limits(), self.original)
        with self.assertRaises(ConflictError):
            plo.on_step_begin()
        plo.on_train_end()  # Nothing is left to end.

    def test_running_a_cell_again_ends_the_earlier_one(self):
        earlier = self.optimized()
        with self.assertWarnsRegex(UserWarning, "earlier power limit optimiser of GPU 0, 1"):
            later = self.optimized()
        self.assertTrue(earlier.closed)
        self.assertEqual(later.measurements[0].power_limit, self.original[0])
        later.close()

    def test_training_that_goes_on_after_its_end(self):
        plo = self.optimized()
        best = limits()
        plo.on_train_end()
        self.assertEqual(limits(), self.original)
        plo.on_train_begin()
        self.assertEqual(limits(), best)
        plo.close()


class ProfileTest(TrainedNodeTestCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "profile.json")

    def test_a_profile_is_kept_and_used_again(self):
        plo = quick(self.monitor, Energy(), profile_path=self.file)
        train(plo, self.work)
        best, measured = plo.optimal_power_limit, plo.measurements
        plo.close()
        again = quick(self.monitor, Energy(), profile_path=self.file)
        self.assertTrue(again.done)
        self.assertEqual(again.optimal_power_limit, best)
        self.assertEqual(again.measurements, measured)
        self.assertEqual(read_profile(self.file), measured)
        again.close()

    def test_readers_of_the_reference_find_what_they_know(self):
        plo = quick(self.monitor, Energy(), profile_path=self.file)
        train(plo, self.work)
        with open(self.file, encoding="utf-8") as file:
            entries = json.load(file)["measurements"]
        self.assertEqual(
            [(one["power_limit"], one["energy"], one["time"]) for one in entries],
            [one[:3] for one in plo.measurements],
        )
        self.assertIsInstance(entries[0]["power_limit"], int)

    def test_files_of_the_reference_give_the_same_numbers(self):
        entries = [
            {"power_limit": 400, "energy": 9000.0, "time": 20.0},
            {"power_limit": 300, "energy": 7000.0, "time": 21.0},
            {"power_limit": 200, "energy": 6500.0, "time": 30.0},
        ]
        with open(self.file, "w", encoding="utf-8") as file:
            json.dump({"measurements": entries}, file, indent=4)
        self.assertEqual([one[:3] for one in read_profile(self.file)],
                         [tuple(entry.values()) for entry in entries])
        for selector, best in ((Energy(), 200), (Time(), 400), (MaxSlowdownConstraint(1.1), 300),
                               (ZeusCost(0.5), 300)):
            with quick(self.monitor, selector, profile_path=self.file) as plo:
                self.assertEqual(plo.state, Done(best), selector)
                self.assertEqual(limits(), [best, best])

    def test_a_job_that_ends_early_keeps_what_it_learned(self):
        plo = quick(self.monitor, profile_path=self.file)
        for _ in range(10):
            plo.on_step_begin()
            self.work.step()
        plo.close()
        self.assertEqual([one.power_limit for one in read_profile(self.file)], [400, 300])


class Recorded:
    """A monitor of somebody else's: it plays what was recorded."""

    gpu_indices = [0, 1]

    def __init__(self, windows):
        self.windows = windows
        self.open = []

    def begin_window(self, key, sync_execution=True):
        self.open.append(key)

    def end_window(self, key, sync_execution=True, cancel=False):
        self.open.remove(key)
        energy, time = self.windows[int(key.rsplit("_", 1)[1])]
        return Measurement(time, {0: energy / 2, 1: energy / 2})


class ForeignMonitorTest(TrainedNodeTestCase):
    WINDOWS = {400: (9000.0, 20.0), 300: (7000.0, 21.0), 200: (6500.0, 30.0), 100: (8000.0, 60.0)}

    def test_recorded_windows_lead_to_the_documented_decision(self):
        def cost(watts):
            energy, time = self.WINDOWS[watts]
            return 0.5 * energy + 0.5 * 2 * 400 * time

        rules = {
            Energy(): min(self.WINDOWS, key=lambda watts: self.WINDOWS[watts][0]),
            Time(): min(self.WINDOWS, key=lambda watts: self.WINDOWS[watts][1]),
            ZeusCost(0.5): min(self.WINDOWS, key=cost),
            MaxSlowdownConstraint(1.6): 200,
        }
        for selector, expected in rules.items():
            recorded = Recorded(self.WINDOWS)
            with quick(recorded, selector) as plo:
                for _ in range(100):
                    plo.on_step_begin()
                self.assertIsNone(plo.trouble)
                self.assertEqual(plo.optimal_power_limit, expected, selector)
                self.assertEqual(limits(), [expected] * 2)
            self.assertEqual(recorded.open, [])
            self.assertEqual(limits(), self.original)

    def test_what_it_raises_becomes_trouble(self):
        recorded = Recorded({})
        with quick(recorded) as plo:
            for _ in range(100):
                plo.on_step_begin()
            self.assertIn("KeyError", str(plo.trouble))
            self.assertEqual(limits(), self.original)


class MisuseTest(TrainedNodeTestCase):
    def test_arguments_that_mean_nothing(self):
        for error, options in (
            (TypeError, {"wait_steps": "2"}),
            (ValueError, {"warmup_steps": -1}),
            (ValueError, {"profile_steps": 0}),
            (TypeError, {"profile_steps": True}),
            (ValueError, {"pl_step": 0}),
            (ValueError, {"pl_step": float("nan")}),
            (ValueError, {"seconds_per_limit": -1.0}),
            (ValueError, {"knob": "voltage"}),
            (ValueError, {"knob": []}),
            (TypeError, {"optimum_selector": Energy}),
            (TypeError, {"collective": object()}),
        ):
            with self.assertRaises(error, msg=options):
                GlobalPowerLimitOptimizer(self.monitor, **options)
        with self.assertRaisesRegex(TypeError, "ZeusMonitor"):
            GlobalPowerLimitOptimizer(object())

    def test_selectors_refuse_what_means_nothing(self):
        for make in (lambda: ZeusCost(1.5), lambda: ZeusCost(float("nan")), lambda: ZeusCost(True),
                     lambda: ZeusCost(0.5, 0), lambda: MaxSlowdownConstraint(0.9),
                     lambda: MaxSlowdownConstraint(float("inf")), lambda: Energy().select([])):
            with self.assertRaises(ValueError):
                make()

    def test_no_permission_and_odd_drivers_are_trouble_only(self):
        for fault in ("no-permission", "not-supported"):
            self.node.fault(0, fault)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    plo = quick(self.monitor)
                train(plo, self.work)
            finally:
                self.node.fault(0, "clear")
            self.assertIsNotNone(plo.trouble, fault)
            plo.close()


if __name__ == "__main__":
    unittest.main()
