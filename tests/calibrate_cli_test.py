"""`zeus calibrate` from end to end: simulated GPUs, a load command, an external meter's log."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest

from sim_testing import ZEUS, SimTestCase, wait_until

# The sensors as gpu_model.cc has them, in milliseconds: power period, window, counter period.
TRUTH = {
    "NVIDIA A100-SXM4-40GB": (100, 25, 100),
    "Tesla V100-PCIE-32GB": (20, 10, 20),
    "NVIDIA H100 80GB HBM3": (100, 25, 100),
    "NVIDIA A40": (100, 100, 100),
}

ATTEMPTS = 5

# A load command: every "1" starts a load of 250 W on the simulated GPU, every "0" ends it.
LOAD_COMMAND = """
import os, subprocess, sys
load = None
def stop():
    global load
    if load: load.terminate(); load.wait()
    load = None
open(sys.argv[2], "w").write(f"{os.getpid()} {os.environ['CUDA_VISIBLE_DEVICES']}")
print("importing a framework", flush=True)
print("ready", flush=True)
for line in sys.stdin:
    stop()
    if line == "1\\n":
        load = subprocess.Popen([sys.argv[1], "sim", "load", "--gpu",
                                 os.environ["ZEUS_CALIBRATE_GPU"], "--watts", "250"],
                                stdout=subprocess.DEVNULL)
