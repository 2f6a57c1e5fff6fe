"""`zeus job backup` and `restore` while a server runs, and `zeus job savings` of many jobs."""

import csv
import io
import json
import os
import sqlite3
import subprocess
import threading
import unittest

import postgres_testing
from serve_testing import JOB, ZEUS, Server, ServeTestCase


class Runner(threading.Thread):
    """Has trials of a job run, one after the other, until it is told to stop."""

    def __init__(self, test, server, job):
        super().__init__(daemon=True)
        self.test, self.server, self.job = test, server, job
        self.stopping = threading.Event()
        self.ran = threading.Semaphore(0)
        self.error = None

    def run(self):
        try:
            while not self.stopping.is_set():
                self.test.run_trial(self.server, self.job, 100)
                self.ran.release()
        except Exception as error:  # Shown by the test.
            self.error = error
            self.ran.release()


class JobTestCase(ServeTestCase):
    def job(self, *arguments, code=0):
        done = subprocess.run([ZEUS, "job", *arguments], capture_output=True, text=True, timeout=120, check=False,
                              stdin=subprocess.DEVNULL, env={**os.environ, "HOME": self.directory})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def register(self, server, job, **fields):
        answer = server.ask("POST", "/v1/jobs", {**JOB, "id": job, "eta": 1, **fields})
        self.assertIn(answer.status, (200, 201), answer.text)

    def run_trial(self, server, job, energy, baseline=False):
        trial = self.start_trial(server, job, **({"baseline": True} if baseline else {}))
        report = {"epoch": 1, "time_seconds": 10, "energy_joules": energy, "metric": 0.95, "undisturbed": baseline}
        answer = server.ask("POST", f"/v1/jobs/{job}/trials/{trial['number']}/reports", report)
        self.assertEqual(answer.status, 200, answer.text)

    def sqlite(self, name):
        return "sqlite://" + self.path(name)


