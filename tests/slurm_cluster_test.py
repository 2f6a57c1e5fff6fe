#!/usr/bin/env python3
"""The Slurm cluster that other tests use: jobs run on its nodes, and nothing is left of it, however its test ends."""

import glob
import os
import subprocess
import sys
import unittest

import slurm_testing
from sim_testing import wait_until

# A test that is killed: it tells the folder of its cluster and waits.
VICTIM = """
import sys
import slurm_testing
cluster = slurm_testing.Cluster(nodes=1, gpus="1xV100")
job = cluster.submit("sleep 1000", "--gres=gpu:1")
cluster.await_state(job, "RUNNING")
print(cluster.folder, flush=True)
sys.stdin.read()
"""


def processes_of(folder):
    """Those whose command or environment names the folder of a cluster."""
    found = []
    for path in glob.glob("/proc/[0-9]*"):
        for part in ("cmdline", "environ"):
            try:
                with open(f"{path}/{part}", encoding="utf-8", errors="replace") as file:
                    if folder in file.read():
                        found.append(path)
            except OSError:
                pass
    return found


@unittest.skipIf(slurm_testing.missing(), slurm_testing.missing())
class SlurmClusterTest(unittest.TestCase):
    def test_jobs_run_on_nodes_that_see_their_own_simulated_gpus(self):
        cluster = slurm_testing.Cluster(nodes=2, gpus="2xV100")
        self.addCleanup(cluster.stop)
        done = cluster.run("srun", "-N2", "--gres=gpu:2", "sh", "-c", f"echo $SLURMD_NODENAME; {slurm_testing.ZEUS} sim truth --json")
        for node in cluster.names:
            self.assertIn(node, done.stdout.split())
            for gpu in cluster.truth(node):
                self.assertIn(gpu["uuid"], done.stdout)
            self.assertEqual(cluster.ask(node, "GET", "/v1/node")[0], 200)
        uuids = [gpu["uuid"] for node in cluster.names for gpu in cluster.truth(node)]
        self.assertEqual(len(set(uuids)), 4)

    def test_nothing_is_left_of_a_test_that_is_killed(self):
        victim = subprocess.Popen([sys.executable, "-B", "-c", VICTIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  cwd=os.path.dirname(os.path.abspath(__file__)))
        folder = victim.stdout.readline().strip()
        self.assertTrue(os.path.isdir(folder))
        self.assertGreater(len(processes_of(folder)), 5)
        victim.kill()
        victim.communicate()
        wait_until(lambda: not processes_of(folder) and not os.path.exists(folder), "the cluster outlives its test")


if __name__ == "__main__":
    unittest.main()
