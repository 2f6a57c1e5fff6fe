"""python -m zeus.show_env and python -m zeus.monitor."""

import math
import os
import re
import signal
import subprocess
import sys
import unittest

from node_testing import NodeTestCase

from zeus.monitor.__main__ import _total


# Where Python takes ASCII for all that a terminal knows.
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def run_into(arguments: str, redirection: str) -> subprocess.CompletedProcess:
    """Runs Python by a shell, with its output going elsewhere."""
    command = f"set -o pipefail; {sys.executable} -m {arguments} {redirection}"
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
    )


class ShowEnvTest(NodeTestCase):
    GPUS = "1xA100,1xV100"

    def test_it_lists_packages_and_devices(self):
        done = run("zeus.show_env", CUDA_VISIBLE_DEVICES="1,0", ZEUSD_TOKEN="secret")
        self.assertNotIn("secret", done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Packages\n  zeus ", done.stdout)
        self.assertIn("CUDA_VISIBLE_DEVICES=1,0", done.stdout)
        self.assertRegex(done.stdout, r"0: .*V100.*GPU-")
        self.assertRegex(done.stdout, r"1: .*A100.*GPU-")
        self.assertIn("energy counter: yes", done.stdout)
        self.assertRegex(done.stdout, r"power limit: \d+ W of \d+ W to \d+ W")
        self.assertIn("CPU energy", done.stdout)

    def test_a_daemon_that_does_not_answer_is_said(self):
        done = run("zeus.show_env", ZEUSD_SOCK_PATH="/nonexistent/zeusd.sock")
        self.assertEqual(done.returncode, 1, done.stdout)  # The daemon that was named has the devices.
        self.assertRegex(done.stdout, r"zeusd\n  .*/nonexistent/zeusd.sock")

    def test_any_variable_can_be_shown_anywhere(self):
        done = run("zeus.show_env", ZEUS_WHERE="h\u00e4\udcff", **ASCII)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ZEUS_WHERE=h\\", done.stdout)
        self.assertEqual(run("zeus.show_env", ZEUS_WHERE="h\udcff").returncode, 0)

    def test_without_a_gpu_it_says_why(self):
        done = run("zeus.show_env", ZEUS_NVML_LIBRARY="/nonexistent/libnvidia-ml.so.1")
        self.assertIn("no GPU can be used here", done.stdout)
        self.assertIn("nonexistent", done.stdout)
        self.assertNotIn("Traceback", done.stderr)

    def test_torch_is_not_imported(self):
        program = "import sys, zeus.show_env as s; s.show_env(); print('torch' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        self.assertEqual(done.stdout, "False\n", done.stderr)


class MonitorCommandTest(NodeTestCase):
    GPUS = "2xA100"

    def test_energy_for_some_seconds(self):
        done = run("zeus.monitor", "energy", "--gpu-indices", "0", "--seconds", "0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        joules = float(re.search(r"gpu:0: ([\d.]+) ± [\d.]+ J", done.stdout)[1])
        self.assertTrue(10 < joules < 100, done.stdout)
        self.assertNotIn("gpu:1", done.stdout)

    def test_energy_until_ctrl_c(self):
        process = subprocess.Popen(
            [sys.executable, "-m", "zeus.monitor", "energy"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.assertIn("Ctrl-C", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("gpu:1", output)
        self.assertNotIn("Traceback", errors)

    def test_power_again_and_again(self):
        done = run("zeus.monitor", "power", "--update-period", "0.2", "--seconds", "0.7")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertGreaterEqual(len(lines), 3)
        self.assertRegex(lines[0], r"gpu:0 [\d.]+ W  gpu:1 [\d.]+ W")
        self.assertGreater(float(re.search(r"Total energy: ([\d.]+) J", lines[-1])[1]), 10)

    def test_a_terminal_without_the_sign_gets_the_result(self):
        done = run("zeus.monitor", "energy", "--seconds", "0.1", **ASCII)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"gpu:0: [\d.]+ \\xb1 [\d.]+ J")

    def test_output_that_nobody_takes_is_no_traceback(self):
        power = "zeus.monitor power --update-period 0.1 --seconds 5"
        for command in ("zeus.show_env", "zeus.monitor energy --seconds 0.1", power):
            with self.subTest(command):
                full = run_into(command, "> /dev/full")
                self.assertEqual(full.returncode, 1)
                self.assertRegex(full.stderr, r"\Aerror: the output cannot be written: [^\n]+\n\Z")
        broken = run_into(power, "| head -1")
        self.assertEqual((broken.returncode, broken.stderr), (1, ""))
        self.assertEqual(run_into("zeus.show_env", ">&-").stderr, "")

    def test_a_gpu_without_an_answer_is_said_in_the_total(self):
        self.assertEqual(_total({0: 5.0, 1: 2.0}, set()),
                         "Total energy: 7.0 J (gpu:0 5.0 J, gpu:1 2.0 J)")
        self.assertEqual(_total({0: 5.0, 1: 2.0, 2: math.nan}, {1}),
                         "Total energy: 7.0 J (gpu:0 5.0 J, gpu:1 2.0 J, gpu:2 unknown), "
                         "incomplete: gpu:1, gpu:2 did not always answer")

    def test_wrong_command_lines_and_gpus(self):
        self.assertEqual(run("zeus.monitor").returncode, 2)
        self.assertEqual(run("zeus.monitor", "power", "--update-period", "nan").returncode, 2)
        done = run("zeus.monitor", "power", "--gpu-indices", "9")
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: there is no GPU 9", done.stderr)


if __name__ == "__main__":
    unittest.main()
