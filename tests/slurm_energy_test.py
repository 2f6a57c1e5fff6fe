#!/usr/bin/env python3
"""Energy of Slurm's jobs: sacct and zeusd against the simulation's truth, on exclusive and shared nodes, and however a job ends."""

import json
import os
import signal
import unittest

import slurm_testing
from sim_testing import wait_until
from slurm_plugins_test import SlurmTestCase

ROUNDING = 1.5  # Joules: sacct has whole ones, rounded at each end.


class SlurmEnergyTest(SlurmTestCase):
    arguments = {"nodes": 2, "gpus": "2xV100", "plugins": True, "accounting": True}

    def work(self, seconds, watts=250):
        """Shell commands that load the job's first GPU, and print the truth before and after."""
        zeus = slurm_testing.ZEUS
        return (f"{zeus} sim truth --json; {zeus} sim load --gpu ${{SLURM_JOB_GPUS%%,*}} --watts {watts} --seconds {seconds} >/dev/null; "
                f"{zeus} sim truth --json")

    def truths(self, job, gpu):
        """The energy of a GPU when the job's script began and when it ended, as the script printed it."""
        lines = [line for line in self.cluster.output(job).splitlines() if line.startswith("[")]
        text = self.cluster.output(job)
        decoder, values = json.JSONDecoder(), []
        at = text.find("[")
        while at >= 0:
            value, end = decoder.raw_decode(text, at)
            values.append(value[gpu]["energy_joules"])
            at = text.find("[", end)
        self.assertEqual(len(values), 2, lines)
        return values

    def sacct(self, job):
        """Energy by line, in joules: "12", "12.batch", "12.0"."""
        def lines():
            text = self.cluster.run("sacct", "-nPj", str(job), "-o", "JobID,ConsumedEnergyRaw,State").stdout
            return [line.split("|") for line in text.splitlines()]
        wait_until(lambda: lines() and all(state.split()[0] not in ("RUNNING", "PENDING") for _, _, state in lines()),
                   f"sacct does not have the end of job {job}: {lines()}")
        return {name: int(energy or 0) for name, energy, _ in lines()}

    def finished(self, script, *options, states=("COMPLETED",)):
        """Runs a job to its end: its number, its record, and the true energy of the node's GPUs around all of it."""
        node = self.cluster.names[0]
        before = self.cluster.truth(node)
        job = self.cluster.submit(script, "-w", node, *options)
        self.assertIn(self.cluster.await_end(job), states, self.cluster.output(job))
        wait_until(lambda: self.record(job)["state"] == "ended", "its epilog did not come")
        after = self.cluster.truth(node)
        around = [last["energy_joules"] - first["energy_joules"] for first, last in zip(before, after)]
        return job, self.record(job), around

    def assert_between(self, energy, least, most, sigma):
        self.assertGreater(energy, least - 3 * sigma - ROUNDING)
        self.assertLess(energy, most + 3 * sigma + ROUNDING)

    def test_a_step_of_srun_has_the_energy_of_the_jobs_gpu(self):
        job, record, around = self.finished(f"srun sh -c '{self.work(6)}'", "--gres=gpu:1")
        begin, end = self.truths(job, 0)
        self.assertGreater(end - begin, 1000)
        self.assert_between(record["energy_joules"], end - begin, around[0], record["sigma_joules"])
        self.assert_between(record["steps"]["0"]["energy_joules"], end - begin, around[0], record["sigma_joules"])
        energies = self.sacct(job)
        self.assert_between(energies[f"{job}.0"], end - begin, around[0], record["sigma_joules"])

    def test_a_batch_job_without_srun_has_its_energy_in_its_batch_line(self):
        job, record, around = self.finished(self.work(6), "--gres=gpu:1")
        begin, end = self.truths(job, 0)
        self.assert_between(record["energy_joules"], end - begin, around[0], record["sigma_joules"])
        self.assert_between(self.sacct(job)[f"{job}.batch"], end - begin, around[0], record["sigma_joules"])

    def test_jobs_on_a_shared_node_have_the_energy_of_their_own_gpus(self):
        node = self.cluster.names[0]
        before = self.cluster.truth(node)
        jobs = [self.cluster.submit(self.work(6, watts), "-w", node, "--gres=gpu:1") for watts in (120, 280)]
        for job in jobs:
            self.assertEqual(self.cluster.await_end(job), "COMPLETED", self.cluster.output(job))
            wait_until(lambda job=job: self.record(job)["state"] == "ended", "its epilog did not come")
        after = self.cluster.truth(node)
        for gpu, job in enumerate(jobs):
            record = self.record(job)
            self.assertEqual(record["devices"], self.uuids(gpu))
            begin, end = self.truths(job, gpu)
            around = after[gpu]["energy_joules"] - before[gpu]["energy_joules"]
            self.assert_between(record["energy_joules"], end - begin, around, record["sigma_joules"])
            self.assert_between(self.sacct(job)[f"{job}.batch"], end - begin, around, record["sigma_joules"])

    def test_a_cancelled_and_a_killed_job_have_what_they_used(self):
        node = self.cluster.names[0]
        for kill in (False, True):
            before = self.cluster.truth(node)[0]["energy_joules"]
            job = self.cluster.submit("srun " + slurm_testing.ZEUS + " sim load --gpu 0 --watts 250", "-w", node, "--gres=gpu:1")
            self.cluster.await_state(job, "RUNNING")
            self.addCleanup(self.end, job)
            # Slurm calls a job running before its prolog has told zeusd of it.
            wait_until(lambda: (self.record(job) or {"energy_joules": 0})["energy_joules"] > 800, "it does not work")
            least = self.cluster.truth(node)[0]["energy_joules"]
            known = self.record(job)["energy_joules"]
            if kill:
                for pid in self.cluster.stepds(job) + self.cluster.processes("sim load --gpu 0 --watts 250$"):
                    os.kill(pid, signal.SIGKILL)
            self.cluster.run("scancel", str(job))
            self.cluster.await_end(job)
            wait_until(lambda: self.record(job)["state"] == "ended", "its end was not noticed")
            record = self.record(job)
            most = self.cluster.truth(node)[0]["energy_joules"] - before
            self.assertGreaterEqual(record["energy_joules"], known)
            self.assert_between(record["energy_joules"], 800, most, record["sigma_joules"])
            self.assertLess(least - before, most)
            if not kill:
                self.assertGreater(self.sacct(job)[f"{job}.0"], 500)

    def test_steps_add_up_to_the_job_and_jobs_to_the_devices(self):
        script = f"srun sh -c '{self.work(3)}'; sleep 1; srun sh -c '{self.work(3)}' >/dev/null"
        job, record, _ = self.finished(script, "--gres=gpu:1")
        self.finished(self.work(2), "--gres=gpu:2")
        steps = sum(step["energy_joules"] for step in record["steps"].values())
        self.assertLessEqual(steps, record["energy_joules"] + 1e-6)
        self.assertGreater(record["steps"]["1"]["energy_joules"], 500)
        energies = self.sacct(job)
        # Slurm adds the steps of srun.
        self.assertAlmostEqual(energies[str(job)] or sum(energies[f"{job}.{step}"] for step in (0, 1)),
                               energies[f"{job}.0"] + energies[f"{job}.1"], delta=ROUNDING)
        answer = self.cluster.ask("n1", "GET", "/v1/jobs")[1]
        for device in answer["devices"]:
            shares = sum(share["energy_joules"] for one in answer["jobs"] for share in one["shares"] if share["device"] == device["device"])
            self.assertAlmostEqual(shares, device["of_jobs_joules"], delta=1e-6 * (1 + shares))
            parts = device["of_jobs_joules"] + device["shared_idle_joules"] + device["no_job_joules"]
            self.assertAlmostEqual(parts, device["energy_joules"], delta=1e-6 * (1 + parts))

    def test_a_job_on_two_nodes_has_the_energy_of_both(self):
        zeus = slurm_testing.ZEUS
        before = [self.cluster.truth(node)[0]["energy_joules"] for node in self.cluster.names]
        job = self.cluster.submit(f"srun {zeus} sim load --gpu 0 --watts 200 --seconds 5", "-N2", "--gres=gpu:1")
        self.assertEqual(self.cluster.await_end(job), "COMPLETED", self.cluster.output(job))
        records = []
        for node in self.cluster.names:
            wait_until(lambda node=node: self.cluster.job_record(node, job)["state"] == "ended", "its epilog did not come")
            records.append(self.cluster.job_record(node, job))
        most = sum(self.cluster.truth(node)[0]["energy_joules"] for node in self.cluster.names) - sum(before)
        sigma = sum(record["sigma_joules"] for record in records)
        self.assert_between(sum(record["energy_joules"] for record in records), 2 * 5 * 200 * 0.8, most, sigma)
        self.assert_between(self.sacct(job)[f"{job}.0"], 2 * 5 * 200 * 0.8, most, sigma)


