"""zeus.monitor on simulated GPUs: windows, what they measured, and what they refuse."""

import asyncio
import copy
import csv
import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import warnings

from node_testing import NodeTestCase, wait_until

from zeus.monitor import Measurement, ZeusMonitor


class WindowTest(NodeTestCase):
    def setUp(self):
        self.monitor = ZeusMonitor()
        self.addCleanup(self.monitor.close)

    def test_a_window_has_time_and_energy_of_every_gpu(self):
        with ZeusMonitor(gpu_indices=[0, 2]) as monitor:
            self.assertEqual(monitor.gpu_indices, [0, 2])
            before = self.moment()
            monitor.begin_window("epoch")
            begin = self.moment()
            end = self.spend(20, gpu=2)
            measurement = monitor.end_window("epoch").refined()
            after = self.moment()
        self.assertGreater(measurement.time, 0.99 * (end.time - begin.time))
        self.assertLess(measurement.time, 1.01 * (after.time - before.time))
        self.assertEqual(list(measurement.gpu_energy), [0, 2])
        self.assertGreater(measurement.gpu_energy[2], 0.9 * (end.joules[2] - begin.joules[2]))
        self.assertLess(measurement.gpu_energy[2], 1.1 * (after.joules[2] - before.joules[2]))
        self.assertAlmostEqual(measurement.total_energy, sum(measurement.gpu_energy.values()))

    def test_values_carry_sigma_source_and_flags(self):
        self.monitor.begin_window("short")
        measurement = self.monitor.end_window("short").refined()
        device = measurement.devices["gpu:0"]
        self.assertGreater(device.sigma, 0)
        self.assertEqual(device.source, "counter")
        self.assertIsNone(device.reason)
        self.assertIn("short_window", device.flags)
        self.assertAlmostEqual(device.update_period, 0.1, delta=0.05)
        self.assertRegex(str(device), r" ± .* m?J \(counter, ")

    def test_it_prints_energy_with_its_uncertainty(self):
        with self.monitor.window("epoch") as epoch:
            self.spend(5)
        self.assertRegex(str(epoch), r"^\d+(\.\d+)? ± \d+(\.\d+)? m?J over \d+\.\d+ s \(gpu:0, ")

    def test_it_converts_to_dict_json_pandas_and_pickle(self):
        self.monitor.begin_window("converted")
        measurement = self.monitor.end_window("converted")
        as_dict = measurement.to_dict()
        self.assertEqual(as_dict, json.loads(measurement.to_json()))
        self.assertEqual(as_dict["window"], "converted")
        self.assertEqual(len(as_dict["devices"]), 4)
        self.assertEqual(pickle.loads(pickle.dumps(measurement)), measurement)
        self.assertAlmostEqual(measurement.start_time, time.time(), delta=60)

    def test_windows_nest_and_overlap(self):
        self.monitor.begin_window("outer")
        self.monitor.begin_window("first")
        self.spend(8)
        self.monitor.begin_window("second")
        first = self.monitor.end_window("first")
        self.spend(8)
        second = self.monitor.end_window("second")
        outer = self.monitor.end_window("outer").refined()
        parts = first.refined().gpu_energy[0] + second.refined().gpu_energy[0]
        # The GPU is idle all the time: energies are to each other as times are.
        times = (first.time + second.time) / outer.time
        self.assertAlmostEqual(parts / outer.gpu_energy[0], times, delta=0.05)

    def test_an_exception_ends_the_window_and_passes(self):
        with self.assertRaisesRegex(ArithmeticError, "diverged"):
            with self.monitor.window("epoch") as epoch:
                raise ArithmeticError("diverged")
        self.assertGreater(epoch.measurement.time, 0)
        self.monitor.begin_window("epoch")  # Nothing was left open.
        self.monitor.end_window("epoch")

    def test_a_window_in_a_block_behaves_as_its_measurement(self):
        with self.monitor.window("epoch") as epoch:
            with self.assertRaisesRegex(AttributeError, "'epoch' has not ended"):
                epoch.total_energy
        self.assertEqual(epoch.total_energy, epoch.measurement.total_energy)
        self.assertEqual(epoch.window, "epoch")

    def test_a_decorated_function_is_measured_at_every_call(self):
        window = self.monitor.window("factorial")

        @window
        def factorial(number):
            """The factorial of a number."""
            return 1 if number < 2 else number * factorial(number - 1)

        self.assertEqual(factorial(5), 120)  # Calls within calls.
        self.assertEqual(factorial.__doc__, "The factorial of a number.")
        self.assertEqual(window.measurement.window, "factorial")
        self.assertIs(factorial.window, window)

    def test_coroutines_that_overlap_have_windows_of_their_own(self):
        window = self.monitor.window("request")

        @window
        async def serve(seconds):
            await asyncio.sleep(seconds)

        async def serve_two():
            await asyncio.gather(serve(0.05), serve(0.01))

        asyncio.run(serve_two())
        self.assertGreater(window.measurement.time, 0.05)  # The longer one ended last.

    def test_tasks_that_share_a_window_object_each_have_their_own(self):
        window = self.monitor.window("task")
        measured = []

        async def serve(begin, begun, end, ended):
            await begin.wait()
            before = time.perf_counter()
            with window as entered:
                inside = time.perf_counter()
                begun.set()
                await end.wait()
                inside = time.perf_counter() - inside
            measured.append((inside, entered.measurement.time, time.perf_counter() - before))
            ended.set()

        async def serve_two():
            """The first begins, then the second; the first ends, then the second."""
            now, first, both, one = (asyncio.Event() for _ in range(4))
            now.set()
            await asyncio.gather(serve(now, first, both, one), serve(first, both, one, both))

        asyncio.run(serve_two())
        self.assertEqual(len(measured), 2)
        for inside, seconds, outside in measured:  # Neither is taken for the other.
            self.assertTrue(inside < seconds < outside, measured)

    def test_a_generator_is_measured_from_its_first_value_to_its_end(self):
        window = self.monitor.window("batches")

        @window
        def batches():
            for batch in range(3):
                time.sleep(0.02)
                yield batch

        self.assertEqual(list(batches()), [0, 1, 2])
        self.assertGreater(window.measurement.time, 0.06)

    def test_the_refined_result_can_be_asked_for_again(self):
        self.monitor.begin_window("again")
        measurement = self.monitor.end_window("again")
        first = measurement.refined()
        self.assertTrue(first.is_refined)
        self.assertEqual(measurement.refined(), first)
        self.assertEqual(copy.copy(measurement).refined(), first)

    def test_threads_use_one_window_object_at_once(self):
        window = self.monitor.window("shared")
        barrier = threading.Barrier(4)

        def work():
            with window:
                barrier.wait()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with self.monitor.window("shared") as again:
            pass
        self.assertEqual(again.measurement.window, "shared")  # All four were ended.

    def test_a_window_that_is_open_is_refused_or_restarted(self):
        self.monitor.begin_window("epoch")
        with self.assertRaisesRegex(ValueError, 'window "epoch" is open already'):
            self.monitor.begin_window("epoch")
        time.sleep(0.01)
        restarted = time.perf_counter()
        self.monitor.begin_window("epoch", restart=True)
        measured = self.monitor.end_window("epoch").time
        self.assertLess(measured, time.perf_counter() - restarted)

    def test_in_a_notebook_a_cell_may_be_run_again(self):
        sys.modules["ipykernel"] = types.ModuleType("ipykernel")
        self.addCleanup(sys.modules.pop, "ipykernel")
        with ZeusMonitor() as monitor:
            monitor.begin_window("cell")
            monitor.begin_window("cell")
            monitor.end_window("cell")
            with self.assertRaises(KeyError):
                monitor.end_window("cell")

    def test_a_cancelled_window_has_no_energy_and_says_so(self):
        self.monitor.begin_window("epoch")
        cancelled = self.monitor.end_window("epoch", cancel=True)
        self.assertTrue(math.isnan(cancelled.gpu_energy[0]))
        self.assertTrue(math.isnan(cancelled.total_energy))
        self.assertEqual(cancelled.devices["gpu:0"].reason, "the window was cancelled")
        with self.assertRaises(KeyError):
            self.monitor.end_window("epoch")

    def test_peeking_leaves_the_window_open(self):
        self.monitor.begin_window("epoch")
        peeked = self.monitor.peek_window("epoch")
        self.assertGreaterEqual(self.monitor.end_window("epoch").time, peeked.time)

    def test_all_windows_can_be_forgotten(self):
        self.monitor.begin_window("a")
        self.monitor.begin_window("b")
        self.monitor.reset_windows()
        for name in "ab":
            with self.assertRaisesRegex(KeyError, f'no window "{name}" is open'):
                self.monitor.end_window(name)

    def test_windows_are_logged_as_the_reference_does(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "windows.csv")
            with ZeusMonitor(gpu_indices=[1, 3], log_file=path) as monitor:
                monitor.begin_window("a, \"quoted\" name")
                measurement = monitor.end_window("a, \"quoted\" name")
                monitor.begin_window("cancelled")
                monitor.end_window("cancelled", cancel=True)
            with open(path, newline="") as log:
                rows = list(csv.DictReader(log))
        self.assertEqual(len(rows), 1)
        self.assertEqual(
            list(rows[0]),
            ["start_time", "window_name", "elapsed_time", "gpu1_energy", "gpu3_energy"],
        )
        self.assertEqual(rows[0]["window_name"], 'a, "quoted" name')
        self.assertAlmostEqual(float(rows[0]["gpu3_energy"]), measurement.gpu_energy[3])

    def log_after(self, path, window, **options):
        with ZeusMonitor(gpu_indices=[2], log_file=path, **options) as monitor:
            monitor.begin_window(window)
            monitor.end_window(window)
        with open(path, newline="") as log:
            return list(csv.DictReader(log))

    def test_a_log_begins_anew_unless_it_is_to_go_on(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "runs/1/windows.csv")  # Folders are made.
            self.log_after(path, "first")
            rows = self.log_after(path, "second", log_columns="extended")
            self.assertEqual([row["window_name"] for row in rows], ["second"])
            self.assertGreater(float(rows[0]["gpu2_sigma"]), 0)
            rows = self.log_after(path, "third", log_columns="extended", log_append=True)
            self.assertEqual([row["window_name"] for row in rows], ["second", "third"])
            other = os.path.join(folder, "data.csv")
            with open(other, "w") as file:
                file.write("x,y\n1,2\n")
            with self.assertRaisesRegex(ValueError, "data.csv"):
                self.log_after(other, "lost")
            with open(other) as file:
                self.assertEqual(file.read(), "x,y\n1,2\n")


