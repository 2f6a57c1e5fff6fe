"""Plans of pipelines over HTTP: `/v1/plans` of `zeus serve`, with a real server and its database."""

import concurrent.futures
import json
import signal
import subprocess
import unittest

import postgres_testing
from serve_testing import ZEUS, Server, ServeTestCase


def points(seconds):
    return [{"clock_mhz": 1410, "time_seconds": seconds, "energy_joules": 300 * seconds},
            {"clock_mhz": 1200, "time_seconds": 1.1 * seconds, "energy_joules": 250 * seconds},
            {"clock_mhz": 1005, "time_seconds": 1.3 * seconds, "energy_joules": 227 * seconds}]


def spec(name="gpt", stages=4, microbatches=8, **fields):
    """A pipeline whose last stage has the most to do."""
    instructions = [{"stage": stage, "instruction": instruction,
                     "points": points(factor * (0.13 if stage == stages - 1 else 0.1))}
                    for stage in range(stages)
                    for instruction, factor in (("forward", 1), ("backward", 2))]
    return {"id": name, "schedule": "1f1b", "microbatches": microbatches,
            "profile": {"stages": stages, "blocking_power_watts": 83.64,
                        "instructions": instructions}} | fields


def clocks(plan):
    return [[planned["clock_mhz"] for planned in stage] for stage in plan["stages"]]


