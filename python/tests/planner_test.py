"""zeus.optimizer.pipeline_frequency: the planner."""

import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request

from zeus.optimizer.batch_size import LocalServer
from zeus.optimizer.pipeline_frequency import (
    Plan,
    Planner,
    Profile,
    load_profile,
    load_reference_schedule,
    plan,
)

ZEUS = os.environ["ZEUS_BINARY"]
PROFILE = pathlib.Path(__file__).parents[2] / "examples/pipeline/profile.csv"
ROWS = [
    (stage, name, clock, 0.05 * weight * 1400 / clock, 10 * weight * (clock / 1400) ** 1.5)
    for stage in (0, 1)
    for name, weight in (("forward", 1), ("backward", 2 + stage))
    for clock in (1400, 1200, 1000)
]


def four_stages() -> Profile:
    return load_profile(PROFILE, blocking_power=75)


class PlannerTest(unittest.TestCase):
    def test_a_plan_meets_its_deadline_with_less_energy(self):
        planner = Planner(four_stages(), "1f1b", 8)
        self.assertEqual((planner.stages, planner.microbatches), (4, 8))
        at_once = planner.plan()
        self.assertLessEqual(at_once.time, planner.baseline_time)
        self.assertLess(at_once.energy, planner.baseline_energy)
        slower = planner.plan(slowdown=1.2)
        self.assertLessEqual(slower.time, 1.2 * planner.baseline_time)
        self.assertLess(slower.energy, at_once.energy)
        self.assertAlmostEqual(planner.saving(slower),
                               1 - slower.energy / planner.baseline_energy, places=9)
        self.assertGreaterEqual(slower.energy, slower.bound)
        self.assertLess(slower.gap, 0.02)
        same = planner.plan(1.2 * planner.baseline_time)
        self.assertEqual(same.clocks, slower.clocks)

    def test_it_says_what_the_command_says(self):
        command = [ZEUS, "plan", "--profile", str(PROFILE), "--microbatches", "8",
                   "--blocking-power", "75", "--json"]
        done = subprocess.run(command, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        planner = Planner(four_stages(), microbatches=8)
        self.assertAlmostEqual(planner.baseline_energy, said["baseline"]["energy_joules"])
        self.assertAlmostEqual(planner.plan().energy, said["plan"]["energy_joules"])

    def test_the_frontier_is_ordered_and_below_all_plans(self):
        planner = Planner(four_stages(), microbatches=4)
        times, energies = planner.frontier
        self.assertEqual(len(times), len(energies))
        self.assertEqual(times, sorted(set(times)))
        self.assertAlmostEqual(times[0], planner.fastest_time, delta=1e-3)
        for slowdown in (1.0, 1.1, 1.3):
            made = planner.plan(slowdown=slowdown)
            self.assertLessEqual(planner.energy_within(made.deadline), made.energy * (1 + 1e-9))

    def test_instructions_are_in_the_order_of_the_schedule(self):
        made = plan(Profile(ROWS, 50), microbatches=2)
        self.assertEqual([[name for name, _ in stage] for stage in made.clocks],
                         [["forward", "forward", "backward", "backward"],
                          ["forward", "backward", "forward", "backward"]])
        first = made.stages[0][0]
        self.assertEqual((first.instruction, first.microbatch, first.chunk), ("forward", 0, 0))
        self.assertIn(first.frequency, (1400, 1200, 1000))
        self.assertAlmostEqual(sum(s.energy for stage in made.stages for s in stage)
                               + 50 * sum(made.time - sum(s.time for s in stage)
                                          for stage in made.stages), made.energy, places=6)

    def test_a_straggler_leaves_time_that_is_used(self):
        planner = Planner(four_stages(), microbatches=4)
        pace = 1.3 * planner.baseline_time
        waiting = planner.plan(pace=pace)
        self.assertAlmostEqual(waiting.waits_until, pace)
        self.assertGreater(waiting.time, planner.baseline_time)
        self.assertGreater(planner.saving(waiting), planner.saving(planner.plan()))

    def test_rules_for_changes_of_the_clock_are_kept(self):
        planner = Planner(four_stages(), microbatches=8)
        free = planner.plan(slowdown=1.1)
        rare = planner.plan(slowdown=1.1, least_instructions=4, clock_latency=0.001)
        self.assertLess(rare.clock_changes, free.clock_changes)
        self.assertLessEqual(rare.time, 1.1 * planner.baseline_time)

    def test_stages_can_be_chosen(self):
        self.assertEqual(Planner(four_stages(), microbatches=2, stages=8).stages, 8)
        self.assertEqual(Planner(four_stages(), microbatches=2, stages=[0, 3]).stages, 2)

    def test_schedules_by_name_and_by_list(self):
        by_name = plan(Profile(ROWS, 50), "gpipe", microbatches=2)
        by_list = plan(Profile(ROWS, 50), "F0 F1 B0 B1\nF0 F1 B0 B1\n")
        self.assertEqual(by_name.clocks, by_list.clocks)

    def test_large_pipelines_are_planned_for_one_deadline(self):
        made = plan(four_stages(), microbatches=1100, slowdown=1.05)
        self.assertEqual(len(made.stages[0]), 2200)

    def test_progress_is_told_and_may_end_the_solver(self):
        told = []
        Planner(four_stages(), microbatches=64, progress=told.append)
        self.assertTrue(all(0 <= share <= 1 for share in told))
        self.assertTrue(told)

        def refuse(share):
            raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            Planner(four_stages(), microbatches=64, progress=refuse)

    def test_other_threads_run_meanwhile(self):
        # If the solver held the GIL, the count would not move between two calls of `progress`.
        counted, over = [0], threading.Event()

        def count():
            while not over.is_set():
                counted[0] += 1

        thread = threading.Thread(target=count)
        thread.start()
        try:
            before = counted[0]
            Planner(four_stages(), microbatches=64)
            during = counted[0] - before
        finally:
            over.set()
            thread.join()
        self.assertGreater(during, 1000)

    def test_ctrl_c_ends_the_solver(self):
        program = (
            "import sys\n"
            "from zeus.optimizer.pipeline_frequency import Planner, load_profile\n"
            "profile = load_profile(sys.argv[1], 75)\n"
            "try:\n"
            "    print('solving', flush=True)\n"
            "    Planner(profile, microbatches=4000)\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted')\n")
        process = subprocess.Popen([sys.executable, "-c", program, str(PROFILE)],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "solving\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=120)[0], "interrupted\n")


class FilesTest(unittest.TestCase):
    def test_a_plan_survives_json(self):
        made = plan(Profile(ROWS, 50), microbatches=3)
        again = Plan.from_json(made.to_json())
        self.assertEqual(again.clocks, made.clocks)
        self.assertEqual(again.energy, made.energy)
        self.assertIn("stages", json.loads(made.to_json()))
        with self.assertRaises(ValueError):
            Plan.from_json("{}")
        with self.assertRaises(ValueError):
            Plan.from_json("nonsense")

    def test_a_plan_survives_the_reference_schedule(self):
        planner = Planner(Profile(ROWS, 50), microbatches=3)
        made = planner.plan(slowdown=1.1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "freqs_pipeline_00001.py")
            pathlib.Path(path).write_text(made.to_reference_schedule())
            clocks = load_reference_schedule(path)
        self.assertEqual(clocks, made.clocks)
        evaluated = planner.evaluate(clocks)
        self.assertAlmostEqual(evaluated.energy, made.energy)
        self.assertAlmostEqual(evaluated.time, made.time)
        slow = planner.evaluate([[(name, 1000) for name, _ in stage] for stage in clocks])
        self.assertGreater(slow.time, evaluated.time)

    def test_a_reference_schedule_is_never_evaluated(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "schedule.py")
            path.write_text("__import__('os').mkdir('pwned')")
            with self.assertRaises(ValueError):
                load_reference_schedule(path)

    def test_a_profile_survives_csv_and_json(self):
        profile = Profile(ROWS, 50)
        self.assertEqual(profile.stages, 2)
        self.assertEqual(len(profile.rows), len(ROWS))
        again = Profile.from_json(profile.to_json())
        self.assertEqual(again.rows, profile.rows)
        self.assertEqual(again.blocking_power, 50)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "profile.csv")
            path.write_text(profile.to_csv())
            read = load_profile(path, 50, tensor_parallel=2)
        self.assertEqual(read.blocking_power, 100)
        energies = {row[:3]: row[4] for row in profile.rows}
        for row in read.rows:  # The file has the energy of one GPU, the stage that of two.
            self.assertAlmostEqual(row[4], 2 * energies[row[:3]], places=3)


class BadInputTest(unittest.TestCase):
    def test_profiles_that_cannot_be_true(self):
        for rows in ([], [(0, "forward", 1400, 0.0, 1.0)], [(0, "forward", 1400, math.nan, 1.0)],
                     [(0, "forward", 1400, 0.1, -1.0)], [(1, "forward", 1400, 0.1, 1.0)],
                     [(0, "forward", 1400, 0.1, 1.0)] * 2, [(-1, "forward", 1400, 0.1, 1.0)]):
            with self.subTest(rows=rows), self.assertRaises(ValueError):
                Planner(Profile(rows, 50), microbatches=2)
        for rows in (None, 3, [1], [("0", "forward", 1400, 0.1, 1.0)]):
            with self.subTest(rows=rows), self.assertRaises(TypeError):
                Profile(rows, 50)

    def test_files_that_are_no_profiles(self):
        with self.assertRaises(FileNotFoundError):
            load_profile("/nowhere.csv", 50)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "profile.csv")
            for text in ("", "a,b\n1,2\n", "stage,instruction,frequency,time,energy\n0,f,x,1,1\n"):
                path.write_text(text)
                with self.subTest(text=text), self.assertRaises(ValueError):
                    load_profile(path, 50)
            path.write_text(Profile(ROWS, 50).to_csv())
            for power in (-1, math.nan, math.inf):
                with self.subTest(power=power), self.assertRaisesRegex(ValueError, "blocking"):
                    load_profile(path, power)
            with self.assertRaisesRegex(TypeError, "blocking_power"):
                load_profile(path, "70")

    def test_pipelines_that_make_no_sense(self):
        good = Profile(ROWS, 50)
        for kind, word, options in (
            (ValueError, "microbatches", {}),
            (ValueError, "microbatches", {"microbatches": 0}),
            (TypeError, "microbatches", {"microbatches": 2.5}),
            (TypeError, "microbatches", {"microbatches": True}),
            (ValueError, "schedule", {"microbatches": 2, "schedule": "fast"}),
            (TypeError, "schedule", {"microbatches": 2, "schedule": 3}),
            (ValueError, "chunks", {"microbatches": 2, "chunks": 0}),
            (ValueError, "stages", {"microbatches": 2, "stages": []}),
            (ValueError, "stage", {"microbatches": 2, "stages": [0, 7]}),
            (ValueError, "stages", {"microbatches": 2, "stages": 0}),
            (TypeError, "stages", {"microbatches": 2, "stages": "2"}),
            (ValueError, "", {"schedule": "F0 B1"}),
        ):
            with self.subTest(options=options), self.assertRaisesRegex(kind, word):
                Planner(good, **options)
        with self.assertRaisesRegex(TypeError, "Profile"):
            Planner("profile.csv", microbatches=2)
        with self.assertRaisesRegex(TypeError, "progress"):
            Planner(good, microbatches=2, progress=3)

    def test_plans_that_cannot_be(self):
        planner = Planner(Profile(ROWS, 50), microbatches=2)
        for kind, options in (
            (ValueError, {"deadline": 1e-6}),
            (ValueError, {"deadline": math.nan}),
            (ValueError, {"deadline": -1}),
            (TypeError, {"deadline": "1"}),
            (ValueError, {"slowdown": 0}),
            (ValueError, {"slowdown": 0.5}),
            (ValueError, {"deadline": 1, "slowdown": 1}),
            (ValueError, {"pace": 0}),
            (ValueError, {"least_instructions": 0}),
            (ValueError, {"clock_latency": -1}),
        ):
            with self.subTest(options=options), self.assertRaises(kind):
                planner.plan(**options)
        for clocks in ("[]", [3], [[3]], [[("forward", "fast")]], [[("forward",)]]):
            with self.subTest(clocks=clocks), self.assertRaises(TypeError):
                planner.evaluate(clocks)
        with self.assertRaises(ValueError):
            planner.evaluate([[("forward", 1400)]])


