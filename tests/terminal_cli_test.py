"""How `zeus` looks to the person at the terminal: help, mistakes, colours, width, characters."""

import json
import pathlib
import re
import subprocess
import unittest

from run_testing import RunTestCase
from sim_testing import ZEUS

ROOT = pathlib.Path(__file__).parent.parent
CONTROL = "\x1b["


class HelpTest(unittest.TestCase):
    def zeus(self, *words, code=0, **variables):
        done = subprocess.run([ZEUS, *words], capture_output=True, text=True, timeout=60,
                              check=False, env={"LC_ALL": "C.UTF-8"} | variables)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def verbs(self, *above):
        """Every verb, as words, with those below it."""
        section = re.search(r"^Subcommands:\n(.*?)(?=^\S|\Z)", self.zeus(*above, "--help"),
                            re.MULTILINE | re.DOTALL)
        names = re.findall(r"^ {2}(\w[\w-]*)", section.group(1), re.MULTILINE) if section else []
        for name in names:
            yield [*above, name]
            yield from self.verbs(*above, name)

    def test_no_line_is_wider_than_100_characters(self):
        verbs = list(self.verbs())
        self.assertGreater(len(verbs), 20)
        for verb in [[], *verbs]:
            for locale in ("C.UTF-8", "C"):
                for line in self.zeus(*verb, "--help", LC_ALL=locale).splitlines():
                    self.assertLessEqual(len(line), 100, verb)

    def test_a_narrow_terminal_gets_narrow_lines(self):
        for verb in ([], ["run"], ["train"]):
            lines = self.zeus(*verb, "--help", COLUMNS="80").splitlines()
            self.assertLessEqual(max(map(len, lines)), 80, verb)

    def test_help_is_also_a_verb(self):
        self.assertEqual(self.zeus("help"), self.zeus("--help"))
        self.assertEqual(self.zeus("help", "run"), self.zeus("run", "--help"))
        self.assertEqual(self.zeus("help", "sim", "start"), self.zeus("sim", "start", "--help"))
        self.assertIn("zeus help VERB", self.zeus("help"))
        self.assertIn("did you mean monitor?", self.zeus("help", "montior", code=2))

    def test_what_was_probably_meant_is_named(self):
        for words, meant, place in (
            (["rnu", "--", "true"], "run", "zeus"),
            (["doctro"], "doctor", "zeus"),
            (["sim", "strat"], "start", "zeus sim"),
            (["run", "--jsno", "x", "--", "true"], "--json", "zeus run"),
            (["run", "--jsno=x", "--", "true"], "--json", "zeus run"),
            (["train", "--jobs", "x", "--", "true"], "--job", "zeus train"),
            (["profile", "--slices", "5s", "--", "true"], "--slice", "zeus profile"),
            (["doctor", "--secnds", "3"], "--seconds", "zeus doctor"),
        ):
            with self.subTest(words=words):
                error = self.zeus(*words, code=2)
                self.assertIn(f"did you mean {meant}? (see {place} --help)", error)
                self.assertEqual(error.count("\n"), 1)
        self.assertNotIn("did you mean", self.zeus("banana", code=2))


class TerminalTest(RunTestCase):
    def setUp(self):
        super().setUp()
        self.start("V100")
        for name in ("NO_COLOR", "COLUMNS", "LC_ALL", "LC_CTYPE", "LANG"):
            self.environment.pop(name, None)
        self.environment["TERM"] = "xterm"

    def test_colours_are_for_terminals_that_want_them(self):
        doctor = ("doctor", "--seconds", "0")
        self.assertIn(CONTROL + "32myes" + CONTROL + "0m", self.seen(*doctor))
        self.assertIn(CONTROL + "31mzeus:", self.seen("doctro"))
        self.assertNotIn(CONTROL, self.seen(*doctor, NO_COLOR="1"))
        self.assertNotIn(CONTROL, self.seen(*doctor, TERM="dumb"))
        piped = subprocess.run([ZEUS, *doctor], env=self.environment, capture_output=True,
                               text=True, timeout=60, check=True)
        self.assertNotIn(CONTROL, piped.stdout)

    def test_long_work_shows_how_far_it_is_on_a_terminal_only(self):
        plan = ["plan", "--profile", str(ROOT / "examples/pipeline/profile.csv"), "--microbatches",
                "64", "--blocking-power", "80", "--json"]
        self.assertIn("% of the frontier", self.seen(*plan))
        self.assertNotIn("% of the frontier", self.seen(*plan, TERM="dumb"))
        piped = subprocess.run([ZEUS, *plan], env=self.environment, capture_output=True, text=True,
                               timeout=60, check=True)
        self.assertEqual(piped.stderr, "")

    def test_words_are_not_broken_at_the_edge(self):
        for words in (("doctor", "--seconds", "0"), ("run", "--explain", "--", "true"),
                      ("run", "--gpus", "zero", "--", "true"), ("--help",), ("run", "--help")):
            with self.subTest(words=words):
                text = re.sub(r"\x1b\[\d*m", "", self.seen(*words))
                self.assertTrue(text)
                for line in text.splitlines():
                    # A word that is wider itself stays whole.
                    self.assertTrue(len(line) <= 80 or " " not in line.strip(), line)

    def test_a_locale_without_unicode_gets_ascii(self):
        for command in (["doctor"], ["run", "--explain", "--", "true"], ["sim", "load", "--help"],
                        ["monitor", "--duration", "0.3"]):
            with self.subTest(command=command):
                done = subprocess.run([ZEUS, *command], env=self.environment | {"LC_ALL": "C"},
                                      capture_output=True, timeout=60, check=True)
                text = (done.stdout + done.stderr).decode("ascii")
                self.assertTrue(text)
        self.assertIn("+- ", text)

    def test_json_means_the_same_in_every_locale(self):
        words = [ZEUS, "run", "--quiet", "--label", "Zürich ± 1", "--json", "-", "--", "true"]
        for locale in ("C", "C.UTF-8"):
            done = subprocess.run(words, env=self.environment | {"LC_ALL": locale},
                                  capture_output=True, timeout=60, check=True)
            self.assertEqual(json.loads(done.stdout)["label"], "Zürich ± 1")


if __name__ == "__main__":
    unittest.main()
