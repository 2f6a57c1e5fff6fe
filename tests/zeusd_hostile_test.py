"""zeusd and local users who mean no good, or whose programs are broken."""

import collections
import os
import socket
import subprocess
import threading
import unittest

from sim_testing import wait_until
from zeusd_client import UnixConnection
from zeusd_testing import CONFIGURATION, LIMIT, RESEARCHER, STRANGER, Answer, ZeusdTestCase

FLOOD = """
import socket, sys
connections = []
for _ in range(600):
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    one.sendall(b"GET /v1/who")
    connections.append(one)
print("flooded", flush=True)
sys.stdin.read()
"""


@unittest.skipUnless(os.geteuid() == 0, "becoming other users needs root")
class ZeusdHostileTest(ZeusdTestCase):
    def setUp(self):
        super().setUp()
        self.start_daemon(CONFIGURATION)

    def say(self, data):
        """Returns the daemon's answer to these bytes until it closes the connection."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(self.socket_path)
            answer = b""
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65536):
                    answer += part
            except (BrokenPipeError, ConnectionResetError):
                pass  # It does not read what it refuses.
            return answer.decode(errors="replace")

    def post(self, body):
        connection = UnixConnection(self.socket_path)
        connection.request("POST", "/v1/leases", body=body)
        answer = Answer(connection.getresponse())
        connection.close()
        return answer

    def test_one_of_many_threads_gets_a_knob(self):
        body = self.lease(200, holder="ttl", ttl_seconds=600)
        together = threading.Barrier(64)
        statuses = []

        def ask():
            together.wait()
            statuses.append(self.ask("POST", "/v1/leases", body).status)

        threads = [threading.Thread(target=ask) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(collections.Counter(statuses), {201: 1, 409: 63})
        self.assertEqual(self.limits(), [200, LIMIT])

    def test_one_user_does_not_take_the_connections_of_all(self):
        self.daemon.stop()
        # Fewer connections in all than the flooder makes, and more than one user gets.
        self.start_daemon(prefix=["prlimit", "--nofile=1024"])
        flooder = subprocess.Popen(
            ["setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups", "/usr/bin/python3", "-c",
             FLOOD, self.socket_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (flooder.kill(), flooder.communicate()))
        self.assertEqual(flooder.stdout.readline(), "flooded\n")
        self.assertEqual(self.ask_as(RESEARCHER, "GET", "/v1/whoami")[0], 200)
        self.assertEqual(self.ask("GET", "/v1/whoami").status, 200)

    def test_malformed_requests_are_refused_and_harm_nobody(self):
        head = b"POST /v1/leases HTTP/1.1\r\nHost: x\r\n"
        for status, data in (
                (413, head + b"Content-Length: 999999999999\r\n\r\n" + b"x" * 100_000),
                (413, head + b"Transfer-Encoding: chunked\r\n\r\n" + (b"4000\r\n" + b"x" * 0x4000 + b"\r\n") * 8),
                (400, head + b"Content-Length: -1\r\n\r\n"),
                (400, head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef"),
                (400, head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                (400, b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n"),
                (431, b"GET /healthz HTTP/1.1\r\nA: " + b"a" * 40_000 + b"\r\n\r\n")):
            answer = self.say(data)
            # A connection that is reset may take the answer with it.
            self.assertTrue(answer.startswith(f"HTTP/1.1 {status} ") or (status != 400 and not answer),
                            (status, answer[:100]))
        for body in ("[" * 60_000, '{"a":' * 10_000, '"' + "\\ud800" * 100 + '"', '{"requests":[' + "{}," * 20_000):
            self.assertEqual(self.post(body).status, 400, body[:20])
        self.assertEqual(self.ask("GET", "/healthz").status, 200)

    def test_numbers_that_are_none_are_refused(self):
        text = '{{"name":"x","requests":[{{"device":"{0}","knob":"gpu_power_limit","exactly":{{"watts":{1}}}}}]}}'
        uuid = self.uuids()[0]
        for watts in ("NaN", "Infinity", "-Infinity", "-200", "-0.0", "0", "1e999", '"200"', "null", "true", "[200]"):
            self.assertEqual(self.post(text.format(uuid, watts)).status, 400, watts)
        for watts in ("1e308", "99.999", "250.001"):
            self.assertEqual(self.post(text.format(uuid, watts)).status, 422, watts)
        twice = self.lease(200)
        twice["requests"] *= 2
        self.assertEqual(self.ask("POST", "/v1/leases", twice).status, 400)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])

    def test_a_lease_cannot_be_handed_to_processes_of_others(self):
        holder, status, lease = self.hold(self.lease(200), uid=RESEARCHER)
        self.assertEqual(status, 201, lease)
        for pid, refusal in ((self.daemon.process.pid, 403), (1, 403), (0, 400), (-1, 400)):
            self.assertEqual(self.ask_as(RESEARCHER, "PUT", f"/v1/leases/{lease['id']}/holder", {"pid": pid})[0],
                             refusal, pid)
        holder.kill()
        wait_until(lambda: self.limits() == [LIMIT, LIMIT], "the lease ends with its holder")


if __name__ == "__main__":
    unittest.main()
