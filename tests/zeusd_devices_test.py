"""GPUs that are slow, lost, reloaded, capped or split, programs that turn knobs behind the daemon's back, maintenance, and
several daemons on a machine."""

import contextlib
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import unittest

from sim_testing import ZEUS, wait_until
from zeusd_client import UnixConnection
from zeusd_testing import LIMIT, ZEUSD, Daemon, ZeusdTestCase

TTL = {"holder": "ttl", "ttl_seconds": 600}
SET_LIMIT = """
import ctypes, os, sys
nvml = ctypes.CDLL(os.environ["ZEUS_NVML_LIBRARY"])
handle = ctypes.c_void_p()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(int(sys.argv[1]), ctypes.byref(handle)) == 0
assert nvml.nvmlDeviceSetPowerManagementLimit(handle, int(sys.argv[2])) == 0
"""


class DevicesTestCase(ZeusdTestCase):
    def fault(self, kind, gpu=0):
        self.sim("fault", "--gpu", str(gpu), "--kind", kind)

    def create(self, watts=200, gpu=0, **fields):
        answer = self.ask("POST", "/v1/leases", self.lease(watts, gpu=gpu, **(TTL | fields)))
        self.assertEqual(answer.status, 201, answer.text)
        return "/v1/leases/" + answer.json["id"]

    def gpu(self, index=0):
        return self.ask("GET", "/v1/node").json["gpus"][index]

    def events(self):
        return [entry["event"] for entry in self.ask("GET", "/v1/audit?limit=1000").json["entries"]]


