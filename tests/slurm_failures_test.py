#!/usr/bin/env python3
"""Everything breaks once on a Slurm cluster: no job fails because of Zeus, no node is drained, and no limit outlives its job."""

import os
import signal
import socket
import struct
import sys
import threading
import time
import unittest

from sim_testing import wait_until
from slurm_plugins_test import HIGHEST, SlurmTestCase

LIMIT = 150


class FailureCase(SlurmTestCase):
    arguments = {"nodes": 1, "gpus": "2xV100", "plugins": True}

    def setUp(self):
        """A test that fails leaves what it has killed to this."""
        starts = {"slurmctld": self.cluster.start_slurmctld, "slurmd-n1": lambda: self.cluster.start_slurmd("n1"),
                  "zeusd-n1": self.restart_zeusd}
        for name, start in starts.items():
            if self.cluster.keeper.ended(self.cluster.pids[name]):
                start()

    def limited(self, script="sleep 1000", *options):
        """A job with a limit that holds."""
        job = self.started(script, "--gres=gpu:1", f"--zeus-power-limit={LIMIT}", *options)
        wait_until(lambda: LIMIT in self.cluster.limits("n1"), "the limit is not set")
        wait_until(lambda: "batch" in self.record(job)["steps"], "its step is not registered")
        return job

    def assert_healthy(self, *options):
        """No node is drained, and a job runs on it."""
        wait_until(lambda: set(self.cluster.node_states().values()) == {"idle"}, f"nodes are {self.cluster.node_states()}")
        self.assertEqual(self.cluster.run("srun", *options, "echo", "ran").stdout.strip(), "ran")
        self.await_limits(HIGHEST, HIGHEST)

    def await_limits(self, *watts):
        begin = time.monotonic()
        super().await_limits(*watts)
        print(f"{self._testMethodName}: limits are as they were after {time.monotonic() - begin:.2f} s", file=sys.stderr)

    def restart_zeusd(self):
        self.cluster.start_zeusd("n1")
        self.cluster.await_zeusd("n1")


class SlurmFailuresTest(FailureCase):
    def test_a_cancelled_job_leaves_no_limit(self):
        job = self.limited()
        self.cluster.run("scancel", str(job))
        self.await_limits(HIGHEST, HIGHEST)
        self.assert_healthy("--gres=gpu:1")

    def test_a_job_whose_processes_are_killed_leaves_no_limit(self):
        job = self.limited("exec sleep 1000", "--job-name=victim")
        self.cluster.run("scancel", "--signal=KILL", "--full", str(job))
        self.await_limits(HIGHEST, HIGHEST)
        self.cluster.await_end(job)
        self.assert_healthy("--gres=gpu:1")

    def test_slurmstepd_is_killed(self):
        job = self.limited()
        for pid in self.cluster.stepds(job):
            os.kill(pid, signal.SIGKILL)
        self.await_limits(HIGHEST, HIGHEST)
        self.assertEqual(self.record(job)["end_reason"], "nobody left")
        self.end(job)
        self.assert_healthy("--gres=gpu:1")

    def test_slurmd_is_killed_and_comes_back(self):
        job = self.limited("sleep 1000 & echo $! > pid; wait", f"--chdir={self.cluster.path('tmp-n1')}")
        self.cluster.kill("slurmd-n1")
        self.assertIn(LIMIT, self.cluster.limits("n1"))
        self.assertEqual(self.record(job)["state"], "running")
        # The job ends while nobody can run its epilog.
        with open(self.cluster.path("tmp-n1", "pid"), encoding="utf-8") as file:
            os.kill(int(file.read()), signal.SIGKILL)
        self.cluster.start_slurmd("n1")
        self.cluster.await_end(job)
        self.await_limits(HIGHEST, HIGHEST)
        self.assert_healthy("--gres=gpu:1")

    def test_zeusd_is_killed_and_the_job_goes_on_with_its_limit_and_energy(self):
        job = self.limited()
        wait_until(lambda: self.record(job)["energy_joules"] > 100, "it uses nothing")
        before, earliest, latest = self.record_between_truths(job)
        self.cluster.kill("zeusd-n1")
        self.assertIn(LIMIT, self.cluster.limits("n1"))
        self.restart_zeusd()
        self.assertIn(LIMIT, self.cluster.limits("n1"))
        after, later, last = self.record_between_truths(job)
        self.assertEqual(after["state"], "running")
        used = after["energy_joules"] - before["energy_joules"]
        sigma = 3 * after["sigma_joules"]
        self.assertLess(used, last - earliest + sigma)
        self.assertGreater(used, later - latest - sigma)
        self.end(job)
        self.await_limits(HIGHEST, HIGHEST)
        self.assert_healthy("--gres=gpu:1")

    def record_between_truths(self, job):
        """The record of a job on GPU 0, and the true energy of that GPU right before and right after."""
        before = self.cluster.truth("n1")[0]["energy_joules"]
        record = self.record(job)
        return record, before, self.cluster.truth("n1")[0]["energy_joules"]

    def test_zeusd_is_killed_with_the_job_it_limits(self):
        job = self.limited()
        self.cluster.kill("zeusd-n1")
        self.end(job)
        self.assertIn(LIMIT, self.cluster.limits("n1"), "nobody is there to put it back")
        self.restart_zeusd()
        self.await_limits(HIGHEST, HIGHEST)
        self.assert_healthy("--gres=gpu:1")

    def test_zeusd_is_away_when_a_job_starts(self):
        self.cluster.kill("zeusd-n1")
        job = self.started("sleep 1000", "--gres=gpu:1", f"--zeus-power-limit={LIMIT}")
        wait_until(lambda: "told when it comes back" in self.cluster.log("n1.log"), "the hook says nothing")
        self.restart_zeusd()
        wait_until(lambda: self.record(job) is not None, "the job is not known")
        self.assertGreater(self.record(job)["unrecorded_seconds"], 0)
        wait_until(lambda: self.record(job)["energy_joules"] > 0, "its energy is not counted")
        wait_until(lambda: LIMIT in self.cluster.limits("n1"), "the limit is not set")
        self.end(job)
        self.await_limits(HIGHEST, HIGHEST)
        self.assert_healthy("--gres=gpu:1")

    def test_after_a_reboot_the_job_has_ended_nobody_knows_how(self):
        job = self.limited()
        self.cluster.kill("zeusd-n1")
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            boot = file.read().strip()
        for name in ("jobs.json", "leases.json"):
            path = self.cluster.path("n1", name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            self.assertIn(boot, text)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(boot, "00000000-0000-4000-8000-000000000000"))
        self.restart_zeusd()
        self.assertEqual((self.record(job)["state"], self.record(job)["end_reason"]), ("ended", "unknown"))
        self.await_limits(HIGHEST, HIGHEST)
        self.end(job)
        self.assert_healthy("--gres=gpu:1")


