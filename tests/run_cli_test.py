"""`zeus run` on a simulated node: what it reports, and what it refuses."""

import csv
import json
import os
import resource
import signal
import stat
import unittest

from run_testing import RunTestCase
from sim_testing import ZEUS

DEVICE_FIELDS = {"device", "energy_joules", "energy_sigma_joules", "attributed_joules",
                 "average_power_watts", "source", "coverage", "updates", "flags"}


class ResultTest(RunTestCase):
    def test_time_energy_and_power_of_every_gpu_are_told(self):
        self.start("A100,V100")
        load = self.start_load("--gpu", "1", "--watts", "200")
        before = json.loads(self.sim("truth", "--json"))
        result = self.result("--label", "a nap", "--", "sleep", "1.2")
        after = json.loads(self.sim("truth", "--json"))
        load.send_signal(signal.SIGTERM)
        load.communicate(timeout=20)
        self.assertEqual(result["schema"], "zeus.run/1")
        self.assertEqual(result["command"], ["sleep", "1.2"])
        self.assertEqual(result["label"], "a nap")
        self.assertRegex(result["started"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertEqual(result["host"], os.uname().nodename)
        self.assertGreaterEqual(result["time_seconds"], 1.2)
        gpus = result["devices"]
        self.assertEqual([gpu["device"] for gpu in gpus], ["gpu:0", "gpu:1"])
        self.assertEqual([gpu["uuid"] for gpu in gpus], [gpu["uuid"] for gpu in before])
        for gpu, first, last in zip(gpus, before, after):
            self.assertLessEqual(DEVICE_FIELDS, set(gpu))
            self.assertEqual(gpu["source"], "counter")
            # The command ran between the two looks at the truth.
            spent = last["energy_joules"] - first["energy_joules"]
            self.assertGreater(gpu["energy_joules"], 0)
            self.assertLess(gpu["energy_joules"], spent + 3 * gpu["energy_sigma_joules"])
            self.assertAlmostEqual(gpu["average_power_watts"],
                                   gpu["energy_joules"] / result["time_seconds"])
        total = result["total"]
        self.assertEqual(total["contains"], ["gpu:0", "gpu:1"])
        self.assertEqual(total["missing"], [])
        self.assertAlmostEqual(total["energy_joules"], sum(gpu["energy_joules"] for gpu in gpus))
        self.assertAlmostEqual(total["energy_sigma_joules"],
                               sum(gpu["energy_sigma_joules"] ** 2 for gpu in gpus) ** 0.5)

    def test_the_table_is_for_people_and_on_standard_error(self):
        self.start()
        done = self.zeus("--", "echo", "output")
        self.assertEqual(done.stdout, "output\n")
        for word in ("echo output", "gpu:0", "gpu:1", "total", " W", "±",
                     "one standard deviation"):
            self.assertIn(word, done.stderr)
        # A command that ends within milliseconds takes less than a joule.
        self.assertRegex(done.stderr, r"± \d+(\.\d+)? m?J")
        self.assertEqual(self.zeus("--quiet", "--", "true").stderr, "")

    def test_json_may_go_to_standard_output(self):
        self.start()
        self.assertEqual(json.loads(self.zeus("--json", "-", "--", "true").stdout)["exit_code"], 0)

    def test_chosen_gpus_alone_are_measured(self):
        self.start()
        self.assertEqual(self.result("--gpus", "1", "--", "true")["total"]["contains"], ["gpu:1"])

    def test_a_lost_gpu_is_named_with_its_reason(self):
        self.start()
        self.sim("fault", "--gpu", "0", "--kind", "lost")
        result = self.result("--", "true")
        self.assertEqual(result["total"]["contains"], ["gpu:1"])
        self.assertEqual(result["total"]["missing"], ["gpu:0"])
        (lost,) = [gpu for gpu in result["devices"] if gpu["device"] == "gpu:0"]
        self.assertIsNone(lost["energy_joules"])
        self.assertIn("bus", lost["reason"])

    def test_a_gpu_that_is_lost_midway_leaves_a_flagged_or_reasoned_result(self):
        self.start()
        script = f"sleep 0.5; {ZEUS} sim fault --gpu 1 --kind lost; sleep 1"
        result = self.result("--", "sh", "-c", script)
        sound, lost = result["devices"]
        self.assertGreater(sound["energy_joules"], 0)
        self.assertTrue("reason" in lost or "partial" in lost["flags"], lost)

    def test_a_gpu_that_does_not_answer_is_left_out_with_its_reason(self):
        self.start()
        self.sim("fault", "--gpu", "0", "--kind", "slow:60s")
        result = self.result("--driver-timeout", "1", "--", "true")
        self.assertEqual(result["total"]["contains"], ["gpu:1"])
        self.assertEqual(result["total"]["missing"], ["gpu:0"])
        (silent,) = [gpu for gpu in result["devices"] if gpu["device"] == "gpu:0"]
        self.assertEqual(silent["reason"], "the driver did not answer within 1 s")
        # Chosen or not, it does not keep the command from its work.
        chosen = self.result("--driver-timeout", "1", "--gpus", "0", "--", "true")
        self.assertEqual(chosen["total"]["missing"], ["gpu:0"])
        other = self.result("--driver-timeout", "1", "--gpus", "1", "--", "true")
        self.assertEqual(other["total"]["contains"], ["gpu:1"])
        self.assertEqual(other["total"]["missing"], [])

    def test_the_energy_of_a_gpu_in_mig_mode_is_that_of_its_board(self):
        self.start()
        self.sim("fault", "--gpu", "0", "--kind", "mig")
        result = self.result("--", "sleep", "0.3")
        self.assertEqual(result["total"]["contains"], ["gpu:0", "gpu:1"])
        self.assertEqual(result["total"]["missing"], [])
        (remark,) = result["remarks"]
        self.assertIn("gpu:0: energy of each MIG instance is not known", remark)
        self.assertIn(remark, self.zeus("--", "true").stderr)
        self.assertNotIn("remarks", self.result("--gpus", "1", "--", "true"))

    def test_each_number_is_explained(self):
        self.start("A100")
        explained = self.zeus("--explain", "--", "sleep", "0.5").stderr
        for words in ("where the numbers come from", "gpu:0, NVIDIA A100-SXM4-40GB",
                      "energy: the device's own energy counter", "which shows one every 100 ms",
                      "refined: Zeus waited", "of the sensor itself", "zeus calibrate",
                      "total: the sum of gpu:0"):
            self.assertIn(words, explained)
        self.assertNotIn("come from", self.zeus("--", "true").stderr)

    def test_without_devices_the_command_runs_and_the_reasons_are_there(self):
        self.environment["ZEUS_NVML_LIBRARY"] = "/nonexistent/libnvidia-ml.so.1"
        result = self.result("--", "sh", "-c", "exit 3", code=3)
        if result["total"]["contains"]:
            self.skipTest("this machine has sensors of its own")
        self.assertIsNone(result["total"]["energy_joules"])
        self.assertGreater(result["time_seconds"], 0)
        self.assertTrue(all(device["reason"] for device in result["devices"]))
        done = self.zeus("--", "true")
        self.assertEqual(done.returncode, 0)
        self.assertIn("zeus doctor", done.stderr)

    def test_a_senseless_selection_of_devices_does_not_stop_the_command(self):
        self.start()
        self.environment["CUDA_VISIBLE_DEVICES"] = "0,seven"
        result = self.result("--", "true")
        self.assertIn("seven", result["devices"][0]["reason"])

    def test_idle_power_is_subtracted(self):
        self.start()
        result = self.result("--subtract-idle=20,25", "--", "sleep", "0.3")
        for gpu, idle in zip(result["devices"], (20, 25)):
            self.assertEqual(gpu["idle_power_watts"], idle)
            self.assertAlmostEqual(gpu["net_energy_joules"],
                                   gpu["energy_joules"] - idle * result["time_seconds"])
        chosen = self.result("--gpus", "1", "--subtract-idle=25", "--", "true")
        self.assertEqual([gpu["idle_power_watts"] for gpu in chosen["devices"]], [25])
        measured = self.result("--subtract-idle", "--idle-seconds", "0.5", "--", "sleep", "0.5")
        for gpu in measured["devices"]:
            # Nothing runs on the GPUs: what is left is within the uncertainty.
            self.assertLess(abs(gpu["net_energy_joules"]), 4 * gpu["net_energy_sigma_joules"])
        self.assertEqual(measured["total"]["net_contains"], ["gpu:0", "gpu:1"])

    def test_repeated_runs_are_told_one_by_one_and_together(self):
        self.start()
        counter = self.path("count")
        result = self.result("--repeat", "3", "--warmup", "2", "--", "sh", "-c",
                             f"echo run >> {counter}")
        with open(counter, encoding="utf-8") as runs:
            self.assertEqual(len(runs.readlines()), 5)
        self.assertEqual(len(result["runs"]), 3)
        times = [run["time_seconds"] for run in result["runs"]]
        summary = result["summary"]["time_seconds"]
        mean = sum(times) / 3
        self.assertAlmostEqual(summary["mean"], mean)
        self.assertAlmostEqual(summary["standard_deviation"],
                               (sum((t - mean) ** 2 for t in times) / 2) ** 0.5)
        self.assertLess(summary["interval_low"], mean)
        self.assertGreater(summary["interval_high"], mean)
        for run in result["runs"]:
            self.assertLessEqual({"exit_code", "time_seconds", "devices", "total"}, set(run))

    def test_cool_gpus_are_not_waited_for(self):
        self.start()
        # Would run into the time limit of the test otherwise.
        result = self.result("--repeat", "3", "--cooldown", "auto", "--cooldown-limit", "3600",
                             "--", "true")
        self.assertEqual(len(result["runs"]), 3)

    def test_a_failing_run_ends_the_series(self):
        self.start()
        result = self.result("--repeat", "5", "--", "sh", "-c",
                             f"test -e {self.path('been')} && exit 9; touch {self.path('been')}",
                             code=9)
        self.assertEqual([run["exit_code"] for run in result["runs"]], [0, 9])

    def test_csv_has_one_header_and_a_row_per_device_and_run(self):
        self.start()
        file = self.path("results.csv")
        for _ in range(2):
            done = self.zeus("--csv", file, "--repeat", "2", "--", "printf", 'a,"b"')
            self.assertEqual(done.returncode, 0, done.stderr)
        with open(file, encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(text))
        self.assertEqual([row["device"] for row in rows], ["gpu:0", "gpu:1", "total"] * 4)
        self.assertEqual({row["command"] for row in rows}, {'printf a,"b"'})
        self.assertEqual([row["run"] for row in rows], ["1"] * 3 + ["2"] * 3 + ["1"] * 3 + ["2"] * 3)


class RefusalTest(RunTestCase):
    def refuse(self, code, word, *arguments, **options):
        """Zeus says one sentence with the word and runs nothing."""
        ran = self.path("ran")
        done = self.zeus(*arguments, "--", "touch", ran, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn(word, done.stderr)
        self.assertFalse(os.path.exists(ran))

    def test_mistakes_are_one_sentence_and_nothing_runs(self):
        self.start()
        self.refuse(3, "gpu:7", "--gpus", "0,7")
        self.refuse(2, "zero", "--gpus", "zero")
        self.refuse(2, "--bogus", "--bogus")
        self.refuse(2, "--repeat", "--repeat", "0")
        self.refuse(2, "--cooldown", "--cooldown", "soon")
        self.refuse(2, "--subtract-idle", "--subtract-idle=1,2,3")
        self.refuse(3, "/nonexistent/x.json", "--json", "/nonexistent/x.json")
        self.refuse(6, self.directory.name, "--json", self.directory.name)
        self.refuse(3, "/nonexistent/x.csv", "--csv", "/nonexistent/x.csv")

    def test_a_file_without_permission_is_refused(self):
        protected = self.path("protected.json")
        with open(protected, "w", encoding="utf-8") as text:
            text.write("old")
        os.chmod(protected, stat.S_IRUSR)
        # Root may write everywhere; nobody may not write into root's directories.
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        self.refuse(5, "protected.json", "--json", protected, **user)
        self.refuse(5, "protected.json", "--csv", protected, **user)
        with open(protected, encoding="utf-8") as text:
            self.assertEqual(text.read(), "old")

    def test_no_command_is_a_mistake(self):
        for arguments in ([], ["--quiet"], ["--"], ["--", ""]):
            done = self.zeus(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("say what to run", done.stderr)

    def test_a_full_disk_is_told_in_one_sentence(self):
        self.start("V100")
        done = self.zeus("--quiet", "--json", "/dev/full", "--", "true")
        self.assertEqual(done.returncode, 6)
        self.assertIn("/dev/full", done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))
        # The command's own failure is more important.
        self.assertEqual(self.zeus("--json", "/dev/full", "--", "sh", "-c", "exit 4").returncode, 4)

    def test_a_file_that_may_not_grow_keeps_whole_rows(self):
        self.start("V100")
        rows = self.path("rows.csv")
        self.assertEqual(self.zeus("--quiet", "--csv", rows, "--", "true").returncode, 0)
        with open(rows, encoding="utf-8") as file:
            before = file.read()
        limit = len(before) + 20
        done = self.zeus("--quiet", "--csv", rows, "--", "true", preexec_fn=lambda: (
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
        self.assertEqual(done.returncode, 6, done.stderr)
        with open(rows, encoding="utf-8") as file:
            self.assertEqual(file.read(), before)

    def test_a_pipe_that_nobody_reads_is_no_reason_to_wait(self):
        self.start("V100")
        os.mkfifo(self.path("pipe"))
        done = self.zeus("--quiet", "--json", self.path("pipe"), "--", "true")
        self.assertEqual(done.returncode, 6)
        self.assertIn("pipe", done.stderr)

    def test_values_that_were_forgotten_are_told(self):
        for arguments in (("--json", ""), ("--csv", ""), ("--gpus", ""),
                          ("--json", self.path("x"), "--csv", self.path("x"))):
            self.assertEqual(self.zeus(*arguments, "--", "true").returncode, 2, arguments)

    def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(self):
        self.start("V100")
        self.result("--", "true")
        link = self.path("link.json")
        os.symlink(self.path("result.json"), link)
        self.zeus("--json", link, "--", "true")
        self.assertTrue(os.path.islink(link))
        left = [name for name in os.listdir(self.directory.name) if "json" in name]
        self.assertEqual(sorted(left), ["link.json", "result.json"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
