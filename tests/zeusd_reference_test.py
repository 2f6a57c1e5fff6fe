"""The requests of the reference's daemon: statuses and bodies, on the Unix socket and over TCP with a token."""

import http.client
import os
import signal
import subprocess
import unittest

from sim_testing import wait_until
from zeusd_client import UnixConnection
from zeusd_testing import LIMIT, LOWEST, ZEUSD, Answer, Stream, ZeusdTestCase

RESEARCHER, STRANGER = 12001, 12002
CONFIGURATION = f"""
[defaults]
scopes = ["gpu-read"]

[[rule]]
name = "researchers"
match = {{ uids = [{RESEARCHER}] }}
scopes = ["gpu-read", "gpu-control"]
"""
SET = "/gpu/set_power_limit?gpu_ids={}&power_limit_mw={}&block=true"


class ReferenceRequests:
    """Requests that both transports answer alike. `call` sends one as an administrator."""

    def test_discover_names_the_devices_and_the_groups(self):
        answer = self.call("GET", "/discover")
        self.assertEqual(answer.status, 200)
        gpus = answer.json["gpus"]
        self.assertEqual([gpu["id"] for gpu in gpus], [0, 1])
        for gpu in gpus:
            self.assertEqual(set(gpu) - {"uuid"}, {"id", "name", "pci_address", "cumulative_energy_available"})
        self.assertIn("gpu-control", answer.json["enabled_api_groups"])
        self.assertEqual(answer.json["auth_required"], self.AUTH)
        self.assertGreater(self.call("GET", "/time").json["timestamp_ms"], 1.6e12)

    def test_gpus_can_be_read(self):
        energy = self.call("GET", "/gpu/get_cumulative_energy?gpu_ids=0")
        self.assertEqual((energy.status, list(energy.json)), (200, ["0"]))
        self.assertIsInstance(energy.json["0"]["energy_mj"], int)
        power = self.call("GET", "/gpu/get_power").json
        self.assertEqual((set(power), set(power["power_mw"])), ({"timestamp_ms", "power_mw"}, {"0", "1"}))
        self.assertEqual(self.call("GET", "/gpu/get_power_limit?gpu_ids=1").json,
                         {"1": {"power_limit_mw": LIMIT * 1000}})
        self.assertEqual(self.call("GET", "/gpu/get_power_limit_constraints?gpu_ids=0").json,
                         {"0": {"min_power_limit_mw": LOWEST * 1000, "max_power_limit_mw": LIMIT * 1000}})
        self.assertIsInstance(self.call("GET", "/gpu/get_persistence_mode?gpu_ids=0").json["0"]["enabled"], bool)

    def test_a_limit_is_set_for_one_gpu_or_several_and_taken_back(self):
        answer = self.call("POST", SET.format("0,1", 200_000))
        self.assertEqual((answer.status, answer.text), (200, ""))
        self.assertEqual(self.limits(), [200, 200])
        self.assertEqual(self.call("POST", SET.format("1", 150_000)).status, 200)
        self.assertEqual(self.limits(), [200, 150])
        # The limit from before ends the change.
        self.assertEqual(self.call("POST", SET.format("0,1", LIMIT * 1000)).status, 200)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])
        self.assertEqual({lease["state"] for lease in self.ask("GET", "/v1/leases").json["leases"]}, {"ended"})

    def test_clocks_are_locked_and_reset(self):
        lock = "/gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=900&max_clock_mhz=1200&block=true"
        self.assertEqual(self.call("POST", lock).status, 200)
        self.assertEqual(self.call("POST", "/gpu/reset_gpu_locked_clocks?gpu_ids=0&block=true").status, 200)
        self.assertEqual(self.call("POST", "/gpu/reset_locked_clocks?gpu_ids=0,1&block=true").status, 200)
        self.assertEqual(self.call("POST", "/gpu/reset_mem_locked_clocks?gpu_ids=0&block=true").status, 200)

    def test_what_makes_no_sense_is_400(self):
        for target in (SET.format("7", 200_000), SET.format("x", 200_000), SET.format("0", "much"),
                       SET.format("0", (LOWEST - 1) * 1000), SET.format("0", 200_000) + "&unknown=1",
                       "/gpu/set_power_limit?power_limit_mw=200000&block=true",
                       "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=200000",
                       "/gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=900&block=true"):
            self.assertEqual(self.call("POST", target).status, 400, target)
        for target in ("/gpu/get_power?gpu_ids=7", "/gpu/get_power?gpu=0", "/cpu/get_cumulative_energy"):
            self.assertEqual(self.call("GET", target).status, 400, target)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])

    def test_failures_are_told_by_device(self):
        answer = self.call("POST", SET.format("0,1", (LOWEST - 1) * 1000))
        self.assertEqual((answer.status, set(answer.json["errors"])), (400, {"0", "1"}), answer.text)

    def test_the_stream_of_power_is_not_silent(self):
        stream = Stream(self.connect(), "/gpu/stream_power?gpu_ids=1", self.HEADERS)
        self.addCleanup(stream.close)
        self.assertEqual(stream.status, 200)
        events = stream.events()
        for _ in range(2):
            _, data = next(events)
            self.assertEqual((set(data), data["gpu_id"]), ({"timestamp_ms", "gpu_id", "power_mw"}, 1))


