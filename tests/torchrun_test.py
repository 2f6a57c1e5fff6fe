#!/usr/bin/env python3
"""`zeus run` in each process of torchrun on two virtual nodes: one report for all of them."""

import glob
import json
import os
import socket
import subprocess
import unittest

from sim_testing import ZEUS, SimTestCase

PYTHON = "/usr/bin/python3"  # That of Debian, for which torch is packaged.
PROGRAM = """
import os, subprocess, sys
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
print("ranks that train:", int(total.item()), flush=True)
subprocess.run([sys.argv[1], "sim", "load", "--gpu", os.environ["LOCAL_RANK"], "--watts", "200", "--seconds", "2"], check=True)
dist.barrier()
"""


def missing():
    if not os.path.exists(PYTHON) or subprocess.run([PYTHON, "-c", "import torch.distributed.run"], capture_output=True, check=False).returncode:
        return "there is no torch for Debian's Python: install python3-torch"
    if subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode:
        return "host names of virtual nodes need the right to unshare --uts"
    return None


MISSING = missing()


@unittest.skipIf(MISSING, MISSING)
class TorchrunTest(SimTestCase):
    def test_two_nodes_make_one_report(self):
        for name in list(self.environment):
            if name.startswith(("CUDA_", "HIP_", "OMPI_", "PMIX_", "SLURM_", "TORCHELASTIC")):
                del self.environment[name]
        for seed, node in enumerate(("n1", "n2"), 1):
            self.sim("start", "--name", node, "--gpus", "2xV100", "--seed", str(seed))
            self.addCleanup(self.run_sim, "stop", "--name", node)
        environment = dict(self.evaluated_environment("--name", "n1"), ZEUS_RANKS_DIR=os.path.join(self.directory.name, "ranks"),
                           GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
        report = os.path.join(self.directory.name, "report.json")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        logs = os.path.join(self.directory.name, "logs")
        agents = []
        for number, node in enumerate(("n1", "n2")):
            agents.append(subprocess.Popen(
                ["unshare", "--uts", "sh", "-c", 'hostname "$1" && shift && exec "$@"', "sh", node, PYTHON, "-m", "torch.distributed.run",
                 "--nnodes=2", f"--node_rank={number}", "--master_addr=127.0.0.1", f"--master_port={port}", "--nproc_per_node=2",
                 # torch 1.13 with Python 3.11 fails on other ways to show output than these, its default included.
                 "--redirects=1", "--tee=2", f"--log_dir={logs}", "--no_python", ZEUS, "run", "--per-node", "--json", report, "--", PYTHON, "-c", PROGRAM, ZEUS],
                env=dict(environment, ZEUS_SIM_NODE=node), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        for agent in agents:
            self.addCleanup(lambda agent=agent: (agent.kill(), agent.communicate()) if agent.poll() is None else None)
        ends = [agent.communicate(timeout=300) for agent in agents]
        errors = "".join(end[1] for end in ends)
        self.assertEqual([agent.returncode for agent in agents], [0, 0], errors)
        outputs = ""
        for path in glob.glob(f"{logs}/**/stdout.log", recursive=True):
            with open(path, encoding="utf-8") as file:
                outputs += file.read()
        self.assertEqual(outputs.count("ranks that train: 4"), 4)
        self.assertEqual(errors.count("zeus run:"), 1, errors)
        with open(report, encoding="utf-8") as file:
            told = json.load(file)
        self.assertEqual(sorted(told["total"]["contains"]), ["n1/gpu:0", "n1/gpu:1", "n2/gpu:0", "n2/gpu:1"])
        self.assertEqual(len(told["ranks"]["met"]), 4)
        for device in told["devices"]:  # Each was loaded for two seconds, and all of them.
            self.assertGreater(device["energy_joules"], 2 * 200 - 3 * device["energy_sigma_joules"])


if __name__ == "__main__":
    unittest.main()
