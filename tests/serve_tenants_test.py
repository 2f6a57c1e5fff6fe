"""Tokens of `zeus serve`: what each may do, in which name space, how much, and how often it may be wrong."""

import os
import signal
import subprocess
import unittest

from serve_testing import JOB, REPORT, ZEUS, ServeTestCase
from sim_testing import wait_until


class TokenTestCase(ServeTestCase):
    def new_token(self, name, *arguments):
        made = subprocess.run([ZEUS, "serve", "--tokens", self.path("tokens"), "--new-token", name,
                               *arguments], capture_output=True, text=True, timeout=60)
        self.assertEqual(made.returncode, 0, made.stderr)
        return made.stdout.strip()

    def serve_tokens(self, *arguments):
        return self.serve("--no-access-log", "--tokens", self.path("tokens"), *arguments)

    def metric(self, server, token, name):
        text = server.ask("GET", "/metrics", token=token).text
        return sum(float(line.split()[-1]) for line in text.splitlines()
                   if line.startswith(name))


class NameSpaceTest(TokenTestCase):
    def setUp(self):
        super().setUp()
        self.blue = self.new_token("blue", "--namespace", "blue")
        self.red = self.new_token("red", "--namespace", "red")
        self.viewer = self.new_token("viewer", "--namespace", "blue", "--read-only")
        self.plain = self.new_token("plain")
        self.admin = self.new_token("root", "--admin")

    def test_tenants_do_not_see_each_other(self):
        server = self.serve_tokens()
        for token, seed in ((self.blue, 1), (self.red, 2), (self.plain, 3)):
            # The same id is another job in each name space.
            created = server.ask("POST", "/v1/jobs", {**JOB, "seed": seed}, token=token)
            self.assertEqual(created.status, 201, created.text)
            self.assertEqual(created.json["spec"]["id"], "mnist")
        server.ask("POST", "/v1/jobs", {**JOB, "id": "secret"}, token=self.red)
        for token, seed, ids in ((self.blue, 1, ["mnist"]), (self.viewer, 1, ["mnist"]),
                                 (self.red, 2, ["mnist", "secret"]), (self.plain, 3, ["mnist"])):
            jobs = server.ask("GET", "/v1/jobs", token=token).json["jobs"]
            self.assertEqual([job["spec"]["id"] for job in jobs], ids)
            self.assertEqual(jobs[0]["seed"], seed)
        for path in ("/v1/jobs/secret", "/v1/jobs/red%2Fsecret", "/v1/jobs/secret/trials",
                     "/v1/jobs/red%2Fsecret/events", "/v1/jobs/red%2Fmnist/arms",
                     "/v1/jobs/red%2Fsecret/savings", "/v1/jobs/mnist/savings?baseline=secret",
                     "/v1/jobs/mnist/savings?baseline=red%2Fsecret"):
            for token in (self.blue, self.plain, self.viewer):
                self.assertEqual(server.ask("GET", path, token=token).status, 404, path)
        for token in (self.blue, self.plain):
            self.assertEqual(server.ask("DELETE", "/v1/jobs/red%2Fsecret", token=token).status, 404)
            into = server.ask("POST", "/v1/jobs", {**JOB, "id": "red/mine"}, token=token)
            self.assertEqual(into.status, 422, into.text)
        self.assertEqual(server.ask("GET", "/v1/jobs/secret", token=self.red).status, 200)

    def test_a_trial_lives_in_its_name_space(self):
        server = self.serve_tokens()
        server.ask("POST", "/v1/jobs", JOB, token=self.blue)
        started = server.ask("POST", "/v1/jobs/mnist/trials", {}, token=self.blue)
        self.assertEqual(started.json["trial"]["job_id"], "mnist")
        reported = server.ask("POST", "/v1/jobs/mnist/trials/1/reports", REPORT, token=self.blue)
        self.assertEqual(reported.json["trial"]["job_id"], "mnist")
        for path in ("reports", "heartbeat", "end"):
            answer = server.ask("POST", f"/v1/jobs/mnist/trials/1/{path}", REPORT, token=self.red)
            self.assertIn(answer.status, (404, 422), answer.text)
        events = server.ask("GET", "/v1/jobs/mnist/events", token=self.viewer).json["events"]
        self.assertNotIn("blue/", str(events))
        self.assertEqual(events[0]["detail"]["spec"]["id"], "mnist")
        # The routes of the reference implementation, too.
        begun = server.ask("GET", "/jobs/batch_size?job_id=mnist", token=self.blue)
        self.assertEqual(begun.json["job_id"], "mnist")
        self.assertEqual(server.ask("GET", "/jobs/batch_size?job_id=mnist", token=self.red).status,
                         400)

    def test_pages_skip_what_belongs_to_others(self):
        server = self.serve_tokens()
        for number in range(7):
            for token, letter in ((self.plain, "a"), (self.blue, "m"), (self.plain, "z")):
                server.ask("POST", "/v1/jobs", {**JOB, "id": f"{letter}{number}"}, token=token)
        for token, expected in ((self.plain, 14), (self.blue, 7), (self.red, 0)):
            ids, after = [], ""
            while after is not None:
                page = server.ask("GET", f"/v1/jobs?limit=3&after={after}", token=token).json
                ids += [job["spec"]["id"] for job in page["jobs"]]
                after = page["next"]
            self.assertEqual(len(ids), expected, ids)
            self.assertEqual(ids, sorted(set(ids)))

    def test_an_administrator_chooses_the_name_space(self):
        server = self.serve_tokens()
        server.ask("POST", "/v1/jobs", JOB, token=self.blue)
        self.assertEqual(server.ask("GET", "/v1/jobs/mnist", token=self.admin).status, 404)
        blue = {"Zeus-Namespace": "blue"}
        seen = server.ask("GET", "/v1/jobs/mnist", token=self.admin, headers=blue)
        self.assertEqual(seen.status, 200)
        refused = server.ask("GET", "/v1/jobs/mnist", token=self.red, headers=blue)
        self.assertEqual(refused.status, 403, refused.text)
        used = server.ask("GET", "/v1/namespaces", token=self.admin).json["namespaces"]
        self.assertEqual({space["name"]: space["jobs"] for space in used},
                         {"": 0, "blue": 1, "red": 0})
        self.assertEqual(server.ask("GET", "/v1/namespaces", token=self.blue).status, 403)
        self.assertEqual(server.ask("DELETE", "/v1/jobs/mnist", token=self.admin,
                                    headers=blue).status, 204)

    def test_quotas(self):
        server = self.serve_tokens("--quota", "blue:jobs=2,trials=3", "--quota", "*:jobs=1")
        for number, status in ((1, 201), (2, 201), (3, 403)):
            answer = server.ask("POST", "/v1/jobs", {**JOB, "id": f"job{number}"}, token=self.blue)
            self.assertEqual(answer.status, status, answer.text)
        self.assertIn("may have 2 jobs", answer.json["error"]["message"])
        again = server.ask("POST", "/v1/jobs", {**JOB, "id": "job1"}, token=self.blue)
        self.assertEqual(again.status, 200)
        for status in (201, 201, 201, 403):
            self.assertEqual(server.ask("POST", "/v1/jobs/job1/trials", {},
                                        token=self.blue).status, status)
        self.assertEqual(server.ask("POST", "/v1/jobs", JOB, token=self.red).status, 201)
        self.assertEqual(server.ask("POST", "/v1/jobs", {**JOB, "id": "two"},
                                    token=self.red).status, 403)
        server.ask("DELETE", "/v1/jobs/job1", token=self.blue)
        self.assertEqual(server.ask("POST", "/v1/jobs", {**JOB, "id": "job3"},
                                    token=self.blue).status, 201)

    def test_a_quota_that_is_none(self):
        for text in ("blue", "blue:jobs", "blue:jobs=-1", "blue:cats=1", "a b:jobs=1"):
            code, sentence = self.refused("--listen", "127.0.0.1:0", "--quota", text, "--database",
                                          "sqlite://" + self.path("zeus.db"))
            self.assertEqual(code, 2)
            self.assertIn("quota", sentence)

    def test_old_jobs_and_old_files_of_tokens_stay_as_they_were(self):
        with open(self.path("tokens"), encoding="utf-8") as file:
            lines = [line.split() for line in file]
        plain, = [words for words in lines if words[0] == "plain"]
        self.assertEqual(len(plain), 4)  # As every line was before there were name spaces.
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/jobs", JOB)
        server.stop()
        server = self.serve_tokens()
        self.assertEqual(server.ask("GET", "/v1/jobs/mnist", token=self.plain).status, 200)
        self.assertEqual(server.ask("GET", "/v1/jobs/mnist", token=self.blue).status, 404)


