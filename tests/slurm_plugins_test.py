#!/usr/bin/env python3
"""The plugins on a real Slurm: jobs are registered with the right GPUs, get their limits, and lose them with their end."""

import json
import os
import re
import unittest

import slurm_testing
from sim_testing import wait_until

HIGHEST = 250  # Watts of a V100.


class SlurmTestCase(unittest.TestCase):
    """One cluster for all tests of a class."""

    arguments = {"nodes": 2, "gpus": "4xV100", "plugins": True}

    @classmethod
    def setUpClass(cls):
        reason = slurm_testing.missing(plugins=cls.arguments.get("plugins", False), accounting=cls.arguments.get("accounting", False),
                                       constrain=cls.arguments.get("constrain", False))
        if reason:
            raise unittest.SkipTest(reason)
        cls.cluster = slurm_testing.Cluster(**cls.arguments)
        cls.addClassCleanup(cls.cluster.stop)

    def started(self, script, *options):
        """Queues a job on the first node and waits until it runs: its number. It ends with the test."""
        job = self.cluster.submit(script, "-w", self.cluster.names[0], *options)
        self.addCleanup(self.end, job)
        # Slurm calls a job running while its prolog does.
        wait_until(lambda: self.cluster.stepds(job), f"job {job} does not start: {self.cluster.job_state(job)}")
        return job

    def end(self, job):
        self.cluster.run("scancel", str(job), check=False)
        self.cluster.await_end(job)

    def record(self, job):
        return self.cluster.job_record(self.cluster.names[0], job)

    def uuids(self, *positions):
        gpus = self.cluster.truth(self.cluster.names[0])
        return [gpus[position]["uuid"] for position in positions]

    def await_limits(self, *watts):
        node = self.cluster.names[0]
        wait_until(lambda: self.cluster.limits(node) == list(watts), f"limits are {self.cluster.limits(node)}, not {watts}")


