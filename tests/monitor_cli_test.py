"""`zeus monitor` on simulated nodes: in a pipe, in a terminal, into files, and how it ends."""

import csv
import fcntl
import json
import os
import pty
import re
import signal
import statistics
import struct
import subprocess
import termios
import unittest

from sim_testing import ZEUS, SimTestCase


class MonitorTestCase(SimTestCase):
    def setUp(self):
        super().setUp()
        for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZEUS_NVML_LIBRARY"):
            self.environment.pop(name, None)

    def start(self, gpus):
        self.sim("start", "--gpus", gpus)
        self.addCleanup(self.run_sim, "stop")
        self.environment = self.evaluated_environment()

    def load(self, watts):
        """Puts a load on GPU 0 until the end of the test; returns when it is there."""
        process = self.start_load("--gpu", "0", "--watts", str(watts))
        while json.loads(self.sim("truth", "--json"))[0]["power_watts"] < 0.9 * watts:
            self.assertIsNone(process.poll(), "the load ended")

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def command(self, *arguments):
        return [ZEUS, "monitor", "--no-cpu", *arguments]

    def monitor(self, *arguments, code=0):
        """A run that ends by itself."""
        done = subprocess.run(self.command(*arguments), env=self.environment, capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def begin(self, *arguments):
        """A run in the background, killed at the end of the test if it still runs."""
        process = subprocess.Popen(self.command(*arguments), env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.addCleanup(end)
        return process


class PipeTest(MonitorTestCase):
    def test_tables_follow_each_other_and_the_last_line_sums_up(self):
        self.start("2xV100")
        done = self.monitor("--interval", "0.05", "--duration", "0.1")
        self.assertNotIn("\x1b", done.stdout)
        lines = done.stdout.splitlines()
        rows = [line for line in lines if line.startswith("gpu:1 ")]
        self.assertGreaterEqual(len(rows), 2)
        self.assertIn("Tesla V100", rows[0])
        self.assertRegex(rows[-1], r"\d ± [\d.]+ W .* ± .* J")
        self.assertRegex(lines[-1], r"^\d+\.\d s: gpu:0 .* ± .* J, gpu:1 .* J")

    def test_the_first_sample_has_power_at_once(self):
        self.start("V100")
        first = json.loads(self.monitor("--json", "--duration", "0.01").stdout.splitlines()[0])
        self.assertGreater(first["devices"][0]["power_watts"], 1)
        self.assertGreater(first["devices"][0]["temperature_celsius"], 1)

    def test_energy_is_power_times_time(self):
        self.start("V100")
        self.load(200)
        process = self.begin("--json", "--interval", "0.2")
        samples = [json.loads(process.stdout.readline()) for _ in range(12)]
        self.assertEqual({sample["schema"] for sample in samples}, {"zeus.sample/1"})
        early, late = samples[5], samples[-1]
        energy = late["devices"][0]["energy_joules"] - early["devices"][0]["energy_joules"]
        seconds = late["elapsed_seconds"] - early["elapsed_seconds"]
        self.assertAlmostEqual(energy / seconds, 200, delta=30)
        # A single reading that comes late on a busy machine stands for another time.
        powers = [sample["devices"][0]["power_watts"] for sample in samples[5:]]
        self.assertAlmostEqual(statistics.median(powers), 200, delta=20)
        self.assertGreater(late["devices"][0]["energy_sigma_joules"], 0)

    def test_only_chosen_gpus_are_shown(self):
        self.start("3xV100")
        sample = json.loads(
            self.monitor("--json", "--gpus", "0,2", "--duration", "0.01").stdout.splitlines()[-1])
        self.assertEqual([device["device"] for device in sample["devices"]], ["gpu:0", "gpu:2"])

    def test_an_unknown_gpu_is_one_sentence(self):
        self.start("2xV100")
        done = self.monitor("--gpus", "0,7", code=3)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("7", done.stderr)

    def test_wrong_arguments_are_one_sentence(self):
        self.start("V100")
        for arguments in (["--output", self.path("x")], ["--serve", "nowhere"], ["--json", "--csv"],
                          ["--push", "host:9091"], ["--gpus", "x"], ["--job", "j"]):
            done = self.monitor(*arguments, code=2)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse(os.path.exists(self.path("x")))

    def test_a_lost_gpu_shows_its_reason_and_no_zero(self):
        self.start("2xV100")
        process = self.begin("--json", "--interval", "0.1")
        process.stdout.readline()
        self.sim("fault", "--gpu", "0", "--kind", "lost")
        for _ in range(100):
            lost, sound = json.loads(process.stdout.readline())["devices"]
            if lost["power_watts"] is None:
                break
        self.assertIsNone(lost["power_watts"])
        self.assertIn("fell off the bus", lost["reasons"]["power_watts"])
        self.assertGreater(sound["power_watts"], 1)

    def test_a_reader_that_leaves_ends_it_quietly(self):
        self.start("V100")
        process = self.begin("--interval", "0.01")
        process.stdout.readline()
        process.stdout.close()
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertEqual(process.stderr.read(), "")

    def test_signals_end_it_with_a_summary(self):
        self.start("V100")
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin("--json", "--interval", "3600")
            process.stdout.readline()
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, err)
            json.loads(out)  # The last sample.
            self.assertRegex(err, r"^\d+\.\d s: gpu:0 .* m?J\n$")


class FileTest(MonitorTestCase):
    def test_lines_are_appended_to_a_file_and_the_table_is_shown(self):
        self.start("V100")
        path = self.path("samples.csv")
        rows = []
        for _ in range(2):
            before = rows
            done = self.monitor("--csv", "--output", path, "--duration", "0.01")
            self.assertIn("gpu:0", done.stdout)
            with open(path, newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            self.assertGreater(len(rows), len(before))
            self.assertEqual(rows[:len(before)], before)
        for row in rows:
            self.assertEqual(row["device"], "gpu:0")
            self.assertGreater(float(row["power_watts"]), 1)
            self.assertGreaterEqual(float(row["energy_joules"]), 0)

    def test_a_file_of_another_kind_is_refused(self):
        self.start("V100")
        path = self.path("notes.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("mine\n")
        for kind in ("--csv", "--json"):
            done = self.monitor(kind, "--output", path, "--duration", "0.01", code=2)
            self.assertIn("notes.txt", done.stderr)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine\n")

    def test_a_full_disk_is_said_once_and_measuring_goes_on(self):
        self.start("V100")
        done = self.monitor("--json", "--output", "/dev/full", "--interval", "0.05",
                            "--duration", "0.5", "--quiet", code=6)
        self.assertEqual(done.stderr.count("No space left"), 1, done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], r"/dev/full lacks \d+ samples")

    def test_a_trace_is_whole_even_after_a_kill(self):
        self.start("A100,V100")
        path = self.path("trace.json")
        process = self.begin("--trace", path, "--json", "--interval", "0.1")
        for _ in range(8):
            process.stdout.readline()
        process.kill()
        process.wait()
        with open(path, encoding="utf-8") as file:
            check_trace(self, json.load(file))


def check_trace(test, trace):
    """Checks what the Trace Event Format asks of the events that we write."""
    test.assertEqual(trace["displayTimeUnit"], "ms")
    names, counters, windows = {}, {}, {}
    for event in trace["traceEvents"]:
        test.assertIn(event["ph"], ("M", "C", "b", "e"))
        test.assertIsInstance(event["pid"], int)
        test.assertIsInstance(event["name"], str)
        if event["ph"] == "M":
            names.setdefault(event["name"], {})[event["pid"]] = event["args"]
            continue
        test.assertGreaterEqual(event["ts"], 0)
        if event["ph"] == "C":
            # Perfetto names a counter's track after the event and the key of its value.
            (unit, value), = event["args"].items()
            test.assertIsInstance(value, (int, float))
            counters.setdefault((event["pid"], f"{event['name']} {unit}"), []).append((event["ts"], value))
        else:
            windows.setdefault((event["name"], event["id"]), []).append(event)
    # The time between two samples is a window; those that the sensors have shown are in the trace.
    test.assertGreater(len(windows), 0)
    for (name, _), edges in windows.items():
        test.assertEqual((name, [edge["ph"] for edge in edges]), ("interval", ["b", "e"]))
        test.assertGreater(edges[1]["ts"], edges[0]["ts"])
        test.assertTrue(edges[0]["args"])
    for series in counters.values():
        times = [time for time, _ in series]
        test.assertEqual(times, sorted(times))
    titles = {pid: args["name"] for pid, args in names["process_name"].items()}
    for pid, title in ((pid, title) for pid, title in titles.items() if "gpu:" in title):
        power = [value for _, value in counters[pid, "power W"]]
        test.assertGreater(min(power), 1, title)
        energy = [value for _, value in counters[pid, "energy J"]]
        test.assertEqual(energy, sorted(energy))
    test.assertEqual(len([title for title in titles.values() if "gpu:" in title]), 2)


class TerminalTest(MonitorTestCase):
    def open_terminal(self, columns, rows=24):
        """Both ends of a terminal of that size."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        self.resize(ours, columns, rows)
        return ours, theirs

    def resize(self, terminal, columns, rows=24):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def begin_in(self, theirs, *arguments):
        process = subprocess.Popen(self.command(*arguments), env=self.environment, stdout=theirs,
                                   stderr=subprocess.PIPE, text=True)
        os.close(theirs)

        def end():
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stderr.close()
        self.addCleanup(end)
        return process

    def read_until(self, terminal, wanted, text=""):
        """Returns what the terminal was sent up to the pattern, or up to the end (None)."""
        while wanted is None or not re.search(wanted, text):
            try:
                text += os.read(terminal, 65536).decode()
            except OSError:  # The other end was closed.
                self.assertIsNone(wanted, text)
                break
        return text

    def test_the_table_is_drawn_in_place_and_the_cursor_comes_back(self):
        self.start("2xV100")
        ours, theirs = self.open_terminal(columns=120)
        process = self.begin_in(theirs, "--interval", "0.05")
        text = self.read_until(ours, r"\x1b\[3A")
        process.send_signal(signal.SIGINT)
        text = self.read_until(ours, None, text)
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertTrue(text.startswith("\x1b[?25l"))
        self.assertGreater(text.rfind("\x1b[?25h"), text.rfind("\x1b[?25l"))
        self.assertRegex(text.splitlines()[-1], r"s: gpu:0 .* J")

    def test_rows_fit_a_narrow_terminal_and_follow_its_size(self):
        self.start("2xV100")
        ours, theirs = self.open_terminal(columns=40)
        process = self.begin_in(theirs, "--interval", "3600")
        text = self.read_until(ours, r"gpu:1[^\n]*\n")
        for line in re.sub(r"\x1b\[[?\d]*[A-Za-z]", "", text).splitlines():
            self.assertLessEqual(len(line.strip("\r")), 40)
        self.assertNotIn("Tesla", text)
        self.resize(ours, columns=150)
        process.send_signal(signal.SIGWINCH)
        wide = self.read_until(ours, r"gpu:1[^\n]*\n")
        self.assertIn("\x1b[2J", wide)
        self.assertIn("Tesla V100", wide)

    def test_more_devices_than_rows_do_not_scroll(self):
        self.start("8xV100")
        ours, theirs = self.open_terminal(columns=120, rows=5)
        self.begin_in(theirs, "--interval", "0.05")
        text = self.read_until(ours, r"\x1b\[\d+A")
        self.assertRegex(text, r"\x1b\[4A")
        self.assertNotIn("gpu:5", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
