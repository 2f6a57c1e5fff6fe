#!/usr/bin/env python3
"""A power budget over four nodes, each a simulated one with a zeusd of its own: the true power never exceeds it, whoever is killed."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from serve_testing import Server
from sim_testing import SimTestCase, ZEUS, wait_until
from zeusd_testing import Daemon, ZEUSD

NODES = ["n1", "n2", "n3", "n4"]
GPUS = 2
LOWEST, HIGHEST = 100, 250  # Watts of a V100.
BUDGET = 1200
VALID = 10


class Truth(threading.Thread):
    """The true power of all nodes together, ten times a second, and when it was too much."""

    PERIOD = 0.1

    def __init__(self, test):
        super().__init__()
        self.samples = []  # Moment, watts, allowed watts.
        self.lock = threading.Lock()
        self.allowed = None  # None: not judged.
        self.done = threading.Event()
        self.looks = {node: [] for node in NODES}  # The three latest of each node.
        self.programs = [subprocess.Popen([ZEUS, "sim", "truth", "--name", node, "--every", str(self.PERIOD)],
                                          env=test.environment, stdout=subprocess.PIPE, text=True) for node in NODES]
        self.readers = [threading.Thread(target=self.read, args=pair) for pair in zip(NODES, self.programs)]
        for reader in self.readers:
            reader.start()

    def read(self, node, program):
        for line in program.stdout:
            watts = sum(gpu["power_watts"] for gpu in json.loads(line))
            with self.lock:
                self.looks[node] = [*self.looks[node], watts][-3:]

    def allow(self, watts):
        """Judges by so many watts from now on. What was read before does not count."""
        with self.lock:
            self.allowed = watts
            self.looks = {node: [] for node in NODES}

    def look(self):
        """The power of each node in its two latest looks; nothing before three of each, of which the first may be old."""
        with self.lock:
            looks = list(self.looks.values())
        # The nodes are not read at one moment: watts that move from one to another meanwhile would be seen
        # twice. They are lowered first, so that of two looks one saw them at the one node alone.
        return [min(look[1:]) for look in looks] if all(len(look) == 3 for look in looks) else None

    def run(self):
        while not self.done.wait(self.PERIOD):
            allowed = self.allowed
            watts = self.look()
            if watts is not None and allowed is not None and allowed == self.allowed:
                self.samples.append((time.monotonic(), sum(watts), allowed))

    def stop(self):
        self.done.set()
        if self.is_alive():
            self.join()
        for program in self.programs:
            program.kill()
        for reader in self.readers:
            reader.join()
        for program in self.programs:
            program.wait()
            program.stdout.close()

    def violations(self):
        return [sample for sample in self.samples if sample[1] > 1.01 * sample[2]]


class BudgetGrantsTest(SimTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="zeus-b-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.database = "sqlite://" + os.path.join(self.folder, "zeus.db")
        self.config = os.path.join(self.folder, "budget.toml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"""
[budget]
watts = {BUDGET}
reserve = 0.0
valid_seconds = {VALID}
report_seconds = 0.5
period_seconds = 1

