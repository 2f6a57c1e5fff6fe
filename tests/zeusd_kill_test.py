"""Clients of zeusd and zeusd itself are killed at random moments. Afterwards every GPU is at its baseline, the journal
is empty, and the audit log tells of every change. ZEUSD_KILLS=10000 makes it a soak; ZEUSD_SEED repeats a run."""

import json
import os
import pathlib
import random
import signal
import subprocess
import time
import unittest

from sim_testing import wait_until
from zeusd_testing import LIMIT, ZeusdTestCase

CLIENT = pathlib.Path(__file__).resolve().parent / "zeusd_client.py"
KILLS = int(os.environ.get("ZEUSD_KILLS", "40"))
SHARE_OF_DAEMON = 0.15
HOLDER = """
import http.client, json, os, socket, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
from zeusd_client import UnixConnection
socket_path, bodies = sys.argv[2], json.loads(sys.argv[3])
while True:
    for body in bodies:
        try:
            connection = UnixConnection(socket_path)
            connection.request("POST", "/v1/leases", json.dumps(body))
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status == 201:
                lease = json.loads(text)["id"]
                connection.request("DELETE", "/v1/leases/" + lease)
                connection.getresponse().read()
            connection.close()
        except (OSError, http.client.HTTPException):
            pass
"""


class ZeusdKillTest(ZeusdTestCase):
    def setUp(self):
        super().setUp()
        seed = int(os.environ.get("ZEUSD_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"ZEUSD_SEED={seed}", flush=True)
        self.random = random.Random(seed)
        self.start_daemon()

    def client(self):
        bodies = [{"name": "kill", "holder": self.random.choice(["process", "connection"]), "requests": [
            {"device": uuid, "knob": "gpu_power_limit",
             self.random.choice(["exactly", "at_most"]): {"watts": self.random.randrange(120, 240)}}]}
            for uuid in self.known for _ in range(2)]
        self.random.shuffle(bodies)
        return subprocess.Popen(["/usr/bin/python3", "-c", HOLDER, str(CLIENT), self.socket_path, json.dumps(bodies)],
                                stderr=subprocess.DEVNULL)

    def knob_files(self):
        folder = pathlib.Path(self.environment["ZEUS_KNOB_DIR"])
        return sorted(path.name for path in folder.glob("*.json")) if folder.is_dir() else []

    def test_nothing_is_left_turned_whoever_is_killed_when(self):
        self.known = self.uuids()
        clients, kills, daemons = [self.client() for _ in range(4)], 0, 0
        self.addCleanup(lambda: [(client.kill(), client.wait()) for client in clients])
        lowered = 0
        while kills < KILLS:
            # A moment like any other.
            time.sleep(self.random.uniform(0, 0.15))
            lowered += any(limit != LIMIT for limit in self.limits())
            if self.random.random() < SHARE_OF_DAEMON:
                self.daemon.process.send_signal(signal.SIGKILL)
                self.daemon.process.wait()
                self.start_daemon()
                daemons += 1
            else:
                victim = self.random.randrange(len(clients))
                clients[victim].kill()
                clients[victim].wait()
                clients[victim] = self.client()
            kills += 1
        for client in clients:
            client.kill()
            client.wait()
        wait_until(lambda: all(limit == LIMIT for limit in self.limits()), "every GPU is at its baseline")
        wait_until(lambda: not self.knob_files(), "the journal is empty")
        print(f"{kills} kills, {daemons} of the daemon, {lowered} while a limit was lowered: 0 knobs left", flush=True)
        self.assert_audit_is_complete()

    def assert_audit_is_complete(self):
        """Each change of a knob begins where the one before ended, and the last one ends at the baseline."""
        lines = pathlib.Path(self.audit_path).read_text(encoding="utf-8").splitlines()
        last = {}
        for line in lines:
            entry = json.loads(line)  # Also the last one, of a daemon that was killed: it is written at once.
            if entry.get("event") in ("knob set", "knob put back") and entry.get("outcome") == "ok":
                last[entry["device"], entry["knob"]] = entry
        for entry in last.values():
            self.assertEqual(entry["effective"], f"{LIMIT:g} W", entry)


if __name__ == "__main__":
    unittest.main()
