"""Settings that a program makes on GPUs are put back, in whatever way the program ends."""

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import unittest

from node_testing import NodeTestCase, zeus
from process_testing import WITHOUT_NODE, run_python, without_sanitizer

from zeus.device import get_gpus
from zeus.device.gpu import ZeusGPUInvalidArgError, ZeusGPUNoPermissionError

SETS = """
import os, signal, sys, time
from zeus.device import get_gpus
gpus = get_gpus()
gpus.set_power_management_limit(0, 200_000)
gpus.set_gpu_locked_clocks(0, 600, 900)
gpus.set_memory_locked_clocks(0, *2 * [gpus.get_supported_memory_clocks(0)[-1]])
"""
WAITS = SETS + "print('set', flush=True)\ntime.sleep(60)\n"


class KnobTest(NodeTestCase):
    GPUS = "2xA100"

    def setUp(self):
        self.gpus = get_gpus()
        self.children: list[subprocess.Popen] = []
        self.before = self.gpus.get_power_management_limit(0)
        self.memory_clock = self.gpus.get_memory_clock(0)
        self.assertNotEqual(self.before, 200_000)

    def tearDown(self):
        for child in self.children:
            child.kill()
            child.wait()
        zeus("sim", "fault", "--gpu", "0", "--kind", "clear")
        self.gpus.reset_power_management_limit(0)
        self.gpus.reset_locked_clocks(0)

    def start(self, program: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.children.append(process)
        return process

    def start_and_wait_until_set(self) -> subprocess.Popen:
        process = self.start(WAITS)
        self.assertEqual(process.stdout.readline(), "set\n", "it failed")
        self.assertEqual(self.gpus.get_power_management_limit(0), 200_000)
        return process

    def assert_put_back(self):
        self.assertEqual(self.gpus.get_power_management_limit(0), self.before)
        self.assertEqual(self.gpus.get_memory_clock(0), self.memory_clock)
        self.assertNotIn("locked_clock", self.gpus.get_throttle_reasons(0))
        self.assertNotIn("gpu:0", zeus("knobs", "list"))

    def test_after_the_last_line(self):
        self.assertEqual(self.start(SETS).wait(timeout=60), 0)
        self.assert_put_back()

    def test_after_an_exception(self):
        self.assertEqual(self.start(SETS + "raise ValueError").wait(timeout=60), 1)
        self.assert_put_back()

    def test_after_sys_exit(self):
        self.assertEqual(self.start(SETS + "sys.exit(7)").wait(timeout=60), 7)
        self.assert_put_back()

    def test_after_sigterm(self):
        process = self.start_and_wait_until_set()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), -signal.SIGTERM)
        self.assert_put_back()

    def test_after_ctrl_c(self):
        process = self.start_and_wait_until_set()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertIn("KeyboardInterrupt", errors)
        self.assert_put_back()

    def test_a_program_that_goes_on_after_ctrl_c_may_set_again(self):
        program = SETS + (
            "try:\n"
            "    os.kill(os.getpid(), signal.SIGINT); time.sleep(60)\n"
            "except KeyboardInterrupt:\n"
            f"    assert gpus.get_power_management_limit(0) == {self.before}\n"
            "gpus.set_power_management_limit(0, 210_000)\n"
            "assert gpus.get_power_management_limit(0) == 210_000\n"
        )
        process = self.start(program)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assert_put_back()

    def test_after_sigkill_at_the_next_start(self):
        process = self.start_and_wait_until_set()
        process.kill()
        process.wait(timeout=60)
        self.assertEqual(self.gpus.get_power_management_limit(0), 200_000)
        done = subprocess.run(
            [sys.executable, "-c", "from zeus.device import get_gpus; get_gpus()"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("which is gone: put back", done.stderr)
        self.assert_put_back()

    def test_a_forked_child_that_ends_puts_nothing_back(self):
        program = SETS + (
            "if (child := os.fork()) == 0:\n"
            "    assert get_gpus() is not gpus\n"
            "    assert get_gpus().get_power_management_limit(0) == 200_000\n"
            "    sys.exit(0)\n"
            "assert os.waitpid(child, 0)[1] == 0\n"
            "assert gpus.get_power_management_limit(0) == 200_000\n"
        )
        process = self.start(program)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assert_put_back()

    def test_after_a_worker_of_multiprocessing(self):
        program = (
            "import multiprocessing as mp\n"
            "from zeus.device import get_gpus\n"
            "def work():\n"
            "    get_gpus().set_power_management_limit(0, 200_000)\n"
            "    assert get_gpus().get_power_management_limit(0) == 200_000\n"
            "get_gpus()\n"
            "worker = mp.get_context('fork').Process(target=work)\n"
            "worker.start(); worker.join()\n"
            "assert worker.exitcode == 0\n"
            f"assert get_gpus().get_power_management_limit(0) == {self.before}\n"
        )
        process = self.start(program)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assert_put_back()

    def test_two_programs_do_not_turn_the_same_knob(self):
        self.start_and_wait_until_set()
        with self.assertRaisesRegex(RuntimeError, "held by process"):
            self.gpus.set_power_management_limit(0, 210_000)
        with self.assertRaisesRegex(RuntimeError, "held by process"):
            self.gpus.reset_power_management_limit(0)
        self.gpus.set_power_management_limit(1, 210_000)
        self.gpus.reset_power_management_limit(1)

    def test_another_discovery_in_the_program_turns_the_same_knob(self):
        self.gpus.set_power_management_limit(0, 220_000)
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        self.addCleanup(os.environ.pop, "CUDA_VISIBLE_DEVICES")
        again = get_gpus()
        self.assertIsNot(again, self.gpus)
        again.set_power_management_limit(0, 230_000)
        self.assertEqual(self.gpus.get_power_management_limit(0), 230_000)

    @without_sanitizer
    def test_a_worker_that_uses_the_gpus_of_its_parent_puts_back(self):
        gpus = self.gpus
        worker = multiprocessing.get_context("fork").Process(
            target=lambda: gpus.set_power_management_limit(0, 200_000))
        worker.start()
        worker.join()
        self.assertEqual(worker.exitcode, 0)
        self.assert_put_back()

    def test_one_node_after_the_other(self):
        self.assertEqual(run_python(WITHOUT_NODE + """
            import zeus.sim
            from zeus.device import get_gpus
            for round in range(2):
                with zeus.sim.Node("1xA100"):
                    get_gpus().set_power_management_limit(0, 200_000)
                    print(get_gpus().get_power_management_limit(0))
        """.replace("\n            ", "\n")), "200000\n200000\n")

    def test_a_reset_is_the_default_and_stays(self):
        default = self.gpus.get_default_power_management_limit(0)
        program = SETS + "gpus.reset_power_management_limit(0, block=False)\n"
        self.assertEqual(self.start(program).wait(timeout=60), 0)
        self.assertEqual(self.gpus.get_power_management_limit(0), default)

    def test_a_limit_for_a_block_nests_and_ends_with_an_exception(self):
        gpu = self.gpus[0]
        with self.assertRaises(ZeroDivisionError), gpu.power_limit(220_000):
            self.assertEqual(gpu.get_power_management_limit(), 220_000)
            with self.gpus.power_limit(0, 210_000):
                self.assertEqual(gpu.get_power_management_limit(), 210_000)
            self.assertEqual(gpu.get_power_management_limit(), 220_000)
            _ = 1 / 0
        self.assert_put_back()

    def test_clocks_are_locked_between_two_bounds(self):
        gpu = self.gpus[0]
        gpu.set_gpu_locked_clocks(300, 600)
        self.assertLessEqual(gpu.get_graphics_clock(), 600)
        gpu.reset_gpu_locked_clocks(block=False)
        self.assert_put_back()

    def test_persistence_mode_is_put_back(self):
        mode = self.gpus.get_persistence_mode(1)
        program = SETS + f"gpus.set_persistence_mode(1, {not mode})\nprint('set')\n"
        self.assertEqual(self.start(program).wait(timeout=60), 0)
        self.assertEqual(self.gpus.get_persistence_mode(1), mode)

    def test_a_refusal_is_a_permission_error_and_changes_nothing(self):
        zeus("sim", "fault", "--gpu", "0", "--kind", "no-permission")
        with self.assertRaises(PermissionError) as caught:
            self.gpus.set_power_management_limit(0, 200_000)
        self.assertIsInstance(caught.exception, ZeusGPUNoPermissionError)
        self.assertIn("gpu:0", str(caught.exception))
        zeus("sim", "fault", "--gpu", "0", "--kind", "clear")
        self.assert_put_back()

    def test_nonsense_is_refused_with_a_sentence(self):
        gpu = self.gpus[0]
        with self.assertRaisesRegex(ZeusGPUInvalidArgError, "outside"):
            gpu.set_power_management_limit(1000)
        for wrong in (math.nan, math.inf, -1, 0):
            with self.assertRaisesRegex(ValueError, "power_limit_mw is (a finite number|greater than 0)"):
                gpu.set_power_management_limit(wrong)
        for wrong in ("200", None, True, [200_000]):
            with self.assertRaisesRegex(TypeError, "power_limit_mw is a number"):
                gpu.set_power_management_limit(wrong)
        self.assertRaisesRegex(ValueError, "is empty", gpu.set_gpu_locked_clocks, 900, 600)
        self.assertRaisesRegex(ValueError, "no supported clock", gpu.set_gpu_locked_clocks, 1, 2)
        self.assertRaises(TypeError, gpu.set_persistence_mode, "on")
        self.assert_put_back()


if __name__ == "__main__":
    unittest.main()
