#!/usr/bin/env python3
"""`zeus run` in each rank of mpirun: one report for all ranks and nodes, in which nothing counts twice."""

import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from sim_testing import ZEUS, SimTestCase, wait_until

MPIRUN = os.environ["MPIRUN"]

# Ranks 0 and 1 are on node n1, the others on n2: each node has a host name and simulated GPUs of its own.
NODE = """
node=n$((OMPI_COMM_WORLD_RANK / 2 + 1))
export ZEUS_SIM_NODE=$node
exec unshare --uts sh -c 'hostname "$1" && shift && exec "$@"' sh $node "$@"
"""
# A rank looks at the truth of its node, loads its GPU, and looks again. Looks are written to the folder.
PROGRAM = """
import json, os, subprocess, sys
zeus, folder, seconds, task = sys.argv[1:]
rank = int(os.environ["OMPI_COMM_WORLD_RANK"])

def look(name):
    text = subprocess.run([zeus, "sim", "truth", "--json"], capture_output=True, check=True, text=True).stdout
    with open(f"{folder}/{name}-{rank}.part", "w") as file:
        file.write(text)
    os.rename(f"{folder}/{name}-{rank}.part", f"{folder}/{name}-{rank}")

look("begin")
load = subprocess.Popen([zeus, "sim", "load", "--gpu", str(rank % 2), "--watts", str(150 + 20 * rank), "--seconds", seconds])
load.wait()
if task == "dies" and rank == 1:
    look("end")
    os.kill(os.getpid(), 9)
look("end")
if task == "dies":
    import signal
    signal.pause()
"""


def may_have_hosts():
    return subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode == 0


