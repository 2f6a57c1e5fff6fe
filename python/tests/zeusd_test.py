"""zeus.utils.zeusd and zeus.monitor.power_streaming, with a server that speaks as zeusd does."""

import asyncio
import json
import os
import queue
import socket
import socketserver
import tempfile
import threading
import time
import unittest
import warnings
from http.server import BaseHTTPRequestHandler
from unittest import mock
from urllib.parse import parse_qsl, urlsplit

from zeus.monitor.power_streaming import PowerStreamingClient
from zeus.utils.zeusd import (
    ZeusdAuthError,
    ZeusdCapabilityError,
    ZeusdClient,
    ZeusdConfig,
    ZeusdConnectionError,
    ZeusdResponseError,
    require_capabilities,
)

TOKEN = "good-token"
SCOPES = {"/gpu/get": "gpu-read", "/gpu/stream": "gpu-read", "/gpu/": "gpu-control",
          "/cpu/": "cpu-read"}


class Daemon:
    """A zeusd as clients see it: two GPUs, one CPU, and a list of what was asked."""

    def __init__(self, groups=("gpu-control", "gpu-read", "cpu-read"), scopes=None, ahead=0.0,
                 unix=False, gpus=2):
        self.groups, self.scopes, self.ahead = set(groups), scopes, ahead
        self.gpus = gpus
        self.asked = []
        self.whoami = None  # Body and status of its answer about a token, if it is to fail.
        self.events = queue.Queue()
        self.streams = 0
        self.directory = tempfile.TemporaryDirectory()
        kind = socketserver.ThreadingUnixStreamServer if unix else socketserver.ThreadingTCPServer
        address = os.path.join(self.directory.name, "zeusd.sock") if unix else ("127.0.0.1", 0)
        kind.daemon_threads = True
        kind.block_on_close = False
        self.server = kind(address, type("Bound", (Handler,), {"daemon": self}))
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self.unix = unix

    def config(self, **options):
        if self.unix:
            return ZeusdConfig.uds(self.server.server_address, **options)
        return ZeusdConfig.tcp("127.0.0.1", self.server.server_address[1], **options)

    def close(self):
        self.events.put(None)
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        self.directory.cleanup()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    daemon = None

    def address_string(self):
        return "client"

    def log_message(self, *arguments):
        pass

    def answer(self, body=None, status=200):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refused(self, path):
        scope = next((scope for start, scope in SCOPES.items() if path.startswith(start)), None)
        if scope and scope not in self.daemon.groups:
            return 404
        if self.daemon.scopes is None or path in ("/discover", "/time"):
            return None
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401
        return 403 if scope and scope not in self.daemon.scopes else None

    def do_GET(self):
        url = urlsplit(self.path)
        options = dict(parse_qsl(url.query))
        self.daemon.asked.append((self.command, url.path, options))
        if status := self.refused(url.path):
            return self.answer({"error": "no"}, status)
        ids = options.get("gpu_ids", "0,1").split(",")
        if absent := [index for index in ids if int(index) >= self.daemon.gpus]:
            return self.answer({"errors": {index: "no such GPU" for index in absent}}, 400)
        getattr(self, url.path.strip("/").replace("/", "_"))(ids, options)

    do_POST = do_GET

    def discover(self, ids, options):
        self.answer({
            "gpus": [{"id": index, "name": "NVIDIA A100", "pci_address": f"0000:0{index}:00.0",
                      "cumulative_energy_available": True} for index in range(self.daemon.gpus)],
            "cpus": [{"id": 0, "dram_available": True}],
            "enabled_api_groups": sorted(self.daemon.groups),
            "auth_required": self.daemon.scopes is not None})

    def time(self, ids, options):
        self.answer({"timestamp_ms": (time.time() + self.daemon.ahead) * 1e3})

    def auth_whoami(self, ids, options):
        if self.daemon.whoami is not None:
            return self.answer(*self.daemon.whoami)
        self.answer({"sub": "me", "scopes": sorted(self.daemon.scopes)})

    def gpu_get_cumulative_energy(self, ids, options):
        self.answer({index: {"energy_mj": 1000 + int(index)} for index in ids})

    def gpu_get_power(self, ids, options):
        self.answer({"timestamp_ms": 1500, "power_mw": {index: 61000 for index in ids}})

    def gpu_get_power_limit(self, ids, options):
        self.answer({index: {"power_limit_mw": 400000} for index in ids})

    def gpu_get_power_limit_constraints(self, ids, options):
        self.answer({index: {"min_power_limit_mw": 100000, "max_power_limit_mw": 400000}
                     for index in ids})

    def gpu_get_persistence_mode(self, ids, options):
        self.answer({index: {"enabled": True} for index in ids})

    def done(self, ids, options):
        self.answer()

    gpu_set_power_limit = gpu_set_persistence_mode = gpu_set_gpu_locked_clocks = done
    gpu_reset_gpu_locked_clocks = gpu_set_mem_locked_clocks = gpu_reset_mem_locked_clocks = done
    gpu_reset_locked_clocks = done

    def cpu_get_cumulative_energy(self, ids, options):
        self.answer({"0": {"cpu_energy_uj": 5, "dram_energy_uj": None}})

    def cpu_get_power(self, ids, options):
        self.answer({"timestamp_ms": 2500, "power_mw": {"0": {"cpu_mw": 45000, "dram_mw": 3000}}})

    def gpu_stream_power(self, ids, options):
        self.daemon.streams += 1
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        while (event := self.daemon.events.get()) is not None:
            self.wfile.write(b": comment\n\ndata: " + json.dumps(event).encode() + b"\n\n")
        self.close_connection = True

    def cpu_stream_power(self, ids, options):
        self.answer({"error": "forbidden"}, 403)


