"""`zeus job`: what was learned, as tables, JSON, HTML and JSON lines, and that it adds up."""

import json
import os
import sqlite3
import subprocess
import unittest
import xml.dom.minidom

from sim_testing import ZEUS
from train_testing import TrainTestCase


class JobTest(TrainTestCase):
    def learn(self, job="mnist", recurrences="6", *arguments):
        self.train(*self.options(job=job, source=["--metric-file", self.path("m")]),
                   *self.itself(), "--seed", "1", "--recurrences", recurrences, "--label",
                   f"of={job}", "--quiet", *arguments, *self.command(
                       "--out", self.path("m"), "--seconds", "0",
                       "--epochs", '{"32": 20, "64": 10, "128": 4}'))

    def test_lists_tables_and_json_tell_the_same(self):
        self.assertIn("no jobs in sqlite", self.job("list"))
        self.learn("a")
        self.learn("b", "2")
        self.assertEqual([job["spec"]["id"] for job in json.loads(self.job("list", "--json"))],
                         ["a", "b"])
        self.assertEqual(len(json.loads(self.job("list", "--json", "--label", "of=b"))), 1)
        self.assertEqual(len(json.loads(self.job("list", "--json", "--label", "of"))), 2)
        result = json.loads(self.job("show", "a", "--json"))
        self.assertEqual(result["schema"], "zeus.job/1")
        trials = self.trials("a")
        self.assertEqual(result["total"]["runs"], len(trials))
        for amount in ("energy_joules", "time_seconds", "cost_joules"):
            self.assertAlmostEqual(result["total"][amount], sum(t[amount] for t in trials))
            self.assertAlmostEqual(result["total"][amount],
                                   sum(r[amount] for r in result["recurrences"]))
        arms = json.loads(self.job("arms", "a", "--json"))
        self.assertEqual(arms, result["arms"])
        text = self.job("show", "a")
        self.assertIn(f"chosen: batch size {result['best_batch_size']}", text)
        self.assertEqual(self.job("trials", "a").count("\n"), 1 + len(trials))

    def test_a_database_that_may_only_be_read_can_be_read(self):
        self.learn("a", "2")
        data = self.path("data/zeus")
        shown = {verb: self.job(*verb) for verb in (
            ("list",), ("show", "a"), ("arms", "a"), ("trials", "a"), ("export", "a"), ("check", "a"))}
        for folder in (self.path("data"), data):
            os.chmod(folder, 0o755)
        os.chmod(os.path.join(data, "zeus.db"), 0o644)
        # Root may write everywhere.
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        if not user:
            os.chmod(data, 0o555)
            os.chmod(os.path.join(data, "zeus.db"), 0o444)
            self.addCleanup(os.chmod, data, 0o755)
        before = sorted(os.listdir(data))

        def job(*words):
            return subprocess.run([ZEUS, "job", *words], env=self.environment, timeout=60,
                                  capture_output=True, text=True, check=False, **user)

        for verb, text in shown.items():
            with self.subTest(verb=verb):
                done = job(*verb)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout, text)
        refused = job("delete", "a")
        self.assertEqual(refused.returncode, 5, refused.stderr)
        self.assertIn("zeus.db", refused.stderr)
        self.assertEqual(sorted(os.listdir(data)), before)

    def test_against_a_baseline(self):
        self.learn("default", "2", "--policy", "default")
        self.learn("tuned", "8")
        result = json.loads(self.job("show", "tuned", "--baseline", "default", "--json"))
        self.assertAlmostEqual(result["baseline"]["saved"]["energy_percent"], 60)
        self.assertIn("against job default with batch size 64: energy -60.0 ± 0.0 %",
                      self.job("show", "tuned", "--baseline", "default"))

    def test_the_page_is_whole_and_alone(self):
        self.learn()
        page = self.path("report.html")
        self.job("show", "mnist", "--html", page)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn("src=", text)
        self.assertNotIn("href=", text)
        svg = text[text.index("<svg"):text.index("</svg>") + 6]
        document = xml.dom.minidom.parseString(svg)
        self.assertEqual(len(document.getElementsByTagName("circle")), 2 * 6)

    def test_the_export_holds_everything(self):
        self.learn()
        lines = [json.loads(line) for line in self.job("export", "mnist").splitlines()]
        self.assertEqual(lines[0]["record"], "job")
        self.assertEqual(lines[0]["schema"], "zeus.job_export/1")
        self.assertEqual([line for line in lines if line["record"] == "trial"],
                         [{"record": "trial", **trial} for trial in self.trials()])
        events = [line for line in lines if line["record"] == "event"]
        self.assertEqual([event["sequence"] for event in events], list(range(1, len(events) + 1)))
        self.job("export", "mnist", "--output", self.path("lines"))
        with open(self.path("lines"), encoding="utf-8") as file:
            self.assertEqual([json.loads(line) for line in file], lines)

    def test_a_belief_that_is_not_what_the_events_make_is_noticed(self):
        self.learn()
        self.assertIn("is what they make", self.job("check", "mnist"))
        database = sqlite3.connect(self.path("data/zeus/zeus.db"))
        with database:
            changed = database.execute(
                "DELETE FROM events WHERE kind = 'trial_ended' AND sequence = "
                "(SELECT MAX(sequence) FROM events WHERE kind = 'trial_ended')").rowcount
        database.close()
        self.assertEqual(changed, 1)
        self.assertIn("is not what they make", self.job("check", "mnist", code=1))

    def test_what_is_not_there_and_what_is_deleted(self):
        self.learn("a", "1")
        for verb in ("show", "arms", "trials", "export", "delete", "check"):
            self.job(verb, "nobody", code=3)
        self.assertIn("is deleted", self.job("delete", "a"))
        self.job("show", "a", code=3)


if __name__ == "__main__":
    unittest.main()
