"""Whether `zeus serve` tells the truth about itself, and is heard when it is crowded."""

import contextlib
import http.client
import os
import resource
import signal
import socket
import subprocess
import unittest

from serve_testing import JOB, ZEUS, Answer, ServeTestCase
from sim_testing import wait_until


def ask_from(server, source, path):
    """A GET from an address of this machine."""
    connection = http.client.HTTPConnection(*server.address, timeout=60,
                                            source_address=(source, 0))
    with contextlib.closing(connection):
        connection.request("GET", path)
        return Answer(connection.getresponse())


class CrowdTest(ServeTestCase):
    def hold(self, server, count, source="127.0.0.1", text=b""):
        """Connections that say no more than `text`."""
        for _ in range(count):
            connection = socket.create_connection(server.address, timeout=60,
                                                  source_address=(source, 0))
            self.addCleanup(connection.close)
            connection.sendall(text)

    def test_health_is_told_when_all_connections_are_taken(self):
        server = self.serve("--no-access-log", "--max-connections", "10",
                            "--max-connections-per-address", "10")
        for text in (b"", b"G", b"GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"):
            self.hold(server, 40, text=text)
            for _ in range(5):
                self.assertEqual(server.ask("GET", "/healthz").status, 200)
                self.assertEqual(server.ask("GET", "/metrics").status, 200)
        refused = server.ask("GET", "/v1/jobs")
        self.assertEqual(refused.status, 503)
        self.assertIn("too many connections", refused.text)
        self.assertEqual(refused.headers["Retry-After"], "1")

    def test_one_address_leaves_room_for_others(self):
        server = self.serve("--no-access-log", "--max-connections", "8")
        self.hold(server, 30)
        self.assertEqual(server.ask("GET", "/v1/jobs").status, 503)
        self.assertEqual(ask_from(server, "127.0.0.2", "/v1/jobs").status, 200)
        refused = [line for line in server.ask("GET", "/metrics").text.splitlines()
                   if line.startswith("zeus_server_connections_refused_total")]
        self.assertGreaterEqual(int(refused[0].split()[1]), 26)

    def test_the_limit_of_an_address_can_be_set(self):
        server = self.serve("--no-access-log", "--max-connections-per-address", "1")
        with contextlib.closing(server.connect()) as connection:
            connection.request("GET", "/v1/jobs")
            self.assertEqual(connection.getresponse().read()[:1], b"{")
            self.assertEqual(server.ask("GET", "/v1/jobs").status, 503)
        wait_until(lambda: server.ask("GET", "/v1/jobs").status == 200,
                   "the place does not come back")


class ReadinessTest(ServeTestCase):
    def readiness(self, server, token=None):
        return server.ask("GET", "/readyz", token=token)

    def wait_for(self, server, status):
        wait_until(lambda: self.readiness(server).status == status, f"/readyz is not {status}")

    def token(self):
        made = subprocess.run([ZEUS, "serve", "--tokens", self.path("tokens"), "--new-token", "ci"],
                              capture_output=True, text=True, timeout=60, check=True)
        return made.stdout.strip()

    def test_a_full_disk_is_not_ready_and_strangers_learn_no_names(self):
        token = self.token()
        # No file may grow, which is what a full disk is; the signal of that limit is ignored.
        server = self.serve("--no-access-log", "--tokens", self.path("tokens"),
                            restore_signals=False)
        self.assertEqual(self.readiness(server).status, 200)
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, -1))
        self.wait_for(server, 503)
        stranger = self.readiness(server)
        self.assertEqual(stranger.json["error"]["code"], "unavailable")
        self.assertNotIn("zeus.db", stranger.text)
        self.assertIn("zeus.db", self.readiness(server, token=token).text)
        self.assertEqual(server.ask("GET", "/healthz").status, 200)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)
        self.wait_for(server, 200)
        code, errors = server.stop()
        self.assertEqual(code, 0)
        self.assertEqual(errors.count("not ready: "), 1, errors)
        self.assertIn("zeus.db", errors)
        self.assertIn("ready again", errors)

    def test_a_damaged_file_is_not_ready(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)
        self.assertEqual(server.stop()[0], 0)  # Everything is in the one file now.
        server = self.serve("--no-access-log")
        self.assertEqual(self.readiness(server).status, 200)
        with open(self.path("zeus.db"), "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (os.path.getsize(self.path("zeus.db")) - 4096))
        self.wait_for(server, 503)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(60), 0)

    def test_a_file_that_was_moved_away_is_not_ready(self):
        server = self.serve("--no-access-log")
        self.assertEqual(self.readiness(server).status, 200)
        os.rename(self.path("zeus.db"), self.path("elsewhere.db"))
        self.wait_for(server, 503)

    def test_many_questions_wear_no_disk(self):
        server = self.serve("--no-access-log")
        self.assertEqual(self.readiness(server).status, 200)
        before = os.path.getsize(self.path("zeus.db-wal"))
        with contextlib.closing(server.connect()) as connection:
            for _ in range(500):
                connection.request("GET", "/readyz")
                answer = connection.getresponse()
                answer.read()
                self.assertEqual(answer.status, 200)
        # 500 writes would be 10 MB.
        self.assertLess(os.path.getsize(self.path("zeus.db-wal")) - before, 1_000_000)


if __name__ == "__main__":
    unittest.main()
