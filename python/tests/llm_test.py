"""zeus.llm: the energy in answers of every kind, and an example that shows it."""

import json
import pathlib
import socket
import subprocess
import sys
import types
import unittest
import urllib.request

import llm_testing
from llm_testing import BODY, ENERGY, OLLAMA, STREAM, STREAM_WITH_USAGE, USAGE, chunk, event

from zeus import llm
from zeus.errors import InvalidArgumentError, NotFoundError, UnavailableError

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/python/llm_energy.py"


class Model:
    """As the models of the openai client are: unknown fields are attributes and in model_extra."""

    def __init__(self, known: dict, **extra: object) -> None:
        self.__dict__.update(known, **extra)
        self.model_extra = extra

    def __iter__(self):
        return iter(self.__dict__.items())

    def model_dump(self) -> dict:
        return dict(self.__dict__)


class ReadingTest(unittest.TestCase):
    def assert_found(self, found: object) -> None:
        self.assertIsInstance(found, llm.Energy)
        self.assertEqual(found.energy_joules, 92.4)
        self.assertEqual(found.sigma_joules, 2.1)
        self.assertEqual(found.request, "r-1")

    def test_every_field_has_its_name(self):
        found = llm.energy(BODY)
        for name, value in ENERGY.items():
            with self.subTest(field=name):
                expected = tuple(value) if isinstance(value, list) else value
                self.assertEqual(getattr(found, name), expected)
        self.assertFalse(found.tokens_estimated)
        self.assertIsNone(found.carbon_grams)

    def test_bodies(self):
        for body in (BODY, {"energy": ENERGY}, {"usage": {"energy": ENERGY}}, ENERGY,
                     json.dumps(BODY), json.dumps(BODY).encode(), "\ufeff" + json.dumps(BODY),
                     json.dumps(BODY, indent=2)):
            with self.subTest(body=str(body)[:40]):
                self.assert_found(llm.energy(body))

    def test_objects_of_the_openai_client(self):
        usage = Model({"completion_tokens": 3}, energy=ENERGY)
        self.assert_found(llm.energy(Model({"id": "1", "usage": usage}, energy=ENERGY)))
        self.assert_found(llm.energy(Model({"id": "1", "usage": usage})))
        self.assertIsNone(llm.energy(Model({"id": "1", "usage": None})))

    def test_texts_of_streams(self):
        for text in (STREAM, STREAM_WITH_USAGE, OLLAMA, STREAM.replace("\n", "\r\n"),
                     STREAM.replace("\n", "\r")):
            self.assert_found(llm.energy(text))
            self.assert_found(llm.energy(text.encode()))

    def test_headers(self):
        headers = {"X-Zeus-Energy-Joules": "92.4", "x-zeus-energy-sigma-joules": "2.1",
                   "x-zeus-request": "r-1"}
        self.assert_found(llm.energy(headers))
        self.assert_found(llm.energy(types.SimpleNamespace(headers=headers)))
        inside = types.SimpleNamespace(response=types.SimpleNamespace(headers=headers))
        self.assert_found(llm.energy(inside))
        self.assertEqual(llm.request_id(inside), "r-1")
        self.assertIsNone(llm.energy({"x-zeus-energy-joules": "many"}).energy_joules)

    def test_answers_without_energy(self):
        for body in ({}, {"usage": None}, {"energy": 5}, {"usage": {"energy": {}}}, "", b"\xff",
                     "{", "data: {\"energy\": ", event("[DONE]"), [], iter(()), {"energy": None}):
            self.assertIsNone(llm.energy(body))
        with self.assertRaisesRegex(InvalidArgumentError, "response is None"):
            llm.energy(None)

    def test_absent_energy_has_its_reason(self):
        found = llm.energy({"energy": {"energy_joules": None, "absent_reason": "no GPU",
                                       "tokens": "estimated", "sigma_joules": "x",
                                       "gpus": None, "final": "yes"}})
        self.assertIsNone(found.energy_joules)
        self.assertIsNone(found.sigma_joules)
        self.assertTrue(found.tokens_estimated)
        self.assertFalse(found.final)
        self.assertEqual(str(found), "no energy: no GPU")

    def test_the_text_is_for_people(self):
        self.assertEqual(str(llm.energy(BODY)),
                         "92.4 ± 2.1 J (prefill 24.9 J, decode 67.5 J), 438 mJ/token")


