"""Every scope on every route, as the table of the routes names them; both ways to set a limit obey the same bounds; and
what one user may not do does not become possible by the way in which it is asked."""

import json
import os
import signal
import unittest

from sim_testing import wait_until
from zeusd_client import UnixConnection
from zeusd_testing import LIMIT, RESEARCHER, STRANGER, ZeusdTestCase

SCOPES = ("gpu-read", "gpu-control", "cpu-read", "cpu-control", "job", "budget")
FIRST_USER = 13000
MEMBER = 13100
GROUP = 13200


def user_of(scope):
    return FIRST_USER + SCOPES.index(scope)


@unittest.skipUnless(os.geteuid() == 0, "becoming other users needs root")
class ZeusdAccessTest(ZeusdTestCase):
    def serve_scopes(self):
        """A user for each scope, and STRANGER, who has none."""
        rules = "".join(f'[[rule]]\nname = "{scope}"\nmatch = {{ uids = [{user_of(scope)}] }}\nscopes = ["{scope}"]\n'
                        for scope in SCOPES)
        self.start_daemon("[defaults]\nscopes = []\n" + rules)

    def test_every_scope_on_every_route(self):
        self.serve_scopes()
        uuid = self.uuids()[0]
        checked = 0
        for path, operations in self.ask("GET", "/openapi.json").json["paths"].items():
            for method, operation in operations.items():
                description = operation.get("description", "")
                if not description.startswith("Scope: "):
                    continue
                needed = description.removeprefix("Scope: ")
                target = path.replace("{uuid}", uuid).replace("{id}", "nothing")
                for user in (*map(user_of, SCOPES), STRANGER):
                    with self.subTest(route=f"{method} {path}", user=user):
                        # Streams would not end. A parameter that is unknown is looked at after the rights.
                        status, answer = self.ask_as(user, method.upper(), target + "?no_such_parameter=1")
                        if needed in SCOPES and user == user_of(needed):
                            self.assertEqual(status, 400, answer)
                            self.assertIn("no_such_parameter", answer["error"]["message"])
                        else:
                            self.assertEqual((status, answer["error"]["code"]), (403, "permission_denied"), answer)
                            self.assertIn(needed, answer["error"]["message"])
                        checked += 1
        self.assertGreater(checked, 20 * len(SCOPES))

    def test_every_route_without_a_scope_gives_a_stranger_nothing_of_others(self):
        self.serve_scopes()
        _, status, lease = self.hold(self.lease(200), uid=user_of("gpu-control"))
        self.assertEqual(status, 201, lease)
        uuid = self.uuids()[0]
        self.assertEqual(self.ask("POST", "/v1/jobs", {"id": "slurm:1", "uid": RESEARCHER, "devices": [uuid]}).status, 201)
        request = {"requests": [self.request(250)]}
        for method, target, body, expected in (
                ("GET", "/v1/audit?limit=1000", None, 200),  # Before it has entries of its own.
                ("GET", "/v1/leases", None, 200), ("GET", "/v1/leases/" + lease["id"], None, 404),
                ("DELETE", "/v1/leases/" + lease["id"], None, 404), ("PUT", f"/v1/leases/{lease['id']}/requests", request, 404),
                ("PUT", f"/v1/leases/{lease['id']}/holder", {"pid": 1}, 404),
                ("POST", f"/v1/leases/{lease['id']}/heartbeat", None, 404), ("GET", "/v1/jobs", None, 200),
                ("GET", "/v1/jobs/slurm:1", None, 404), ("GET", "/v1/readings", None, 200), ("GET", "/v1/readings?devices=" + uuid, None, 403),
                ("GET", f"/v1/energy?devices={uuid}&since=0", None, 403), ("GET", f"/v1/stream?devices={uuid}", None, 403),
                ("POST", "/v1/leases", self.lease(150, how="at_most"), 403),
                ("POST", "/v1/leases", self.lease(150, how="at_most") | {"class": "site"}, 403),
                ("POST", "/v1/leases", self.lease(150, how="at_most") | {"class": "job"}, 403),
                ("POST", "/v1/leases", self.lease(150) | {"holder": "standing"}, 403)):
            with self.subTest(method=method, target=target):
                status, answer = self.ask_as(STRANGER, method, target, body)
                self.assertEqual(status, expected, answer)
                for secret in (lease["id"], "slurm:1", f"uid:{user_of('gpu-control')}"):
                    if status == 200:
                        self.assertNotIn(secret, json.dumps(answer))
        self.assertEqual(self.limits(), [200, LIMIT])
        # A lease of nothing is allowed, and is nothing.
        self.assertEqual(self.ask_as(STRANGER, "POST", "/v1/leases", {"requests": []})[0], 201)

    def test_bounds_hold_through_both_ways_and_for_administrators(self):
        self.start_daemon(f"""
[[rule]]
name = "bounded"
match = {{ uids = [{RESEARCHER}] }}
scopes = ["gpu-control"]
gpu_power_limit = {{ min_watts = 150, max_share = 0.9 }}
graphics_clock = {{ min_hertz = 800e6 }}
[bounds]
gpu_power_limit = {{ min_watts = 120 }}
""")
        set_limit = "/gpu/set_power_limit?gpu_ids=0&power_limit_mw={}&block=true"
        for watts in (100, 119.9, 149.9, 225.1, 249):
            self.assertEqual(self.ask_as(RESEARCHER, "POST", "/v1/leases", self.lease(watts))[0], 422, watts)
            self.assertEqual(self.ask_as(RESEARCHER, "POST", set_limit.format(int(watts * 1000)))[0], 400, watts)
        self.assertEqual(self.ask_as(RESEARCHER, "POST", "/v1/leases", self.lease(149, how="at_most"))[0], 422)
        for watts in (100, 119.9):
            self.assertEqual(self.ask("POST", "/v1/leases", self.lease(watts)).status, 422, watts)
            self.assertEqual(self.ask("POST", set_limit.format(int(watts * 1000))).status, 400, watts)
        clocks = "/gpu/set_gpu_locked_clocks?gpu_ids=0&min_clock_mhz=200&max_clock_mhz={}&block=true"
        self.assertEqual(self.ask_as(RESEARCHER, "POST", clocks.format(700))[0], 400)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])
        # An old lease does not become a way below: neither by a change of its requests nor by a budget.
        _, status, lease = self.hold(self.lease(160), uid=RESEARCHER)
        self.assertEqual(status, 201, lease)
        status, answer = self.ask_as(RESEARCHER, "PUT", f"/v1/leases/{lease['id']}/requests",
                                     {"requests": [self.request(140)]})
        self.assertEqual(status, 422, answer)
        caps = {"valid_seconds": 60, "requests": [self.request(110, how="at_most")]}
        self.assertEqual(self.ask("PUT", "/v1/budget", caps).status, 422)
        self.assertEqual(self.limits(), [160, LIMIT])

    def test_stricter_rules_hold_for_leases_of_before_also_after_a_restart(self):
        rule = ('stop_policy = "leave"\n[[rule]]\nname = "members"\nmatch = {{ groups = [{0}] }}\nscopes = ["gpu-control"]\n'
                "gpu_power_limit = {{ min_watts = {1} }}\n")
        self.start_daemon(rule.format(GROUP, 100))
        body = self.lease(140)
        member = ["setpriv", "--reuid", str(MEMBER), "--regid", str(MEMBER), "--groups", str(GROUP)]
        holder, status, lease = self.hold_by(member, body)
        self.assertEqual(status, 201, lease)
        self.assertEqual(self.limits()[0], 140)
        # Neither a reload nor a restart forgets by which group the user had it.
        self.reload(rule.format(GROUP, 120))
        self.assertEqual(self.ask("GET", "/v1/leases/" + lease["id"]).json["state"], "active")
        self.restart(signal.SIGKILL, rule.format(GROUP, 120))
        self.assertEqual(self.ask("GET", "/v1/leases/" + lease["id"]).json["state"], "active")
        self.reload(rule.format(GROUP, 110))
        self.assertEqual(self.ask("GET", "/v1/leases/" + lease["id"]).json["state"], "active")
        # While there is no daemon, the rule becomes stricter than the lease.
        self.restart(signal.SIGTERM, rule.format(GROUP, 150))
        wait_until(lambda: self.limits()[0] == LIMIT, "a lease that the rules forbid is put back at the start")
        ended = self.ask("GET", "/v1/leases/" + lease["id"]).json
        self.assertEqual((ended["state"], ended["end_reason"]), ("ended", "revoked"))
        self.assertIsNone(holder.poll())

    def hold_by(self, prefix, body):
        command = self.client(None, "hold", "POST", "/v1/leases", json.dumps(body))
        return self.hold_command([*prefix, *command])

    def reload(self, configuration):
        self.configure(configuration)
        self.daemon.process.send_signal(signal.SIGHUP)
        line = ""
        while "was read again" not in line:
            line = self.daemon.process.stderr.readline()
            self.assertTrue(line, "the daemon has ended")

    def restart(self, number, configuration):
        self.daemon.stop(number)
        self.start_daemon(configuration)

    def test_a_budget_survives_a_reload_and_its_validity_is_checked(self):
        budget = user_of("budget")
        self.serve_scopes()
        caps = {"valid_seconds": 3000, "requests": [self.request(180, how="at_most")]}
        for valid in (-1, 0, 0.5, 1e9, 1e308, "60", None):
            status, answer = self.ask_as(budget, "PUT", "/v1/budget", caps | {"valid_seconds": valid})
            self.assertEqual(status, 400, (valid, answer))
        for name in ("x" * 300, "a\nb", 7):
            self.assertEqual(self.ask_as(budget, "PUT", "/v1/budget", caps | {"name": name})[0], 400, name)
        self.assertEqual(self.ask_as(budget, "PUT", "/v1/budget", caps | {"requests": [self.request(180)]})[0], 400)
        status, lease = self.ask_as(budget, "PUT", "/v1/budget", caps)
        self.assertEqual(status, 201, lease)
        self.assertGreater(lease["expires_in_seconds"], 2900)
        # The next one replaces it, its validity included.
        status, lease = self.ask_as(budget, "PUT", "/v1/budget", caps | {"valid_seconds": 600})
        self.assertEqual(status, 200, lease)
        self.assertLess(lease["expires_in_seconds"], 601)
        self.reload("[defaults]\nscopes = [\"gpu-read\"]\n[[rule]]\nname = \"budget\"\n"
                    f"match = {{ uids = [{budget}] }}\nscopes = [\"budget\"]\n")
        self.assertEqual(self.limits()[0], 180)
        # Others cannot take it back.
        self.assertEqual(self.ask_as(STRANGER, "DELETE", "/v1/leases/" + lease["id"])[0], 404)
        # Without renewal it ends.
        self.assertEqual(self.ask_as(budget, "PUT", "/v1/budget", caps | {"valid_seconds": 1})[0], 200)
        wait_until(lambda: self.limits()[0] == LIMIT, "a budget that is not renewed ends")

    def test_a_job_that_does_not_run_holds_nothing(self):
        self.start_daemon()
        body = self.lease(200) | {"holder": "job", "job": "slurm:7"}
        answer = self.ask("POST", "/v1/leases", body)
        self.assertEqual((answer.status, answer.json["error"]["code"]), (400, "invalid_argument"), answer.text)
        self.assertIn("slurm:7", answer.json["error"]["message"])
        job = {"id": "slurm:7", "uid": RESEARCHER, "devices": [self.uuids()[0]], "pids": [os.getpid()]}
        self.assertEqual(self.ask("POST", "/v1/jobs", job).status, 201)
        self.assertEqual(self.ask("POST", "/v1/leases", body).status, 201)
        self.assertEqual(self.limits()[0], 200)
        self.daemon.stop(signal.SIGKILL)
        self.start_daemon()
        self.assertEqual(self.limits()[0], 200, "the job still runs")
        self.daemon.stop(signal.SIGKILL)
        os.unlink(os.path.join(self.folder, "jobs.json"))
        self.start_daemon()
        wait_until(lambda: self.limits()[0] == LIMIT, "nothing would ever end a lease of a job that nobody knows")

    def test_zeus_hold_chooses_the_holder_of_a_change(self):
        self.start_daemon(f'[[rule]]\nname = "r"\nmatch = {{ uids = [{RESEARCHER}] }}\nscopes = ["gpu-control"]\n')
        target = "/gpu/set_power_limit?gpu_ids={}&power_limit_mw=200000&block=true"
        self.assertEqual(self.ask("POST", target.format(0), headers={"Zeus-Hold": "forever"}).status, 200)
        kinds = lambda: {lease["holder"]["kind"] for lease in self.ask("GET", "/v1/leases").json["leases"]
                         if lease["state"] == "active"}
        self.assertEqual(kinds(), {"standing"})
        # An administrator may want it to end with the process.
        connection = UnixConnection(self.socket_path)
        self.addCleanup(connection.close)
        answer = self.ask("POST", target.format(1), headers={"Zeus-Hold": "process"}, connection=connection)
        self.assertEqual(answer.status, 200, answer.text)
        self.assertEqual(kinds(), {"standing", "process"})
        self.daemon.stop()
        self.assertEqual(self.limits(), [200, LIMIT], "a standing change outlasts the daemon")
        self.start_daemon()
        self.assertEqual(self.limits()[0], 200)
        # Its reset is the limit from before.
        self.assertEqual(self.ask("POST", f"/gpu/set_power_limit?gpu_ids=0&power_limit_mw={LIMIT * 1000}&block=true").status,
                         200)
        self.assertEqual(self.limits(), [LIMIT, LIMIT])
        # Others get no standing change by asking for one.
        script = ("import sys; sys.path.insert(0, sys.argv[1]); from client import UnixConnection\n"
                  "c = UnixConnection(sys.argv[2])\n"
                  "c.request('POST', sys.argv[3], headers={'Zeus-Hold': 'forever'}); print(c.getresponse().status)")
        self.client(None, "ask")  # It copies the module to where others may read it.
        status = self.run_as(RESEARCHER, ["/usr/bin/python3", "-c", script, self.folder, self.socket_path, target.format(0)])
        self.assertEqual(status.strip(), "403")
        self.assertEqual(self.limits(), [LIMIT, LIMIT])