class ZeusdDevicesTest(DevicesTestCase):
    def test_a_driver_that_is_reloaded_gets_its_leases_again_and_keeps_its_default(self):
        self.start_daemon()
        # An administrator's cap of before: it does not outlive the driver.
        subprocess.run(["/usr/bin/python3", "-c", SET_LIMIT, "0", "230000"], env=self.environment, check=True)
        # Its counter has counted for longer than it takes until the next look at the knob.
        wait_until(lambda: self.ask("GET", "/gpu/get_cumulative_energy?gpu_ids=0").json["0"]["energy_mj"] > 400_000,
                   "the counter goes on")
        path = self.create(200)
        self.assertEqual(self.ask("GET", path).json["knobs"][0]["effective"], {"watts": 200})
        self.fault("reset")
        self.assertNotEqual(self.limits()[0], 200)
        wait_until(lambda: self.limits()[0] == 200, "the lease is applied again")
        self.assertIn("driver reloaded", self.events())
        self.assertEqual(self.ask("DELETE", path).status, 200)
        self.assertEqual(self.limits()[0], LIMIT)

    def test_a_cap_from_outside_is_shown_and_is_no_foreign_change(self):
        self.start_daemon()
        path = self.create(200)
        self.fault("oob-cap:150W")
        wait_until(lambda: self.ask("GET", path).json["knobs"][0]["enforced"] == {"watts": 150}, "the cap is seen")
        view = self.ask("GET", path).json["knobs"][0]
        self.assertEqual((view["effective"], view["foreign"]), ({"watts": 200}, False))
        self.fault("clear")
        wait_until(lambda: self.ask("GET", path).json["knobs"][0]["enforced"] == {"watts": 200}, "the cap is gone")
        self.assertEqual(self.gpu()["foreign_changes"], 0)

    def test_a_lost_gpu_is_unavailable_alone_and_served_when_it_returns(self):
        self.start_daemon()
        path = self.create(200)
        self.fault("lost")
        wait_until(lambda: self.ask("GET", path).json["state"] == "suspended", "its lease is suspended")
        answer = self.ask("POST", "/v1/leases", self.lease(150, how="at_most", **TTL))
        self.assertEqual(answer.status, 503, answer.text)
        self.assertIn("lost", answer.json["error"]["message"])
        other = self.create(180, gpu=1)
        self.fault("clear")
        wait_until(lambda: self.ask("GET", path).json["state"] == "active", "it is applied again")
        self.assertEqual(self.limits(), [200, 180])
        for lease in (path, other):
            self.assertEqual(self.ask("DELETE", lease).status, 200)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])

    def test_what_the_driver_does_not_permit_is_not_held(self):
        self.start_daemon()
        self.fault("no-permission")
        answer = self.ask("POST", "/v1/leases", self.lease(200, **TTL))
        self.assertEqual(answer.status, 503, answer.text)
        self.fault("clear")
        self.create(200)
        self.assertEqual(self.limits()[0], 200)

    def test_a_gpu_that_is_split_keeps_its_limit(self):
        self.fault("mig")
        self.start_daemon()
        node = self.ask("GET", "/v1/node")
        self.assertEqual((node.status, len(node.json["gpus"])), (200, 2), node.text)
        path = self.create(200)
        self.assertEqual(self.limits()[0], 200)
        self.assertEqual(self.ask("DELETE", path).status, 200)
        self.assertEqual(self.limits()[0], LIMIT)

    def change_behind_its_back(self, milliwatts):
        subprocess.run(["/usr/bin/python3", "-c", SET_LIMIT, "0", str(milliwatts)], env=self.environment, check=True)

    def test_the_value_of_another_program_is_respected(self):
        self.start_daemon()
        path = self.create(200)
        self.change_behind_its_back(222_000)
        wait_until(lambda: self.ask("GET", path).json["knobs"][0]["foreign"], "it is noticed and told")
        self.assertEqual(self.gpu()["foreign_changes"], 1)
        self.assertEqual(self.limits()[0], 222)
        self.assertEqual(self.ask("DELETE", path).status, 200)
        self.assertEqual(self.limits()[0], 222, "it is the baseline now")
        self.assertIn("knob changed by others", self.events())

    def test_the_value_of_another_program_is_overwritten_where_that_is_wanted(self):
        self.start_daemon('foreign = "reassert"\n')
        path = self.create(200)
        self.change_behind_its_back(222_000)
        wait_until(lambda: self.gpu()["foreign_changes"] == 1, "it is noticed")
        wait_until(lambda: self.limits()[0] == 200, "it is overwritten")
        self.assertEqual(self.ask("DELETE", path).status, 200)
        self.assertEqual(self.limits()[0], LIMIT)

    def opened_gpus(self):
        """The GPUs that the daemon has open, as /dev/nvidia* of a real driver would show it."""
        folder = pathlib.Path(f"/proc/{self.daemon.process.pid}/fd")
        links = []
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                links.append(os.readlink(path))
        return sorted({int(found[1]) for found in (re.search(r"zeus-sim-gpu(\d+)", link) for link in links) if found})

    def test_maintenance_lets_go_of_the_gpu_and_of_no_other(self):
        self.start_daemon()
        path, other = self.create(200), self.create(180, gpu=1)
        self.assertEqual(self.opened_gpus(), [0, 1])
        maintenance = f"/v1/gpus/{self.uuids()[0]}/maintenance"
        self.assertEqual(self.ask("POST", maintenance, {"seconds": 600}).status, 200)
        # Readings and requests do not open it again.
        wait_until(lambda: self.ask("GET", f"/v1/readings?devices={self.uuids()[1]}").json["devices"][0].get("power_watts"),
                   "the other GPU is read again")
        for _ in range(20):
            self.ask("GET", "/v1/readings")
            self.ask("GET", "/v1/node")
            self.ask("GET", "/gpu/get_power?gpu_ids=0,1")
            self.assertEqual(self.opened_gpus(), [1])
        self.assertEqual(self.limits(), [LIMIT, 180])
        self.assertEqual(self.ask("POST", "/v1/leases", self.lease(150, gpu=1, how="at_most", **TTL)).status, 201)
        # A GPU that was reset begins to count anew, which is no foreign change.
        self.fault("reset")
        self.assertEqual(self.ask("DELETE", maintenance).status, 200)
        wait_until(lambda: self.ask("GET", path).json["state"] == "active", "the lease is applied again")
        self.assertEqual(self.opened_gpus(), [0, 1])
        self.assertEqual(self.limits(), [200, 150])
        self.assertEqual(self.gpu()["foreign_changes"], 0)
        self.assertEqual(self.ask("GET", other).json["state"], "active")

    def test_maintenance_puts_knobs_back_ends_by_itself_and_over_a_restart(self):
        self.start_daemon()
        path = self.create(200)
        other = self.create(180, gpu=1)
        maintenance = f"/v1/gpus/{self.uuids()[0]}/maintenance"
        for seconds in (0, -1, 1e9, "60"):
            self.assertEqual(self.ask("POST", maintenance, {"seconds": seconds}).status, 400, seconds)
        self.assertEqual(self.ask("POST", maintenance, {"seconds": 2}).status, 200)
        self.assertEqual(self.limits(), [LIMIT, 180])
        self.assertEqual(self.ask("GET", path).json["state"], "suspended")
        self.assertEqual(self.ask("GET", other).json["state"], "active")
        self.assertGreater(self.gpu()["maintenance_left_seconds"], 0)
        wait_until(lambda: self.limits() == [200, 180], "it ends by itself and the lease is applied again")
        self.assertEqual(self.ask("POST", maintenance, {"seconds": 600}).status, 200)
        # A reset meanwhile is not taken for the change of another program.
        self.fault("reset")
        self.daemon.stop(signal.SIGKILL)
        self.start_daemon()
        wait_until(lambda: self.ask("GET", path).json["state"] == "active", "a restart ends it")
        self.assertEqual(self.limits(), [200, 180])
        self.assertEqual(self.gpu()["foreign_changes"], 0)