class LoginTest(TokenTestCase):
    def test_wrong_and_missing_tokens_differ_and_are_counted(self):
        token = self.new_token("ci")
        server = self.serve_tokens()
        missing = server.ask("GET", "/v1/jobs")
        wrong = server.ask("GET", "/v1/jobs", token="zeus_" + "0" * 64)
        self.assertEqual((missing.status, wrong.status), (401, 401))
        self.assertIn("wants a token", missing.text)
        self.assertIn("not known here", wrong.text)
        self.assertIn("invalid_token", wrong.headers["WWW-Authenticate"])
        self.assertNotIn("invalid_token", missing.headers["WWW-Authenticate"])
        name = "zeus_server_logins_failed_total"
        self.assertEqual(self.metric(server, token, name + '{reason="wrong"'), 1)
        self.assertEqual(self.metric(server, token, name + '{reason="missing"'), 1)

    def test_guessing_ends(self):
        known, late = self.new_token("known"), self.new_token("late")
        server = self.serve_tokens()
        self.assertEqual(server.ask("GET", "/v1/jobs", token=known).status, 200)
        statuses = [server.ask("GET", "/v1/jobs", token=f"zeus_{number:064}").status
                    for number in range(60)]
        self.assertEqual(statuses[:20], [401] * 20)
        self.assertIn(429, statuses)
        limited = server.ask("GET", "/v1/jobs", token=late)
        while limited.status == 401:  # Time forgives one now and then.
            limited = server.ask("GET", "/v1/jobs", token="zeus_wrong")
        self.assertIn(limited.status, (429, 200))
        # A tenant that was there before is not shut out by a neighbour.
        self.assertEqual(server.ask("GET", "/v1/jobs", token=known).status, 200)
        self.assertGreater(self.metric(server, known, "zeus_server_logins_refused_total"), 0)

    def test_tokens_are_read_again_without_a_restart(self):
        first = self.new_token("first")
        server = self.serve_tokens()
        second = self.new_token("second")
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.ask("GET", "/v1/jobs", token=second).status == 200,
                   "the new token is not known")
        with open(self.path("tokens"), encoding="utf-8") as file:
            kept = [line for line in file if not line.startswith("first ")]
        with open(self.path("tokens"), "w", encoding="utf-8") as file:
            file.writelines(kept)
        # Without a signal: the file has changed.
        wait_until(lambda: server.ask("GET", "/v1/jobs", token=first).status == 401,
                   "the token is not revoked")
        with open(self.path("tokens"), "w", encoding="utf-8") as file:
            file.write("nonsense\n")
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.ask("GET", "/v1/jobs", token=second).status, 200)
        wait_until(lambda: server.ask("GET", "/healthz").status == 200, "it has ended")
        code, errors = server.stop()
        self.assertEqual(code, 0)
        self.assertIn("line 1 is no token", errors)


