"""`zeus monitor` with a real Prometheus and a real push gateway, and our dashboard and rules."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from monitor_cli_test import MonitorTestCase

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGING = ROOT / "packaging"
RULES = sorted((PACKAGING / "prometheus").glob("*.rules.yml"))
SERVER_METRICS = [ROOT / "zeus" / "server" / "server_metrics.cc", ROOT / "zeus" / "metrics" / "http_metrics.cc"]
TIMEOUT = 60  # Seconds until a server must have answered; reached only on failure.


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def eventually(ask):
    """The first true answer; None when there is none in time."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        try:
            if answer := ask():
                return answer
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.1)
    return None


def values(text, name):
    """The values of a metric in an exposition, by their labels."""
    found = re.findall(rf"^{name}({{[^}}]*}})? (\S+)$", text, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


class MetricsTestCase(MonitorTestCase):
    def serve(self, *arguments):
        """A monitor that is scraped; its URL."""
        process = self.begin("--serve", "127.0.0.1:0", "--quiet", *arguments)
        line = process.stderr.readline()
        self.assertRegex(line, r"^serving http://127\.0\.0\.1:\d+/metrics$")
        return line.split()[1]

    def run_server(self, *command):
        server = subprocess.Popen(command, cwd=self.directory.name, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (server.terminate(), server.wait()))

    def need(self, program):
        if not shutil.which(program):
            self.skipTest(f"{program} is not installed: ./dev installs it")


class ExpositionTest(MetricsTestCase):
    def test_promtool_finds_nothing_to_say(self):
        self.need("promtool")
        self.start("A100,V100")
        text = get(self.serve())
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                                 capture_output=True, timeout=60)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))

    def test_everything_of_a_gpu_is_there(self):
        self.start("A100")
        text = get(self.serve())
        (labels, energy), = values(text, "zeus_gpu_energy_joules_total").items()
        self.assertIn('model="NVIDIA A100-SXM4-40GB"', labels)
        self.assertIn('source="counter"', labels)
        self.assertGreaterEqual(energy, 0)
        kinds = [re.search(r'kind="(\w+)"', labels).group(1)
                 for labels in values(text, "zeus_gpu_power_limit_watts")]
        self.assertEqual(kinds, ["requested", "enforced", "default", "min", "max"])
        self.assertEqual(values(text, "zeus_device_up"), {'{device="gpu:0"}': 1})
        self.assertGreater(values(text, "zeus_self_cpu_seconds_total")[""], 0)

    def test_the_counter_grows_across_a_driver_reload(self):
        self.start("V100")
        url = self.serve()
        energy = "zeus_gpu_energy_joules_total"
        before = eventually(lambda: [v for v in values(get(url), energy).values() if v > 2])
        self.assertTrue(before)
        self.sim("fault", "--gpu", "0", "--kind", "reset")

        def after_reset():
            text = get(url)
            (now,) = values(text, energy).values()
            self.assertGreaterEqual(now, before[0])
            return now if "counter_reset" in text and now > before[0] + 1 else None
        self.assertTrue(eventually(after_reset))

    def test_a_lost_gpu_is_down(self):
        self.start("2xV100")
        url = self.serve()
        self.sim("fault", "--gpu", "0", "--kind", "lost")
        down = {'{device="gpu:0"}': 0, '{device="gpu:1"}': 1}
        self.assertTrue(eventually(lambda: values(get(url), "zeus_device_up") == down))

    def test_a_taken_port_is_one_sentence(self):
        self.start("V100")
        address = urllib.parse.urlparse(self.serve()).netloc
        done = self.monitor("--serve", address, code=6)
        self.assertRegex(done.stderr, f"^zeus: cannot listen on {address}: .*\n$")


