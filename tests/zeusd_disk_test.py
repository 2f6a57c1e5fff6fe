"""zeusd when its disk is full, and when it is killed while jobs are registered."""

import http.client
import os
import signal
import subprocess
import threading
import unittest

from sim_testing import wait_until
from zeusd_client import UnixConnection
from zeusd_testing import LIMIT, ZeusdTestCase

ROUNDS = int(os.environ.get("ZEUSD_ROUNDS", "4"))


def is_job(answer, state):
    return answer.status == 200 and answer.json["state"] == state


class ZeusdFullDiskTest(ZeusdTestCase):
    """Everything that the daemon writes lies on a file system of its own."""

    def setUp(self):
        super().setUp()
        self.disk = os.path.join(self.folder, "disk")
        os.mkdir(self.disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=0755", "tmpfs", self.disk], capture_output=True,
                          check=False).returncode != 0:
            self.skipTest("a file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "--lazy", self.disk], check=True)
        self.environment["ZEUS_KNOB_DIR"] = os.path.join(self.disk, "knobs")
        self.audit_path = os.path.join(self.disk, "audit.jsonl")

    def start_on_disk(self):
        self.start_daemon(None, "--state-dir", os.path.join(self.disk, "state"), "--audit-log", self.audit_path)

    def fill(self):
        with open(os.path.join(self.disk, "filling"), "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def audit_lost(self):
        for line in self.ask("GET", "/metrics").text.splitlines():
            if line.startswith("zeus_daemon_audit_lost_total "):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError("there is no metric of lost lines")

    def test_a_full_disk_turns_no_knob_and_keeps_none_turned(self):
        self.start_on_disk()
        holder, status, _ = self.hold(self.lease(200))
        self.assertEqual(status, 201)
        before = {"id": "before", "uid": 0, "devices": [self.uuids()[0]]}
        self.assertEqual(self.ask("POST", "/v1/jobs", before).status, 201)
        self.fill()

        answer = self.ask("POST", "/v1/leases", self.lease(180, gpu=1))
        self.assertEqual(answer.status, 503, answer.text)
        self.assertIn("knobs", answer.json["error"]["message"])
        self.assertEqual(self.limits(), [200, LIMIT], "a change that cannot be undone is not made")
        # A job is told of, and forgotten only if the daemon is killed before there is room.
        during = {"id": "during", "uid": 0, "devices": [self.uuids()[1]]}
        self.assertEqual(self.ask("POST", "/v1/jobs", during).status, 201)
        holder.kill()
        wait_until(lambda: self.limits() == [LIMIT, LIMIT], "what was turned before comes back")
        # The last page of the log has room for some lines; at most ten refusals of a caller are logged in a second.
        wait_until(lambda: self.ask("POST", "/v1/leases", self.lease(50)).status == 422 and self.audit_lost() > 0,
                   "lost lines are counted")
        self.assertEqual(self.ask("GET", "/v1/readings").status, 200)

        os.unlink(os.path.join(self.disk, "filling"))
        self.assertEqual(self.ask("POST", "/v1/leases", self.lease(180, gpu=1)).status, 201)
        self.assertEqual(self.ask("DELETE", "/v1/jobs/during").status, 200)
        self.daemon.stop(signal.SIGKILL)
        self.start_on_disk()
        self.assertTrue(is_job(self.ask("GET", "/v1/jobs/before"), "running"))
        self.assertEqual(self.limits(), [LIMIT, 180], "this test, which holds it, lives")

    def test_a_daemon_that_is_killed_on_a_full_disk_leaves_nothing_turned(self):
        self.start_on_disk()
        _, status, _ = self.hold(self.lease(200))
        self.assertEqual(status, 201)
        self.assertEqual(self.ask("POST", "/v1/jobs", {"id": "job", "uid": 0, "devices": [self.uuids()[0]]}).status, 201)
        self.fill()
        self.assertEqual(self.ask("POST", "/v1/jobs", {"id": "lost", "uid": 0, "devices": [self.uuids()[1]]}).status, 201)
        self.daemon.stop(signal.SIGKILL)
        self.start_on_disk()
        self.assertEqual(self.limits()[0], 200, "its holder lives")
        self.assertTrue(is_job(self.ask("GET", "/v1/jobs/job"), "running"))
        self.daemon.stop()
        self.assertEqual(self.limits(), [LIMIT, LIMIT])


class Registrar(threading.Thread):
    """Registers jobs and ends every third one, as fast as the daemon answers, until it is gone."""

    def __init__(self, path, prefix, device):
        super().__init__()
        self.path, self.prefix, self.device = path, prefix, device
        self.running, self.ended = set(), set()
        self.many = threading.Event()

    def run(self):
        connection = UnixConnection(self.path)
        try:
            for number in range(300):
                job = f"{self.prefix}-{number}"
                body = '{"id": "%s", "uid": 0, "devices": ["%s"]}' % (job, self.device)
                self.ask(connection, "POST", "/v1/jobs", body, 201)
                self.running.add(job)
                if number % 3 == 0:
                    # Whether it still runs is not known from here on until the answer.
                    self.running.remove(job)
                    self.ask(connection, "DELETE", f"/v1/jobs/{job}", None, 200)
                    self.ended.add(job)
                if number == 20:
                    self.many.set()
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()

    @staticmethod
    def ask(connection, method, target, body, status):
        connection.request(method, target, body=body)
        answer = connection.getresponse()
        answer.read()
        if answer.status != status:
            raise AssertionError(answer.status)


class ZeusdKilledWhileRegisteringTest(ZeusdTestCase):
    def test_what_was_answered_is_there_after_kill(self):
        self.start_daemon()
        device = self.uuids()[0]
        registered = 0
        for number in range(ROUNDS):
            registrars = [Registrar(self.socket_path, f"{number}-{i}", device) for i in range(2)]
            for registrar in registrars:
                registrar.start()
            for registrar in registrars:
                self.assertTrue(registrar.many.wait(120))
            self.daemon.stop(signal.SIGKILL)
            for registrar in registrars:
                registrar.join(60)
                self.assertFalse(registrar.is_alive())
            self.start_daemon()
            for registrar in registrars:
                for job in registrar.running:
                    self.assertTrue(is_job(self.ask("GET", f"/v1/jobs/{job}"), "running"), job)
                    self.assertEqual(self.ask("DELETE", f"/v1/jobs/{job}").status, 200)
                for job in registrar.ended:
                    self.assertFalse(is_job(self.ask("GET", f"/v1/jobs/{job}"), "running"), job)
                registered += len(registrar.running) + len(registrar.ended)
        print(f"{registered} jobs were registered around {ROUNDS} kills", flush=True)


if __name__ == "__main__":
    unittest.main()