class BackupTest(JobTestCase):
    def check_copy(self, original, copy, jobs):
        """Every job of the copy is one moment of the original: its events are a beginning of those there."""
        for job in jobs:
            self.assertIn("is what they make", self.job("check", job, "--database", copy))
            lines = {url: [json.loads(line) for line in self.job("export", job, "--database", url).splitlines()]
                     for url in (original, copy)}
            events = {url: [line for line in lines[url] if line["record"] == "event"] for url in lines}
            self.assertGreater(len(events[copy]), 0)
            self.assertEqual(events[copy], events[original][:len(events[copy])])

    def back_up_while_serving(self, url, copy):
        server = Server("--database", url)
        self.addCleanup(server.kill)
        for job in ("cat", "dog"):
            self.register(server, job)
        runners = [Runner(self, server, job) for job in ("cat", "dog")]
        for runner in runners:
            runner.start()
        for number in range(4):
            for runner in runners:
                self.assertTrue(runner.ran.acquire(timeout=60), "trials go on")
            said = self.job("backup", self.path(f"backup{number}"), "--database", url)
            self.assertRegex(said, r"^2 jobs, \d+ trials? and \d+ events are in ")
        for runner in runners:
            runner.stopping.set()
            runner.join(60)
            self.assertIsNone(runner.error)
        said = self.job("restore", self.path("backup3"), "--database", copy)
        self.assertRegex(said, r"^2 jobs, \d+ trials")
        self.check_copy(url, copy, ("cat", "dog"))
        return server

    def test_sqlite_while_serving_and_back_into_the_running_server(self):
        url = self.sqlite("zeus.db")
        server = self.back_up_while_serving(url, self.sqlite("copy.db"))
        self.assertEqual(server.ask("DELETE", "/v1/jobs/cat").status, 204)
        self.register(server, "bird")
        said = self.job("restore", self.path("backup3"), "--database", url)
        self.assertRegex(said, r"^1 job, ")
        self.assertIn("left as they are", said)
        self.assertIn("dog", said)
        self.run_trial(server, "cat", 90)
        self.run_trial(server, "bird", 90)
        for job in ("cat", "dog", "bird"):
            self.assertIn("is what they make", self.job("check", job, "--database", url))

    def test_postgresql_while_serving_and_into_sqlite_and_back(self):
        if postgres_testing.programs() is None:
            self.skipTest("PostgreSQL is not here")
        database = postgres_testing.PostgresServer()
        self.addCleanup(database.stop)
        self.back_up_while_serving(database.url, self.sqlite("copy.db"))
        self.job("backup", self.path("again"), "--database", self.sqlite("copy.db"))
        other = postgres_testing.PostgresServer()
        self.addCleanup(other.stop)
        self.job("restore", self.path("again"), "--database", other.url)
        self.check_copy(database.url, other.url, ("cat", "dog"))

    def test_old_epochs_are_removed_after_a_look(self):
        url = self.sqlite("zeus.db")
        server = Server("--database", url)
        self.addCleanup(server.kill)
        self.register(server, "cat")
        for _ in range(3):
            trial = self.start_trial(server, "cat")
            for epoch in range(1, 6):
                answer = server.ask("POST", f"/v1/jobs/cat/trials/{trial['number']}/reports", {
                    "epoch": epoch, "time_seconds": epoch, "energy_joules": 10 * epoch, "metric": epoch / 5})
                self.assertEqual(answer.status, 200, answer.text)
        shown = self.job("show", "cat", "--json", "--database", url)
        self.assertIn("nothing to remove", self.job("prune", "--before", "2020-01", "--database", url))
        said = self.job("prune", "--before", "2100-01", "--database", url)
        self.assertRegex(said, r"(?m)^cat +3 +12$")
        self.assertIn("nothing is removed yet", said)
        self.assertRegex(self.job("prune", "--before", "2100-01", "--yes", "--database", url), r"(?m)^all +3 +12$")
        self.assertIn("nothing to remove", self.job("prune", "--before", "2100-01", "--database", url))
        self.assertEqual(self.job("show", "cat", "--json", "--database", url), shown)
        self.assertIn("is what they make", self.job("check", "cat", "--database", url))
        self.run_trial(server, "cat", 100)
        self.assertIn("is what they make", self.job("check", "cat", "--database", url))

    def test_mistakes_are_told_in_one_sentence(self):
        with open(self.path("text"), "w", encoding="utf-8") as file:
            file.write("hello\n")
        for arguments, code, message in (
            (["backup", self.path("b"), "--database", self.sqlite("none.db")], 3, "there is no such database"),
            (["backup", self.path("b"), "--database", "sqlite::memory:"], 2, "ends with its process"),
            (["restore", self.path("text"), "--database", self.sqlite("new.db")], 2, "is no backup"),
            (["restore", self.path("none"), "--database", self.sqlite("new.db")], 3, "none"),
            (["restore", self.directory, "--database", self.sqlite("new.db")], 2, "is not a file"),
        ):
            with self.subTest(message=message):
                said = self.job(*arguments, code=code)
                self.assertIn(message, said)
                self.assertEqual(said.count("\n"), 1, said)
        self.assertFalse(os.path.exists(self.path("new.db")), "a restore that fails at its file makes no database")


