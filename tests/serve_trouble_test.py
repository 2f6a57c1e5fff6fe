"""`zeus serve` when its database hangs, nobody reads its log, or clients do what they should not."""

import contextlib
import http.client
import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import time
import unittest

from serve_testing import JOB, ZEUS, ServeTestCase
from sim_testing import wait_until


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

    @staticmethod
    def is_pending(process, number):
        """Whether the process has not yet taken a signal that it was sent."""
        with open(f"/proc/{process}/status", encoding="ascii") as status:
            pending, = [line.split()[1] for line in status if line.startswith("ShdPnd:")]
        return int(pending, 16) >> (number - 1) & 1 == 1

    @staticmethod
    def has_open(process, path):
        """Whether the process has the file open."""
        folder = f"/proc/{process}/fd"
        with contextlib.suppress(FileNotFoundError):  # It was closed meanwhile.
            return any(os.path.realpath(os.path.join(folder, number)) == os.path.realpath(path)
                       for number in os.listdir(folder))
        return False

    def test_a_second_signal_ends_it_while_the_database_is_locked(self):
        server = self.serve("--no-access-log")
        self.lock()
        self.post_in_flight(server)
        server.process.send_signal(signal.SIGTERM)
        # A signal that comes while the same one is pending is lost.
        wait_until(lambda: not self.is_pending(server.process.pid, signal.SIGTERM),
                   "the server does not take the signal")
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

    def test_a_signal_ends_it_while_it_waits_for_the_database_to_start(self):
        with sqlite3.connect(self.path("zeus.db"), isolation_level=None) as connection:
            connection.execute("CREATE TABLE mine (x)")
            connection.execute("BEGIN EXCLUSIVE")
            process = subprocess.Popen(
                [ZEUS, "serve", "--listen", "127.0.0.1:0", "--database",
                 "sqlite://" + self.path("zeus.db")], stderr=subprocess.DEVNULL)
            # It has nothing to say yet.
            wait_until(lambda: self.has_open(process.pid, self.path("zeus.db")),
                       "the server does not look at its database")
            process.terminate()
            self.assertEqual(process.wait(30), -signal.SIGTERM)
        connection.close()

    def test_a_timeout_of_nothing_is_enough_for_an_idle_server(self):
        server = self.serve("--no-access-log", "--shutdown-timeout", "0")
        self.assertEqual(server.stop(), (0, ""))


@unittest.skipIf("ZEUS_SANITIZED" in os.environ, "a sanitizer needs more address space")
class ThreadsTest(ServeTestCase):
    """Threads are made scarce by their stacks: each takes STACK bytes of an address space that
    has a limit. The system refuses them as a limit of processes would, for root as well."""

    STACK = 1 << 30

    def serve_with(self, threads):
        def limit():
            resource.setrlimit(resource.RLIMIT_STACK, (self.STACK, self.STACK))
            size = threads * self.STACK + self.STACK // 2
            resource.setrlimit(resource.RLIMIT_AS, (size, size))

        process = subprocess.Popen(
            [ZEUS, "serve", "--listen", "127.0.0.1:0", "--database",
             "sqlite://" + self.path(f"{threads}.db")], preexec_fn=limit, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        return process

    def test_a_server_without_threads_is_one_sentence(self):
        for threads in range(7):
            with self.subTest(threads=threads):
                process = self.serve_with(threads)
                output, errors = process.communicate(timeout=60)
                self.assertEqual((output, process.returncode), ("", 6), errors)
                self.assertEqual(len(errors.splitlines()), 1, errors)
                self.assertIn("no more threads", errors)

    def test_it_begins_with_few_threads_and_works_with_those_it_gets(self):
        process = self.serve_with(8)
        line = process.stdout.readline()
        self.assertTrue(line.startswith("listening on "), line or process.communicate()[1])
        self.assertLess(len(os.listdir(f"/proc/{process.pid}/task")), 12)
        port = int(line.rsplit(":", 1)[1])
        # More requests than there can be threads, at the same time.
        connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                       for _ in range(40)]
        for number, connection in enumerate(connections):
            connection.request("POST", "/v1/jobs", json.dumps({**JOB, "id": f"job{number}"}))
        for connection in connections:
            self.assertEqual(connection.getresponse().status, 201)
            connection.close()
        process.terminate()
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)


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
        wait_until(lambda: os.path.exists(path), "the log was not opened anew")
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


