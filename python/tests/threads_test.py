"""Windows of several threads."""

import contextlib
import threading
import time
import unittest

from node_testing import NodeTestCase, wait_until

from zeus.monitor import ZeusMonitor


def in_threads(count, body):
    """Runs body(0), body(1), ... at once; raises what one of them raised."""
    failures = []

    def guarded(number):
        try:
            body(number)
        except BaseException as error:  # Shown by the test, whatever it is.
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class ThreadsTest(NodeTestCase):
    TIME_SCALE = 10

    def test_consecutive_windows_of_eight_threads_add_up_to_the_whole(self):
        monitor = ZeusMonitor()
        parts = [[] for _ in range(8)]
        whole = [None] * 8

        def measure(number):
            monitor.begin_window(f"whole {number}")
            for step in range(20):
                with monitor.window(f"thread {number}") as window:
                    time.sleep(0.005)
                parts[number].append(window.measurement)
            whole[number] = monitor.end_window(f"whole {number}")

        in_threads(8, measure)
        for number in range(8):
            total = whole[number].refined().total_energy
            summed = sum(part.refined().total_energy for part in parts[number])
            gap = whole[number].time - sum(part.time for part in parts[number])
            self.assertGreaterEqual(gap, 0)
            # Between the windows the GPUs are idle, as inside them.
            self.assertAlmostEqual(summed / total, 1 - gap / whole[number].time, delta=0.02)
        monitor.close()

    def test_windows_of_one_name_do_not_mix(self):
        with ZeusMonitor() as monitor:
            def measure(number):
                for _ in range(50):
                    with monitor.window("step"):
                        pass

            in_threads(8, measure)
            with self.assertRaises(KeyError):
                monitor.end_window("step")

    def test_a_decorated_function_is_called_by_many_threads(self):
        with ZeusMonitor() as monitor:
            measured = []

            @monitor.window("call")
            def call():
                time.sleep(0.001)

            def measure(number):
                for _ in range(20):
                    call()
                    measured.append(call.window.measurement.time)

            in_threads(8, measure)
            self.assertEqual(len(measured), 160)
            self.assertTrue(all(took > 0.001 for took in measured))

    def test_a_monitor_may_be_closed_under_threads_that_use_it(self):
        for _ in range(5):
            monitor = ZeusMonitor()

            def measure(number, monitor=monitor):
                try:
                    for step in range(10**6):
                        with monitor.window(f"{number}"):
                            pass
                except RuntimeError as error:
                    self.assertIn("this monitor is closed", str(error))

            closer = threading.Timer(0.05, monitor.close)
            closer.start()
            in_threads(4, measure)
            closer.join()

    def test_other_threads_run_while_one_waits_for_a_step_or_a_result(self):
        counted = 0
        with self.working(0) as (_, waiting):
            while waiting.is_alive() and counted < 50:
                counted += 1
                time.sleep(0.001)
        self.assertEqual(counted, 50)

    @contextlib.contextmanager
    def working(self, gpu):
        """A thread that waits for work of several seconds, which is stopped in the end."""
        work = self.node.run(operations=2e16, bytes=1e10, gpus=[gpu])

        def wait():
            with contextlib.suppress(RuntimeError):  # It was stopped.
                work.step()

        waiting = threading.Thread(target=wait)
        waiting.start()
        wait_until(lambda: self.node.truth()[gpu].power > 100, "the work does not begin")
        yield work, waiting
        work.close()
        waiting.join()

    def test_one_work_for_each_thread(self):
        works = [self.node.run(operations=1e13, bytes=1e10, gpus=[gpu]) for gpu in range(4)]
        in_threads(4, lambda number: works[number].step(5))
        with self.working(0) as (work, _):
            with self.assertRaisesRegex(RuntimeError, "use one for each thread"):
                work.step()


if __name__ == "__main__":
    unittest.main()
