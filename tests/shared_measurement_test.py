"""Eight processes measure the same four GPUs at once: their shares add up to what the node used."""

import bisect
import json
import math
import os
import subprocess
import threading
import time
import unittest
from datetime import datetime

from sim_testing import ZEUS, SimTestCase, wait_until

PROCESSES = 8
GPUS = 4


class Truth:
    """The exact energy of each GPU over time, polled from the node."""

    def __init__(self, read):
        self.read = read
        self.times = []
        self.energies = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.record)

    def record(self):
        while not self.stop.is_set():
            before = time.time()
            energies = [gpu["energy_joules"] for gpu in json.loads(self.read())]
            self.times.append((before + time.time()) / 2)
            self.energies.append(energies)

    def at(self, moment, gpu):
        i = min(max(bisect.bisect(self.times, moment), 1), len(self.times) - 1)
        share = (moment - self.times[i - 1]) / (self.times[i] - self.times[i - 1])
        before, after = self.energies[i - 1][gpu], self.energies[i][gpu]
        return before + share * (after - before)


class SharedMeasurementTest(SimTestCase):
    def test_shares_add_up_to_the_truth(self):
        self.sim("start", "--gpus", f"{GPUS}xA100")
        environment = self.evaluated_environment()
        environment["ZEUS_ACTIVITY_DIR"] = self.directory.name
        for gpu in range(GPUS):
            self.start_load("--gpu", str(gpu), "--power", str(150 + 50 * gpu), "--seconds", "60")
        truth = Truth(lambda: self.sim("truth", "--json"))
        truth.thread.start()
        try:
            reports = self.measure(environment)
            end = time.time()
            wait_until(lambda: truth.times and truth.times[-1] > end, "the truth is not read")
        finally:
            truth.stop.set()
            truth.thread.join()

        begin = min(started(report) for report in reports)
        end = max(started(report) + report["time_seconds"] for report in reports)
        total = variance = exact = 0
        for gpu in range(GPUS):
            devices = [report["devices"][gpu] for report in reports]
            self.assertTrue(all("shared" in device["flags"] for device in devices), devices)
            shares = sum(device["attributed_joules"] for device in devices)
            gross = sum(device["energy_joules"] for device in devices)
            self.assertGreater(gross, 3 * shares, "each one alone would claim all of it")
            # The gain of a board is the same for all who read it.
            relative = max(device["energy_sigma_joules"] / device["energy_joules"] for device in devices)
            total += shares
            variance += (relative * shares) ** 2
            exact += truth.at(end, gpu) - truth.at(begin, gpu)
        sigma = math.sqrt(variance)
        print(f"shares {total:.1f} J, truth {exact:.1f} J, stated sigma {sigma:.1f} J")
        self.assertLess(abs(total - exact), 2 * sigma)

    def measure(self, environment):
        """Commands that begin and end one after the other and overlap in time; their reports."""
        paths = [os.path.join(self.directory.name, f"run{i}.json") for i in range(PROCESSES)]
        runs = []
        for path in paths:
            command = [ZEUS, "run", "--quiet", "--refine=always", "--json", path, "--",
                       "sh", "-c", "echo ready; read line"]
            runs.append(subprocess.Popen(command, env=environment, text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE))
            self.addCleanup(self.end, runs[-1])
            self.assertEqual(runs[-1].stdout.readline(), "ready\n")
        time.sleep(2)  # They measure this time together, which is most of theirs.
        for run in runs:
            run.communicate("end\n", timeout=60)
            self.assertEqual(run.returncode, 0)
        reports = []
        for path in paths:
            with open(path) as file:
                reports.append(json.load(file))
        return reports


    @staticmethod
    def end(process):
        process.kill()
        process.communicate()


def started(report):
    return datetime.fromisoformat(report["started"].replace("Z", "+00:00")).timestamp()


if __name__ == "__main__":
    unittest.main()
