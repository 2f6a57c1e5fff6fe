"""nvidia-smi of a simulated node answers scripts as the vendor's program does."""

import csv
import io
import os
import subprocess
import unittest

from sim_testing import SimTestCase, wait_until

NVIDIA_SMI = os.environ["NVIDIA_SMI"]
INVALID, NO_PERMISSION, NOT_FOUND, DRIVER_NOT_LOADED = 2, 4, 6, 9


class NvidiaSmiTest(SimTestCase):
    def setUp(self):
        super().setUp()
        self.sim("start", "--gpus", "A100,V100")
        self.shell_environment = self.evaluated_environment()

    def smi(self, *arguments, code=0):
        """Runs the program that a shell finds after eval "$(zeus sim env)"."""
        done = subprocess.run(["nvidia-smi", *arguments], env=self.shell_environment, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        return done.stdout

    def query(self, fields, *arguments):
        """The rows of a query, each as a dictionary by the column's head."""
        text = self.smi(f"--query-gpu={fields}", "--format=csv", *arguments)
        return list(csv.DictReader(io.StringIO(text), skipinitialspace=True))

    def test_the_shell_finds_it(self):
        done = subprocess.run(["sh", "-c", "command -v nvidia-smi"], env=self.shell_environment, capture_output=True,
                              text=True, check=True)
        self.assertEqual(done.stdout.strip(), NVIDIA_SMI)

    def test_it_lists_the_gpus(self):
        lines = self.smi("-L").splitlines()
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[0], r"^GPU 0: NVIDIA A100-SXM4-40GB \(UUID: GPU-[0-9a-f-]{36}\)$")

    def test_a_query_prints_heads_with_units_and_values_as_scripts_parse_them(self):
        rows = self.query("index,name,power.limit,memory.total,utilization.gpu,pstate,fan.speed,compute_mode")
        self.assertEqual([row["index"] for row in rows], ["0", "1"])
        self.assertEqual(rows[0]["power.limit [W]"], "400.00 W")
        self.assertEqual(rows[0]["memory.total [MiB]"], "40960 MiB")
        self.assertEqual(rows[0]["utilization.gpu [%]"], "0 %")
        self.assertEqual((rows[0]["pstate"], rows[0]["compute_mode"]), ("P8", "Default"))
        self.assertEqual(rows[0]["fan.speed [%]"], "[N/A]")  # The server cools this board.
        plain = self.smi("--query-gpu=power.limit,gpu_name", "--format=csv,noheader,nounits", "-i", "1")
        self.assertEqual(plain, "250.00, Tesla V100-PCIE-32GB\n")

    def test_every_field_of_the_help_can_be_queried(self):
        text = self.smi("--help-query-gpu").split("\n\n", maxsplit=1)[0]
        names = [part.strip('"') for line in text.splitlines()[1:] for part in line.split(" or ")]
        self.assertGreater(len(names), 60)
        rows = self.query(",".join(names))
        self.assertEqual([len(row) for row in rows], [len(names)] * 2)
        missing = {name for name in rows[1] if rows[1][name] == "[N/A]"}
        self.assertEqual(missing, {"fan.speed [%]", "temperature.memory", "power.draw.average [W]",
                                   "mig.mode.current", "mig.mode.pending"})

    def test_it_shows_the_power_of_a_load_and_its_process(self):
        load = self.start_load("--gpu", "0", "--watts", "300", "--seconds", "1000")

        def draw():
            return float(self.smi("--query-gpu=power.draw", "--format=csv,noheader,nounits", "-i", "0"))

        wait_until(lambda: draw() > 250, "nvidia-smi never showed the power of the load")
        line = self.smi("--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader").strip()
        pid, name, memory = line.split(", ")
        self.assertEqual(int(pid), load.pid)
        self.assertTrue(name.endswith("zeus") and memory.endswith(" MiB"), line)
        self.assertIn(str(load.pid), self.smi())  # The table for people.

    def test_the_long_report_can_be_cut_to_sections(self):
        whole = self.smi("-q")
        for expected in ("Driver Version", "Product Name", "Current Power Limit", "Max Clocks"):
            self.assertIn(expected, whole)
        power = self.smi("-q", "-d", "POWER", "-i", "0")
        self.assertRegex(power, r"Default Power Limit +: 400\.00 W")
        self.assertNotIn("Product Name", power)
        self.assertIn("NONSENSE", self.smi("-q", "-d", "NONSENSE", code=INVALID))

    def test_dmon_prints_as_many_samples_as_asked_for(self):
        lines = self.smi("dmon", "-c", "2", "-s", "pc", "-o", "T").splitlines()
        self.assertEqual(lines[0].split(), ["#", "Time", "gpu", "pwr", "gtemp", "mtemp", "mclk", "pclk"])
        samples = [line.split() for line in lines if not line.startswith("#")]
        self.assertEqual([sample[1] for sample in samples], ["0", "1", "0", "1"])
        self.assertEqual(samples[0][4], "-")  # There is no sensor of the memory's temperature.

    @unittest.skipUnless(os.geteuid() == 0, "only root may turn knobs, on a simulated node as on a real one")
    def test_it_sets_limits_clocks_and_persistence(self):
        self.assertRegex(self.smi("-i", "0", "-pl", "250"),
                         r"Power limit for GPU 0{8}:01:00\.0 was set to 250\.00 W from 400\.00 W\.\nAll done\.\n")
        self.assertEqual(self.query("power.limit")[0]["power.limit [W]"], "250.00 W")
        self.assertIn("should be between 100.00 W and 400.00 W", self.smi("-i", "0", "-pl", "9999", code=INVALID))
        self.smi("-i", "0", "--lock-gpu-clocks=900,900")
        self.assertEqual(self.query("clocks.applications.gr")[0]["clocks.applications.gr [MHz]"], "900 MHz")
        self.smi("-i", "0", "-rgc")
        self.assertEqual(self.query("clocks.applications.gr")[0]["clocks.applications.gr [MHz]"], "1410 MHz")
        self.smi("-pm", "0")
        self.assertEqual({row["persistence_mode"] for row in self.query("persistence_mode")}, {"Disabled"})

    def test_bad_input_is_refused_in_words(self):
        for arguments, code, words in [
            (["--query-gpu=index,nonsense", "--format=csv"], INVALID, 'Field "nonsense" is not a valid field'),
            (["--query-gpu=index"], INVALID, "--format=csv"),
            (["--query-gpu=index", "--format=xml"], INVALID, "xml"),
            (["--nonsense"], INVALID, "--nonsense"),
            (["-i", "7", "-L"], NOT_FOUND, '"7"'),
            (["-pl"], INVALID, "-pl"),
            (["-pl", "nan"], INVALID, "nan"),
            (["-lgc", "1,2,3"], INVALID, "1,2,3"),
            (["-l", "0"], INVALID, "--loop"),
            (["dmon", "-c", "-1"], INVALID, "--count"),
            (["dmon", "-s", "z", "-c", "1"], INVALID, "'z'"),
            (["-f", "/nonexistent/file", "-L"], INVALID, "/nonexistent/file"),
        ]:
            with self.subTest(arguments):
                self.assertIn(words, self.smi(*arguments, code=code))

    def test_without_a_node_it_says_that_there_is_no_driver(self):
        self.sim("stop")
        self.assertIn("couldn't communicate with the NVIDIA driver", self.smi("-L", code=DRIVER_NOT_LOADED))


if __name__ == "__main__":
    unittest.main()
