#!/usr/bin/env python3
"""Recurring jobs on Slurm: batch sizes are chosen when jobs begin, and no recurrence is lost or begun twice, whatever dies."""

import datetime
import json
import os
import signal
import subprocess
import sys
import threading
import unittest

import postgres_testing
import slurm_testing
from serve_testing import Server
from sim_testing import wait_until
from train_testing import PROGRAM

EPOCHS = {"32": 12, "64": 9, "128": 5, "256": 11}  # To the target; an epoch costs the same with each.
FINAL = ("converged", "stopped", "failed")


def missing():
    return slurm_testing.missing() or (None if postgres_testing.programs() else "there is no PostgreSQL server")


@unittest.skipIf(missing(), missing())
class SlurmTrainTest(unittest.TestCase):
    def setUp(self):
        self.cluster = slurm_testing.Cluster(nodes=4, gpus="1xV100")
        self.addCleanup(self.cluster.stop)
        self.database = postgres_testing.PostgresServer()
        self.addCleanup(self.database.stop)
        self.server = Server("--database", self.database.url)
        self.addCleanup(self.server.kill)
        self.program = self.cluster.path("program.py")
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        # Nodes have home folders of their own: no node finds another one's notes.
        with open(self.cluster.path("task_prolog.sh"), "a", encoding="utf-8") as file:
            file.write(f'echo "export XDG_DATA_HOME={self.cluster.folder}/$SLURMD_NODENAME/data"\n')
        self.environment = dict(self.cluster.environment, ZEUS_SERVER=self.server.url, XDG_DATA_HOME=self.cluster.path("data"),
                                XDG_CONFIG_HOME=self.cluster.path("config"))

    def words(self, seconds, job="mnist"):
        """The options of `zeus train` and its command; an epoch takes so many seconds, and says what it cost."""
        return ["--job", job, "--batch-sizes", "32,64,128,256", "--default", "64", "--target", "0.9", "--max-epochs", "30", "--seed", "3",
                "--power-limit", "found", "--gpu-model", "V100", "--max-power", "250", "--", sys.executable, "-B", self.program,
                "--batch-size", "{batch_size}", "--out", "line", "--epochs", json.dumps(EPOCHS), "--seconds", str(seconds)]

    def ask(self, path):
        answer = self.server.ask("GET", path)
        self.assertEqual(answer.status, 200, answer.text)
        return answer.json

    def trials(self, job="mnist"):
        answer = self.server.ask("GET", f"/v1/jobs/{job}/trials?limit=1000")
        return answer.json["trials"] if answer.status == 200 else []

    def begin(self, job):
        """Lets a job begin soon that Slurm would hold back for two minutes after it was requeued."""
        shown = self.cluster.run("scontrol", "-o", "show", "job", str(job), check=False).stdout
        line = next((line for line in shown.splitlines() if line.startswith(f"JobId={job} ")), "")  # Others are of its array.
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if words.get("JobState") != "PENDING" or words["EligibleTime"] == "Unknown":
            return
        eligible = datetime.datetime.fromisoformat(words["EligibleTime"])
        # Never in the second in which it was ended: by whole seconds slurmd compares when it withdrew the job's credential, and
        # refuses such a job ("already killed"), which is then FAILED.
        if eligible - datetime.datetime.now() > datetime.timedelta(seconds=10):
            self.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now+2", check=False)

    def assert_each_recurrence_reached_once(self, recurrences, job="mnist"):
        trials = self.trials(job)
        reached = sorted(trial["recurrence"] for trial in trials if trial["status"] == "converged")
        self.assertEqual(reached, list(range(recurrences)), trials)
        self.assertTrue(all(trial["status"] in FINAL for trial in trials), trials)
        self.assertEqual(len({trial["request_id"] for trial in trials}), len(trials))
        places = [(trial["recurrence"], trial["attempt"]) for trial in trials]
        self.assertEqual(len(set(places)), len(places), "a try is there twice")
        return trials

    def running_trial(self):
        """A trial under way: the number of its job, its node, and its own number."""
        found = []

        def look():
            young = {trial["request_id"].split("-s")[0]: trial["number"] for trial in self.trials() if trial["status"] not in FINAL}
            for line in self.cluster.run("squeue", "-h", "-t", "RUNNING", "-o", "%A %F %K %N", check=False).stdout.splitlines():
                job, array, index, node = line.split()
                if f"slurm:zeus.{array}_{index}" in young:
                    found[:] = job, node, young[f"slurm:zeus.{array}_{index}"]
            return found
        wait_until(look, "nothing runs")
        return found

    def frozen_trial(self):
        """The same for a trial that stays as it is, since nothing moves on its node any more."""
        while True:
            job, node, number = self.running_trial()
            pids = [*self.cluster.stepds(job), *self.processes_of(node)]
            self.signal_all(pids, signal.SIGSTOP)
            trial = next(trial for trial in self.trials() if trial["number"] == number)
            if trial["status"] not in FINAL:
                return job, node, number
            self.signal_all(pids, signal.SIGCONT)

    @staticmethod
    def signal_all(pids, number):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def processes_of(self, node):
        """Everything that runs on a virtual node for a job."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    variables = file.read().split(b"\0")
            except OSError:
                continue
            if f"SLURMD_NODENAME={node}".encode() in variables and f"SLURM_CONF={self.cluster.path('slurm.conf')}".encode() in variables:
                yield int(pid)

    def kill_node(self, node, job):
        """The node, which runs this job and is frozen, loses its power."""
        stepds = self.cluster.stepds(job)
        while pids := set(self.processes_of(node)) - set(stepds):
            self.signal_all(pids, signal.SIGKILL)
        self.signal_all(stepds, signal.SIGKILL)  # They can no longer tell that the job has ended.
        self.cluster.kill(f"slurmd-{node}")
        self.cluster.run("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=killed")

    def test_forty_recurrences_three_at_a_time_on_four_nodes_of_which_one_dies(self):
        launch = subprocess.Popen(
            [slurm_testing.ZEUS, "train", "--slurm", "--recurrences", "40", "--at-once", "3", "--slurm-options",
             f"--gres=gpu:1 --output={self.cluster.path('log', 'task-%a.out')}", *self.words(0.25)],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (launch.kill(), launch.communicate()) if launch.poll() is None else None)
        reached = lambda: sum(trial["status"] == "converged" for trial in self.trials())  # noqa: E731
        wait_until(lambda: reached() >= 10 or launch.poll() is not None, "no recurrence reaches the target")
        self.assertIsNone(launch.poll(), launch.poll() is not None and launch.communicate())
        victim, node, lost = self.frozen_trial()
        self.kill_node(node, victim)
        release = threading.Event()

        def let_requeued_begin():
            while not release.wait(0.5):
                self.begin(victim)
        helper = threading.Thread(target=let_requeued_begin)
        helper.start()
        try:
            _, errors = launch.communicate(timeout=500)
        finally:
            release.set()
            helper.join()
        victims = self.cluster.run("scontrol", "-o", "show", "job", victim, check=False).stdout
        self.assertEqual(launch.returncode, 0, errors + victims + "".join(
            self.cluster.log(name) for name in sorted(os.listdir(self.cluster.path("log"))) if name.startswith("task-")) + str(self.trials()))
        self.assertIn("40 of 40 tasks have ended well", errors)
        trials = self.assert_each_recurrence_reached_once(40)
        ended = next(trial for trial in trials if trial["number"] == lost)
        self.assertEqual((ended["status"], ended["reason"]), ("failed", "its task was started again"))

        history = self.cluster.path("history.jsonl")
        with open(history, "w", encoding="utf-8") as file:
            subprocess.run([slurm_testing.ZEUS, "job", "export", "mnist"], env=self.environment, stdout=file, check=True, timeout=60)
        replayed = subprocess.run([slurm_testing.ZEUS, "replay", "history", history, "--json"], capture_output=True, text=True,
                                  env=self.environment, timeout=60, check=False)
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        found = self.ask("/v1/jobs/mnist/arms")["best_batch_size"]
        print(f"{len(trials)} trials of 40 recurrences; batch size {found}", file=sys.stderr)
        self.assertEqual(found, json.loads(replayed.stdout)["best"]["batch_size"])
        self.assertEqual(found, 128)

    def test_a_requeued_job_goes_on_with_its_recurrence(self):
        self.assert_goes_on(1.5, attempt=0)  # The policy stops that try after two epochs.

    def test_so_does_a_job_that_is_requeued_in_a_second_try_after_the_policy_stopped_the_first(self):
        trials = self.assert_goes_on(0.5, attempt=1)
        self.assertEqual([trial["status"] for trial in trials if trial["recurrence"] == 1], ["stopped", "failed", "converged"], trials)

    def assert_goes_on(self, seconds, attempt):
        """With a requeue in the second recurrence, in the try of this number."""
        script = f"exec {slurm_testing.ZEUS} train --recurrences 2 " + " ".join(f"'{word}'" for word in self.words(seconds))
        job = self.cluster.submit(script, "--requeue", "--open-mode=append", f"--export=ALL,ZEUS_SERVER={self.server.url},"
                                  f"XDG_DATA_HOME={self.cluster.path('data')},XDG_CONFIG_HOME={self.cluster.path('config')}")
        under_way = lambda trial: (trial["recurrence"], trial["attempt"]) == (1, attempt) and trial["status"] not in FINAL  # noqa: E731
        wait_until(lambda: any(map(under_way, self.trials())), "the second recurrence does not come to that try")
        self.cluster.run("scontrol", "requeue", str(job))

        def ended():
            self.begin(job)
            return self.cluster.job_state(job) in ("COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "CANCELLED")
        wait_until(ended, f"job {job} does not end: {self.cluster.output(job)}")
        output = self.cluster.output(job)
        self.assertEqual(self.cluster.job_state(job), "COMPLETED", output + str(self.trials()))
        trials = self.assert_each_recurrence_reached_once(2)
        self.assertEqual([trial["reason"] for trial in trials if trial["status"] == "failed"], ["interrupted"], output)
        self.assertIn("recurrence 1 has reached the target in an earlier start", output)
        return trials

    def test_tasks_that_failed_are_run_again_by_a_job_that_depends_on_them(self):
        words = self.words(0.02)
        flaky = self.cluster.path("flaky.sh")
        with open(flaky, "w", encoding="utf-8") as file:  # The first try of task 2 fails.
            file.write('#!/bin/sh\n[ "$SLURM_ARRAY_TASK_ID$ZEUS_SLURM_RETRY" = 2 ] && exit 42\nexec "$@"\n')
        os.chmod(flaky, 0o755)
        words[words.index("--") + 1:words.index("--") + 1] = [flaky]
        done = subprocess.run(
            [slurm_testing.ZEUS, "train", "--slurm", "--recurrences", "3", "--slurm-retries", "1", "--slurm-options",
             f"--output={self.cluster.path('log', 'task-%A-%a.out')}", *words],
            env=self.environment, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 of 3 tasks have ended well", done.stderr)
        trials = self.assert_each_recurrence_reached_once(3)
        self.assertEqual(sum(trial["status"] == "failed" for trial in trials), 1)

    def test_what_cannot_work_is_refused_before_anything_is_submitted(self):
        for options, sentence in ((["--slurm-options", "--partition=nowhere"], "sbatch refuses the job"),
                                  (["--slurm-options", "--comment='x"], "quote that is not closed")):
            done = subprocess.run([slurm_testing.ZEUS, "train", "--slurm", *options, *self.words(0.1)], env=self.environment,
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(sentence, done.stderr)
        alone = dict(self.environment)
        del alone["ZEUS_SERVER"]
        done = subprocess.run([slurm_testing.ZEUS, "train", "--slurm", *self.words(0.1)], env=alone, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--slurm needs a place for the job that all nodes reach", done.stderr)
        self.assertEqual(self.cluster.run("squeue", "-h").stdout, "")


if __name__ == "__main__":
    unittest.main()
