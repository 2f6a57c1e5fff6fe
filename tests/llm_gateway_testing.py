"""Shared by the tests of `zeus llm gateway`: upstreams that do as they are told, and the gateway."""

import asyncio
import http.client
import json
import os
import subprocess
import threading

from sim_testing import PipedProgram, SimTestCase, wait_until

ZEUS = os.environ.get("ZEUS_BINARY", "build/release/bin/zeus")


class Request:
    """A request as an upstream got it."""

    def __init__(self, method, target, headers, body):
        self.method, self.target, self.headers, self.body = method, target, headers, body

    @property
    def json(self):
        return json.loads(self.body)


def response(body, content_type="application/json", status="200 OK", headers=()):
    """The bytes of a response with a length."""
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunk(data):
    data = data.encode() if isinstance(data, str) else data
    return b"%x\r\n" % len(data) + data + b"\r\n"


def chunked_head(content_type="text/event-stream"):
    return f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def event(fields):
    return "data: " + json.dumps(fields) + "\n\n"


def token(text, **more):
    return event({"id": "c", "object": "chat.completion.chunk",
                  "choices": [{"index": 0, "delta": {"content": text}}], **more})


class Upstream:
    """A server on a thread of its own. `answer(request, reader, writer)` is a coroutine that sends the
    response; it returns False to have the connection closed."""

    def __init__(self, answer, models=("m",), tls=None):
        self.answer, self.models, self.tls = answer, models, tls
        self.requests, self.connections, self.aborted = [], 0, 0
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self.thread.start()
        started.wait()

    def _run(self, started):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 26, ssl=self.tls))
        self.port = self.server.sockets[0].getsockname()[1]
        started.set()
        self.loop.run_forever()

    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            while (request := await self._read(reader)) is not None:
                # The gateway's own questions, also below a path of the upstream.
                if request.target.endswith("/v1/models"):
                    data = [{"id": name, "object": "model"} for name in self.models]
                    writer.write(response(json.dumps({"object": "list", "data": data})))
                elif request.target.endswith("/metrics"):
                    writer.write(response("", status="404 Not Found"))
                else:
                    self.requests.append(request)
                    if await self.answer(request, reader, writer) is False:
                        break
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.aborted += 1
        except asyncio.CancelledError:
            pass  # The test ends, and close() with it.
        finally:
            writer.close()

    @staticmethod
    async def _read(reader):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        lines = head.decode().split("\r\n")
        method, target, _ = lines[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
        body = b""
        if "content-length" in headers:
            body = await reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
            await reader.readline()
        return Request(method, target, headers, body)

    @property
    def url(self):
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"

    def close(self):
        async def end():
            self.server.close()
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    task.cancel()
        asyncio.run_coroutine_threadsafe(end(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Gateway(PipedProgram):
    """A `zeus llm gateway` process on a free port of this machine."""

    def __init__(self, *arguments, environment=None):
        self.process = subprocess.Popen(
            [ZEUS, "llm", "gateway", "--listen", "127.0.0.1:0", *arguments], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on http://127.0.0.1:"):
            raise AssertionError(f"{line!r} {self.process.communicate()[1]!r}")
        self.port = int(line.rsplit(":", 1)[1])

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body of one request on a connection of its own."""
        headers = {"Content-Type": "application/json", **(headers or {})}
        body = json.dumps(body) if isinstance(body, dict) else body
        connection = self.connect()
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, body = self.ask("GET", path)
        if status != 200:
            raise AssertionError(f"{status} {body!r}")
        return json.loads(body)

    def chat(self, headers=None, **fields):
        return self.ask("POST", "/v1/chat/completions",
                        {"model": "m", "messages": [{"role": "user", "content": "hello"}], **fields}, headers)

    def memory(self):
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class SimulatedServer(PipedProgram):
    """A `zeus llm sim` process on GPU 0 of a simulated node."""

    def __init__(self, environment, *arguments, model="llama-3.1-8b", listen="127.0.0.1:0"):
        self.process = subprocess.Popen(
            [ZEUS, "llm", "sim", "--model", model, "--listen", listen, "--truth", *arguments], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if "127.0.0.1:" not in line:
            raise AssertionError(f"{line!r} {self.process.communicate()[1]!r}")
        self.port = int(line.rsplit(":", 1)[1])
        self.url = f"http://127.0.0.1:{self.port}"


class GatewayTestCase(SimTestCase):
    """A gateway without GPUs, unless a test asks for simulated ones."""

    def setUp(self):
        super().setUp()
        # No GPU of this machine is measured by accident.
        self.environment["CUDA_VISIBLE_DEVICES"] = ""

    def upstream(self, answer, models=("m",), tls=None):
        upstream = Upstream(answer, models, tls)
        self.addCleanup(upstream.close)
        return upstream

    def gateway(self, *arguments, environment=None):
        gateway = Gateway(*arguments, environment=environment or self.environment)
        self.addCleanup(gateway.kill)
        return gateway

    def assert_memory_grew_less(self, gateway, before, most):
        # A sanitizer keeps freed memory for a while.
        if "ZEUS_SANITIZED" not in os.environ:
            self.assertLess(gateway.memory() - before, most)

    def simulated(self, gpus="H100"):
        """The environment of a node with simulated GPUs."""
        del self.environment["CUDA_VISIBLE_DEVICES"]
        self.sim("start", "--name", "llm", "--gpus", gpus)
        self.addCleanup(self.sim, "stop", "--name", "llm")
        return self.evaluated_environment("--name", "llm")

    def record(self, gateway, identifier, condition=lambda record: record["outcome"] != "in flight"):
        """The record of a request, once the condition holds."""
        found = {}

        def ready():
            found.update(gateway.get(f"/zeus/requests/{identifier}"))
            return condition(found)
        wait_until(ready, f"the record never became as wanted: {found}")
        return found
