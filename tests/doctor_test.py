"""`zeus doctor` on simulated nodes: what they say about sound and broken GPUs."""

import json
import mmap
import os
import subprocess
import tempfile
import unittest

from sim_testing import ZEUS, SimTestCase


class DoctorTest(SimTestCase):
    def setUp(self):
        super().setUp()
        for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZEUS_NVML_LIBRARY"):
            self.environment.pop(name, None)

    def zeus(self, *arguments, **variables):
        return subprocess.run([ZEUS, *arguments], env=self.environment | variables,
                              capture_output=True, text=True, timeout=60)

    def start(self, gpus):
        self.sim("start", "--gpus", gpus)
        self.addCleanup(self.run_sim, "stop")
        self.environment = self.evaluated_environment()

    def doctor(self, seconds=0.35, code=0, **variables):
        """Returns the answer of `zeus doctor --json` after a short look."""
        done = self.zeus("doctor", "--json", "--seconds", str(seconds), **variables)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def absence(self, report, what):
        found = [absent for absent in report["absent"] if what in absent["what"]]
        self.assertTrue(found, report["absent"])
        return found[0]

    def test_sound_gpus_are_described(self):
        self.start("A100,V100")
        gpus = self.doctor()["gpus"]
        self.assertEqual([gpu["name"] for gpu in gpus],
                         ["NVIDIA A100-SXM4-40GB", "Tesla V100-PCIE-32GB"])
        truth = json.loads(self.sim("truth", "--json"))
        self.assertEqual([gpu["uuid"] for gpu in gpus], [gpu["uuid"] for gpu in truth])
        self.assertRegex(gpus[0]["pci"], r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
        for gpu, period in zip(gpus, (0.1, 0.02)):
            self.assertEqual(gpu["energy"]["source"], "counter")
            # A busy machine polls late, and then the stated error is larger.
            slack = 2 * gpu["energy"]["update_period_error_seconds"] + 0.002
            self.assertAlmostEqual(gpu["energy"]["update_period_seconds"], period, delta=slack)
        self.assertEqual([gpus[0]["power_limit"][key] for key in ("min", "max", "current")],
                         [100, 400, 400])

    def test_a_shared_file_of_another_version_is_named_while_it_is_used_and_replaced_afterwards(self):
        self.start("V100")
        with tempfile.TemporaryDirectory(prefix="zeus-activity-") as folder:
            path = os.path.join(folder, f"zeus-activity-{os.geteuid()}")
            with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
                file.write(b"another version" * 1000)
                file.flush()
                with mmap.mmap(file.fileno(), 0):
                    entry = self.absence(self.doctor(ZEUS_ACTIVITY_DIR=folder), "energy shared")
            self.assertIn(f"process {os.getpid()} uses it", entry["reason"])
            self.assertIn(f"rm {path}", entry["fix"])
            report = self.doctor(ZEUS_ACTIVITY_DIR=folder)
            self.assertEqual([e for e in report["absent"] if "energy shared" in e["what"]], [])
            with open(path, "rb") as file:
                self.assertEqual(file.read(8), b"ZEUSACT1")

    def test_without_any_device_the_exit_code_is_one_and_everything_absent_has_a_reason(self):
        done = self.zeus("doctor", "--json", "--seconds", "0",
                         ZEUS_NVML_LIBRARY="/nonexistent/libnvidia-ml.so.1")
        report = json.loads(done.stdout)
        if report["gpus"] or report["cpus"] or report["rails"]:
            self.skipTest("this machine has sensors of its own")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nonexistent/libnvidia-ml.so.1", self.absence(report, "NVIDIA")["reason"])
        for absent in report["absent"]:
            self.assertTrue(absent["reason"], absent)

    def test_a_file_that_is_no_library_is_named(self):
        library = os.path.join(self.directory.name, "notes.txt")
        with open(library, "w", encoding="utf-8") as file:
            file.write("not a library\n")
        report = json.loads(
            self.zeus("doctor", "--json", "--seconds", "0", ZEUS_NVML_LIBRARY=library).stdout)
        self.assertIn("notes.txt", self.absence(report, "NVIDIA")["reason"])

    def test_a_wrong_selection_is_quoted(self):
        self.start("2xV100")
        done = self.zeus("doctor", CUDA_VISIBLE_DEVICES="0,seven")
        self.assertEqual(done.returncode, 2)
        self.assertIn("seven", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_selection_is_obeyed(self):
        self.start("2xV100")
        second = json.loads(self.sim("truth", "--json"))[1]["uuid"]
        for value in ("1", second, second[:12]):
            (gpu,) = self.doctor(CUDA_VISIBLE_DEVICES=value)["gpus"]
            self.assertEqual(gpu["uuid"], second)

    def test_faults_show(self):
        self.start("3xV100")
        for gpu, kind in enumerate(("no-permission", "oob-cap:180W", "frozen")):
            self.sim("fault", "--gpu", str(gpu), "--kind", kind)
        refused, capped, frozen = self.doctor(seconds=1)["gpus"]
        self.assertFalse(refused["power_limit"]["settable"])
        self.assertIn("CAP_SYS_ADMIN", refused["power_limit"]["reason"])
        self.assertEqual(capped["power_limit"]["enforced"], 180)
        self.assertIn("BMC", capped["power_limit"]["reason"])
        self.assertEqual(frozen["energy"]["source"], "integrated")
        self.assertIn("stood still", frozen["energy"]["reason"])

    def test_a_lost_gpu_is_absent_and_the_other_stays(self):
        self.start("2xV100")
        self.sim("fault", "--gpu", "0", "--kind", "lost")
        report = self.doctor()
        self.assertEqual(len(report["gpus"]), 1)
        self.assertIn("fell off the bus", self.absence(report, "gpu:0")["reason"])

    def test_output_that_cannot_be_written_is_an_error(self):
        self.start("V100")
        for verb in (["doctor", "--seconds", "0"], ["monitor", "--duration", "0.1"],
                     ["sim", "truth", "--json"], ["sim", "list"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([ZEUS, *verb], env=self.environment, stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(done.returncode, 6, verb)
            self.assertIn("cannot write the output", done.stderr)

    def test_bytes_that_are_not_text_do_not_break_json(self):
        done = subprocess.run(
            [ZEUS, "doctor", "--json", "--seconds", "0"], capture_output=True, timeout=60,
            env=self.environment | {"ZEUS_NVML_LIBRARY": b"/tmp/\xff\xfe".decode(
                "utf-8", "surrogateescape")})
        json.loads(done.stdout)

    def test_mistakes_on_the_command_line_are_one_sentence(self):
        for arguments, word in ((["bogus"], "bogus"), (["sim", "bogus"], "bogus"),
                                (["monitor", "--interval", "nan"], "--interval"),
                                (["doctor", "--seconds", ""], "--seconds")):
            done = self.zeus(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
