"""Clients of zeusd and zeusd itself are killed at random moments. Afterwards every GPU is at its baseline, the journal
is empty, and the audit log tells of every change. ZEUSD_KILLS=10000 makes it a soak, ZEUSD_NODES=4 shares it among so
many nodes with a daemon each, ZEUSD_SEED repeats a run."""

import ctypes
import http.client
import json
import os
import pathlib
import random
import signal
import sys
import time
import traceback
import unittest

from sim_testing import wait_until
from zeusd_client import UnixConnection
from zeusd_testing import LIMIT, ZeusdTestCase

KILLS = int(os.environ.get("ZEUSD_KILLS", "60"))
NODES = int(os.environ.get("ZEUSD_NODES", "1"))
CLIENTS = 4
SHARE_OF_DAEMON = 0.15
BETWEEN_CHECKS = 100  # So many kills, then everything is looked at.
# The events of the audit log that say what a knob is at.
TURNS = ("knob set", "knob put back", "knob taken over", "knob found in the journal")
LEFT = "left by a process that is gone"


class Driver:
    """The limits of the GPUs, read past the daemon."""

    def __init__(self, environment, count):
        os.environ.update({name: value for name, value in environment.items() if name.startswith("ZEUS_SIM")})
        self.nvml = ctypes.CDLL(environment["ZEUS_NVML_LIBRARY"])
        if self.nvml.nvmlInit_v2() != 0:
            raise AssertionError("the driver does not start")
        self.handles = []
        for index in range(count):
            handle = ctypes.c_void_p()
            if self.nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
                raise AssertionError(f"there is no GPU {index}")
            self.handles.append(handle)

    def limits(self):
        values = []
        for handle in self.handles:
            milliwatts = ctypes.c_uint()
            if self.nvml.nvmlDeviceGetPowerManagementLimit(handle, ctypes.byref(milliwatts)) != 0:
                raise AssertionError("a GPU does not tell its limit")
            values.append(milliwatts.value / 1000)
        return values


def take_and_leave(socket_path, bodies):
    """Takes leases and gives them back, until it is killed."""
    while True:
        for body in bodies:
            connection = UnixConnection(socket_path)
            try:
                connection.request("POST", "/v1/leases", body)
                answer = connection.getresponse()
                text = answer.read().decode()
                if answer.status == 201:
                    connection.request("DELETE", "/v1/leases/" + json.loads(text)["id"])
                    connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                time.sleep(0.001)  # The daemon is away.
            finally:
                connection.close()


