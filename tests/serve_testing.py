"""Shared by the tests of `zeus serve`: a server of their own, and ways to talk to it."""

import http.client
import json
import os
import socket
import ssl
import subprocess
import tempfile
import unittest

from sim_testing import PipedProgram

ZEUS = os.environ.get("ZEUS_BINARY", "build/release/bin/zeus")

JOB = {"id": "mnist", "batch_sizes": [32, 64, 128], "default_batch_size": 64, "policy": "zeus",
       "max_power_watts": 250, "gpu_model": "V100", "target_metric": 0.9, "seed": 7}
REPORT = {"epoch": 1, "time_seconds": 10, "energy_joules": 1000, "metric": 0.1}


class Answer:
    """A response that was read to its end."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    @property
    def json(self):
        return json.loads(self.text)


class Server(PipedProgram):
    """A `zeus serve` process on a free port of this machine."""

    def __init__(self, *arguments, listen="127.0.0.1:0", environment=None, restore_signals=True):
        self.process = subprocess.Popen(
            [ZEUS, "serve", "--listen", listen, *arguments], env=environment,
            restore_signals=restore_signals, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise AssertionError(f"{line!r} {self.process.communicate()[1]!r}")
        self.url = line.removeprefix("listening on ").strip()

    @property
    def address(self):
        host, port = self.url.split("://")[1].rsplit(":", 1)
        return host, int(port)

    def connect(self, timeout=30, authority=None):
        if self.url.startswith("https"):
            context = ssl.create_default_context(cafile=authority)
            return http.client.HTTPSConnection(*self.address, timeout=timeout, context=context)
        return http.client.HTTPConnection(*self.address, timeout=timeout)

    def ask(self, method, path, body=None, token=None, headers=None, authority=None):
        """One request on a connection of its own. Bodies that are no text are sent as JSON."""
        headers = dict(headers or {})
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        connection = self.connect(authority=authority)
        try:
            connection.request(method, path, body=body, headers=headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()


class ServeTestCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="zeus-serve-test-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def serve(self, *arguments, **options):
        database = "sqlite://" + self.path("zeus.db")
        server = Server("--database", database, *arguments, **options)
        self.addCleanup(server.kill)
        return server

    def refused(self, *arguments):
        """A server that does not start: exit code and its sentence."""
        done = subprocess.run([ZEUS, "serve", *arguments], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.returncode, done.stderr

    def exchange(self, server, *pieces):
        """Raw bytes to the server; everything it says until it closes the connection."""
        with socket.create_connection(server.address, timeout=60) as connection:
            for piece in pieces:
                try:
                    connection.sendall(piece)
                except (ConnectionResetError, BrokenPipeError):
                    break
            received = b""
            while chunk := connection.recv(65536):
                received += chunk
        return received.decode()

    def start_trial(self, server, job="mnist", **fields):
        answer = server.ask("POST", f"/v1/jobs/{job}/trials", fields)
        self.assertEqual(answer.status, 201, answer.text)
        return answer.json["trial"]
