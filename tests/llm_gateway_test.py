#!/usr/bin/env python3
"""zeus llm gateway end to end: bytes, backpressure, failures, limits, routing, and the end."""

import asyncio
import gzip
import http.client
import json
import os
import random
import socket
import ssl
import subprocess
import time
import unittest

from llm_gateway_testing import ZEUS, GatewayTestCase, chunk, chunked_head, event, response, token, wait_until

STREAMS = int(os.environ.get("ZEUS_GATEWAY_STREAMS", "2000"))


def random_stream(rng):
    """The path, the request's body, the content type and the body of a random response."""
    kind = rng.choice(["chat", "text", "ollama", "plain", "garbage"])
    if kind == "garbage":
        return "/v1/chat/completions", {"stream": True}, "text/event-stream", rng.randbytes(rng.randrange(0, 3000))
    if kind == "plain":
        body = {"id": "x", "choices": [{"message": {"content": "é" * rng.randrange(0, 99)}}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
        return "/v1/chat/completions", {}, "application/json", json.dumps(body).encode()
    words = ["w" * rng.randrange(1, 30) + rng.choice(["", "é", "\\n", "\""]) for _ in range(rng.randrange(0, 30))]
    if kind == "ollama":
        lines = [{"model": "m", "response": word, "done": False} for word in words]
        lines.append({"model": "m", "done": True, "eval_count": len(words), "prompt_eval_count": 3})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        return "/api/generate", {"stream": True}, "application/x-ndjson", text.encode()
    separator = rng.choice(["\n\n", "\r\n\r\n"])
    text = "".join(token(word).replace("\n\n", separator) for word in words)
    if rng.random() < 0.5:
        text += event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": len(words)}})
    if rng.random() < 0.7:
        text += "data: [DONE]" + separator
    path = "/v1/chat/completions" if kind == "chat" else "/v1/completions"
    asked = {"stream_options": {"include_usage": True}} if rng.random() < 0.5 else {}
    return path, {"stream": True, **asked}, "text/event-stream", text.encode()


class BytesTest(GatewayTestCase):
    def test_bodies_are_identical_without_annotation(self):
        """Random streams of several dialects, with reads and writes split at random places."""
        answers = {}

        async def answer(request, _reader, writer):
            seed = request.headers["x-seed"]
            rng = random.Random(seed)
            content_type, body = answers[seed]
            framing = rng.choice(["chunked", "length", "close"])
            if framing == "length":
                data = response(body, content_type)
            elif framing == "close":
                data = f"HTTP/1.0 200 OK\r\nContent-Type: {content_type}\r\n\r\n".encode() + body
            else:
                data, rest = chunked_head(content_type), body
                while rest:
                    size = rng.randrange(1, 400)
                    data, rest = data + chunk(rest[:size]), rest[size:]
                data += b"0\r\n\r\n"
            while data:
                size = rng.choice([1, 7, 60, 1000, 5000])
                writer.write(data[:size])
                data = data[size:]
                await asyncio.sleep(0)
            return framing != "close"

        upstream = self.upstream(answer)
        gateway = self.gateway("--upstream", upstream.url, "--annotate", "none")

        async def client(numbers):
            different = 0
            for number in numbers:
                rng = random.Random(-number)
                path, fields, content_type, body = random_stream(rng)
                answers[str(number)] = (content_type, body)
                sent = json.dumps({"model": "m", "prompt": "p", "messages": [], **fields}).encode()
                reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
                writer.write(f"POST {path} HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nx-seed: {number}\r\n"
                             f"Connection: close\r\nContent-Length: {len(sent)}\r\n\r\n".encode() + sent)
                head, _, got = (await reader.read()).partition(b"\r\n\r\n")
                writer.close()
                different += unframed(head, got) != body
                del answers[str(number)]
            return different

        async def clients():
            return await asyncio.gather(*[client(range(i, STREAMS, 16)) for i in range(16)])

        self.assertEqual(sum(asyncio.run(clients())), 0)
        self.assertEqual(gateway.get("/zeus/healthz")["in_flight"], 0)

    def test_first_byte_leaves_as_soon_as_it_came(self):
        released = asyncio.Event()

        async def answer(_request, _reader, writer):
            writer.write(chunked_head() + chunk(token("first")))
            await writer.drain()
            await released.wait()
            writer.write(chunk("data: [DONE]\n\n") + b"0\r\n\r\n")

        upstream = self.upstream(answer)
        gateway = self.gateway("--upstream", upstream.url)
        connection = gateway.connect()
        connection.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "stream": True, "messages": []}),
                           {"Content-Type": "application/json"})
        reader = connection.getresponse()
        self.assertIn(b"first", reader.readline())
        upstream.loop.call_soon_threadsafe(released.set)
        self.assertIn(b"[DONE]", reader.read())
        connection.close()

    def test_heads_are_the_upstreams(self):
        async def answer(request, _reader, writer):
            if request.method == "HEAD":
                writer.write(b"HTTP/1.1 200 Fine\r\nContent-Length: 123\r\nX-Odd:  a  b\r\n\r\n")
            elif request.target == "/204":
                writer.write(b"HTTP/1.1 204 Nothing\r\nset-cookie: a\r\nSet-Cookie: b\r\n\r\n")
            else:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" + response("teapot", "text/odd", "418 Tea"))

        upstream = self.upstream(answer)
        gateway = self.gateway("--upstream", upstream.url + "/prefix")
        status, headers, body = gateway.ask("HEAD", "/any", headers={"Connection": "x-hop", "x-hop": "1", "X-End": "2"})
        self.assertEqual((status, headers["Content-Length"], headers["X-Odd"], body), (200, "123", "a  b", b""))
        self.assertEqual(upstream.requests[-1].target, "/prefix/any")
        self.assertNotIn("x-hop", upstream.requests[-1].headers)
        self.assertEqual(upstream.requests[-1].headers["x-end"], "2")
        self.assertEqual(upstream.requests[-1].headers["host"], upstream.url.removeprefix("http://"))
        status, headers, body = gateway.ask("GET", "/teapot?q=%20")
        self.assertEqual((status, headers["Content-Type"], body), (418, "text/odd", b"teapot"))
        self.assertEqual(upstream.requests[-1].target, "/prefix/teapot?q=%20")

    def test_large_uploads_pass_in_pieces(self):
        async def answer(request, _reader, writer):
            writer.write(response(str(sum(request.body))))

        upstream = self.upstream(answer)
        gateway = self.gateway("--upstream", upstream.url)
        data = random.Random(1).randbytes(5_000_000)
        status, _, body = gateway.ask("POST", "/v1/audio/transcriptions", data, {"Content-Type": "audio/wav"})
        self.assertEqual((status, int(body)), (200, sum(data)))
        pieces = (data[i:i + 33333] for i in range(0, len(data), 33333))
        connection = gateway.connect()
        connection.request("POST", "/upload", pieces, {"Content-Type": "audio/wav"}, encode_chunked=True)
        self.assertEqual(int(connection.getresponse().read()), sum(data))
        connection.close()