class ZeusdKillTest(ZeusdTestCase):
    def fork_client(self):
        bodies = [json.dumps({"name": "kill", "holder": self.random.choice(["process", "connection"]), "requests": [
            {"device": uuid, "knob": "gpu_power_limit",
             self.random.choice(["exactly", "at_most"]): {"watts": self.random.randrange(120, 240)}}]})
            for uuid in self.known for _ in range(2)]
        self.random.shuffle(bodies)
        pid = os.fork()
        if pid == 0:
            try:
                take_and_leave(self.socket_path, bodies)
            finally:
                os._exit(1)
        return pid

    @staticmethod
    def kill_client(pid):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def knob_files(self):
        folder = pathlib.Path(self.environment["ZEUS_KNOB_DIR"])
        return sorted(path.name for path in folder.glob("*.json")) if folder.is_dir() else []

    def read_limits(self):
        """The limits past the daemon: from the driver itself where this interpreter can load it."""
        return self.limits() if self.driver is None else self.driver.limits()

    def restart_daemon(self):
        self.daemon.process.send_signal(signal.SIGKILL)
        self.daemon.process.wait()
        for stream in (self.daemon.process.stdout, self.daemon.process.stderr):
            stream.close()
        self.start_daemon()

    def kill_for_a_while(self, kills):
        """Returns how many kills hit the daemon, and how many came while a limit was lowered."""
        clients, daemons, lowered = [self.fork_client() for _ in range(CLIENTS)], 0, 0
        try:
            for _ in range(kills):
                # A moment like any other.
                time.sleep(self.random.uniform(0, 0.03))
                lowered += any(limit != LIMIT for limit in self.read_limits())
                victim = self.random.randrange(len(clients))
                of_daemon = self.random.random() < SHARE_OF_DAEMON
                if not of_daemon or self.random.random() < 0.3:  # Sometimes both at once.
                    self.kill_client(clients[victim])
                    clients[victim] = None
                if of_daemon:
                    self.restart_daemon()
                    daemons += 1
                if clients[victim] is None:
                    clients[victim] = self.fork_client()
        finally:
            for client in clients:
                if client is not None:
                    self.kill_client(client)
        wait_until(lambda: all(limit == LIMIT for limit in self.read_limits()), "every GPU is at its baseline")
        wait_until(lambda: not self.knob_files(), "the journal is empty")
        return daemons, lowered

    def soak(self, kills, seed):
        self.random = random.Random(seed)
        self.start_daemon()
        self.known = self.uuids()
        self.driver = None if "ZEUS_SANITIZED" in os.environ else Driver(self.environment, len(self.known))
        done = daemons, lowered = 0, 0
        for start in range(0, kills, BETWEEN_CHECKS):
            hit, low = self.kill_for_a_while(min(BETWEEN_CHECKS, kills - start))
            done = daemons, lowered = daemons + hit, lowered + low
        code, errors = self.daemon.stop()
        self.assertEqual(code, 0, errors)
        lines, bridged = self.assert_audit_is_complete()
        print(f"seed {seed}: {kills} kills, {done[0]} of the daemon, {done[1]} while a limit was lowered: 0 knobs left; "
              f"{lines} lines of audit, {bridged} changes of killed daemons told by the next one", flush=True)

    def test_nothing_is_left_turned_whoever_is_killed_when(self):
        seed = int(os.environ.get("ZEUSD_SEED", random.SystemRandom().randrange(1 << 32)))
        if NODES == 1:
            return self.soak(KILLS, seed)
        children = []
        for node in range(NODES):
            pid = os.fork()
            if pid == 0:
                self.soak_in_child(KILLS // NODES, seed + node)
            children.append(pid)
        self.assertEqual({os.waitpid(pid, 0)[1] for pid in children}, {0})
        return None

    def soak_in_child(self, kills, seed):
        """Runs a test of its own, on a node of its own, and ends the process."""
        code = 1
        try:
            test = ZeusdKillTest("soak_once")
            test.share = kills, seed
            result = test.run()
            for _, text in result.failures + result.errors:
                print(text, file=sys.stderr, flush=True)
            code = 0 if result.wasSuccessful() else 1
        except BaseException:  # Nothing of the parent's test must go on in here.
            traceback.print_exc()
        finally:
            os._exit(code)

    def soak_once(self):
        self.soak(*self.share)

    def assert_audit_is_complete(self):
        """Each change of a knob begins where the one before ended, and the last one ends at the baseline. The number of
        lines, and of changes that a daemon could not tell of any more and the next one did."""
        last, bridged, lines = {}, 0, pathlib.Path(self.audit_path).read_text(encoding="utf-8").splitlines()
        baselines = {"gpu_power_limit": f"{LIMIT:g} W", "persistence": "off"}
        for line in lines:
            entry = json.loads(line)  # Also the last one of a daemon that was killed.
            if entry.get("event") not in TURNS or entry.get("outcome") != "ok":
                continue
            key = entry["device"], entry["knob"]
            baseline = baselines[entry["knob"]]
            before = last.get(key, baseline)
            begins = entry.get("from", entry["effective"])
            # The next daemon finds what its predecessor has set, or has put back, and says so.
            found = entry.get("reason") == LEFT
            bridged += found and begins != before
            self.assertTrue(found or begins == before, f"from {before} to {begins}: {entry}")
            # A leftover is put back next, whether or not the daemon lives to tell.
            last[key] = baseline if entry["event"] == "knob found in the journal" else entry["effective"]
        for key, value in last.items():
            self.assertEqual(value, baselines[key[1]], key)
        return len(lines), bridged


if __name__ == "__main__":
    unittest.main()