@unittest.skipUnless(os.geteuid() == 0, "becoming other users needs root")
class ZeusdHandOverTest(ZeusdTestCase):
    """A lease goes from one process to another of the same user."""

    def setUp(self):
        super().setUp()
        self.start_daemon(f'[[rule]]\nname = "r"\nmatch = {{ uids = [{RESEARCHER}] }}\nscopes = ["gpu-read", "gpu-control"]\n')

    def sleeper(self, uid, *prefix):
        process = self.started(["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", *prefix, "sleep", "600"])
        wait_until(lambda: os.path.exists(f"/proc/{process.pid}") and os.stat(f"/proc/{process.pid}").st_uid == uid,
                   "it becomes the user")
        return process

    def test_the_lease_lives_as_long_as_its_new_holder(self):
        holder, status, lease = self.hold(self.lease(200), uid=RESEARCHER)
        self.assertEqual(status, 201, lease)
        child = self.sleeper(RESEARCHER)
        path = f"/v1/leases/{lease['id']}/holder"
        status, view = self.ask_as(RESEARCHER, "PUT", path, {"pid": child.pid})
        self.assertEqual((status, view["holder"]["pid"]), (200, child.pid), view)
        holder.kill()
        holder.wait()
        self.assertEqual(self.ask("GET", f"/v1/leases/{lease['id']}").json["state"], "active")
        self.daemon.stop(signal.SIGKILL)
        self.start_daemon()
        self.assertEqual(self.limits()[0], 200, "also over a restart")
        child.kill()
        child.wait()
        wait_until(lambda: self.limits()[0] == LIMIT, "the end of the new holder ends it")

    def test_nobody_elses_process_becomes_a_holder(self):
        _, status, lease = self.hold(self.lease(200), uid=RESEARCHER)
        self.assertEqual(status, 201, lease)
        path = f"/v1/leases/{lease['id']}/holder"
        for pid in (self.sleeper(STRANGER).pid, 1, self.daemon.process.pid):
            status, answer = self.ask_as(RESEARCHER, "PUT", path, {"pid": pid})
            self.assertEqual((status, answer["error"]["code"]), (403, "permission_denied"), answer)
        for pid in (2**22 + 5, 2**62, -1, 0):
            self.assertEqual(self.ask_as(RESEARCHER, "PUT", path, {"pid": pid})[0], 400, pid)
        self.assertEqual(self.ask_as(STRANGER, "PUT", path, {"pid": os.getpid()})[0], 404)
        self.assertEqual(self.limits()[0], 200)

    def test_a_number_is_that_of_the_callers_pid_namespace(self):
        unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        # The first process of the namespace takes a lease, starts another and hands the lease over to "2".
        script = ("import json, subprocess, sys, time\n"
                  "sys.path.insert(0, sys.argv[1])\n"
                  "from client import UnixConnection\n"
                  "child = subprocess.Popen(['sleep', '600'])\n"
                  "c = UnixConnection(sys.argv[2])\n"
                  "def ask(*words):\n"
                  "    c.request(*words); a = c.getresponse(); text = a.read().decode(); return a.status, json.loads(text)\n"
                  "status, lease = ask('POST', '/v1/leases', sys.argv[3])\n"
                  "status, view = ask('PUT', '/v1/leases/' + lease['id'] + '/holder', json.dumps({'pid': child.pid}))\n"
                  "print(status, child.pid, json.dumps(view), flush=True)\n"
                  "sys.stdin.readline()\n"
                  "child.kill(); child.wait()\n"
                  "sys.stdin.readline()\n")
        self.client(None, "ask")
        process = self.started([*unshare, "setpriv", "--reuid", str(RESEARCHER), "--regid", str(RESEARCHER), "--clear-groups",
                                "/usr/bin/python3", "-c", script, self.folder, self.socket_path, json.dumps(self.lease(200))])
        line = process.stdout.readline()
        if not line:
            self.skipTest("pid namespaces cannot be made here")
        status, inner, view = line.split(" ", 2)
        outer = json.loads(view)["holder"]["pid"]
        self.assertEqual((int(status), int(inner)), (200, 2), view)
        with open(f"/proc/{outer}/cmdline", encoding="utf-8") as file:
            self.assertTrue(file.read().startswith("sleep"))
        self.assertEqual(self.limits()[0], 200)
        process.stdin.write("\n")
        process.stdin.flush()
        wait_until(lambda: self.limits()[0] == LIMIT, "the child inside was the holder")
        self.assertIsNone(process.poll())


