"""The example notebook runs as a program and draws its picture."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

from node_testing import NodeTestCase
from process_testing import without_sanitizer

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/python/power_over_epoch.py"


class PowerOverEpochTest(NodeTestCase):
    GPUS = "A100"

    @without_sanitizer
    def test_draws_a_picture_with_every_window(self) -> None:
        with tempfile.TemporaryDirectory(prefix="zeus-example-test-") as folder:
            picture = os.path.join(folder, "power.svg")
            done = subprocess.run([sys.executable, "-B", EXAMPLE, picture], capture_output=True,
                                  text=True, timeout=120, env={**os.environ, "STEPS": "5"})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            text = pathlib.Path(picture).read_text()
        xml.etree.ElementTree.fromstring(text)
        for window in ("epoch", "train", "checkpoint", "validate"):
            self.assertRegex(done.stdout, rf"(?m)^{window} .* ± .* J over .* s \(gpu:0\)$")


if __name__ == "__main__":
    unittest.main()