class RequestTest(ServeTestCase):
    """Requests that are there to confuse it."""

    def setUp(self):
        super().setUp()
        self.server = self.serve("--no-access-log")
        self.server.ask("POST", "/v1/jobs", JOB)

    def check_refused(self, status, *fields):
        """A request with these fields, and one that it tries to smuggle in: one answer."""
        head = "\r\n".join(["POST /v1/jobs HTTP/1.1", *fields, "", ""])
        raw = self.exchange(self.server, head.encode() + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertTrue(raw.startswith(f"HTTP/1.1 {status} "), raw)
        self.assertEqual(raw.count("HTTP/1.1 "), 1, raw)

    def test_codings_other_than_chunked(self):
        for coding in ("gzip", "gzip, chunked", "chunked, gzip", "identity", "xchunked", ""):
            with self.subTest(coding=coding):
                self.check_refused(501, "Host: localhost", f"Transfer-Encoding: {coding}")

    def test_a_request_has_one_host(self):
        self.check_refused(400, "Content-Length: 0")
        self.check_refused(400, "Host: localhost", "Host: b", "Content-Length: 0")

    def test_targets_that_are_no_text(self):
        for path in ("/v1/jobs/%FF", "/v1/jobs/a%00b", "/v1/jobs?after=%FF", "/v1/jobs?label=a:%00",
                     "/jobs/batch_size?job_id=%C3"):
            with self.subTest(path=path):
                answer = self.server.ask("GET", path)
                self.assertEqual(answer.status, 400, answer.text)
                self.assertIn("UTF-8", answer.json["error"]["message"])

    def test_the_head_of_a_stream_has_no_body(self):
        raw = self.exchange(self.server, b"HEAD /v1/jobs/mnist/events HTTP/1.1\r\nHost: localhost\r\n"
                            b"Accept: text/event-stream\r\n\r\n")
        self.assertIn("text/event-stream", raw)
        self.assertTrue(raw.endswith("\r\n\r\n"), raw)

    def test_half_a_body_does_not_hold_up_the_end(self):
        with socket.create_connection(self.server.address, timeout=30) as connection:
            connection.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
            self.assertEqual(self.server.ask("GET", "/healthz").status, 200)
            self.server.process.send_signal(signal.SIGTERM)
            # Well before the 30 seconds that a body has otherwise.
            self.assertEqual(self.server.process.wait(20), 0)
            self.assertIn(b" 408 ", connection.makefile("rb").read())

    def test_connections_beyond_the_limit_take_no_descriptors(self):
        server = self.serve("--no-access-log", "--max-connections", "10")
        before = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        held = [socket.create_connection(server.address) for _ in range(200)]
        # The reserve keeps the latest: those before it have ended when this one is answered.
        self.assertEqual(server.ask("GET", "/healthz").status, 200)
        self.assertLess(len(os.listdir(f"/proc/{server.process.pid}/fd")), before + 50)
        for connection in held:
            connection.close()


class StreamTest(ServeTestCase):
    def follow(self, server, **headers):
        connection = server.connect()
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/jobs/mnist/events",
                           headers={"Accept": "text/event-stream", **headers})
        response = connection.getresponse()
        self.addCleanup(response.close)
        return response

    def next_id(self, response):
        lines = [response.readline() for _ in range(4)]
        return int(lines[0].removeprefix(b"id: "))

    def test_a_number_that_never_was_begins_anew(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)
        self.assertEqual(self.next_id(self.follow(server, **{"Last-Event-ID": "99"})), 1)

    def test_a_job_that_was_made_anew_begins_anew(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)
        self.start_trial(server)
        response = self.follow(server)
        self.assertEqual([self.next_id(response) for _ in range(2)], [1, 2])
        server.ask("DELETE", "/v1/jobs/mnist")
        server.ask("POST", "/v1/jobs", JOB)
        # The stream has ended when it saw that there was no job, and begins again otherwise.
        line = response.readline()
        self.assertIn(line, (b"", b"id: 1\n"))


class SocketFileTest(ServeTestCase):
    def test_the_socket_of_another_server_stays(self):
        path = self.path("zeus.sock")
        first = self.serve("--no-access-log", listen="unix:" + path)
        os.unlink(path)
        self.serve("--no-access-log", listen="unix:" + path)
        self.assertEqual(first.stop(), (0, ""))
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)


if __name__ == "__main__":
    unittest.main()
