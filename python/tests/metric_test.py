"""zeus.metric, with a real push gateway."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

from node_testing import NodeTestCase

from zeus.metric import EnergyCumulativeCounter, EnergyHistogram, PowerGauge, serve
from zeus.monitor import ZeusMonitor

GATEWAY = "prometheus-pushgateway"
TIMEOUT = 60  # Seconds until a server must have answered; reached only on failure.


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def values(text, name):
    """The values of a metric in an exposition, by window and index."""
    found = {}
    for labels, value in re.findall(rf"^{name}{{([^}}]*)}} (\S+)$", text, re.MULTILINE):
        named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        found[named["window"], named["index"], named.get("le", "")] = float(value)
    return found


def eventually(ask):
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        try:
            if answer := ask():
                return answer
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.05)
    return None


class GatewayTest(NodeTestCase):
    GPUS = "2xA100"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which(GATEWAY):
            raise unittest.SkipTest(f"{GATEWAY} is not installed: ./dev installs it")
        cls.url = f"http://127.0.0.1:{free_port()}"
        gateway = subprocess.Popen([GATEWAY, f"--web.listen-address={cls.url[7:]}",
                                    "--persistence.file="],  # It remembers nothing.
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(lambda: (gateway.terminate(), gateway.wait()))
        assert eventually(lambda: get(f"{cls.url}/-/ready"))

    def pushed(self):
        return get(f"{self.url}/metrics")

    def of(self, job):
        return "\n".join(line for line in self.pushed().splitlines() if f'job="{job}"' in line)

    def test_a_histogram_counts_windows_by_energy(self):
        with EnergyHistogram(None, [0, 1], self.url, "histogram", gpu_bucket_range=[1, 1e6]) as h:
            for _ in range(3):
                h.begin_window("epoch")
                time.sleep(0.1)
                measured = h.end_window("epoch")
            self.assertTrue(h.flush())
        self.assertGreater(measured.gpu_energy[0], 1)
        text = self.of("histogram")
        name = "energy_monitor_gpu_energy_joules"
        self.assertEqual(values(text, f"{name}_bucket"), {
            ("epoch", gpu, bound): count
            for gpu in "01" for bound, count in (("1", 0), ("1e+06", 3), ("+Inf", 3))})
        self.assertEqual(values(text, f"{name}_count")["epoch", "1", ""], 3)
        self.assertGreater(values(text, f"{name}_sum")["epoch", "0", ""], measured.gpu_energy[0])

    def test_a_counter_grows_while_its_window_is_open(self):
        with EnergyCumulativeCounter([], [0], 0.05, self.url, "growing") as counter:
            counter.begin_window("epoch")
            name = "energy_monitor_gpu_energy_joules_total"

            def above(joules):
                now = values(self.of("growing"), name).get(("epoch", "0", ""), 0)
                return now if now > joules else None
            first = eventually(lambda: above(0))
            self.assertTrue(eventually(lambda: above(first)))

    def test_a_counter_loses_nothing_between_two_windows(self):
        with EnergyCumulativeCounter([], [0], 0.01, self.url, "complete") as counter:
            total = 0.0
            for _ in range(20):
                counter.begin_window("step")
                time.sleep(0.02)
                total += counter.end_window("step").gpu_energy[0]
            self.assertTrue(counter.flush())
        (shown,) = values(self.of("complete"), "energy_monitor_gpu_energy_joules_total").values()
        # More only by what estimates at the edges took back, never less.
        self.assertGreaterEqual(shown, total * (1 - 1e-9))
        self.assertLess(shown, total * 1.5)

    def test_a_gauge_shows_the_power_of_the_gpus_that_were_asked_for(self):
        with PowerGauge([1], 0.05, self.url, "gauge") as gauge:
            gauge.begin_window("epoch")
            name = "power_monitor_gpu_power_watts"
            shown = eventually(lambda: values(self.of("gauge"), name))
            gauge.end_window("epoch")
        (key,) = shown
        self.assertEqual(key, ("epoch", "1", ""))
        self.assertGreater(shown[key], 10)

    def test_metrics_and_ranks_of_one_job_do_not_replace_each_other(self):
        with ZeusMonitor([0]) as monitor:
            metrics = [
                EnergyHistogram(None, None, self.url, "shared", monitor=monitor, instance="rank0"),
                EnergyCumulativeCounter(None, None, 1, self.url, "shared", monitor=monitor,
                                        instance="rank0"),
                EnergyHistogram(None, None, self.url, "shared", monitor=monitor, instance="rank1"),
            ]
            for metric in metrics:
                metric.begin_window("epoch")
                metric.end_window("epoch")
                self.assertTrue(metric.flush())
        text = self.of("shared")
        for instance in ("rank0", "rank1"):
            self.assertRegex(text, rf'energy_joules_count{{.*instance="{instance}"')
        self.assertRegex(text, r'energy_joules_total{.*instance="rank0"')

    def test_what_is_not_pushed_yet_is_pushed_when_the_program_ends(self):
        code = (
            "import sys; from zeus.metric import EnergyHistogram\n"
            "h = EnergyHistogram([], [0], sys.argv[1], 'ending')\n"
            "h.begin_window('w'); h.end_window('w')\n")
        subprocess.run([sys.executable, "-c", code, self.url], check=True, timeout=60)
        self.assertIn("energy_monitor_gpu_energy_joules_count", self.of("ending"))

    def test_a_window_that_is_open_when_the_program_ends_is_counted_up_to_there(self):
        code = (
            "import sys, time; from zeus.metric import EnergyCumulativeCounter\n"
            "c = EnergyCumulativeCounter([], [0], 1000, sys.argv[1], 'open')\n"
            "c.begin_window('w'); c.flush(); time.sleep(0.5)\n")
        subprocess.run([sys.executable, "-c", code, self.url], check=True, timeout=60)
        (joules,) = values(self.of("open"), "energy_monitor_gpu_energy_joules_total").values()
        self.assertGreater(joules, 0.3 * 40)

    def test_an_address_without_a_scheme_will_do(self):
        with EnergyHistogram([], [0], self.url[7:], "bare") as histogram:
            histogram.begin_window("w")
            histogram.end_window("w")
            self.assertTrue(histogram.flush())


class AloneTest(NodeTestCase):
    GPUS = "2xA100"

    def test_a_gateway_that_is_down_is_warned_of_once_and_nothing_else_happens(self):
        code = (
            "import sys; from zeus.metric import EnergyHistogram, EnergyCumulativeCounter\n"
            "h = EnergyHistogram([], [0], sys.argv[1], 'job')\n"
            "c = EnergyCumulativeCounter([], [0], 0.01, sys.argv[1], 'job')\n"
            "for i in range(50):\n"
            "    for m in (h, c): m.begin_window('w')\n"
            "    for m in (h, c): m.end_window('w')\n"
            "assert not h.flush(0.1)\n"
            "assert 'energy_joules_count{window=\"w\",index=\"0\"} 50' in h.text()\n")
        done = subprocess.run([sys.executable, "-c", code, f"http://127.0.0.1:{free_port()}"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("push to http://127.0.0.1"), 1, done.stderr)

    def test_a_server_shows_metrics_and_devices(self):
        with ZeusMonitor([0]) as monitor, serve(monitor=monitor) as server:
            with EnergyHistogram(None, None, None, "served", monitor=monitor) as histogram:
                histogram.begin_window("epoch")
                histogram.end_window("epoch")
                text = get(server.url)
        mine = "\n".join(line for line in text.splitlines() if 'job="served"' in line)
        self.assertEqual(values(mine, "energy_monitor_gpu_energy_joules_count"),
                         {("epoch", "0", ""): 1})
        self.assertIn("zeus_gpu_power_watts{", text)
        with self.assertRaises(OSError):
            get(server.url)

    def test_a_name_for_every_step_does_not_fill_a_database(self):
        with EnergyHistogram([], [0], None, "names") as histogram:
            for step in range(300):
                histogram.begin_window(f"step {step}")
                histogram.end_window(f"step {step}")
            counts = values(histogram.text(), "energy_monitor_gpu_energy_joules_count")
        self.assertEqual(len(counts), 201)
        self.assertEqual(counts["other", "0", ""], 100)

    def test_windows_misused_are_the_errors_of_a_monitor(self):
        with PowerGauge([0], 1, None, "job") as gauge:
            gauge.begin_window("w")
            with self.assertRaises(ValueError):
                gauge.begin_window("w")
            gauge.end_window("w")
            with self.assertRaises(KeyError):
                gauge.end_window("w")

    def test_a_window_whose_name_is_none_changes_nothing(self):
        with ZeusMonitor([0], []) as monitor:
            for metric in (EnergyHistogram(None, None, None, "names", monitor=monitor),
                           EnergyCumulativeCounter(None, None, 1, None, "names", monitor=monitor)):
                for name, error in ((5, TypeError), ("\ud800", ValueError)):
                    with self.assertRaisesRegex(error, "the name of a window"):
                        metric.begin_window(name)
                    metric.begin_window(str(name == 5))
                    with self.assertRaisesRegex(error, "the name of a window"):
                        metric.end_window(name)
                    metric.end_window(str(name == 5))
                self.assertEqual(metric._open, {})
            with self.assertRaisesRegex(TypeError, "timeout is a number"):
                metric.flush("x")

    def test_nonsense_is_refused(self):
        nan = float("nan")
        for make, error, message in (
            (lambda: PowerGauge([0], 0, None, "job"), ValueError, "update_period is greater"),
            (lambda: PowerGauge([0], nan, None, "job"), ValueError, "update_period is a finite"),
            (lambda: PowerGauge([0], "1", None, "job"), TypeError, "update_period is a number"),
            (lambda: PowerGauge([0], 1, None, ""), ValueError, "job is empty"),
            (lambda: PowerGauge([0], 1, "ftp://x", "job"), ValueError, "not the URL of a push"),
            (lambda: PowerGauge([7], 1, None, "job"), KeyError, "7"),
            (lambda: EnergyHistogram([], [0], None, "job", [2, 1]), ValueError, "must rise"),
            (lambda: EnergyHistogram([], [0], None, "job", []), ValueError, "at least one"),
            (lambda: serve(70000), ValueError, "port is 0 to 65535"),
            (lambda: serve("80"), TypeError, "port is a whole number"),
            (lambda: serve(host="\ud800"), ValueError, "host is no text"),
            (lambda: serve(host=5), TypeError, "host is a string"),
            (lambda: serve(monitor=5), TypeError, "monitor is a ZeusMonitor, not 5"),
            (lambda: EnergyHistogram([], [0], None, "\ud800"), ValueError, "job is no text"),
            (lambda: EnergyHistogram([], [0], None, "job", ["x"]), TypeError,
             "each of gpu_bucket_range is a number"),
            (lambda: EnergyHistogram([], [0], None, "job", [10**400]), ValueError,
             "each of gpu_bucket_range is a finite number"),
            (lambda: EnergyHistogram([], [0], None, "job", 5), TypeError, "list of numbers"),
            (lambda: EnergyHistogram([], [0], None, "job", monitor=5), TypeError, "not 5"),
            (lambda: PowerGauge([0], 1, None, "job", monitor=5), TypeError, "not 5"),
        ):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                make()

    def test_a_forked_child_leaves_the_metrics_of_its_parent_alone(self):
        with EnergyHistogram([], [0], None, "forked") as histogram:
            histogram.begin_window("w")
            child = os.fork()
            if child == 0:
                try:
                    histogram._publisher.flush(0)
                except RuntimeError:
                    histogram.close()
                    os._exit(0)
                os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            histogram.end_window("w")


if __name__ == "__main__":
    unittest.main()
