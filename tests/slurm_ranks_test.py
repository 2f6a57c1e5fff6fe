#!/usr/bin/env python3
"""`zeus run` in each task of srun, also with PMIx: one report for the nodes of a real Slurm, in which nothing counts twice."""

import json
import os
import signal
import sys
import unittest

import slurm_testing
from sim_testing import wait_until

MPI_PROGRAM = os.environ.get("MPI_PROGRAM", "build/release/tests/mpi_program")
PROGRAM = """
import os, subprocess, sys
zeus, seconds = sys.argv[1:]
subprocess.run([zeus, "sim", "load", "--gpu", os.environ["SLURM_LOCALID"], "--watts", str(150 + 20 * int(os.environ["SLURM_PROCID"])),
                "--seconds", seconds], check=True)
"""


@unittest.skipIf(slurm_testing.missing(), slurm_testing.missing())
class SlurmRanksTest(unittest.TestCase):
    def setUp(self):
        self.cluster = slurm_testing.Cluster(nodes=2, gpus="2xV100")
        self.addCleanup(self.cluster.stop)
        self.json = self.cluster.path("report.json")

    def srun(self, *options, seconds=4, before=()):
        return ["srun", "-N2", "-n4", "--ntasks-per-node=2", "--gres=gpu:2", *options, slurm_testing.ZEUS, "run", "--per-node", "--json",
                self.json, "--", *before, sys.executable, "-c", PROGRAM, slurm_testing.ZEUS, str(seconds)]

    def run_ranks(self, *command):
        return self.cluster.run(*command, check=False, timeout=200, ZEUS_RANKS_DIR=self.cluster.path("ranks"),
                                OMPI_MCA_btl="self,tcp", OMPI_MCA_pml="ob1")

    def truth(self):
        return {gpu["uuid"]: gpu["energy_joules"] for node in self.cluster.names for gpu in self.cluster.truth(node)}

    def assert_is_truth(self, before, after, ranks=4):
        wait_until(lambda: os.path.exists(self.json), "no report")
        with open(self.json, encoding="utf-8") as file:
            report = json.load(file)
        total = report["total"]
        self.assertEqual(sorted(total["contains"]), ["n1/gpu:0", "n1/gpu:1", "n2/gpu:0", "n2/gpu:1"], report)
        self.assertEqual(len(report["ranks"]["met"]), ranks)
        outside = sum(after.values()) - sum(before.values())
        energy, sigma = total["energy_joules"], total["energy_sigma_joules"]
        print(f"{energy:.1f} ± {sigma:.1f} J of {outside:.1f} J", file=sys.stderr)
        self.assertLessEqual(energy, outside + 3 * sigma)
        # No GPU takes less than its idle power.
        for device in report["devices"]:
            busy = report["time_seconds"] * 25
            self.assertGreater(device["energy_joules"], busy)
        return report

    def test_one_report_for_the_tasks_of_srun(self):
        before = self.truth()
        done = self.run_ranks(*self.srun())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("zeus run:"), 1, done.stderr)
        self.assertIn("ranks  4 on 2 nodes", done.stderr)
        report = self.assert_is_truth(before, self.truth())
        self.assertEqual([node["host"] for node in report["ranks"]["nodes"]], ["n1", "n2"])

    def test_ranks_of_mpi_find_each_other_and_so_do_their_reports(self):
        if "pmix" not in self.cluster.run("srun", "--mpi=list").stdout:
            self.skipTest("this Slurm has no PMIx")
        before = self.truth()
        both = ["sh", "-c", '"$1" combine && shift && exec "$@"', "sh", MPI_PROGRAM]
        done = self.run_ranks(*self.srun("--mpi=pmix", seconds=2, before=both))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line.split(":")[0] for line in done.stdout.splitlines() if line.startswith("rank ")]
        self.assertEqual(sorted(lines), [f"rank {rank} of 4" for rank in range(4)])
        self.assertEqual(done.stderr.count("zeus run:"), 1, done.stderr)
        self.assert_is_truth(before, self.truth())

    def test_only_gpus_that_tasks_may_use_count(self):
        command = ["srun", "-N2", "-n2", "--gres=gpu:2", "env", "CUDA_VISIBLE_DEVICES=1", *self.srun(seconds=1)[5:]]
        done = self.run_ranks(*command)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.json, encoding="utf-8") as file:
            self.assertEqual(sorted(json.load(file)["total"]["contains"]), ["n1/gpu:1", "n2/gpu:1"])

    def task(self, rank):
        """The process of `zeus run` that srun knows as this task; None before it has begun."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    variables = file.read().split(b"\0")
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                    parent = int(file.read().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            ours = f"SLURM_CONF={self.cluster.path('slurm.conf')}".encode() in variables
            if ours and f"SLURM_PROCID={rank}".encode() in variables and words[:2] == [slurm_testing.ZEUS.encode(), b"run"]:
                found[int(pid)] = parent
        return next((pid for pid, parent in found.items() if parent not in found), None)

    def test_a_task_that_is_killed_is_in_the_report_of_the_others(self):
        before = self.truth()
        self.cluster.start("srun-ranks", self.srun(seconds=4), dict(self.cluster.environment, ZEUS_RANKS_DIR=self.cluster.path("ranks")))
        wait_until(lambda: sum(gpu["power_watts"] > 100 for node in self.cluster.names for gpu in self.cluster.truth(node)) == 4, "no load")
        os.kill(self.task(3), signal.SIGKILL)
        wait_until(lambda: os.path.exists(self.json), "no report")
        report = self.assert_is_truth(before, self.truth())
        self.assertIsNone(report["ranks"]["met"][3]["exit_code"])
        self.assertEqual([rank["exit_code"] for rank in report["ranks"]["met"][:3]], [0, 0, 0])


if __name__ == "__main__":
    unittest.main()
