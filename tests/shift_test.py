#!/usr/bin/env python3
"""Cleaner and cheaper hours: `zeus plan-start` and `zeus train --shift`, with forecasts from files and from a local grid service."""

import datetime
import http.server
import json
import os
import signal
import subprocess
import threading
import time
import unittest

import slurm_testing
from sim_testing import ZEUS, wait_until
from train_testing import TrainTestCase


def text(moment):
    return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(told):
    return datetime.datetime.fromisoformat(told.replace("Z", "+00:00")).timestamp()


class Grid(http.server.ThreadingHTTPServer):
    """A grid in the dialect of carbonintensity.org.uk: 400 g/kWh, and 100 from `clean_after` seconds after the first question on."""

    daemon_threads = True

    def __init__(self, clean_after):
        super().__init__(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.clean_after = clean_after
        self.clean_from = None
        self.broken = False
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,))
        self.thread.start()

    def stop(self):
        self.shutdown()
        self.thread.join()
        self.server_close()

    def intensity(self, when):
        return 400 if when < self.clean_from else 100

    @staticmethod
    def entry(begin, end, forecast, actual):
        return {"from": text(begin), "to": text(end), "intensity": {"forecast": forecast, "actual": actual}}

    def answer(self, path):
        now = int(time.time())
        if self.clean_from is None:
            self.clean_from = now + self.clean_after
        if path.endswith("fw48h"):
            bounds = [now, self.clean_from, now + 7200] if now < self.clean_from else [now, now + 7200]
            return [self.entry(a, b, self.intensity(a), None) for a, b in zip(bounds, bounds[1:])]
        return [self.entry(s, s + 1, self.intensity(s), self.intensity(s)) for s in range(now - 300, now + 1)]


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"data": self.server.answer(self.path)}).encode()
        self.send_response(503 if self.server.broken else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class ShiftTest(TrainTestCase):
    def setUp(self):
        super().setUp()
        self.environment["XDG_CACHE_HOME"] = self.path("cache")

    def grid(self, clean_after=8):
        grid = Grid(clean_after)
        self.addCleanup(grid.stop)
        return grid

    def waiting(self, grid, *more):
        return [*self.options(sizes="64", source=[]), *self.itself(), "--shift", "carbon", "--duration", "3s", "--margin", "0s",
                "--carbon", "carbonintensity.org.uk", "--carbon-url", grid.url, *more]

    def plan_start(self, *arguments, code=0):
        done = subprocess.run([ZEUS, "plan-start", *arguments], env=self.environment, text=True, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def series(self, rows, column="grams_per_kwh", name="grid.csv"):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"time,{column}\n" + "".join(f"{text(when)},{value}\n" for when, value in rows))
        return path

    def clean_later(self):
        """Dirty for five hours from now, clean for four, then dirty."""
        now = time.time()
        return self.series([(now - 3600, 400), (now + 5 * 3600, 100), (now + 9 * 3600, 400), (now + 48 * 3600, 400)])

    def test_a_training_waits_for_clean_power_and_is_judged_by_what_came(self):
        grid = self.grid()
        result = self.path("result.json")
        done = self.train(*self.waiting(grid, "--max-wait", "10min", "--json", result), *self.command("--out", "line"))
        self.assertIn("zeus: the run starts at", done.stderr)
        self.assertIn("less CO2e expected (carbonintensity.org.uk GB)", done.stderr)
        self.assertIn(" at the first moment, -75", done.stderr)
        with open(result, encoding="utf-8") as file:
            lessons = json.load(file)
        self.assertGreaterEqual(moment(lessons["trials"][0]["started_at"]), grid.clean_from)
        shift, = lessons["shifts"]
        self.assertGreater(shift["saved"]["amount"], 0)
        self.assertAlmostEqual(shift["at_once"]["amount"], 4 * shift["actual"]["amount"])
        self.assertEqual(shift["unit"], "g")

    def test_a_deadline_that_leaves_no_time_means_now(self):
        grid = self.grid(clean_after=3600)
        done = self.train(*self.waiting(grid, "--finish-by", text(time.time() + 3)), *self.command("--out", "line"))
        self.assertRegex(done.stderr, r"the run starts now and (may|will( most likely)?) end too late")
        self.assertIn("the run began at once", done.stderr)

    def test_a_service_that_fails_costs_no_training(self):
        grid = self.grid(clean_after=3600)
        grid.broken = True
        done = self.train(*self.waiting(grid, "--max-wait", "2h"), *self.command("--out", "line"))
        self.assertIn("status 503", done.stderr)
        self.assertIn("the run starts now", done.stderr)

    def test_a_signal_ends_the_wait_and_nothing_was_run(self):
        grid = self.grid(clean_after=3600)
        process = self.start_train(*self.waiting(grid, "--max-wait", "2h"), *self.command("--out", "line"))
        line = ""
        while "the run starts at" not in line:
            line = process.stderr.readline()
            self.assertTrue(line, "zeus ended without a plan")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), 128 + signal.SIGINT)
        self.assertEqual(self.trials(), [])

    def test_plan_start_only_looks(self):
        grid = self.clean_later()
        now = time.time()
        common = ["--shift", "carbon", "--carbon", grid, "--finish-by", text(now + 24 * 3600), "--duration", "3h"]
        advice = json.loads(self.plan_start(*common, "--power", "500", "--json").stdout)
        self.assertAlmostEqual(moment(advice["start_at"]), now + 5 * 3600, delta=60)
        self.assertEqual(advice["reason"], "gain")
        self.assertAlmostEqual(advice["expected"]["gain_percent"], 75, delta=0.1)
        shown = self.plan_start(*common).stdout
        self.assertIn("from now: 75", shown)
        self.assertIn("the latest start is", shown)
        begin = self.plan_start(*common, "--sbatch")
        self.assertRegex(begin.stdout, r"^--begin=now\+1\d{4}\n$")
        flat = self.series([(now - 60, 300), (now + 90000, 300)], name="flat.csv")
        self.assertEqual(self.plan_start("--shift", "carbon", "--carbon", flat, "--max-wait", "9h", "--duration", "1h", "--sbatch").stdout,
                         "--begin=now\n")

    def test_prices_and_tariffs_are_shifted_to(self):
        path = self.path("tariff.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write('currency = "EUR"\ntime_zone = "UTC"\n[[rate]]\nname = "night"\nhours = "22-6"\nprice = 0.2\n'
                       '[[rate]]\nname = "day"\nprice = 0.4\n')
        advice = json.loads(self.plan_start("--shift", "price", "--price", path, "--max-wait", "24h", "--duration", "2h", "--json").stdout)
        hour = int(advice["start_at"][11:13])
        self.assertTrue(hour >= 22 or hour < 6, advice)
        self.assertEqual(advice["expected"]["unit"], "EUR")
        self.assertEqual(advice["expected"]["gain_sigma"], 0)

    def test_the_history_of_a_job_says_how_long_it_takes(self):
        self.train(*self.options(sizes="64", source=[]), *self.itself(), *self.command("--out", "line"))
        grid = self.clean_later()
        advice = json.loads(self.plan_start("--shift", "carbon", "--carbon", grid, "--max-wait", "8h", "--job", "mnist", "--json").stdout)
        self.assertEqual(advice["run"]["recurrences"], 1)
        self.assertEqual(advice["run"]["duration_seconds"], 5)
        self.assertEqual(advice["run"]["power_watts"], 100)

    def test_a_look_at_a_job_that_never_ran_creates_no_database(self):
        done = self.plan_start("--shift", "carbon", "--carbon", self.clean_later(), "--max-wait", "8h", "--job", "mnist",
                               "--database", "sqlite://" + self.path("none.db"), code=3)
        self.assertIn("there is no such database", done.stderr)
        self.assertFalse(os.path.exists(self.path("none.db")))

    def test_a_run_that_cannot_end_in_time_is_told_so(self):
        grid = self.clean_later()
        shown = self.plan_start("--shift", "carbon", "--carbon", grid, "--finish-by", text(time.time() + 3600), "--duration", "3h").stdout
        self.assertIn("the run starts now and will end too late", shown)
        shown = self.plan_start("--shift", "carbon", "--carbon", grid, "--finish-by", text(time.time() + 10900), "--duration", "3h").stdout
        self.assertIn("the run starts now and may end too late", shown)

    def test_amounts_without_a_known_power_say_what_they_are_for(self):
        path = self.series([(time.time() - 60, 4e-6), (time.time() + 18000, 1e-6), (time.time() + 90000, 4e-6)], "EUR_per_kwh", "price.csv")
        shown = self.plan_start("--shift", "price", "--price", path, "--max-wait", "9h", "--duration", "1h").stdout
        self.assertIn("amounts are those of 1000 W: say --power", shown)
        self.assertNotIn("0.0000 EUR", shown)
        shown = self.plan_start("--shift", "price", "--price", path, "--max-wait", "9h", "--duration", "1h", "--power", "2000").stdout
        self.assertNotIn("--power", shown)
        self.assertIn("0.00000200 EUR", shown)

    def test_mistakes_are_one_sentence(self):
        grid = self.clean_later()
        old = self.series([(1000, 1), (2000, 1)], name="old.csv")
        broken = self.series([(1000, "nan")], name="nan.csv")
        shift = ["--shift", "carbon", "--duration", "1h"]
        for arguments, code, message in (
            (["--duration", "1h"], 2, "say --shift carbon or --shift price"),
            (["--shift", "carbon", "--max-wait", "1h", "--carbon", grid], 2, "say with --duration"),
            ([*shift, "--max-wait", "1h"], 2, "needs a source of intensities: --carbon"),
            ([*shift, "--carbon", grid], 2, "--shift needs --finish-by, or --max-wait"),
            ([*shift, "--carbon", grid, "--finish-by", "noon"], 2, "--finish-by takes a time"),
            ([*shift, "--carbon", grid, "--finish-by", "2020-01-01T00:00"], 2, "which is over"),
            ([*shift, "--carbon", grid, "--max-wait", "-1h"], 2, "--max-wait"),
            ([*shift, "--carbon", grid, "--max-wait", "12"], 2, "--max-wait 12 has no unit: write 12h, 12min or 12s"),
            ([*shift, "--carbon", grid, "--max-wait", "1h", "--forecast", "nowhere.csv"], 3, "--forecast: nowhere.csv"),
            ([*shift, "--carbon", old, "--max-wait", "1h"], 3, "no value near"),
            ([*shift, "--carbon", broken, "--max-wait", "1h"], 2, "out of range"),
            ([*shift, "--carbon", grid, "--max-wait", "1h", "--slurm-job", "1;reboot"], 2, "takes the number of a job"),
        ):
            with self.subTest(message=message):
                done = self.plan_start(*arguments, code=code)
                self.assertIn(message, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


@unittest.skipIf(slurm_testing.missing(), slurm_testing.missing())
class SlurmTest(unittest.TestCase):
    def test_a_job_waits_in_the_queue_and_is_moved_when_the_forecast_changes(self):
        cluster = slurm_testing.Cluster(nodes=1, gpus="1xV100", zeusd=False)
        self.addCleanup(cluster.stop)
        now = time.time()
        later, flat = cluster.path("later.csv"), cluster.path("flat.csv")
        for path, rows in ((later, [(now - 60, 400), (now + 7200, 50), (now + 14400, 400), (now + 90000, 400)]),
                           (flat, [(now - 60, 400), (now + 90000, 400)])):
            with open(path, "w", encoding="utf-8") as file:
                file.write("time,grams_per_kwh\n" + "".join(f"{text(when)},{value}\n" for when, value in rows))
        plan = [slurm_testing.ZEUS, "plan-start", "--shift", "carbon", "--max-wait", "12h", "--duration", "1h"]
        begin = cluster.run(*plan, "--carbon", later, "--sbatch").stdout.strip()
        job = cluster.submit("true", begin)
        shown = cluster.run("scontrol", "show", "job", str(job)).stdout
        self.assertIn("JobState=PENDING", shown)
        start = shown.split("StartTime=")[1].split()[0]
        self.assertAlmostEqual(time.mktime(time.strptime(start, "%Y-%m-%dT%H:%M:%S")), now + 7200, delta=120)
        # The new forecast has nothing to wait for.
        cluster.run(*plan, "--carbon", flat, "--slurm-job", str(job))
        cluster.await_end(job)
        again = cluster.run(*plan, "--carbon", flat, "--slurm-job", str(job), check=False)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("only a job that waits can be moved", again.stderr)


if __name__ == "__main__":
    unittest.main()
