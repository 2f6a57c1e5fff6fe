#!/usr/bin/env python3
"""zeus slurm: hooks of a site without SPANK, the comment with a job's energy, and its report."""

import json
import os
import shutil
import tempfile
import unittest

import slurm_testing
from sim_testing import wait_until
from slurm_plugins_test import HIGHEST, SlurmTestCase

HOOK = """#!/bin/sh
exec {zeus} slurm {hook} --socket "$(dirname "$SLURM_CONF")/%n/zeusd.sock" {options}
"""


class SlurmHooksTest(SlurmTestCase):
    """Prolog and Epilog of slurm.conf are commands; no plugin is loaded."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="zeus-hooks-", dir="/tmp")
        cls.addClassCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        settings = ""
        for hook, options in [("prolog", "--power-limit 150"), ("epilog", "--admin-comment")]:
            path = os.path.join(folder, hook)
            with open(path, "w", encoding="utf-8") as file:
                file.write(HOOK.format(zeus=slurm_testing.ZEUS, hook=hook, options=options))
            os.chmod(path, 0o755)
            settings += f"{hook.capitalize()}={path}\n"
        cls.arguments = {"nodes": 2, "gpus": "2xV100", "accounting": True, "settings": settings}
        super().setUpClass()

    def comment(self, job):
        text = self.cluster.run("sacct", "-nPXj", str(job), "-o", "AdminComment").stdout.strip()
        return json.loads(text.replace("`", '"'))["zeus"] if text else None

    def test_a_job_is_measured_limited_and_commented(self):
        job = self.started("sleep 1000", "--gres=gpu:1")
        self.assertEqual(self.record(job)["devices"], self.uuids(0))
        self.await_limits(150, HIGHEST)
        self.end(job)
        self.await_limits(HIGHEST, HIGHEST)
        wait_until(lambda: self.comment(job), "there is no comment")
        record = self.record(job)
        self.assertAlmostEqual(self.comment(job)["joules"], record["energy_joules"], delta=0.1)
        self.assertEqual(self.comment(job)["limit_watts"], 150)

    def test_nodes_of_a_job_add_up_in_its_comment(self):
        job = self.cluster.submit("srun sleep 1", "-N2", "--gres=gpu:1")
        self.cluster.await_end(job)
        wait_until(lambda: self.comment(job) and len(self.comment(job)["nodes"]) == 2, "a node is missing")
        energies = [self.cluster.job_record(node, job)["energy_joules"] for node in self.cluster.names]
        self.assertAlmostEqual(self.comment(job)["joules"], sum(energies), delta=0.2)

    def test_a_report_asks_the_daemons_that_are_named(self):
        job = self.started("sleep 1000", "--gres=gpu:1")
        self.end(job)
        done = self.cluster.run(slurm_testing.ZEUS, "slurm", "report", str(job), "--json", "--daemon", self.cluster.socket_path("n1"))
        self.assertAlmostEqual(json.loads(done.stdout)["energy_joules"], self.record(job)["energy_joules"], delta=0.1)

    def test_an_unknown_job_is_said_so(self):
        done = self.cluster.run(slurm_testing.ZEUS, "slurm", "report", "999999", check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("999999", done.stderr)

    def test_a_hook_outside_of_slurm_ends_well(self):
        done = self.cluster.run(slurm_testing.ZEUS, "slurm", "prolog", "--socket", self.cluster.path("none.sock"))
        self.assertIn("SLURM_JOB_ID", done.stderr)


if __name__ == "__main__":
    unittest.main()