class SlurmPluginsTest(SlurmTestCase):
    def test_jobs_on_one_node_have_the_gpus_that_slurm_gave_them(self):
        first = self.started("sleep 1000", "--gres=gpu:1", "--job-name=first job")
        second = self.started("sleep 1000", "--gres=gpu:2")
        self.assertEqual(self.record(first)["devices"], self.uuids(0))
        self.assertEqual(self.record(second)["devices"], self.uuids(1, 2))
        labels = self.record(first)["labels"]
        self.assertEqual((labels["partition"], labels["user"], labels["job_name"]), ("debug", "root", "first job"))

    def test_a_limit_begins_and_ends_with_its_job(self):
        job = self.started("sleep 1000", "--gres=gpu:2", "--zeus-power-limit=150")
        self.await_limits(150, 150, HIGHEST, HIGHEST)
        self.end(job)
        self.await_limits(HIGHEST, HIGHEST, HIGHEST, HIGHEST)
        self.assertEqual(self.record(job)["end_reason"], "deleted")

    def test_options_of_a_user_are_refused_before_there_is_a_job(self):
        for option, fix in [("--zeus=maybe", "off, measure, limit or optimize"), ("--zeus-power-limit=150W", "watts"),
                            ("--zeus-max-slowdown=0.5", "factor")]:
            for command in (["srun"], ["sbatch", "--wrap=true"]):
                done = self.cluster.run(command[0], option, *command[1:], *(["true"] if command[0] == "srun" else []), check=False)
                self.assertNotEqual(done.returncode, 0, option)
                self.assertIn(fix, done.stderr)
        self.assertEqual(self.cluster.run("squeue", "-h").stdout, "")

    def test_tasks_know_their_job_and_what_was_asked_for(self):
        done = self.cluster.run("srun", "--zeus=optimize", "--zeus-max-slowdown=1.05", "env")
        environment = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        self.assertEqual(environment["ZEUS_JOB"], f"slurm:zeus.{environment['SLURM_JOB_ID']}")
        self.assertEqual(environment["ZEUS_MODE"], "optimize")
        self.assertEqual(float(environment["ZEUS_MAX_SLOWDOWN"]), 1.05)
        self.assertNotIn("ZEUS_MODE", self.cluster.run("srun", "env").stdout)

    def test_a_program_that_looks_for_the_best_limit_keeps_to_the_slowdown(self):
        result = self.cluster.path(f"tmp-{self.cluster.names[0]}", "profile.json")
        zeus = slurm_testing.ZEUS
        # By energy alone the lowest would be the best, and steps take a third longer there.
        self.started(f"srun --zeus=optimize --zeus-max-slowdown=1.15 {zeus} profile --eta 1 --limits 250,225,125 --rounds 1 --slice 2s "
                     f"--warmup 200ms --progress 'step ([\\d.]+)' --json {result} -- "
                     f"{zeus} sim load --gpu 0 --workload shufflenet --batch-size 1024 --progress", "--gres=gpu:1")
        wait_until(lambda: os.path.exists(result), "no profile was written")
        self.await_limits(225, HIGHEST, HIGHEST, HIGHEST)

    def test_a_deadline_is_checked_and_handed_to_tasks(self):
        done = self.cluster.run("srun", "--zeus-deadline=2030-01-01T08:00", "env")
        self.assertIn("ZEUS_DEADLINE=2030-01-01T08:00", done.stdout.splitlines())
        done = self.cluster.run("srun", "--zeus-deadline=tomorrow", "true", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--zeus-deadline takes a date and time", done.stderr)

    def test_a_job_that_is_off_is_unknown(self):
        job = self.started("sleep 1000", "--gres=gpu:1", "--zeus=off", "--zeus-power-limit=150")
        self.assertIsNone(self.record(job))
        self.await_limits(HIGHEST, HIGHEST, HIGHEST, HIGHEST)

    def test_a_limit_that_the_gpu_does_not_know_leaves_the_job_alone(self):
        job = self.started("sleep 1000", "--gres=gpu:1", "--zeus-power-limit=20")
        self.assertIsNotNone(self.record(job))
        wait_until(lambda: "the power limit of slurm:zeus" in self.cluster.log("n1.log"), self.cluster.log("n1.log")[-2000:])

    def test_metrics_name_the_job_as_everything_else_does(self):
        job = self.started("sleep 1000", "--gres=gpu:1", "--job-name=named")
        wait_until(lambda: "job_name" in self.record(job)["labels"], "its batch step was not registered")
        text = self.cluster.ask("n1", "GET", "/metrics")[1]
        self.assertRegex(text, rf'zeus_job_energy_joules_total{{job="slurm:zeus.{job}",user="0",uuid="{self.uuids(0)[0]}"}}')
        self.assertRegex(text, rf'zeus_job_info{{[^}}]*job="slurm:zeus.{job}"[^}}]*job_name="named"[^}}]*partition="debug"')

    def test_a_node_shows_its_power(self):
        def watts():
            text = self.cluster.run("scontrol", "show", "node", "n1").stdout
            return int(re.search(r"CurrentWatts=(\d+)", text).group(1))
        wait_until(lambda: 50 < watts() < 4 * HIGHEST, "scontrol show node has no power")

    def test_an_allocation_outlives_its_steps(self):
        script = f"srun true; srun sh -c 'echo $SLURM_STEP_ID; sleep 1000'"
        job = self.started(script, "--gres=gpu:1")
        wait_until(lambda: {"0", "1", "batch"} <= set(self.record(job)["steps"]), "the steps were not registered")
        self.assertEqual(self.record(job)["state"], "running")


class SlurmSitePositionsTest(SlurmTestCase):
    """A site whose gres.conf lists its GPUs in another order than their device files have."""

    arguments = {"nodes": 1, "gpus": "2xV100", "plugins": True}

    def test_positions_are_those_of_the_configuration(self):
        with open(self.cluster.path("n1.toml"), "w", encoding="utf-8") as file:
            file.write(f"[slurm]\ngpus = {json.dumps(self.uuids(1, 0))}\n")
        self.cluster.kill("zeusd-n1", 15)
        self.cluster.start_zeusd("n1")
        self.cluster.await_zeusd("n1")
        job = self.started("sleep 1000", "--gres=gpu:1", "--zeus-power-limit=150")
        self.assertEqual(self.record(job)["devices"], self.uuids(1))
        self.await_limits(HIGHEST, 150)


class SlurmConstrainedTest(SlurmTestCase):
    """Jobs see their own device files only, and count them from 0."""

    arguments = {"nodes": 1, "gpus": "2xV100", "plugins": True, "constrain": True}

    def test_index_0_of_a_job_may_be_gpu_1(self):
        self.started("sleep 1000", "--gres=gpu:1")
        job = self.started("echo index $CUDA_VISIBLE_DEVICES; sleep 1000", "--gres=gpu:1", "--zeus-power-limit=150")
        wait_until(lambda: "index" in self.cluster.output(job), "the job prints nothing")
        self.assertIn("index 0", self.cluster.output(job))
        self.assertEqual(self.record(job)["devices"], self.uuids(1))
        self.await_limits(HIGHEST, 150)


if __name__ == "__main__":
    unittest.main()
