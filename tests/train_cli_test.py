"""`zeus train` on simulated GPUs: what it launches, measures, reports, stops and puts back."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest
import urllib.request

from report_testing import check_page
from sim_testing import ZEUS, wait_until
from train_testing import TrainTestCase

ROOT = pathlib.Path(__file__).parent.parent
REGEX = ["--metric-regex", r"val_acc=([0-9.]+)"]


class CommandLineTest(TrainTestCase):
    def test_mistakes_are_told_in_one_sentence_before_anything_runs(self):
        marker = self.path("ran")
        command = ["--", "touch", marker, "{batch_size}"]
        job = ["--job", "j", "--batch-sizes", "32,64", "--default", "64", "--target", "0.9"]
        for arguments, message in (
            ([*job, *REGEX, "--", "touch", marker], "does not contain {batch_size}"),
            (["--job", "j", "--batch-sizes", "32,64", "--default", "65", "--target", "1", *REGEX,
              *command], "--default 65 is not among"),
            ([*job, "--metric-regex", "val_acc=[0-9.]+", *command], "needs one group"),
            ([*job, "--metric-regex", "(((", *command], "--metric-regex takes a regular"),
            ([*job, "--metric-regex", "(a)(b)", *command], "needs one group"),
            (["--job", "j", "--batch-sizes", "32,64", "--default", "64", "--target", "nan", *REGEX,
              *command], "--target"),
            ([*job, *REGEX, "--policy", "luck", *command], "--policy takes"),
            ([*job, *REGEX, "--beta", "0.5", *command], "--beta takes"),
            ([*job, *REGEX, "--label", "x", *command], "--label takes"),
            ([*job, *REGEX, "--power-limit", "low", *command], "--power-limit takes"),
            ([*job, *REGEX, "--metric-file", "x", *command], "give one of them"),
            ([*job, *REGEX, "--lease", "0.1s", *command], "--lease must"),
            ([*job, *REGEX, "--slice", "1ms", *command], "--slice must"),
            ([*job, *REGEX, "--limits", "1,2,x", *command], "--limits takes"),
            ([*job, *REGEX, "--grace", "soon", *command], "--grace takes"),
            ([*job, *REGEX, "--", "touch", marker, "{batch_size}", "{lr}"], "say with --lr"),
            (["--job", "j", "--batch-sizes", "32,32", "--default", "32", "--target", "1", *REGEX,
              *command], "twice"),
            (["--job", "j", "--batch-sizes", "32,x", "--default", "32", "--target", "1", *REGEX,
              *command], "whole numbers"),
            (["--job", "j/k/l", "--batch-sizes", "32", "--default", "32", "--target", "1", *REGEX,
              *self.itself(), *command], "id"),
            ([*job, *REGEX, "--server", "ftp://x", *command], "no address"),
            ([*job, *REGEX, "--server", "http://x", "--database", "sqlite::memory:", *command],
             "give one of them"),
            ([*job, *REGEX], "say what to run"),
        ):
            with self.subTest(message=message):
                done = self.train(*arguments, code=2)
                self.assertIn(message, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertFalse(os.path.exists(marker))

    def test_a_command_that_is_not_there_is_found_out_before_a_job_is_made(self):
        script = self.path("train.sh")
        with open(script, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        for command, code, words in (("no-such-program", 127, "no such command in PATH"),
                                     (script, 126, "permission denied"),
                                     (script + ".gone", 127, "no such file or directory")):
            done = self.train(*self.options(), *self.itself(), "--", command, "{batch_size}",
                              code=code)
            self.assertIn(words, done.stderr)
            self.assertEqual(json.loads(self.job("list", "--json")), [])

    def test_a_command_whose_name_depends_on_the_run_is_127_when_it_is_not_there(self):
        self.train(*self.options(), *self.itself(), "--", "no-such-program-{batch_size}", code=127)
        self.assertEqual(self.trials()[0]["status"], "failed")

    def test_without_a_gpu_it_asks_who_measures(self):
        done = self.train(*self.options(), *self.command(), code=3)
        self.assertIn("--gpu-model and --max-power", done.stderr)

    def test_another_description_of_a_job_is_a_conflict(self):
        self.train(*self.options(), *self.itself(), "--eta", "0", *self.command())
        done = self.train(*self.options(), *self.itself(), "--eta", "1", *self.command(), code=9)
        self.assertIn("eta", done.stderr)
        self.train(*self.options(), *self.itself(), "--eta", "0", *self.command())

    def test_placeholders_and_environment(self):
        script = ('echo "val_acc=0.9 $ZEUS_BATCH_SIZE $ZEUS_LEARNING_RATE $ZEUS_JOB_ID $ZEUS_TRIAL '
                  '$ZEUS_RECURRENCE {batch_size} {lr} {job} {trial} {recurrence} {unknown} ${x}"')
        for scaling, rate in (("sqrt", "0.1"), ("linear", "0.1"), ("none", "0.1")):
            done = self.train(*self.options(job=scaling), *self.itself(), "--eta", "0",
                              "--lr", "0.1", "--lr-scaling", scaling, "--", "sh", "-c", script)
            self.assertIn(f"val_acc=0.9 64 {rate} {scaling} 1 0 64 {rate} {scaling} 1 0 "
                          "{unknown} \n", done.stdout)

    def test_a_learning_rate_has_bounds_of_its_own(self):
        for rate in ("-1", "1001", "90000"):
            done = self.train(*self.options(), *self.itself(), "--lr", rate, "--", "echo", "{lr}", code=2)
            self.assertIn("--lr", done.stderr)
            self.assertIn("1000", done.stderr)

    def test_the_learning_rate_follows_the_batch_size(self):
        for scaling, rate in (("sqrt", "0.05"), ("linear", "0.025"), ("none", "0.1")):
            done = self.train("--job", scaling, "--batch-sizes", "16", "--default", "16",
                              "--target", "0.9", *REGEX, *self.itself(), "--eta", "0", "--lr", "0.1",
                              "--lr-scaling", scaling, "--", "echo", "val_acc=1 {lr}")
            self.assertIn("val_acc=1 0.1\n", done.stdout)  # The default one's own rate.
            del rate


class LogTest(TrainTestCase):
    def test_every_event_is_a_line_for_programs(self):
        log = self.path("events.jsonl")
        for _ in range(2):  # The second session appends.
            self.train(*self.options(source=[]), *self.itself(), "--log", log, *self.command("--out", "line"))
        events = [json.loads(line) for line in pathlib.Path(log).read_text(encoding="utf-8").splitlines()]
        for event in events:
            self.assertRegex(event["time"], r"^\d{4}-\d\d-\d\dT.*Z$")
            self.assertEqual(event["job"], "mnist")
        names = [event["event"] for event in events]
        self.assertEqual((names.count("run_started"), names.count("run_ended")), (2, 2), names)
        epochs = [event["epoch"] for event in events if event["event"] == "epoch"]
        self.assertTrue(epochs)
        self.assertLessEqual(set(epochs), {1, 2, 3, 4, 5})
        ended = [event["trial"] for event in events if event["event"] == "run_ended"]
        self.assertEqual([(trial["status"], trial["energy_joules"]) for trial in ended],
                         [(trial["status"], trial["energy_joules"])
                          for trial in sorted(self.trials(), key=lambda one: one["number"])])

    def test_a_crash_is_in_the_log_and_standard_error_will_do(self):
        done = self.train(*self.options(source=[]), *self.itself(), "--log", "-", "--quiet",
                          *self.command("--out", "line", "--fail-after", "2"), code=42)
        lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('{"time":')]
        self.assertEqual((lines[-1]["event"], lines[-1]["exit_code"]), ("run_ended", 42))
        self.assertTrue(lines[-1]["failure"])

    def test_a_file_of_something_else_is_not_written_to(self):
        file = pathlib.Path(self.path("other.txt"))
        file.write_text("mine\n", encoding="utf-8")
        done = self.train(*self.options(source=[]), *self.itself(), "--log", str(file), *self.command("--out", "line"), code=2)
        self.assertIn("other.txt", done.stderr)
        self.assertEqual(file.read_text(encoding="utf-8"), "mine\n")


class MetricTest(TrainTestCase):
    def test_regex_on_both_streams_file_and_socket(self):
        file = self.path("epochs-{trial}.jsonl")
        for name, source, out in (
            ("stdout", None, "stdout"), ("stderr", None, "stderr"),
            ("file", ["--metric-file", file], file),
            ("line", [], "line"), ("post", [], "post"),
        ):
            with self.subTest(name):
                eta = ["--eta", "0"] if out.startswith("std") else []
                done = self.train(*self.options(job=name, source=source), *self.itself(), *eta,
                                  *self.command("--out", out))
                trial, = self.trials(name)
                self.assertEqual((trial["status"], trial["epochs"]), ("converged", 5))
                self.assertAlmostEqual(trial["metric"], 0.9)
                if eta:
                    self.assertIn("epoch 5: val_acc=0.9000\n", done.stdout + done.stderr)
                else:  # Its own report counts.
                    self.assertEqual(trial["energy_joules"], 500)
                    self.assertEqual(trial["time_seconds"], 5)

    def test_what_is_no_report_is_said_once(self):
        done = self.train(*self.options(source=["--metric-file", self.path("m")]), *self.itself(),
                          "--", "sh", "-c", f"echo x >> {self.path('m')}; echo y >> {self.path('m')}"
                          f"; echo '{{\"metric\": 1, \"energy_joules\": 1}}' >> {self.path('m')}"
                          "; true {batch_size}")
        self.assertEqual(done.stderr.count("not understood"), 1)
        self.assertEqual(self.trials()[0]["status"], "converged")

    def test_a_metric_that_is_no_number_does_not_reach_the_target(self):
        self.train(*self.options(source=["--metric-regex", r"loss=(\S+)"]), *self.itself(),
                   "--eta", "0", "--tries", "1", "--lower-is-better",
                   "--", "sh", "-c", "echo loss=nan; echo loss=5 {batch_size}", code=1)
        self.assertEqual(self.trials()[0]["epochs"], 2)

    def test_no_metric_is_an_error_and_teaches_nothing(self):
        done = self.train(*self.options(), *self.itself(), "--", "true", "{batch_size}", code=6)
        self.assertIn("told no metric", done.stderr)
        self.assertEqual(self.trials()[0]["status"], "failed")

    def test_energy_that_nobody_knows_ends_the_run(self):
        done = self.train(*self.options(), *self.itself(), *self.command(), code=6)
        self.assertIn("nothing tells the energy", done.stderr)
        self.assertEqual(self.trials()[0]["status"], "failed")


class EndTest(TrainTestCase):
    def test_recurrences_find_the_cheaper_batch_size(self):
        report = self.path("report.html")
        done = self.train(*self.options(source=["--metric-file", self.path("m")]), *self.itself(),
                          "--seed", "1", "--recurrences", "10", "--json", self.path("r.json"),
                          "--html", report, *self.command(
                              "--out", self.path("m"), "--seconds", "0",
                              "--epochs", '{"32": 20, "64": 10, "128": 4}'))
        self.assertIn("chosen: batch size 128", done.stderr)
        with open(self.path("r.json"), encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual(result["best_batch_size"], 128)
        self.assertEqual(result["at_best"]["energy_joules"], 400)
        self.assertIsNone(result["savings"]["saved"])
        self.assertEqual(len(result["recurrences"]), 10)
        with open(report, encoding="utf-8") as file:
            check_page(self, file.read(), "Recurring job mnist")
        self.job("check", "mnist")

    def test_a_crash_has_the_exit_code_of_the_command(self):
        self.train(*self.options(), *self.itself(), "--eta", "0", "--recurrences", "3",
                   *self.command("--fail-after", "2"), code=42)
        trial, = self.trials()
        self.assertEqual((trial["status"], trial["epochs"]), ("failed", 2))

    def test_a_program_that_gives_up_by_itself_is_stopped_and_tried_again(self):
        self.train(*self.options(), *self.itself(), "--eta", "0", "--tries", "2",
                   *self.command("--most", "2"), code=1)
        trials = self.trials()
        self.assertEqual([trial["status"] for trial in trials], ["stopped", "stopped"])
        self.assertEqual([trial["recurrence"] for trial in trials], [0, 0])

    def test_a_run_that_costs_too_much_is_killed_although_it_ignores_sigterm(self):
        source = ["--metric-file", self.path("m")]
        self.train(*self.options(source=source), *self.itself(), "--policy", "zeus", "--seed", "1",
                   "--recurrences", "4", "--grace", "200ms", *self.command(
                       "--out", self.path("m"), "--stubborn", "--seconds", "0.05", "--most", "400",
                       "--child", self.path("child"),
                       "--epochs", '{"32": 300, "64": 4, "128": 300}'))
        trials = self.trials()
        stopped = [trial for trial in trials if trial["status"] == "stopped"]
        self.assertTrue(stopped)
        for trial in stopped:
            self.assertLess(trial["epochs"], 20)
        self.assertFalse(self.runs(self.read_pid("child")))
        # Tried again within the same recurrence, until one reached the target.
        again = [trial for trial in trials if trial["attempt"] > 0]
        self.assertTrue(again)
        for number in {trial["recurrence"] for trial in trials}:
            last = [trial for trial in trials if trial["recurrence"] == number][-1]
            self.assertEqual(last["status"], "converged")

    def test_the_target_ends_a_program_that_would_go_on_unless_it_may_finish(self):
        done = self.train(*self.options(), *self.itself(), "--eta", "0",
                          *self.command("--seconds", "0.01", "--most", "6000"))
        self.assertNotIn("epoch 6000:", done.stdout)
        done = self.train(*self.options(), *self.itself(), "--eta", "0", "--let-finish",
                          *self.command("--seconds", "0.01", "--most", "60"))
        self.assertIn("epoch 60:", done.stdout)

    def test_a_signal_ends_the_run_and_the_command(self):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            child = f"child-{code}"
            process = self.start_train(*self.options(job=child), *self.itself(), "--eta", "0",
                                       "--grace", "200ms", *self.command(
                                           "--child", self.path(child), "--stubborn",
                                           "--epochs", '{"64": 3000}', "--most", "3000"))
            pid = self.read_pid(child)
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=60), code)
            self.assertFalse(self.runs(pid))
            trial, = self.trials(child)
            self.assertEqual((trial["status"], trial["reason"]), ("failed", "interrupted"))

    def test_two_at_once_share_a_job(self):
        file = self.path("epochs-{trial}.jsonl")
        both = [self.start_train(*self.options(source=["--metric-file", file]), *self.itself(),
                                 "--recurrences", "4", *self.command("--out", file))
                for _ in range(2)]
        for process in both:
            self.assertEqual(process.wait(timeout=100), 0, process.stderr.read())
        trials = self.trials()
        self.assertEqual({trial["status"] for trial in trials}, {"converged"})
        self.assertEqual(sorted({trial["recurrence"] for trial in trials}), list(range(8)))
        self.job("check", "mnist")


class ServerTest(TrainTestCase):
    def serve(self, listen, *arguments):
        """The address of a server, and its process."""
        process = subprocess.Popen(
            [ZEUS, "serve", "--listen", listen, "--database", f"sqlite://{self.path('served.db')}",
             *arguments], env=self.environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(self.end, process)
        line = process.stdout.readline()
        self.assertTrue(line.startswith("listening on "), line + process.stderr.read(0))
        return line.split()[2], process

    def test_a_job_on_a_server_over_tcp_and_over_a_socket(self):
        tokens = self.path("tokens")
        made = subprocess.run([ZEUS, "serve", "--tokens", tokens, "--new-token", "tester"],
                              env=self.environment, capture_output=True, text=True, timeout=60,
                              check=True)
        token = self.path("token")
        with open(token, "w", encoding="utf-8") as file:
            file.write(made.stdout.split()[-1] + "\n")
        for number, listen in enumerate(("127.0.0.1:0", f"unix:{self.path('socket')}")):
            url, process = self.serve(listen, "--tokens", tokens)
            self.environment["ZEUS_SERVER"] = url
            options = [*self.options(source=["--metric-file", self.path("m")]), *self.itself(),
                       "--seed", "1", "--recurrences", "2"]
            command = self.command("--out", self.path("m"), "--seconds", "0")
            self.assertIn("token", self.train(*options, *command, code=5).stderr)
            self.train(*options, "--token-file", token, *command)
            with open(token, encoding="utf-8") as file:
                self.environment["ZEUS_TOKEN"] = file.read().strip()
            self.assertEqual([trial["status"] for trial in self.trials()],
                             ["converged"] * 2 * (number + 1))
            self.assertIn("chosen: batch size", self.job("show", "mnist"))
            self.assertEqual(self.job("export", "mnist").count('"record":"trial"'),
                             2 * (number + 1))
            self.job("check", "mnist", code=4)
            self.job("show", "nobody", code=3)
            del self.environment["ZEUS_TOKEN"]
            process.terminate()
            process.wait(timeout=60)

    def written_epochs(self):
        with open(self.path("m"), encoding="utf-8") as file:
            return len(file.readlines())

    def test_a_run_goes_on_while_the_server_is_away(self):
        url, process = self.serve("127.0.0.1:0")
        self.environment["ZEUS_SERVER"] = url
        training = self.start_train(*self.options(source=["--metric-file", self.path("m")]),
                                    *self.itself(), *self.command(
                                        "--out", self.path("m"), "--seconds", "0.1",
                                        "--epochs", '{"64": 30}'))
        wait_until(lambda: self.reported_epochs() > 1, "no report came")
        process.kill()
        process.wait()
        trained = self.written_epochs()
        wait_until(lambda: self.written_epochs() > trained + 2, "the training does not go on")
        self.assertIsNone(training.poll())
        self.serve(url.removeprefix("http://"))
        self.assertEqual(training.wait(timeout=90), 0, training.stderr.read())
        trial, = self.trials()
        self.assertEqual((trial["status"], trial["epochs"]), ("converged", 30))

    def train_itself(self, *arguments, code=0):
        return self.train(*self.options(source=["--metric-file", self.path("m")]), *self.itself(),
                          "--server-wait", "1s", *arguments, *self.command(
                              "--out", self.path("m"), "--seconds", "0"), code=code)

    def test_training_starts_without_a_server_and_is_told_by_the_next_start(self):
        url, process = self.serve("127.0.0.1:0")
        self.environment["ZEUS_SERVER"] = url
        process.kill()
        process.wait()
        done = self.train_itself("--recurrences", "2")
        self.assertIn(f"no answer from {url}", done.stderr)
        self.assertIn("the training begins without it", done.stderr)
        self.serve(url.removeprefix("http://"))
        done = self.train_itself()
        trials = self.trials()
        self.assertEqual([(t["status"], t["batch_size"], t["epochs"]) for t in trials[:2]],
                         [("converged", 64, 5)] * 2)
        self.assertEqual(len(trials), 3)
        self.assertEqual([t["energy_joules"] for t in trials[:2]], [500, 500])
        database = f"sqlite://{self.path('served.db')}"
        del self.environment["ZEUS_SERVER"]
        self.assertIn("is what they make", self.job("check", "mnist", "--database", database))

    def test_training_starts_with_a_server_that_says_nothing_or_is_full(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.environment["ZEUS_SERVER"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
            self.assertIn("the training begins without it", self.train_itself().stderr)
        url, _ = self.serve("127.0.0.1:0", "--max-connections", "1")
        self.environment["ZEUS_SERVER"] = url
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as held:
            held.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertIn(b"200", held.recv(100))
            self.assertIn("the training begins without it", self.train_itself().stderr)

    def test_a_run_whose_server_does_not_come_back_is_told_by_the_next_start(self):
        url, process = self.serve("127.0.0.1:0")
        self.environment["ZEUS_SERVER"] = url
        go = self.path("go")
        # An epoch that seems to have taken next to no time is reported with the next one.
        script = (f'echo val_acc=0.1; sleep 1; echo val_acc=0.2; while [ ! -e {go} ]; do sleep 0.05; done; '
                  'echo val_acc=0.95; : {batch_size}')
        training = self.start_train(*self.options(), *self.itself(), "--eta", "0", "--", "sh", "-c",
                                    script)
        wait_until(lambda: self.reported_epochs() == 2, "no report came")
        process.kill()
        process.wait()
        with open(go, "w", encoding="utf-8"):
            pass
        error = training.communicate(timeout=200)[1]
        self.assertEqual(training.returncode, 0, error)
        self.assertIn("kept, and told by the next start", error)
        self.serve(url.removeprefix("http://"))
        self.train(*self.options(), *self.itself(), "--eta", "0", "--", "sh", "-c",
                   "echo val_acc=0.95; : {batch_size}")
        self.assertEqual([(t["status"], t["epochs"]) for t in self.trials()],
                         [("converged", 3), ("converged", 1)])

    def test_a_training_holds_no_connection(self):
        url, _ = self.serve("127.0.0.1:0")
        self.environment["ZEUS_SERVER"] = url
        go = self.path("go")
        training = self.start_train(
            *self.options(), *self.itself(), "--eta", "0", "--", "sh", "-c",
            f'echo val_acc=0.1; sleep 1; echo val_acc=0.2; while [ ! -e {go} ]; do sleep 0.05; done; '
            'echo val_acc=0.95; : {batch_size}')
        wait_until(lambda: self.reported_epochs() == 2, "no report came")

        def connections():
            with urllib.request.urlopen(url + "/metrics", timeout=60) as answer:
                text = answer.read().decode()
            return float(re.search(r"^zeus_server_connections (\S+)", text, re.MULTILINE)[1])

        # The one that asks is the only one.
        wait_until(lambda: connections() == 1, "the training holds a connection")
        with open(go, "w", encoding="utf-8"):
            pass
        self.assertEqual(training.wait(timeout=60), 0)


class PowerLimitTest(TrainTestCase):
    def setUp(self):
        super().setUp()
        self.start("V100")

    def load(self, *arguments):
        """A program whose epochs are of a simulated network, and that knows its steps."""
        script = (
            "import subprocess, sys, time, os\n"
            "load = subprocess.Popen([os.environ['ZEUS_BINARY'], 'sim', 'load', '--gpu', '0',"
            " '--workload', 'shufflenet', '--batch-size', sys.argv[1], '--progress'],"
            " stdout=subprocess.PIPE, text=True)\n"
            "seconds, most = float(sys.argv[2]), int(sys.argv[3])\n"
            "begin, epoch = time.monotonic(), 0\n"
            "for line in load.stdout:\n"
            "    print(line, end='', flush=True)\n"
            "    if time.monotonic() - begin > seconds * (epoch + 1):\n"
            "        epoch += 1\n"
            "        print(f'val_acc={epoch / most}', flush=True)\n"
            "        if epoch == most: break\n"
            "load.kill()\n")
        path = self.path("load.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        return ["--", "python3", "-B", path, "{batch_size}", *arguments]

    def job_of_one(self, name="one"):
        return ["--job", name, "--batch-sizes", "1024", "--default", "1024", "--target", "0.999",
                *REGEX]

    def test_limits_are_tried_in_slices_kept_and_used_again(self):
        quick = ["--limits", "250,175,100", "--slice", "500ms", "--warmup", "200ms",
                 "--progress-regex", r"step ([\d.]+)"]
        self.train(*self.job_of_one(), *quick, *self.load("0.5", "14"))
        self.assertEqual(self.limit(), 250)
        first, = self.trials("one")
        self.assertIn(first["power_limit_watts"], (175, 250, 100))
        profiles = os.listdir(os.path.join(self.path("config"), "zeus", "power"))
        self.assertEqual(len(profiles), 1)
        self.train(*self.job_of_one(), *quick, *self.load("0.3", "2"))
        second = self.trials("one")[-1]
        self.assertEqual(second["power_limit_watts"], first["power_limit_watts"])
        self.assertGreater(second["energy_joules"], 0)
        self.assertEqual(self.limit(), 250)

    def test_without_steps_an_epoch_is_a_slice_and_the_next_run_goes_on(self):
        self.train(*self.job_of_one(), "--limits", "250,200,150,100", *self.load("0.3", "3"))
        self.train(*self.job_of_one(), "--limits", "250,200,150,100", *self.load("0.3", "5"))
        folder = os.path.join(self.path("config"), "zeus", "power")
        name, = os.listdir(folder)
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            self.assertTrue(json.load(file)["complete"])
        self.assertEqual(self.limit(), 250)

    def test_a_baseline_leaves_the_limit_alone_and_says_so_to_the_command(self):
        limit = self.limit()
        script = 'echo "baseline=$ZEUS_BASELINE"; i=1; while [ $i -le 3 ]; do sleep 0.2; ' \
                 'echo "val_acc=0.3$i"; i=$((i+1)); done; echo "val_acc=0.95"'
        done = self.train(*self.options(), "--baseline", "2", "--recurrences", "1", "--limits",
                          "250,200", "--", "sh", "-c", script + " # {batch_size}")
        self.assertEqual(done.stdout.count("baseline=1"), 2)
        self.assertEqual(done.stdout.count("baseline=\n"), 1)
        self.assertIn("saved: not known yet: 1 recurrence of the job reached the target",
                      done.stderr)
        trials = self.trials()
        self.assertEqual([(t["role"] == "baseline", t["undisturbed"]) for t in trials],
                         [(True, True), (True, True), (False, False)])
        self.assertEqual([t["power_limit_watts"] for t in trials[:2]], [limit, limit])

    def run_until(self, job, file, *options):
        """A training whose epochs go on until there is such a file."""
        script = f'while [ ! -e {file} ]; do sleep 0.1; echo val_acc=0.1; done; echo val_acc=0.95'
        return self.start_train(
            "--job", job, "--batch-sizes", "8", "--default", "8", "--target", "0.9", "--max-epochs",
            "100000", "--power-limit", "found", *REGEX, *options, "--", "sh", "-c", script)

    def end_run(self, process, file):
        with open(file, "w", encoding="utf-8"):
            pass
        output = process.communicate(timeout=120)[1]
        self.assertEqual(process.returncode, 0, output)
        return output

    def test_two_on_one_gpu_get_their_parts_and_learn_nothing(self):
        alone, first, second = (self.path(name) for name in ("alone", "first", "second"))
        process = self.run_until("alone", alone)
        wait_until(lambda: self.reported_epochs("alone") >= 10, "no epochs")
        self.assertNotIn("other processes", self.end_run(process, alone))
        one = self.run_until("one", first)
        wait_until(lambda: self.reported_epochs("one") >= 2, "no epochs")
        two = self.run_until("two", second)
        wait_until(lambda: self.reported_epochs("two") >= 25, "no epochs")
        outputs = [self.end_run(two, second), self.end_run(one, first)]
        for output in outputs:
            self.assertIn("other processes use the GPUs of this run too", output)
        trials = {job: self.trials(job)[0] for job in ("alone", "one", "two")}
        power = {job: trial["energy_joules"] / trial["time_seconds"]
                 for job, trial in trials.items()}
        self.assertLess(power["two"], 0.7 * power["alone"])
        self.assertGreater(power["two"], 0.3 * power["alone"])
        self.assertEqual({job: trial["shared"] for job, trial in trials.items()},
                         {"alone": False, "one": True, "two": True})
        for job, runs in (("alone", 1), ("one", 0), ("two", 0)):
            result = json.loads(self.job("show", job, "--json"))
            self.assertEqual([arm["runs"] for arm in result["arms"]["arms"]], [runs], job)
            self.assertIn("is what they make", self.job("check", job))
        self.assertIn("shared GPU", self.job("trials", "two"))
        self.assertIn("without 1 run that shared GPUs", self.job("savings", "two"))

    def test_a_command_that_measures_itself_is_not_taken_for_another_process(self):
        script = ("import os, subprocess, sys\n"
                  "zeus = os.environ['ZEUS_BINARY']\n"
                  "subprocess.run([zeus, 'run', '--', 'sleep', '1.5'], check=True)\n"
                  "print('val_acc=0.95', flush=True)\n")
        done = self.train("--job", "self", "--batch-sizes", "8", "--default", "8", "--target", "0.9",
                          "--power-limit", "found", *REGEX, "--", "python3", "-c", script)
        self.assertNotIn("other processes", done.stderr)
        self.assertFalse(self.trials("self")[0]["shared"])

    def test_a_fixed_limit_is_put_back(self):
        process = self.start_train(*self.job_of_one(), "--power-limit", "150",
                                   *self.load("0.3", "10"))
        wait_until(lambda: self.limit() == 150, "the limit never came")
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertEqual(self.limit(), 250)
        self.assertEqual(self.trials("one")[0]["power_limit_watts"], 150)

    def test_after_kill_minus_nine_the_next_start_clears_up(self):
        child = self.path("child")
        process = self.start_train(*self.options(), "--power-limit", "150", *self.command(
            "--child", child, "--stubborn", "--seconds", "2", "--epochs", '{"64": 3000}'))
        pid = self.read_pid("child")
        wait_until(lambda: self.limit() == 150, "the limit never came")
        wait_until(lambda: self.reported_epochs() > 0, "no report came")
        process.kill()
        process.wait()
        wait_until(lambda: not self.runs(pid), "the command lives on")
        self.assertEqual(self.limit(), 150)
        self.assertEqual(self.trials()[0]["status"], "reporting")
        done = self.train(*self.options(), *self.command())
        self.assertIn("trial 1 had lost its runner", done.stderr)
        self.assertIn("put back to 250 W", done.stderr)
        self.assertEqual(self.limit(), 250)
        self.assertEqual([trial["status"] for trial in self.trials()], ["failed", "converged"])
        self.job("check", "mnist")


class MixedNodeTest(TrainTestCase):
    def test_gpus_without_a_common_limit_are_said_to_have_their_own(self):
        self.start("A100,V100")
        self.sim("fault", "--gpu", "1", "--kind", "no-permission")
        said = self.seen("train", *self.options(), *self.command())
        self.assertIn("the power limit is left alone: power limit of gpu:1", said)
        self.assertIn("each GPU at its own limit: reached the target", " ".join(said.split()))
        self.assertNotIn("limit unknown", said)


class ReadmeTest(TrainTestCase):
    """A reader pastes the blocks of the README, and they do what it says."""

    README = (ROOT / "README.md").read_text(encoding="utf-8")

    def block(self, first):
        """The rest of the block of commands from the line that begins with `first`."""
        block = re.search(rf"^({re.escape(first)} .*?)^```", self.README, re.MULTILINE | re.DOTALL)
        self.assertIsNotNone(block, f"the README has a block with {first}")
        return block.group(1)

    def setUp(self):
        super().setUp()
        self.environment["PATH"] = os.path.dirname(ZEUS) + ":" + self.environment["PATH"]

    def test_measuring_ends_and_prints_the_figures_of_the_readme(self):
        # On a busy machine the load must not be over before it is measured.
        script = self.block("zeus sim start").replace("--seconds 12 &", "--seconds 600 &")
        script = script.replace("\nwait ", "\nkill $!; wait ") + "zeus sim stop\n"
        self.assertIn("--seconds 600 &", script)
        done = subprocess.run(["bash", "-c", script], env=self.environment,
                              cwd=self.directory.name, capture_output=True, text=True, timeout=300,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        row = r"^  (gpu:\d) +([\d.]+) ± [\d.]+ J .*counter, \d+ updates$"
        written = dict(re.findall(row, self.README, re.MULTILINE))
        printed = dict(re.findall(row, done.stdout + done.stderr, re.MULTILINE))
        self.assertEqual(printed.keys(), written.keys(), done.stdout + done.stderr)
        for device, energy in written.items():
            self.assertAlmostEqual(float(printed[device]) / float(energy), 1, delta=0.3)

    def test_the_command_line_of_the_readme_trains_on_the_simulated_gpu(self):
        self.start("2xA100")
        os.mkdir(self.path("examples"))
        shutil.copy(ROOT / "examples/train.py", self.path("examples/train.py"))
        before = json.loads(self.sim("truth", "--json"))[0]["energy_joules"]
        done = subprocess.run(["bash", "-c", self.block("zeus train")], env=self.environment,
                              cwd=self.directory.name, capture_output=True, text=True, timeout=300,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"val_acc=0\.9[789]\d\d")
        (trial,) = self.trials()
        self.assertEqual(trial["status"], "converged")
        self.assertEqual(trial["batch_size"], 128)
        self.assertGreater(trial["epochs"], 5)  # Long enough for something to be learned.
        self.assertGreater(trial["energy_joules"], 0)
        self.assertIn(trial["power_limit_watts"], (400, 350, 300, 250))
        self.assertNotIn("Broken pipe", done.stderr)
        after = json.loads(self.sim("truth", "--json"))[0]["energy_joules"]
        self.assertGreater(after, before)
        # The load of the GPU has ended with the run.
        wait_until(lambda: json.loads(self.sim("truth", "--json"))[0]["power_watts"] < 60,
                   "the GPU is idle")

    def test_without_a_gpu_the_program_trains_as_well(self):
        done = subprocess.run([sys.executable, ROOT / "examples/train.py", "--epochs", "2"],
                              env=self.environment, capture_output=True, text=True, timeout=60,
                              check=True)
        self.assertEqual(len(re.findall(r"val_acc=0\.\d+", done.stdout)), 2)


if __name__ == "__main__":
    unittest.main()
