"""zeusd is killed, stopped and started again: living holders keep what they have, of dead ones nothing is left."""

import json
import os
import pathlib
import signal
import subprocess
import unittest

from sim_testing import wait_until
from zeusd_client import UnixConnection
from zeusd_testing import LIMIT, Stream, ZEUSD, ZeusdTestCase


class ZeusdSurvivalTest(ZeusdTestCase):
    def kill_daemon(self):
        self.daemon.process.send_signal(signal.SIGKILL)
        self.daemon.process.wait(60)

    def journal(self):
        return sorted(path.name for path in pathlib.Path(self.environment["ZEUS_KNOB_DIR"]).glob("*.json"))

    def zeusd(self, *arguments):
        return subprocess.run([ZEUSD, *arguments], env=self.environment, capture_output=True, text=True, timeout=60,
                              check=False)

    def test_a_killed_daemon_adopts_the_living_and_restores_what_the_dead_had(self):
        self.start_daemon()
        living, _, kept = self.hold(self.lease(200, gpu=0))
        dead, _, _ = self.hold(self.lease(150, gpu=1))
        self.assertEqual(self.limits(), [200, 150])
        self.kill_daemon()
        dead.kill()
        dead.wait(60)
        self.assertEqual(self.limits(), [200, 150])
        self.start_daemon()
        wait_until(lambda: self.limits() == [200, LIMIT], "the knob of the dead holder is put back")
        view = self.ask("GET", "/v1/leases/" + kept["id"])
        self.assertEqual((view.status, view.json["state"]), (200, "active"), view.text)
        living.kill()
        wait_until(lambda: self.limits() == [LIMIT, LIMIT], "an adopted holder is watched")
        wait_until(lambda: not self.journal(), "the journal is empty")

    def test_a_heartbeat_holder_has_one_ttl_of_grace(self):
        self.start_daemon()
        created = self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=10))
        self.assertEqual(created.status, 201, created.text)
        self.kill_daemon()
        self.start_daemon()
        self.assertEqual(self.ask("POST", f"/v1/leases/{created.json['id']}/heartbeat").status, 204)
        self.assertEqual(self.limits()[0], 200)
        wait_until(lambda: self.limits()[0] == LIMIT, "without another heartbeat it expires")

    def test_sigterm_puts_every_knob_back(self):
        self.start_daemon()
        _, status, _ = self.hold(self.lease(200))
        self.assertEqual(status, 201)
        code, errors = self.daemon.stop()
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])
        self.assertEqual(self.journal(), [])

    def test_sigterm_ends_streams_and_answers_that_wait(self):
        """They end at once: a daemon that waited for its clients would run into the limit of its service manager."""
        self.start_daemon()
        lease = self.ask("POST", "/v1/leases", self.lease(holder="ttl", ttl_seconds=600)).json
        waiting = UnixConnection(self.socket_path)
        self.addCleanup(waiting.close)
        waiting.request("GET", f"/v1/leases/{lease['id']}?after_version=1000000&wait_seconds=30")
        stream = Stream(UnixConnection(self.socket_path), "/v1/stream?events=lease")
        self.addCleanup(stream.close)
        # A client that asks for readings and takes none.
        deaf = UnixConnection(self.socket_path)
        self.addCleanup(deaf.close)
        deaf.request("GET", "/v1/stream?period=0.02")
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual([data["end_reason"] for _, data in stream.events()][-1], "stopped")
        self.assertEqual(json.loads(waiting.getresponse().read())["id"], lease["id"])
        self.assertEqual(self.daemon.process.wait(60), 0)
        self.assertEqual(self.limits()[0], LIMIT)

    def test_sigterm_puts_back_what_could_not_be_put_back_before(self):
        self.start_daemon()
        created = self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=600))
        self.sim("fault", "--gpu", "0", "--kind", "lost")
        ended = self.ask("DELETE", f"/v1/leases/{created.json['id']}?wait=false")
        self.assertEqual(ended.json["state"], "restoring", ended.text)
        wait_until(lambda: self.ask("GET", "/v1/node").json["gpus"][0]["restore_pending"] == 1, "it is tried")
        self.sim("fault", "--gpu", "0", "--kind", "clear")
        # Before the daemon tries again by itself, most likely.
        code, errors = self.daemon.stop()
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])
        self.assertEqual(self.journal(), [])

    def test_leave_keeps_the_leases_for_the_next_start(self):
        self.start_daemon('stop_policy = "leave"\n')
        _, _, lease = self.hold(self.lease(200))
        self.assertEqual(self.daemon.stop()[0], 0)
        self.assertEqual(self.limits()[0], 200)
        self.start_daemon()
        self.assertEqual(self.ask("GET", "/v1/leases/" + lease["id"]).json["state"], "active")
        self.assertEqual(self.limits()[0], 200)

    def test_restore_needs_no_daemon(self):
        self.start_daemon()
        self.hold(self.lease(200))
        self.kill_daemon()
        self.assertEqual(self.limits()[0], 200)
        done = self.zeusd("restore", "--all")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("put back to 250 W", done.stdout)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])
        self.assertIn("nothing to restore", self.zeusd("restore", "--all").stdout)

    def test_standing_leases_are_there_after_a_restart(self):
        if os.geteuid() != 0:
            self.skipTest("standing leases are for administrators")
        self.start_daemon()
        created = self.ask("POST", "/v1/leases", self.lease(200, holder="standing"))
        self.assertEqual(created.status, 201, created.text)
        self.daemon.stop()
        self.start_daemon()
        wait_until(lambda: self.limits()[0] == 200, "a standing lease is applied at the start")
        self.assertEqual(self.ask("DELETE", "/v1/leases/" + created.json["id"]).status, 200)
        self.assertEqual(self.limits()[0], LIMIT)

    def test_the_second_daemon_says_who_the_first_is(self):
        self.start_daemon()
        done = self.zeusd("serve", "--socket-path", self.socket_path)
        self.assertEqual(done.returncode, 6)
        self.assertIn(f"process {self.daemon.process.pid}", done.stderr)

    def test_a_broken_configuration_is_told_before_anything_is_touched(self):
        self.configure("no such key = 1\n")
        done = self.zeusd("serve", "--socket-path", self.socket_path, "--config", self.config_path)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertFalse(os.path.exists(self.socket_path))
        self.assertEqual(self.zeusd("check-config", "--config", self.config_path).returncode, 2)

    def test_check_config_tells_what_a_caller_would_get(self):
        self.configure('[[rule]]\nname = "one"\nmatch = { uids = [1001] }\nscopes = ["gpu-control"]\n')
        done = self.zeusd("check-config", "--config", self.config_path, "--as", "uid:1001")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("gpu-control", done.stdout)
        done = self.zeusd("check-config", "--config", self.config_path, "--as", "uid:1002")
        self.assertNotIn("gpu-control", done.stdout)

    def test_status_shows_the_daemon(self):
        self.start_daemon()
        done = self.zeusd("status", "--socket-path", self.socket_path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(self.uuids()[0], done.stdout)


if __name__ == "__main__":
    unittest.main()
