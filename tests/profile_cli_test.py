"""`zeus profile` on a simulated node: what it measures, and that everything is put back."""

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import unittest
import xml.dom.minidom

from report_testing import check_page
from run_testing import RunTestCase
from sim_testing import ZEUS, wait_until

LOAD = [ZEUS, "sim", "load", "--gpu", "0", "--workload", "shufflenet", "--batch-size", "1024"]
STEPS = r"step ([\d.]+)"
QUICK = ["--slice", "500ms", "--warmup", "200ms"]
# The load prints twenty steps in a slice: some of them arrive in time on a busy machine, too.
MANY_STEPS = ["--slice", "2s", "--warmup", "200ms"]
DOUBT = 1.645  # Standard deviations: 95 %, one-sided.
STEPS_PER_EPOCH = 49  # 50 000 samples in batches of 1024.


class ProfileTestCase(RunTestCase):
    def setUp(self):
        super().setUp()
        self.start("V100")

    def profile(self, *arguments, **options):
        options.setdefault("env", self.environment)
        return subprocess.run([ZEUS, "profile", *arguments], capture_output=True, text=True,
                              timeout=280, **options)

    def start_profile(self, *arguments, **options):
        process = subprocess.Popen([ZEUS, "profile", *arguments], env=self.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.addCleanup(self.end, process)
        return process

    def limit(self, gpu=0):
        done = subprocess.run([ZEUS, "doctor", "--json"], env=self.environment, timeout=60,
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["gpus"][gpu]["power_limit"]["current"]

    def await_limit(self, watts):
        wait_until(lambda: self.limit() == watts, f"the limit of {watts} W never came")

    def load(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)


class SweepTest(ProfileTestCase):
    def test_the_table_agrees_with_the_catalogue(self):
        done = self.profile("--limits", "250,175,100", "--rounds", "2", *MANY_STEPS,
                            "--max-slowdown", "1.2", "--progress", STEPS, "--stop",
                            "--json", self.path("p.json"), "--csv", self.path("p.csv"),
                            "--svg", self.path("p.svg"), "--html", self.path("p.html"),
                            "--save", self.path("saved.json"), "--", *LOAD, "--progress")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.limit(), 250)
        result = self.load("p.json")
        self.assertEqual(result["schema"], "zeus.profile/1")
        self.assertTrue(result["complete"])
        self.assertEqual([slice["setting"] for slice in result["slices"]],
                         [250, 175, 100, 100, 175, 250])
        for row in result["settings"]:
            truth = json.loads(self.sim(
                "predict", "--gpu", "V100", "--workload", "shufflenet", "--batch-size", "1024",
                "--power-limit", str(row["setting"]), "--json"))
            step = row["per_step"]
            time_per_step = truth["time_per_epoch_seconds"] / STEPS_PER_EPOCH
            # A busy machine stamps lines late, and a cool board draws less: a twentieth beside.
            self.assertAlmostEqual(step["time_per_step_seconds"] / time_per_step, 1,
                                   delta=4 * step["time_per_step_sigma_seconds"] / time_per_step
                                   + 0.05)
            power = truth["average_power_watts"]
            self.assertAlmostEqual(
                row["power_watts"] / power, 1,
                delta=4 * (row["power_sigma_watts"] / power + result["shared_error"]) + 0.05)
            self.assertAlmostEqual(step["energy_per_step_joules"],
                                   row["power_watts"] * step["time_per_step_seconds"],
                                   delta=0.05 * step["energy_per_step_joules"])
        self.assertEqual([choice["objective"] for choice in result["choices"]],
                         ["cost (eta 0.5)", "energy", "time", "at most 1.2 times as long"])
        self.check_least_energy(result)
        self.check_files(result)
        for words in ("250 W", "100 W", "best for", "±", "energy per step", "time per step"):
            self.assertIn(words, done.stderr)
        self.assertRegex(done.stdout, r"^step [\d.]+\n")

    def check_least_energy(self, result):
        """The fastest of those that cannot be told from the best: 100 W where all is certain."""
        steps = {row["setting"]: row["per_step"] for row in result["settings"]}
        energies = {setting: (step["energy_per_step_joules"], step["energy_per_step_sigma_joules"])
                    for setting, step in steps.items()}
        best, sigma = min(energies.values())
        as_good = [setting for setting, (joules, own) in energies.items()
                   if joules - best <= DOUBT * math.hypot(own, sigma)]
        chosen = result["choices"][1]["setting"]
        self.assertEqual(chosen, min(as_good, key=lambda s: steps[s]["time_per_step_seconds"]))
        if all(own < 0.02 * joules for joules, own in energies.values()):
            self.assertEqual(chosen, 100)

    def check_files(self, result):
        with open(self.path("p.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([float(row["setting"]) for row in rows], [250, 175, 100])
        svg = xml.dom.minidom.parse(self.path("p.svg"))
        lines = [path for path in svg.getElementsByTagName("path")
                 if path.getAttribute("class") == "stroke"]
        self.assertGreaterEqual(len(lines), 2)
        self.assertTrue(svg.getElementsByTagName("desc"))
        with open(self.path("p.html"), encoding="utf-8") as file:
            html = file.read()
        check_page(self, html, "Power sweep")
        self.assertIn(result["host"], html)
        saved = json.dumps(self.load("saved.json"))
        self.assertIn("gpu_power_limit", saved)
        self.assertIn(result["devices"][0]["uuid"], saved)

    def test_a_steps_file_counts_too(self):
        steps = self.path("steps")
        script = f"""
import subprocess, sys
load = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)
for line in load.stdout:
    if line.startswith("step"):
        open({steps!r}, "w").write(line.split()[1])
"""
        with open(steps, "w", encoding="utf-8") as file:
            file.write("123456")  # An earlier run left it: it is no progress of this one.
        done = self.profile("--limits", "250,100", *MANY_STEPS, "--stop",
                            "--progress-file", steps,
                            "--json", self.path("p.json"), "--", sys.executable, "-c", script,
                            *LOAD, "--progress")
        self.assertEqual(done.returncode, 0, done.stderr)
        fast, slow = self.load("p.json")["settings"]
        self.assertGreater(fast["per_step"]["steps_per_second"],
                           1.2 * slow["per_step"]["steps_per_second"])
        self.assertLess(fast["per_step"]["steps_per_second"], 20)

    def test_without_progress_there_is_power_and_no_choice(self):
        # The load is there before the sweep begins, which does not wait for it without progress.
        self.start_load(*LOAD[3:])
        wait_until(lambda: json.loads(self.sim("truth", "--json"))[0]["power_watts"] > 100,
                   "the load does not begin")
        done = self.profile("--stride", "75", *QUICK, "--stop", "--json", self.path("p.json"),
                            "--", "sleep", "600")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.load("p.json")
        self.assertEqual([row["setting"] for row in result["settings"]], [250, 175, 100])
        powers = [row["power_watts"] for row in result["settings"]]
        self.assertEqual(powers, sorted(powers, reverse=True))
        self.assertEqual([row["per_step"] for row in result["settings"]], [None] * 3)
        self.assertEqual(result["choices"], [])
        self.assertIn("unknown", done.stderr)
        self.assertIn("--progress-file FILE", done.stderr)
        self.assertEqual(self.limit(), 250)

    def test_the_best_limit_is_kept_for_the_rest_of_the_command(self):
        # In two seconds lines that come late on a busy machine hide no difference of a third.
        process = self.start_profile("--limits", "250,125", "--slice", "2s", "--warmup", "200ms",
                                     "--eta", "1", "--keep",
                                     "--progress", STEPS, "--json", self.path("p.json"),
                                     "--", *LOAD, "--progress")
        wait_until(lambda: os.path.exists(self.path("p.json")), "no result was written")
        self.await_limit(125)
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=60)
        self.assertIn("125 W is set for the rest of the command", error)
        self.assertEqual(self.limit(), 250)

    def test_until_done_goes_on_until_the_command_ends(self):
        done = self.profile("--limits", "250,100", "--slice", "1s", "--warmup", "200ms",
                            "--until-done", "--progress", STEPS, "--json", self.path("p.json"),
                            "--", *LOAD, "--seconds", "7", "--progress")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.load("p.json")
        self.assertGreaterEqual(max(slice["round"] for slice in result["slices"]), 1)
        self.assertEqual(result["notes"], [])
        self.assertEqual(self.limit(), 250)

    def test_a_locked_clock_can_be_swept(self):
        done = self.profile("--knob", "graphics_clock", "--stride", "400", *QUICK, "--stop",
                            "--json", self.path("p.json"), "--", *LOAD)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = self.load("p.json")
        self.assertEqual(result["unit"], "megahertz")
        self.assertGreater(len(result["settings"]), 2)
        self.assertIn(" MHz", done.stderr)


class LostNeighbourTest(ProfileTestCase):
    def test_a_gpu_is_meant_by_its_number_also_where_another_is_lost(self):
        self.run_sim("stop")
        self.start("2xV100")
        self.sim("fault", "--gpu", "0", "--kind", "lost")
        done = self.profile("--gpus", "1", "--limits", "200,150", *QUICK, "--stop", "--json",
                            self.path("p.json"), "--", "sleep", "600")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("power limit of gpu:1", done.stderr)
        self.assertEqual([row["setting"] for row in self.load("p.json")["settings"]], [200, 150])


class EndsTest(ProfileTestCase):
    def test_a_command_that_ends_early_leaves_a_partial_table(self):
        process = self.start_profile("--limits", "250,200,150,100", "--slice", "2s", "--warmup",
                                     "200ms", "--json", self.path("p.json"), "--", "sh", "-c",
                                     "read line; exit 7", stdin=subprocess.PIPE)
        self.await_limit(200)
        _, error = process.communicate("end\n", timeout=60)
        self.assertEqual(process.returncode, 7, error)
        result = self.load("p.json")
        self.assertFalse(result["complete"])
        self.assertEqual([row["setting"] for row in result["settings"]], [250])
        self.assertIn("it should run at least 18 s", error)
        self.assertEqual(self.limit(), 250)

    def test_signals_restore_the_limit_and_reach_the_command(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start_profile("--limits", "150,100", "--slice", "60s", "--",
                                         "sleep", "600")
            self.await_limit(150)
            process.send_signal(number)
            _, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + number, error)
            self.assertIn("was interrupted", error)
            self.assertEqual(self.limit(), 250)

    def test_a_command_that_is_killed_leaves_the_limit_as_it_was(self):
        done = self.profile("--limits", "150,100", *QUICK, "--", "sh", "-c",
                            "sleep 0.5; kill -KILL $$")
        self.assertEqual(done.returncode, 137, done.stderr)
        self.assertEqual(self.limit(), 250)

    def test_output_that_never_matches_measures_nothing_and_says_so(self):
        done = self.profile("--progress", "iteration (\\d+)", "--", "sh", "-c",
                            "echo step 1; echo step 2 >&2")
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertEqual(done.stdout, "step 1\n")
        self.assertIn("step 2\n", done.stderr)
        self.assertIn("matched --progress", done.stderr)

    def test_bytes_pass_through_unchanged(self):
        script = r"printf 'a\rb\000\377\n\nno end'; printf 'error\r' >&2"
        done = subprocess.run([ZEUS, "profile", "--quiet", "--progress", "x", "--", "sh", "-c",
                               script], env=self.environment, capture_output=True, timeout=60)
        self.assertEqual(done.stdout, b"a\rb\0\xff\n\nno end")
        self.assertTrue(done.stderr.startswith(b"error\r"))

    def test_a_single_limit_has_nothing_to_compare(self):
        done = self.profile("--limits", "200", *QUICK, "--stop", "--", *LOAD)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nothing to compare", done.stderr)


class RefusalTest(ProfileTestCase):
    def refused(self, code, words, *arguments):
        marker = self.path("started")
        done = self.profile(*arguments, "--", "touch", marker)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertRegex(done.stderr, words)
        self.assertFalse(os.path.exists(marker), "the command was started")

    def test_what_makes_no_sense_is_one_sentence_before_the_command(self):
        self.refused(2, "regular expression", "--progress", "step (")
        self.refused(2, "300 W is out of range.* 100 W to 250 W", "--limits", "300")
        self.refused(2, "duration", "--slice", "soon")
        self.refused(2, "fan", "--knob", "fan")
        self.refused(3, "there is no GPU 4", "--gpus", "4")
        self.refused(3, "cannot write", "--html", self.path("no/folder.html"))

    def test_limits_that_cannot_be_set_refuse_the_command(self):
        self.sim("fault", "--gpu", "0", "--kind", "no-permission")
        self.refused(5, "power limit of gpu:0")

    def test_a_driver_that_does_not_answer_is_one_sentence_with_gpu_and_option(self):
        self.sim("fault", "--gpu", "0", "--kind", "slow:60s")
        self.refused(6, "gpu:0: the driver did not answer within 0.5 s: .*--driver-timeout",
                     "--driver-timeout", "0.5")

    def test_no_gpu_is_one_sentence(self):
        self.environment["ZEUS_NVML_LIBRARY"] = self.path("missing.so")
        self.environment.pop("LD_LIBRARY_PATH", None)
        self.refused(3, "no GPU to profile")

    def test_a_command_that_does_not_exist_is_127(self):
        done = self.profile("--", "no-such-command-at-all")
        self.assertEqual(done.returncode, 127)
        self.assertTrue(re.search("no such command", done.stderr))


if __name__ == "__main__":
    unittest.main()
