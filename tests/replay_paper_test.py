"""`zeus replay paper` and `zeus replay history`: from the command line to files and back."""

import json
import os
import pathlib
import resource
import subprocess
import tempfile
import unittest

from sim_testing import ZEUS
from train_testing import TrainTestCase

FIGURES = [1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]
TABLES = ["1", "2", "claims", "reference", "settings", "sweep"]


def replay(*arguments, status=0, text=None):
    done = subprocess.run([ZEUS, "replay", *arguments], input=text, capture_output=True, text=True,
                          timeout=600, check=False)
    assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stderr}"
    return done.stdout if status == 0 else done.stderr


class PaperTest(unittest.TestCase):
    """With the built-in catalogue, which is always there; traces are tested beside the code."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = pathlib.Path(cls.folder.name) / "out"
        cls.result = json.loads(replay("paper", "--seeds", "4", "--clusters", "1", "--threads", "2",
                                       "--json", "--out", str(cls.out)))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_figure_and_table_is_a_file(self):
        for figure in FIGURES:
            svg = (self.out / "figures" / f"figure-{figure}.svg").read_text(encoding="utf-8")
            self.assertTrue(svg.startswith("<svg") or svg.startswith("<?xml"), figure)
            rows = (self.out / "figures" / f"figure-{figure}.csv").read_text(encoding="utf-8")
            self.assertGreater(rows.count("\n"), 3, figure)
        for table in TABLES:
            self.assertTrue((self.out / "figures" / f"table-{table}.csv").exists(), table)

    def test_all_24_settings_have_three_policies(self):
        self.assertEqual(len(self.result["settings"]), 24)
        for setting in self.result["settings"]:
            self.assertEqual(set(setting["policies"]), {"zeus", "knowledge_gradient", "grid"})
            for policy in setting["policies"].values():
                self.assertGreater(policy["eta5_vs_default"], 0)

    def test_every_claim_has_a_verdict(self):
        verdicts = {claim["verdict"] for claim in self.result["claims"]}
        self.assertLessEqual(verdicts, {"reproduced", "within spread", "differs", "not covered"})
        self.assertGreater(len(self.result["claims"]), 25)
        self.assertEqual(self.result["source"], "the built-in workload catalogue")

    def test_the_same_bytes_for_any_number_of_threads(self):
        one, eight = (replay("paper", "--seeds", "3", "--clusters", "1", "--json", "--threads",
                             threads) for threads in ("1", "8"))
        self.assertEqual(one, eight)

    def test_a_folder_that_cannot_be_written_is_found_out_before_the_work(self):
        done = subprocess.run([ZEUS, "replay", "paper", "--out", "/proc/zeus-paper"], capture_output=True,
                              text=True, timeout=600, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot write: /proc/zeus-paper: no file can be made in /proc", done.stderr)

    def test_a_folder_for_everything_leaves_a_short_summary(self):
        folder = pathlib.Path(self.folder.name) / "quiet"
        done = subprocess.run([ZEUS, "replay", "paper", "--seeds", "2", "--clusters", "1", "--out",
                               str(folder)], capture_output=True, text=True, timeout=600, check=True)
        lines = done.stdout.splitlines()
        self.assertLess(len(lines), 12, done.stdout)
        self.assertRegex(done.stdout, r"Of \d+ claims: ")
        self.assertIn(f"is in {folder}: paper.html, paper.json, figures", lines[-1])
        self.assertEqual(done.stderr, "")
        self.assertTrue((folder / "paper.json").exists())

    def test_traces_that_are_not_there_are_named(self):
        self.assertIn("/nowhere", replay("paper", "--trace-dir", "/nowhere", status=3))


class HistoryTest(TrainTestCase):
    def setUp(self):
        super().setUp()
        self.train(*self.options(source=["--metric-file", self.path("m")]), *self.itself(),
                   "--seed", "1", "--recurrences", "8", "--quiet", *self.command(
                       "--out", self.path("m"), "--seconds", "0",
                       "--epochs", '{"32": 20, "64": 10, "128": 4}'))
        self.export = self.path("job.jsonl")
        self.job("export", "mnist", "--output", self.export)

    def test_what_was_recorded_is_told_beside_what_would_have_been(self):
        answer = json.loads(replay("history", self.export, "--json"))
        trials = self.trials()
        self.assertEqual(answer["recorded"]["recurrences"], 8)
        self.assertAlmostEqual(answer["recorded"]["energy_joules"],
                               sum(trial["energy_joules"] for trial in trials))
        self.assertEqual(answer["best"]["batch_size"], 128)
        # The default batch size needs 10 epochs of 100 J, every time.
        usual = answer["policies"]["default"]["energy_joules"]
        self.assertAlmostEqual(usual["mean"], 8 * 10 * 100, delta=1)
        self.assertLess(answer["policies"]["oracle"]["energy_joules"]["mean"], usual["mean"])

    def test_another_eta_gpu_and_policy(self):
        answer = json.loads(replay("history", self.export, "--eta", "0.8", "--policy",
                                   "knowledge_gradient,zeus", "--recurrences", "40", "--json"))
        self.assertEqual(answer["eta"], 0.8)
        self.assertEqual(answer["recurrences"], 40)
        self.assertEqual(list(answer["policies"]), ["knowledge_gradient", "zeus"])
        moved = json.loads(replay("history", self.export, "--gpu", "a40", "--json"))
        self.assertEqual(moved["gpu_model"], "A40")
        self.assertTrue(moved["estimated"])

    def test_units_fit_the_size(self):
        # Tens of runs of a hundred joules an epoch.
        text = replay("history", self.export)
        self.assertRegex(text, r"energy \(kJ\) +time \(min\) +cost \(")

    def test_a_line_without_end_is_refused_before_it_fills_the_memory(self):
        endless = self.path("endless.jsonl")
        with open(endless, "wb") as file:
            file.truncate(1 << 30)
        # A sanitizer needs more than any limit for itself.
        most = -1 if "ZEUS_SANITIZED" in os.environ else 256 << 20
        done = subprocess.run(
            [ZEUS, "replay", "history", endless], capture_output=True, text=True, timeout=600,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (most, most)))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("a line of more than 16 MB", done.stderr)

    def test_a_pipe_and_tables(self):
        with open(self.export, encoding="utf-8") as file:
            text = replay("history", "-", text=file.read())
        self.assertIn("as recorded on", text)
        self.assertIn("Measured.", text)

    def test_bad_files_are_refused_with_their_line(self):
        with open(self.export, encoding="utf-8") as file:
            lines = file.read().splitlines()
        bad = self.path("bad.jsonl")
        for content, words in (("", "empty"), ("\n".join(lines[1:]), "line 1"),
                               (lines[0] + "\n{", "line 2"),
                               (lines[0] + "\n" + lines[0], "second job")):
            with open(bad, "w", encoding="utf-8") as file:
                file.write(content)
            self.assertIn(words, replay("history", bad, status=2))
        self.assertIn("job.jsonl.gone", replay("history", self.export + ".gone", status=3))
        with open(bad, "w", encoding="utf-8") as file:
            file.write(lines[0])
        self.assertIn("nothing to replay", replay("history", bad, status=3))

    def test_reports_that_cannot_be_are_refused_with_their_line(self):
        with open(self.export, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        place = max(i for i, record in enumerate(records) if record.get("kind") == "trial_reported")
        bad = self.path("bad.jsonl")
        for field, value in (("energy_joules", -1e5), ("epochs", 2**31 - 1), ("power_limit_watts", 0)):
            changed = json.loads(json.dumps(records))
            changed[place]["detail"][field] = value
            with open(bad, "w", encoding="utf-8") as file:
                file.write("\n".join(json.dumps(record) for record in changed))
            self.assertIn(f"bad.jsonl: line {place + 1}: {field}", replay("history", bad, status=2))

    def test_unknown_names_are_listed(self):
        self.assertIn("V100", replay("history", self.export, "--gpu", "z80", status=3))
        self.assertIn("knowledge_gradient",
                      replay("history", self.export, "--policy", "luck", status=2))


if __name__ == "__main__":
    unittest.main()
