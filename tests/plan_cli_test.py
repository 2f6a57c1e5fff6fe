"""`zeus plan`: frontiers, plans, pictures and files; bad input is one sentence with the fix."""

import csv
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ZEUS = os.environ.get("ZEUS_BINARY", "build/dev/bin/zeus")
ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = str(ROOT / "examples" / "pipeline" / "profile.csv")
DATA = pathlib.Path(os.environ.get("ZEUS_PIPELINE_DIR", ROOT / ".." / "shared" / "data" / "pipeline"))
HEADER = "stage,instruction,frequency,time,energy\n"
USUAL = ["--profile", EXAMPLE, "--microbatches", "8", "--blocking-power", "80"]


def rows(stages=2, clocks=((1410, 0.1, 30), (1110, 0.12, 24), (810, 0.16, 21))):
    return "".join(f"{stage},{name},{mhz},{time * factor},{energy * factor}\n"
                   for stage in range(stages)
                   for name, factor in (("forward", 1), ("backward", 2))
                   for mhz, time, energy in clocks)


def instance(**changes):
    spec = {"stage": 0, "options_all": [{"freq": 1410, "time_s": 0.1, "energy_j": 30},
                                        {"freq": 1110, "time_s": 0.12, "energy_j": 24}]}
    whole = {"name": "tiny", "num_stages": 1, "num_microbatches": 1, "p2p_power_w": 80.0, "unit_time_s": 0.001,
             "specs": [{**spec, "type": "forward"}, {**spec, "type": "backward"}],
             "nodes": [[0, 0, "F", 0], [0, 0, "B", 1]], "edges": [[0, 1]]}
    return json.dumps({**whole, **changes})


class PlanTestCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="zeus-plan-")
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def run_plan(self, *arguments):
        return subprocess.run([ZEUS, "plan", *map(str, arguments)], capture_output=True, text=True, timeout=100)

    def plan(self, *arguments):
        done = self.run_plan(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def answer(self, *arguments):
        return json.loads(self.plan(*arguments, "--json"))

    def refused(self, *arguments, code=2):
        done = self.run_plan(*arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Azeus: [^\n]+\n\Z")
        return done.stderr

    def file(self, name, content):
        path = self.directory / name
        path.write_text(content, encoding="utf-8")
        return path

    def profile(self, content):
        return ["--profile", self.file("profile.csv", content), "--microbatches", "4", "--blocking-power", "80"]


class PlanTest(PlanTestCase):
    def test_without_a_deadline_the_plan_is_as_fast_as_the_baseline(self):
        answer = self.answer(*USUAL)
        self.assertEqual(answer["pipeline"]["stages"], 4)
        self.assertEqual(answer["pipeline"]["computations"], 64)
        self.assertEqual(answer["solved"], "the whole frontier")
        plan, baseline = answer["plan"], answer["baseline"]
        self.assertLessEqual(plan["time_seconds"], baseline["time_seconds"] + 1e-9)
        self.assertGreater(plan["saving"], 0.05)
        self.assertAlmostEqual(plan["saving"], 1 - plan["energy_joules"] / baseline["energy_joules"])
        self.assertGreaterEqual(plan["energy_joules"], plan["bound_joules"] * (1 - 1e-9))
        self.assertLess(plan["gap"], 0.02)
        self.assertEqual([row["slowdown"] for row in answer["slowdowns"]], [0, 0.01, 0.02, 0.05, 0.1, 0.2])

    def test_the_frontier_falls_and_is_convex(self):
        points = self.answer(*USUAL)["frontier"]
        self.assertGreater(len(points), 5)
        times = [point["time_seconds"] for point in points]
        self.assertEqual(times, sorted(times, reverse=True))
        blocking = 4 * 80
        cost = [point["energy_joules"] - blocking * point["time_seconds"] for point in points]
        slopes = [(b - a) / (s - t) for (a, b, s, t) in zip(cost, cost[1:], times, times[1:])]
        for earlier, later in zip(slopes, slopes[1:]):
            self.assertGreaterEqual(later, earlier - 1e-6)

    def test_deadlines_are_factors_times_or_none(self):
        baseline = self.answer(*USUAL)["baseline"]["time_seconds"]
        slower = self.answer(*USUAL, "--deadline", "1.05x")["plan"]
        self.assertAlmostEqual(slower["deadline_seconds"], 1.05 * baseline)
        self.assertLessEqual(slower["time_seconds"], 1.05 * baseline + 1e-9)
        timed = self.answer(*USUAL, "--deadline", f"{1.05e3 * baseline}ms")["plan"]
        self.assertAlmostEqual(timed["energy_joules"], slower["energy_joules"], places=3)
        least = self.answer(*USUAL, "--deadline", "none")["plan"]
        self.assertLess(least["energy_joules"], slower["energy_joules"])

    def test_a_stragglers_pace_includes_waiting(self):
        answer = self.answer(*USUAL, "--pace", "1.2x", "--data-parallel", "16")
        plan = answer["plan"]
        self.assertAlmostEqual(plan["waits_until_seconds"], 1.2 * answer["baseline"]["time_seconds"])
        self.assertEqual(answer["replicas"]["replicas"], 16)
        self.assertGreater(answer["replicas"]["saving"], answer["replicas"]["intrinsic_saving"] - 1e-9)

    def test_schedules_by_name_and_by_file(self):
        for schedule in ("gpipe", "interleaved"):
            chunks = ["--chunks", "2"] if schedule == "interleaved" else []
            self.assertGreater(self.answer(*USUAL, "--schedule", schedule, *chunks)["plan"]["saving"], 0)
        order = self.file("order.txt", "F0 F1 B0 B1\nF0 B0 F1 B1  # the last one\n")
        arguments = ["--profile", self.file("p.csv", HEADER + rows()), "--blocking-power", "80"]
        by_file = self.answer(*arguments, "--schedule", order)
        by_name = self.answer(*arguments, "--microbatches", "2")
        self.assertEqual(by_file["baseline"], by_name["baseline"])
        self.assertEqual(by_file["frontier"], by_name["frontier"])

    def test_stages_are_spread_or_listed(self):
        spread = self.answer(*USUAL, "--stages", "2")
        listed = self.answer(*USUAL, "--stages", "0,3")
        self.assertEqual(spread["frontier"], listed["frontier"])
        self.assertEqual(self.answer(*USUAL, "--stages", "6")["pipeline"]["stages"], 6)

    def test_gpus_of_a_stage_multiply_energy(self):
        one, eight = self.answer(*USUAL), self.answer(*USUAL, "--tensor-parallel", "8")
        self.assertAlmostEqual(eight["baseline"]["energy_joules"] / one["baseline"]["energy_joules"], 8)
        self.assertAlmostEqual(eight["plan"]["saving"], one["plan"]["saving"], places=3)

    def test_clocks_change_less_often_when_told(self):
        free = self.answer(*USUAL, "--deadline", "1.1x")["plan"]
        bound = self.answer(*USUAL, "--deadline", "1.1x", "--least-instructions", "4", "--latency", "1ms")["plan"]
        self.assertLess(bound["clock_changes"], free["clock_changes"])
        self.assertLessEqual(bound["time_seconds"], bound["deadline_seconds"] + 1e-9)

    def test_the_exponential_model_has_a_frontier_and_no_plan(self):
        answer = self.answer(*USUAL, "--cost", "exponential")
        self.assertIsNone(answer["plan"])
        self.assertGreater(len(answer["frontier"]), 10)
        self.assertIn("exponential", self.refused(*USUAL, "--cost", "exponential", "--out", self.directory / "plan"))


class PlanOutputTest(PlanTestCase):
    def test_the_terminal_shows_pipeline_findings_and_table(self):
        text = self.plan(*USUAL)
        for part in ("All at the highest clock", "The plan", "stage 3", "blank: waiting", "slower by",
                     "above the least possible", "No plan within"):
            self.assertIn(part, text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 110, line)
        self.assertIn("F0", text)

    def test_the_plan_is_written_and_comes_back_through_the_references_file(self):
        out, reference = self.directory / "plan.json", self.directory / "schedule.py"
        answer = self.answer(*USUAL, "--deadline", "1.1x", "--out", out, "--reference-schedule", reference)
        plan = json.loads(out.read_text())
        self.assertEqual(plan["time_seconds"], answer["plan"]["time_seconds"])
        self.assertEqual([len(stage) for stage in plan["stages"]], [16] * 4)
        self.assertLessEqual({"instruction", "microbatch", "clock_mhz", "start_seconds", "time_seconds"},
                             set(plan["stages"][0][0]))
        again = self.answer(*USUAL, "--from-reference", reference)
        self.assertAlmostEqual(again["plan"]["time_seconds"], plan["time_seconds"])
        self.assertAlmostEqual(again["plan"]["energy_joules"], plan["energy_joules"], places=6)
        self.assertGreaterEqual(again["plan"]["gap"], -1e-9)
        self.assertIn("The given schedule takes", self.plan(*USUAL, "--from-reference", reference))

    def test_pictures_and_page_are_written(self):
        page, pictures = self.directory / "plan.html", self.directory / "pictures"
        done = self.run_plan(*USUAL, "--deadline", "1.1x", "--html", page, "--svg", pictures)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("<html", page.read_text())
        svg = (pictures / "pipeline.svg").read_text()
        self.assertGreaterEqual(svg.count("<rect"), 128)
        self.assertIn("power (W)", svg)
        self.assertIn("Deadline", (pictures / "frontier.svg").read_text())
        with open(pictures / "pipeline.csv", encoding="utf-8") as file:
            spans = [row for row in csv.DictReader(file) if row["series"] == "Computations"]
        self.assertEqual(len(spans), 128)
        self.assertTrue(all(float(row["until"]) > float(row["x"]) for row in spans))

    def test_very_many_computations_show_their_beginning_and_their_end(self):
        pictures = self.directory / "pictures"
        done = self.run_plan("--profile", EXAMPLE, "--blocking-power", "80", "--microbatches", "2000", "--deadline",
                             "1.1x", "--svg", pictures)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("this deadline alone", done.stdout)
        svg = (pictures / "pipeline.svg").read_text()
        self.assertIn("the beginning", svg)
        self.assertIn("the end", svg)
        self.assertLess(len(svg), 8_000_000)
        self.assertFalse((pictures / "frontier.svg").exists())


class BadInputTest(PlanTestCase):
    def test_odd_but_possible_pipelines_work(self):
        one = self.plan(*self.profile(HEADER + rows(clocks=((1410, 0.1, 30),))))
        self.assertIn("there is nothing to choose", one)
        crooked = HEADER + rows(clocks=((1410, 0.1, 30), (1110, 0.09, 31), (810, 0.16, 21)))
        self.assertGreater(self.answer(*self.profile(crooked))["plan"]["saving"], 0)
        few = self.answer("--profile", EXAMPLE, "--microbatches", "1", "--blocking-power", "80")
        self.assertEqual(few["pipeline"]["computations"], 8)

    def test_profiles_that_cannot_be_are_refused(self):
        for content, message in (
                (HEADER + rows().replace("30\n", "-30\n"), "energy from 0"),
                (HEADER + rows().replace("1,backward", "2,backward"), "stage 1"),
                (HEADER + rows(stages=1).replace("0,", "1,", 1).replace("0,forward", "1,forward"), "stage"),
                (HEADER + rows() + "0,forward,fast,0.1,30\n", "line"),
                (HEADER + rows() + "0,forward\n", "line"),
                ("", "no rows"),
                ("a,b\n1,2\n", "stage"),
                ("\x00\xff", "stage")):
            self.assertIn(message, self.refused(*self.profile(content)), content)
        self.assertIn("cannot read", self.refused("--profile", self.directory / "absent.csv", "--microbatches", "4",
                                                  "--blocking-power", "80", code=3))

    def test_schedules_that_cannot_be_are_refused(self):
        usual = ["--profile", self.file("p.csv", HEADER + rows()), "--blocking-power", "80", "--schedule"]
        circle = self.file("circle.txt", "F0 B0 F1 B1\nF1 B1 F0 B0\n")
        self.assertIn("wait", self.refused(*usual, circle))
        self.assertIn("line 1", self.refused(*usual, self.file("words.txt", "F0 what3\nF0 B0\n")))
        self.assertIn("neither", self.refused(*usual, "zigzag", "--microbatches", "4"))
        self.assertIn("before its forward", self.refused(*usual, self.file("early.txt", "B0 F0\nF0 B0\n")))
        self.assertIn("they must agree", self.refused(*usual, self.file("one.txt", "F0 B0\n")))

    def test_an_output_never_replaces_an_input_or_another_output(self):
        profile = self.file("profile.csv", HEADER + rows())
        usual = ["--profile", profile, "--microbatches", "4", "--blocking-power", "80"]
        before = pathlib.Path(profile).read_text(encoding="utf-8")
        self.assertIn("--profile and --out are the same file", self.refused(*usual, "--out", profile))
        self.assertEqual(pathlib.Path(profile).read_text(encoding="utf-8"), before)
        target = self.directory / "both"
        self.assertIn("--out and --html are the same file",
                      self.refused(*usual, "--out", target, "--html", self.directory / "." / "both"))
        self.assertFalse(target.exists())

    def test_a_reference_schedule_is_judged_with_the_latency_of_its_changes(self):
        schedule = self.directory / "schedule.py"
        planned = self.answer(*USUAL, "--deadline", "1.05x", "--latency", "4ms", "--reference-schedule", schedule)
        judged = self.answer(*USUAL, "--from-reference", schedule, "--latency", "4ms")
        self.assertAlmostEqual(judged["plan"]["energy_joules"], planned["plan"]["energy_joules"], places=6)
        self.assertAlmostEqual(judged["plan"]["time_seconds"], planned["plan"]["time_seconds"], places=9)

    def test_numbers_that_cannot_be_are_refused(self):
        base = ["--profile", EXAMPLE, "--blocking-power", "80", "--microbatches"]
        self.assertIn("--microbatches", self.refused(*base, "0"))
        self.assertIn("131072", self.refused(*base, "1000000"))
        self.assertIn("--microbatches is missing", self.refused(*base[:-1]))
        self.assertIn("--blocking-power is missing", self.refused("--profile", EXAMPLE, "--microbatches", "8"))
        for flag, value in (("--deadline", "soon"), ("--deadline", "-1s"), ("--deadline", "0x"), ("--pace", "nan"),
                            ("--stages", "0"), ("--stages", "0,9"), ("--stages", "x"), ("--chunks", "2"),
                            ("--least-instructions", "0"), ("--latency", "x"), ("--tensor-parallel", "0"),
                            ("--cost", "cubic"), ("--blocking-power", "-1")):
            self.refused("--profile", EXAMPLE, "--microbatches", "8",
                         *([] if flag == "--blocking-power" else ["--blocking-power", "80"]), flag, value)
        self.refused()
        self.refused(*USUAL, "--deadline", "1.1x", "--pace", "1.2x")

    def test_a_deadline_below_the_fastest_iteration_is_told(self):
        message = self.refused(*USUAL, "--deadline", "0.5x")
        fastest = self.answer(*USUAL)["fastest_seconds"]
        self.assertIn(f"the fastest iteration takes {fastest:.6g} s", message)

    def test_instances_that_cannot_be_are_refused(self):
        self.assertEqual(self.answer("--instance", self.file("i.json", instance()))["pipeline"]["name"], "tiny")
        for content, message in (
                ("{", "JSON"), ("[]", "instance"), (instance(nodes=[]), "nodes"),
                (instance(nodes=[[0, 0, "F", 9]]), "nodes[0]"), (instance(edges=[[0, 5]]), "edges[0]"),
                (instance(edges=[[0, 1], [1, 0]]), "wait"), (instance(num_stages=0), "num_stages"),
                (instance(p2p_power_w="much"), "p2p_power_w"), (instance(specs=[]), "specs")):
            self.assertIn(message, self.refused("--instance", self.file("i.json", content)), content)
        self.assertIn("leave out", self.refused("--instance", self.file("i.json", instance()), "--microbatches", "4"))
        self.refused("--instance", self.file("i.json", instance()), "--profile", EXAMPLE)

    def test_reference_schedules_that_do_not_fit_are_refused(self):
        usual = [*self.profile(HEADER + rows(stages=1)), "--from-reference"]
        whole = "[[" + "('forward', 1410), ('backward', 1110), " * 4 + "]]"
        self.plan(*usual, self.file("good.py", whole))
        for content, message in (
                ("import os", "line 1, column 1"), ("[[]]", "microbatches"), ("[]", "stages"),
                (whole.replace("1110", "1111"), "1111 MHz"), (whole.replace("backward", "forward"), "instruction 1")):
            self.assertIn(message, self.refused(*usual, self.file("bad.py", content)), content)

    def test_outputs_that_cannot_be_written_are_refused_before_the_work(self):
        for flag in ("--out", "--reference-schedule", "--html"):
            done = self.run_plan(*USUAL, flag, self.directory / "absent" / "file")
            self.assertIn(done.returncode, (3, 4), done.stderr)
            self.assertRegex(done.stderr, r"\Azeus: [^\n]+\n\Z")


@unittest.skipUnless((DATA / "instances").is_dir(), f"the shared pipelines are not at {DATA}")
class SharedInstanceTest(PlanTestCase):
    def check(self, name, cost, unit):
        answer = self.answer("--instance", DATA / "instances" / f"{name}.json", "--cost", cost)
        with open(DATA / "frontiers" / f"{name}.exact_{'exp' if cost == 'exponential' else 'hull'}.csv",
                  encoding="utf-8") as file:
            expected = list(csv.DictReader(line for line in file if not line.startswith("#")))
        ours = {round(point["time_seconds"] / unit): point["energy_joules"] for point in answer["frontier"]}
        blocking = answer["pipeline"]["stages"] * answer["pipeline"]["blocking_power_watts"]
        for row in expected if cost == "exponential" else (expected[0], expected[-1]):
            ticks = int(row["time_q"])
            self.assertIn(ticks, ours)
            self.assertAlmostEqual(ours[ticks] / (float(row["eff_cost"]) + blocking * ticks * unit), 1, delta=1e-6)
        return answer

    def test_the_published_frontier_of_gpt3_comes_out(self):
        answer = self.check("sosp24_gpt3-175b_a100_sxm_8x12", "exponential", 1e-3)
        self.assertAlmostEqual(answer["frontier"][-1]["time_seconds"], 2.818)
        self.assertAlmostEqual(answer["frontier"][-1]["energy_joules"], 6212.8489, places=3)

    def test_the_exact_hull_comes_out_and_plans_stay_close_to_it(self):
        answer = self.check("gpt3_a100_4x8", "hull", 1e-6)
        for row in answer["slowdowns"]:
            self.assertLess(row["gap"], 0.005, row)
            self.assertLessEqual(row["time_seconds"], row["deadline_seconds"] + 1e-9)


if __name__ == "__main__":
    unittest.main()