stop()
"""


def running(pid):
    """A zombie does not run."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class CalibrateTest(SimTestCase):
    def start_node(self, gpus):
        self.sim("start", "--gpus", gpus, "--seed", "4")
        self.addCleanup(self.run_sim, "stop")
        self.environment = self.evaluated_environment()
        self.profiles = os.path.join(self.directory.name, "profiles")
        self.environment["ZEUS_PROFILE_DIR"] = self.profiles
        self.environment.pop("CUDA_VISIBLE_DEVICES", None)

    def calibrate(self, *arguments):
        return subprocess.run(
            [ZEUS, "calibrate", *arguments],
            env=self.environment, capture_output=True, text=True, timeout=100,
        )

    def reports(self, *arguments):
        done = self.calibrate("--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_estimate(self, estimate, milliseconds, what):
        """Stated errors are put to the test on a virtual clock (ResponseTest); here a busy machine
        adds delays that no statistics of the readings can know."""
        off = abs(estimate["seconds"] * 1000 - milliseconds)
        allowed = 4 * estimate["sigma_seconds"] * 1000 + 0.1 * milliseconds
        self.assertLess(off, allowed, (what, estimate))
        self.assertLess(estimate["sigma_seconds"] * 1000, 0.1 * milliseconds + 5, what)

    def load_command(self):
        script = os.path.join(self.directory.name, "load.py")
        self.note = pathlib.Path(self.directory.name, "note")
        with open(script, "w") as file:
            file.write(LOAD_COMMAND)
        return f"{sys.executable} {script} {os.path.abspath(ZEUS)} {self.note}"


class SensorsTest(CalibrateTest):
    def test_sensors_are_found_as_the_simulator_made_them_and_kept(self):
        self.start_node("A100,V100,H100,A40")

        # A busy machine can delay the load so much that a sensor shows too few steps.
        for attempt in range(ATTEMPTS):
            reports = self.reports("--seconds", str(6 * (attempt + 1)))
            if all(report["calibration"][sensor] and report["calibration"][sensor]["update_period"]
                   for report in reports for sensor in ("instant_power", "counter")):
                break

        self.assertEqual([report["device"] for report in reports], [f"gpu:{i}" for i in range(4)])
        for report in reports:
            found = report["calibration"]
            model = found["model"]
            period, window, counter = TRUTH[model]
            self.assert_estimate(found["instant_power"]["update_period"], period, model)
            self.assert_estimate(found["instant_power"]["window"], window, model)
            self.assert_estimate(found["counter"]["update_period"], counter, model)
            self.assert_estimate(found["counter"]["window"], counter, model)
            delay = found["counter"]["delay"]
            self.assertLess(abs(delay["seconds"]), 4 * delay["sigma_seconds"] + 0.02, model)
            self.assertEqual(report["failures"], [])
            has_average = model in ("NVIDIA H100 80GB HBM3", "NVIDIA A40")
            self.assertEqual(found["average_power"] is not None, has_average, model)
            if has_average:
                self.assert_estimate(found["average_power"]["window"], 1000, model)
            with open(report["file"]) as file:
                self.assertEqual(json.load(file), found)

        # A kept calibration is shown, for people and programs, and can be forgotten.
        shown = self.reports("--show")
        self.assertEqual([r["calibration"] for r in shown], [r["calibration"] for r in reports])
        text = self.calibrate("--show", "--gpus", "0").stdout
        self.assertIn("update period [ms]", text)
        self.assertIn("kept in " + reports[0]["file"], text)

        self.assertEqual(self.calibrate("--remove", "--gpus", "0,2").returncode, 0)
        self.assertEqual(len(self.reports("--show")), 2)
        self.assertEqual(self.calibrate("--remove", "--gpus", "0").returncode, 3)
        self.assertEqual(self.calibrate("--show", "--gpus", "0").returncode, 1)

    def test_a_damaged_file_is_a_warning(self):
        self.start_node("V100")
        kept = pathlib.Path(self.reports("--seconds", "2")[0]["file"])
        kept.write_text("{")

        done = self.calibrate("--show")

        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{kept} is not used: not valid JSON", done.stderr)
        self.assertIn("not calibrated", done.stdout)


class LoadCommandTest(CalibrateTest):
    def test_a_load_command_is_told_what_to_do_and_ended(self):
        self.start_node("2xA40")

        # A busy machine can delay the load so much that a calibration finds no step of the counter.
        for _ in range(ATTEMPTS):
            report = self.reports("--gpus", "1", "--seconds", "5", "--dry-run", "--period", "0.8",
                                  "--load-command", self.load_command())[0]
            if report["calibration"]["counter"]:
                break

        pid, visible = self.note.read_text().split()
        self.assertEqual(visible, report["calibration"]["uuid"])
        self.assertIsNone(report["file"])
        self.assertFalse(os.path.exists(self.profiles))
        # A busy machine takes a moment to end a process that was killed.
        wait_until(lambda: not running(int(pid)), "the load was not ended")
        counter = report["calibration"]["counter"]
        self.assertGreater(counter["step_watts"], 150)
        # Processes take time to start. The estimate may be wrong by half an update of the sensor.
        self.assertGreater(counter["delay"]["seconds"], -0.05)

    def test_an_interrupted_calibration_ends_its_load_and_keeps_nothing(self):
        self.start_node("A40")
        calibrate = subprocess.Popen(
            [ZEUS, "calibrate", "--load-command", self.load_command()],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: self.note.exists() and self.note.read_text(), "the load did not start")
        pid = int(self.note.read_text().split()[0])

        calibrate.send_signal(signal.SIGINT)
        _, errors = calibrate.communicate(timeout=60)

        self.assertEqual(calibrate.returncode, 130)
        self.assertIn("interrupted", errors)
        wait_until(lambda: not running(pid), "the load was not ended")
        self.assertFalse(os.path.exists(self.profiles))

    def test_load_commands_that_cannot_serve_are_said(self):
        self.start_node("V100")
        done = self.calibrate("--load-command", "exit 3")
        self.assertEqual(done.returncode, 6)
        self.assertIn("ended early, with exit code 3", done.stderr)

        done = self.calibrate("--seconds", "2", "--load-command", "echo ready; cat >/dev/null")
        self.assertEqual(done.returncode, 1)
        self.assertIn("gpu:0", done.stdout)
        self.assertIn("not kept", done.stdout)
        self.assertFalse(os.path.exists(self.profiles))


class MeterTest(CalibrateTest):
    def log_meter(self, path, stop):
        """A meter beside the GPU: the exact power, as fast as processes start. A reading that took
        long, on a busy machine, is left out: nobody knows of which moment it is."""
        with open(path, "w") as log:
            log.write("time,watts\n")
            while not stop.is_set():
                before = time.time()
                truth = json.loads(self.sim("truth", "--json"))[0]["power_watts"]
                after = time.time()
                if after - before < 0.1:
                    log.write(f"{(before + after) / 2:.6f},{truth}\n")
                    log.flush()

    @unittest.skipIf("ZEUS_SANITIZED" in os.environ,
                     "a meter that is a process per reading is too slow with a sanitizer")
    def test_a_meters_log_gives_gain_and_offset(self):
        self.start_node("A100")
        path = os.path.join(self.directory.name, "meter.csv")
        stop = threading.Event()
        meter = threading.Thread(target=self.log_meter, args=(path, stop))
        meter.start()
        self.addCleanup(meter.join)
        self.addCleanup(stop.set)
        wait_until(lambda: os.path.exists(path) and os.path.getsize(path) >= 30,
                   "the meter shows nothing")

        # On a busy machine the meter shows few readings, or late ones: the fit says that it is uncertain or bad, or
        # that there is none.
        fit = None
        for attempt in range(ATTEMPTS):
            done = self.calibrate("--json", "--seconds", str(8 * (attempt + 1)), "--meter", path,
                                  "--meter-delay", "0", "--meter-accuracy", "0.002")
            if "no power reading to compare with the meter" in done.stderr:
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(done.stdout)[0]
            fit = report["calibration"]["meter"]
            if fit["gain_sigma"] < 0.04 and fit["r_squared"] > 0.99:
                break
        self.assertIsNotNone(fit, done.stderr)
        self.assertLess(abs(fit["gain"] - 1), 0.05 + 4 * fit["gain_sigma"])
        self.assertLess(fit["gain_sigma"], 0.04)
        self.assertGreater(fit["r_squared"], 0.99)
        self.assertEqual(report["profile"]["gain"], fit["gain"])
        self.assertLess(report["profile"]["gain_sigma"], report["prior"]["gain_sigma"])
        self.assertEqual(report["profile"]["origin"], "calibrated")

    def test_logs_that_cannot_be_used_are_refused_at_once(self):
        self.start_node("2xA100")
        path = os.path.join(self.directory.name, "meter.csv")
        with open(path, "w") as log:
            log.write("time,watts\n10,100\n9,100\n")

        done = self.calibrate("--gpus", "0", "--meter", path)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{path}:3: its time lies before", done.stderr)

        done = self.calibrate("--gpus", "0", "--meter", path + ".absent")
        self.assertEqual(done.returncode, 3)

        done = self.calibrate("--meter", path)
        self.assertEqual(done.returncode, 2)
        self.assertIn("one GPU at a time", done.stderr)


class CommandLineTest(CalibrateTest):
    def test_wrong_command_lines_are_one_sentence(self):
        self.start_node("A100")
        for arguments, code in (
            (("--gpus", "7"), 3),
            (("--gpus", "x"), 2),
            (("--seconds", "0"), 2),
            (("--show", "--remove"), 2),
            (("--meter-delay", "1"), 2),
        ):
            with self.subTest(arguments):
                done = self.calibrate(*arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
