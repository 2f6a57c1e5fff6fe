"""A client that behaves as the reference implementation's pipeline optimizer, against `zeus serve`.

Written from the documented contract: rank 0 registers the job, every rank registers itself with the
clocks of its GPU and asks for its schedule, which comes when all ranks are there.
"""

import concurrent.futures
import contextlib
import unittest

import postgres_testing
from serve_plans_test import spec
from serve_testing import Server, ServeTestCase

CLOCKS = [1410, 1200, 1005]


class Pipeline:
    """All ranks of a job, data parallel outermost."""

    def __init__(self, servers, pp=4, dp=2, tp=1, metadata=None):
        self.servers = servers
        self.pp, self.dp, self.tp = pp, dp, tp
        answer = servers[0].ask("POST", "/register_job", {
            "job_id": "", "pp_degree": pp, "dp_degree": dp, "tp_degree": tp,
            "world_size": pp * dp * tp, "job_metadata": metadata})
        if answer.status != 200:
            raise AssertionError(answer.text)
        self.id = answer.json

    @property
    def world_size(self):
        return self.pp * self.dp * self.tp

    def server(self, rank):
        return self.servers[rank % len(self.servers)]

    def register(self, rank):
        place = {"rank": rank, "dp_rank": rank // (self.pp * self.tp),
                 "pp_rank": rank // self.tp % self.pp, "tp_rank": rank % self.tp}
        return self.server(rank).ask("POST", f"/register_rank/{self.id}",
                                     place | {"available_frequencies": CLOCKS})

    def schedule(self, rank):
        return self.server(rank).ask("GET", f"/schedule/{self.id}?rank={rank}")

    def measure(self, rank, schedule, iterations=2):
        """Slower clocks take longer and less energy; the last stage has the most to do."""
        scale = 0.13 if rank // self.tp % self.pp == self.pp - 1 else 0.1
        times, energies = {}, {}
        for name, mhz in schedule["frequencies"]:
            size = scale * (2 if name == "backward" else 1)
            times.setdefault(name, []).append(size * 1410 / mhz)
            energies.setdefault(name, []).append(300 * size * mhz / 1410)
        return {"rank": rank, "iter_time": [1.0] * iterations, "iter_energy": [1.0] * iterations,
                "time_breakdown": {name: [row] * iterations for name, row in times.items()},
                "energy_breakdown": {name: [row] * iterations for name, row in energies.items()}}

    def report(self, rank, result):
        return self.server(rank).ask("POST", f"/result/{self.id}", result)


def clocks_of(answer):
    return [mhz for _, mhz in answer.json["frequencies"]]


class PipelineTestCase(ServeTestCase):
    def run_rank(self, pipeline, rank):
        registered = pipeline.register(rank)
        self.assertEqual((registered.status, registered.json), (200, None))
        return pipeline.schedule(rank)

    def all_at_once(self, pipeline, run=None):
        run = run or self.run_rank
        with concurrent.futures.ThreadPoolExecutor(pipeline.world_size) as pool:
            answers = list(pool.map(lambda rank: run(pipeline, rank), range(pipeline.world_size)))
        self.assertEqual({answer.status for answer in answers}, {200}, answers[0].text)
        return answers


class PipelinesTest(PipelineTestCase):
    def test_eight_ranks_at_once_get_the_clocks_of_their_stage(self):
        server = self.serve("--no-access-log")
        current = server.ask("POST", "/v1/plans", spec()).json
        answers = self.all_at_once(Pipeline([server], metadata="a run with plan=gpt"))
        for rank, answer in enumerate(answers):
            planned = current["plan"]["stages"][rank % 4]
            self.assertEqual(answer.json, {"rank": rank, "frequencies": [
                [one["instruction"], round(one["clock_mhz"])] for one in planned]})

    def test_nobody_starts_before_the_last_rank_has_registered(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/plans", spec())
        pipeline = Pipeline([server], metadata="plan=gpt")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            early = [pool.submit(self.run_rank, pipeline, rank) for rank in range(7)]
            done, _ = concurrent.futures.wait(early, timeout=1)
            self.assertEqual(done, set())
            # A client that waits holds nothing that others need.
            self.assertEqual(server.ask("GET", "/v1/plans/gpt").status, 200)
            self.assertEqual(self.run_rank(pipeline, 7).status, 200)
            self.assertEqual({future.result().status for future in early}, {200})

    def test_a_rank_that_waits_in_vain_is_told_so(self):
        server = self.serve("--no-access-log", "--rank-timeout", "0.2")
        server.ask("POST", "/v1/plans", spec())
        pipeline = Pipeline([server], metadata="plan=gpt")
        pipeline.register(0)
        answer = pipeline.schedule(0)
        self.assertEqual(answer.status, 503)
        self.assertEqual(answer.headers["Retry-After"], "1")
        self.assertIn("(1 have registered)", answer.json["detail"])

    def test_the_end_of_the_server_ends_the_waiting(self):
        server = self.serve("--no-access-log")
        server.ask("POST", "/v1/plans", spec())
        pipeline = Pipeline([server], metadata="plan=gpt")
        self.assertEqual(pipeline.register(0).status, 200)
        with contextlib.closing(server.connect()) as waiting:
            waiting.request("GET", f"/schedule/{pipeline.id}?rank=0")
            # The thread that answers this one has read the request before.
            self.assertEqual(server.ask("GET", "/healthz").status, 200)
            self.assertEqual(server.stop(), (0, ""))
            self.assertEqual(waiting.getresponse().status, 503)

    def test_a_schedule_file_is_for_who_names_no_plan(self):
        file = self.path("schedule.py")
        with open(file, "w", encoding="utf-8") as out:
            out.write('[[("forward", 1410), ("backward", 1200)],\n'
                      ' [("forward", 1005), ("backward", 0)]]\n# cost: 17\n')
        server = self.serve("--no-access-log", "--pipeline-schedule", file)
        answers = self.all_at_once(Pipeline([server], pp=2, dp=2, tp=2))
        self.assertEqual(answers[0].json["frequencies"], [["forward", 1410], ["backward", 1200]])
        for rank, answer in enumerate(answers):
            self.assertEqual(clocks_of(answer), [1005, 0] if rank // 2 % 2 else [1410, 1200])
        refused = server.ask("POST", "/register_job", {
            "pp_degree": 3, "dp_degree": 1, "tp_degree": 1, "world_size": 3})
        self.assertEqual(refused.status, 422)

    def test_a_schedule_file_is_never_evaluated(self):
        file = self.path("schedule.py")
        with open(file, "w", encoding="utf-8") as out:
            out.write('[[("forward", __import__("os").getpid())]]\n')
        code, sentence = self.refused("--pipeline-schedule", file)
        self.assertEqual(code, 2)
        self.assertIn("schedule.py", sentence)

    def sweep(self, server, pipeline):
        """All rounds of measurements; the schedules that were served in each."""
        rounds = []
        for _ in CLOCKS:
            answers = self.all_at_once(pipeline, lambda p, rank: p.schedule(rank))
            rounds.append(answers)
            results = [pipeline.measure(rank, answer.json) for rank, answer in enumerate(answers)]
            self.all_at_once(pipeline, lambda p, rank, r=results: p.report(rank, r[rank]))
        return rounds

    def test_clocks_are_found_out_when_nobody_knows_them(self):
        server = self.serve("--no-access-log")
        pipeline = Pipeline([server], metadata="microbatches=8 blocking_power_watts=83.64")
        self.all_at_once(pipeline, lambda p, rank: p.register(rank))
        rounds = self.sweep(server, pipeline)
        for answers, mhz in zip(rounds, CLOCKS):
            self.assertEqual({clock for answer in answers for clock in clocks_of(answer)}, {mhz})
            self.assertEqual(len(answers[0].json["frequencies"]), 16)
        current = server.ask("GET", f"/v1/plans/{pipeline.id}").json
        self.assertLess(current["plan"]["energy_joules"], current["baseline_energy_joules"])
        answers = self.all_at_once(pipeline, lambda p, rank: p.schedule(rank))
        for rank, answer in enumerate(answers):
            self.assertEqual(clocks_of(answer), [
                round(one["clock_mhz"]) for one in current["plan"]["stages"][rank % 4]])

    def test_a_server_that_was_killed_goes_on_where_it_was(self):
        server = self.serve("--no-access-log")
        pipeline = Pipeline([server], pp=2, dp=1, metadata="microbatches=4")
        for rank in range(2):
            pipeline.register(rank)
        first = pipeline.schedule(0).json
        pipeline.report(0, pipeline.measure(0, first))
        server.kill()
        server = self.serve("--no-access-log")
        pipeline.servers = [server]
        pipeline.report(1, pipeline.measure(1, pipeline.schedule(1).json))
        self.assertEqual(set(clocks_of(pipeline.schedule(0))), {1200})

    def test_whole_profiles_are_planned_at_once(self):
        server = self.serve("--no-access-log")
        pipeline = Pipeline([server], pp=2, dp=1, metadata="microbatches=4")
        for rank in range(2):
            pipeline.register(rank)
        for rank in range(2):
            result = {"rank": rank, "dp_rank": 0, "pp_rank": rank, "tp_rank": 0}
            for name, size in (("forward", 0.1 + 0.03 * rank), ("backward", 0.2)):
                result[name + "_time"] = {str(mhz): size * 1410 / mhz for mhz in CLOCKS}
                result[name + "_energy"] = {str(mhz): 300 * size * mhz / 1410 for mhz in CLOCKS}
            self.assertEqual(pipeline.report(rank, result).status, 200)
        self.assertEqual(server.ask("GET", f"/v1/plans/{pipeline.id}").status, 200)
        self.assertEqual(pipeline.schedule(1).status, 200)

    def test_mistakes_are_told_as_its_framework_does(self):
        server = self.serve("--no-access-log")
        job = {"pp_degree": 2, "dp_degree": 1, "tp_degree": 1, "world_size": 2,
               "job_metadata": "microbatches=4"}

        def refused(status, method, path, body=None):
            answer = server.ask(method, path, body)
            self.assertEqual(answer.status, status, answer.text)
            return str(answer.json["detail"])

        self.assertIn("product of the degrees, 2",
                      refused(422, "POST", "/register_job", job | {"world_size": 3}))
        self.assertIn("--pipeline-schedule",
                      refused(422, "POST", "/register_job", job | {"job_metadata": None}))
        refused(404, "POST", "/register_job", job | {"job_metadata": "plan=nobody"})
        refused(404, "GET", "/schedule/nobody?rank=0")
        pipeline = server.ask("POST", "/register_job", job).json
        refused(422, "GET", f"/schedule/{pipeline}")
        refused(422, "POST", f"/register_rank/{pipeline}", {"rank": 0})
        rank = {"rank": 0, "dp_rank": 0, "pp_rank": 0, "tp_rank": 0,
                "available_frequencies": CLOCKS}
        self.assertEqual(server.ask("POST", f"/register_rank/{pipeline}", rank).status, 200)
        refused(409, "POST", f"/register_rank/{pipeline}", rank | {"pp_rank": 1})
        refused(422, "POST", f"/result/{pipeline}", {"rank": 0})
        self.assertIn("has not registered", refused(
            422, "POST", f"/result/{pipeline}",
            {"rank": 1, "time_breakdown": {"forward": [[1]]},
             "energy_breakdown": {"forward": [[1]]}}))
        self.assertIn("of rank 0", refused(
            422, "POST", f"/result/{pipeline}",
            {"rank": 0, "time_breakdown": {"forward": [[0]]},
             "energy_breakdown": {"forward": [[1]]}}))


@unittest.skipIf(postgres_testing.programs() is None, "PostgreSQL is not here")
class TwoServersTest(PipelineTestCase):
    """Ranks that ask different servers meet in their database."""

    def test_ranks_of_two_servers_meet(self):
        database = postgres_testing.PostgresServer()
        self.addCleanup(database.stop)
        servers = [Server("--database", database.url, "--no-access-log") for _ in range(2)]
        for server in servers:
            self.addCleanup(server.kill)
        servers[0].ask("POST", "/v1/plans", spec())
        answers = self.all_at_once(Pipeline(servers, metadata="plan=gpt"))
        self.assertEqual(answers[0].json["frequencies"], answers[4].json["frequencies"])


if __name__ == "__main__":
    unittest.main()
