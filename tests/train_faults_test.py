"""`zeus train` when things go wrong: odd output, lost GPUs, servers and runners that go away."""

import json
import os
import signal
import socket
import subprocess
import unittest

from sim_testing import ZEUS, wait_until
from train_testing import TrainTestCase

REGEX = ["--metric-regex", r"val_acc=([0-9.]+)"]


class OutputTest(TrainTestCase):
    def test_an_expression_that_matches_nothing_does_not_loop(self):
        self.train(*self.options(source=["--metric-regex", "([0-9.]*)"]), *self.itself(), "--eta",
                   "0", "--", "sh", "-c", "echo x 0.5 y; : {batch_size}; echo; echo 0.95")
        self.assertEqual(self.trials()[0]["epochs"], 2)

    def test_metrics_are_read_on_when_our_reader_has_gone(self):
        process = self.start_train(*self.options(), *self.itself(), "--eta", "0", *self.command(
            "--seconds", "0.1"))
        self.assertIn("epoch 1", process.stdout.readline())
        process.stdout.close()
        self.assertEqual(process.wait(timeout=60), 0)
        trial, = self.trials()
        self.assertEqual((trial["status"], trial["epochs"]), ("converged", 5))

    def test_python_does_not_buffer_unless_the_user_says_so(self):
        for given, seen in ((None, "1"), ("", "")):
            if given is not None:
                self.environment["PYTHONUNBUFFERED"] = given
            done = self.train(*self.options(), *self.itself(), "--eta", "0", "--", "sh", "-c",
                              'echo "val_acc=1 {batch_size} <$PYTHONUNBUFFERED>"')
            self.assertIn(f"<{seen}>", done.stdout)

    def test_epochs_that_come_in_lumps_are_no_slices(self):
        self.start("V100")
        program = ("import os, time\n"
                   "for lump in range(1, 4):\n"
                   "    time.sleep(1.5)\n"
                   "    os.write(1, b''.join(b'val_acc=%.2f\\n' % ((3 * lump - i) / 9.0)"
                   " for i in (2, 1, 0)))\n")
        done = self.train("--job", "lumps", "--batch-sizes", "8", "--default", "8", "--target",
                          "0.99", *REGEX, "--limits", "250,200", "--", "python3", "-c", program)
        self.assertEqual(done.stderr.count("come in lumps (3 at once)"), 1, done.stderr)
        trial, = self.trials("lumps")
        self.assertEqual((trial["status"], trial["epochs"]), ("converged", 9))
        arm, = json.loads(self.job("arms", "lumps", "--json"))["arms"]
        self.assertGreater(arm["epoch_cost_joules"], trial["cost_joules"] / 9 / 2)
        self.assertLess(arm["epoch_cost_joules"], trial["cost_joules"] / 9 * 2)
        self.assertFalse(os.path.exists(os.path.join(self.path("config"), "zeus", "power")))


