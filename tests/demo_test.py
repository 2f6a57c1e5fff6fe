"""The demo and the study of drift, small: they run to their end and say what they promise."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.dom.minidom

BUILD = pathlib.Path(os.environ["ZEUS_BUILD"])
ROOT = pathlib.Path(__file__).resolve().parent.parent


class DemoTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="zeus-demo-test-")
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1",
                            "ZEUS_DEMO_DIR": str(self.folder / "demo"),
                            "XDG_DATA_HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder)}
        self.environment.pop("ZEUS_SERVER", None)

    def run_program(self, *command):
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True,
                              timeout=380)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_demo_ends_with_what_was_chosen_and_saved(self):
        output = self.run_program(ROOT / "examples" / "demo.sh",
                                  os.path.relpath(BUILD, ROOT), "4")
        self.assertRegex(output, r"chosen: batch size \d+, power limit \d+ W on V100")
        self.assertIn("against job default with batch size 128: energy ", output)
        self.assertIn("of that exploration: ", output)
        report = re.search(r"^report: (.*)$", output, re.MULTILINE)[1]
        self.assertIn("<svg", pathlib.Path(report).read_text(encoding="utf-8"))
        database = f"sqlite://{self.folder}/demo/zeus.db"
        self.run_program(BUILD / "bin" / "zeus", "job", "check", "digits", "--database", database)

    def test_the_study_of_drift_compares_policies_with_an_oracle(self):
        plot = self.folder / "drift.svg"
        output = self.run_program(
            BUILD / "examples" / "drift_study", "--slices", "6", "--batch-sizes", "32,128",
            "--default", "32", "--repetitions", "1", "--policy-seeds", "2", "--target", "0.8",
            "--svg", plot)
        for name in ("oracle", "zeus", "zeus, window 10", "knowledge_gradient",
                     "knowledge_gradient, window 10"):
            self.assertRegex(output, rf"(?m)^{name} +[\d.]+ +[\d.]+ +[\d.]+$")
        paths = xml.dom.minidom.parse(str(plot)).getElementsByTagName("path")
        lines = [path for path in paths if path.getAttribute("class") == "stroke"]
        self.assertEqual(len(lines), 15)  # Five courses: cost, batch size and the legend.


if __name__ == "__main__":
    unittest.main()
