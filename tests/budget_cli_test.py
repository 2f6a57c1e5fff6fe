"""`zeus budget simulate`: more GPUs under one budget, the same answer for any number of threads, and one sentence for bad input."""

import json
import os
import subprocess
import tempfile
import unittest

ZEUS = os.environ.get("ZEUS_BINARY", "build/dev/bin/zeus")
SMALL = ("--generate", "jobs=600,groups=40,days=1,median_runtime=3600", "--more", "0,30,60")
TRACE = """group,start_time,end_time,dataset,runtime_ratio
a,0,7200,cifar100,1
a,3600,10800,cifar100,1
b,0,5400,imagenet,1
"""


class BudgetSimulateTest(unittest.TestCase):
    def run_simulate(self, *arguments):
        return subprocess.run([ZEUS, "budget", "simulate", *arguments], capture_output=True, text=True, timeout=100)

    def study(self, *arguments):
        done = self.run_simulate(*arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, *arguments):
        done = self.run_simulate(*arguments)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.returncode, done.stderr

    def test_water_filling_fits_more_gpus_than_a_uniform_cap(self):
        study = self.study(*SMALL)
        runs = {(run["rule"], run["more_gpus"]): run for run in study["runs"]}
        self.assertEqual(len(runs), 9)
        for more in (0.3, 0.6):
            ours, uniform = runs["water-filling", more], runs["uniform", more]
            self.assertLess(ours["mean_slowdown"], uniform["mean_slowdown"])
            self.assertEqual(ours["over_budget"], 0)
            self.assertLessEqual(ours["highest_draw_watts"], ours["budget_watts"])
        for rule in ("uncapped", "uniform", "water-filling"):
            self.assertAlmostEqual(runs[rule, 0]["mean_slowdown"], 1, places=2)

    def test_any_number_of_threads_has_the_same_answer(self):
        one = self.run_simulate(*SMALL, "--json", "--threads", "1").stdout
        self.assertEqual(self.run_simulate(*SMALL, "--json", "--threads", "3").stdout, one)

    def test_the_text_begins_with_the_table_and_the_page_has_the_figures(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_simulate(*SMALL, "--figures", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("more GPUs fit at a mean slowdown of 5.00 %", done.stdout)
            for name in ("slowdown.svg", "power.svg", "payers.svg", "budgets.csv"):
                self.assertGreater(os.path.getsize(os.path.join(folder, name)), 100, name)

    def test_a_trace_of_ones_own(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "groups.csv")
            with open(path, "w", encoding="utf-8") as file:
                file.write(TRACE)
            study = self.study("--trace", path)
            self.assertEqual((study["jobs"], study["gpus"], study["source"]), (3, 3, "groups.csv"))
            self.assertEqual(self.study("--trace", path, "--gpus", "2")["gpus"], 2)

    def test_what_has_no_meaning_is_refused_in_one_sentence(self):
        for arguments, text in ((("--more", "30,-1"), '--more "-1"'), (("--more", "nan"), '--more "nan"'),
                                (("--accept", "0.5"), "--accept"), (("--gpu", "v1000"), "v1000"), (("--gpus", "0"), "--gpus"),
                                (("--period", "nan"), "--period"), (("--mode", "watts"), "--mode"),
                                (("--generate", "jobs=nan"), "jobs"), (("--trace", "/nonexistent.csv"), "/nonexistent.csv")):
            code, error = self.refused(*arguments)
            self.assertNotEqual(code, 0)
            self.assertIn(text, error)


if __name__ == "__main__":
    unittest.main()
