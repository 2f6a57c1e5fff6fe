"""`zeus replay cluster`: the same bytes for any number of threads, honest about bad rows, refused where nothing is left."""

import gzip
import json
import lzma
import os
import subprocess
import tempfile
import unittest

ZEUS = os.environ.get("ZEUS_BINARY", "build/dev/bin/zeus")
HEADER = "group,start_time,end_time,dataset,runtime_ratio\n"
SMALL = "jobs=6000,groups=60,seed=3"


class ReplayClusterTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="zeus-replay-cluster-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name):
        return os.path.join(self.directory, name)

    def file(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def run_cluster(self, *arguments):
        return subprocess.run([ZEUS, "replay", "cluster", *arguments], capture_output=True, text=True, timeout=100)

    def cluster(self, *arguments):
        done = self.run_cluster(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def replay(self, *arguments):
        return json.loads(self.cluster(*arguments, "--json"))

    def refused(self, *arguments):
        done = self.run_cluster(*arguments)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.returncode, done.stderr

    def test_any_number_of_threads_prints_the_same_bytes(self):
        with_one = self.cluster("--generate", SMALL, "--json", "--threads", "1")
        for threads in ("1", "2", "8"):
            self.assertEqual(self.cluster("--generate", SMALL, "--json", "--threads", threads), with_one)

    def test_totals_per_policy_and_workload_add_up(self):
        result = self.replay("--generate", SMALL, "--policy", "zeus,default,grid,knowledge_gradient")
        self.assertEqual(set(result["policies"]), {"zeus", "default", "grid", "knowledge_gradient"})
        for name, policy in result["policies"].items():
            workloads = policy["workloads"].values()
            self.assertEqual(policy["total"]["jobs"], 6000, name)
            self.assertEqual(sum(workload["jobs"] for workload in workloads), 6000, name)
            for amount in ("energy_joules", "time_seconds", "cost_joules", "regret"):
                self.assertAlmostEqual(sum(workload[amount] for workload in workloads) / policy["total"][amount], 1)
        self.assertEqual(result["policies"]["default"]["total"]["energy_vs_default"], 1)
        self.assertEqual(result["problems"]["rows_left_out"], 0)

    def test_zeus_takes_less_energy_than_default_and_grid_for_every_workload(self):
        policies = self.replay("--generate", "jobs=60000,groups=300")["policies"]
        self.assertEqual(len(policies["zeus"]["workloads"]), 6)
        for name, zeus in policies["zeus"]["workloads"].items():
            self.assertLess(zeus["energy_vs_default"], 1, name)
            self.assertLess(zeus["energy_joules"], policies["grid"]["workloads"][name]["energy_joules"], name)
        self.assertLess(policies["knowledge_gradient"]["total"]["regret"], policies["zeus"]["total"]["regret"])

    def test_default_is_always_there_to_compare_with(self):
        self.assertEqual(set(self.replay("--generate", SMALL, "--policy", "zeus")["policies"]), {"zeus", "default"})

    def test_writing_follows_links_and_spares_protected_files_and_devices(self):
        target = self.file("target.csv", "old")
        os.symlink(target, self.path("link.csv"))
        self.cluster("--generate", SMALL, "--write", self.path("link.csv"))
        self.assertTrue(os.path.islink(self.path("link.csv")))
        with open(target) as file:
            self.assertEqual(file.readline(), HEADER)
        self.assertEqual(sorted(os.listdir(self.directory)), ["link.csv", "target.csv"])
        piped = subprocess.run([ZEUS, "replay", "cluster", "--generate", SMALL, "--write", "/dev/stderr"],
                               capture_output=True, text=True, timeout=100)
        self.assertTrue(piped.stderr.startswith(HEADER))
        self.assertIn("cannot write", self.refused("--generate", SMALL, "--write", self.directory)[1])
        self.assertIn("cannot write", self.refused("--generate", SMALL, "--write", self.path("no/where.csv"))[1])

    def test_two_that_write_the_same_file_leave_the_whole_of_one(self):
        path = self.path("groups.csv")
        writers = [subprocess.Popen([ZEUS, "replay", "cluster", "--generate", f"jobs=60000,groups=60,seed={seed}", "--write", path],
                                    stdout=subprocess.DEVNULL) for seed in range(4)]
        self.assertEqual([writer.wait(100) for writer in writers], [0] * 4)
        self.assertEqual(os.listdir(self.directory), ["groups.csv"])
        result = self.replay("--groups", path, "--policy", "default")
        self.assertEqual(result["problems"]["rows_left_out"], 0)
        self.assertEqual(result["policies"]["default"]["total"]["jobs"], 60000)

    def test_writing_raw_tables_says_what_is_no_part_of_them(self):
        self.file("pai_job_table.csv", "j1,i1,u,Terminated,1,2\nj2,i1,u,Failed,1,2\nj3,i9,u,Terminated,1,2\n")
        self.file("pai_group_tag_table.csv", "i1,u,V100,g1,\n")
        done = self.run_cluster("--pai", self.directory, "--write", self.path("groups.csv"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 jobs did not terminate and 1 have no group", done.stderr)

    def test_names_of_files_do_nothing_to_the_terminal(self):
        for name, content in (("gone\x1b[2J", None), ("empty\x1b[2J", ""), ("columns\x1b[2J", "a,b\n"), ("rows\x1b[2J", HEADER)):
            path = self.path(name) if content is None else self.file(name, content)
            self.assertNotIn("\x1b", self.refused("--groups", path)[1])

    def test_statistics_of_several_clusters_are_those_of_the_first(self):
        for seeds, counted in (("1", 0), ("2", 1)):
            page = self.path("page.html")
            done = self.run_cluster("--generate", SMALL, "--policy", "default", "--seeds", seeds, "--html", page)
            if "install nodejs" in done.stderr:
                self.skipTest(done.stderr)
            with open(page, encoding="utf-8") as file:
                self.assertEqual(file.read().count("The first replay: 6000 jobs"), counted)

    def test_writing_replays_nothing_so_it_goes_with_no_other_output(self):
        for output in (["--json"], ["--csv", self.path("a.csv")], ["--figures", self.path("figures")]):
            _, error = self.refused("--generate", SMALL, "--write", self.path("groups.csv"), *output)
            self.assertIn("--write replays nothing", error)
        self.assertEqual(os.listdir(self.directory), [])

    def test_a_written_cluster_is_the_generated_one_also_packed(self):
        path = self.path("groups.csv")
        text = self.cluster("--generate", SMALL, "--write", path)
        self.assertIn("6000 jobs in 60 groups", text)
        self.assertEqual(os.listdir(self.directory), ["groups.csv"])
        generated = self.replay("--generate", SMALL)["policies"]
        self.assertEqual(self.replay("--groups", path)["policies"], generated)
        with open(path, "rb") as file:
            content = file.read()
        for name, packed in (("a.csv.xz", lzma.compress(content)), ("b.csv.gz", gzip.compress(content))):
            self.assertEqual(self.replay("--groups", self.file(name, packed))["policies"], generated)

    def test_generated_clusters_differ_by_seed_and_have_a_spread(self):
        first = self.replay("--generate", SMALL, "--seeds", "2")
        self.assertEqual(first["replays"], 2)
        self.assertGreater(first["policies"]["zeus"]["total"]["energy_vs_default_sd"], 0)

    def test_the_tables_of_the_raw_trace_become_groups(self):
        jobs, tags = [], []
        for i in range(300):
            runtime = (10, 100, 1000, 5000, 20000, 80000)[i % 6]
            status = "Failed" if i % 50 == 49 else "Terminated"
            jobs.append(f"job{i},inst{i},user,{status},{1000 * i}.0,{1000 * i + runtime}.0")
            tags.append(f"inst{i},user,V100,group{i % 6},")
        jobs.append("odd,inst0,user,Terminated,5.0,")
        self.file("pai_job_table.csv.gz", gzip.compress(("\n".join(jobs) + "\n").encode()))
        self.file("pai_group_tag_table.csv", "\n".join(tags) + "\n")
        result = self.replay("--pai", self.directory)
        self.assertEqual(result["trace"]["groups"], 6)
        self.assertEqual(result["trace"]["jobs"], 294)
        self.assertEqual({share["groups"] for share in result["trace"]["workloads"].values()}, {1})
        self.assertEqual(result["problems"]["rows_left_out"], 1)
        self.assertIn("6 jobs did not terminate", " ".join(result["remarks"]))

    def test_bad_rows_are_reported_and_strict_refuses_them(self):
        rows = "a,0,1,squad,1\na,nan,2,squad,1\na,-5,2,squad,1\na,9,3,squad,1\na,3,4,mnist,1\na,2,3\na,7,8,squad,1\na,5,6,squad,1\n"
        path = self.file("bad.csv", HEADER + rows)
        done = self.run_cluster("--groups", path, "--json", "--policy", "zeus")
        self.assertEqual(done.returncode, 0, done.stderr)
        problems = json.loads(done.stdout)["problems"]
        self.assertEqual((problems["rows_left_out"], problems["rows_put_right"]), (5, 1))
        self.assertEqual([problem["line"] for problem in problems["first"]], [3, 4, 5, 6, 7, 9])
        for line, reason in ((3, 'start_time is not a finite number: "nan"'), (4, "start_time is negative"),
                             (5, "end_time is before start_time"), (6, 'dataset is unknown: "mnist"'),
                             (7, "3 fields instead of 5"), (9, "starts before the row above it")):
            self.assertIn(f"bad.csv:{line}: {reason}", done.stderr)
        code, message = self.refused("--groups", path, "--strict")
        self.assertEqual(code, 2)
        self.assertIn("bad.csv:3: start_time is not a finite number", message)

    def test_input_without_a_job_is_refused_in_one_sentence(self):
        packed = lzma.compress((HEADER + "a,0,1,squad,1\n" * 5000).encode())
        for name, content, reason in (
                ("empty.csv", "", "the file is empty"),
                ("header.csv", HEADER, "no jobs below the first line"),
                ("columns.csv", "group,start_time\na,1\n", "no column end_time, dataset, runtime_ratio"),
                ("unknown.csv", HEADER + "a,0,1,mnist,1\n", 'dataset is unknown: "mnist"'),
                ("cut.csv.xz", packed[:-30], "the packed data end too early"),
                ("damaged.csv.xz", packed[:60] + b"damage" + packed[66:], "damaged")):
            with self.subTest(name):
                code, message = self.refused("--groups", self.file(name, content))
                self.assertEqual(code, 2)
                self.assertIn(reason, message)

    def test_a_wrong_command_line_says_what_to_do(self):
        for arguments, code, reason in (
                ((), 2, "give one of --groups FILE, --pai DIR and --generate SPEC"),
                (("--generate", "jobs=10,groups=20"), 2, "20 groups need at least as many jobs"),
                (("--generate", SMALL, "--policy", "best"), 2, "it must be one of default, grid, zeus"),
                (("--generate", SMALL, "--gpu", "abacus"), 3, "abacus"),
                (("--groups", "absent.csv"), 3, "absent.csv: No such file"),
                (("--pai", self.directory), 3, "no pai_group_tag_table.csv")):
            with self.subTest(arguments):
                done_code, message = self.refused(*arguments)
                self.assertEqual(done_code, code, message)
                self.assertIn(reason, message)

    def test_tables_and_figures_are_written_where_asked(self):
        figures = self.path("figures")
        text = self.cluster("--generate", SMALL, "--csv", self.path("totals.csv"), "--figures", figures)
        self.assertIn("Totals per policy and workload", text)
        with open(self.path("totals.csv"), encoding="utf-8") as file:
            self.assertTrue(file.readline().startswith("policy,workload,jobs"))
        self.assertIn("figure-9.svg", os.listdir(figures))


if __name__ == "__main__":
    unittest.main()