class ZeusdSlowDeviceTest(DevicesTestCase):
    GPUS = "8xV100"

    def test_one_slow_gpu_of_eight_delays_no_other(self):
        self.start_daemon()
        uuids = self.uuids()
        self.assertEqual(len(uuids), 8)
        self.fault("slow:20000ms", gpu=3)
        answers = {}

        def ask_the_slow_one():
            answers[3] = self.ask("POST", "/v1/leases", self.lease_of(uuids[3], 200)).status

        slow = threading.Thread(target=ask_the_slow_one)
        slow.start()
        connection = UnixConnection(self.socket_path)
        self.addCleanup(connection.close)
        for round_number in range(5):
            for index, uuid in enumerate(uuids):
                if index == 3:
                    continue
                created = self.ask("POST", "/v1/leases", self.lease_of(uuid, 150 + round_number), connection=connection)
                self.assertEqual(created.status, 201, created.text)
                ended = self.ask("DELETE", "/v1/leases/" + created.json["id"], connection=connection)
                self.assertEqual(ended.status, 200, ended.text)
        self.assertTrue(slow.is_alive(), "all others were served while the slow one was asked")
        # Its requests are refused once it counts as stuck, and nothing else is.
        wait_until(lambda: self.gpu(3)["stuck"], "it is stuck")
        answer = self.ask("POST", "/v1/leases", self.lease_of(uuids[3], 210))
        self.assertEqual(answer.status, 503, answer.text)
        self.assertIn("stuck", answer.json["error"]["message"])
        created = self.ask("POST", "/v1/leases", self.lease_of(uuids[4], 180))
        self.assertEqual(created.status, 201, created.text)
        self.assertEqual(self.ask("GET", "/readyz").status, 200)
        slow.join(60)
        self.assertEqual(answers, {3: 503})
        self.fault("clear", gpu=3)
        wait_until(lambda: not self.gpu(3)["stuck"], "it answers again")
        wait_until(lambda: self.ask("POST", "/v1/leases", self.lease_of(uuids[3], 200)).status == 201, "it is served again")
        self.assertEqual(self.limits()[3:5], [200, 180])

    @staticmethod
    def lease_of(uuid, watts):
        return {"name": "test", **TTL, "requests": [
            {"device": uuid, "knob": "gpu_power_limit", "exactly": {"watts": watts}}]}