class ForeignPageTest(ServeTestCase):
    def test_pages_of_others_change_nothing_and_read_nothing(self):
        server = self.serve("--no-access-log")
        for headers in ({"Host": "evil.example"}, {"Host": "evil.example:80"}):
            for path in ("/v1/jobs", "/metrics"):
                answer = server.ask("GET", path, headers=headers)
                self.assertEqual(answer.status, 403, answer.text)
                self.assertIn("--allow-host evil.example", answer.text)
        self.assertEqual(server.ask("GET", "/healthz", headers={"Host": "evil.example"}).status, 200)
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"},
                        {"Sec-Fetch-Site": "cross-site"}):
            answer = server.ask("POST", "/v1/jobs", JOB, headers=headers)
            self.assertEqual(answer.status, 403, answer.text)
            # A GET that begins a trial is a change.
            begin = server.ask("GET", "/jobs/batch_size?job_id=mnist", headers=headers)
            self.assertEqual(begin.status, 403, begin.text)
        self.assertEqual(server.ask("GET", "/v1/jobs/mnist").status, 404)
        own = {"Origin": server.url}
        self.assertEqual(server.ask("POST", "/v1/jobs", JOB, headers=own).status, 201)

    def test_a_proxy_may_have_another_name(self):
        server = self.serve("--no-access-log", "--allow-host", "zeus.example")
        self.assertEqual(server.ask("GET", "/v1/jobs",
                                    headers={"Host": "zeus.example"}).status, 200)


if __name__ == "__main__":
    unittest.main()