[[domain]]
name = "rack"
watts = {BUDGET}
nodes = ["n[1-4]"]
""")
        self.daemons = {}
        for node in NODES:
            self.sim("start", "--name", node, "--gpus", f"{GPUS}xV100")
            self.addCleanup(self.run_sim, "stop", "--name", node)
        self.server = None
        self.port = None

    def environment_of(self, node):
        environment = self.evaluated_environment("--name", node)
        environment["ZEUS_KNOB_DIR"] = os.path.join(self.folder, node, "knobs")
        environment["ZEUS_ACTIVITY_DIR"] = os.path.join(self.folder, node)
        for name in ("CUDA_VISIBLE_DEVICES", "ZEUS_NVML_LIBRARY", "LOGS_DIRECTORY", "STATE_DIRECTORY"):
            environment.pop(name, None)
        return environment

    def start_server(self):
        listen = f"127.0.0.1:{self.port or 0}"
        self.server = Server("--database", self.database, "--budget", self.config, listen=listen)
        self.addCleanup(self.server.kill)
        self.port = self.server.address[1]

    def start_daemon(self, node):
        os.makedirs(os.path.join(self.folder, node), exist_ok=True)
        socket = os.path.join(self.folder, node, "zeusd.sock")
        daemon = Daemon(["--socket-path", socket, "--budget-server", f"http://127.0.0.1:{self.port}",
                         "--budget-node", node], self.environment_of(node))
        self.addCleanup(daemon.kill)
        self.daemons[node] = daemon

    def start_all(self):
        self.start_server()
        for node in NODES:
            self.start_daemon(node)
        for node in NODES:
            for gpu in range(GPUS):
                self.start_load("--name", node, "--gpu", str(gpu), "--watts", "400")
        wait_until(lambda: self.committed() > 0.97 * BUDGET, "the budget is not handed out")

    def budget(self):
        answer = self.server.ask("GET", "/v1/budget")
        self.assertEqual(answer.status, 200, answer.text)
        return answer.json

    def committed(self):
        return self.budget()["domains"][0]["committed_watts"]

    def caps(self):
        """The committed watts of all nodes by name."""
        return {node["name"]: node["committed_watts"] for node in self.budget()["nodes"]}

    def judge(self):
        truth = Truth(self)
        self.addCleanup(truth.stop)
        truth.allow(BUDGET)
        truth.start()
        return truth

    def finish(self, truth):
        wait_until(lambda: len(truth.samples) > 20, "nobody looks at the true power")
        truth.done.set()
        truth.join()
        self.assertEqual(truth.violations(), [])
        seconds = truth.samples[-1][0] - truth.samples[0][0]
        print(f"{len(truth.samples)} looks, {len(truth.samples) / max(seconds, 1):.1f} a second")
        return max(sample[1] for sample in truth.samples)

    def used(self):
        """Whether the watts are handed out again."""
        return self.committed() > 0.97 * BUDGET and all(not node["silent"] for node in self.budget()["nodes"])

    def test_killing_each_in_turn_never_lets_the_true_power_exceed_the_budget(self):
        self.start_all()
        truth = self.judge()
        for node in NODES:
            self.daemons[node].kill()
            wait_until(lambda n=node: any(one["silent"] for one in self.budget()["nodes"] if one["name"] == n),
                       "nobody misses a dead daemon")
            self.assertLessEqual(self.committed(), BUDGET + 0.001)
            self.start_daemon(node)
            wait_until(self.used, "the node does not come back")
        self.server.kill()
        # Without a server every node falls back by itself.
        wait_until(lambda: sum(truth.look() or [BUDGET]) < 1.01 * LOWEST * GPUS * len(NODES), "the nodes do not fall back")
        self.start_server()
        wait_until(self.used, "a server that starts again hands nothing out")
        highest = self.finish(truth)
        print(f"highest true power {highest:.0f} W of {BUDGET} W in {len(truth.samples)} looks")

    def enforced(self, node):
        """The watts to which the node's devices are limited, past daemon and server."""
        done = subprocess.run([ZEUS, "doctor", "--json", "--seconds", "0"], env=self.environment_of(node), text=True,
                              capture_output=True, timeout=60, check=False)
        return sum(gpu["power_limit"]["current"] for gpu in json.loads(done.stdout)["gpus"])

    def test_a_daemon_that_stays_dead_keeps_its_watts_reserved_until_it_is_forgotten(self):
        self.start_all()
        truth = self.judge()
        # The page counts caps that are planned and were not sent yet: only what a daemon was told has to outlast it.
        wait_until(lambda: self.enforced("n1") > 1.2 * LOWEST * GPUS, "n1 never gets more than its lowest limits")
        self.daemons["n1"].kill()
        time_of_death = time.monotonic()
        held = self.enforced("n1")
        self.assertGreater(held, 1.2 * LOWEST * GPUS)
        while time.monotonic() - time_of_death < VALID + 5:
            # Its devices keep the caps of its last grant: nobody else may have these watts.
            self.assertGreaterEqual(self.caps()["n1"], held - 0.001)
            time.sleep(0.1)
        self.assertEqual(self.enforced("n1"), held)
        self.assertLessEqual(self.committed(), BUDGET + 0.001)
        self.finish(truth)
        self.assertEqual(self.server.ask("DELETE", "/v1/nodes/n2").status, 409)
        self.assertEqual(self.server.ask("DELETE", "/v1/nodes/n1").status, 204)
        self.assertNotIn("n1", self.caps())

    def test_a_repair_without_the_daemon_leaves_budgeted_gpus_at_their_fallback(self):
        self.start_all()
        truth = self.judge()
        wait_until(lambda: self.enforced("n1") > 1.2 * LOWEST * GPUS, "n1 never gets more than its lowest limits")
        self.daemons["n1"].kill()
        done = subprocess.run([ZEUSD, "restore", "--all", "--state-dir", os.path.join(self.folder, "n1")],
                              env=self.environment_of("n1"), text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("stays at 100 W: the power budget has the watts above it (250 W before"), GPUS, done.stdout)
        self.assertEqual(self.enforced("n1"), LOWEST * GPUS)
        self.start_daemon("n1")
        wait_until(lambda: self.enforced("n1") > 1.2 * LOWEST * GPUS, "the daemon does not take its GPUs over again")
        wait_until(self.used, "the node does not come back")
        self.finish(truth)

    def test_a_lower_budget_holds_within_five_seconds_and_outlasts_the_server(self):
        self.start_all()
        truth = self.judge()
        truth.allow(None)
        lower = 900
        begin = time.monotonic()
        answer = self.server.ask("PUT", "/v1/budget", {"watts": lower})
        self.assertEqual(answer.status, 200, answer.text)
        wait_until(lambda: self.committed() <= lower + 0.001, "the budget is not lowered")
        took = time.monotonic() - begin
        truth.allow(lower)
        self.server.kill()
        self.start_server()
        wait_until(lambda: self.committed() > 0.9 * lower, "nothing is handed out again")
        self.assertEqual(self.budget()["domains"][0]["watts"], lower)
        self.finish(truth)
        print(f"the lower budget held after {took:.1f} s")

    def test_a_budget_that_was_hardly_meant_asks_for_a_confirmation(self):
        self.start_all()
        for watts in (10 * BUDGET, BUDGET / 10):
            answer = self.server.ask("PUT", "/v1/budget", {"watts": watts})
            self.assertEqual(answer.status, 409, answer.text)
            self.assertIn("confirm", answer.json["error"]["message"])
            self.assertEqual(self.budget()["domains"][0]["watts"], BUDGET)
        for bad in ({"watts": -1}, {"watts": "many"}, {}, {"watts": 1000, "domain": "rck"}):
            self.assertIn(self.server.ask("PUT", "/v1/budget", bad).status, (404, 422), bad)
        self.assertEqual(self.server.ask("PUT", "/v1/budget", {"watts": BUDGET / 10, "confirm": True}).status, 200)
        wait_until(lambda: self.budget()["infeasible"], "an impossible budget is not called so")
        self.assertGreater(self.budget()["missing_watts"], 0)

    def test_a_daemon_that_is_stopped_leaves_its_gpus_at_the_fallback(self):
        self.start_all()
        code, errors = self.daemons["n1"].stop(signal.SIGTERM)
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.enforced("n1"), LOWEST * GPUS)


if __name__ == "__main__":
    unittest.main()
