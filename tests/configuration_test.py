"""Defaults of options: /etc, the user's file, the environment and the command line, in this order of strength."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from sim_testing import ZEUS


class ConfigurationTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="zeus-configuration-")
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.file = self.home / ".config" / "zeus" / "zeus.toml"
        self.file.parent.mkdir(parents=True)

    def run_zeus(self, *words, **variables):
        environment = {"LC_ALL": "C.UTF-8", "HOME": str(self.home), "PATH": os.environ["PATH"]}
        return subprocess.run([ZEUS, *words], capture_output=True, text=True, timeout=60, check=False,
                              env=environment | variables)

    def zeus(self, *words, code=0, **variables):
        done = self.run_zeus(*words, **variables)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def shown(self, *words, **variables):
        rows = json.loads(self.zeus("config", "show", "--json", *words, **variables))
        return {row["option"]: (row["value"], row["from"]) for row in rows}

    def test_flags_are_stronger_than_the_environment_and_that_than_files(self):
        base = self.home / "base.json"
        base.write_text("{}")

        def complaint(*words, **variables):
            """The number that zeus diff was given is in its complaint."""
            return self.zeus("diff", *words, str(base), str(base), code=8, **variables)

        self.file.write_text('[diff]\nconfidence = 11\n')
        self.assertIn(f"{self.file}:2: --confidence", complaint())
        self.assertIn("environment ZEUS_DIFF_CONFIDENCE: --confidence", complaint(ZEUS_DIFF_CONFIDENCE="12"))
        self.assertIn("not \"13\"", complaint("--confidence", "13", ZEUS_DIFF_CONFIDENCE="12"))

    def test_a_flag_of_a_file_holds(self):
        self.file.write_text('json = true\n')
        self.assertIsInstance(json.loads(self.zeus("config", "show")), list)
        self.assertNotIn("[", self.zeus("config", "show", "--json=false"))

    def test_a_flag_for_all_verbs_is_no_value_of_options(self):
        self.file.write_text("json = true\n")  # zeus run --json wants the name of a file.
        self.assertNotIn("run.json", self.shown())
        self.assertIn("job.list.json", self.shown())

    def test_the_table_of_a_verb_is_stronger_than_keys_for_all(self):
        self.file.write_text('server = "http://all"\n[job.list]\nserver = "http://list"\n')
        self.assertEqual(self.shown()["job.list.server"], ("http://list", f"{self.file}:3"))
        self.assertEqual(self.shown()["job.show.server"], ("http://all", f"{self.file}:1"))

    def test_variables_with_names_of_their_own_are_stronger_than_files(self):
        self.file.write_text(f'database = "sqlite://{self.home}/all.db"\n')
        self.assertIn(f"{self.home}/all.db", self.zeus("job", "list"))
        message = self.run_zeus("job", "list", ZEUS_SERVER="http://127.0.0.1:1").stderr
        self.assertIn("127.0.0.1", message)
        self.assertNotIn("all.db", message)

    def test_verbs_that_serve_have_their_defaults_too(self):
        tokens = self.home / "tokens.toml"
        self.file.write_text(f'carbon = "DE"\n[train]\ncarbon = "FR"\n[serve]\ntokens = "{tokens}"\n')
        done = self.run_zeus("serve", "--new-token", "me")
        if done.returncode == 4:
            self.skipTest("zeus was built without servers")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("me", tokens.read_text())
        self.file.write_text("[serve]\ntoken = 1\n")
        self.assertIn("did you mean tokens?", self.zeus("serve", "--new-token", "me", code=2))

    def test_the_command_line_rules_out_what_contradicts_it(self):
        self.file.write_text('server = "http://127.0.0.1:1"\n')
        self.zeus("job", "list", "--database", f"sqlite:///{self.home}/jobs.db")

    def test_a_verb_shows_its_defaults_and_what_is_not_set(self):
        rows = self.shown("diff")
        self.assertEqual(rows["diff.confidence"], ("0.95", "default"))
        self.assertIn((None, "not set"), rows.values())

    def test_nothing_configured_is_said(self):
        self.assertIn("nothing is configured", self.zeus("config", "show"))

    def test_mistakes_name_file_and_line(self):
        for text, complaint in (
                ('[run]\n\ncarbno = "DE"\n', ':3: zeus run has no option --carbno: did you mean carbon?'),
                ('[rnu]\ncarbon = "DE"\n', ':1: zeus has no verb "rnu": did you mean run?'),
                ('nonsense = 1\n', ':1: no verb of zeus has the option --nonsense'),
                ('[run]\nquiet = 5\n', ':2: quiet must be true or false'),
                ('[run]\ncarbon = true\n', ':2: carbon must be a number or a text'),
                ('[run]\ncarbon = ["DE", "FR"]\n', ':2: carbon takes one value, not a list'),
                ('[log]\nlevel = "loud"\n', ':2: level must be one of debug, info'),
                ('[run\n', ':1: ')):
            self.file.write_text(text)
            for words in (["config", "show"], ["run", "--", "true"]):
                self.assertIn(f"{self.file}{complaint}",
                              self.zeus(*words, code=2), text)
            self.zeus("--help")  # Help does not depend on it.
            self.zeus("run", "--help")

    def test_a_file_that_cannot_be_read_is_named(self):
        self.file.mkdir()
        self.assertIn(str(self.file), self.run_zeus("config", "show").stderr)
        self.assertNotEqual(self.run_zeus("config", "show").returncode, 0)

    def test_one_file_instead_of_all(self):
        self.file.write_text("nonsense = 1\n")
        other = self.home / "other.toml"
        other.write_text('carbon = "FR"\n')
        self.assertEqual(self.shown(ZEUS_CONFIG=str(other))["run.carbon"], ("FR", f"{other}:1"))
        self.assertEqual(self.shown(ZEUS_CONFIG=""), {})

    def test_passwords_are_not_shown(self):
        self.file.write_text('database = "postgresql://me:secret@host/jobs"\n')
        self.assertNotIn("secret", self.zeus("config", "show"))

    def test_logs_are_text_or_json(self):
        self.file.write_text('[log]\nformat = "json"\n')
        message = self.zeus("job", "show", "none", "--database", f"sqlite:///{self.home}/jobs.db", code=3)
        record = json.loads(message.splitlines()[-1])
        self.assertEqual((record["level"], record["program"]), ("error", "zeus"))
        self.assertIn("none", record["message"])
        text = self.zeus("job", "show", "none", "--database", f"sqlite:///{self.home}/jobs.db", code=3,
                         ZEUS_LOG_FORMAT="text")
        self.assertTrue(text.startswith("zeus: "), text)


if __name__ == "__main__":
    unittest.main()
