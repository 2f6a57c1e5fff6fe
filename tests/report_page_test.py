"""The page of reports in a browser: everything is drawn, legible, and answers the pointer."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

WRITE_SAMPLES = os.environ.get("WRITE_SAMPLES", "build/release/tests/write_samples")
WEB = os.environ.get("ZEUS_WEB", "build/release/web")
SCRIPT = pathlib.Path(__file__).with_name("report_page_browser.mjs")


class ReportPageTest(unittest.TestCase):
    def test_reports_are_drawn_legible_and_answer_the_pointer(self):
        browser = shutil.which("chromium")
        node = shutil.which("node")
        playwright = pathlib.Path(WEB, "node_modules/playwright-core/index.mjs")
        if not browser or not node:
            self.skipTest("chromium or node is not installed")
        version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
        if int(version.strip("v\n").split(".")[0]) < 18:
            self.skipTest(f"playwright needs node 18, this is {version.strip()}")
        with tempfile.TemporaryDirectory(prefix="zeus-report-page-") as folder:
            samples = subprocess.run([WRITE_SAMPLES, folder], capture_output=True, text=True,
                                     timeout=100)
            if samples.returncode == 4:
                self.skipTest(samples.stderr.strip())
            self.assertEqual(samples.returncode, 0, samples.stderr)
            # Files that the browser keeps go into the folder too.
            environment = {**os.environ, "HOME": folder, "CHROMIUM": browser,
                           "PLAYWRIGHT": str(playwright.resolve())}
            done = subprocess.run([node, str(SCRIPT), folder], capture_output=True, text=True,
                                  timeout=200, env=environment)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("14 checks passed", done.stdout)


if __name__ == "__main__":
    unittest.main()