class PlansTest(ServeTestCase):
    def submit(self, server, body, status=201):
        answer = server.ask("POST", "/v1/plans", body)
        self.assertEqual(answer.status, status, answer.text)
        return answer.json

    def refuse(self, server, body, words):
        answer = server.ask("POST", "/v1/plans", body)
        self.assertEqual(answer.status, 422, answer.text)
        self.assertIn(words, answer.json["error"]["message"])

    def test_a_plan_saves_energy_and_can_be_read_in_every_way(self):
        server = self.serve("--no-access-log")
        current = self.submit(server, spec())
        plan = current["plan"]
        self.assertEqual((current["version"], current["pace_seconds"]), (1, None))
        self.assertLess(plan["energy_joules"], current["baseline_energy_joules"])
        self.assertLessEqual(plan["time_seconds"], current["baseline_time_seconds"])
        self.assertEqual([len(stage) for stage in plan["stages"]], [16] * 4)
        self.assertEqual(server.ask("GET", "/v1/plans/gpt").json, current)

        frontier = server.ask("GET", "/v1/plans/gpt/frontier").json
        times = [point["time_seconds"] for point in frontier["points"]]
        self.assertEqual(times, sorted(times, reverse=True))
        slower = server.ask("GET", "/v1/plans/gpt/plan?slowdown=1.05").json
        self.assertLess(slower["energy_joules"], plan["energy_joules"])
        deadline = 1.05 * current["baseline_time_seconds"]
        same = server.ask("GET", f"/v1/plans/gpt/plan?deadline_seconds={deadline!r}").json
        self.assertEqual(clocks(same), clocks(slower))
        self.assertEqual(server.ask("GET", "/v1/plans/gpt").json, current)

    def test_a_spec_is_submitted_once_and_may_be_deleted(self):
        server = self.serve("--no-access-log")
        first = self.submit(server, spec())
        self.assertEqual(self.submit(server, spec(), 200), first)
        answer = server.ask("POST", "/v1/plans", spec(microbatches=4))
        self.assertEqual(answer.status, 409)
        self.assertIn("microbatches is 8, not 4", answer.json["error"]["message"])
        self.assertEqual(server.ask("DELETE", "/v1/plans/gpt").status, 204)
        for method, path in (("DELETE", ""), ("GET", ""), ("GET", "/frontier"),
                             ("GET", "/plan?slowdown=1")):
            self.assertEqual(server.ask(method, "/v1/plans/gpt" + path).status, 404)
        self.submit(server, spec(microbatches=4))

    def test_ids_are_listed_in_pages_and_made_up_if_there_is_none(self):
        server = self.serve("--no-access-log")
        for name in ("b", "a", "c"):
            self.submit(server, spec(name))
        page = server.ask("GET", "/v1/plans?limit=2").json
        self.assertEqual(page, {"plans": ["a", "b"], "next": "b"})
        self.assertEqual(server.ask("GET", "/v1/plans?limit=2&after=b").json,
                         {"plans": ["c"], "next": None})
        made_up = self.submit(server, spec(None))
        self.assertTrue(made_up["id"].startswith("plan-"))

    def test_what_makes_no_sense_is_refused_in_a_sentence(self):
        server = self.serve("--no-access-log", "--max-instructions", "1000")
        self.refuse(server, {}, "profile: a plan needs it")
        self.refuse(server, spec(colour="green"), "colour: is not a field of a plan")
        self.refuse(server, spec("no/slash"), "id: ")
        self.refuse(server, spec(schedule="zigzag"), "zigzag")
        self.refuse(server, spec(microbatches=0), "microbatches: must be 1 or more")
        self.refuse(server, spec(microbatches=200), "at most 1000")
        self.refuse(server, spec(slowdown=0.5), "the fastest iteration takes ")
        self.refuse(server, spec(schedule="custom"), "custom_schedule: ")
        missing = spec()
        del missing["profile"]["instructions"][3]
        self.refuse(server, missing, "backward")
        negative = spec()
        negative["profile"]["instructions"][0]["points"][0]["energy_joules"] = -1
        self.refuse(server, negative, "energy_joules")
        self.refuse(server, "[]", "JSON object")
        self.assertEqual(server.ask("GET", "/v1/plans").json["plans"], [])

        self.submit(server, spec())
        for query, words in (("", "deadline_seconds: give this"),
                             ("?deadline_seconds=1&slowdown=1", "not both"),
                             ("?deadline_seconds=soon", "must be a number greater than 0"),
                             ("?deadline_seconds=0.1", "the fastest iteration takes "),
                             ("?slowdown=0.1", "the fastest iteration takes ")):
            answer = server.ask("GET", "/v1/plans/gpt/plan" + query)
            self.assertEqual(answer.status, 422, answer.text)
            self.assertIn(words, answer.json["error"]["message"])
        for body in ({}, {"pace_seconds": -1}, {"pace_seconds": "slow"}, {"pace": 1}):
            self.assertEqual(server.ask("POST", "/v1/plans/gpt/pace", body).status, 422, body)

    def test_a_straggler_is_a_new_version_until_it_is_gone(self):
        server = self.serve("--no-access-log")
        usual = self.submit(server, spec())
        self.assertEqual(server.ask("GET", "/v1/plans/gpt?after_version=1").status, 204)
        pace = 1.2 * usual["baseline_time_seconds"]
        slow = server.ask("POST", "/v1/plans/gpt/pace", {"pace_seconds": pace, "rank": 3}).json
        self.assertEqual((slow["version"], slow["pace_seconds"]), (2, pace))
        self.assertNotEqual(clocks(slow["plan"]), clocks(usual["plan"]))
        self.assertEqual(server.ask("GET", "/v1/plans/gpt?after_version=1").json, slow)
        again = server.ask("POST", "/v1/plans/gpt/pace", {"pace_seconds": pace}).json
        self.assertEqual(again, slow)
        gone = server.ask("POST", "/v1/plans/gpt/pace", {"pace_seconds": None}).json
        self.assertEqual((gone["version"], gone["plan"]), (3, usual["plan"]))

    def test_a_server_that_was_killed_answers_the_same_afterwards(self):
        server = self.serve("--no-access-log")
        usual = self.submit(server, spec())
        pace = 1.1 * usual["baseline_time_seconds"]
        slow = server.ask("POST", "/v1/plans/gpt/pace", {"pace_seconds": pace}).json
        server.kill()
        server = self.serve("--no-access-log")
        self.assertEqual(server.ask("GET", "/v1/plans/gpt").json, slow)
        self.assertEqual(self.submit(server, spec(), 200), slow)
        gone = server.ask("POST", "/v1/plans/gpt/pace", {"pace_seconds": None}).json
        self.assertEqual((gone["version"], gone["plan"]), (3, usual["plan"]))

    def test_many_who_submit_the_same_get_one_plan_solved_once(self):
        server = self.serve("--no-access-log")
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: server.ask("POST", "/v1/plans", spec()), range(32)))
        self.assertEqual(sorted({answer.status for answer in answers}), [200, 201])
        self.assertEqual([answer.status for answer in answers].count(201), 1)
        self.assertEqual(len({answer.text for answer in answers}), 1)
        metrics = server.ask("GET", "/metrics").text
        self.assertIn('zeus_server_plan_solves_total{outcome="solved"} 1\n', metrics)
        self.assertIn("zeus_server_plans_created_total 1\n", metrics)
        self.assertIn("zeus_server_plans_solved 1\n", metrics)

    def test_a_profile_may_be_large_where_profiles_are_sent(self):
        server = self.serve("--no-access-log")
        blanks = " " * (2 << 20)
        self.assertEqual(server.ask("POST", "/v1/plans", blanks + json.dumps(spec())).status, 201)
        self.assertEqual(server.ask("POST", "/v1/jobs", blanks).status, 413)
        self.assertEqual(server.ask("POST", "/v1/plans/gpt/pace", blanks).status, 413)

    def test_a_pace_that_cannot_be_is_refused(self):
        server = self.serve("--no-access-log")
        self.submit(server, spec(data_parallel=2))
        for body, field in (({"pace_seconds": 1e308}, "pace_seconds"),
                            ({"pace_seconds": 1e-9}, "pace_seconds"),
                            ({"pace_seconds": 9, "rank": 8}, "rank"),
                            ({"pace_seconds": 9, "rank": -1}, "rank")):
            answer = server.ask("POST", "/v1/plans/gpt/pace", body)
            self.assertEqual(answer.status, 422, answer.text)
            self.assertIn(field + ": ", answer.text)
        self.assertIsNone(server.ask("GET", "/v1/plans/gpt").json["pace_seconds"])
        answer = server.ask("POST", "/v1/plans/gpt/pace", {"pace_seconds": 9, "rank": 7})
        self.assertEqual(answer.status, 200)

    def test_who_sends_too_much_is_told_the_limit(self):
        server = self.serve("--no-access-log")
        for path, limit in (("/v1/plans", 16 << 20), ("/v1/jobs", 1 << 20)):
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {17 << 20}\r\n\r\n"
            raw = self.exchange(server, head.encode())
            self.assertTrue(raw.startswith("HTTP/1.1 413 "), raw)
            self.assertIn(f"larger than {limit} bytes", raw)

    def test_tokens_for_reading_report_no_pace(self):
        tokens = self.path("tokens")
        writer = self.new_token(tokens, "ci")
        reader = self.new_token(tokens, "eye", "--read-only")
        server = self.serve("--no-access-log", "--tokens", tokens)
        self.assertEqual(server.ask("POST", "/v1/plans", spec()).status, 401)
        # Strangers do not get to send anything.
        self.assertEqual(server.ask("POST", "/v1/plans", " " * (2 << 20)).status, 401)
        self.assertEqual(server.ask("POST", "/v1/plans", spec(), token=writer).status, 201)
        self.assertEqual(server.ask("GET", "/v1/plans/gpt", token=reader).status, 200)
        refused = server.ask("POST", "/v1/plans/gpt/pace", {"pace_seconds": 9}, token=reader)
        self.assertEqual(refused.status, 403)

    def new_token(self, tokens, name, *arguments):
        made = subprocess.run([ZEUS, "serve", "--tokens", tokens, "--new-token", name, *arguments],
                              capture_output=True, text=True, timeout=60, check=True)
        return made.stdout.strip()

    def test_a_signal_ends_it_in_good_order(self):
        server = self.serve("--no-access-log")
        self.submit(server, spec())
        self.assertEqual(server.stop(signal.SIGTERM), (0, ""))