class SlurmShardsTest(SlurmTestCase):
    """Slurm gives one GPU to several jobs."""

    arguments = {"nodes": 1, "gpus": "2xV100", "plugins": True, "shards": 4}

    def test_a_gpu_that_jobs_share_is_split_by_their_work_and_marked(self):
        idler = self.started("sleep 1000", "--gres=shard:2")
        worker = self.cluster.submit(f"{slurm_testing.ZEUS} sim load --gpu 0 --watts 250 --seconds 4", "--gres=shard:2")
        self.assertEqual(self.cluster.await_end(worker), "COMPLETED", self.cluster.output(worker))
        wait_until(lambda: self.record(worker)["state"] == "ended", "its epilog did not come")
        self.end(idler)
        wait_until(lambda: self.record(idler)["state"] == "ended", "its epilog did not come")
        records = [self.record(job) for job in (worker, idler)]
        self.assertEqual([record["devices"] for record in records], [self.uuids(0)] * 2)
        self.assertTrue(records[0]["shares"][0]["shared"])
        self.assertTrue(records[1]["shares"][0]["shared"])
        self.assertGreater(records[0]["energy_joules"], 400)
        self.assertLess(records[1]["energy_joules"], records[0]["energy_joules"] / 4)
        device = next(device for device in self.cluster.ask("n1", "GET", "/v1/jobs")[1]["devices"] if device["device"] == self.uuids(0)[0])
        parts = device["of_jobs_joules"] + device["shared_idle_joules"] + device["no_job_joules"]
        self.assertAlmostEqual(parts, device["energy_joules"], delta=1e-6 * device["energy_joules"])
        self.assertAlmostEqual(sum(record["energy_joules"] for record in records), device["of_jobs_joules"], delta=1e-6 * parts)


if __name__ == "__main__":
    unittest.main()
