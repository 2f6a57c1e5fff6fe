"""`zeus job`: what was learned, as tables, JSON, HTML and JSON lines, and that it adds up."""

import http.server
import json
import math
import os
import sqlite3
import subprocess
import threading
import unittest

from report_testing import check_page
from sim_testing import ZEUS
from train_testing import TrainTestCase


class JobTest(TrainTestCase):
    def learn(self, job="mnist", recurrences="6", *arguments, program=()):
        self.train(*self.options(job=job, source=["--metric-file", self.path("m")]),
                   *self.itself(), "--seed", "1", "--recurrences", recurrences, "--label",
                   f"of={job}", "--quiet", *arguments, *self.command(
                       "--out", self.path("m"), "--seconds", "0",
                       "--epochs", '{"32": 20, "64": 10, "128": 4}', *program))

    def test_lists_tables_and_json_tell_the_same(self):
        self.assertIn("no jobs in sqlite", self.job("list"))
        self.learn("a")
        self.learn("b", "2")
        self.assertEqual([job["spec"]["id"] for job in json.loads(self.job("list", "--json"))],
                         ["a", "b"])
        self.assertEqual(len(json.loads(self.job("list", "--json", "--label", "of=b"))), 1)
        self.assertEqual(len(json.loads(self.job("list", "--json", "--label", "of"))), 2)
        result = json.loads(self.job("show", "a", "--json"))
        self.assertEqual(result["schema"], "zeus.job/2")
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

    def test_what_a_run_took_is_what_its_runs_show_the_start_included(self):
        self.learn("a", "8", program=["--start", "3000"])
        result = json.loads(self.job("show", "a", "--json"))
        trials = [trial for trial in self.trials("a") if trial["status"] in ("converged", "stopped")]
        costs = {}
        for arm, belief in zip(result["measured"], result["arms"]["arms"]):
            runs = [trial for trial in trials if trial["batch_size"] == arm["batch_size"]]
            reached = sum(trial["status"] == "converged" for trial in runs)
            self.assertEqual((arm["runs"], arm["reached"]), (len(runs), reached))
            if reached == 0:
                self.assertIsNone(arm["cost_joules"])
                continue
            costs[arm["batch_size"]] = sum(trial["cost_joules"] for trial in runs) / reached
            self.assertAlmostEqual(arm["cost_joules"], costs[arm["batch_size"]])
            # The belief is about epochs: it is called that, and does not contain the start.
            self.assertLess(belief["cost_joules"], arm["cost_joules"] - 0.5 * 2900)
        self.assertEqual(result["cheapest_batch_size"], min(costs, key=costs.get))
        text = self.job("arms", "a")
        self.assertIn("epochs to target cost", text)
        self.assertIn("a run took", text)
        self.assertNotIn("cost of a run", text)
        marked, = [line for line in text.splitlines() if "best" in line]
        self.assertTrue(marked.strip().startswith(str(min(costs, key=costs.get))), text)

    def test_savings_are_measured_against_undisturbed_runs_of_the_default(self):
        self.learn("tuned", "8", "--baseline", "3")
        trials = self.trials("tuned")
        baseline = [trial for trial in trials if trial["role"] == "baseline"]
        self.assertEqual([(t["batch_size"], t["epochs"], t["undisturbed"]) for t in baseline],
                         [(64, 10, True)] * 3)
        result = json.loads(self.job("show", "tuned", "--json"))
        savings = result["savings"]
        self.assertEqual(savings["baseline"]["energy_joules"], 1000)
        # Everything that ran under Zeus is charged, what explored and failed included.
        charged = sum(t["energy_joules"] for t in trials if t["role"] != "baseline")
        self.assertAlmostEqual(savings["zeus"]["energy_joules"], charged / 8)
        percent = 100 * (1 - charged / 8 / 1000)
        self.assertAlmostEqual(savings["saved"]["energy_percent"], percent)
        self.assertGreater(savings["saved"]["energy_sigma_percent"], 0)
        self.assertAlmostEqual(savings["saved"]["energy_kwh"], (8000 - charged) / 3.6e6)
        self.assertLess(percent, 60)  # That is what batch size 128 would save without exploration.
        self.assertEqual(json.loads(self.job("savings", "tuned", "--json")), savings)
        text = self.job("show", "tuned")
        sigma = savings["saved"]["energy_sigma_percent"]
        decimals = min(2, max(0, 1 - math.floor(math.log10(sigma))))  # Two digits of sigma.
        line = f"energy {-percent:+.{decimals}f} ± {sigma:.{decimals}f} %"
        self.assertIn(line, text)
        self.assertEqual(text.count("energy -"), 1, text)
        self.assertIn(line, self.job("savings", "tuned"))
        self.assertIn("is what they make", self.job("check", "tuned"))

    def test_without_a_baseline_savings_are_not_known_and_it_is_said_how_to_know_them(self):
        self.learn("tuned", "8")
        savings = json.loads(self.job("savings", "tuned", "--json"))
        self.assertIsNone(savings["saved"])
        self.assertIn("--baseline 3", savings["unknown_because"])
        for verb in ("savings", "show"):
            text = self.job(verb, "tuned")
            self.assertIn("saved: not known yet: there are 0 undisturbed runs of the default", text)
            self.assertNotIn(" %", text)

    def test_savings_in_money_and_emissions_and_against_another_job(self):
        self.learn("usual", "0", "--baseline", "2")
        self.learn("tuned", "8")
        arguments = ["savings", "tuned", "--baseline", "usual", "--carbon", "360g/kWh", "--price",
                     "1EUR"]
        saved = json.loads(self.job(*arguments, "--json"))["saved"]
        self.assertAlmostEqual(saved["carbon"]["grams_co2e"], 360 * saved["energy_kwh"])
        self.assertAlmostEqual(saved["cost"]["amount"], saved["energy_kwh"])
        self.assertGreater(saved["cost"]["amount_sigma"], 0)
        text = self.job(*arguments)
        self.assertIn("saved carbon: ", text)
        self.assertIn("saved money: ", text)
        self.assertNotIn("saved cost: ", text)
        self.assertIn("job usual", text)

    def test_what_other_users_wrote_does_not_reach_the_terminal_as_it_is(self):
        evil = "\x1b]0;owned\x07\x9b2J\u202e\rX"
        model = "V100\x9b2J\u202eX"  # Only control characters of ASCII are refused.

        def learn(job, *arguments, model=model, code=0):
            return self.train(*self.options(job=job, source=["--metric-file", self.path("m")]),
                              "--gpu-model", model, "--max-power", "250", *arguments,
                              *self.command("--out", self.path("m"), "--seconds", "0"), code=code)

        self.assertIn("gpu_model", learn("a", model=f"V100{evil}", code=2).stderr)

        learn("a", "--recurrences", "2", "--baseline", "2", "--label", f"name={evil}")
        database = sqlite3.connect(self.path("data/zeus/zeus.db"))
        with database:
            database.execute("UPDATE trials SET reason = ?", (evil,))
        database.close()
        for arguments in (["list"], ["show", "a"], ["show", "a", "--json"], ["trials", "a"],
                          ["trials", "a", "--json"], ["arms", "a"], ["savings", "a"],
                          ["export", "a"], ["check", "a"]):
            with self.subTest(arguments=arguments):
                text = self.job(*arguments)
                bad = [c for c in text if (ord(c) < 32 and c not in "\n\t")
                       or 127 <= ord(c) < 160 or c == "\u202e"]
                self.assertEqual(bad, [], text)
        self.assertIn("V100\\xc2\\x9b2J\\u202eX", self.job("show", "a"))
        self.assertEqual(self.trials("a")[0]["reason"], evil)
        done = self.job("show", "x\x1b[2J", code=3)
        self.assertNotIn("\x1b", done)
        done = learn("b")
        self.assertNotIn("\x1b", done.stderr)
        self.assertNotIn("\u202e", done.stderr)

    def test_the_page_is_whole_and_alone(self):
        self.learn()
        page = self.path("report.html")
        self.job("show", "mnist", "--html", page)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        report = check_page(self, text, "Recurring job mnist")
        if report is None:
            self.skipTest("zeus was built without the page for reports")
        panels = report["sections"][0]["figures"][0]["panels"]
        self.assertEqual([sum(len(series["x"]) for series in panel["series"]) for panel in panels],
                         [6, 6])
        self.assertEqual(len(report["sections"][2]["tables"][0]["rows"]), len(self.trials()))

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

    def test_a_narrow_terminal_gets_narrow_lines(self):
        self.learn("tuned", "3")
        for verb in ("savings", "show", "arms"):
            for line in self.seen("job", verb, "tuned").splitlines():
                self.assertLessEqual(len(line), 80, line)
        # A pipe and the page get one line, which they break themselves.
        self.assertRegex(self.job("savings", "tuned"), r"saved: not known yet: .{150,}\n")
        self.job("show", "tuned", "--html", self.path("page.html"))
        with open(self.path("page.html"), encoding="utf-8") as page:
            self.assertRegex(page.read(), r"not known yet: there are 0 undisturbed runs of the "
                                          r"default [^\n]{100}")


class OtherServer(http.server.BaseHTTPRequestHandler):
    """Answers as no `zeus serve` does; the server's `answer` is a status and a body."""

    def do_GET(self):
        status, body = self.server.answer
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/login")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class WrongServerTest(TrainTestCase):
    def test_what_is_no_zeus_server_is_named(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OtherServer)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}"
        for answer in ((200, b"[]"), (200, b"{}"), (200, b'{"spec": 3}'), (200, b""),
                       (200, b"<html>Welcome</html>"), (302, b""), (404, b"<h1>Not found</h1>"),
                       (404, b"")):
            server.answer = answer
            for words in (("show", "mnist"), ("list",)):
                with self.subTest(answer=answer, words=words):
                    done = subprocess.run([ZEUS, "job", *words, "--server", url],
                                          env=self.environment, text=True, capture_output=True,
                                          timeout=60, check=False)
                    self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
                    self.assertIn(f"zeus: {url} is no zeus server: ", done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
