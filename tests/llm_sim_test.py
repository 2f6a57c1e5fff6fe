"""`zeus llm sim` and `zeus llm predict` as their users see them: over real sockets, on a simulated node."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

ZEUS = os.environ.get("ZEUS_BINARY", "build/release/bin/zeus")
TIME_SCALE = 20  # Node seconds per real second, so that answers come soon.


class LlmTestCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("ZEUS_SIM")}
        self.environment["ZEUS_SIM_DIR"] = directory.name
        self.zeus("sim", "start", "--gpus", "4xH100", "--seed", "1", "--time-scale", str(TIME_SCALE))

    def zeus(self, *arguments, code=0):
        run = subprocess.run([ZEUS, *arguments], env=self.environment, capture_output=True, text=True,
                             timeout=60, check=False)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stdout if code == 0 else run.stderr

    def serve(self, *arguments, model="llama-3.1-8b"):
        """A server on a free port; the process and its port."""
        process = subprocess.Popen(
            [ZEUS, "llm", "sim", "--model", model, "--listen", "127.0.0.1:0", *arguments],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        line = process.stdout.readline()
        self.assertRegex(line, r"127\.0\.0\.1:\d+")
        return process, int(line.strip().rsplit(":", 1)[1])

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def ask(self, port, path, body=None, name=None):
        """Status, headers and text of one answer."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        with contextlib.closing(connection):
            headers = {"X-Zeus-Request": name} if name else {}
            connection.request("GET" if body is None else "POST", path,
                               None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()

    def chat(self, port, tokens, name=None, **fields):
        return self.ask(port, "/v1/chat/completions", {
            "messages": [{"role": "user", "content": "one two three"}], "max_tokens": tokens,
            "ignore_eos": True} | fields, name)


class SimulatedServerTest(LlmTestCase):
    def test_a_chat_is_answered_whole_and_as_a_stream(self):
        _, port = self.serve()
        status, headers, text = self.chat(port, 12, name="r-1")
        self.assertEqual((status, headers["X-Zeus-Request"]), (200, "r-1"))
        self.assertEqual(json.loads(text)["usage"]["completion_tokens"], 12)
        status, headers, text = self.chat(port, 12, stream=True, stream_options={"include_usage": True})
        self.assertEqual(headers["Content-Type"], "text/event-stream; charset=utf-8")
        self.assertTrue(headers["X-Zeus-Request"])
        events = [event.removeprefix("data: ") for event in text.strip().split("\n\n")]
        self.assertEqual(events[-1], "[DONE]")
        self.assertEqual(json.loads(events[-2])["usage"]["completion_tokens"], 12)
        words = [choice["delta"].get("content", "") for event in events[:-2]
                 for choice in json.loads(event)["choices"]]
        self.assertEqual(len([word for word in words if word]), 12)

    def test_truth_adds_up_to_the_energy_of_the_gpu(self):
        _, port = self.serve("--truth")
        threads = [threading.Thread(target=self.chat, args=(port, 20 + 5 * i, f"r-{i}"),
                                    kwargs={"stream": bool(i % 2)}) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        truths = [json.loads(self.ask(port, f"/zeus/truth/r-{i}")[2]) for i in range(16)]
        for i, truth in enumerate(truths):
            self.assertEqual(truth["output_tokens"], 20 + 5 * i)
            self.assertAlmostEqual(truth["prefill_joules"] + truth["decode_joules"], truth["energy_joules"])
        accounts = json.loads(self.ask(port, "/zeus/truth")[2])
        served = accounts["prefill_joules"] + accounts["decode_joules"]
        self.assertAlmostEqual(sum(truth["energy_joules"] for truth in truths) / served, 1, places=9)
        self.assertEqual(accounts["unfinished_joules"], 0)

    def test_truth_is_hidden_without_the_option(self):
        _, port = self.serve()
        self.chat(port, 3, name="r-1")
        self.assertEqual(self.ask(port, "/zeus/truth/r-1")[0], 404)

    def test_a_client_that_leaves_cancels_its_request(self):
        _, port = self.serve("--truth")
        with socket.create_connection(("127.0.0.1", port)) as client:
            body = json.dumps({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100000,
                               "ignore_eos": True, "stream": True})
            client.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Zeus-Request: gone\r\n"
                           f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
            self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 200"))
        truth = None
        while truth is None:  # The server notices within milliseconds; ctest ends what hangs.
            status, _, text = self.ask(port, "/zeus/truth/gone")
            truth = json.loads(text) if status == 200 else None
        self.assertEqual(truth["outcome"], "cancelled")
        self.assertGreater(truth["energy_joules"], 0)
        metrics = self.ask(port, "/metrics")[2]
        self.assertIn('finished_reason="abort"} 1', metrics)

    def test_models_metrics_and_health(self):
        _, port = self.serve("--served-name", "my-model")
        self.assertEqual(json.loads(self.ask(port, "/v1/models")[2])["data"][0]["id"], "my-model")
        self.assertEqual(self.ask(port, "/healthz")[0], 200)
        self.chat(port, 5)
        metrics = self.ask(port, "/metrics")[2]
        for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc",
                     "prompt_tokens_total", "generation_tokens_total", "time_to_first_token_seconds_count",
                     "inter_token_latency_seconds_count"):
            self.assertIn(f"vllm:{name}", metrics)
        status, _, text = self.chat(port, 5, model="another")
        self.assertEqual(status, 404)
        self.assertIn("my-model", text)

    def test_bad_habits(self):
        _, port = self.serve("--coalesce", "4", "--no-usage", "--no-done", "--jitter", "0.05")
        text = self.chat(port, 10, stream=True, stream_options={"include_usage": True})[2]
        self.assertNotIn("[DONE]", text)
        self.assertNotIn('"usage"', text)
        self.assertEqual(text.count("data: "), 4)  # The role, and 4 + 4 + 2 tokens.
        _, port = self.serve("--gpu", "1", "--disconnect", "1")
        with self.assertRaises((http.client.IncompleteRead, ConnectionError, http.client.BadStatusLine)):
            self.chat(port, 50, stream=True)
        _, port = self.serve("--gpu", "2", "--error", "1")
        self.assertIn('"error"', self.chat(port, 50, stream=True)[2])

    def test_words_of_another_server(self):
        _, words = self.serve()
        _, port = self.serve("--gpu", "1", "--text-from", f"http://127.0.0.1:{words}")
        self.assertIn("words", json.loads(self.ask(port, "/v1/models")[2])["data"][0]["id"])
        answer = json.loads(self.chat(port, 8)[2])
        self.assertEqual(answer["usage"]["completion_tokens"], 8)

    def test_several_gpus_and_several_sequences(self):
        _, port = self.serve("--gpu", "0,1,2,3", "--truth", model="llama-3.1-70b")
        answer = json.loads(self.chat(port, 6, n=3)[2])
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2])
        self.assertEqual(answer["usage"]["completion_tokens"], 18)

    def test_sigterm_ends_it_in_good_order(self):
        process, port = self.serve()
        self.chat(port, 3)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, errors), (0, ""))

    def test_a_node_that_is_stopped_ends_it(self):
        process, _ = self.serve()
        self.zeus("sim", "stop")
        _, errors = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("was stopped", errors)

    def test_mistakes_get_a_sentence(self):
        self.assertIn("llama-3.1-8b", self.zeus("llm", "sim", "--model", "gpt-17", code=3))
        self.assertIn("at least 2 GPUs", self.zeus("llm", "sim", "--model", "llama-3.1-70b", code=2))
        self.assertIn("has no GPU 9", self.zeus("llm", "sim", "--model", "qwen3-8b", "--gpu", "9", code=3))


