"""Windows and monitors refuse bad use, and say why."""

import math
import pickle
import unittest
import warnings

from node_testing import NodeTestCase
from process_testing import run_python, without_sanitizer

import zeus.errors as errors
from zeus.monitor import DeviceEnergy, Measurement, ZeusMonitor


class BadUseTest(NodeTestCase):
    GPUS = "2xV100"

    def refuses(self, exception, sentence, *arguments, **options):
        with self.assertRaisesRegex(exception, sentence) as caught:
            ZeusMonitor(*arguments, **options)
        return caught.exception

    def test_names_of_windows_are_strings(self):
        with ZeusMonitor() as monitor:
            for function in monitor.begin_window, monitor.end_window, monitor.peek_window:
                with self.assertRaisesRegex(TypeError, "name of a window is a string, not int"):
                    function(7)
            with self.assertRaisesRegex(ValueError, "no text has"):
                monitor.begin_window("\ud800")
            with self.assertRaisesRegex(TypeError, "missing 1 required positional argument: 'key'"):
                monitor.begin_window()
            with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'name'"):
                monitor.end_window("a", name=1)
            monitor.begin_window("a")
            with self.assertRaisesRegex(TypeError, "a timeout is a number of seconds, not 'x'"):
                monitor.end_window("a").refined("x")

    @without_sanitizer
    def test_whole_numbers_of_other_packages_and_generators_are_positions(self):
        numpy = __import__("numpy")
        for given in [numpy.int64(1)], numpy.array([1]), (index for index in [1]):
            with ZeusMonitor(gpu_indices=given) as monitor:
                self.assertEqual(monitor.gpu_indices, [1])

    def test_gpus_that_do_not_exist_are_named(self):
        error = self.refuses(KeyError, "there is no GPU 5: this machine shows GPUs 0 to 1", [5])
        self.assertIsInstance(error, errors.NotFoundError)
        self.assertIsInstance(error, errors.ZeusError)
        self.refuses(ValueError, "each of gpu_indices is 0 or more, not -1", [-1])
        self.refuses(TypeError, "gpu_indices is a list of whole numbers", "0")
        self.refuses(TypeError, "each of gpu_indices is a whole number, not 0.5", [0.5])
        self.refuses(TypeError, "each of gpu_indices is a whole number, not True", [True])
        self.refuses(TypeError, "gpu_indices is a list of whole numbers, not 0", 0)
        self.refuses(ValueError, "each of gpu_indices is 0 to 1000000000", [2**70])
        self.refuses(KeyError, "there is no CPU 9", None, [9])

    def test_other_options_are_checked(self):
        self.refuses(ValueError, '"tensorflow": one of "torch"', sync_execution_with="tensorflow")
        self.refuses(TypeError, "sync_execution_with is a string, not 5", sync_execution_with=5)
        self.refuses(ValueError, "has a NUL in its name", log_file="a\0b")
        self.refuses(Exception, "/proc/windows.csv", log_file="/proc/windows.csv")
        self.refuses(ValueError, "log_columns", log_file="x.csv", log_columns="all")
        self.refuses(TypeError, "log_append", log_file="x.csv", log_append=1)
        self.refuses(ValueError, "gpu_indices has 0 twice", [0, 0])

    def test_a_measurement_of_nonsense_is_refused(self):
        for time_ in -1.0, math.nan:
            with self.assertRaisesRegex(ValueError, "0 or more seconds"):
                Measurement(time_, {})
        with self.assertRaisesRegex(TypeError, "a dictionary of joules, not 5"):
            Measurement(1.0, 5)

    def test_a_wait_of_nonsense_is_refused(self):
        with ZeusMonitor() as monitor:
            monitor.begin_window("a")
            measurement = monitor.end_window("a")
            for timeout in -1.0, math.nan:
                with self.assertRaisesRegex(ValueError, "a timeout is 0 or more seconds"):
                    measurement.refined(timeout)

    def test_a_closed_monitor_refuses(self):
        monitor = ZeusMonitor()
        monitor.begin_window("a")
        with monitor.window("b") as window:
            monitor.close()
        self.assertIsNone(window.measurement)
        monitor.close()
        with self.assertRaisesRegex(errors.ConflictError, "this monitor is closed"):
            monitor.end_window("a")
        with self.assertRaisesRegex(errors.ConflictError, "this monitor is closed"):
            monitor.begin_window("a")

    def test_a_result_outlives_its_monitor_but_not_its_refinement(self):
        monitor = ZeusMonitor()
        monitor.begin_window("a")
        measurement = monitor.end_window("a")
        del monitor
        self.assertGreater(measurement.total_energy, 0)
        with self.assertRaisesRegex(KeyError, "the monitor of this window is gone"):
            measurement.refined()

    def test_a_monitor_that_was_not_initialised_refuses(self):
        class Forgetful(ZeusMonitor):
            def __init__(self):
                pass

        with self.assertRaises(TypeError):
            Forgetful()

    def test_objects_without_init_are_refused(self):
        class Forgetful(ZeusMonitor):
            def __init__(self):
                self.names = self.device_names

        for use in (Forgetful, lambda: Measurement.__new__(Measurement).time,
                    lambda: DeviceEnergy.__new__(DeviceEnergy).energy):
            with self.assertRaisesRegex(TypeError, "__init__"):
                use()

    def test_old_protocols_of_pickle_are_refused(self):
        measurement = Measurement(1.0, {0: 5.0})
        for protocol in (0, 1):
            with self.assertRaisesRegex(TypeError, "protocol 2"):
                pickle.dumps(measurement, protocol)
            with self.assertRaisesRegex(TypeError, "protocol 2"):
                pickle.dumps(measurement.devices["gpu:0"], protocol)
        self.assertEqual(pickle.loads(pickle.dumps(measurement, 2)), measurement)

    def test_a_name_that_is_refused_is_refused_in_a_block_too(self):
        with ZeusMonitor() as monitor:
            for name, kind in (("\ud800", ValueError), (7, TypeError)):
                with self.assertRaises(kind), monitor.window(name):
                    self.fail("it was begun")
            with self.assertRaisesRegex(TypeError, "around a function, not 5"):
                monitor.window("a")(5)

    def test_a_number_without_a_text_is_refused_with_a_sentence(self):
        self.refuses(ValueError, "gpu_indices is 0 to 1000000000, not an object of", [10**5000])

    def test_a_sum_with_an_unknown_part_is_unknown(self):
        with ZeusMonitor() as monitor:
            monitor.begin_window("a")
            cancelled = monitor.end_window("a", cancel=True)
        self.assertNotEqual(cancelled.total_sigma, cancelled.total_sigma)
        self.assertIsNone(cancelled.to_dict()["total"]["energy_sigma_joules"])

    @without_sanitizer  # Which takes the end of such a thread for a null pointer of pybind11.
    def test_daemon_threads_do_not_bring_the_end_of_the_program_down(self):
        run_python("""
            import threading, time
            from zeus.device import get_gpus
            from zeus.monitor import Measurement, ZeusMonitor
            monitor, gpus, made = ZeusMonitor(), get_gpus(), Measurement(1.0, {0: 1.0})
            def forever(action):
                while True:
                    try:
                        action()
                    except Exception:
                        pass
            for action in (made.to_dict, lambda: monitor.end_window("never begun"),
                           lambda: gpus.set_power_management_limit(0, 210_000)):
                threading.Thread(target=forever, args=(action,), daemon=True).start()
            time.sleep(0.1)
        """)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ResourceWarning)
    unittest.main()
