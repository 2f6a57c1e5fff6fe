"""`zeus serve` as its users see it: the whole API over real sockets."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import unittest

from serve_testing import JOB, REPORT, ZEUS, ServeTestCase, Server


class JobsTest(ServeTestCase):
    def test_a_job_is_registered_once_and_found_again(self):
        server = self.serve("--no-access-log")
        created = server.ask("POST", "/v1/jobs", JOB)
        self.assertEqual(created.status, 201, created.text)
        self.assertEqual(created.headers["Location"], "/v1/jobs/mnist")
        self.assertEqual(server.ask("POST", "/v1/jobs", JOB).status, 200)
        other = server.ask("POST", "/v1/jobs", JOB | {"eta": 0.9})
        self.assertEqual(other.status, 409)
        self.assertIn("eta", other.json["error"]["message"])
        found = server.ask("GET", "/v1/jobs/mnist").json
        self.assertEqual(found["spec"]["batch_sizes"], [32, 64, 128])
        self.assertEqual(found["trials"], 0)
        self.assertEqual(server.ask("DELETE", "/v1/jobs/mnist").status, 204)
        self.assertEqual(server.ask("GET", "/v1/jobs/mnist").status, 404)

    def test_jobs_come_in_pages(self):
        server = self.serve("--no-access-log")
        for number in range(5):
            labels = {"team": "vision" if number % 2 else "language"}
            server.ask("POST", "/v1/jobs", JOB | {"id": f"job-{number}", "labels": labels})
        first = server.ask("GET", "/v1/jobs?limit=3").json
        self.assertEqual([job["spec"]["id"] for job in first["jobs"]], ["job-0", "job-1", "job-2"])
        rest = server.ask("GET", f"/v1/jobs?limit=3&after={first['next']}").json
        self.assertEqual([job["spec"]["id"] for job in rest["jobs"]], ["job-3", "job-4"])
        self.assertIsNone(rest["next"])
        vision = server.ask("GET", "/v1/jobs?label=team:vision").json["jobs"]
        self.assertEqual([job["spec"]["id"] for job in vision], ["job-1", "job-3"])

    def test_a_trial_goes_from_its_start_to_convergence(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)
        trial = self.start_trial(server, request_id="one")
        self.assertEqual(trial["batch_size"], 64)
        self.assertEqual(self.start_trial(server, request_id="one")["number"], trial["number"])
        path = f"/v1/jobs/mnist/trials/{trial['number']}"
        self.assertEqual(server.ask("POST", path + "/heartbeat").status, 200)
        going = server.ask("POST", path + "/reports", REPORT).json
        self.assertFalse(going["stop"])
        self.assertEqual(server.ask("POST", path + "/reports", REPORT).json, going)
        done = server.ask("POST", path + "/reports", {
            "epoch": 2, "time_seconds": 20, "energy_joules": 2000, "metric": 0.95}).json
        self.assertTrue(done["stop"] and done["converged"])
        self.assertEqual(server.ask("GET", path).json["status"], "converged")
        self.assertEqual(server.ask("POST", path + "/heartbeat").status, 409)
        arms = server.ask("GET", "/v1/jobs/mnist/arms").json["arms"]
        self.assertEqual([arm["runs"] for arm in arms], [0, 1, 0])
        listed = server.ask("GET", "/v1/jobs/mnist/trials?status=converged").json["trials"]
        self.assertEqual([entry["number"] for entry in listed], [trial["number"]])
        kinds = [event["kind"] for event in server.ask("GET", "/v1/jobs/mnist/events").json["events"]]
        self.assertEqual(kinds[:2], ["job_created", "trial_started"])
        self.assertIn("trial_ended", kinds)

    def test_savings_are_known_when_the_default_has_run_undisturbed(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)

        def run(energy, undisturbed, **request):
            trial = self.start_trial(server, **request)
            done = server.ask("POST", f"/v1/jobs/mnist/trials/{trial['number']}/reports", {
                "epoch": 2, "time_seconds": 20, "energy_joules": energy, "metric": 0.95,
                "undisturbed": undisturbed}).json
            self.assertTrue(done["converged"], done)
            return trial

        for energy in (900, 1100):
            run(energy / 2, False)
        unknown = server.ask("GET", "/v1/jobs/mnist/savings").json
        self.assertIsNone(unknown["saved"])
        self.assertIn("there are 0 undisturbed runs", unknown["unknown_because"])
        for energy in (900, 1100):
            trial = run(energy, True, baseline=True)
            self.assertEqual((trial["batch_size"], trial["role"]), (64, "baseline"))
        known = server.ask("GET", "/v1/jobs/mnist/savings").json
        self.assertAlmostEqual(known["saved"]["energy_percent"], 50)
        self.assertGreater(known["saved"]["energy_sigma_percent"], 0)
        self.assertAlmostEqual(known["saved"]["energy_joules"], 1000)
        self.assertIsNone(known["unknown_because"])
        self.assertNotIn("carbon", known["saved"])
        self.assertEqual(server.ask("GET", "/v1/jobs/mnist/savings?baseline=nobody").status, 404)
        server.stop()
        # The same job, served with sources of intensity and price.
        server = self.serve("--no-access-log", "--carbon", "360g/kWh", "--price", "2EUR")
        saved = server.ask("GET", "/v1/jobs/mnist/savings").json["saved"]
        self.assertAlmostEqual(saved["carbon"]["grams_co2e"], 360 * saved["energy_kwh"])
        self.assertAlmostEqual(saved["carbon"]["grams_co2e_sigma"], 360 * saved["energy_sigma_kwh"])
        self.assertEqual(saved["carbon"]["sources"], ["constant"])
        self.assertAlmostEqual(saved["cost"]["amount"], 2 * saved["energy_kwh"])
        self.assertAlmostEqual(saved["cost"]["amount_sigma"], 2 * saved["energy_sigma_kwh"])
        self.assertEqual(saved["cost"]["currency"], "EUR")
        # The command shows the server's, or its own where it is asked for.
        text = self.job_savings(server)
        self.assertIn("saved carbon: ", text)
        self.assertIn("saved money: ", text)
        own = json.loads(self.job_savings(server, "--price", "3USD", "--json"))["saved"]
        self.assertEqual(own["cost"]["currency"], "USD")
        self.assertAlmostEqual(own["cost"]["amount"], 3 * own["energy_kwh"])

    def job_savings(self, server, *arguments):
        return subprocess.run([ZEUS, "job", "savings", "mnist", "--server", server.url, *arguments],
                              capture_output=True, text=True, timeout=60, check=True).stdout

    def test_a_source_of_carbon_that_cannot_be_used_is_said_at_the_start(self):
        code, sentence = self.refused("--listen", "127.0.0.1:0", "--database",
                                      "sqlite://" + self.path("zeus.db"), "--carbon", "Atlantis")
        self.assertEqual(code, 3)
        self.assertIn("--carbon: the table has no country", sentence)

    def test_everything_survives_a_restart(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)
        trial = self.start_trial(server)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        again = self.serve("--no-access-log")
        self.assertEqual(again.ask("GET", f"/v1/jobs/mnist/trials/{trial['number']}").json, trial)


class BadRequestTest(ServeTestCase):
    """A field that makes no sense is refused, and the answer names it."""

    def setUp(self):
        super().setUp()
        self.server = self.serve("--no-access-log")
        self.server.ask("POST", "/v1/jobs", JOB)
        self.trial = self.start_trial(self.server)
        self.reports = f"/v1/jobs/mnist/trials/{self.trial['number']}/reports"

    def check(self, method, path, body, status, field):
        with self.subTest(path=path, body=str(body)[:80]):
            answer = self.server.ask(method, path, body)
            self.assertEqual(answer.status, status, answer.text)
            self.assertEqual(answer.json["error"]["field"], field, answer.text)
            self.assertTrue(answer.json["error"]["message"])

    def test_reports(self):
        good = json.dumps(REPORT)
        for field in ("time_seconds", "energy_joules", "metric"):
            for value in ("NaN", "Infinity", "-Infinity", "1e999"):
                number = json.dumps(REPORT[field])
                self.check("POST", self.reports,
                           good.replace(f'"{field}": {number}', f'"{field}": {value}'), 422, field)
            for value in ("10", None, True, [], {}):
                self.check("POST", self.reports, REPORT | {field: value}, 422, field)
        for field in ("time_seconds", "energy_joules", "epoch_energy_joules", "power_limit_watts"):
            self.check("POST", self.reports, REPORT | {field: -0.001}, 422, field)
        for value in (0, -1, 1.5, "1", 2 ** 40, None):
            self.check("POST", self.reports, REPORT | {"epoch": value}, 422, "epoch")
        self.check("POST", self.reports, REPORT | {"colour": "red"}, 422, "colour")
        for field in REPORT:
            body = {key: value for key, value in REPORT.items() if key != field}
            self.check("POST", self.reports, body, 422, field)
        for body in ("", "[]", "{", "null", "\xff", '{"epoch": 1} x', "[" * 100_000):
            self.check("POST", self.reports, body.encode("latin-1"), 422, None)

    def test_jobs(self):
        for field, value in (
                ("batch_sizes", []), ("batch_sizes", [1.5]), ("batch_sizes", ["32"]),
                ("batch_sizes", [0, 64]), ("default_batch_size", 65), ("eta", 2), ("eta", "x"),
                ("beta", 0), ("max_epochs", 0), ("policy", "best"), ("window", -1),
                ("prior_precision", -1), ("seed", -1), ("max_power_watts", 0),
                ("number_of_gpus", 0), ("gpu_model", ""), ("lease_seconds", 0),
                ("deadline_seconds", -5), ("labels", {"a": 1}), ("labels", []),
                ("id", "two words"), ("id", "x" * 201), ("target_metric", None), ("size", 3)):
            self.check("POST", "/v1/jobs", JOB | {field: value}, 422, field)

    def test_other_bodies(self):
        trials = "/v1/jobs/mnist/trials"
        self.check("POST", trials, {"lease_seconds": 0}, 422, "lease_seconds")
        self.check("POST", trials, {"recurrence": -1}, 422, "recurrence")
        self.check("POST", trials, {"recurrence": 99}, 404, "recurrence")
        self.check("POST", trials, {"batch_size": 33}, 422, "batch_size")
        self.check("POST", f"{trials}/1/end", {"status": "converged"}, 422, "status")
        cost = {"gpu_model": "A40", "batch_size": 64, "time_seconds": 1, "energy_joules": 100}
        costs = "/v1/jobs/mnist/epoch-costs"
        self.assertEqual(self.server.ask("POST", costs, cost).status, 204)
        self.check("POST", costs, cost | {"batch_size": 48}, 422, "batch_size")
        self.check("POST", costs, cost | {"energy_joules": -1}, 422, "energy_joules")

    def test_what_is_not_there(self):
        self.check("POST", "/v1/jobs/nobody/trials", {}, 404, "id")
        self.check("GET", "/v1/jobs/nobody", None, 404, "id")
        self.check("GET", "/v1/jobs/nobody/events", None, 404, "id")
        self.check("GET", "/v1/jobs/nobody/trials", None, 404, "id")
        self.check("POST", "/v1/jobs/mnist/trials/99/reports", REPORT, 404, "trial")
        self.check("GET", "/v1/jobs/mnist/trials/many", None, 404, "trial")
        self.check("GET", "/v2/jobs", None, 404, None)

    def test_queries(self):
        self.check("GET", "/v1/jobs?limit=0", None, 422, "limit")
        self.check("GET", "/v1/jobs?limit=ten", None, 422, "limit")
        self.check("GET", "/v1/jobs?colour=red", None, 422, "colour")
        self.check("GET", "/v1/jobs/mnist/trials?status=asleep", None, 422, "status")
        self.check("GET", "/v1/jobs/mnist/events?after=-1", None, 422, "after")
        self.assertEqual(self.server.ask("GET", "/v1/jobs?limit=%zz").status, 400)

    def test_reports_out_of_order_or_at_odds_with_earlier_ones(self):
        later = {"epoch": 3, "time_seconds": 30, "energy_joules": 3000, "metric": 0.3}
        self.assertEqual(self.server.ask("POST", self.reports, later).status, 200)
        self.assertEqual(self.server.ask("POST", self.reports, later).status, 200)
        self.check("POST", self.reports, later | {"epoch": 2}, 409, "epoch")
        self.check("POST", self.reports, later | {"energy_joules": 1}, 409, "energy_joules")
        self.check("POST", self.reports, later | {"epoch": 4, "energy_joules": 1}, 409,
                   "energy_joules")

    def test_methods(self):
        answer = self.server.ask("PUT", "/v1/jobs", JOB)
        self.assertEqual((answer.status, answer.headers["Allow"]), (405, "GET, HEAD, POST"))
        self.assertEqual(self.server.ask("HEAD", "/jobs/batch_size?job_id=mnist").status, 405)
        head = self.server.ask("HEAD", "/v1/jobs/mnist")
        self.assertEqual((head.status, head.text), (200, ""))
        self.assertGreater(int(head.headers["Content-Length"]), 100)


class LimitsTest(ServeTestCase):
    def test_a_body_of_ten_megabytes_is_too_large(self):
        server = self.serve("--no-access-log")
        answer = server.ask("POST", "/v1/jobs", b"x" * 10_000_000)
        self.assertEqual(answer.status, 413)
        self.assertEqual(answer.json["error"]["code"], "too_large")
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        raw = self.exchange(server, b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
                            b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 160, b"0\r\n\r\n")
        self.assertTrue(raw.startswith("HTTP/1.1 413 "), raw)

    def test_a_header_that_is_too_large(self):
        server = self.serve("--no-access-log")
        raw = self.exchange(server, b"GET / HTTP/1.1\r\nX: " + b"x" * 20000 + b"\r\n\r\n")
        self.assertTrue(raw.startswith("HTTP/1.1 431 "), raw)

    def test_slow_clients_are_told_and_hung_up_on(self):
        server = self.serve("--no-access-log", "--header-timeout", "0.3")
        for piece in (b"GET /heal", b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
                      b"Content-Length: 50\r\n\r\n{"):
            raw = self.exchange(server, piece)
            self.assertTrue(raw.startswith("HTTP/1.1 408 "), raw)
            self.assertIn('"timeout"', raw)
        self.assertEqual(self.exchange(server), "")  # A client that sends nothing gets no answer.

    def test_slow_clients_hold_nobody_up(self):
        server = self.serve("--no-access-log", "--max-connections", "300")
        slow = [socket.create_connection(server.address) for _ in range(200)]
        for connection in slow:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nX-A: ")
        for _ in range(20):
            self.assertEqual(server.ask("GET", "/healthz").status, 200)
        for connection in slow:
            connection.close()

    def test_an_idle_connection_is_closed(self):
        server = self.serve("--no-access-log", "--idle-timeout", "0.3")
        raw = self.exchange(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(raw.count("HTTP/1.1"), 1)

    def test_too_many_connections(self):
        server = self.serve("--no-access-log", "--max-connections", "2")
        held = [server.connect() for _ in range(2)]
        for connection in held:
            connection.request("GET", "/healthz")
            self.assertEqual(connection.getresponse().read(), b'{"status":"ok"}')
        answer = server.ask("GET", "/v1/jobs")
        self.assertEqual((answer.status, answer.headers["Retry-After"]), (503, "1"))
        self.assertEqual(server.ask("GET", "/healthz").status, 200)
        for connection in held:
            connection.close()

    def test_what_is_not_http(self):
        server = self.serve("--no-access-log")
        for text in (b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00",
                     b"GET / HTTP/1.1\r\nContent-Length: -5\r\n\r\n"):
            self.assertTrue(self.exchange(server, text).startswith("HTTP/1.1 400 "), text)
        self.assertIn(" 400 ", self.exchange(server, b"GET nowhere HTTP/1.1\r\nHost: localhost\r\n"
                                             b"Connection: close\r\n\r\n"))

    def test_requests_follow_each_other_on_a_connection(self):
        server = self.serve("--no-access-log")
        request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
        raw = self.exchange(server, (request + b"\r\n") * 5 + request + b"Connection: close\r\n\r\n")
        self.assertEqual(raw.count('{"status":"ok"}'), 6)


class StartTest(ServeTestCase):
    def test_a_unix_socket(self):
        path = self.path("zeus.sock")
        server = self.serve("--no-access-log", listen="unix:" + path)
        self.assertEqual(server.url, "unix:" + path)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            self.assertIn(b'{"status":"ready"}', connection.makefile("rb").read())
        self.assertEqual(server.stop()[0], 0)
        self.assertFalse(os.path.exists(path))

    def test_what_cannot_be_served_is_one_sentence(self):
        database = ("--database", "sqlite://" + self.path("zeus.db"))
        with open(self.path("empty"), "w", encoding="utf-8"):
            os.chmod(self.path("empty"), 0o600)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            for code, word, arguments in (
                    (6, "in use", ["--listen", f"127.0.0.1:{port}", *database]),
                    (2, "nowhere", ["--listen", "nowhere", *database]),
                    (2, "--insecure", ["--listen", "0.0.0.0:0", *database]),
                    (3, "missing", ["--tokens", self.path("missing"), *database]),
                    (2, "no token", ["--tokens", self.path("empty"), *database]),
                    (2, "mysql", ["--database", "mysql://x"]),
                    (3, "missing", ["--listen", "127.0.0.1:0", "--tls-cert", self.path("missing"),
                                    "--tls-key", self.path("missing"), *database]),
                    (2, "certificate", ["--listen", "127.0.0.1:0", "--tls-cert",
                                        self.path("empty"), "--tls-key", self.path("empty"),
                                        *database]),
                    (2, "requires", ["--tls-cert", "x", *database])):
                with self.subTest(arguments=arguments):
                    self.assertEqual(self.refused(*arguments)[0], code)
                    self.assertIn(word, self.refused(*arguments)[1])

    def test_an_unwritable_place_for_the_database_is_one_sentence(self):
        code, sentence = self.refused("--listen", "127.0.0.1:0", "--database",
                                      "sqlite:///proc/zeus.db")
        self.assertNotEqual(code, 0)
        self.assertIn("/proc/zeus.db", sentence)

    def test_the_users_own_database(self):
        environment = os.environ | {"XDG_DATA_HOME": self.path("data")}
        server = Server("--no-access-log", environment=environment)
        self.addCleanup(server.kill)
        server.ask("POST", "/v1/jobs", JOB)
        self.assertTrue(os.path.exists(self.path("data/zeus/zeus.db")))


class ShutdownTest(ServeTestCase):
    def test_signals_end_it_with_zero(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.serve("--no-access-log")
            self.assertEqual(server.stop(number), (0, ""))

    def test_under_load_nothing_is_lost(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)
        answered, lock = [], threading.Lock()
        begun = threading.Event()

        def client(index):
            with contextlib.closing(server.connect()) as connection:
                for number in range(1000):
                    try:
                        connection.request("POST", "/v1/jobs/mnist/trials",
                                           json.dumps({"request_id": f"{index}-{number}"}))
                        response = connection.getresponse()
                    except (OSError, http.client.HTTPException):
                        return  # The server left between two requests.
                    # A request whose answer has begun is answered to its end.
                    trial = json.loads(response.read())["trial"]
                    with lock:
                        answered.append(trial["number"])
                        if len(answered) > 40:
                            begun.set()
                    if response.headers.get("Connection") == "close":
                        return

        threads = [threading.Thread(target=client, args=(index,)) for index in range(16)]
        for thread in threads:
            thread.start()
        begun.wait(60)
        code, errors = server.stop()
        for thread in threads:
            thread.join()
        self.assertEqual((code, errors), (0, ""))
        again = self.serve("--no-access-log")
        self.assertEqual(len(set(answered)), len(answered))
        for number in answered:
            self.assertEqual(again.ask("GET", f"/v1/jobs/mnist/trials/{number}").status, 200)

    def test_streams_end_and_do_not_hold_it_up(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)
        connection = server.connect()
        connection.request("GET", "/v1/jobs/mnist/events",
                           headers={"Accept": "text/event-stream"})
        response = connection.getresponse()
        event = [response.readline() for _ in range(4)]
        self.assertEqual(event[1], b"event: job_created\n")
        self.assertEqual(server.stop(), (0, ""))
        self.assertEqual(response.read(), b"")
        response.close()
        connection.close()


class LogTest(ServeTestCase):
    def test_every_request_is_a_line_without_secrets(self):
        tokens = self.path("tokens")
        token = subprocess.run([ZEUS, "serve", "--tokens", tokens, "--new-token", "ci"],
                               capture_output=True, text=True, check=True).stdout.strip()
        path = self.path("access.log")
        server = self.serve("--access-log", path, "--tokens", tokens)
        server.ask("POST", "/v1/jobs", JOB, token=token, headers={"X-Request-Id": "mine-1"})
        server.ask("GET", "/v1/jobs/mnist?x=%C3%A9", token=token)
        server.ask("GET", "/nowhere")
        server.stop()
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn(token, text)
        lines = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([line["status"] for line in lines], [201, 422, 404])
        first = lines[0]
        self.assertEqual((first["method"], first["path"], first["user"], first["request_id"]),
                         ("POST", "/v1/jobs", "ci", "mine-1"))
        self.assertTrue(first["remote"].startswith("127.0.0.1:"))
        self.assertGreater(first["bytes"], 100)
        self.assertGreaterEqual(first["duration_seconds"], 0)
        self.assertRegex(first["time"], r"^\d{4}-\d\d-\d\dT.*Z$")


if __name__ == "__main__":
    unittest.main()
