"""The study of drift with few slices: it runs to its end and says what it promises."""

import os
import pathlib
import subprocess
import tempfile
import unittest
import xml.dom.minidom

DRIFT_STUDY = os.environ["DRIFT_STUDY"]


class DriftExampleTest(unittest.TestCase):
    def test_the_study_of_drift_compares_policies_with_an_oracle(self):
        directory = tempfile.TemporaryDirectory(prefix="zeus-drift-test-")
        self.addCleanup(directory.cleanup)
        plot = pathlib.Path(directory.name) / "drift.svg"
        done = subprocess.run(
            [DRIFT_STUDY, "--slices", "6", "--batch-sizes", "32,128", "--default", "32",
             "--repetitions", "1", "--policy-seeds", "2", "--target", "0.8", "--svg", plot],
            env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=380)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in ("oracle", "zeus", "zeus, window 10", "knowledge_gradient",
                     "knowledge_gradient, window 10"):
            self.assertRegex(done.stdout, rf"(?m)^{name} +[\d.]+ +[\d.]+ +[\d.]+$")
        paths = xml.dom.minidom.parse(str(plot)).getElementsByTagName("path")
        lines = [path for path in paths if path.getAttribute("class") == "stroke"]
        self.assertEqual(len(lines), 15)  # Five courses: cost, batch size and the legend.


if __name__ == "__main__":
    unittest.main()