class PrometheusTest(MetricsTestCase):
    def test_a_real_server_scrapes_and_the_rate_is_the_power(self):
        self.need("prometheus")
        self.start("V100")
        self.load(200)
        target = urllib.parse.urlparse(self.serve()).netloc
        config = self.path("prometheus.yml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "500ms"},
                       "rule_files": [str(PACKAGING / "prometheus" / "zeus.rules.yml")],
                       "scrape_configs": [{"job_name": "zeus",
                                           "static_configs": [{"targets": [target]}]}]}, file)
        port = free_port()
        self.run_server("prometheus", f"--config.file={config}",
                        f"--storage.tsdb.path={self.path('data')}",
                        f"--web.listen-address=127.0.0.1:{port}")

        def power():
            query = urllib.parse.quote("rate(zeus_gpu_energy_joules_total[4s])")
            answer = json.loads(get(f"http://127.0.0.1:{port}/api/v1/query?query={query}"))
            result = answer["data"]["result"]
            watts = float(result[0]["value"][1]) if result else 0
            return watts if abs(watts - 200) < 20 else None
        self.assertTrue(eventually(power), "no rate near 200 W")

    def test_pushes_of_two_ranks_do_not_replace_each_other(self):
        self.need("prometheus-pushgateway")
        self.start("V100")
        port = free_port()
        # Debian's gateway would remember what it was told in other runs.
        self.run_server("prometheus-pushgateway", f"--web.listen-address=127.0.0.1:{port}",
                        "--persistence.file=")
        url = f"http://127.0.0.1:{port}"
        ranks = [self.begin("--quiet", "--push", url, "--job", "train/a", "--instance", f"rank {i}")
                 for i in range(2)]

        def instances():
            text = get(f"{url}/metrics")
            found = {re.search(r'instance="([^"]*)"', labels).group(1)
                     for labels in values(text, "zeus_gpu_energy_joules_total")
                     if 'job="train/a"' in labels}
            return found == {"rank 0", "rank 1"}
        self.assertTrue(eventually(instances))
        for rank in ranks:
            rank.terminate()
            self.assertEqual(rank.wait(timeout=60), 0)

    def test_a_gateway_that_is_not_there_is_said_once_and_does_not_disturb(self):
        self.start("V100")
        done = self.monitor("--push", f"http://127.0.0.1:{free_port()}", "--interval", "1",
                            "--duration", "2.5", "--json")
        self.assertEqual(done.stderr.count("will be tried again"), 1, done.stderr)
        self.assertGreaterEqual(len(done.stdout.splitlines()), 3)


class PackagingTest(MetricsTestCase):
    def known(self):
        """Every name that a query may use: of devices and gateways as the program lists them, of the job server as its
        source declares them, and of recording rules."""
        metrics = re.findall(r"^\| `(\w+)` \| (\w+) ", self.monitor("--list-metrics").stdout, re.MULTILINE)
        for source in SERVER_METRICS:
            metrics += re.findall(r'\{"(zeus_server_\w+)",\s+MetricType::k(\w+)', source.read_text(encoding="utf-8"))
        names = set(re.findall(r"- record: (\S+)", "".join(path.read_text(encoding="utf-8") for path in RULES)))
        for name, kind in metrics:
            names |= ({f"{name}_{part}" for part in ("bucket", "sum", "count")}
                      if kind.lower() == "histogram" else {name})
        self.assertLessEqual({"zeus_gpu_energy_joules_total", "zeus_server_requests_total", "zeus_kubelet_up"}, names)
        return names

    def used(self, query):
        return set(re.findall(r"\b(?:[a-z]+:)?(?:zeus|energy_monitor|power_monitor)_\w+(?::\w+)?", query))

    @staticmethod
    def dashboards():
        return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (PACKAGING / "grafana").glob("*.json")}

    def test_the_dashboards_use_only_metrics_that_exist(self):
        known = self.known()
        for name, dashboard in self.dashboards().items():
            queries = [target["expr"] for panel in dashboard["panels"]
                       for target in panel.get("targets", [])]
            self.assertGreater(len(queries), 5, name)
            for query in queries:
                self.assertTrue(self.used(query), query)
                self.assertLessEqual(self.used(query), known, query)

    def test_the_dashboards_have_the_shape_that_grafana_imports(self):
        variables = {"zeus.json": {"datasource", "instance", "gpu", "price"}, "zeus-serve.json": {"datasource", "instance"}}
        dashboards = self.dashboards()
        self.assertEqual(set(dashboards), set(variables))
        self.assertEqual(len({dashboard["uid"] for dashboard in dashboards.values()}), len(dashboards))
        for name, dashboard in dashboards.items():
            self.assertIsInstance(dashboard["schemaVersion"], int)
            self.assertEqual({variable["name"] for variable in dashboard["templating"]["list"]}, variables[name])
            identities = [panel["id"] for panel in dashboard["panels"]]
            self.assertEqual(len(identities), len(set(identities)))
            for panel in dashboard["panels"]:
                self.assertLessEqual(panel["gridPos"]["x"] + panel["gridPos"]["w"], 24)
                self.assertTrue(panel["title"])

    def test_promtool_accepts_the_rules_and_they_use_only_metrics_that_exist(self):
        self.need("promtool")
        self.assertEqual(len(RULES), 3)
        checked = subprocess.run(["promtool", "check", "rules", *map(str, RULES)], capture_output=True,
                                 text=True, timeout=60)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        known = self.known()
        for rules in RULES:
            for expression in re.findall(r"expr: (.*)", rules.read_text(encoding="utf-8")):
                self.assertTrue(self.used(expression), expression)
                self.assertLessEqual(self.used(expression), known, expression)


if __name__ == "__main__":
    unittest.main(verbosity=2)
