"""`zeus llm bench` from outside: against a small server of this test, and against `zeus llm sim`."""

import contextlib
import http.client
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from report_testing import check_page
from sim_testing import ZEUS, SimTestCase


class Server(http.server.ThreadingHTTPServer):
    """Answers in OpenAI's dialect, two milliseconds a token; `habits` make it misbehave."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, **habits):
        super().__init__(("127.0.0.1", 0), Handler)
        self.habits = habits
        self.lock = threading.Lock()
        self.bodies = []
        self.energies = {}
        self.release = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self):
        self.release.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """Clients that leave are part of the tests."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def answer(self, status, content):
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        if self.path == "/v1/models":
            models = self.server.habits.get("models", ["tiny"])
            self.answer(200, {"data": [{"id": name} for name in models]})
        elif self.path.startswith("/zeus/requests/") and self.server.habits.get("gateway"):
            self.answer(200, self.server.energies[self.path.rsplit("/", 1)[1]] | {"final": True})
        else:
            self.answer(404, {"error": {"message": "no such page"}})

    def send_event(self, data):
        text = data.encode()
        self.wfile.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")

    def do_POST(self):
        server, habits = self.server, self.server.habits
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            number = len(server.bodies)
            server.bodies.append((self.path, self.headers, body))
        if number < habits.get("refuse", 0):
            self.answer(429, {"error": {"message": "too many requests"}})
            return
        if number < habits.get("stall", 0):
            server.release.wait(60)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        identifier = f"r-{number}"
        if habits.get("gateway"):
            self.send_header("x-zeus-request", identifier)
        self.end_headers()
        tokens = body["max_tokens"]
        for _ in range(tokens):
            time.sleep(0.002)
            self.send_event('data: {"choices":[{"delta":{"content":"word "}}]}\n\n')
            if number < habits.get("break_off", 0):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
        usage = {"prompt_tokens": 20, "completion_tokens": tokens}
        self.send_event(f"data: {json.dumps({'choices': [], 'usage': usage})}\n\n")
        if habits.get("gateway"):
            note = {"energy_joules": 5 + 2.0 * tokens, "sigma_joules": 0.5, "prefill_joules": 5.0,
                    "decode_joules": 2.0 * tokens, "final": False}
            server.energies[identifier] = note
            self.send_event(f": energy {json.dumps(note)}\n\n")
        self.send_event("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")


