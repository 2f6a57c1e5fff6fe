#!/usr/bin/env python3
"""`zeus budget show|set|target|export` against a real `zeus serve --budget`, and what they say when there is none."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
import unittest

from serve_testing import Server, ServeTestCase, ZEUS
from sim_testing import wait_until

BUDGET = """
[budget]
watts = 1000
reserve = 0.1
valid_seconds = 10
report_seconds = 3
period_seconds = 1

[[domain]]
name = "rack-1"
watts = 500
nodes = ["n[1-2]"]

[[domain]]
name = "rack-2"
watts = 600
nodes = ["n[3-4]"]
"""


class Node:
    """Reports one GPU as zeusd does, and obeys its grants at once."""

    def __init__(self, server, name, utilization=1.0, token=None):
        self.server = server
        self.name = name
        self.token = token
        self.sequence = 0
        self.applied = 0
        self.device = {"id": "GPU-" + name, "model": "V100", "lowest_watts": 100, "highest_watts": 300, "cap_watts": 100,
                       "fallback_watts": 100, "power_watts": 90, "utilization": utilization}

    def report(self):
        self.sequence += 1
        body = {"session": "one", "sequence": self.sequence, "applied": self.applied, "guarded": True, "devices": [self.device]}
        answer = self.server.ask("POST", f"/v1/nodes/{self.name}/report", body, token=self.token)
        if answer.status == 200:
            self.applied = answer.json["number"]
            self.device["cap_watts"] = answer.json["caps"][0]["cap_watts"]
            self.device["power_watts"] = 0.99 * self.device["cap_watts"]
        return answer


class BudgetCommandsTest(ServeTestCase):
    def setUp(self):
        super().setUp()
        self.environment = {key: value for key, value in os.environ.items() if key not in ("ZEUS_SERVER", "ZEUS_TOKEN")}
        self.file = self.path("budget.toml")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(BUDGET)

    def start(self, *arguments):
        self.server = self.serve("--budget", self.file, *arguments)
        return self.server

    def run_budget(self, *arguments, code=0, url=None, token=None):
        environment = dict(self.environment)
        if token:
            environment["ZEUS_TOKEN"] = token
        done = subprocess.run([ZEUS, "budget", *arguments, "--server", url or self.server.url], env=environment, text=True,
                              capture_output=True, timeout=100, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def shown(self):
        return json.loads(self.run_budget("show", "--json", "--jobs").stdout)

    def report_until(self, nodes, condition, what):
        def look():
            for node in nodes:
                node.report()
            return condition()
        wait_until(look, what)

    def test_show_says_what_is_committed_and_who_pays(self):
        self.start()
        nodes = [Node(self.server, "n1"), Node(self.server, "n2"), Node(self.server, "n3"), Node(self.server, "n4", utilization=0.0)]
        self.report_until(nodes, lambda: self.shown()["domains"][0]["committed_watts"] > 840, "the budget is not handed out")
        budget = self.shown()
        self.assertEqual([domain["name"] for domain in budget["domains"]], ["site", "rack-1", "rack-2"])
        self.assertEqual(budget["domains"][0]["limit_watts"], 900)
        self.assertEqual({job["name"] for job in budget["jobs"]}, {"n1/GPU-n1", "n2/GPU-n2", "n3/GPU-n3"})
        text = self.run_budget("show", "--jobs").stdout
        self.assertRegex(text, r"rack-1 +site +500\.0 W +450\.0 W")
        self.assertRegex(text, r"n4 +rack-2 +1 +\S+ W +reports")
        self.assertIn("1 idle GPU keeps ", text)
        self.assertNotIn("n4/GPU-n4", text)

    def test_set_shows_the_effect_asks_and_sets(self):
        self.start()
        nodes = [Node(self.server, name) for name in ("n1", "n2", "n3", "n4")]
        self.report_until(nodes, lambda: self.shown()["domains"][0]["committed_watts"] > 840, "the budget is not handed out")
        refused = self.run_budget("set", "800", code=2)
        self.assertIn("800.0 W for the site would mean:\n  mean slowdown ", refused.stdout)
        self.assertIn("nobody is there to confirm it: say --yes", refused.stderr)
        self.assertEqual(self.shown()["domains"][0]["watts"], 1000)
        done = self.run_budget("set", "800", "--yes")
        self.assertTrue(done.stdout.endswith("set; the nodes follow with their next reports\n"), done.stdout)
        # The next look shows it, also in what follows from it.
        site = self.shown()["domains"][0]
        self.assertEqual((site["watts"], site["limit_watts"]), (800, 720))
        self.report_until(nodes, lambda: self.shown()["domains"][0]["committed_watts"] <= 720.001, "the nodes do not follow")
        self.run_budget("set", "480", "--domain", "rack-2", "--yes")
        self.assertEqual(self.shown()["domains"][2]["watts"], 480)
        self.assertIn("is there a digit too many?", self.run_budget("set", "100000", "--yes").stdout)
        self.assertIn("is there a digit too many?", self.run_budget("show").stdout)
        for node in nodes:  # A node that has fallen silent is no job.
            node.report()
        little = self.run_budget("set", "200", "--yes").stdout
        self.assertIn("are missing", little)
        self.assertTrue(self.shown()["infeasible"])
        self.assertIn("did you mean rack-1?", self.run_budget("set", "400", "--domain", "rack-3", "--yes", code=3).stderr)

    def test_targets_come_and_go(self):
        self.start()
        times = ("--start", "2036-11-20T17:00:00Z", "--end", "2036-11-20T20:00:00Z")
        self.assertIn("a target needs", self.run_budget("target", "--start", "2036-11-20T17:00:00Z", code=2).stderr)
        listed = self.run_budget("target", *times, "--watts", "400", "--domain", "rack-2", "--reason", "the grid").stdout
        self.assertRegex(listed, r"target-1 +rack-2 +2036-11-20T17:00:00Z +2036-11-20T20:00:00Z +400\.0 W +the grid")
        self.assertRegex(self.run_budget("target", *times, "--usual").stdout, r"target-2 +site +\S+ +\S+ +as usual")
        target, other = json.loads(self.run_budget("target", "--json").stdout)["targets"]
        self.assertEqual((target["watts"], other["watts"]), (400, None))
        self.assertEqual(self.run_budget("target", "--remove", "target-1").stdout, "removed\n")
        self.assertIn("there is no target", self.run_budget("target", "--remove", "target-1", code=3).stderr)
        self.assertNotIn("target-1", self.run_budget("target").stdout)

    def test_export_is_a_line_for_slurm(self):
        self.start()
        self.assertEqual(self.run_budget("export", "--slurm").stdout, "Licenses=watts:900\n")

    def test_a_node_reports_with_its_own_token_and_others_are_told_so(self):
        tokens = self.path("tokens")

        def make(*arguments):
            done = subprocess.run([ZEUS, "serve", "--tokens", tokens, "--new-token", *arguments], capture_output=True, text=True,
                                  timeout=60, check=True)
            return re.search(r"zeus_\w+|\S{30,}", done.stdout).group()

        node, admin = make("node:n1", "--namespace", "nodes"), make("chief")
        self.start("--tokens", tokens)
        self.assertIn(Node(self.server, "n1", token=node).report().status, (200, 503))
        for name, token, called in (("n2", node, "node:n1"), ("n1", admin, "chief")):
            answer = Node(self.server, name, token=token).report()
            self.assertEqual(answer.status, 403)
            self.assertIn(f"the token is called {called}, but only the token that is called node:{name} may report for {name}",
                          answer.json["error"]["message"])
        self.assertEqual(self.run_budget("export", "--slurm", token=admin).stdout, "Licenses=watts:900\n")
        self.assertEqual(self.server.ask("POST", "/v1/nodes/a%2F..%2Fb/report", {}, token=admin).status, 422)

    def test_a_server_that_never_answers_is_named_soon(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            accepted = []

            def accept():
                while True:
                    try:
                        accepted.append(silent.accept()[0])
                    except OSError:
                        return
            thread = threading.Thread(target=accept, daemon=True)
            thread.start()
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            for arguments in (("show",), ("set", "800", "--yes"), ("target",), ("export", "--slurm")):
                done = self.run_budget(*arguments, url=url, code=6)
                self.assertIn(url, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            # Each asks twice at most.
            self.assertLessEqual(len(accepted), 2 * 4)
            silent.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=60)
            for connection in accepted:
                connection.close()

    def test_a_server_without_a_budget_says_so(self):
        self.server = self.serve()
        self.assertEqual(self.run_budget("show", code=3).stdout, "")

    def test_a_pipe_is_no_budget(self):
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        code, error = self.refused("--database", "sqlite://" + self.path("zeus.db"), "--listen", "127.0.0.1:0", "--budget", pipe)
        self.assertEqual(code, 2)
        self.assertIn("a budget is read from a regular file", error)

    def test_prometheus_and_openapi_know_the_budget(self):
        self.start()
        self.report_until([Node(self.server, "n1")], lambda: len(self.shown()["jobs"]) == 1, "the node is not taken in")
        metrics = self.server.ask("GET", "/metrics").text
        for line in ('zeus_budget_watts{domain="site"} 1000', 'zeus_budget_limit_watts{domain="rack-1"} 450',
                     'zeus_budget_nodes{state="reports"} 1', "zeus_budget_missing_watts 0", 'zeus_budget_slowdown{of="mean"}'):
            self.assertIn(line, metrics)
        document = self.server.ask("GET", "/openapi.json").json
        schemas = document["components"]["schemas"]
        for path, method, status, name, body in (("/v1/budget", "get", "200", "Budget", self.server.ask("GET", "/v1/budget").json),
                                                 ("/v1/budget/jobs", "get", "200", "BudgetJobs",
                                                  self.server.ask("GET", "/v1/budget/jobs").json)):
            content = document["paths"][path][method]["responses"][status]["content"]["application/json"]
            self.assertEqual(content["schema"], {"$ref": "#/components/schemas/" + name})
            self.assertEqual(set(schemas[name]["required"]), set(body))
        self.assertEqual(document["paths"]["/v1/nodes/{name}/report"]["post"]["requestBody"]["content"]["application/json"]["schema"],
                         {"$ref": "#/components/schemas/NodeReport"})

    def test_a_server_whose_budget_another_one_took_says_that_its_picture_is_old(self):
        self.start()
        second = Server("--database", "sqlite://" + self.path("zeus.db"), "--budget", self.file)
        self.addCleanup(second.kill)
        wait_until(lambda: not self.shown()["current"], "the first server does not notice the second")
        self.assertIn("what it shows is old", self.run_budget("show").stdout)
        code, _ = second.stop(signal.SIGTERM)
        self.assertEqual(code, 0)


if __name__ == "__main__":
    unittest.main()
