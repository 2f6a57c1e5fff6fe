"""Many at once: holders that all die, connections that come and go, streams, readers that never read, clients that are
slow or half gone, jobs by the thousand. ZEUSD_HOLDERS and ZEUSD_CONNECTS make it a soak."""

import json
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.parse
import urllib.request

from sim_testing import wait_until
from zeusd_client import UnixConnection
from zeusd_testing import LIMIT, STRANGER, ZeusdTestCase

HOLDERS = int(os.environ.get("ZEUSD_HOLDERS", "300"))
CONNECTS = int(os.environ.get("ZEUSD_CONNECTS", "20000"))
STREAMS = int(os.environ.get("ZEUSD_STREAMS", "1000"))
JOBS = int(os.environ.get("ZEUSD_JOBS", "2500"))
SANITIZED = "ZEUS_SANITIZED" in os.environ  # Memory is that of the sanitizer there.
HOLD = """
import json, os, socket, sys, time
path, count, device = sys.argv[1], int(sys.argv[2]), sys.argv[3]
pids = []
for number in range(count):
    ready, go = os.pipe()
    pid = os.fork()
    if pid:
        os.close(go)
        os.read(ready, 1)
        os.close(ready)
        pids.append(pid)
        continue
    body = json.dumps({"name": "one of many", "requests": [
        {"device": device, "knob": "gpu_power_limit", "at_most": {"watts": 120 + number % 100}}]})
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.sendall(f"POST /v1/leases HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}".encode())
    answer = s.recv(65536)
    os.write(go, b"y" if b" 201 " in answer.split(b"\\r\\n")[0] else b"n" + answer)
    time.sleep(3600)
print(json.dumps(pids), flush=True)
sys.stdin.read()
"""


class ManyTestCase(ZeusdTestCase):
    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 8192 if hard == resource.RLIM_INFINITY else min(hard, 8192)
        if wanted < 4096:
            self.skipTest("this machine lets nobody open 4096 files")
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def raw(self, data=b""):
        connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(connection.close)
        connection.settimeout(60)
        connection.connect(self.socket_path)
        if data:
            connection.sendall(data)
        return connection

    def status_field(self, name):
        for line in pathlib.Path(f"/proc/{self.daemon.process.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1])
        raise AssertionError(name)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))

    def metric(self, name):
        for line in self.ask("GET", "/metrics").text.splitlines():
            if line.startswith((name + " ", name + "{")):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError(name)