def unframed(head, body):
    """The body of a response on a connection that was closed after it."""
    if b"transfer-encoding: chunked" not in head.lower():
        return body
    data = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        count = int(size, 16)
        if count == 0:
            return data
        data, body = data + body[:count], body[count + 2:]
    return data + b"(no last chunk)"


class TroubleTest(GatewayTestCase):
    def test_a_client_that_leaves_ends_the_upstreams_work(self):
        async def answer(_request, reader, writer):
            writer.write(chunked_head() + chunk(token("one")))
            await writer.drain()
            await reader.read(1)  # Ends when the gateway closes the connection.
            ended.append(True)
            return False

        ended = []
        upstream = self.upstream(answer)
        gateway = self.gateway("--upstream", upstream.url)
        connection = gateway.connect()
        connection.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "stream": True, "messages": []}),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        identifier = answer.headers["x-zeus-request"]
        answer.readline()
        answer.close()
        connection.close()
        wait_until(lambda: ended, "the upstream's connection stayed open")
        self.assertEqual(self.record(gateway, identifier)["outcome"], "cancelled")
        self.assertEqual(gateway.get("/zeus/healthz")["in_flight"], 0)

    def test_an_upstream_that_dies_shows_as_a_broken_response(self):
        async def answer(request, _reader, writer):
            if request.json.get("stream"):
                writer.write(chunked_head() + chunk(token("one")))
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
            await writer.drain()
            return False

        upstream = self.upstream(answer)
        gateway = self.gateway("--upstream", upstream.url)
        for stream in (True, False):
            with self.assertRaises(http.client.IncompleteRead):
                gateway.chat(stream=stream)
        wait_until(lambda: len(gateway.get("/zeus/requests")["requests"]) == 2, "the records are missing")
        for record in gateway.get("/zeus/requests")["requests"]:
            self.assertEqual(record["outcome"], "failed")
            self.assertIn("too early", record["reason"])

    def test_a_slow_reader_holds_the_upstream_back(self):
        sent = [0]

        async def answer(_request, _reader, writer):
            writer.write(chunked_head())
            block = chunk(token("x" * 100_000))
            while sent[0] < 400_000_000:
                writer.write(block)
                await writer.drain()
                sent[0] += len(block)
            writer.write(b"0\r\n\r\n")

        upstream = self.upstream(answer)
        gateway = self.gateway("--upstream", upstream.url)
        before = gateway.memory()
        client = socket.create_connection(("127.0.0.1", gateway.port))
        body = json.dumps({"model": "m", "stream": True, "messages": []})
        client.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        wait_until(lambda: sent[0] > 0, "nothing was sent")
        steady = [-1, 0]

        def stands_still():
            time.sleep(0.1)
            steady[1] = steady[1] + 1 if sent[0] == steady[0] else 0
            steady[0] = sent[0]
            return steady[1] >= 5
        wait_until(stands_still, "the upstream is never held back")
        self.assertLess(sent[0], 100_000_000)
        self.assert_memory_grew_less(gateway, before, 20_000_000)
        total = 0
        while total < 50_000_000:
            total += len(client.recv(1 << 20))
        self.assert_memory_grew_less(gateway, before, 20_000_000)
        client.close()
        wait_until(lambda: gateway.get("/zeus/healthz")["in_flight"] == 0, "the request stays in flight")

    def test_a_stale_connection_costs_nobody_a_request(self):
        async def answer(request, _reader, writer):
            if seen.get(id(writer)):  # The second request on a connection is not answered.
                return False
            seen[id(writer)] = writer
            writer.write(response("fine"))

        seen = {}
        upstream = self.upstream(answer)
        gateway = self.gateway("--upstream", upstream.url)
        for _ in range(4):
            self.assertEqual(gateway.chat()[2][:4], b"fine")
        self.assertGreaterEqual(gateway.get("/zeus/healthz")["resent"], 2)

    def test_an_upstream_of_http_1_0_is_understood(self):
        async def answer(_request, _reader, writer):
            writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + token("a").encode())
            await writer.drain()
            return False

        gateway = self.gateway("--upstream", self.upstream(answer).url, "--annotate", "none")
        status, headers, body = gateway.chat(stream=True)
        self.assertEqual((status, body), (200, token("a").encode()))
        self.assertEqual(headers["Transfer-Encoding"], "chunked")

    def test_compressed_bodies_pass_untouched(self):
        packed = gzip.compress(json.dumps({"choices": [], "usage": {}}).encode())

        async def answer(request, _reader, writer):
            encodings.append(request.headers.get("accept-encoding"))
            writer.write(response(packed, headers=["Content-Encoding: gzip"]))

        encodings = []
        gateway = self.gateway("--upstream", self.upstream(answer).url)
        status, headers, body = gateway.chat(headers={"Accept-Encoding": "gzip"})
        self.assertEqual((status, headers["Content-Encoding"], body), (200, "gzip", packed))
        gateway.ask("GET", "/file", headers={"Accept-Encoding": "gzip"})
        self.assertEqual(encodings, ["identity", "gzip"])

    def test_garbage_and_huge_events_pass(self):
        bodies = {"huge": ("text/event-stream", token("x" * 1_000_000).encode() * 3),
                  "no-json": ("text/event-stream", b"data: {oops\n\ndata: \xff\xfe\n\n: hm\n\n"),
                  "wrong-type": ("text/html", b"<html>" + token("a").encode()),
                  "no-type": ("", b"\x00\x01\x02"),
                  "array": ("application/json", b"[1, 2"),
                  "utf-8": ("application/json", b'{"choices": [], "x": "\xff\xfe"}')}

        async def answer(request, _reader, writer):
            content_type, body = bodies[request.json["case"]]
            writer.write(response(body, content_type))

        gateway = self.gateway("--upstream", self.upstream(answer).url, "--annotate", "none")
        for case, (_, body) in bodies.items():
            for stream in (True, False):
                with self.subTest(case=case, stream=stream):
                    self.assertEqual(gateway.chat(case=case, stream=stream)[2], body)

    def test_what_clients_send_wrongly_is_refused_in_a_sentence(self):
        async def answer(_request, _reader, writer):
            writer.write(response("fine"))

        gateway = self.gateway("--upstream", self.upstream(answer).url, "--max-body", "2000")
        for data, status, words in [
                (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, "no HTTP/1.1 request"),
                (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 500 + b"\r\n", 400, "more than 200 fields"),
                (b"GET / HTTP/1.1\r\nA: " + b"b" * 70_000, 431, "more than 65536 bytes"),
                (b"POST / HTTP/1.1\r\nContent-Length: 9999\r\n\r\n", 413, "--max-body"),
                (b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "chunked"),
                (b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", 501, "websockets"),
                (b"CONNECT x:1 HTTP/1.1\r\n\r\n", 501, "tunnels")]:
            with self.subTest(data=data[:40]):
                with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as client:
                    client.sendall(data)
                    got = b""
                    while part := client.recv(65536):
                        got += part
                head, _, body = got.partition(b"\r\n\r\n")
                self.assertEqual(int(head.split()[1]), status)
                self.assertIn(words, json.loads(body)["error"]["message"])
        self.assertEqual(gateway.ask("GET", "/x")[2], b"fine")

    def test_an_upstream_that_is_not_there_is_502_and_a_silent_one_504(self):
        async def answer(_request, reader, _writer):
            await reader.read(1)
            return False

        gateway = self.gateway("--upstream", self.upstream(answer).url, "--first-byte-timeout", "0.3")
        status, headers, body = gateway.chat()
        self.assertEqual(status, 504)
        record = self.record(gateway, headers["x-zeus-request"])
        self.assertEqual((record["outcome"], record["status"]), ("failed", 504))
        self.assertIn("did not answer within 0.3 s", json.loads(body)["error"]["message"])
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
            gateway = self.gateway("--upstream", f"http://127.0.0.1:{port}")
            status, _, body = gateway.chat()
        self.assertEqual(status, 502)
        self.assertIn(f"http://127.0.0.1:{port} cannot be reached: connection refused",
                      json.loads(body)["error"]["message"])

    def test_what_speaks_no_http_is_502(self):
        async def answer(_request, _reader, writer):
            writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
            await writer.drain()
            return False

        status, _, body = self.gateway("--upstream", self.upstream(answer).url).chat()
        self.assertEqual(status, 502)
        self.assertIn("does not speak HTTP", json.loads(body)["error"]["message"])

    def test_connections_and_memory_do_not_grow(self):
        async def answer(_request, _reader, writer):
            writer.write(chunked_head() + chunk(token("a")) * 10 + chunk("data: [DONE]\n\n") + b"0\r\n\r\n")

        gateway = self.gateway("--upstream", self.upstream(answer).url, "--keep", "100")
        for _ in range(300):
            gateway.chat(stream=True)
        files, memory = gateway.open_files(), gateway.memory()
        for _ in range(1000):
            gateway.chat(stream=True)
        wait_until(lambda: gateway.open_files() <= files, "connections are left open")
        self.assert_memory_grew_less(gateway, memory, 5_000_000)
        self.assertEqual(len(gateway.get("/zeus/requests?limit=1000")["requests"]), 100)


class RoutingTest(GatewayTestCase):
    def test_requests_go_to_the_upstream_of_their_model(self):
        def named(name):
            async def answer(_request, _reader, writer):
                writer.write(response(name, "text/plain"))
            return answer

        one = self.upstream(named("one"), models=("a", "shared"))
        two = self.upstream(named("two"), models=("b", "shared"))
        gateway = self.gateway("--upstream", one.url, "--upstream", two.url)
        data = gateway.get("/v1/models")["data"]
        self.assertEqual([entry["id"] for entry in data], ["a", "shared", "b"])
        for model, name in [("a", b"one"), ("b", b"two"), ("shared", b"one")]:
            self.assertEqual(gateway.chat(model=model)[2], name)
            self.assertEqual(gateway.ask("POST", "/v1/other", {"model": model})[2], name)
        self.assertEqual(gateway.ask("GET", "/v1/models/b")[2], b"two")
        status, _, body = gateway.chat(model="c")
        self.assertEqual(status, 404)
        self.assertIn('no upstream serves the model "c"; there are a, shared, b', json.loads(body)["error"]["message"])

    def test_bad_options_are_one_sentence(self):
        for arguments, words in [
                (["--upstream", "ftp://x"], "ftp://x"),
                ([], "--upstream is required"),
                (["--upstream", "http://127.0.0.1:1", "--gpus", "0", "--gpus", "1"], "once for each --upstream"),
                (["--upstream", "http://127.0.0.1:1", "--gpus", "77"], 'there is no GPU "77" here'),
                (["--upstream", "http://127.0.0.1:1", "--annotate", "some"], "--annotate"),
                (["--upstream", "http://127.0.0.1:1", "--listen", "nowhere"], "nowhere"),
                (["--upstream", "https://127.0.0.1:1", "--ca-file", "/dev/null"], "no certificates"),
                (["--upstream", "http://127.0.0.1:1", "--log", "/"], "/")]:
            with self.subTest(arguments=arguments):
                done = subprocess.run([ZEUS, "llm", "gateway", *arguments], env=self.environment,
                                      capture_output=True, text=True, timeout=60)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr.rstrip().count("\n"), done.stderr.count("warning: "), done.stderr)