class WatchTest(unittest.TestCase):
    def test_chunks_pass_untouched(self):
        chunks = [chunk("Hello"), chunk(" energy"), USAGE]
        stream = llm.watch(chunks)
        self.assertIsNone(stream.energy)
        self.assertEqual(list(stream), chunks)
        self.assertEqual(stream.energy.energy_joules, 92.4)
        self.assertEqual(stream.request, "r-1")
        self.assertEqual(llm.energy(stream).energy_joules, 92.4)

    def test_objects_of_the_openai_client(self):
        usage = Model({"choices": [], "usage": Model({}, energy=ENERGY)})
        stream = llm.watch([Model({"choices": [1], "usage": None}), usage])
        self.assertEqual(len(list(stream)), 2)
        self.assertEqual(stream.energy.energy_joules, 92.4)

    def test_pieces_of_any_size(self):
        for text in (STREAM, STREAM_WITH_USAGE, OLLAMA, STREAM.replace("\n", "\r\n"), OLLAMA[:-1],
                     json.dumps(BODY)):
            for size in (1, 2, 3, 7, 50, 10_000):
                pieces = [text[at:at + size] for at in range(0, len(text), size)]
                for items in (pieces, [piece.encode() for piece in pieces]):
                    stream = llm.watch(items)
                    self.assertEqual(list(stream), items)
                    self.assertIsNotNone(stream.energy, f"{text!r} in pieces of {size}")

    def test_lines_without_their_ends(self):
        for text in (STREAM, STREAM_WITH_USAGE, OLLAMA):
            self.assertIsNotNone(llm.energy(iter(text.splitlines())))
            self.assertIsNotNone(llm.energy(iter(text.encode().splitlines())))

    def test_the_last_figure_counts(self):
        later = {**ENERGY, "energy_joules": 100.0}
        stream = llm.watch([event({"energy": ENERGY}), event({"energy": later})])
        list(stream)
        self.assertEqual(stream.energy.energy_joules, 100)

    def test_an_exception_of_the_stream_passes(self):
        def broken():
            yield event({"energy": ENERGY})
            raise ConnectionError("gone")

        stream = llm.watch(broken())
        with self.assertRaises(ConnectionError):
            list(stream)
        self.assertEqual(stream.energy.energy_joules, 92.4)


class GatewayTest(unittest.TestCase):
    def setUp(self):
        context = llm_testing.running_gateway()
        self.gateway = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def ask(self, **options):
        body = json.dumps({"model": "m", "messages": [], **options}).encode()
        return urllib.request.urlopen(f"{self.gateway.url}/v1/chat/completions", body, timeout=30)

    def test_an_answer_of_urllib(self):
        with self.ask() as response:
            self.assertEqual(llm.energy(response).energy_joules, 92.4)
            self.assertEqual(llm.request_id(response), "r-1")
            self.assertEqual(llm.energy(response.read()).prefill_joules, 24.9)

    def test_a_stream_of_urllib(self):
        for options in ({}, {"stream_options": {"include_usage": True}}):
            with self.ask(stream=True, **options) as response:
                stream = llm.watch(response)
                self.assertEqual(stream.request, "r-1")
                self.assertIn(b'"Hello"', b"".join(stream))
                self.assertEqual(stream.energy.decode_joules, 67.5)

    def test_the_final_figure_is_waited_for(self):
        for address in (self.gateway.url, f"{self.gateway.url}/v1/"):
            self.gateway.asked = 0
            found = llm.final(address, "r-1", timeout=60)
            self.assertTrue(found.final)
            self.assertEqual((found.energy_joules, found.sigma_joules), (93.0, 0.5))
            self.assertEqual(self.gateway.asked, 2)
        self.assertEqual(llm.final(self.gateway.url, found).energy_joules, 93.0)

    def test_without_time_the_figure_is_the_present_one(self):
        self.assertFalse(llm.final(self.gateway.url, "r-1", timeout=0).final)

    def test_trouble_is_said(self):
        for request, kind, words in (("r-2", NotFoundError, "does not know .*/zeus/requests/r-2"),
                                     ("r/../x", NotFoundError, r"r%2F..%2Fx"),
                                     ("r-broken", UnavailableError, "does not answer as"),
                                     ("r-other", UnavailableError, "no energy in its answer"),
                                     ("r-busy", UnavailableError, "status 503"),
                                     ("", InvalidArgumentError, "request is empty")):
            with self.subTest(request=request), self.assertRaisesRegex(kind, words):
                llm.final(self.gateway.url, request)
        with self.assertRaisesRegex(InvalidArgumentError, "gateway is an address like http"):
            llm.final("127.0.0.1:8080", "r-1")
        with self.assertRaises(TypeError):
            llm.final(self.gateway.url, 5)

    def run_example(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-B", str(EXAMPLE), *arguments],
                              capture_output=True, text=True, timeout=120)

    def test_the_example(self):
        done = self.run_example("--url", self.gateway.url, "Say", "hello.")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines(), [
            "Hello energy",
            "at once: 92.4 ± 2.1 J (prefill 24.9 J, decode 67.5 J), 438 mJ/token",
            "final:   93.00 ± 0.50 J (prefill 24.9 J, decode 67.5 J), 438 mJ/token"])

    def test_the_example_without_a_gateway(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))  # No server listens there.
            url = f"http://127.0.0.1:{unused.getsockname()[1]}"
            done = self.run_example("--url", url, "hello")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, rf"^{url} does not answer \(.*\): start it with "
                                      r"`zeus llm gateway")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