class PredictTest(LlmTestCase):
    def predict(self, *arguments):
        return json.loads(self.zeus("llm", "predict", "--gpu", "H100", "--context", "300", "--json", *arguments))

    def test_a_model_of_no_catalogue(self):
        shape = ["--layers", "32", "--kv-heads", "8", "--head-dim", "128", "--parameters", "8.03e9",
                 "--weight-bytes", "16.06e9"]
        small = self.predict(*shape, "--gpus", "1", "--batch", "8")
        self.assertAlmostEqual(small["iteration_seconds"] / 7.5e-3, 1, delta=0.1)
        self.assertAlmostEqual(small["iteration_joules"] / (8 * 0.455), 1, delta=0.1)
        self.assertAlmostEqual(small["power_watts"] * small["iteration_seconds"], small["iteration_joules"])
        large = self.predict(*shape, "--batch", "256")
        self.assertLess(large["joules_per_token"], small["joules_per_token"] / 4)
        named = self.predict("--model", "llama-3.1-8b", "--batch", "8")
        self.assertAlmostEqual(named["iteration_joules"] / small["iteration_joules"], 1, delta=0.01)

    def test_a_mixture_reads_fewer_weights_for_a_small_batch(self):
        shape = ["--layers", "48", "--kv-heads", "4", "--head-dim", "128", "--parameters", "30.5e9",
                 "--weight-bytes", "61e9"]
        experts = ["--active-parameters", "3.3e9", "--experts", "128", "--experts-used", "8"]
        mixture = self.predict(*shape, *experts, "--gpus", "2", "--batch", "8")
        dense = self.predict(*shape, "--gpus", "2", "--batch", "8")
        self.assertLess(mixture["fixed_joules"], 0.7 * dense["fixed_joules"])

    def test_mistakes_get_a_sentence(self):
        self.assertIn("--layers", self.zeus("llm", "predict", "--gpu", "H100", "--batch", "1", "--context", "1",
                                            code=2))
        self.assertIn("known: P100", self.zeus("llm", "predict", "--gpu", "X1", "--model", "qwen3-8b", "--batch",
                                               "1", "--context", "1", code=3))


if __name__ == "__main__":
    unittest.main()