class DaemonTestCase(unittest.TestCase):
    def start(self, **options):
        daemon = Daemon(**options)
        self.addCleanup(daemon.close)
        return daemon


class ClientTest(DaemonTestCase):
    def test_everything_can_be_read(self):
        for unix in (False, True):
            with self.subTest(unix=unix):
                client = ZeusdClient(self.start(unix=unix).config())
                self.assertEqual((client.gpu_ids, client.cpu_ids), ([0, 1], [0]))
                self.assertEqual(client.gpus[1].pci_address, "0000:01:00.0")
                self.assertEqual(client.dram_available, [True])
                self.assertEqual(client.get_gpu_energy([1]), {1: 1001})
                self.assertEqual(client.get_gpu_power().power_mw, {0: 61000, 1: 61000})
                self.assertEqual(client.get_gpu_power([0]).timestamp_s, 1.5)
                self.assertEqual(client.get_power_limit([0]), {0: 400000})
                self.assertEqual(client.get_power_limit_constraints([0]), {0: (100000, 400000)})
                self.assertEqual(client.get_persistence_mode([0]), {0: True})
                self.assertIsNone(client.get_cpu_energy()[0].dram_energy_uj)
                self.assertEqual(client.get_cpu_power().power_mw[0].cpu_mw, 45000)
                self.assertAlmostEqual(client.get_time(), time.time(), delta=5)

    def test_what_is_set_goes_there_as_a_query(self):
        daemon = self.start()
        client = ZeusdClient(daemon.config())
        client.set_power_limit([0, 1], 250000)
        client.set_persistence_mode([0], True, block=False)
        client.set_gpu_locked_clocks([0], 210, 1410)
        client.reset_gpu_locked_clocks([0])
        client.set_mem_locked_clocks([1], 1215, 1215)
        client.reset_mem_locked_clocks([1])
        client.reset_locked_clocks([0])
        self.assertEqual(daemon.asked[1:], [
            ("POST", "/gpu/set_power_limit",
             {"gpu_ids": "0,1", "power_limit_mw": "250000", "block": "true"}),
            ("POST", "/gpu/set_persistence_mode",
             {"gpu_ids": "0", "enabled": "true", "block": "false"}),
            ("POST", "/gpu/set_gpu_locked_clocks",
             {"gpu_ids": "0", "min_clock_mhz": "210", "max_clock_mhz": "1410", "block": "true"}),
            ("POST", "/gpu/reset_gpu_locked_clocks", {"gpu_ids": "0", "block": "true"}),
            ("POST", "/gpu/set_mem_locked_clocks",
             {"gpu_ids": "1", "min_clock_mhz": "1215", "max_clock_mhz": "1215", "block": "true"}),
            ("POST", "/gpu/reset_mem_locked_clocks", {"gpu_ids": "1", "block": "true"}),
            ("POST", "/gpu/reset_locked_clocks", {"gpu_ids": "0", "block": "true"})])

    def test_what_went_wrong_is_known_by_device(self):
        client = ZeusdClient(self.start().config())
        with self.assertRaisesRegex(ZeusdResponseError, "device 7: no such GPU") as caught:
            client.set_power_limit([0, 7], 100000)
        self.assertEqual((caught.exception.status, caught.exception.errors),
                         (400, {7: "no such GPU"}))

    def test_a_daemon_that_cannot_tell_whose_a_token_is_leaves_a_client_that_says_so(self):
        for answer, words in (((None, 500), "answered 500"), (({}, 200), "does not say whose token")):
            with self.subTest(words):
                daemon = self.start(scopes={"gpu-read"})
                daemon.whoami = answer
                client = ZeusdClient(daemon.config(token=TOKEN))
                self.assertIn(words, client.auth_error)
                self.assertFalse(client.can_read_gpu)
                with self.assertRaisesRegex(ZeusdAuthError, words):
                    require_capabilities(client, read_gpu=True)

    def test_scopes_and_groups_decide_what_is_allowed(self):
        daemon = self.start(groups=("gpu-read", "gpu-control"), scopes={"gpu-read"})
        client = ZeusdClient(daemon.config(token=TOKEN))
        self.assertTrue(client.auth_required)
        self.assertIsNone(client.auth_error)
        self.assertEqual((client.can_read_gpu, client.can_control_gpu, client.can_read_cpu),
                         (True, False, False))
        require_capabilities(client, read_gpu=True, gpu_ids=[0, 1])
        with self.assertRaisesRegex(ZeusdAuthError, "lacks the scope gpu-control"):
            require_capabilities(client, control_gpu=True)
        with self.assertRaisesRegex(ZeusdCapabilityError, "cpu-read switched off"):
            require_capabilities(client, read_cpu=True)
        with self.assertRaisesRegex(ZeusdCapabilityError, r"has no GPU 5: it has \[0, 1\]"):
            require_capabilities(client, gpu_ids=[1, 5])
        with self.assertRaises(PermissionError):
            client.set_power_limit([0], 100000)
        with self.assertRaisesRegex(ZeusdCapabilityError, "is the API enabled there"):
            client.get_cpu_power()

    def test_a_wrong_token_is_known_at_once_and_an_error_when_it_matters(self):
        daemon = self.start(scopes={"gpu-read"})
        client = ZeusdClient(daemon.config(token="bad"))
        self.assertIn("answered 401", client.auth_error)
        self.assertFalse(client.can_read_gpu)
        with self.assertRaises(ZeusdAuthError):
            require_capabilities(client, read_gpu=True)
        self.assertNotIn("bad", repr(client.config))

    def test_a_daemon_too_old_to_describe_its_gpus_is_refused(self):
        daemon = self.start()
        with mock.patch.object(Handler, "discover",
                               lambda self, *_: self.answer({"gpu_ids": [0], "cpus": []})):
            with self.assertRaisesRegex(ZeusdCapabilityError, "upgrade it"):
                ZeusdClient(daemon.config())

    def test_nobody_there_is_a_connection_error(self):
        with tempfile.TemporaryDirectory() as directory:
            with self.assertRaisesRegex(ZeusdConnectionError, "zeusd at .* does not answer"):
                ZeusdClient(ZeusdConfig.uds(directory + "/none.sock"))
        with self.assertRaises(ConnectionError):
            ZeusdClient(ZeusdConfig.tcp("127.0.0.1", 1))

    def test_one_who_never_answers_is_not_waited_for(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            with self.assertRaises(ZeusdConnectionError):
                ZeusdClient(ZeusdConfig.tcp("127.0.0.1", silent.getsockname()[1], timeout=0.1))


class ConfigTest(unittest.TestCase):
    def test_the_environment_says_where_it_is(self):
        with mock.patch.dict(os.environ, clear=True):
            self.assertIsNone(ZeusdConfig.from_env())
            with self.assertRaisesRegex(ZeusdConnectionError, "ZEUSD_SOCK_PATH"):
                ZeusdClient()
            os.environ["ZEUSD_HOST_PORT"] = "[::1]:4938"
            os.environ["ZEUSD_TOKEN"] = "t"
            self.assertEqual(ZeusdConfig.from_env(), ZeusdConfig.tcp("::1", 4938, token="t"))
            os.environ["ZEUSD_SOCK_PATH"] = "/run/zeusd/zeusd.sock"
            self.assertEqual(ZeusdConfig.from_env().endpoint, "/run/zeusd/zeusd.sock")
            self.assertEqual(ZeusdConfig.tcp("n1", 80).url("/time"), "http://n1:80/time")
            os.environ.pop("ZEUSD_SOCK_PATH")
            os.environ["ZEUSD_HOST_PORT"] = "nowhere"
            with self.assertRaisesRegex(ValueError, "use host:port"):
                ZeusdConfig.from_env()

    def test_nonsense_is_refused(self):
        for make in (lambda: ZeusdConfig.tcp("h", 0), lambda: ZeusdConfig.tcp("h", "80"),
                     lambda: ZeusdConfig.tcp("", 80), lambda: ZeusdConfig.uds(""),
                     lambda: ZeusdConfig.uds("/s", timeout=float("nan"))):
            with self.assertRaises(ValueError):
                make()


class StreamingTest(DaemonTestCase):
    def stream(self, *configs, **options):
        client = PowerStreamingClient(configs, reconnect_delay_s=0.01, **options)
        self.addCleanup(client.stop)
        return client

    def test_readings_arrive_in_our_time(self):
        daemon = self.start(ahead=1000)
        config = daemon.config(cpu_indices=[])
        client = self.stream(config)
        daemon.events.put({"timestamp_ms": 1e6, "gpu_id": 1, "power_mw": 61500})
        readings = next(iter(client))[config.endpoint]
        self.assertEqual(readings.gpu_power_w, {1: 61.5})
        self.assertAlmostEqual(readings.timestamp_s, 1000 - 1000, delta=5)
        readings.gpu_power_w.clear()
        self.assertEqual(client.get_power()[config.endpoint].gpu_power_w, {1: 61.5})

    def test_coroutines_may_wait_as_well(self):
        daemon = self.start(unix=True)
        config = daemon.config(gpu_indices=[0], cpu_indices=[])
        client = self.stream(config)

        async def first():
            async for readings in client:
                return readings
        daemon.events.put({"timestamp_ms": 0, "gpu_id": 0, "power_mw": 100})
        self.assertEqual(asyncio.run(first())[config.endpoint].gpu_power_w, {0: 0.1})
        self.assertEqual(daemon.asked[-1][2], {"gpu_ids": "0"})

    def test_a_broken_stream_is_made_again(self):
        daemon = self.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client = self.stream(daemon.config(cpu_indices=[]))
            daemon.events.put(None)
            daemon.events.put({"timestamp_ms": 0, "gpu_id": 0, "power_mw": 5000})
            (readings,) = next(iter(client)).values()
        self.assertEqual(readings.gpu_power_w, {0: 5})
        self.assertEqual(daemon.streams, 2)
        self.assertEqual(client.troubles, {})

    def test_a_daemon_that_forbids_it_is_given_up(self):
        daemon = self.start()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            client = self.stream(daemon.config(gpu_indices=[]))
            for stream in client._streams:
                stream.join(timeout=30)
        self.assertIn("answered 403", str(caught[0].message))
        self.assertIn("403", client.troubles[daemon.config().endpoint])

    def test_a_steady_gpu_has_nothing_to_say_and_stopping_does_not_wait_for_it(self):
        daemon = self.start()
        client = self.stream(daemon.config(cpu_indices=[], timeout=0.5))
        while not daemon.streams:
            time.sleep(0.01)
        time.sleep(1)  # Longer than the time-out of a request.
        self.assertEqual((client.troubles, daemon.streams), ({}, 1))
        client.stop()
        self.assertEqual([stream.is_alive() for stream in client._streams], [False])
        self.assertEqual(list(client), [])

    def test_what_is_named_must_be_there_and_allowed(self):
        daemon = self.start(groups=("cpu-read",))
        with self.assertRaisesRegex(ZeusdCapabilityError, "gpu-read switched off"):
            self.stream(daemon.config(gpu_indices=[0]))
        self.assertEqual(self.stream(daemon.config(cpu_indices=[]))._streams, [])
        with self.assertRaisesRegex(ValueError, "twice"):
            self.stream(daemon.config(), daemon.config())


if __name__ == "__main__":
    unittest.main()