class LostGpuTest(NodeTestCase):
    GPUS = "2xA100"

    def test_a_window_begun_after_the_loss_has_no_number(self):
        with ZeusMonitor() as monitor:
            self.node.fault(1, "lost")

            def noticed():
                with monitor.window("probe") as probe:
                    pass
                return math.isnan(probe.gpu_energy[1])

            wait_until(noticed, "the recorder does not notice the loss")
            monitor.begin_window("after")
            self.spend(15)
            measurement = monitor.end_window("after")
        self.assertTrue(math.isnan(measurement.gpu_energy[1]))
        self.assertTrue(math.isnan(measurement.total_energy))
        self.assertRegex(measurement.devices["gpu:1"].reason, "fell off the bus")
        self.assertGreater(measurement.gpu_energy[0], 10)


class MadeByHandTest(unittest.TestCase):
    def test_bare_numbers_have_no_uncertainty(self):
        measurement = Measurement(
            2.0, {0: 100.0, 1: 50.0}, cpu_energy={0: 7.0}, soc_energy={"VDD_IN": 1.0}
        )
        self.assertEqual(measurement.gpu_energy, {0: 100.0, 1: 50.0})
        self.assertEqual(measurement.cpu_energy, {0: 7.0})
        self.assertIsNone(measurement.dram_energy)
        self.assertEqual(measurement.soc_energy, {"VDD_IN": 1.0})
        self.assertEqual(measurement.total_energy, 158.0)
        self.assertTrue(math.isnan(measurement.devices["gpu:0"].sigma))
        self.assertEqual(str(measurement.devices["gpu:0"]), "100 J")
        self.assertTrue(measurement.is_refined)
        self.assertEqual(measurement.refined().to_dict(), measurement.to_dict())
        self.assertEqual(pickle.loads(pickle.dumps(measurement)).to_dict(), measurement.to_dict())


