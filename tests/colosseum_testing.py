"""Shared by the tests of `zeus llm colosseum`: the server, a client that keeps every byte, and models."""

import http.client
import json
import os
import subprocess

from llm_gateway_testing import GatewayTestCase, SimulatedServer, chunk, chunked_head, token
from sim_testing import PipedProgram, wait_until

ZEUS = os.environ.get("ZEUS_BINARY", "build/release/bin/zeus")


class Colosseum(PipedProgram):
    """A `zeus llm colosseum` process on a free port of this machine, unless `listen` names one."""

    def __init__(self, database, *arguments, listen="127.0.0.1:0", environment=None):
        self.process = subprocess.Popen(
            [ZEUS, "llm", "colosseum", "--listen", listen, "--database", database, "--no-access-log", *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise AssertionError(f"{line!r} {self.process.communicate()[1]!r}")
        self.url = line.removeprefix("listening on ").strip()
        self.port = int(self.url.rsplit(":", 1)[1])
        self.received = b""  # Every byte of every response to ask().

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None):
        """Status and body of one request on a connection of its own."""
        connection = self.connect()
        try:
            body = json.dumps(body) if body is not None and not isinstance(body, (str, bytes)) else body
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            data = answer.read()
            self.received += str(answer.headers).encode() + data
            return answer.status, data
        finally:
            connection.close()

    def json(self, method, path, body=None, status=200):
        got, data = self.ask(method, path, body)
        if got != status:
            raise AssertionError(f"{method} {path}: {got} {data!r}")
        return json.loads(data)

    def begin(self, prompt="why?", **fields):
        return self.json("POST", "/zeus/duels", {"prompt": prompt, **fields}, 201)["id"]

    def events(self, duel, last_event_id=None):
        """The events of a duel, until the server ends the stream."""
        headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
        status, data = self.ask("GET", f"/zeus/duels/{duel}/events", headers=headers)
        if status != 200:
            raise AssertionError(f"{status} {data!r}")
        return [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")]

    def follow(self, duel):
        """Both texts of a duel and its stage after them."""
        events = self.events(duel)
        return "".join(e["a"] for e in events), "".join(e["b"] for e in events), events[-1]["stage"]

    def answered(self, prompt="why?", **fields):
        """A duel whose answers are complete."""
        duel = self.begin(prompt, **fields)
        stage = self.follow(duel)[2]
        if stage != "voting":
            raise AssertionError(stage)
        return duel

    def vote(self, duel, choice, status=200):
        return self.json("POST", f"/zeus/duels/{duel}/vote", {"choice": choice}, status)


def chat_answer(words, before=None):
    """A coroutine for Upstream that streams these words as a chat completion."""
    async def answer(request, reader, writer):
        writer.write(chunked_head())
        for number, word in enumerate(words):
            if before is not None and await before(number, writer) is False:
                return False
            writer.write(chunk(token(word)))
            await writer.drain()
        writer.write(chunk("data: [DONE]\n\n") + chunk(""))
        return None
    return answer


class ColosseumTestCase(GatewayTestCase):
    """A Colosseum with a database of its own."""

    def setUp(self):
        super().setUp()
        self.database = "sqlite://" + os.path.join(self.directory.name, "zeus.db")

    def colosseum(self, gateway, *arguments, **options):
        server = Colosseum(options.pop("database", self.database), "--gateway", f"http://127.0.0.1:{gateway.port}",
                           *arguments, **options)
        self.addCleanup(server.kill)
        return server

    def scripted(self, *arguments, left=None, right=None):
        """A Colosseum whose two models say what they are told to; no GPU, so no energy."""
        left = self.upstream(left or chat_answer(["left ", "words"]), models=("left-model",))
        right = self.upstream(right or chat_answer(["right ", "words"]), models=("right-model",))
        gateway = self.gateway("--upstream", left.url, "--models", "left-model",
                               "--upstream", right.url, "--models", "right-model")
        return self.colosseum(gateway, *arguments)

    def metered(self, *arguments):
        """A Colosseum whose models run on simulated GPUs, the larger one on GPU 1."""
        simulation = self.simulated("2xH100")
        servers = []
        for gpu, model in enumerate(["llama-3.1-8b", "qwen3-14b"]):
            server = SimulatedServer(simulation, "--gpu", str(gpu), "--seed", str(gpu), model=model)
            self.addCleanup(server.kill)
            servers.append(server)
        gateway = self.gateway("--upstream", servers[0].url, "--gpus", "0",
                               "--upstream", servers[1].url, "--gpus", "1", environment=simulation)
        wait_until(lambda: len(gateway.get("/v1/models")["data"]) == 2, "the gateway never listed both models")
        return gateway, servers, self.colosseum(gateway, *arguments)
