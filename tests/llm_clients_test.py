#!/usr/bin/env python3
"""Official clients through `zeus llm gateway`, each streamed and not, to the simulated server and to a real llama-server.

The clients (19 MB) are fetched once. The server and the model of llama.cpp (152 MB) are fetched only where
ZEUS_REAL_MODELS=1 asks for them, and used wherever they are in the cache: `./dev test` on a fresh machine should cost
neither these megabytes nor the minute."""

import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from llm_gateway_testing import ZEUS, GatewayTestCase, SimulatedServer, wait_until
from sim_testing import PipedProgram

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS.parent / "tools"))
import fetch_llm  # noqa: E402  (It is found by the line above.)

CLIENTS = TESTS / "llm_clients" / "clients.mjs"
REAL_MODELS = os.environ.get("ZEUS_REAL_MODELS", "") not in ("", "0")
PROMPT = "Once upon a time there was a lighthouse."


missing = {}  # Why components cannot be had: nobody tries again.


def fetched(name, cached_only=False):
    """The path of a component; skips the test, with the reason, where it cannot be had."""
    if name not in missing:
        try:
            return fetch_llm.fetch(name, cached_only)
        except fetch_llm.Unavailable as reason:
            missing[name] = str(reason)
    raise unittest.SkipTest(missing[name])


class LlamaServer(PipedProgram):
    """A real llama-server with the model stories15M, on a free port."""

    def __init__(self, folder, model, log):
        self.process = None
        for _ in range(20):
            self.port = int(subprocess.run([sys.executable, "-c", "import socket; s = socket.socket(); "
                                            "s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])"],
                                           capture_output=True, check=True).stdout)
            with open(log, "wb") as out:
                self.process = subprocess.Popen(
                    ["./llama-server", "-m", str(model), "-np", "4", "-c", "1024", "--threads", "1", "--metrics",
                     "--alias", "stories15m", "--no-webui", "--host", "127.0.0.1", "--port", str(self.port)],
                    cwd=folder, env={**os.environ, "LD_LIBRARY_PATH": "."}, stdout=out, stderr=out)
            ready = []

            def listens_or_ended():
                with open(log, encoding="utf-8", errors="replace") as file:
                    ready[:] = ["listening on http" in file.read()]
                return ready[0] or self.process.poll() is not None
            wait_until(listens_or_ended, "llama-server does not start")
            if ready[0]:
                break
        else:
            raise AssertionError(f"llama-server ended: see {log}")
        self.url = f"http://127.0.0.1:{self.port}"

    def kill(self):
        self.process.kill()
        self.process.wait()


