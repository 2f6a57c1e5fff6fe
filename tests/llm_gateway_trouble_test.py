#!/usr/bin/env python3
"""Strange upstreams, clients and GPUs in front of and behind `zeus llm gateway`: requests pass, energy that is not known is
absent with its reason, every joule keeps its account, and no descriptor is left open."""

import asyncio
import gzip
import http.client
import json
import random
import re
import socket
import threading
import unittest

from llm_gateway_energy_test import metric
from llm_gateway_testing import GatewayTestCase, SimulatedServer, chunk, chunked_head, response, token, wait_until

GARBAGE_ANSWERS = 300
VANISHING_CLIENTS = 120


def usage_body(tokens=2, **more):
    return json.dumps({"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}}],
                       "usage": {"prompt_tokens": 3, "completion_tokens": tokens, "total_tokens": 3 + tokens}, **more})


def talk(port, data, until_close=True):
    """Returns what comes back for these bytes, until the other side closes or, else, for the first head."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(data)
        got = b""
        while part := client.recv(65536):
            got += part
            if not until_close and b"\r\n\r\n" in got:
                break
        return got


def post(body, *fields, path="/v1/chat/completions", version="1.1"):
    """The bytes of a request, after which the connection is closed."""
    data = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}], **body}).encode()
    lines = [f"POST {path} HTTP/{version}", "Host: g", "Content-Type: application/json", "Connection: close",
             f"Content-Length: {len(data)}", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class UpstreamTest(GatewayTestCase):
    """Upstreams with bad habits, without GPUs."""

    def scripted(self, answer, *arguments):
        upstream = self.upstream(answer)
        return upstream, self.gateway("--upstream", upstream.url, *arguments)

    def test_a_host_that_no_name_server_knows_is_502(self):
        gateway = self.gateway("--upstream", "http://no-such-host.invalid:8000")
        status, headers, body = gateway.chat()
        self.assertEqual(status, 502)
        self.assertIn("http://no-such-host.invalid:8000 cannot be reached", json.loads(body)["error"]["message"])
        record = self.record(gateway, headers["x-zeus-request"])
        self.assertEqual((record["outcome"], record["energy_joules"]), ("failed", None))

    def test_http_1_0_with_and_without_a_length(self):
        async def answer(request, _reader, writer):
            body = usage_body().encode()
            length = f"Content-Length: {len(body)}\r\n" if request.json["case"] == "length" else ""
            writer.write(f"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n{length}\r\n".encode() + body)
            return False

        _, gateway = self.scripted(answer)
        for case in ("length", "close"):
            status, headers, body = gateway.chat(case=case)
            self.assertEqual((status, headers["Content-Length"]), (200, str(len(body))))
            self.assertIn("energy", json.loads(body)["usage"])
        # A client of HTTP/1.0 gets no chunks.
        got = talk(gateway.port, post({"case": "close", "stream": True}, version="1.0"))
        self.assertNotIn(b"chunked", got.lower())
        self.assertIn(b"fine", got)

    def test_strange_bodies_pass_while_energy_is_added(self):
        """The energy changes responses that are understood; everything else passes byte for byte."""
        bodies = {"no-json": ("text/event-stream", b"data: {oops\n\ndata: \xff\xfe\n\n: hm\n\n"),
                  "wrong-type": ("text/html", b"<html>" + token("a").encode()),
                  "no-type": ("", b"\x00\x01\x02"),
                  "array": ("application/json", b"[1, 2"),
                  "number": ("application/json", b"17"),
                  "empty": ("application/json", b"")}

        async def answer(request, _reader, writer):
            content_type, body = bodies[request.json["case"]]
            writer.write(response(body, content_type))

        _, gateway = self.scripted(answer)
        for case, (_, body) in bodies.items():
            for stream in (True, False):
                with self.subTest(case=case, stream=stream):
                    status, headers, got = gateway.chat(case=case, stream=stream)
                    self.assertEqual(status, 200)
                    comments = b"".join(line + b"\n\n" for line in got.split(b"\n") if line.startswith(b": energy"))
                    self.assertEqual(got.replace(comments, b"") if comments else got, body)
                    self.assertEqual(self.record(gateway, headers["x-zeus-request"])["outcome"], "completed")

    def test_huge_events_and_invalid_utf_8_keep_their_bytes(self):
        events = [token("x" * 1_000_000).encode(), token("y").encode().replace(b"y", b"\xff\xfe\xc3"),
                  token("z" * 6_000_000).encode()]

        async def answer(_request, _reader, writer):
            writer.write(chunked_head())
            for one in events:
                writer.write(chunk(one))
            writer.write(chunk("data: [DONE]\n\n") + b"0\r\n\r\n")

        _, gateway = self.scripted(answer)
        _, headers, body = gateway.chat(stream=True)
        before, _, after = body.partition(b": energy ")
        self.assertEqual(before, b"".join(events))
        self.assertTrue(after.endswith(b"\n\ndata: [DONE]\n\n"), after[-100:])
        record = self.record(gateway, headers["x-zeus-request"])
        self.assertEqual((record["output_tokens"], record["tokens"]), (3, "estimated"))

    def test_compressed_streams_pass_though_nobody_asked_for_them(self):
        packed = gzip.compress((token("a") * 50 + "data: [DONE]\n\n").encode())

        async def answer(_request, _reader, writer):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n")
            for i in range(0, len(packed), 10):
                writer.write(chunk(packed[i:i + 10]))
            writer.write(b"0\r\n\r\n")

        _, gateway = self.scripted(answer)
        status, headers, body = gateway.chat(stream=True, headers={"Accept-Encoding": "gzip"})
        self.assertEqual((status, headers["Content-Encoding"], body), (200, "gzip", packed))

    def test_early_hints_pass_and_clients_of_http_1_0_are_spared(self):
        async def answer(_request, _reader, writer):
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n")
            await writer.drain()
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" + response(usage_body()))

        _, gateway = self.scripted(answer)
        got = talk(gateway.port, post({}))
        self.assertTrue(got.startswith(b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\n"),
                        got[:200])
        self.assertNotIn(b"100 Continue", got)
        got = talk(gateway.port, post({}, version="1.0"))
        self.assertTrue(got.startswith(b"HTTP/1.1 200 OK\r\n"), got[:200])

    def test_a_client_that_awaits_100_continue_gets_it(self):
        async def answer(_request, _reader, writer):
            writer.write(response(usage_body()))

        upstream, gateway = self.scripted(answer)
        head, _, body = post({}, "Expect: 100-continue").partition(b"\r\n\r\n")
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as client:
            client.sendall(head + b"\r\n\r\n")
            self.assertEqual(client.recv(65536), b"HTTP/1.1 100 Continue\r\n\r\n")
            client.sendall(body)
            self.assertTrue(client.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n"))
        self.assertNotIn("expect", upstream.requests[-1].headers)

    def test_an_offer_of_http_2_is_answered_in_http_1(self):
        """curl --http2 offers h2c in each request; a server may go on in HTTP/1.1 (RFC 9110, 7.8)."""
        async def answer(_request, _reader, writer):
            writer.write(response(usage_body()))

        upstream, gateway = self.scripted(answer)
        got = talk(gateway.port, post({}, "Connection: Upgrade, HTTP2-Settings, close", "Upgrade: h2c",
                                      "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"))
        self.assertTrue(got.startswith(b"HTTP/1.1 200 OK\r\n"), got[:200])
        for name in ("upgrade", "http2-settings"):
            self.assertNotIn(name, upstream.requests[-1].headers)

    def test_an_upstream_that_switches_protocols_unasked_is_502(self):
        async def answer(_request, _reader, writer):
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
            return False

        _, gateway = self.scripted(answer)
        status, _, body = gateway.chat()
        self.assertEqual(status, 502)
        self.assertIn("changed the protocol without being asked", json.loads(body)["error"]["message"])

    def test_a_request_is_sent_again_once_and_not_twice(self):
        async def answer(request, _reader, writer):
            if request.json.get("case") == "die":
                return False
            writer.write(response(usage_body()))

        upstream, gateway = self.scripted(answer)
        self.assertEqual(gateway.chat()[0], 200)  # Leaves a connection to reuse.
        asked = len(upstream.requests)
        status, _, body = gateway.chat(case="die")
        self.assertEqual(status, 502)
        self.assertIn("closed the connection without an answer", json.loads(body)["error"]["message"])
        self.assertLessEqual(len(upstream.requests) - asked, 2)
        # With nothing to reuse it is sent once. The gateway's own questions may leave a connection at any moment.
        sent = []
        while len(sent) < 20 and 1 not in sent:
            asked = len(upstream.requests)
            self.assertEqual(gateway.chat(case="die")[0], 502)
            sent.append(len(upstream.requests) - asked)
        self.assertEqual(sent[-1], 1)
        self.assertLessEqual(max(sent), 2)

    def test_an_answer_with_two_framings_is_chunked_and_has_one(self):
        """RFC 9112, 6.3: the transfer coding overrides the length, and a proxy removes the length."""
        async def answer(_request, _reader, writer):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n" + chunk("a long text") + b"0\r\n\r\n")

        _, gateway = self.scripted(answer)
        status, headers, body = gateway.ask("GET", "/text")
        self.assertEqual((status, headers["Content-Length"], body), (200, None, b"a long text"))

    def test_requests_that_two_servers_would_cut_differently_are_refused(self):
        async def answer(_request, _reader, writer):
            writer.write(response(usage_body()))

        upstream, gateway = self.scripted(answer)
        hidden = b"GET /hidden HTTP/1.1\r\nHost: g\r\n\r\n"
        for fields in (b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
                       b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
                       b"Content-Length: 4\r\nContent-Length: 50\r\n", b"Content-Length: 4, 50\r\n",
                       b"Content-Length: +4\r\n", b"Content-Length: 0x4\r\n", b"Content-Length:\r\n",
                       b"Content-Length: 18446744073709551620\r\n", b"Content-Length : 4\r\n",
                       b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: xchunked\r\n",
                       b"Transfer-Encoding: chunked, identity\r\n", b"Transfer-Encoding:\x0bchunked\r\n",
                       b"X: a\r\n Transfer-Encoding: chunked\r\n", b"X: a\rTransfer-Encoding: chunked\r\n",
                       b"X: \x00\r\n"):
            with self.subTest(fields=fields):
                got = talk(gateway.port, b"POST /v1/other HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\n" +
                           fields + b"\r\n0\r\n\r\n" + hidden)
                self.assertRegex(got.split(b"\r\n")[0], rb"^HTTP/1\.1 (400|413|501) ")
                self.assertEqual(got.count(b"HTTP/1.1 "), 1, got)
        for size in (b"-1", b"0x5", b"5_0", b"+5", b"", b"fffffffffffffffff", b"5 5"):
            with self.subTest(size=size):
                got = talk(gateway.port, b"POST /v1/other HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\n"
                           b"Transfer-Encoding: chunked\r\n\r\n" + size + b"\r\nabcde\r\n0\r\n\r\n" + hidden)
                self.assertTrue(got.startswith(b"HTTP/1.1 400 "), got[:100])
        self.assertNotIn("/hidden", [request.target for request in upstream.requests])

    def test_random_garbage_breaks_nothing(self):
        """Answers of random bytes, whole heads with random bodies, and valid ones with a damaged byte."""
        def garbage(seed):
            rng = random.Random(seed)
            kind = rng.randrange(4)
            if kind == 0:
                return rng.randbytes(rng.randrange(0, 300))
            body = (token("a") * 3).encode()
            whole = chunked_head() + chunk(body) + b"0\r\n\r\n" if kind == 1 else response(usage_body())
            if kind == 3:
                return whole[:rng.randrange(len(whole))]
            at = rng.randrange(len(whole))
            return whole[:at] + rng.randbytes(rng.randrange(1, 4)) + whole[at + 1:]

        async def answer(request, _reader, writer):
            data = garbage(request.json["seed"])
            while data:
                size = random.Random(len(data)).choice([1, 9, 1000])
                writer.write(data[:size])
                data = data[size:]
            await writer.drain()
            return False

        _, gateway = self.scripted(answer)
        gateway.ask("GET", "/zeus/healthz")
        files = gateway.open_files()
        outcomes = set()

        async def ask(seeds):
            for seed in seeds:
                reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
                writer.write(post({"seed": seed, "stream": seed % 2 == 0}))
                got = await reader.read()
                writer.close()
                outcomes.add(got.split(b" ")[1] if got.startswith(b"HTTP/1.1 ") else got[:20])

        async def all_of_them():
            await asyncio.gather(*[ask(range(i, GARBAGE_ANSWERS, 8)) for i in range(8)])
        asyncio.run(all_of_them())
        self.assertIn(b"502", outcomes)
        self.assertIn(b"200", outcomes)
        wait_until(lambda: gateway.get("/zeus/healthz")["in_flight"] == 0, "requests stay in flight")
        wait_until(lambda: gateway.open_files() <= files + 2, "connections are left open")
        records = gateway.get("/zeus/requests?limit=1000")["requests"]
        self.assertEqual(len(records), GARBAGE_ANSWERS)
        self.assertEqual({record["outcome"] for record in records}, {"completed", "failed"})


class AccountsTest(GatewayTestCase):
    """The simulated server on a simulated H100: the energy of requests that end in trouble."""

    def setUp(self):
        super().setUp()
        self.simulation = self.simulated()

    def start(self, *arguments, listen="127.0.0.1:0"):
        server = SimulatedServer(self.simulation, *arguments, listen=listen)
        self.addCleanup(server.kill)
        return server

    def metered(self, url, *arguments):
        return self.gateway("--upstream", url, "--gpus", "0", *arguments, environment=self.simulation)

    def ask(self, gateway, **fields):
        return gateway.chat(model="llama-3.1-8b", ignore_eos=True, **fields)

    def begin(self, gateway, tokens, model="llama-3.1-8b"):
        """A stream whose first event has come: the connection, the response and its identifier."""
        connection = gateway.connect()
        connection.request("POST", "/v1/chat/completions",
                           json.dumps({"model": model, "stream": True, "max_tokens": tokens, "ignore_eos": True,
                                       "messages": [{"role": "user", "content": "hello"}]}),
                           {"Content-Type": "application/json"})
        self.addCleanup(connection.close)
        answer = connection.getresponse()
        answer.readline()
        return connection, answer, answer.headers["x-zeus-request"]

    def final(self, gateway, identifier):
        return self.record(gateway, identifier, lambda record: record["final"] is True)

    def check_accounts(self, gateway):
        """Every joule that the sensors showed has one account. The sensor's counter is ahead of the accounts by the
        updates that are not divided yet."""
        found = {}

        def add_up():
            text = gateway.ask("GET", "/zeus/metrics")[2].decode()
            found["accounts"] = {name: metric(text, "zeus_llm_energy_joules_total", account=name)
                                 for name in ("prefill", "decode", "idle", "other")}
            found["gpu"] = metric(text, "zeus_gpu_energy_joules_total")
            return abs(found["gpu"] - sum(found["accounts"].values())) < 0.01 * found["gpu"] + 60
        try:
            wait_until(add_up, "the accounts do not add up")
        except AssertionError as error:
            raise AssertionError(f"{error}: {found}") from None

    def test_no_usage_is_estimated_and_says_so(self):
        gateway = self.metered(self.start("--no-usage").url)
        _, headers, body = self.ask(gateway, stream=True, max_tokens=60, stream_options={"include_usage": True})
        self.assertNotIn(b'"usage":{', body)
        self.assertIn(b": energy {", body)
        record = self.final(gateway, headers["x-zeus-request"])
        self.assertEqual((record["tokens"], record["output_tokens"]), ("estimated", 60))
        self.assertGreater(record["energy_joules"], 0)
        _, headers, body = self.ask(gateway, max_tokens=60)
        answer = json.loads(body)
        self.assertNotIn("usage", answer)
        self.assertGreater(answer["energy"]["energy_joules"], 0)
        record = self.final(gateway, headers["x-zeus-request"])
        self.assertEqual(record["tokens"], "estimated")
        self.assertAlmostEqual(record["output_tokens"], 60, delta=40)

    def test_several_sequences_are_one_request(self):
        server = self.start()
        gateway = self.metered(server.url)
        for stream in (False, True):
            _, headers, body = self.ask(gateway, n=3, max_tokens=80, stream=stream)
            identifier = headers["x-zeus-request"]
            record = self.final(gateway, identifier)
            self.assertEqual((record["outcome"], record["output_tokens"]), ("completed", 240))
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.request("GET", "/zeus/truth/" + identifier)
            truth = json.loads(connection.getresponse().read())
            connection.close()
            self.assertAlmostEqual(record["energy_joules"], truth["energy_joules"], delta=0.5 * truth["energy_joules"])
            if stream:
                self.assertEqual(body.count(b"data: [DONE]"), 1)

    def test_compressed_answers_have_no_energy_and_say_why(self):
        packed = gzip.compress(usage_body().encode())
        bodies = {"compressed": ("application/json", packed, ["Content-Encoding: gzip"], "compressed (gzip)"),
                  "page": ("text/html", b"<html>", [], "neither JSON nor a stream of events")}

        async def answer(request, _reader, writer):
            content_type, body, fields, _ = bodies[request.json["case"]]
            writer.write(response(body, content_type, headers=fields))

        gateway = self.metered(self.upstream(answer).url)
        for case, (_, body, _, reason) in bodies.items():
            with self.subTest(case=case):
                status, headers, got = gateway.chat(case=case)
                self.assertEqual((status, got), (200, body))
                self.assertNotIn("x-zeus-energy-joules", headers)
                record = self.final(gateway, headers["x-zeus-request"])
                self.assertEqual((record["outcome"], record["energy_joules"]), ("completed", None))
                self.assertIn(reason, record["absent_reason"])
        self.check_accounts(gateway)

    def test_a_gpu_that_is_lost_mid_request_costs_its_energy_only(self):
        released = asyncio.Event()

        async def answer(_request, _reader, writer):
            writer.write(chunked_head() + chunk(token("a")))
            await writer.drain()
            await released.wait()
            writer.write(chunk(token("b")) + chunk("data: [DONE]\n\n") + b"0\r\n\r\n")

        upstream = self.upstream(answer)
        gateway = self.metered(upstream.url)
        _, answer, identifier = self.begin(gateway, 2, model="m")
        self.sim("fault", "--name", "llm", "--gpu", "0", "--kind", "lost")
        wait_until(lambda: gateway.get("/zeus/healthz")["energy_problems"], "the loss goes unnoticed")
        self.assertEqual(gateway.get(f"/zeus/requests/{identifier}")["outcome"], "in flight")
        upstream.loop.call_soon_threadsafe(released.set)
        body = answer.read().decode()
        self.assertTrue(body.endswith("data: [DONE]\n\n"), body)
        note = json.loads(body.rsplit(": energy ", 1)[1].split("\n")[0])
        self.assertIsNone(note["energy_joules"])
        self.assertIn("gpu:0 cannot be read", note["absent_reason"])
        # It comes back, and so does the energy.
        self.sim("fault", "--name", "llm", "--gpu", "0", "--kind", "clear")
        wait_until(lambda: not gateway.get("/zeus/healthz")["energy_problems"], "the GPU stays lost")
        _, headers, _ = gateway.chat(stream=True)
        self.assertIsInstance(self.final(gateway, headers["x-zeus-request"])["energy_joules"], float)

    def test_an_upstream_that_is_killed_mid_stream_and_comes_back(self):
        server = self.start()
        gateway = self.metered(server.url)
        self.ask(gateway, max_tokens=10)
        streams = [self.begin(gateway, 40_000) for _ in range(8)]
        server.process.kill()
        server.process.wait()  # Only then nobody listens on its port any more.
        for _, answer, _ in streams:
            with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
                answer.read()
        for _, _, identifier in streams:
            record = self.record(gateway, identifier)
            self.assertEqual(record["outcome"], "failed")
            self.assertIn("ended its answer too early", record["reason"])
        status, _, body = self.ask(gateway, max_tokens=10)
        self.assertEqual(status, 502)
        self.assertIn("cannot be reached: connection refused", json.loads(body)["error"]["message"])
        self.start(listen=f"127.0.0.1:{server.port}")
        status, headers, _ = self.ask(gateway, max_tokens=100)
        self.assertEqual(status, 200)
        self.assertGreater(self.final(gateway, headers["x-zeus-request"])["energy_joules"], 0)
        for _, _, identifier in streams:
            self.final(gateway, identifier)
        self.check_accounts(gateway)
        self.assertEqual(gateway.get("/zeus/healthz")["in_flight"], 0)

    def test_clients_that_vanish_at_any_moment_leave_nothing_behind(self):
        server = self.start()
        gateway = self.metered(server.url)
        self.ask(gateway, max_tokens=10)
        files = gateway.open_files()
        rng = random.Random(7)

        async def vanish():
            reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
            data = post({"model": "llama-3.1-8b", "stream": rng.random() < 0.7, "max_tokens": 2000})
            moment = rng.randrange(3)
            if moment == 0:  # In the midst of the request.
                writer.write(data[:rng.randrange(1, len(data))])
                await writer.drain()
            else:
                writer.write(data)
                await writer.drain()
            if moment == 2:  # In the midst of the response, if it is streamed.
                try:
                    await asyncio.wait_for(reader.read(rng.randrange(1, 5000)), 0.5)
                except asyncio.TimeoutError:
                    pass
            if rng.random() < 0.5:
                writer.transport.abort()  # A reset.
            else:
                writer.close()

        async def all_of_them():
            for _ in range(0, VANISHING_CLIENTS, 12):
                await asyncio.gather(*[vanish() for _ in range(12)])
        asyncio.run(all_of_them())
        wait_until(lambda: gateway.get("/zeus/healthz")["in_flight"] == 0, "requests stay in flight")
        wait_until(lambda: gateway.open_files() <= files + 2, "connections are left open")

        def engine_rests():
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
            connection.close()
            gauges = re.findall(r"^vllm:num_requests_(?:running|waiting)\{.*\} (\S+)$", text, re.MULTILINE)
            self.assertEqual(len(gauges), 2, text)
            return [float(gauge) for gauge in gauges] == [0, 0]
        wait_until(engine_rests, "the server still works for clients that left")
        _, headers, _ = self.ask(gateway, max_tokens=100)
        self.assertGreater(self.final(gateway, headers["x-zeus-request"])["energy_joules"], 0)
        records = gateway.get("/zeus/requests?limit=1000")["requests"]
        self.assertIn("cancelled", {record["outcome"] for record in records})
        self.check_accounts(gateway)

    def test_slow_readers_do_not_hold_others_back(self):
        gateway = self.metered(self.start().url)
        slow = []
        for _ in range(10):  # They ask for much and read nothing.
            client = socket.create_connection(("127.0.0.1", gateway.port), timeout=60)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(post({"model": "llama-3.1-8b", "stream": True, "max_tokens": 40_000, "ignore_eos": True}))
            self.addCleanup(client.close)
            slow.append(client)
        wait_until(lambda: gateway.get("/zeus/healthz")["in_flight"] >= 10, "the slow ones have not begun")
        results = []

        def quick():
            results.append(self.ask(gateway, max_tokens=40, stream=True)[2].endswith(b"data: [DONE]\n\n"))
        threads = [threading.Thread(target=quick) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [True] * 4)
        for client in slow:
            client.close()
        wait_until(lambda: gateway.get("/zeus/healthz")["in_flight"] == 0, "requests stay in flight")
        self.check_accounts(gateway)

    def test_the_gpus_of_the_simulated_server_are_found_by_its_process(self):
        self.sim("start", "--name", "many", "--gpus", "4xH100")
        self.addCleanup(self.sim, "stop", "--name", "many")
        environment = self.evaluated_environment("--name", "many")
        one = SimulatedServer(environment, "--gpu", "2")
        self.addCleanup(one.kill)
        two = SimulatedServer(environment, "--gpu", "1,3", "--served-name", "wide", model="llama-3.1-70b")
        self.addCleanup(two.kill)
        gateway = self.gateway("--upstream", one.url, "--gpus", "auto", "--upstream", two.url, "--gpus", "auto",
                               environment=environment)
        wait_until(lambda: len(gateway.get("/v1/models")["data"]) == 2, "the models are not listed")
        for model, gpus in (("llama-3.1-8b", ["gpu:2"]), ("wide", ["gpu:1", "gpu:3"])):
            _, _, body = gateway.chat(model=model, max_tokens=20, ignore_eos=True)
            energy = json.loads(body)["usage"]["energy"]
            self.assertEqual(energy["gpus"], gpus)
            self.assertGreater(energy["energy_joules"], 0)


if __name__ == "__main__":
    unittest.main()