class SlurmControllerTest(FailureCase):
    def test_slurmctld_is_killed_and_comes_back(self):
        job = self.limited()
        running = time.time()
        # A job that it has not written yet would be forgotten, and it writes what has changed.
        self.cluster.run("scontrol", "update", f"jobid={job}", "comment=saved")
        wait_until(lambda: os.path.getmtime(self.cluster.path("state", "job_state")) > running, "slurmctld does not save its state")
        self.cluster.kill("slurmctld")
        self.assertEqual(self.record(job)["state"], "running")
        self.cluster.start_slurmctld()
        wait_until(lambda: self.cluster.run("scontrol", "ping", check=False).returncode == 0, "slurmctld does not come back")
        self.cluster.await_state(job, "RUNNING")
        self.assertIn(LIMIT, self.cluster.limits("n1"))
        self.end(job)
        self.await_limits(HIGHEST, HIGHEST)
        # A slurmctld that was started again gives no GPUs to steps before each slurmd has registered anew.
        self.assert_healthy()


class BadDaemon:
    """Something in the place of zeusd that does what a broken one could do. `hits` counts its callers."""

    def __init__(self, path, manner):
        self.manner, self.hits, self.kept = manner, 0, []
        self.listening = socket.socket(socket.AF_UNIX)
        if os.path.exists(path):
            os.remove(path)
        self.listening.bind(path)
        self.listening.listen(16)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client = self.listening.accept()[0]
            except OSError:
                return
            self.hits += 1
            if self.manner == "silent":
                self.kept.append(client)
                continue
            with client:
                try:
                    self.answer(client)
                except OSError:
                    pass

    def answer(self, client):
        if self.manner == "crash":
            # The hook is at the other end: it crashes.
            pid = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                command = file.read()
            # Not slurmstepd of a step, nor slurmd: those are Slurm's own, and no hooks.
            if "spank" in command:
                os.kill(pid, signal.SIGSEGV)
            return
        client.settimeout(5)
        client.recv(65536)
        replies = {"garbage": b"\x00\xff" * 1000, "old": b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
                   "broken json": b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{\"id\":[[[", "closed": b"",
                   "cut": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"}
        if self.manner == "endless":
            while True:
                client.sendall(b"x" * 65536)
        client.sendall(replies[self.manner])

    def stop(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for client in self.kept:
            client.close()
        self.thread.join(10)


class SlurmBadDaemonTest(SlurmTestCase):
    arguments = {"nodes": 1, "gpus": "2xV100", "plugins": True, "zeusd": False}

    def run_with(self, manner):
        daemon = BadDaemon(self.cluster.socket_path("n1"), manner)
        self.addCleanup(daemon.stop)
        job = self.cluster.submit("srun echo step; echo batch", "--gres=gpu:1", "--zeus-power-limit=150")
        self.assertEqual(self.cluster.await_end(job), "COMPLETED")
        self.assertEqual(self.cluster.output(job).split(), ["step", "batch"])
        self.assertGreater(daemon.hits, 2, "prolog, epilog and steps have called it")
        wait_until(lambda: self.cluster.node_states() == {"n1": "idle"}, f"the node is {self.cluster.node_states()}")

    def test_a_hook_that_crashes_harms_nothing(self):
        self.run_with("crash")
        wait_until(lambda: "crashed with signal 11" in self.cluster.log("n1.log"), self.cluster.log("n1.log")[-2000:])

    def test_a_daemon_that_never_answers_harms_nothing(self):
        self.run_with("silent")

    def test_a_daemon_of_another_version_harms_nothing(self):
        self.run_with("old")

    def test_answers_that_are_none_harm_nothing(self):
        for manner in ["garbage", "broken json", "closed", "cut", "endless"]:
            with self.subTest(manner=manner):
                self.run_with(manner)

    def test_no_daemon_at_all_harms_nothing(self):
        self.assertEqual(self.cluster.run("srun", "--gres=gpu:1", "echo", "ran").stdout.strip(), "ran")
        wait_until(lambda: self.cluster.node_states() == {"n1": "idle"}, f"the node is {self.cluster.node_states()}")


if __name__ == "__main__":
    unittest.main()