class NoDeviceTest(unittest.TestCase):
    def test_without_any_device_the_reasons_are_told(self):
        program = "from zeus.monitor import ZeusMonitor; ZeusMonitor()"
        environment = dict(os.environ, ZEUS_NVML_LIBRARY="/no/such/library.so")
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True
        )
        if done.returncode == 0:  # The CPUs of this machine can be measured.
            self.assertIn("no GPU is measured", done.stderr)
        else:
            self.assertRegex(done.stderr, r"NotFoundError: no device here can be measured .*NVIDIA")


class ImportTest(unittest.TestCase):
    def test_nothing_heavy_is_imported(self):
        program = (
            "import sys, zeus, zeus.monitor; "
            "print([name for name in ('torch', 'numpy', 'pandas', 'json', 'asyncio', 'inspect', "
            "'dataclasses', 'http', 'subprocess', 'typing') if name in sys.modules])"
        )
        # -S: other packages' .pth files may import anything.
        done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True)
        self.assertEqual(done.stdout, "[]\n", done.stderr)

    def test_databases_of_servers_bring_no_library(self):
        program = "import zeus.monitor; print('libpq.so' in open('/proc/self/maps').read())"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual(done.stdout, "False\n", done.stderr)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ResourceWarning)
    unittest.main()
