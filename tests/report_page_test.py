"""The page of reports in a browser: everything is drawn, legible, and answers the pointer."""

import os
import subprocess
import tempfile
import unittest

from browser_testing import run_in_browser

WRITE_SAMPLES = os.environ.get("WRITE_SAMPLES", "build/release/tests/write_samples")


class ReportPageTest(unittest.TestCase):
    def test_reports_are_drawn_legible_and_answer_the_pointer(self):
        with tempfile.TemporaryDirectory(prefix="zeus-report-page-") as folder:
            samples = subprocess.run([WRITE_SAMPLES, folder], capture_output=True, text=True,
                                     timeout=100)
            if samples.returncode == 4:
                self.skipTest(samples.stderr.strip())
            self.assertEqual(samples.returncode, 0, samples.stderr)
            output = run_in_browser(self, "report_page_browser.mjs", folder, folder=folder)
            self.assertIn("14 checks passed", output)


if __name__ == "__main__":
    unittest.main()
