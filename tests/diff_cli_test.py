"""`zeus diff` as a gate in CI: exit codes, formats, and files that are not what they should be."""

import json
import os
import subprocess
import unittest
import xml.etree.ElementTree

from sim_testing import ZEUS, SimTestCase


def run_file(energies, **fields):
    runs = [{"exit_code": 0, "time_seconds": 2.0,
             "devices": [{"device": "gpu:0", "uuid": "GPU-1", "energy_joules": energy,
                          "energy_sigma_joules": 0.02 * energy, "flags": []}],
             "total": {"energy_joules": energy, "energy_sigma_joules": 0.02 * energy,
                       "contains": ["gpu:0"], "missing": []}} for energy in energies]
    return {"schema": "zeus.run/1", "command": ["train"], "host": "here", "runs": runs} | fields


STEADY = run_file([100, 101, 99, 100, 100])
WORSE = run_file([110, 111, 109, 110, 110])
NEAR = run_file([104, 108, 100, 104, 103])


class DiffTest(SimTestCase):
    def write(self, name, content):
        path = os.path.join(self.directory.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def diff(self, base, new, *options):
        return subprocess.run(
            [ZEUS, "diff", self.write("base.json", base), self.write("new.json", new), *options],
            env=self.environment, capture_output=True, text=True, timeout=60)

    def test_exit_codes_are_ok_regression_and_cannot_tell(self):
        for new, options, code in (
                (STEADY, [], 0), (WORSE, [], 1), (NEAR, [], 2),
                (WORSE, ["--max-regress", "20%"], 0), (WORSE, ["--max-regress", "0.2"], 0),
                (WORSE, ["--metric", "time"], 0), (WORSE, ["--device", "gpu:0"], 1),
                (WORSE, ["--method", "bootstrap"], 1), (run_file([100]), [], 2)):
            done = self.diff(STEADY, new, *options)
            self.assertEqual(done.returncode, code, (options, done.stdout, done.stderr))
            verdict = ("ok", "regression", "undecided")[code]
            self.assertTrue(done.stdout.splitlines()[-1].startswith(verdict), done.stdout)

    def test_wrong_input_has_other_exit_codes_and_one_sentence(self):
        missing = os.path.join(self.directory.name, "missing.json")
        for arguments, code, word in (
                ([missing, missing], 3, "missing.json"), ([missing], 8, "new is required"),
                ([self.write("a.json", "{"), missing], 8, "a.json"),
                ([self.write("b.json", "[]"), missing], 8, "b.json"),
                ([self.write("c.json", STEADY)] * 2 + ["--max-regress", "3"], 8, "3%"),
                ([self.write("c.json", STEADY)] * 2 + ["--device", "gpu:5"], 3, "gpu:5"),
                ([self.write("c.json", STEADY)] * 2 + ["--metric", "joy"], 8, "joy"),
                ([self.directory.name] * 2, 6, self.directory.name)):
            done = subprocess.run([ZEUS, "diff", *arguments], env=self.environment,
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, code, (arguments, done.stderr))
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertIn(word, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_json_says_everything(self):
        done = self.diff(STEADY, NEAR, "--format", "json")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["verdict"], "undecided")
        self.assertAlmostEqual(answer["ratio"], 1.038)
        self.assertLess(answer["ratio_low"], 1.03)
        self.assertGreater(answer["ratio_high"], 1.03)
        self.assertGreater(answer["runs_needed"], 5)
        self.assertEqual(answer["new"]["runs"], 5)

    def test_junit_is_well_formed_and_has_a_failure_on_regression(self):
        command = ["train", "--model=<a&b>", "\"'\x1b\n", "]]>"]
        for new, kind in ((STEADY, None), (WORSE, "failure"), (NEAR, "error")):
            done = self.diff(STEADY | {"command": command}, new | {"command": command},
                             "--format", "junit")
            suite = xml.etree.ElementTree.fromstring(done.stdout)
            (case,) = suite.iter("testcase")
            self.assertIn("<a&b>", case.get("name"))
            found = [child.tag for child in case if child.tag in ("failure", "error")]
            self.assertEqual(found, [kind] if kind else [])

    def test_markdown_is_a_table(self):
        done = self.diff(STEADY, WORSE, "--format", "markdown")
        rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
        self.assertEqual(len(rows), 4)
        self.assertEqual({row.count("|") for row in rows}, {6})
        self.assertIn("+10.0 %", done.stdout)

    def test_output_goes_to_a_file(self):
        file = os.path.join(self.directory.name, "report.xml")
        done = self.diff(STEADY, WORSE, "--format", "junit", "--output", file)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        xml.etree.ElementTree.parse(file)
        self.assertEqual(self.diff(STEADY, STEADY, "--output", "/dev/full").returncode, 6)

    def test_results_of_zeus_run_are_accepted(self):
        self.sim("start", "--gpus", "V100")
        self.addCleanup(self.run_sim, "stop")
        environment = self.evaluated_environment()
        file = os.path.join(self.directory.name, "real.json")
        subprocess.run([ZEUS, "run", "--quiet", "--repeat", "3", "--json", file, "--", "true"],
                       env=environment, check=True, timeout=60)
        for metric in ("energy", "time", "power", "attributed"):
            done = subprocess.run([ZEUS, "diff", file, file, "--metric", metric], timeout=60,
                                  env=environment, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