class FaultTest(TrainTestCase):
    def test_a_gpu_that_is_lost_in_the_middle_ends_the_run(self):
        self.start("V100")
        process = self.start_train(*self.options(), *self.command(
            "--seconds", "0.3", "--most", "200", "--epochs", '{"64": 200}'))
        wait_until(lambda: self.reported_epochs() > 1, "no report came")
        self.sim("fault", "--gpu", "0", "--kind", "lost")
        _, errors = process.communicate(timeout=60)
        self.assertIn("measure the energy of gpu:0", errors)
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(self.trials()[0]["status"], "failed")

    def hang_in_the_middle(self, *arguments):
        """A run whose driver stops to answer after some epochs; a call then takes 60 s."""
        self.start("V100")
        process = self.start_train(*self.options(), "--driver-timeout", "2", "--stride", "100",
                                   *arguments)
        wait_until(lambda: self.reported_epochs() > 1, "no report came")
        self.sim("fault", "--gpu", "0", "--kind", "slow:60s")
        return process

    def test_a_driver_that_hangs_does_not_keep_signals_from_the_command(self):
        process = self.hang_in_the_middle(*self.command(
            "--seconds", "0.2", "--most", "2000", "--epochs", '{"64": 2000}'))
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, errors)
        self.assertIn("knobs restore", errors)
        self.assertEqual(self.trials()[0]["status"], "failed")

    def test_nothing_is_learned_from_a_run_whose_driver_hangs(self):
        process = self.hang_in_the_middle(*self.command(
            "--seconds", "0.2", "--epochs", '{"64": 30}'))
        _, errors = process.communicate(timeout=120)
        self.assertIn("did not answer within 2 s", errors)
        self.assertNotEqual(process.returncode, 0, errors)  # The limit may still be changed.
        trial, = self.trials()
        self.assertEqual((trial["status"], trial["epochs"]), ("converged", 30))
        self.assertTrue(trial["unmeasured"])
        self.assertLess(trial["time_seconds"], 60)

    def test_ctrl_c_is_answered_while_a_server_hangs(self):
        with socket.socket() as server:  # It accepts connections and never answers.
            server.bind(("127.0.0.1", 0))
            server.listen(8)
            process = self.start_train(
                "--server", f"http://127.0.0.1:{server.getsockname()[1]}", "--server-wait",
                "600s", *self.options(), *self.itself(), "--eta", "0", *self.command())
            connection, _ = server.accept()
            with connection:
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 128 + signal.SIGINT, errors)

    def test_output_is_read_also_where_standard_output_is_closed(self):
        command = [ZEUS, "train", *self.options(), *self.itself(), "--eta", "0", *self.command()]
        done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], env=self.environment,
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.trials()[0]["status"], "converged")

    def test_exit_code_1_of_the_command_ends_everything(self):
        done = self.train(*self.options(), *self.itself(), "--eta", "0", "--recurrences", "3", "--",
                          "sh", "-c", "echo val_acc=0.1 {batch_size}; exit 1", code=1)
        self.assertIn("zeus: the command ended with exit code 1\n", done.stderr)
        self.assertEqual(len(self.trials()), 1)
        done = self.train(*self.options("other"), *self.itself(), "--eta", "0", "--tries", "1",
                          "--", "sh", "-c", "echo val_acc=0.1 {batch_size}", code=1)
        self.assertIn("did not reach the target in 1 run\n", done.stderr)

    def test_databases_of_the_same_relative_name_are_not_mixed_up(self):
        for name in ("a", "b"):
            os.mkdir(self.path(name))
        command = [ZEUS, "train", "--database", "sqlite:z.db", *self.options(), *self.itself(),
                   "--eta", "0"]
        killed = subprocess.Popen([*command, *self.command("--seconds", "600")],
                                  cwd=self.path("a"), env=self.environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, killed)
        folder = os.path.join(self.path("data"), "zeus", "trials")
        wait_until(lambda: self.record(folder).get("trial") == 1, "no record was written")
        self.assertEqual(self.record(folder)["where"],
                         "sqlite://" + os.path.realpath(self.path("a/z.db")))
        killed.kill()
        killed.wait()
        for place, lost in (("b", False), ("a", True)):
            done = subprocess.run([*command, *self.command()], cwd=self.path(place), text=True,
                                  env=self.environment, capture_output=True, timeout=60)
            self.assertEqual("had lost its runner" in done.stderr, lost, done.stderr)
        self.assertEqual(os.listdir(folder), [])

    def test_a_runner_that_died_before_it_read_the_answer_leaves_no_trial(self):
        self.train(*self.options(), *self.itself(), "--eta", "0", *self.command())
        folder = os.path.join(self.path("data"), "zeus", "trials")
        where = "sqlite://" + os.path.realpath(os.path.join(self.path("data"), "zeus", "zeus.db"))
        gone = subprocess.Popen(["true"])
        gone.wait()
        record = {"schema": "zeus.running_trial/1", "where": where, "job": "mnist",
                  "request": "r", "trial": 0, "pid": gone.pid, "start_ticks": 1,
                  "pid_namespace": os.readlink("/proc/self/ns/pid")}
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "mnist-r.json"), "w", encoding="utf-8") as file:
            json.dump(record, file)
        done = self.train(*self.options(), *self.itself(), "--eta", "0", *self.command())
        self.assertIn("trial 2 had lost its runner", done.stderr)
        # On a busy machine a try may take so long that the policy stops it, and tries again.
        statuses = [trial["status"] for trial in self.trials() if trial["status"] != "stopped"]
        self.assertEqual(statuses, ["converged", "failed", "converged"])

    def test_a_signal_ends_the_wait_for_a_server_that_is_away(self):
        self.start("V100")
        server = subprocess.Popen(
            [ZEUS, "serve", "--listen", "127.0.0.1:0", "--database",
             f"sqlite://{self.path('served.db')}"], env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(self.end, server)
        url = server.stdout.readline().split()[2]
        self.addCleanup(server.stdout.close)
        self.environment["ZEUS_SERVER"] = url
        process = self.start_train(*self.options(), "--power-limit", "150", *self.command(
            "--seconds", "0.3", "--most", "12", "--epochs", '{"64": 100}'))
        wait_until(lambda: self.reported_epochs() > 0, "no report came")
        server.kill()
        server.wait()
        for line in process.stderr:
            if "wait for the server" in line:
                break
        self.assertEqual(self.limit(), 250)
        process.terminate()
        self.assertEqual(process.wait(timeout=30), 143)
        folder = os.path.join(self.path("data"), "zeus", "trials")
        self.assertEqual(self.record(folder)["trial"], 1)

    def test_a_silent_command_is_stopped_at_the_deadline(self):
        done = self.train(*self.options(), *self.itself(), "--eta", "0", "--deadline", "1s", "--",
                          "sh", "-c", "sleep 600; : {batch_size}", code=1)
        self.assertIn("did not reach the target", done.stderr)
        trial, = self.trials()
        self.assertEqual(trial["status"], "failed")
        self.assertIn("deadline", trial["reason"])

    def test_what_outlives_the_command_is_ended(self):
        self.train(*self.options(), *self.itself(), "--eta", "0", "--", "sh", "-c",
                   f"sleep 600 & echo $! > {self.path('rest')}; echo val_acc=0.95 {{batch_size}}")
        pid = self.read_pid("rest")
        wait_until(lambda: not self.runs(pid), "it lives on")

    def test_a_driver_that_does_not_answer_is_one_sentence_with_gpu_and_option(self):
        self.start("V100")
        self.sim("fault", "--gpu", "0", "--kind", "slow:60s")
        done = self.train(*self.options(), "--driver-timeout", "0.5", *self.command(), code=6)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertRegex(done.stderr,
                         "gpu:0: the driver did not answer within 0.5 s: .*--driver-timeout")

    def test_what_is_no_regular_file_is_refused_before_a_trial_begins(self):
        os.mkfifo(self.path("pipe"))
        for name in ("pipe", "."):
            done = self.train(*self.options(source=["--metric-file", self.path(name)]),
                              *self.itself(), *self.command(), code=2)
            self.assertIn("takes a regular file", done.stderr)

    def test_a_command_that_may_finish_and_fails_is_said(self):
        done = self.train(*self.options(), *self.itself(), "--eta", "0", "--let-finish", "--", "sh",
                          "-c", "echo val_acc=0.95 {batch_size}; sleep 0.3; exit 7", code=7)
        self.assertIn("ended with exit code 7 after it had reached the target", done.stderr)
        self.assertEqual(self.trials()[0]["status"], "converged")

    @staticmethod
    def record(folder):
        """The only one; empty while there is none."""
        try:
            name, = os.listdir(folder)
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return json.load(file)
        except (FileNotFoundError, ValueError):
            return {}


if __name__ == "__main__":
    unittest.main()