class SavingsTest(JobTestCase):
    """Two teams; the months of trials are set by hand, since nobody waits for them."""

    def setUp(self):
        super().setUp()
        self.url = self.sqlite("zeus.db")
        server = Server("--database", self.url)
        for job, team, energy in (("cat", "vision", 60), ("dog", "vision", 80), ("word", "speech", 50)):
            self.register(server, job, labels={"team": team})
            for used in (99, 101, 100):
                self.run_trial(server, job, used, baseline=True)
            for number in range(4):
                self.run_trial(server, job, energy + number)
        self.register(server, "new", labels={"team": "speech"})
        self.run_trial(server, "new", 10)
        self.answer = server.ask("GET", "/v1/savings?bounds=2020-01-01T00:00:00Z,2100-01-01T00:00:00Z&label=team:vision")
        server.kill()
        with sqlite3.connect(self.path("zeus.db")) as database:
            for number in range(4, 8):  # The trials before are the baseline.
                microseconds = {4: 1767225600, 5: 1767312000, 6: 1769904000, 7: 1772323200}[number] * 1_000_000
                database.execute("UPDATE trials SET started_at = ?, ended_at = ? WHERE number = ?",
                                 (microseconds, microseconds, number))
        database.close()

    def savings(self, *arguments):
        return self.job("savings", *arguments, "--database", self.url)

    def test_all_jobs_by_default(self):
        groups = json.loads(self.savings("--json"))
        self.assertEqual([group["job"] for group in groups["groups"]], ["cat", "dog", "new", "word"])
        cat = groups["groups"][0]
        alone = json.loads(self.savings("cat", "--json"))["saved"]
        self.assertAlmostEqual(cat["energy_percent"], alone["energy_percent"])
        self.assertAlmostEqual(cat["energy_sigma_percent"], alone["energy_sigma_percent"])
        self.assertEqual(groups["total"]["unknown_jobs"], ["new"])
        text = self.savings()
        self.assertRegex(text, r"(?m)^cat +1 +4 .*Wh +-38\.5\d* ± [\d.]+ %")
        self.assertRegex(text, r"(?m)^all +3 +12 ")
        self.assertIn("left out, for new", text)

    def test_teams_and_months(self):
        groups = json.loads(self.savings("--by", "team,month", "--json"))["groups"]
        self.assertEqual([(group["labels"]["team"], group["month"], group["recurrences"]) for group in groups
                          if group["jobs"]],
                         [("speech", "2026-01", 2), ("speech", "2026-02", 1), ("speech", "2026-03", 1),
                          ("vision", "2026-01", 4), ("vision", "2026-02", 2), ("vision", "2026-03", 2)])
        total = json.loads(self.savings("--by", "month", "--json"))["total"]
        self.assertAlmostEqual(sum(group["energy_joules"] for group in groups), total["energy_joules"])

    def test_csv_has_a_row_for_each_group(self):
        rows = list(csv.DictReader(io.StringIO(self.savings("--by", "team", "--csv"))))
        self.assertEqual([(row["team"], row["jobs"], row["unknown_jobs"]) for row in rows],
                         [("speech", "1", "new"), ("vision", "2", "")])
        self.assertGreater(float(rows[1]["energy_joules"]), 0)
        self.assertGreater(float(rows[1]["energy_sigma_joules"]), 0)

    def test_a_period_and_a_label(self):
        one = json.loads(self.savings("--from", "2026-02", "--until", "2026-03", "--label", "team=vision", "--json"))
        self.assertEqual([(group["job"], group["recurrences"]) for group in one["groups"]], [("cat", 1), ("dog", 1)])
        self.assertIn("no recurrence", self.savings("--from", "2030-01"))

    def test_one_job_over_time(self):
        months = json.loads(self.savings("cat", "--by", "month", "--json"))["groups"]
        self.assertEqual([month["month"] for month in months], ["2026-01", "2026-02", "2026-03"])

    def test_the_server_sums_up_jobs_with_a_label(self):
        self.assertEqual(self.answer.status, 200, self.answer.text)
        (span,) = self.answer.json["spans"]
        self.assertEqual((span["jobs"], span["recurrences"], span["unknown_jobs"]), (2, 8, []))
        self.assertGreater(span["energy_percent"], 10)

    def test_mistakes_are_told_in_one_sentence(self):
        for arguments, message in ((["--by", "team,"], "team,month"), (["--by", "job,job"], "given twice"),
                                   (["--from", "soon"], "neither a month"), (["--json", "--csv"], "two formats"),
                                   (["--carbon", "DE"], "one job"), (["cat", "--label", "team"], "--label"),
                                   (["--from", "2026-03", "--until", "2026-02"], "is not after")):
            with self.subTest(message=message):
                extra = ["--csv"] if arguments[0] == "cat" else []
                said = self.job("savings", *arguments, *extra, "--database", self.url, code=2)
                self.assertIn(message, said)
                self.assertEqual(said.count("\n"), 1, said)


if __name__ == "__main__":
    unittest.main()