@unittest.skipUnless(os.geteuid() == 0, "becoming other users needs root")
class ZeusdUnixTest(ReferenceRequests, ZeusdTestCase):
    AUTH = False
    HEADERS = {}

    def setUp(self):
        super().setUp()
        self.start_daemon(CONFIGURATION)

    def connect(self):
        return UnixConnection(self.socket_path)

    def call(self, method, target):
        return self.ask(method, target)

    def test_the_change_of_an_administrator_stays_and_that_of_a_process_ends_with_it(self):
        self.assertEqual(self.ask("POST", SET.format("0", 180_000)).status, 200)
        holder, status, _ = self.hold(None, uid=RESEARCHER, target=SET.format("1", 160_000))
        self.assertEqual(status, 200)
        self.assertEqual(self.limits(), [180, 160])
        holder.send_signal(signal.SIGKILL)
        wait_until(lambda: self.limits() == [180, LIMIT], "the change of a process ends with it")

    def test_rights_are_those_of_the_user(self):
        self.assertEqual(self.ask_as(STRANGER, "POST", SET.format("0", 200_000))[0], 403)
        self.assertEqual(self.ask_as(STRANGER, "GET", "/cpu/get_power")[0], 403)
        status, who = self.ask_as(STRANGER, "GET", "/auth/whoami")
        self.assertEqual((status, who), (200, {"sub": f"uid:{STRANGER}", "scopes": ["gpu-read"]}))
        self.assertEqual(self.ask_as(STRANGER, "GET", "/discover")[1]["enabled_api_groups"], ["gpu-read"])

    def test_a_group_that_is_switched_off_is_404(self):
        self.daemon.stop()
        self.start_daemon(None, "--enable", "gpu-read")
        self.assertEqual(self.ask("POST", SET.format("0", 200_000)).status, 404)
        self.assertEqual(self.ask("GET", "/discover").json["enabled_api_groups"], ["gpu-read"])


class ZeusdTcpTest(ReferenceRequests, ZeusdTestCase):
    AUTH = True

    def setUp(self):
        super().setUp()
        self.key = os.path.join(self.folder, "key")
        with open(self.key, "wb") as file:
            file.write(os.urandom(48))
        os.chmod(self.key, 0o600)
        self.start_daemon(CONFIGURATION, "--tcp-bind-address", "127.0.0.1:0", "--signing-key-path", self.key)
        self.address = self.daemon.ready.strip().rsplit("http://", 1)[1]
        self.HEADERS = {"Authorization": "Bearer " + self.token("gpu-read,gpu-control,cpu-read,admin")}

    def token(self, scopes, *more):
        done = subprocess.run([ZEUSD, "token", "issue", "--signing-key-path", self.key, "--user", "ci", "--scope", scopes,
                               *more], capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.strip()

    def connect(self):
        return http.client.HTTPConnection(self.address, timeout=60)

    def call(self, method, target, headers=None):
        connection = self.connect()
        try:
            connection.request(method, target, headers=self.HEADERS if headers is None else headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def test_without_a_valid_token_there_is_nothing(self):
        for headers in ({}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic eDp5"},
                        {"Authorization": self.HEADERS["Authorization"][:-3]}):
            answer = self.call("GET", "/gpu/get_power", headers)
            self.assertEqual(answer.status, 401, headers)
            self.assertIn("Bearer", answer.headers["WWW-Authenticate"])
            self.assertEqual(self.call("GET", "/unknown", headers).status, 401)
            self.assertEqual(self.call("GET", "/discover", headers).status, 200)
        self.assertEqual(self.call("GET", "/unknown").status, 404)

    def test_a_token_permits_its_scopes(self):
        headers = {"Authorization": "Bearer " + self.token("gpu-read", "--expires", "1h")}
        self.assertEqual(self.call("GET", "/gpu/get_power", headers).status, 200)
        self.assertEqual(self.call("POST", SET.format("0", 200_000), headers).status, 403)
        who = self.call("GET", "/auth/whoami", headers).json
        self.assertEqual((who["sub"], who["scopes"]), ("ci", ["gpu-read"]))
        self.assertGreater(who["exp"], 1.6e9)


if __name__ == "__main__":
    unittest.main()