@unittest.skipIf(postgres_testing.programs() is None, "PostgreSQL is not here")
class TwoServersTest(unittest.TestCase):
    def test_servers_on_one_database_agree(self):
        database = postgres_testing.PostgresServer()
        self.addCleanup(database.stop)
        servers = []
        for _ in range(2):
            servers.append(Server("--database", database.url, "--no-access-log"))
            self.addCleanup(servers[-1].kill)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(
                lambda i: servers[i % 2].ask("POST", "/v1/plans", spec()), range(8)))
        self.assertEqual(len({answer.text for answer in answers}), 1)
        usual = answers[0].json
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            paces = [{"pace_seconds": (1 + 0.02 * i) * usual["baseline_time_seconds"]}
                     for i in range(1, 9)]
            reports = list(pool.map(
                lambda i: servers[i % 2].ask("POST", "/v1/plans/gpt/pace", paces[i]), range(8)))
        self.assertEqual({answer.status for answer in reports}, {200})
        first, second = (server.ask("GET", "/v1/plans/gpt").json for server in servers)
        self.assertEqual(first, second)
        self.assertIn(first, [answer.json for answer in reports])
        servers[0].ask("DELETE", "/v1/plans/gpt")
        self.assertEqual(servers[1].ask("GET", "/v1/plans/gpt").status, 404)


if __name__ == "__main__":
    unittest.main()