class TlsTest(GatewayTestCase):
    def certificate(self, name):
        """Paths of a certificate for 127.0.0.1, signed by itself, and of its key."""
        certificate, key = (os.path.join(self.directory.name, f"{name}.{kind}") for kind in ("pem", "key"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2",
                        "-keyout", key, "-out", certificate], check=True, capture_output=True)
        return certificate, key

    def test_upstreams_with_tls_are_reached_and_strangers_are_not(self):
        async def answer(request, _reader, writer):
            keys.append(request.headers["authorization"])
            body = b"".join(token("x" * 1000).encode() for _ in range(500))
            writer.write(chunked_head() + chunk(body) + b"0\r\n\r\n")

        keys = []
        certificate, key = self.certificate("upstream")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        upstream = self.upstream(answer, tls=context)
        gateway = self.gateway("--upstream", upstream.url, "--ca-file", certificate, "--annotate", "none")
        for _ in range(3):
            status, _, body = gateway.chat(stream=True, headers={"Authorization": "Bearer mine"})
            self.assertEqual((status, body), (200, token("x" * 1000).encode() * 500))
        self.assertEqual(keys, ["Bearer mine"] * 3)
        stranger, _ = self.certificate("stranger")
        status, _, body = self.gateway("--upstream", upstream.url, "--ca-file", stranger).chat()
        self.assertEqual(status, 502)
        self.assertIn("is not trusted", json.loads(body)["error"]["message"])

    def test_clients_are_served_with_tls(self):
        async def answer(_request, _reader, writer):
            writer.write(response("x" * 300_000, "text/plain"))

        certificate, key = self.certificate("gateway")
        process = subprocess.Popen(
            [ZEUS, "llm", "gateway", "--upstream", self.upstream(answer).url, "--listen", "127.0.0.1:0", "--tls-cert",
             certificate, "--tls-key", key], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        line = process.stdout.readline().decode()
        self.assertTrue(line.startswith("listening on https://127.0.0.1:"), line)
        context = ssl.create_default_context(cafile=certificate)
        connection = http.client.HTTPSConnection("127.0.0.1", int(line.rsplit(":", 1)[1]), context=context, timeout=60)
        for _ in range(3):
            connection.request("GET", "/anything")
            self.assertEqual(connection.getresponse().read(), b"x" * 300_000)
        connection.close()


class EndTest(GatewayTestCase):
    def slow_gateway(self, *arguments):
        release = asyncio.Event()

        async def answer(_request, _reader, writer):
            writer.write(chunked_head() + chunk(token("a")))
            await writer.drain()
            await release.wait()
            writer.write(chunk("data: [DONE]\n\n") + b"0\r\n\r\n")

        upstream = self.upstream(answer)
        gateway = self.gateway("--upstream", upstream.url, *arguments)
        connection = gateway.connect()
        connection.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "stream": True, "messages": []}),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.readline()
        self.addCleanup(connection.close)
        return gateway, answer, lambda: upstream.loop.call_soon_threadsafe(release.set)

    def refuses(self, gateway):
        try:
            socket.create_connection(("127.0.0.1", gateway.port), timeout=60).close()
            return False
        except (ConnectionRefusedError, ConnectionResetError):  # Reset: it closes while somebody connects.
            return True

    def test_sigterm_lets_streams_finish(self):
        gateway, answer, release = self.slow_gateway()
        gateway.process.terminate()
        wait_until(lambda: self.refuses(gateway), "the gateway still listens")
        self.assertIsNone(gateway.process.poll())
        release()
        self.assertIn(b"[DONE]", answer.read())
        self.assertEqual(gateway.process.wait(timeout=60), 0)

    def test_the_limit_of_the_drain_cuts_streams_off(self):
        gateway, answer, _ = self.slow_gateway("--shutdown-timeout", "0.2")
        code, errors = gateway.stop()
        self.assertEqual(code, 0)
        self.assertIn("--shutdown-timeout", errors)
        with self.assertRaises(http.client.IncompleteRead):
            answer.read()


