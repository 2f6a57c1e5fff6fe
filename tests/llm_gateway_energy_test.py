#!/usr/bin/env python3
"""zeus llm gateway with GPUs: the energy in responses, records and metrics, and what becomes of it when a GPU is
lost. The server is `zeus llm sim`, or a script that leaves the simulated GPU idle."""

import http.client
import json
import os
import re
import signal
import threading
import time
import unittest

from llm_gateway_testing import GatewayTestCase, SimulatedServer, chunk, chunked_head, response, wait_until


def metric(text, name, **labels):
    """The sum of a metric's values with these labels."""
    total, found = 0.0, False
    for line in text.splitlines():
        match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if not match or match[1] != name:
            continue
        own = dict(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
        if all(own.get(key) == value for key, value in labels.items()):
            total, found = total + float(match[3]), True
    if not found:
        raise AssertionError(f"there is no {name} {labels}")
    return total


class EnergyTest(GatewayTestCase):
    """Real energy of a simulated GPU on which the simulated server works."""

    def setUp(self):
        super().setUp()
        self.simulation = self.simulated()
        self.server = SimulatedServer(self.simulation)
        self.addCleanup(self.server.kill)

    def metered(self, *arguments):
        return self.gateway("--upstream", self.server.url, "--gpus", "0", *arguments, environment=self.simulation)

    def final(self, gateway, headers):
        return self.record(gateway, headers["x-zeus-request"], lambda record: record["final"] is True)

    def test_energy_is_in_every_place(self):
        gateway = self.metered("--carbon", "350g/kWh")
        status, headers, body = gateway.chat(model="llama-3.1-8b", max_tokens=50, ignore_eos=True)
        self.assertEqual(status, 200, body)
        usage = json.loads(body)["usage"]
        self.assertGreater(usage["energy"]["energy_joules"], 0)
        self.assertEqual(float(headers["x-zeus-energy-joules"]), usage["energy"]["energy_joules"])
        self.assertGreater(float(headers["x-zeus-carbon-grams"]), 0)
        self.assertEqual(usage["energy"]["request"], headers["x-zeus-request"])
        # A stream whose client did not ask for usage gets none, and the energy as a comment.
        _, headers, body = gateway.chat(model="llama-3.1-8b", max_tokens=50, ignore_eos=True, stream=True)
        text = body.decode()
        self.assertNotIn('"usage":{', text)
        self.assertRegex(text, r"\n: energy \{.*\}\n\n?data: \[DONE\]\n\n$")
        record = self.final(gateway, headers)
        self.assertEqual((record["outcome"], record["output_tokens"]), ("completed", 50))
        self.assertGreater(record["energy_joules"], 0)
        self.assertGreater(record["sigma_joules"], 0)
        self.assertAlmostEqual(record["prefill_joules"] + record["decode_joules"], record["energy_joules"], delta=1e-6)
        # With usage asked for, it is in the event that has it.
        _, _, body = gateway.chat(model="llama-3.1-8b", max_tokens=20, ignore_eos=True, stream=True,
                                  stream_options={"include_usage": True})
        last = [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: {")][-1]
        self.assertGreater(last["usage"]["energy"]["energy_joules"], 0)
        # Nothing of it without annotation.
        gateway = self.metered("--annotate", "none")
        _, headers, body = gateway.chat(model="llama-3.1-8b", max_tokens=20, ignore_eos=True)
        self.assertNotIn(b"energy", body)
        self.assertIn("x-zeus-request", headers)

    def test_trailers_carry_the_energy_to_clients_that_want_them(self):
        gateway = self.metered()
        connection = gateway.connect()
        body = json.dumps({"model": "llama-3.1-8b", "messages": [{"role": "user", "content": "hi"}], "stream": True,
                           "max_tokens": 10})
        connection.request("POST", "/v1/chat/completions", body,
                           {"Content-Type": "application/json", "TE": "trailers", "Connection": "TE, close"})
        data = b""
        while part := connection.sock.recv(65536):
            data += part
        connection.close()
        self.assertIn(b"\r\nTrailer: x-zeus-energy-joules", data)
        self.assertRegex(data, rb"\r\n0\r\nx-zeus-energy-joules: [0-9.e+-]+\r\n")

    def accounts(self, gateway):
        """The accounts of the group by name, and what the GPU's own counter shows."""
        text = gateway.ask("GET", "/zeus/metrics")[2].decode()
        accounts = {name: metric(text, "zeus_llm_energy_joules_total", account=name)
                    for name in ("prefill", "decode", "idle", "other")}
        return accounts, metric(text, "zeus_gpu_energy_joules_total"), text

    def assert_requests_are_the_accounts(self, gateway, records):
        """When everything is final, the requests' energies are the accounts of both phases together. Counts at the end
        of a response may divide it otherwise than the accounts were told before."""
        accounts, _, _ = self.accounts(gateway)
        charged = sum(record["energy_joules"] for record in records)
        self.assertAlmostEqual(accounts["prefill"] + accounts["decode"], charged, delta=1e-6 * (charged + 1))
        decode = sum(record["decode_joules"] for record in records)
        self.assertAlmostEqual(accounts["decode"], decode, delta=0.1 * charged)

    def test_every_joule_has_one_account(self):
        gateway = self.metered()
        gateway.chat(model="llama-3.1-8b", max_tokens=10)
        before, gpu_before, _ = self.accounts(gateway)
        ends = []

        def client(number):
            for i in range(3):
                _, headers, _ = gateway.chat(model="llama-3.1-8b", stream=i != 1, max_tokens=40 + 10 * number,
                                             ignore_eos=True)
                ends.append(headers)
        threads = [threading.Thread(target=client, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        records = [self.final(gateway, headers) for headers in ends]
        listed = gateway.get("/zeus/requests")["requests"]
        self.assertEqual(len(listed), 13)
        self.assert_requests_are_the_accounts(gateway, listed)
        self.assertLessEqual({record["request"] for record in records}, {record["request"] for record in listed})
        # The GPU's own counter is ahead of the accounts by what the sensors have not yet shown, some updates at most.
        accounts, gpu, text = self.accounts(gateway)
        grown = sum(accounts.values()) - sum(before.values())
        self.assertLess(abs(gpu - gpu_before - grown), 150)
        self.assertEqual(metric(text, "zeus_llm_requests_total", status="completed"), 13)
        model = gateway.get("/zeus/models")["models"][0]
        self.assertEqual((model["model"], model["requests"], model["gpus"]), ("llama-3.1-8b", 13, ["gpu:0"]))
        self.assertIn("fixed_joules", model["theta"])

    def test_accounts_add_up_after_clients_leave_and_the_server_dies(self):
        gateway = self.metered()

        def begin():
            connection = gateway.connect()
            body = json.dumps({"model": "llama-3.1-8b", "messages": [{"role": "user", "content": "hi " * 500}],
                               "stream": True, "max_tokens": 4000, "ignore_eos": True})
            connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.readline()
            return connection, answer

        _, headers, _ = gateway.chat(model="llama-3.1-8b", stream=True, max_tokens=60, ignore_eos=True)
        open_streams = [begin() for _ in range(4)]
        for connection, _ in open_streams[:2]:
            connection.sock.shutdown(2)
            connection.close()
        # The whole gateway, sensors included, stands still while the server works.
        gateway.process.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        gateway.process.send_signal(signal.SIGCONT)
        open_streams[2][1].readline()
        self.server.kill()
        for connection, answer in open_streams[2:]:
            try:
                answer.read()
            except (http.client.HTTPException, OSError):
                pass
            connection.close()
        self.final(gateway, headers)
        records = []

        def all_final():
            records[:] = gateway.get("/zeus/requests")["requests"]
            return len(records) == 5 and all(record["final"] for record in records)
        wait_until(all_final, "requests do not become final")
        self.assertEqual(sorted(record["outcome"] for record in records),
                         ["cancelled", "cancelled", "completed", "failed", "failed"])
        self.assertGreater(sum(record["energy_joules"] for record in records), 0)
        self.assert_requests_are_the_accounts(gateway, records)

    def test_a_stop_waits_for_the_sensors(self):
        log = os.path.join(self.directory.name, "requests.log")
        gateway = self.metered("--log", log)
        for _ in range(2):
            gateway.chat(model="llama-3.1-8b", stream=True, max_tokens=40, ignore_eos=True)
        code, errors = gateway.stop()
        self.assertEqual(code, 0, errors)
        with open(log, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual([line["final"] for line in lines], [True, True])

    def test_energy_is_near_the_servers_truth(self):
        gateway = self.metered()
        for _ in range(3):
            _, headers, _ = gateway.chat(model="llama-3.1-8b", stream=True, max_tokens=300, ignore_eos=True)
        record = self.final(gateway, headers)
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        connection.request("GET", "/zeus/truth/" + headers["x-zeus-request"])
        truth = json.loads(connection.getresponse().read())
        connection.close()
        self.assertAlmostEqual(record["energy_joules"], truth["energy_joules"], delta=0.3 * truth["energy_joules"])

    def test_live_figures_come_as_events(self):
        gateway = self.metered()
        connection = gateway.connect()
        connection.request("GET", "/zeus/live")
        answer = connection.getresponse()
        first = json.loads(answer.readline().removeprefix(b"data: "))
        answer.readline()
        json.loads(answer.readline().removeprefix(b"data: "))
        connection.close()
        self.assertEqual(set(first), {"power_watts", "running", "tokens_per_second", "joules_per_token", "groups"})
        self.assertEqual(first["groups"][0]["gpus"], ["gpu:0"])

    def test_a_lost_gpu_costs_the_energy_and_no_request(self):
        gateway = self.metered()
        gateway.chat(model="llama-3.1-8b", max_tokens=10)
        self.sim("fault", "--name", "llm", "--gpu", "0", "--kind", "lost")
        wait_until(lambda: gateway.get("/zeus/healthz")["energy_problems"], "the loss goes unnoticed")
        status, headers, body = gateway.chat(model="llama-3.1-8b", max_tokens=10)
        self.assertEqual(status, 200)
        self.assertIsNone(json.loads(body)["usage"]["energy"]["energy_joules"])
        record = self.record(gateway, headers["x-zeus-request"])
        self.assertIn("gpu:0 cannot be read", record["absent_reason"])


class IdleGpuTest(GatewayTestCase):
    """A scripted server beside an idle GPU: where the energy is put."""

    def test_ollama_gets_it_in_the_last_line(self):
        async def answer(request, _reader, writer):
            lines = [{"model": "m", "response": "a", "done": False}, {"model": "m", "done": True, "eval_count": 1}]
            writer.write(chunked_head("application/x-ndjson"))
            for line in lines:
                writer.write(chunk(json.dumps(line) + "\n"))
            writer.write(b"0\r\n\r\n")

        environment = self.simulated()
        gateway = self.gateway("--upstream", self.upstream(answer).url, "--gpus", "0", environment=environment)
        _, headers, body = gateway.ask("POST", "/api/generate", {"model": "m", "prompt": "p"})
        first, last = (json.loads(line) for line in body.splitlines())
        self.assertNotIn("energy", first)
        self.assertEqual(last["energy"]["request"], headers["x-zeus-request"])

    def test_gpus_are_found_by_the_process_that_listens(self):
        """The server is in this process, and its child computes on a GPU."""
        async def answer(_request, _reader, writer):
            writer.write(response(json.dumps({"choices": [], "usage": {"completion_tokens": 1, "prompt_tokens": 1}})))

        environment = self.simulated("3xH100")
        upstream = self.upstream(answer)
        self.start_load("--name", "llm", "--gpu", "1", "--watts", "300")
        wait_until(lambda: json.loads(self.sim("truth", "--name", "llm", "--json"))[1]["power_watts"] > 200,
                   "the load does not start")
        gateway = self.gateway("--upstream", upstream.url, environment=environment)
        _, _, body = gateway.chat()
        self.assertEqual(json.loads(body)["usage"]["energy"]["gpus"], ["gpu:1"])

    def test_upstreams_name_their_gpus(self):
        async def answer(_request, _reader, writer):
            writer.write(response(json.dumps({"choices": [], "usage": {"completion_tokens": 1, "prompt_tokens": 1}})))

        environment = self.simulated("2xA100")
        one, two = (self.upstream(answer, models=(name,)) for name in "ab")
        gateway = self.gateway("--upstream", one.url, "--gpus", "1", "--upstream", two.url, "--gpus", "0,1",
                               environment=environment)
        gateway.get("/v1/models")
        for model, gpus in (("a", ["gpu:1"]), ("b", ["gpu:0", "gpu:1"])):
            _, _, body = gateway.chat(model=model)
            self.assertEqual(json.loads(body)["usage"]["energy"]["gpus"], gpus)


if __name__ == "__main__":
    unittest.main()