class OneChoiceOfSolverTest(unittest.TestCase):
    """The command line, the server and Python solve a pipeline in the same way."""

    def by_command_line(self, microbatches: int, *arguments: str) -> dict:
        done = subprocess.run(
            [ZEUS, "plan", "--profile", PROFILE, "--blocking-power", "75", "--microbatches",
             str(microbatches), "--json", *arguments],
            capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def by_server(self, microbatches: int, slowdown: float) -> tuple[dict, list]:
        profile = json.loads(four_stages().to_json())
        body = {"id": "p", "schedule": "1f1b", "microbatches": microbatches, "profile": profile,
                "slowdown": slowdown}
        with LocalServer() as server:
            request = urllib.request.Request(server.url + "/v1/plans", json.dumps(body).encode())
            with urllib.request.urlopen(request, timeout=300) as answer:
                plan = json.load(answer)["plan"]
            with urllib.request.urlopen(server.url + "/v1/plans/p/frontier", timeout=60) as answer:
                return plan, json.load(answer)["points"]

    def compare(self, microbatches: int, expected_solver: str) -> None:
        slowdown = 1.05
        planner = Planner(four_stages(), "1f1b", microbatches)
        self.assertEqual(planner.solver, expected_solver)
        served, served_frontier = self.by_server(microbatches, slowdown)
        frontier = self.by_command_line(microbatches)
        self.assertEqual(frontier["solved"], expected_solver)
        self.assertEqual([point["energy_joules"] for point in frontier["frontier"]],
                         [point["energy_joules"] for point in served_frontier])
        self.assertEqual([point["energy_joules"] for point in frontier["frontier"]],
                         list(planner.frontier.energies)[::-1])
        deadline = self.by_command_line(microbatches, "--deadline", "1.05x")["plan"]
        for one in (planner.plan(slowdown=slowdown),
                    plan(four_stages(), "1f1b", microbatches=microbatches, slowdown=slowdown)):
            # A plan for one deadline alone rounds otherwise than one from a whole frontier.
            self.assertAlmostEqual(one.energy / served["energy_joules"], 1, delta=0.003)
            self.assertAlmostEqual(one.energy / deadline["energy_joules"], 1, delta=0.003)

    def test_small_pipelines_are_solved_whole(self):
        self.compare(8, "the whole frontier")

    def test_large_ones_for_one_deadline_alone(self):
        # The frontier of this profile is not periodic: it is solved whole, but plans are not.
        self.compare(1100, "the whole frontier")


if __name__ == "__main__":
    unittest.main()
