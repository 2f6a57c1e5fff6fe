"""Man pages, completion and help topics: all are made from the commands, so nothing is missing in them."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from sim_testing import ZEUS

PROGRAMS = [program for program in (ZEUS, os.environ.get("ZEUSD_BINARY")) if program]
ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"], "ZEUS_CONFIG": ""}


def say(*words, code=0):
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=ENVIRONMENT)
    if done.returncode != code:
        raise AssertionError(f"{words}: {done.returncode}: {done.stderr}")
    return done.stdout if code == 0 else done.stderr


def section(text, heading):
    found = re.search(rf"^{heading}:\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def verbs_below(program, above=()):
    """Each verb as a tuple of words, with the options that its --help names."""
    text = say(program, *above, "--help")
    options = set(re.findall(r"^ {2,6}(?:-\w,)?(--[\w-]+)", text, re.MULTILINE))
    yield above, options - {"--help"}
    for name in re.findall(r"^ {2}(\w[\w-]*)", section(text, "Subcommands"), re.MULTILINE):
        yield from verbs_below(program, (*above, name))


def plain(roff):
    return roff.replace("\\-", "-").replace("\\e", "\\")


class ManPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="zeus-manual-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        for program in PROGRAMS:
            say(program, "manual", "--write", str(cls.folder))
        cls.pages = sorted((cls.folder / "man").rglob("*.[178]"))

    def test_every_verb_and_option_has_its_place(self):
        for program in PROGRAMS:
            name = pathlib.Path(program).name
            known = list(verbs_below(program))
            self.assertGreater(len(known), 5)
            self.assertGreater(sum(len(options) for _, options in known), 10)
            for words, options in known:
                page = "-".join([name, *words[:1]])
                [path] = [one for one in self.pages if one.stem == page]
                text = plain(path.read_text())
                self.assertIn(" ".join([name, *words]), text)
                for option in options:
                    self.assertRegex(text, rf"{option}\b", f"{words}: {path.name}")

    def test_each_page_is_printed_alone(self):
        for program in PROGRAMS:
            name = pathlib.Path(program).name
            for page in self.pages:
                words = page.stem.removeprefix(name + "-")
                if page.stem == name or (page.stem.startswith(name + "-") and "-" not in words):
                    printed = say(program, "manual", *([words] if page.stem != name else []))
                    self.assertEqual(printed, page.read_text())
        self.assertIn("there is no page of", say(ZEUS, "manual", "nonsense", code=3))

    def test_man_has_no_complaint(self):
        if shutil.which("man") is None or shutil.which("groff") is None:
            self.skipTest("man or groff is not installed")
        for page in self.pages:
            done = subprocess.run(["man", "--warnings=mac", "-l", page], capture_output=True, text=True, timeout=60,
                                  check=False, env=ENVIRONMENT | {"MANWIDTH": "80", "MAN_KEEP_FORMATTING": ""})
            self.assertEqual((done.returncode, done.stderr), (0, ""), page.name)
            self.assertIn("NAME", done.stdout)

    def test_mandoc_finds_no_error(self):
        if shutil.which("mandoc") is None:
            self.skipTest("mandoc is not installed")
        for page in self.pages:
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "error", page], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.stdout, "", page.name)


class CompletionTest(unittest.TestCase):
    def bash(self, program, *words):
        """Returns the words that a bash offers for the last of these."""
        name = pathlib.Path(program).name
        script = f"""
            source <("{program}" completion bash) || exit 1
            COMP_WORDS=({name} {" ".join(f"'{word}'" for word in words)})
            COMP_CWORD={len(words)}
            _{name} || exit 1
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        return set(say("bash", "--norc", "-c", script).split())

    def test_bash_completes_every_verb_and_option(self):
        for program in PROGRAMS:
            known = list(verbs_below(program))
            for words, options in known:
                below = {one[-1] for one, _ in known if one[:-1] == words and one}
                if below:
                    self.assertLessEqual(below, self.bash(program, *words, ""), words)
            # Once for each verb would start some hundred shells.
            for words, options in known[:: max(1, len(known) // 12)]:
                self.assertLessEqual(options, self.bash(program, *words, "--"), words)

    def test_bash_completes_values(self):
        self.assertEqual(self.bash(ZEUS, "completion", "z"), {"zsh"})
        self.assertEqual(self.bash(ZEUS, "s"), {"serve", "sim", "slurm"})
        with tempfile.TemporaryDirectory(prefix="zeus-completion-") as folder:
            pathlib.Path(folder, "results.json").touch()
            found = self.bash(ZEUS, "job", "list", "--database", f"{folder}/res")
            self.assertEqual(found, {f"{folder}/results.json"})

    def test_bash_completes_the_command_of_the_user(self):
        self.assertIn("bash", self.bash(ZEUS, "run", "--json", "--", "bas"))

    def test_every_word_is_in_the_scripts_of_all_shells(self):
        for program in PROGRAMS:
            known = list(verbs_below(program))
            for shell in ("bash", "zsh", "fish"):
                script = say(program, "completion", shell)
                for words, options in known:
                    self.assertIn(" ".join(words), script)
                    for option in options:
                        self.assertIn(option.removeprefix("--") if shell == "fish" else option, script, words)

    def test_shells_accept_their_scripts(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell) is None:
                continue  # bash is always there.
            for program in PROGRAMS:
                done = subprocess.run([shell, "--no-execute" if shell == "fish" else "-n"], text=True, timeout=60,
                                      input=say(program, "completion", shell), capture_output=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_fish_completes(self):
        if shutil.which("fish") is None:
            self.skipTest("fish is not installed")
        script = f'source (env {ZEUS} completion fish | psub); complete -C "zeus sim st"'
        with tempfile.TemporaryDirectory(prefix="zeus-fish-") as home:
            self.assertIn("start", say("env", f"HOME={home}", "fish", "--private", "-c", script))


class HelpTopicTest(unittest.TestCase):
    def test_topics_are_named_and_printed(self):
        [topics] = re.findall(r"zeus help TOPIC: ([\w, \n-]+)\.", say(ZEUS, "--help"))
        names = re.split(r",\s*", topics)
        self.assertIn("configuration", names)
        for name in names:
            text = say(ZEUS, "help", name)
            self.assertGreater(len(text), 200, name)
            self.assertLessEqual(max(map(len, text.splitlines())), 100, name)

    def test_a_mistyped_topic_is_answered_with_the_right_one(self):
        self.assertIn("did you mean configuration?", say(ZEUS, "help", "configuratoin", code=2))


if __name__ == "__main__":
    unittest.main()
