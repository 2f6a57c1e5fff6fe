"""Leases of zeusd from end to end: who gets one, what holds meanwhile, and that the knob is put back."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

from sim_testing import wait_until
from zeusd_client import UnixConnection
from zeusd_testing import CONFIGURATION, LIMIT, LOWEST, RESEARCHER, STRANGER, Stream, ZEUSD, ZeusdTestCase


# A vendor's script: it sets a limit as it is told, and notes that.
SET_LIMIT = """
import ctypes, sys

nvml, device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
with open(sys.argv[1], "a", encoding="utf-8") as notes:
    print(*sys.argv[2:], file=notes)
nvml.nvmlInit_v2()
nvml.nvmlDeviceGetHandleByIndex_v2(int(sys.argv[2]), ctypes.byref(device))
sys.exit(nvml.nvmlDeviceSetPowerManagementLimit(device, int(sys.argv[3])))
"""


@unittest.skipUnless(os.geteuid() == 0, "becoming other users needs root")
class ZeusdTest(ZeusdTestCase):
    def setUp(self):
        super().setUp()
        self.start_daemon(CONFIGURATION)

    def error(self, answer, status, code):
        self.assertEqual(answer.status, status, answer.text)
        self.assertEqual(answer.json["error"]["code"], code, answer.text)
        return answer.json["error"]

    def test_the_node_names_its_gpus_in_pci_order(self):
        gpus = self.ask("GET", "/v1/node").json["gpus"]
        self.assertEqual(len(gpus), 2)
        for index, gpu in enumerate(gpus):
            self.assertTrue(gpu["uuid"].startswith("GPU-"), gpu)
            self.assertEqual(gpu["index"], index)
            self.assertEqual(gpu["ranges"]["gpu_power_limit"]["lowest"], {"watts": LOWEST})
            self.assertIn("gpu_power_limit", [knob["knob"] for knob in gpu["knobs"]])
            self.assertEqual(gpu["power_limit"]["default_watts"], LIMIT)
            self.assertIsInstance(gpu["persistence"], bool)
            clocks = gpu["ranges"]["graphics_clock"]
            self.assertEqual((clocks["steps"][0], clocks["steps"][-1]), (clocks["lowest"], clocks["highest"]))
        addresses = [gpu["pci_address"] for gpu in gpus]
        self.assertEqual(addresses, sorted(addresses))

    def test_a_lease_sets_the_limit_and_its_end_puts_it_back(self):
        created = self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=600))
        self.assertEqual(created.status, 201, created.text)
        self.assertEqual(created.json["state"], "active")
        self.assertEqual(created.json["knobs"][0]["effective"], {"watts": 200})
        self.assertEqual(created.json["knobs"][0]["enforced"], {"watts": 200})
        self.assertEqual(self.limits(), [200, LIMIT])
        path = "/v1/leases/" + created.json["id"]
        changed = self.ask("PUT", path + "/requests", {"requests": [self.request(150)]})
        self.assertEqual((changed.status, changed.json["knobs"][0]["enforced"]), (200, {"watts": 150}), changed.text)
        self.assertEqual(self.ask("POST", path + "/heartbeat").status, 204)
        ended = self.ask("DELETE", path)
        self.assertEqual((ended.status, ended.json["state"]), (200, "ended"), ended.text)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])
        self.assertEqual(self.ask("POST", path + "/heartbeat").status, 410)

    def test_a_killed_holder_leaves_no_limit_behind(self):
        holder, status, lease = self.hold(self.lease(180, gpu=1))
        self.assertEqual((status, lease["holder"]["pid"]), (201, holder.pid), lease)
        self.assertEqual(self.limits(), [LIMIT, 180])
        holder.send_signal(signal.SIGKILL)
        holder.wait(60)
        wait_until(lambda: self.limits() == [LIMIT, LIMIT], "the limit of a killed holder is put back")

    def test_the_end_of_a_connection_ends_what_it_holds(self):
        connection = UnixConnection(self.socket_path)
        created = self.ask("POST", "/v1/leases", self.lease(190, holder="connection"), connection=connection)
        self.assertEqual(created.status, 201, created.text)
        self.assertEqual(self.limits()[0], 190)
        connection.close()
        wait_until(lambda: self.limits()[0] == LIMIT, "the limit of a closed connection is put back")

    def test_a_value_out_of_bounds_is_refused(self):
        self.error(self.ask("POST", "/v1/leases", self.lease(LOWEST - 1)), 422, "invalid_argument")
        status, body = self.ask_as(RESEARCHER, "POST", "/v1/leases", self.lease(149))
        self.assertEqual(status, 422, body)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])

    def test_a_malformed_request_is_refused(self):
        self.assertEqual(self.ask("POST", "/v1/leases", {"requests": 1}).status, 400)
        self.assertEqual(self.ask("POST", "/v1/leases", self.lease() | {"unknown": 1}).status, 400)
        self.assertEqual(self.ask("GET", "/v1/readings?unknown=1").status, 400)
        self.assertEqual(self.ask("GET", "/v1/unknown").status, 404)

    def test_who_has_no_scope_gets_nothing(self):
        status, body = self.ask_as(STRANGER, "POST", "/v1/leases", self.lease(200))
        self.assertEqual((status, body["error"]["code"]), (403, "permission_denied"), body)
        status, body = self.ask_as(STRANGER, "POST", "/v1/restore", {"all": True})
        self.assertEqual(status, 403, body)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])

    def test_a_knob_that_another_user_holds_is_a_conflict(self):
        _, status, first = self.hold(self.lease(200), uid=RESEARCHER)
        self.assertEqual(status, 201, first)
        error = self.error(self.ask("POST", "/v1/leases", self.lease(180, holder="ttl", ttl_seconds=60)), 409,
                           "conflict")
        self.assertEqual((error["device"], error["knob"]), (self.uuids()[0], "gpu_power_limit"))
        self.assertEqual(self.limits()[0], 200)
        # A cap is no conflict: the lower value holds.
        capped = self.ask("POST", "/v1/leases", self.lease(180, how="at_most", holder="ttl", ttl_seconds=60))
        self.assertEqual(capped.status, 201, capped.text)
        self.assertEqual(self.limits()[0], 180)
        self.ask("DELETE", "/v1/leases/" + capped.json["id"])
        self.assertEqual(self.limits()[0], 200)

    def test_the_leases_of_others_do_not_exist(self):
        created = self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=600))
        path = "/v1/leases/" + created.json["id"]
        for method, target in (("GET", path), ("DELETE", path), ("POST", path + "/heartbeat")):
            status, body = self.ask_as(RESEARCHER, method, target)
            self.assertEqual(status, 404, (method, body))
        self.assertEqual(self.ask_as(RESEARCHER, "GET", "/v1/leases")[1], {"leases": []})
        self.assertEqual(len(self.ask("GET", "/v1/leases").json["leases"]), 1)
        self.assertEqual(self.limits()[0], 200)

    def test_a_reload_revokes_what_the_new_rules_forbid(self):
        stream = Stream(UnixConnection(self.socket_path), "/v1/stream?events=lease")
        self.addCleanup(stream.close)
        _, status, lease = self.hold(self.lease(200), uid=RESEARCHER)
        self.assertEqual(status, 201, lease)
        self.configure("this is no configuration")
        self.daemon.process.send_signal(signal.SIGHUP)
        self.configure('[defaults]\nscopes = ["gpu-read"]\n')
        self.daemon.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.limits()[0] == LIMIT, "a revoked lease holds nothing")
        for name, data in stream.events():
            if name == "lease" and data["state"] == "ended":
                self.assertEqual((data["id"], data["end_reason"]), (lease["id"], "revoked"))
                break
        self.assertEqual(self.ask_as(RESEARCHER, "POST", "/v1/leases", self.lease())[0], 403)

    def test_a_broken_configuration_is_refused_and_the_old_one_goes_on(self):
        _, status, lease = self.hold(self.lease(200), uid=RESEARCHER)
        self.assertEqual(status, 201, lease)
        self.configure("[defaults]\nscopes = 7\n")
        self.daemon.process.send_signal(signal.SIGHUP)
        line = ""
        while "stays in force" not in line:
            line = self.daemon.process.stderr.readline()
            self.assertTrue(line, "the daemon has ended")
        self.assertEqual(self.limits()[0], 200)

    def test_readings_energy_and_metrics_are_there(self):
        readings = self.ask("GET", "/v1/readings").json
        self.assertEqual([one["device"] for one in readings["devices"]][:2], self.uuids())
        energy = self.ask("GET", f"/v1/energy?since={readings['at_seconds']}")
        self.assertEqual((energy.status, len(energy.json["devices"]) >= 2), (200, True), energy.text)
        for path in ("/healthz", "/readyz", "/openapi.json", "/v1/audit"):
            self.assertEqual(self.ask("GET", path).status, 200, path)
        self.assertIn("/v1/leases", self.ask("GET", "/openapi.json").json["paths"])
        self.assertIn("zeus_daemon_requests_total", self.ask("GET", "/metrics").text)

    def looks(self, seconds):
        """How often the recorder has woken up within the time: once a second at rest, else many times."""
        for task in pathlib.Path(f"/proc/{self.daemon.process.pid}/task").iterdir():
            if (task / "comm").read_text() == "zeus-recorder\n":
                before = int((task / "schedstat").read_text().split()[2])
                time.sleep(seconds)
                return int((task / "schedstat").read_text().split()[2]) - before
        raise AssertionError("there is no recorder")

    def test_the_recorder_rests_until_somebody_wants_readings(self):
        self.assertLess(self.looks(2), 10)
        self.assertEqual(self.ask("GET", "/v1/readings").status, 200)
        wait_until(lambda: self.looks(2) > 10, "the recorder looks at the devices")

    def test_the_recorder_does_not_rest_while_a_board_is_followed(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as board:
            board.connect(os.path.join(self.folder, "board.sock"))
            self.assertTrue(board.recv(1 << 16))
            wait_until(lambda: self.looks(2) > 10, "the recorder looks at the devices")
        wait_until(lambda: self.looks(2) < 10, "the recorder rests again")

    def test_without_a_journal_the_daemon_is_not_ready(self):
        journal = pathlib.Path(self.environment["ZEUS_KNOB_DIR"])
        aside = journal.with_name("aside")
        journal.rename(aside)
        self.assertIn("journal of knobs", self.error(self.ask("GET", "/readyz"), 503, "unavailable")["message"])
        aside.rename(journal)
        self.assertEqual(self.ask("GET", "/readyz").status, 200)

    def test_the_stream_begins_with_readings_and_tells_of_knobs(self):
        stream = Stream(UnixConnection(self.socket_path), "/v1/stream?events=reading,knob&period=60")
        self.addCleanup(stream.close)
        events = stream.events()
        name, readings = next(events)
        self.assertEqual(name, "reading")
        self.assertEqual([one["device"] for one in readings["devices"]][:2], self.uuids())
        self.assertEqual(set(readings), set(self.ask("GET", "/v1/readings").json))
        created = self.ask("POST", "/v1/leases", self.lease(170, holder="ttl", ttl_seconds=60))
        self.assertEqual(created.status, 201, created.text)
        for name, data in events:
            if name == "knob" and data["effective"] == {"watts": 170}:
                self.assertEqual(data["device"], self.uuids()[0])
                break

    def test_commands_set_limits_instead_of_the_driver(self):
        folder = pathlib.Path(self.folder)
        script, notes, overrides = folder / "set.py", folder / "notes", folder / "overrides.toml"
        script.write_text(SET_LIMIT)
        overrides.write_text(f'[set_power_limit]\ncommands = ["{sys.executable} {script} {notes} {{gpu_id}} {{power_limit_mw}}"]\n')
        self.daemon.stop()
        self.start_daemon(None, "--gpu-command-overrides", str(overrides))
        created = self.ask("POST", "/v1/leases", self.lease(200, gpu=1, holder="ttl", ttl_seconds=600))
        self.assertEqual(created.status, 201, created.text)
        self.assertEqual(self.limits(), [LIMIT, 200])
        self.assertEqual(self.ask("DELETE", "/v1/leases/" + created.json["id"]).status, 200)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])
        self.assertEqual(notes.read_text(), f"1 200000\n1 {LIMIT * 1000}\n")
        # A command that does nothing is noticed, and nothing is held.
        self.daemon.stop()
        overrides.write_text('[set_power_limit]\ncommands = ["true"]\n')
        self.start_daemon(None, "--gpu-command-overrides", str(overrides))
        refused = self.error(self.ask("POST", "/v1/leases", self.lease(200)), 503, "unavailable")
        self.assertIn("ended without an error, but the limit of", refused["message"])
        overrides.chmod(0o666)
        self.daemon.stop()
        done = subprocess.run([ZEUSD, "serve", "--socket-path", self.socket_path, "--gpu-command-overrides", overrides],
                              env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("may be written by others", done.stderr)

    def test_a_budget_caps_everybody(self):
        created = self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=600))
        caps = {"valid_seconds": 60, "requests": [self.request(150, how="at_most")]}
        self.assertEqual(self.ask("PUT", "/v1/budget", caps).status, 201)
        self.assertEqual(self.limits()[0], 150)
        caps["requests"] = [self.request(175, how="at_most")]
        self.assertEqual(self.ask("PUT", "/v1/budget", caps).status, 200)
        self.assertEqual(self.limits()[0], 175)
        view = self.ask("GET", "/v1/leases/" + created.json["id"]).json
        self.assertEqual(view["knobs"][0]["bound_by"]["class"], "site", view)
        self.assertEqual(self.ask_as(RESEARCHER, "PUT", "/v1/budget", caps)[0], 403)

    def test_a_budget_that_is_not_renewed_falls_back(self):
        caps = {"valid_seconds": 1, "fallback_watts": 120, "requests": [self.request(200, how="at_most")]}
        created = self.ask("PUT", "/v1/budget", caps)
        self.assertEqual(created.status, 201, created.text)
        path = "/v1/leases/" + created.json["id"]
        wait_until(lambda: self.limits()[0] == 120, "the fallback holds when no budget comes")
        fallen = self.ask("GET", path).json
        self.assertEqual((fallen["fell_back"], fallen["expires_in_seconds"]), (True, None), fallen)
        # It holds over a crash of the daemon, and ends with the next budget.
        self.daemon.process.kill()
        self.daemon.process.wait(60)
        self.start_daemon()
        self.assertEqual(self.limits()[0], 120)
        renewed = self.ask("PUT", "/v1/budget", caps | {"valid_seconds": 600})
        self.assertEqual((renewed.status, renewed.json["id"]), (200, created.json["id"]), renewed.text)
        self.assertEqual(self.limits()[0], 200)
        self.error(self.ask("PUT", "/v1/budget", caps | {"fallback_watts": LOWEST - 1}), 422, "invalid_argument")
        self.error(self.ask("PUT", "/v1/budget", caps | {"valid_seconds": 0}), 400, "invalid_argument")
        self.assertEqual(self.limits()[0], 200)

    def test_jobs_that_share_a_gpu_get_its_energy_by_the_work_of_their_processes(self):
        gpu = self.uuids()[0]
        for number in (1, 2):
            load = self.start_load("--gpu", "0", "--watts", "90")
            job = {"id": f"slurm:{number}", "pids": [load.pid], "devices": [gpu]}
            self.assertEqual(self.ask("POST", "/v1/jobs", job).status, 201)

        def jobs():
            return [self.ask("GET", f"/v1/jobs/slurm:{number}").json for number in (1, 2)]

        first = [job["energy_joules"] for job in jobs()]
        wait_until(lambda: all(job["energy_joules"] > before + 100 for job, before in zip(jobs(), first)),
                   "both jobs get energy")
        now = jobs()
        used = [job["energy_joules"] - before for job, before in zip(now, first)]
        self.assertLess(max(used), 2 * min(used), used)
        self.assertTrue(all(job["shares"][0]["shared"] for job in now), now)
        self.assertTrue(all(job["cpu"]["seconds"] >= 0 for job in now), now)
        metrics = self.ask("GET", "/metrics").text
        for name in ("zeus_job_energy_joules_total", "zeus_shared_idle_joules_total", "zeus_job_cpu_seconds_total"):
            self.assertIn(f"\n{name}{{", metrics)

    def test_the_metrics_tell_how_long_drivers_and_the_return_of_knobs_take(self):
        created = self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=60))
        self.assertEqual(self.ask("DELETE", "/v1/leases/" + created.json["id"]).status, 200)
        metrics = self.ask("GET", "/metrics").text
        self.assertIn("\nzeus_knob_restore_seconds_count 1\n", metrics)
        calls = re.search(r'\nzeus_daemon_device_call_seconds_count{device="gpu:0"} (\d+)\n', metrics)
        self.assertGreater(int(calls.group(1)), 3, metrics)

    def test_a_pod_has_its_energy_under_its_own_name(self):
        pod = {"id": "pod:7b1c", "uid": RESEARCHER, "devices": [self.uuids()[1]],
               "labels": {"namespace": "team-a", "pod": "bert-0", "container": "train"}}
        self.assertEqual(self.ask("POST", "/v1/jobs", pod).status, 201)
        self.assertIn('zeus_pod_energy_joules_total{namespace="team-a",pod="bert-0",container="train",uuid="'
                      + self.uuids()[1] + '"}', self.ask("GET", "/metrics").text)

    def test_a_group_that_comes_late_is_a_warning_and_its_rule_nobody_s(self):
        self.configure(CONFIGURATION + '[[rule]]\nmatch = { groups = ["no-such-group"] }\nscopes = ["admin"]\n')
        self.daemon.process.send_signal(signal.SIGHUP)
        line = ""
        while "no group \"no-such-group\"" not in line:
            line = self.daemon.process.stderr.readline()
            self.assertTrue(line, "the daemon has ended")
        self.assertEqual(self.ask_as(STRANGER, "GET", "/v1/whoami")[1]["scopes"], ["gpu-read"])

    def test_a_job_gets_the_energy_of_its_devices(self):
        job = {"id": "slurm:1", "uid": RESEARCHER, "devices": [self.uuids()[0]]}
        self.assertEqual(self.ask("POST", "/v1/jobs", job).status, 201)
        self.assertEqual(self.ask_as(RESEARCHER, "GET", "/v1/jobs/slurm:1")[0], 200)
        self.assertEqual(self.ask_as(STRANGER, "GET", "/v1/jobs/slurm:1")[0], 404)
        self.assertEqual(self.ask_as(STRANGER, "DELETE", "/v1/jobs/slurm:1")[0], 403)
        ended = self.ask("DELETE", "/v1/jobs/slurm:1")
        self.assertEqual(ended.status, 200, ended.text)

    def test_other_programs_see_which_job_has_which_gpu(self):
        self.daemon.stop()
        folder = pathlib.Path(self.folder, "jobs")

        def shown():
            return {file.name: file.read_text() for file in folder.iterdir()}

        self.start_daemon(None, "--job-mapping-dir", str(folder))
        self.assertEqual(shown(), {})
        gpus = self.uuids()
        self.assertEqual(self.ask("POST", "/v1/jobs", {"id": "slurm:zeus.41", "uid": 0, "devices": gpus}).status, 201)
        self.assertEqual(self.ask("POST", "/v1/jobs", {"id": "nightly", "uid": 0, "devices": gpus[1:]}).status, 201)
        self.assertEqual(shown(), {"0": "41\n", "1": "41\nnightly\n"})
        self.daemon.stop(signal.SIGKILL)
        (folder / "0").write_text("of before\n")
        self.start_daemon(None, "--job-mapping-dir", str(folder))
        self.assertEqual(shown(), {"0": "41\n", "1": "41\nnightly\n"})
        self.assertEqual(self.ask("DELETE", "/v1/jobs/slurm:41").status, 200)
        self.assertEqual(shown(), {"1": "nightly\n"})
        self.daemon.stop()
        folder.chmod(0o777)
        with self.assertRaisesRegex(AssertionError, "may be written by others"):
            self.start_daemon(None, "--job-mapping-dir", str(folder))

    def test_what_the_driver_refuses_is_503_and_not_held(self):
        self.daemon.stop()
        self.start_daemon(prefix=["setpriv", "--bounding-set", "-sys_admin"])
        answer = self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=600))
        error = self.error(answer, 503, "unavailable")
        self.assertIn("the driver refused", error["message"])
        self.assertEqual({lease["state"] for lease in self.ask("GET", "/v1/leases").json["leases"]}, {"ended"})
        answer = self.ask("POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=200000&block=true")
        self.assertEqual((answer.status, set(answer.json["errors"])), (403, {"0"}), answer.text)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])

    def test_a_device_in_maintenance_is_503_and_gets_its_leases_back(self):
        created = self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=600))
        self.assertEqual(created.status, 201, created.text)
        path = f"/v1/gpus/{self.uuids()[0]}/maintenance"
        begun = self.ask("POST", path, {"seconds": 600})
        self.assertEqual(begun.status, 200, begun.text)
        self.assertEqual(self.limits()[0], LIMIT)
        lease = "/v1/leases/" + created.json["id"]
        self.assertEqual(self.ask("GET", lease).json["state"], "suspended")
        self.assertEqual(self.ask("POST", "/v1/leases", self.lease(150, how="at_most")).status, 503)
        self.assertEqual(self.ask("DELETE", path).status, 200)
        wait_until(lambda: self.ask("GET", lease).json["state"] == "active", "the lease is applied again")
        self.assertEqual(self.limits()[0], 200)

    def test_too_many_changes_are_429(self):
        self.daemon.stop()
        self.start_daemon('[defaults]\nscopes = ["gpu-control"]\nleases = 2\n')
        for gpu in (0, 1):
            _, status, lease = self.hold(self.lease(200, gpu=gpu), uid=STRANGER)
            self.assertEqual(status, 201, lease)
        status, body = self.ask_as(STRANGER, "POST", "/v1/leases", self.lease(240, how="at_most"))
        self.assertEqual(status, 429, body)

    def test_refusals_and_changes_are_in_the_audit_log(self):
        self.ask_as(STRANGER, "POST", "/v1/restore", {"all": True})
        self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=60))
        entries = self.ask("GET", "/v1/audit?limit=1000").json["entries"]
        events = {entry["event"] for entry in entries}
        self.assertIn("refused", events)
        self.assertIn("knob set", events)
        status, body = self.ask_as(STRANGER, "GET", "/v1/audit")
        self.assertEqual(status, 200)
        self.assertEqual({entry["subject"] for entry in body["entries"]}, {f"uid:{STRANGER}"})
        self.daemon.stop()
        with open(self.audit_path, encoding="utf-8") as log:
            self.assertIn("knob set", {json.loads(line)["event"] for line in log})


if __name__ == "__main__":
    unittest.main()