class SeveralDaemonsTest(DevicesTestCase):
    def second_daemon(self, environment, name="second"):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        socket_path = os.path.join(folder, "zeusd.sock")
        daemon = Daemon(["--socket-path", socket_path], environment)
        self.addCleanup(daemon.kill)
        return daemon, socket_path

    def ask_at(self, socket_path, method, target, body=None):
        connection = UnixConnection(socket_path)
        self.addCleanup(connection.close)
        return self.ask(method, target, body, connection=connection)

    def test_two_daemons_of_one_machine_do_not_fight(self):
        self.start_daemon()
        path = self.create(200)
        _, second = self.second_daemon(self.environment)
        self.assertEqual(self.limits()[0], 200, "the start of another repairs nothing that lives")
        answer = self.ask_at(second, "POST", "/v1/leases", self.lease(150, **TTL))
        self.assertIn(answer.status, (409, 503), answer.text)
        self.assertIn(str(self.daemon.process.pid), answer.text)
        self.assertEqual(self.limits()[0], 200)
        # A knob that the first does not hold is free.
        created = self.ask_at(second, "POST", "/v1/leases", self.lease(160, gpu=1, **TTL))
        self.assertEqual(created.status, 201, created.text)
        self.assertEqual(self.limits(), [200, 160])
        self.assertEqual(self.ask("DELETE", path).status, 200)
        wait_until(lambda: self.ask_at(second, "POST", "/v1/leases", self.lease(150, **TTL)).status == 201,
                   "the knob is free for the second")
        self.assertEqual(self.limits(), [150, 160])

    def test_daemons_of_several_machines_serve_their_own(self):
        self.start_daemon()
        other = {**self.environment, "ZEUS_KNOB_DIR": os.path.join(self.directory.name, "other-knobs"),
                 "ZEUS_SIM_NODE": "other"}
        self.sim("start", "--gpus", "2xV100", "--name", "other")
        self.addCleanup(self.run_sim, "stop", "--name", "other")
        _, second = self.second_daemon(other)
        self.create(200)
        self.assertEqual(self.ask_at(second, "POST", "/v1/leases", self.lease(150, **TTL)).status, 201)
        self.assertEqual(self.limits()[0], 200)
        mine, self.environment = self.environment, other
        self.assertEqual(self.limits()[0], 150)
        self.environment = mine
        for socket_path, watts in ((self.socket_path, 200), (second, 150)):
            node = subprocess.run([ZEUS, "lease", "list", "--json"], env={**mine, "ZEUSD_SOCK_PATH": socket_path},
                                  capture_output=True, text=True, timeout=60, check=True).stdout
            self.assertIn(f'"watts": {watts}', node.replace(".0", ""))

    def test_a_knob_that_a_program_holds_itself_is_a_conflict_that_names_it(self):
        if os.geteuid() != 0:
            self.skipTest("turning a knob without the daemon needs root")
        self.start_daemon()
        environment = {name: value for name, value in self.environment.items() if not name.startswith("ZEUSD_")}
        load = self.start_load("--gpu", "0", "--watts", "200")
        profile = subprocess.Popen(
            [ZEUS, "profile", "--gpus", "0", "--limits", "200,150", "--slice", "60s", "--warmup", "1s",
             "--progress", r"step ([\d.]+)", "--", "sh", "-c", "i=0; while :; do i=$((i+1)); echo step $i; sleep 0.1; done"],
            env=environment, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (profile.kill(), profile.communicate()))
        wait_until(lambda: profile.poll() is not None or self.limits()[0] != LIMIT, "the program turns the limit")
        if profile.poll() is not None:
            self.skipTest("the program cannot turn knobs by itself: " + profile.communicate()[1][-300:])
        answer = self.ask("POST", "/v1/leases", self.lease(180, **TTL))
        self.assertIn(answer.status, (409, 503), answer.text)
        self.assertIn(str(profile.pid), answer.text)
        profile.send_signal(signal.SIGINT)
        profile.communicate(timeout=60)
        load.kill()
        load.communicate()
        wait_until(lambda: self.limits()[0] == LIMIT, "the program puts it back")
        self.create(180)


if __name__ == "__main__":
    unittest.main()