class TextTest(GatewayTestCase):
    def log_of(self, *arguments):
        async def answer(_request, _reader, writer):
            writer.write(response(json.dumps({"choices": [{"message": {"content": "SECRET-ANSWER"}}],
                                              "usage": {"prompt_tokens": 3, "completion_tokens": 2}})))

        path = os.path.join(self.directory.name, "log.jsonl")
        gateway = self.gateway("--upstream", self.upstream(answer).url, "--log", path, *arguments)
        gateway.ask("POST", "/v1/chat/completions",
                    {"model": "m", "messages": [{"role": "user", "content": "SECRET-PROMPT"}]},
                    {"Authorization": "Bearer SECRET-KEY", "x-team": "blue", "x-request-id": "mine"})
        everything = gateway.ask("GET", "/zeus/requests")[2].decode() + gateway.ask("GET", "/zeus/metrics")[2].decode()
        _, errors = gateway.stop()
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(len(lines), 1)
        return json.loads(lines[0]), everything + errors + lines[0]

    def test_neither_text_nor_keys_are_kept(self):
        record, everything = self.log_of()
        for secret in ("SECRET-ANSWER", "SECRET-PROMPT", "SECRET-KEY"):
            self.assertNotIn(secret, everything)
        self.assertRegex(record["key"], "^key-[0-9a-f]{12}$")
        self.assertEqual((record["client_request"], record["prompt_tokens"], record["output_tokens"]), ("mine", 3, 2))
        self.assertIsNone(record["energy_joules"])
        self.assertIn("no GPU", record["absent_reason"])

    def test_text_is_kept_when_asked_for(self):
        record, _ = self.log_of("--store-text", "--key-header", "X-Team")
        self.assertIn("SECRET-ANSWER", record["response_body"])
        self.assertIn("SECRET-PROMPT", record["request_body"])
        self.assertEqual(record["key"], "blue")


if __name__ == "__main__":
    unittest.main()