@unittest.skipUnless(os.geteuid() == 0, "becoming other users needs root")
class ZeusdContainedRootTest(ZeusdTestCase):
    """Root of a container sees nothing of what the machine's root does."""

    def test_lists_logs_and_streams_of_root_are_for_root(self):
        self.start_daemon()
        created = self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=600))
        self.assertEqual(created.status, 201, created.text)
        contained = ["unshare", "--mount"]
        for target in ("/v1/leases", "/v1/audit?limit=1000"):
            status, answer = self.ask_by(contained, "GET", target)
            self.assertEqual((status, list(answer.values())), (200, [[]]), answer)
        status, who = self.ask_by(contained, "GET", "/v1/whoami")
        self.assertEqual((who["contained"], who["uid"]), (True, 0), who)
        self.assertNotEqual(who["subject"], "uid:0")
        # Its stream has knobs, and no leases of others.
        script = ("import sys; sys.path.insert(0, sys.argv[1]); from client import UnixConnection\n"
                  "c = UnixConnection(sys.argv[2]); c.request('GET', '/v1/stream?events=lease,knob')\n"
                  "r = c.getresponse(); print(r.status, flush=True)\n"
                  "for line in r: print(line.decode().strip(), flush=True)\n")
        self.client(None, "ask")
        follower = self.started([*contained, "/usr/bin/python3", "-c", script, self.folder, self.socket_path])
        self.assertEqual(follower.stdout.readline().strip(), "200")
        self.assertEqual(self.ask("DELETE", "/v1/leases/" + created.json["id"]).status, 200)
        self.assertEqual(self.ask("POST", "/v1/leases", self.lease(170, holder="ttl", ttl_seconds=600)).status, 201)
        seen = ""
        while '"watts":170' not in seen.replace(" ", ""):
            line = follower.stdout.readline()
            self.assertTrue(line, "the stream has ended")
            seen += line
        self.assertNotIn("event: lease", seen)


if __name__ == "__main__":
    unittest.main()
