"""zeusd goes on whatever the time of day and other clocks do. The daemon runs with a wall clock that is a year off or jumps
while leases are held, and in a time namespace of its own."""

import datetime
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import time
import unittest

from sim_testing import wait_until
from zeusd_testing import LIMIT, ZeusdTestCase

YEAR = 366 * 24 * 3600


@unittest.skipIf("ZEUS_SANITIZED" in os.environ, "a sanitized program must load its run-time library first")
class WallClockTest(ZeusdTestCase):
    def setUp(self):
        super().setUp()
        self.clock_path = os.path.join(self.folder, "wall-clock")
        with open(self.clock_path, "wb") as file:
            file.write(struct.pack("d", 0))
        with open(self.clock_path, "r+b") as file:
            self.clock = mmap.mmap(file.fileno(), 8)
        self.addCleanup(self.clock.close)

    def set_wall_clock(self, seconds):
        self.clock[:] = struct.pack("d", seconds)

    def serve(self, configuration=None):
        plain = dict(self.environment)
        self.environment |= {"LD_PRELOAD": os.environ["WALL_CLOCK_LIBRARY"], "WALL_CLOCK_FILE": self.clock_path}
        try:
            self.start_daemon(configuration)
        finally:
            self.environment = plain

    def daemons_time(self):
        return self.ask("GET", "/time").json["timestamp_ms"] / 1000

    def test_a_clock_that_is_a_year_off_or_jumps_ends_and_keeps_no_lease(self):
        for offset in (YEAR, -YEAR):
            with self.subTest(offset=offset):
                self.set_wall_clock(offset)
                self.serve()
                self.assertAlmostEqual(self.daemons_time() - time.time(), offset, delta=60)
                holder, status, lease = self.hold(self.lease(200))
                self.assertEqual(status, 201, lease)
                beaten = self.ask("POST", "/v1/leases", self.lease(180, gpu=1, holder="ttl", ttl_seconds=600))
                self.assertEqual(beaten.status, 201, beaten.text)
                year = datetime.datetime.fromtimestamp(time.time() + offset, datetime.timezone.utc).year
                self.assertTrue(lease["since"].startswith(str(year)), lease["since"])
                # The wall clock jumps back and forth: a year, and two.
                for jump in (0, -offset, 2 * offset, offset):
                    self.set_wall_clock(jump)
                    path = "/v1/leases/" + beaten.json["id"]
                    self.assertEqual(self.ask("POST", path + "/heartbeat").status, 204)
                    left = self.ask("GET", path).json["expires_in_seconds"]
                    self.assertTrue(0 < left <= 600, left)
                self.assertEqual(self.limits(), [200, 180])
                # Over a restart with another time of day, too.
                self.daemon.process.send_signal(signal.SIGKILL)
                self.daemon.process.wait()
                self.set_wall_clock(-offset)
                self.serve()
                self.assertEqual(self.ask("GET", path).json["state"], "active")
                self.assertEqual(self.limits(), [200, 180])
                # A lease that ends does so by a clock that nobody sets.
                short = self.ask("PUT", "/v1/budget", {"valid_seconds": 1, "requests": [self.request(150, how="at_most")]})
                self.assertEqual(short.status, 201, short.text)
                self.set_wall_clock(-2 * YEAR)
                wait_until(lambda: self.limits() == [200, 180], "the short lease ends")
                holder.kill()
                wait_until(lambda: self.limits() == [LIMIT, 180], "the end of a holder is noticed")
                self.assertEqual(self.ask("DELETE", path).status, 200)
                self.daemon.stop()
                self.assertEqual(self.limits(), [LIMIT, LIMIT])

    def test_readings_go_on_when_the_clock_jumps(self):
        self.serve()
        first = self.ask("GET", "/v1/readings").json
        self.set_wall_clock(-YEAR)
        wait_until(lambda: self.ask("GET", "/v1/readings").json["at_seconds"] > first["at_seconds"], "time goes on")
        self.set_wall_clock(YEAR)
        energy = self.ask("GET", f"/v1/energy?since={first['at_seconds']}").json["devices"][0]
        wait_until(lambda: (self.ask("GET", f"/v1/energy?since={first['at_seconds']}").json["devices"][0]["energy_joules"]
                            or 0) > 0, "energy is counted")
        self.assertLess(energy["energy_joules"] or 0, 1e6, "nobody took the jump for a year of work")


@unittest.skipUnless(os.geteuid() == 0, "a time namespace needs root")
class TimeNamespaceTest(ZeusdTestCase):
    def test_boot_time_of_another_time_namespace(self):
        prefix = ["unshare", "--time", "--boottime", "100000000", "--monotonic", "50000000", "--fork", "--kill-child"]
        if shutil.which("unshare") is None or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
            self.skipTest("time namespaces cannot be made here")
        self.start_daemon(prefix=prefix)
        holder, status, lease = self.hold(self.lease(200))
        self.assertEqual(status, 201, lease)
        beaten = self.ask("POST", "/v1/leases", self.lease(180, gpu=1, holder="ttl", ttl_seconds=600))
        left = self.ask("GET", "/v1/leases/" + beaten.json["id"]).json["expires_in_seconds"]
        self.assertTrue(500 < left <= 600, left)
        self.assertEqual(self.limits(), [200, 180])
        with open(os.path.join(self.folder, "leases.json"), encoding="utf-8") as file:
            kept = {one["id"]: one for one in json.load(file)["leases"]}
        self.assertGreater(kept[beaten.json["id"]]["deadline_seconds"], 100_000_000, "the daemon's clock is another one")
        # A daemon in another namespace reads other start times: it takes no living holder for a dead one forever, and
        # leaves no knob turned either way.
        outer = self.daemon.process.pid
        with open(f"/proc/{outer}/task/{outer}/children", encoding="ascii") as file:
            inner = int(file.read())
        os.kill(inner, signal.SIGKILL)
        self.daemon.process.wait(60)
        self.start_daemon()
        holder.kill()
        holder.wait()
        for one in self.ask("GET", "/v1/leases").json["leases"]:
            if one["state"] != "ended":
                self.ask("DELETE", "/v1/leases/" + one["id"])
        wait_until(lambda: self.limits() == [LIMIT, LIMIT], "nothing is left turned")


if __name__ == "__main__":
    unittest.main()
