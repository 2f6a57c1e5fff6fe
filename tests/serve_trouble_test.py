"""`zeus serve` when its database hangs, nobody reads its log, or clients do what they should not."""

import contextlib
import json
import os
import signal
import sqlite3
import time
import unittest

from serve_testing import JOB, ServeTestCase


class StuckTest(ServeTestCase):
    def lock(self):
        """Takes the write lock of the database, as another process would."""
        connection = sqlite3.connect(self.path("zeus.db"), isolation_level=None)
        self.addCleanup(connection.close)
        connection.execute("BEGIN IMMEDIATE")

    def post_in_flight(self, server):
        connection = server.connect()
        self.addCleanup(connection.close)
        connection.request("POST", "/v1/jobs", json.dumps(JOB))
        # Answered by the thread that has read the request before.
        self.assertEqual(server.ask("GET", "/healthz").status, 200)

    def test_a_second_signal_ends_it_while_the_database_is_locked(self):
        server = self.serve("--no-access-log")
        self.lock()
        self.post_in_flight(server)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)  # Two signals at once are one.
        code, errors = server.stop()
        self.assertEqual(code, 6)
        self.assertIn("second signal", errors)

    def test_the_shutdown_timeout_ends_it_while_the_database_is_locked(self):
        server = self.serve("--no-access-log", "--shutdown-timeout", "0.3")
        self.lock()
        self.post_in_flight(server)
        code, errors = server.stop()
        self.assertEqual(code, 6)
        self.assertIn("in time", errors)

    def test_a_timeout_of_nothing_is_enough_for_an_idle_server(self):
        server = self.serve("--no-access-log", "--shutdown-timeout", "0")
        self.assertEqual(server.stop(), (0, ""))


class LogTest(ServeTestCase):
    def test_nobody_reads_standard_error(self):
        server = self.serve()
        with contextlib.closing(server.connect()) as connection:
            for _ in range(1500):
                connection.request("GET", "/healthz")
                self.assertEqual(connection.getresponse().read(), b'{"status":"ok"}')
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(30), 0)

    def test_a_full_disk_is_said_once_and_counted(self):
        server = self.serve("--access-log", "/dev/full")
        deadline = time.monotonic() + 30
        while "log_lines_dropped_total 0\n" in server.ask("GET", "/metrics").text:
            self.assertLess(time.monotonic(), deadline)
        code, errors = server.stop()
        self.assertEqual(code, 0)
        self.assertEqual(errors.count("loses lines"), 1, errors)

    def test_a_hangup_opens_the_log_anew(self):
        path = self.path("access.log")
        server = self.serve("--access-log", path)
        server.ask("GET", "/healthz")
        os.rename(path, self.path("old.log"))
        server.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 30
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        server.ask("GET", "/readyz")
        self.assertEqual(server.stop(), (0, ""))
        for name, asked in (("old.log", "/healthz"), ("access.log", "/readyz")):
            with open(self.path(name), encoding="utf-8") as file:
                self.assertEqual([json.loads(line)["path"] for line in file], [asked])

    def test_a_folder_is_no_log(self):
        code, sentence = self.refused("--access-log", self.directory, "--listen", "127.0.0.1:0",
                                      "--database", "sqlite://" + self.path("zeus.db"))
        self.assertEqual(code, 2)
        self.assertIn("folder", sentence)


if __name__ == "__main__":
    unittest.main()
