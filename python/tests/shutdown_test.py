"""Interpreters that end, or are interrupted, in the middle of something."""

import os
import unittest

from node_testing import NodeTestCase
from process_testing import Program, run_python, without_sanitizer


class ShutdownTest(NodeTestCase):
    TIME_SCALE = 10

    def test_with_open_windows(self):
        out = run_python("""
            from zeus.monitor import ZeusMonitor
            monitor = ZeusMonitor()
            monitor.begin_window("epoch")
            window = monitor.window("never ended")
            window.__enter__()
            print("done")
        """)
        self.assertEqual(out, "done\n")

    def test_with_a_monitor_that_somebody_still_uses_after_it(self):
        # An object that is closed before the interpreter ends refuses, it does not crash.
        out = run_python("""
            import atexit
            def late():
                try:
                    monitor.begin_window("late")
                    print("measured")
                except RuntimeError as error:
                    print(error)
            atexit.register(late)
            from zeus.monitor import ZeusMonitor
            monitor = ZeusMonitor()
            class Late:
                def __del__(self):
                    try:
                        monitor.end_window("x")
                    except Exception as error:
                        print(type(error).__name__)
            keep = Late()
            keep.itself = keep
        """)
        self.assertTrue(out.startswith("this monitor is closed: make another one\n"), out)

    def test_with_daemon_threads_inside_windows(self):
        for _ in range(5):
            out = run_python("""
                import threading, time
                from zeus.monitor import ZeusMonitor
                monitor = ZeusMonitor()
                def work(number):
                    try:
                        while True:
                            monitor.begin_window(str(number))
                            monitor.end_window(str(number))
                    except RuntimeError:
                        pass  # It was closed.
                for number in range(4):
                    threading.Thread(target=work, args=(number,), daemon=True).start()
                time.sleep(0.05)
                print("done")
            """)
            self.assertEqual(out, "done\n")

    @without_sanitizer  # Which takes the end of such a thread for a null pointer of pybind11.
    def test_with_daemon_threads_that_wait(self):
        out = run_python("""
            import threading, time
            import zeus.sim
            from zeus.monitor import ZeusMonitor
            node = zeus.sim.attach()
            monitor = ZeusMonitor()
            work = node.run(operations=1e18, bytes=1e10)
            def quietly(body):
                try:
                    body()
                except RuntimeError:
                    pass
            threading.Thread(target=quietly, args=(work.step,), daemon=True).start()
            def refine():
                while True:
                    monitor.begin_window("x")
                    monitor.end_window("x").refined()
            threading.Thread(target=quietly, args=(refine,), daemon=True).start()
            time.sleep(0.1)
            print("done")
        """)
        self.assertEqual(out, "done\n")

    def test_an_exception_ends_the_window_and_the_program(self):
        with self.assertRaisesRegex(AssertionError, "exit code 1: (?s:.)*ValueError: mine"):
            run_python("""
                from zeus.monitor import ZeusMonitor
                monitor = ZeusMonitor()
                with monitor.window("epoch"):
                    raise ValueError("mine")
            """)

    def test_an_exception_that_is_caught_leaves_no_window_open(self):
        out = run_python("""
            from zeus.monitor import ZeusMonitor
            monitor = ZeusMonitor()
            for _ in range(3):
                try:
                    with monitor.window("epoch") as epoch:
                        raise ValueError("mine")
                except ValueError:
                    print(epoch.measurement.window)
        """)
        self.assertEqual(out, "epoch\nepoch\nepoch\n")

    def test_many_monitors_one_after_the_other(self):
        out = run_python("""
            import os, time
            from zeus.monitor import ZeusMonitor
            def count():
                return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
            def settled():
                # A thread that was joined may be listed for a moment more.
                least, until = count(), time.monotonic() + 0.2
                while time.monotonic() < until:
                    least = min(least, count())
                return least
            for number in range(60):
                monitor = ZeusMonitor(gpu_indices=[number % 4])
                monitor.begin_window("x")
                if number % 3 == 0:
                    monitor.close()
                if number == 20:
                    before = settled()
            after, until = settled(), time.monotonic() + 60
            while after != before and time.monotonic() < until:
                after = settled()
            print(after[0] - before[0], after[1] - before[1])
        """)
        self.assertEqual(out, "0 0\n")


class InterruptTest(NodeTestCase):
    TIME_SCALE = 10

    def check_interrupted(self, program: Program) -> None:
        program.interrupt()
        code, out, errors = program.finish()
        self.assertEqual(out, "interrupted\n", errors)
        self.assertEqual((code, errors), (0, ""))

    def test_a_step(self):
        self.check_interrupted(Program("""
            import zeus.sim
            node = zeus.sim.attach()
            work = node.run(operations=1e19, bytes=1e10)
            try:
                print("ready", flush=True)
                work.step()
            except KeyboardInterrupt:
                assert max(gpu.power for gpu in node.truth()) < 100
                print("interrupted")
        """))

    def test_waiting_for_a_result(self):
        # A frozen sensor never shows what happened at the window's end.
        for gpu in range(4):
            self.node.fault(gpu, "frozen")
            self.node.fault(gpu, "na-power")
            self.addCleanup(self.node.fault, gpu, "clear")
        self.check_interrupted(Program("""
            import time
            from zeus.monitor import ZeusMonitor
            monitor = ZeusMonitor()
            try:
                print("ready", flush=True)
                while True:
                    monitor.begin_window("x")
                    monitor.end_window("x").refined(timeout=1000)
            except KeyboardInterrupt:
                print("interrupted")
        """))

    def test_a_block(self):
        self.check_interrupted(Program("""
            import time
            from zeus.monitor import ZeusMonitor
            monitor = ZeusMonitor()
            try:
                with monitor.window("epoch") as epoch:
                    print("ready", flush=True)
                    time.sleep(1000)
            except KeyboardInterrupt:
                assert epoch.measurement.time > 0
                print("interrupted")
        """))

    def test_a_program_with_a_node_of_its_own_leaves_nothing_behind(self):
        program = Program("""
            import os
            del os.environ["ZEUS_SIM_NODE"]
            import zeus.sim
            from zeus.monitor import ZeusMonitor
            node = zeus.sim.Node("2xA100")
            monitor = ZeusMonitor()
            print("ready", flush=True)
            print(os.environ["ZEUS_SIM_DIR"], flush=True)
            node.run(operations=1e19, bytes=1e10).step()
        """)
        place = program.process.stdout.readline().strip()
        self.assertTrue(os.path.exists(place))
        program.interrupt()
        _, _, errors = program.finish()
        self.assertIn("KeyboardInterrupt", errors)
        self.assertFalse(os.path.exists(os.path.dirname(place)))


if __name__ == "__main__":
    unittest.main()