class ClientsTestCase(GatewayTestCase):
    """A gateway in front of a server on a simulated H100; subclasses start the server."""

    model = "llama-3.1-8b"

    def setUp(self):
        super().setUp()
        self.simulation = self.simulated()
        self.target = self.start_server()
        self.meter = self.gateway("--upstream", self.target, "--gpus", "0", environment=self.simulation)
        self.url = f"http://127.0.0.1:{self.meter.port}"
        wait_until(lambda: self.meter.get("/v1/models")["data"], "the server lists no model")

    def check(self, answer):
        """An answer has a text and the user saw its energy, or the way to it."""
        self.assertTrue(answer["text"].strip(), answer)
        energy = answer["energy"]
        if energy is None:
            self.assertTrue(answer["request"], answer)
        else:
            self.check_energy(energy, answer)
        identifier = answer.get("request") or energy["request"]
        record = self.record(self.meter, identifier, lambda record: record["final"] is True)
        self.assertEqual((record["outcome"], record["model"]), ("completed", self.model), answer)
        self.check_energy(record, answer)
        self.assertGreater(record["output_tokens"], 0, answer)
        if answer.get("header"):
            self.assertEqual(float(answer["header"]), energy["energy_joules"], answer)

    def check_energy(self, energy, answer):
        self.assertIsInstance(energy["energy_joules"], float, answer)
        self.assertTrue(math.isfinite(energy["energy_joules"]), answer)
        self.assertGreater(energy["energy_joules"], 0, answer)
        self.assertAlmostEqual(energy["prefill_joules"] + energy["decode_joules"], energy["energy_joules"],
                               delta=1e-6 + 1e-3 * energy["energy_joules"], msg=answer)

    def run_client(self, name, *ways):
        """Runs one of the official clients; its answers came in these ways."""
        packages = fetched("clients")
        folder = pathlib.Path(self.directory.name) / "clients"
        folder.mkdir()
        (folder / "node_modules").symlink_to(packages / "node_modules")
        shutil.copy(CLIENTS, folder)
        done = subprocess.run(["node", folder / "clients.mjs", name, self.url, self.model],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([answer["how"] for answer in answers], list(ways), done.stdout)
        for answer in answers:
            with self.subTest(client=name, how=answer["how"]):
                self.check(answer)

    def curl(self, path, *arguments, **fields):
        """Status line and fields of the head, and the body."""
        head = os.path.join(self.directory.name, "head")
        done = subprocess.run(["curl", "--silent", "--show-error", "--no-buffer", "--max-time", "300", "--dump-header",
                               head, self.url + path, "--json", json.dumps({"model": self.model, **fields}), *arguments],
                              capture_output=True, text=True, timeout=360, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(head, encoding="ascii") as file:
            lines = file.read().splitlines()
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        return lines[0], fields, done.stdout

    def check_curl(self):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")
        messages = [{"role": "user", "content": PROMPT}]
        status, head, body = self.curl("/v1/chat/completions", messages=messages, max_tokens=16)
        self.assertEqual(status, "HTTP/1.1 200 OK")
        answer = json.loads(body)
        self.check({"text": answer["choices"][0]["message"]["content"], "energy": answer["usage"]["energy"],
                    "header": head["x-zeus-energy-joules"], "request": head["x-zeus-request"]})
        # Compression that curl asks for is not passed on for what is metered.
        status, head, body = self.curl("/v1/chat/completions", "--compressed", messages=messages, max_tokens=16,
                                       stream=True)
        comment = re.search(r"^: energy (\{.*\})$", body, re.MULTILINE)
        self.assertIsNotNone(comment, body)
        self.assertTrue(body.rstrip().endswith("data: [DONE]"), body)
        events = [json.loads(data) for data in re.findall(r"^data: (\{.*\})$", body, re.MULTILINE)]
        text = "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])
        self.check({"text": text, "energy": json.loads(comment[1]), "request": head["x-zeus-request"]})


class SimulatedServerTest(ClientsTestCase):
    def start_server(self):
        server = SimulatedServer(self.simulation)
        self.addCleanup(server.kill)
        return server.url

    def test_openai(self):
        self.run_client("openai", "whole", "stream", "stream without usage", "stream helper", "text")

    def test_ai_sdk(self):
        self.run_client("ai", "whole", "stream")

    def test_langchain(self):
        self.run_client("langchain", "whole", "stream")

    def test_ollama(self):
        self.run_client("ollama", "whole", "stream", "text", "text stream")

    def test_curl(self):
        self.check_curl()


class LlamaServerTest(ClientsTestCase):
    """The gateway meters a simulated GPU, on which nothing runs: words are real, joules are those of an idle H100."""

    model = "stories15m"

    def start_server(self):
        return self.llama_server().url

    def llama_server(self):
        folder, model = (fetched(name, cached_only=not REAL_MODELS) for name in ("llama-server", "stories15m"))
        server = LlamaServer(folder, model, os.path.join(self.directory.name, "llama-server.log"))
        self.addCleanup(server.kill)
        return server

    def check_energy(self, energy, answer):
        """An idle GPU has next to nothing for its requests, but what it has is a number."""
        self.assertIsInstance(energy["energy_joules"], (int, float), answer)
        self.assertGreaterEqual(energy["energy_joules"], 0, answer)

    def test_openai(self):
        self.run_client("openai", "whole", "stream", "stream without usage", "stream helper", "text")

    def test_ai_sdk(self):
        self.run_client("ai", "whole", "stream")

    def test_langchain(self):
        self.run_client("langchain", "whole", "stream")

    def test_curl(self):
        self.check_curl()


class RealWordsTest(LlamaServerTest):
    """The simulated server with the words of llama-server. It also speaks Ollama's dialect, which llama-server does
    not."""

    model = "tinyllama-1.1b+words-of-another"

    def start_server(self):
        words = self.llama_server()
        server = SimulatedServer(self.simulation, "--text-from", words.url, model="tinyllama-1.1b")
        self.addCleanup(server.kill)
        return server.url

    check_energy = ClientsTestCase.check_energy

    def test_ollama(self):
        self.run_client("ollama", "whole", "stream", "text", "text stream")


if __name__ == "__main__":
    print(f"clients of {ZEUS}")
    unittest.main()
