"""How much memory strangers and friends can make `zeus serve` use."""

import contextlib
import os
import socket
import subprocess
import unittest

from serve_testing import JOB, ZEUS, ServeTestCase

MEGABYTE = 1 << 20


def peak(server):
    """The most memory that the process ever had, in bytes."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        line, = [line for line in status if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def read_answer(connection):
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            received += chunk
    return received.decode()


class BuffersTest(ServeTestCase):
    def setUp(self):
        super().setUp()
        self.server = self.serve("--no-access-log")

    def flood(self, head, piece, limit):
        """Sends `piece` again and again until the server has enough, or `limit` bytes are sent."""
        with socket.create_connection(self.server.address, timeout=60) as connection:
            connection.sendall(head)
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                for _ in range(limit // len(piece)):
                    connection.sendall(piece)
            return read_answer(connection)

    def check_bounded(self, head, piece):
        before = peak(self.server)
        answer = self.flood(head, piece, 100 * MEGABYTE)
        self.assertTrue(answer.startswith("HTTP/1.1 431 ") or answer == "", answer)
        self.assertLess(peak(self.server) - before, 10 * MEGABYTE)
        self.assertEqual(self.server.ask("GET", "/healthz").status, 200)

    def test_endless_chunk_extensions(self):
        self.check_bounded(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n1;", b"a" * 65536)

    def test_endless_trailers(self):
        self.check_bounded(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
                           b"Trailer-Field: " + b"a" * 1000 + b"\r\n")

    def test_endless_headers(self):
        self.check_bounded(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
                           b"Field: " + b"a" * 1000 + b"\r\n")

    def test_many_small_fields(self):
        raw = self.exchange(self.server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" +
                            b"a:\r\n" * 200 + b"\r\n")
        self.assertTrue(raw.startswith("HTTP/1.1 431 "), raw)
        self.assertIn("100 fields", raw)

    def test_a_chunk_extension_of_usual_size_is_taken(self):
        raw = self.exchange(self.server, b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
                            b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                            b"2;name=value\r\n{}\r\n0\r\nTrailer: x\r\n\r\n")
        self.assertTrue(raw.startswith("HTTP/1.1 422 "), raw)

    def test_a_body_of_many_tiny_values_is_refused(self):
        body = b'{"batch_sizes": [' + b"1," * (3 * MEGABYTE) + b"1]}"
        answer = self.server.ask("POST", "/v1/plans", body)
        self.assertEqual(answer.status, 422)
        self.assertIn("values", answer.text)


class EarlyRefusalTest(ServeTestCase):
    """A request that is refused whatever its body says is refused before the body is read."""

    def setUp(self):
        super().setUp()
        made = subprocess.run([ZEUS, "serve", "--tokens", self.path("tokens"), "--new-token", "ci"],
                              capture_output=True, text=True, timeout=60, check=True)
        self.token = made.stdout.strip()
        self.server = self.serve("--no-access-log", "--tokens", self.path("tokens"))

    def answer_to_header(self, path, *fields, trailer=b""):
        head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost", *fields, "", ""])
        with socket.create_connection(self.server.address, timeout=60) as connection:
            connection.sendall(head.encode() + trailer)
            return read_answer(connection)

    def test_a_stranger_gets_401_before_his_body(self):
        for length in (10, 16 * MEGABYTE, 1 << 40):
            answer = self.answer_to_header("/v1/plans", f"Content-Length: {length}")
            self.assertTrue(answer.startswith("HTTP/1.1 401 "), answer)

    def test_nobody_is_asked_to_continue_in_vain(self):
        answer = self.answer_to_header("/v1/plans", "Content-Length: 5", "Expect: 100-continue")
        self.assertTrue(answer.startswith("HTTP/1.1 401 "), answer)

    def test_paths_that_are_not_there(self):
        answer = self.answer_to_header("/nowhere", "Content-Length: 1000")
        self.assertTrue(answer.startswith("HTTP/1.1 404 "), answer)

    def test_a_token_in_a_trailer_opens_nothing(self):
        answer = self.answer_to_header(
            "/v1/jobs", "Transfer-Encoding: chunked",
            trailer=b"2\r\n{}\r\n0\r\nAuthorization: Bearer " + self.token.encode() + b"\r\n\r\n")
        self.assertTrue(answer.startswith("HTTP/1.1 401 "), answer)
        self.assertEqual(self.server.ask("POST", "/v1/jobs", JOB, token=self.token).status, 201)


class BudgetTest(ServeTestCase):
    HEAD = (b"POST /v1/plans HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n")

    def begin(self, server, size):
        """A body of which all but the last byte is sent, or as much as the server wanted."""
        connection = socket.create_connection(server.address, timeout=60)
        self.addCleanup(connection.close)
        connection.sendall(self.HEAD % size)
        return connection

    def test_bodies_share_a_budget(self):
        server = self.serve("--no-access-log", "--body-memory", str(3 * MEGABYTE))
        held = [self.begin(server, MEGABYTE) for _ in range(3)]
        # A request that is answered on the thread that reads has been read after those.
        self.assertEqual(server.ask("GET", "/healthz").status, 200)
        refused = read_answer(self.begin(server, MEGABYTE))
        self.assertTrue(refused.startswith("HTTP/1.1 503 "), refused)
        self.assertIn("Retry-After: 1", refused)
        chunked = self.exchange(server, b"POST /v1/plans HTTP/1.1\r\nHost: localhost\r\n"
                                b"Transfer-Encoding: chunked\r\n\r\n80000\r\n" + b" " * 0x80000)
        self.assertTrue(chunked.startswith("HTTP/1.1 503 "), chunked)
        self.assertEqual(server.ask("GET", "/v1/jobs").status, 200)
        held.pop().close()
        self.addCleanup(lambda: [connection.close() for connection in held])
        # The share of the one that left comes back.
        answer = ""
        while not answer.startswith("HTTP/1.1 422 "):
            connection = self.begin(server, MEGABYTE)
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                connection.sendall(b" " * MEGABYTE)
            answer = read_answer(connection)
            self.assertIn(answer[:13], ("HTTP/1.1 503 ", "HTTP/1.1 422 "))

    @unittest.skipIf("ZEUS_SANITIZED" in os.environ, "a sanitizer needs memory of its own")
    def test_two_hundred_plans_of_sixteen_megabytes(self):
        server = self.serve("--no-access-log")
        body = b'{"profile": [' + b'{"instruction":"f","clock":1},' * 550_000 + b"{}]}"
        body += b" " * (16 * MEGABYTE - len(body))
        connections = [self.begin(server, len(body)) for _ in range(200)]
        statuses = []
        for connection in connections:
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                connection.sendall(body)
            statuses.append(read_answer(connection)[:13])
        # Some were read and understood to make no sense, most had to come again.
        self.assertLessEqual(set(statuses), {"HTTP/1.1 422 ", "HTTP/1.1 503 "})
        self.assertIn("HTTP/1.1 422 ", statuses)
        self.assertLess(peak(server), 600 * MEGABYTE)
        self.assertEqual(server.ask("GET", "/healthz").status, 200)


if __name__ == "__main__":
    unittest.main()