class LlmBenchTestCase(SimTestCase):
    def serve(self, **habits):
        server = Server(**habits)
        self.addCleanup(server.close)
        return server

    def run_bench(self, url, *arguments):
        return subprocess.run([ZEUS, "llm", "bench", "--url", url, *arguments],
                              env=self.environment, capture_output=True, text=True, timeout=300)

    def bench(self, url, *arguments):
        """Runs a benchmark that must succeed; its JSON."""
        done = self.run_bench(url, "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def path(self, name):
        return os.path.join(self.directory.name, name)


class AnyServerTest(LlmBenchTestCase):
    def test_a_closed_loop_gives_latencies_and_throughput(self):
        server = self.serve()
        result = self.bench(server.url + "/v1", "--concurrency", "4", "--requests", "40",
                            "--output-tokens", "20", "--prompt-tokens", "10", "--gpus", "none")
        self.assertEqual(result["schema"], "zeus.llm_bench/1")
        self.assertEqual(result["model"], "tiny")
        run = result["runs"][0]["inference"]
        self.assertEqual((run["requests_sent"], run["requests_finished"]), (40, 40))
        self.assertEqual(run["output_tokens"], 40 * 20)
        self.assertEqual(run["peak_in_flight"], 4)
        self.assertGreaterEqual(run["tpot_seconds"]["p50"], 0.002)
        self.assertGreater(run["steady_state"]["end_seconds"], run["steady_state"]["begin_seconds"])
        self.assertIsNone(run["joules_per_output_token"])
        path, headers, body = server.bodies[0]
        self.assertEqual(path, "/v1/chat/completions")
        self.assertEqual((body["max_tokens"], body["ignore_eos"], body["stream"]), (20, True, True))
        self.assertEqual(len(body["messages"][0]["content"].split()), 10)
        self.assertNotIn("Authorization", headers)

    def test_open_loops_send_without_waiting(self):
        server = self.serve()
        trace = self.path("trace.csv")
        with open(trace, "w", encoding="utf-8") as file:
            file.write("TIMESTAMP,ContextTokens,GeneratedTokens\n")
            for i in range(12):
                file.write(f"2023-11-16 18:15:{i:02}.0000000,{10 + i},{5 + i}\n")
        result = self.bench(server.url, "--trace", trace, "--speed", "40", "--gpus", "none")
        self.assertEqual(result["runs"][0]["inference"]["requests_finished"], 12)
        lengths = sorted(body["max_tokens"] for _, _, body in server.bodies)
        self.assertEqual(lengths, list(range(5, 17)))
        for load in (["--rate", "50", "--requests", "10"], ["--steps", "30@200ms,60@200ms"]):
            result = self.bench(server.url, *load, "--output-tokens", "3", "--gpus", "none")
            self.assertGreater(result["runs"][0]["inference"]["requests_finished"], 0)

    def test_failures_are_counted_by_kind(self):
        server = self.serve(refuse=3, break_off=5)
        run = self.bench(server.url, "--concurrency", "1", "--requests", "12", "--output-tokens",
                         "5", "--gpus", "none")["runs"][0]["inference"]
        self.assertEqual(run["requests_finished"], 7)
        self.assertEqual(run["failures"]["status 429"],
                         {"count": 3, "first_message": "too many requests"})
        self.assertEqual(run["failures"]["broken"]["count"], 2)
        table = self.run_bench(self.serve(refuse=1).url, "--requests", "3", "--gpus", "none")
        self.assertIn("too many requests", table.stdout)

    def test_nothing_hangs_when_a_server_does(self):
        server = self.serve(stall=1)
        run = self.bench(server.url, "--concurrency", "2", "--requests", "6", "--output-tokens",
                         "2", "--idle-timeout", "1s", "--gpus", "none")["runs"][0]["inference"]
        self.assertEqual(run["failures"]["timeout"]["count"], 1)
        self.assertEqual(run["requests_finished"], 5)

    def test_a_server_that_refuses_everything_ends_with_one_sentence(self):
        done = self.run_bench(self.serve(refuse=10**9).url, "--requests", "100000", "--gpus", "none")
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("no request was answered: status 429", done.stderr)
        self.assertIn("too many requests", done.stderr)

    def test_an_interruption_shows_what_was_measured(self):
        server = self.serve()
        bench = subprocess.Popen(
            [ZEUS, "llm", "bench", "--url", server.url, "--concurrency", "2", "--requests",
             "1000000", "--output-tokens", "5", "--gpus", "none", "--json"],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while len(server.bodies) < 30:
            self.assertIsNone(bench.poll())
            time.sleep(0.01)
        bench.send_signal(signal.SIGINT)
        output, _ = bench.communicate(timeout=60)
        self.assertEqual(bench.returncode, 130)
        run = json.loads(output)["runs"][0]
        self.assertEqual(run["exit_code"], 130)
        self.assertTrue(run["inference"]["interrupted"])
        self.assertGreater(run["inference"]["requests_finished"], 10)

    def test_a_gateways_energies_are_summed_by_phase(self):
        server = self.serve(gateway=True)
        log = self.path("requests.jsonl")
        page = self.path("page.html")
        result = self.bench(server.url, "--concurrency", "2", "--requests", "20",
                            "--output-tokens", "10", "--gpus", "none", "--request-log", log,
                            "--html", page)
        run = result["runs"][0]["inference"]
        self.assertEqual(run["energy_source"], "gateway")
        self.assertAlmostEqual(run["joules_per_request"], 25)
        self.assertAlmostEqual(run["gateway"]["joules_per_output_token"], 2.5)
        self.assertAlmostEqual(run["gateway"]["prefill_joules_per_prompt_token"], 5 / 20)
        self.assertAlmostEqual(run["gateway"]["decode_joules_per_output_token"], 2)
        with open(log, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual(len(lines), 20)
        self.assertTrue(all(line["final"] for line in lines))
        with open(page, encoding="utf-8") as file:
            check_page(self, file.read(), "zeus llm bench: tiny")

    def test_diff_gates_repeated_benchmarks(self):
        server = self.serve(gateway=True)
        files = []
        for tokens in ("10", "4"):
            files.append(self.path(f"bench-{tokens}.json"))
            with open(files[-1], "w", encoding="utf-8") as file:
                json.dump(self.bench(server.url, "--concurrency", "2", "--requests", "6",
                                     "--output-tokens", tokens, "--repeat", "3", "--warmup", "1",
                                     "--gpus", "none"), file)
        self.assertEqual(len(server.bodies), 2 * 4 * 6)
        for metric, code in (("token-energy", 1), ("request-energy", 0)):
            done = subprocess.run([ZEUS, "diff", *files, "--metric", metric], text=True,
                                  capture_output=True, env=self.environment, timeout=60)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)

    def test_a_key_is_sent_and_not_shown(self):
        server = self.serve()
        key = self.path("key")
        with open(key, "w", encoding="utf-8") as file:
            file.write("sk-secret\n")
        done = self.run_bench(server.url, "--requests", "2", "--output-tokens", "2",
                              "--api-key-file", key, "--json", "--gpus", "none")
        self.assertEqual(server.bodies[0][1]["Authorization"], "Bearer sk-secret")
        self.assertNotIn("sk-secret", done.stdout + done.stderr)

    def test_wrong_input_gets_one_sentence(self):
        server = self.serve(models=["a", "b"])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            closed = f"http://127.0.0.1:{free.getsockname()[1]}"
        for arguments, code, word in (
                ([server.url], 2, "--model"),
                ([closed], 6, "no answer from http://127.0.0.1"),
                (["ftp://x"], 2, "ftp"),
                ([server.url, "--model", "a", "--prompt-tokens", "many"], 2, "lognormal"),
                ([server.url, "--model", "a", "--steps", "5"], 2, "1@30s"),
                ([server.url, "--model", "a", "--slo", "5"], 2, "ttft=1s"),
                ([server.url, "--model", "a", "--trace", "conversation"], 3, "AzurePublicDataset"),
                ([server.url, "--model", "a", "--trace", self.path("none.csv")], 3, "none.csv"),
                ([server.url, "--model", "a", "--rate", "1", "--concurrency", "2"], 2, "--rate"),
                ([server.url, "--model", "a", "--duration", "soon"], 2, "soon")):
            self.environment.pop("ZEUS_LLM_TRACE_DIR", None)
            done = self.run_bench(*arguments)
            self.assertEqual(done.returncode, code, (arguments, done.stderr))
            self.assertIn(word, done.stderr)
            self.assertEqual(done.stdout, "")


class SimulatedServerTest(LlmBenchTestCase):
    """The benchmark against the exact truth of the simulated server, in real time."""

    def setUp(self):
        super().setUp()
        self.sim("start", "--gpus", "H100")
        self.environment = self.evaluated_environment()

    def start(self, *arguments):
        """Starts a verb of `zeus llm` and returns its URL once it listens."""
        process = subprocess.Popen([ZEUS, "llm", *arguments, "--listen", "127.0.0.1:0"],
                                   env=self.environment, stdout=subprocess.PIPE, text=True)

        def stop():
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.communicate()
        self.addCleanup(stop)
        line = process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:\d+", line)
        self.assertTrue(found, line)
        return found[0]

    def truth(self, address, request):
        with contextlib.closing(http.client.HTTPConnection(address, timeout=30)) as connection:
            connection.request("GET", f"/zeus/truth/{request}")
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200)
            return json.loads(answer.read())["energy_joules"]

    def test_the_steady_state_energy_per_token_is_the_truth(self):
        address = self.start("sim", "--model", "llama-3.1-8b", "--gpu", "0", "--truth")
        log = self.path("requests.jsonl")
        result = self.bench(f"http://{address}", "--concurrency", "16", "--requests", "200",
                            "--prompt-tokens", "200", "--output-tokens", "uniform:80-160",
                            "--request-log", log)
        run = result["runs"][0]["inference"]
        self.assertEqual(run["requests_finished"], 200)
        self.assertEqual(run["energy_source"], "gpus")
        # In a steady state requests pay for all that happens: joules over tokens of those that
        # began and ended in it.
        window = run["steady_state"]
        with open(log, encoding="utf-8") as file:
            inside = [line for line in map(json.loads, file)
                      if line["sent_seconds"] >= window["begin_seconds"]
                      and line["ended_seconds"] <= window["end_seconds"]]
        joules = sum(self.truth(address, line["request"]) for line in inside)
        truth = joules / sum(line["output_tokens"] for line in inside)
        measured = run["joules_per_output_token"]
        print(f"{measured:.5f} J per token, truth {truth:.5f}, {measured / truth - 1:+.2%}, "
              f"{len(inside)} requests")
        self.assertLess(abs(measured / truth - 1), 0.01)


if __name__ == "__main__":
    unittest.main()