class ZeusdManyTest(ManyTestCase):
    def test_holders_that_all_die_at_once_leave_nothing(self):
        self.start_daemon('[[rule]]\nname = "many"\nmatch = { uids = [0] }\nscopes = ["gpu-control"]\nleases = 4096\n'
                          "sets_per_second = { gpu_power_limit = 10000 }\n")
        before = self.descriptors()
        device = self.uuids()[0]
        parents = [self.started(["/usr/bin/python3", "-c", HOLD, self.socket_path, str(HOLDERS // 2), device])
                   for _ in range(2)]
        pids = [pid for parent in parents for pid in json.loads(parent.stdout.readline())]
        active = [lease for lease in self.ask("GET", "/v1/leases").json["leases"] if lease["state"] == "active"]
        self.assertEqual(len(active), HOLDERS // 2 * 2)
        self.assertEqual({lease["holder"]["pid"] for lease in active}, set(pids))
        self.assertEqual(self.limits(), [120, LIMIT])
        start = time.monotonic()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        killed = time.monotonic() - start
        wait_until(lambda: self.ask("GET", "/v1/leases").json["leases"] and not any(
            lease["state"] != "ended" for lease in self.ask("GET", "/v1/leases").json["leases"]), "all leases end")
        print(f"{len(pids)} holders killed within {killed:.3f} s, all knobs back {time.monotonic() - start:.3f} s after the "
              "first kill", flush=True)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])
        wait_until(lambda: not list(pathlib.Path(self.environment["ZEUS_KNOB_DIR"]).glob("*.json")), "the journal is empty")
        wait_until(lambda: self.descriptors() < before + 20, "nothing is kept of them")

    def test_connections_that_come_and_go_leave_nothing(self):
        self.start_daemon()
        self.ask("GET", "/healthz")
        before, memory = self.descriptors(), self.status_field("VmRSS")
        for number in range(CONNECTS):
            connection = socket.socket(socket.AF_UNIX)
            # When the queue of the socket is full, the kernel makes the client wait.
            connection.connect(self.socket_path)
            if number % 3 == 1:
                connection.sendall(b"GET /v1/whoami HTTP/1.1\r\n")
            elif number % 3 == 2:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            connection.close()
        wait_until(lambda: self.descriptors() <= before + 5, "every connection is closed")
        self.assertEqual(self.ask("GET", "/healthz").status, 200)
        grown = self.status_field("VmRSS") - memory
        print(f"{CONNECTS} connections, {grown} KiB more memory", flush=True)
        if not SANITIZED:
            self.assertLess(grown, 16 * 1024)

    def test_many_streams_are_served_and_then_refused(self):
        self.start_daemon()
        target = "/v1/stream?events=knob"
        streams = [self.raw(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()) for _ in range(STREAMS)]
        for stream in streams:
            self.assertIn(b" 200 ", stream.recv(65536).split(b"\r\n")[0])
        self.assertEqual(self.metric("zeus_daemon_streams"), STREAMS)
        created = self.ask("POST", "/v1/leases", self.lease(170, holder="ttl", ttl_seconds=600))
        self.assertEqual(created.status, 201, created.text)
        for stream in streams:
            seen = b""
            while b'"watts":170' not in seen.replace(b" ", b""):
                part = stream.recv(65536)
                self.assertTrue(part, "the stream has ended")
                seen += part
        extra = [self.raw(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()) for _ in range(1025 - STREAMS)]
        statuses = [one.recv(65536).split(b" ", 2)[1] for one in extra]
        self.assertEqual((statuses.count(b"200"), statuses[-1]), (1024 - STREAMS, b"503"))
        for stream in streams + extra:
            stream.close()
        wait_until(lambda: self.metric("zeus_daemon_streams") == 0, "closed streams are forgotten")

    def test_readers_that_never_read_cost_the_others_nothing(self):
        self.start_daemon()
        head = b"GET /v1/stream?events=knob,lease HTTP/1.1\r\nHost: x\r\n\r\n"
        sleepers = [self.raw() for _ in range(100)]
        for sleeper in sleepers:
            sleeper.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            sleeper.sendall(head)
        readers = [self.raw(head) for _ in range(100)]
        seen = {reader.fileno(): bytearray() for reader in readers}
        created = self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=600))
        self.assertEqual(created.status, 201, created.text)
        path = f"/v1/leases/{created.json['id']}/requests"
        memory, done = self.status_field("VmRSS"), threading.Event()

        def change():
            connection = UnixConnection(self.socket_path)
            for number in range(400):
                watts = 110 + number % 100 + (number + 1) / 1000
                while self.ask("PUT", path, {"requests": [
                        {"device": self.known, "knob": "gpu_power_limit", "exactly": {"watts": watts}}]},
                        connection=connection).status == 429:
                    time.sleep(0.05)
            connection.close()
            done.set()

        self.known = self.uuids()[0]
        thread = threading.Thread(target=change)
        thread.start()
        last = b'"watts":%g' % (110 + 399 % 100 + 400 / 1000)
        poll = select.poll()
        for reader in readers:
            poll.register(reader, select.POLLIN)
        by_number = {reader.fileno(): reader for reader in readers}
        waiting = set(by_number)
        deadline = time.monotonic() + 300
        while waiting and time.monotonic() < deadline:
            for number, _ in poll.poll(1000):
                part = by_number[number].recv(1 << 20)
                self.assertTrue(part, "a reader that reads is not closed")
                seen[number] += part
                if last in bytes(seen[number][-4096:]).replace(b" ", b""):
                    waiting.discard(number)
        thread.join(60)
        self.assertTrue(done.is_set())
        self.assertEqual(waiting, set(), "every reader has the last event")
        for data in seen.values():
            self.assertNotIn(b'"dropped"', data)
        self.assertGreater(self.metric("zeus_daemon_stream_dropped_total"), 0, "those that do not read lose events")
        if not SANITIZED:
            self.assertLess(self.status_field("VmRSS") - memory, 100 * (512 + 64), "256 KiB each, and what the kernel has")

    def test_slow_and_half_closed_clients(self):
        self.start_daemon()
        # A client that has said everything and only listens gets its answer.
        half = self.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        half.shutdown(socket.SHUT_WR)
        answer = b""
        while part := half.recv(65536):
            answer += part
        self.assertIn(b" 200 ", answer.split(b"\r\n")[0])
        # So does one that waits for a lease: it is made, and ends with its process.
        body = json.dumps(self.lease(200))
        half = self.raw(f"POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        half.shutdown(socket.SHUT_WR)
        half.recv(65536)
        # Slow ones are closed, however they trickle, and meanwhile others are served.
        slow = {"head": b"GET /healthz HTTP/1.1\r\n" + b"A: b\r\n" * 3, "nothing": b"",
                "body": b"POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n{"}
        connections = {name: self.raw(data) for name, data in slow.items()}
        ended = {}

        def trickle(name, connection):
            try:
                while not select.select([connection], [], [], 0.2)[0]:
                    if name != "nothing":
                        connection.sendall(b"x")
                ended[name] = connection.recv(65536)
            except ConnectionError:
                ended[name] = b""

        threads = [threading.Thread(target=trickle, args=one) for one in connections.items()]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            self.assertEqual(self.ask("GET", "/healthz").status, 200)
            time.sleep(0.1)
        for name, answer in ended.items():
            self.assertTrue(not answer or b" 408 " in answer or b" 400 " in answer, (name, answer[:100]))

    @unittest.skipUnless(os.geteuid() == 0, "becoming other users needs root")
    def test_one_user_does_not_take_all_boards(self):
        self.start_daemon('[defaults]\nscopes = ["gpu-read"]\n')
        board = os.path.join(self.folder, "board.sock")
        script = ("import socket, sys\nheld = []\nfor _ in range(600):\n"
                  "    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(sys.argv[1]); held.append(s)\n"
                  "got = sum(bool(s.recv(65536)) for s in held)\nprint(got, flush=True)\nsys.stdin.read()\n")
        flooder = self.started(["setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER), "--clear-groups",
                                "/usr/bin/python3", "-c", script, board])
        self.assertEqual(int(flooder.stdout.readline()), 256)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
            other.settimeout(60)
            other.connect(board)
            self.assertTrue(other.recv(65536))


class ZeusdJobMetricsTest(ManyTestCase):
    def test_series_of_short_jobs_are_bounded_and_the_text_is_well_formed(self):
        self.start_daemon()
        devices = self.uuids()
        connection = UnixConnection(self.socket_path)
        self.addCleanup(connection.close)
        for number in range(JOBS):
            job = {"id": f"slurm:{number}", "uid": 20000 + number, "devices": [devices[number % 2]],
                   "labels": {"partition": 'a"b\\c'}}
            answer = self.ask("POST", "/v1/jobs", job, connection=connection)
            self.assertEqual(answer.status, 201, answer.text)
            answer = self.ask("DELETE", f"/v1/jobs/slurm:{number}", connection=connection)
            self.assertEqual(answer.status, 200, answer.text)
        text = self.ask("GET", "/metrics").text
        series = [line for line in text.splitlines() if line.startswith("zeus_job_energy_joules_total{")]
        print(f"{JOBS} jobs, {len(series)} series of jobs, {len(text)} bytes of metrics", flush=True)
        self.assertTrue(0 < len(series) <= 1024, len(series))
        # A job has its energy, its time on the CPU and what it is.
        samples = [line for line in text.splitlines() if not line.startswith("#")]
        self.assertLess(len(samples), 3 * len(series) + 500)
        self.check(text)

    def check(self, text):
        """promtool finds nothing to complain about."""
        try:
            done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60,
                                  check=False)
        except FileNotFoundError:
            self.skipTest("promtool is not installed")
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_a_real_prometheus_scrapes_the_energy_of_a_job(self):
        if shutil.which("prometheus") is None:
            self.skipTest("prometheus is not installed: ./dev installs it")
        self.start_daemon('[defaults]\nscopes = ["gpu-read"]\n', "--tcp-bind-address", "127.0.0.1:0")
        target = re.search(r"http://([0-9.:]+)", self.daemon.ready)[1]
        device = self.uuids()[0]
        answer = self.ask("POST", "/v1/jobs", {"id": "slurm:7", "uid": 20000, "devices": [device]})
        self.assertEqual(answer.status, 201, answer.text)
        config = pathlib.Path(self.folder, "prometheus.yml")
        config.write_text(json.dumps({"global": {"scrape_interval": "500ms"}, "scrape_configs": [
            {"job_name": "zeusd", "static_configs": [{"targets": [target]}]}]}), encoding="utf-8")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = subprocess.Popen(["prometheus", f"--config.file={config}", f"--web.listen-address=127.0.0.1:{port}",
                                   f"--storage.tsdb.path={self.folder}/tsdb"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (server.kill(), server.wait()))
        found = {}

        def scraped():
            query = urllib.parse.quote("zeus_job_energy_joules_total > 5")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={query}", timeout=10) as answer:
                    results = json.load(answer)["data"]["result"]
            except (OSError, ValueError):
                return False  # It is starting.
            found.update(results[0]["metric"] if results else {})
            return bool(results)

        wait_until(scraped, "Prometheus has the energy of the job")
        self.assertEqual((found["job"], found["exported_job"], found["uuid"]), ("zeusd", "slurm:7", device))

    def test_running_jobs_are_limited(self):
        self.start_daemon()
        device = self.uuids()[0]
        connection = UnixConnection(self.socket_path)
        self.addCleanup(connection.close)
        statuses = [self.ask("POST", "/v1/jobs", {"id": f"j{number}", "uid": 20000, "devices": [device]},
                             connection=connection).status for number in range(1026)]
        self.assertEqual((set(statuses[:1024]), set(statuses[1024:])), ({201}, {429}))


if __name__ == "__main__":
    unittest.main()