@unittest.skipUnless(may_have_hosts(), "host names of virtual nodes need the right to unshare --uts")
class MpiRunTest(SimTestCase):
    def setUp(self):
        super().setUp()
        for name in list(self.environment):
            if name.startswith(("CUDA_", "HIP_", "OMPI_", "PMIX_", "SLURM_")):
                del self.environment[name]
        self.meeting = os.path.join(self.directory.name, "ranks")
        self.environment["ZEUS_RANKS_DIR"] = self.meeting
        for seed, node in enumerate(("n1", "n2"), 1):
            self.sim("start", "--name", node, "--gpus", "2xV100", "--seed", str(seed))
            self.addCleanup(self.run_sim, "stop", "--name", node)
        self.environment = self.evaluated_environment("--name", "n1")
        self.json = os.path.join(self.directory.name, "report.json")
        self.short = tempfile.TemporaryDirectory(prefix="zmpi-")  # Sockets are in it.
        self.addCleanup(self.short.cleanup)
        self.environment["TMPDIR"] = self.short.name

    def mpirun(self, *command, ranks=4, options=(), json_file=True):
        local = ["--mca", "plm", "isolated", "--mca", "btl", "self,vader", "--mca", "oob_tcp_if_include", "lo"]
        return subprocess.Popen(
            [MPIRUN, "--allow-run-as-root", "--oversubscribe", *local, "-n", str(ranks), "sh", "-c", NODE, "node", ZEUS, "run",
             *(["--json", self.json] if json_file else []), *options, "--", *command],
            env=self.environment, cwd=self.directory.name, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def finish(self, process):
        """The exit code and standard error."""
        try:
            _, errors = process.communicate(timeout=120)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        return process.returncode, errors

    def truth(self):
        """Exact joules of each GPU so far, by UUID."""
        return {gpu["uuid"]: gpu["energy_joules"] for node in ("n1", "n2")
                for gpu in json.loads(self.sim("truth", "--json", "--name", node))}

    def report(self):
        """Written by a process that the launcher does not wait for when it fails."""
        wait_until(lambda: os.path.exists(self.json), "no report")
        with open(self.json, encoding="utf-8") as file:
            return json.load(file)

    def looks(self, name):
        """The truth as ranks saw it: the sum of joules by node, for each of its ranks."""
        seen = {"n1": [], "n2": []}
        for rank in range(4):
            path = os.path.join(self.looked, f"{name}-{rank}")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    seen[f"n{rank // 2 + 1}"].append(sum(gpu["energy_joules"] for gpu in json.load(file)))
        return seen

    def program(self, seconds, task="loads"):
        self.looked = tempfile.mkdtemp(dir=self.directory.name)
        return [sys.executable, "-c", PROGRAM, ZEUS, self.looked, str(seconds), task]

    def assert_is_truth(self, report, before, after, least=0):
        """The sum is at least what ranks saw from their begin to their end, and at most what was used meanwhile."""
        total = report["total"]
        self.assertEqual(sorted(total["contains"]), ["n1/gpu:0", "n1/gpu:1", "n2/gpu:0", "n2/gpu:1"], report)
        begin, end = self.looks("begin"), self.looks("end")
        inside = sum(max(end[node]) - min(begin[node]) for node in begin if end[node])
        inside = max(inside, least)
        outside = sum(after.values()) - sum(before.values())
        energy, sigma = total["energy_joules"], total["energy_sigma_joules"]
        print(f"{energy:.1f} ± {sigma:.1f} J; ranks saw {inside:.1f} J of {outside:.1f} J", file=sys.stderr)
        self.assertGreaterEqual(energy, inside - 3 * sigma)
        self.assertLessEqual(energy, outside + 3 * sigma)

    def test_one_report_is_the_truth_of_both_nodes(self):
        before = self.truth()
        code, errors = self.finish(self.mpirun(*self.program(4), options=["--per-node"]))
        after = self.truth()
        self.assertEqual(code, 0, errors)
        self.assertEqual(errors.count("zeus run:"), 1, errors)
        report = self.report()
        self.assert_is_truth(report, before, after)
        self.assertEqual([node["host"] for node in report["ranks"]["nodes"]], ["n1", "n2"])
        self.assertEqual([rank["exit_code"] for rank in report["ranks"]["met"]], [0, 0, 0, 0])
        self.assertIn("ranks  4 on 2 nodes", errors)
        self.assertIn("2 GPUs, ranks 2-3", errors)
        for device in report["devices"]:
            self.assertNotIn("shared", device["flags"])
            self.assertEqual(device["attributed_joules"], device["energy_joules"])
        self.assertEqual(os.listdir(self.meeting), [])

    def test_a_rank_whose_program_dies_ends_the_launch_and_the_report_is_whole(self):
        before = self.truth()
        code, errors = self.finish(self.mpirun(*self.program(2, "dies")))
        self.assertNotEqual(code, 0)
        report = self.report()
        after = self.truth()
        self.assert_is_truth(report, before, after)
        self.assertEqual(report["ranks"]["met"][1]["exit_code"], 128 + signal.SIGKILL, errors)
        self.assertEqual(len(report["ranks"]["met"]), 4)

    def test_a_report_that_nobody_reads_any_more_is_kept_in_a_file(self):
        launch = self.mpirun(*self.program(1, "dies"), json_file=False)
        _, errors = self.finish(launch)
        wait_until(lambda: "zeus run:" in errors or glob.glob(f"{self.directory.name}/zeus-run-*.txt"), "no report")
        for path in glob.glob(f"{self.directory.name}/zeus-run-*.txt"):
            with open(path, encoding="utf-8") as file:
                errors += file.read()
        self.assertIn("rank 1 on n1: exit code 137", errors)

    def pids_of_ranks(self, process):
        """Those of `zeus run`, by rank."""
        found = {}
        for path in glob.glob("/proc/[0-9]*"):
            try:
                with open(f"{path}/environ", "rb") as file:
                    variables = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
                with open(f"{path}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                with open(f"{path}/stat", encoding="utf-8") as file:
                    session = int(file.read().rsplit(")", 1)[1].split()[3])
            except OSError:
                continue
            if session == process.pid and words[:2] == [ZEUS.encode(), b"run"]:
                found[int(variables[b"OMPI_COMM_WORLD_RANK"])] = int(os.path.basename(path))
        return found

    def await_begin(self):
        wait_until(lambda: sum(map(len, self.looks("begin").values())) == 4, "the ranks do not begin")

    def test_others_stand_in_for_a_rank_that_is_killed(self):
        for victim in (1, 0):  # Rank 0 has the chair.
            with self.subTest(victim=victim):
                before = self.truth()
                launch = self.mpirun(*self.program(3))
                self.await_begin()
                begun = sum(self.truth().values())
                wait_until(lambda: sum(self.truth().values()) > begun + 300, "the ranks do not load their GPUs")
                least = sum(self.truth().values()) - begun
                os.kill(self.pids_of_ranks(launch)[victim], signal.SIGKILL)
                code, _ = self.finish(launch)
                self.assertNotEqual(code, 0)
                report = self.report()
                after = self.truth()
                self.assert_is_truth(report, before, after, least)
                self.assertIsNone(report["ranks"]["met"][victim]["exit_code"], report["ranks"])
                os.unlink(self.json)

    def test_a_report_is_written_when_the_launcher_is_killed(self):
        before = self.truth()
        launch = self.mpirun(*self.program(3))
        self.await_begin()
        os.kill(launch.pid, signal.SIGKILL)
        self.finish(launch)
        report = self.report()
        self.assert_is_truth(report, before, self.truth())
        self.assertEqual(len(report["ranks"]["met"]), 4)

    def test_a_rank_that_never_comes_is_awaited_but_the_wait_is_not_part_of_the_run(self):
        environment = dict(self.environment, ZEUS_RANK="0", ZEUS_RANKS="2", ZEUS_RANKS_JOB="half a launch")
        begin = time.monotonic()
        done = subprocess.run([ZEUS, "run", "--json", self.json, "--", "true"], env=environment, capture_output=True, text=True,
                              timeout=120, check=False)
        waited = time.monotonic() - begin
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not met: rank 1", done.stderr)
        self.assertIn(f"awaited for 10 s in the folder {self.meeting}", done.stderr)
        self.assertLess(self.report()["time_seconds"], waited / 2, "of ten seconds half a second counts")

    def test_what_cannot_be_done_by_ranks_is_refused_and_alone_is_alone(self):
        code, errors = self.finish(self.mpirun("true", options=["--repeat", "2"]))
        self.assertNotEqual(code, 0)
        self.assertIn("--repeat is not possible in each of several ranks", errors)
        code, errors = self.finish(self.mpirun("true", ranks=2, options=["--alone"]))
        self.assertEqual(code, 0, errors)
        self.assertEqual(errors.count("zeus run: true"), 2)


if __name__ == "__main__":
    unittest.main()
