"""The demo with few recurrences: it runs to its end and says what it promises."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from report_testing import check_page

BUILD = pathlib.Path(os.environ["ZEUS_BUILD"])
ROOT = pathlib.Path(__file__).resolve().parent.parent


class DemoTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="zeus-demo-test-")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)
        self.environment = {**os.environ, "ZEUS_DEMO_DIR": str(self.folder / "demo"),
                            "XDG_DATA_HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder)}
        self.environment.pop("ZEUS_SERVER", None)

    def run_program(self, *command):
        done = subprocess.run(command, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=380)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_the_demo_ends_with_what_was_chosen_and_saved(self):
        output = self.run_program(ROOT / "examples" / "demo.sh",
                                  os.path.relpath(BUILD, ROOT), "4")
        self.assertRegex(output, r"chosen: batch size \d+, power limit \d+ W on V100")
        # One saving, with its ±, wherever it is printed.
        saved = r"undisturbed runs of the default \(batch size 128, power limit as found\):\s+" \
                r"energy ([+-][\d.]+ ± [\d.]+ %)"
        printed = re.findall(saved, output)
        self.assertEqual(len(printed), 2, output)
        self.assertEqual(printed[0], printed[1])
        self.assertEqual(len(re.findall(r"energy [+-]", output)), 2)
        self.assertIn("saved carbon: ", output)
        self.assertIn("of that exploration: ", output)
        report = re.search(r"^report: (.*)$", output, re.MULTILINE)[1]
        check_page(self, pathlib.Path(report).read_text(encoding="utf-8"), "Recurring job digits")
        database = f"sqlite://{self.folder}/demo/zeus.db"
        self.run_program(BUILD / "bin" / "zeus", "job", "check", "digits", "--database", database)

    def test_the_demo_of_language_models_ends_with_joules_per_token(self):
        if "bench" not in self.run_program(BUILD / "bin" / "zeus", "llm", "--help"):
            self.skipTest("zeus was built without its server")
        self.environment["ZEUS_DEMO_REQUESTS"] = "80"
        output = self.run_program(ROOT / "examples" / "demo_llm.sh", os.path.relpath(BUILD, ROOT))
        joules = r"[\d.]+ ± [\d.]+ m?J"
        for model in ("llama-3.1-8b", "qwen3-14b"):
            self.assertRegex(output, rf"(?m)^{model} +{joules} +{joules} +{joules} +[\d.]+ ± [\d.]+ /s$")
            page = self.folder / "demo" / f"{model}.html"
            check_page(self, page.read_text(encoding="utf-8"), f"zeus llm bench: {model}")


if __name__ == "__main__":
    unittest.main()
