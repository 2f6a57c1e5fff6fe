"""<zeus.h> as programs in other languages meet it: on a simulated node, through libzeus.so."""

import json
import mmap
import os
import pathlib
import re
import subprocess
import sys
import unittest

from sim_testing import SimTestCase

LIBRARY = os.environ["ZEUS_LIBRARY"]
PROGRAM = os.environ["C_API_PROGRAM"]
HERE = pathlib.Path(__file__).parent
HEADER = HERE.parent / "zeus/c/zeus.h"
WATTS = 220


class Measuring:
    """A Python program whose window is open until end()."""

    def __init__(self, test, environment):
        self.process = subprocess.Popen(
            [sys.executable, "-B", HERE / "c_api_client.py"], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        test.addCleanup(self.process.communicate)
        test.addCleanup(self.process.kill)
        self.test = test
        test.assertEqual(self.process.stdout.readline(), "begun\n")

    def end(self):
        """Seconds, joules, and the joules that are its part."""
        output, self.errors = self.process.communicate("\n", timeout=60)
        self.test.assertEqual(self.process.returncode, 0, self.errors)
        window, *numbers = output.split()
        self.test.assertEqual(window, "python")
        return [float(number) for number in numbers]


class CApiTest(SimTestCase):
    def start_node(self, gpus):
        """A node whose gpu:0 draws WATTS; the environment of those who see it."""
        self.sim("start", "--gpus", gpus)
        self.start_load("--gpu", "0", "--watts", str(WATTS))
        while json.loads(self.sim("truth", "--json"))[0]["power_watts"] < WATTS - 5:
            pass
        return dict(self.evaluated_environment(), ZEUS_LIBRARY=LIBRARY)

    def wait_for_energy(self, joules):
        """Until gpu:0 used that much more."""
        def used():
            return json.loads(self.sim("truth", "--json"))[0]["energy_joules"]

        end = used() + joules
        while used() < end:
            pass

    @unittest.skipIf("ZEUS_THREAD_SANITIZED" in os.environ,
                     "the thread sanitizer lets no forked child start threads")
    def test_a_c_program(self):
        done = subprocess.run(
            [PROGRAM, str(WATTS)], env=self.start_node("2xA100"), capture_output=True, text=True,
            timeout=100,
        )
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("ok\n", "", 0))

    @unittest.skipIf("ZEUS_SANITIZED" in os.environ, "Python lacks the sanitizer's library")
    def test_processes_split_the_energy_of_a_gpu(self):
        environment = self.start_node("1xA100")
        outer = Measuring(self, environment)
        self.wait_for_energy(WATTS * 0.5)
        inner = Measuring(self, environment)
        self.wait_for_energy(WATTS * 1.0)
        _, inner_energy, inner_part = inner.end()
        seconds, outer_energy, outer_part = outer.end()

        # CPUs, where they can be measured, come on top.
        self.assertGreater(outer_energy / seconds, 0.85 * WATTS)
        self.assertAlmostEqual(inner_part, 0.5 * inner_energy, delta=0.05 * inner_energy)
        self.assertAlmostEqual(inner_part + outer_part, outer_energy, delta=0.05 * outer_energy)

    @unittest.skipIf("ZEUS_SANITIZED" in os.environ, "Python lacks the sanitizer's library")
    def test_a_process_that_cannot_share_measures_alone(self):
        environment = self.start_node("1xA100")
        board = pathlib.Path(self.directory.name) / f"zeus-activity-{os.geteuid()}"
        board.write_text("of another version")
        board.chmod(0o600)
        with board.open("r+b") as file, mmap.mmap(file.fileno(), 0):  # A process uses it.
            measuring = Measuring(self, environment)
            self.wait_for_energy(WATTS * 0.5)
            _, energy, part = measuring.end()

        self.assertAlmostEqual(part, energy, delta=0.01 * energy)
        self.assertIn("another version of Zeus", measuring.errors)

    def test_the_library_exports_what_the_header_declares(self):
        declared = re.findall(r"^(?!#)[\w* ]+?\b(zeus_\w+)\(", HEADER.read_text(), re.MULTILINE)
        symbols = subprocess.run(
            ["nm", "--dynamic", "--defined-only", LIBRARY],
            capture_output=True, text=True, check=True,
        ).stdout
        exported = re.findall(r" T (zeus_\w+)$", symbols, re.MULTILINE)
        self.assertEqual(sorted(exported), sorted(declared))
        self.assertGreater(len(declared), 20)

    def test_a_machine_without_devices_says_so(self):
        environment = dict(self.environment, ZEUS_SIM_NODE="none")
        done = subprocess.run([PROGRAM, "0"], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("last error: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
