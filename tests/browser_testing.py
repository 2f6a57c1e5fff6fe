"""Shared by the tests of pages: Chromium, driven by a script with playwright-core."""

import os
import pathlib
import shutil
import subprocess

WEB = os.environ.get("ZEUS_WEB", "build/release/web")


def run_in_browser(test, script, *arguments, folder, timeout=200):
    """Runs tests/SCRIPT with node; returns its output. Skips the test where there is no browser."""
    browser = shutil.which("chromium")
    node = shutil.which("node")
    playwright = pathlib.Path(WEB, "node_modules/playwright-core/index.mjs")
    if not browser or not node:
        test.skipTest("chromium or node is not installed")
    if not playwright.exists():
        test.skipTest("the page was not built: node and npm, or what they need, are missing")
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    if int(version.strip("v\n").split(".")[0]) < 18:
        test.skipTest(f"playwright needs node 18, this is {version.strip()}")
    # Files that the browser keeps go into the folder, too.
    environment = {**os.environ, "HOME": str(folder), "CHROMIUM": browser,
                   "PLAYWRIGHT": str(playwright.resolve())}
    done = subprocess.run([node, str(pathlib.Path(__file__).with_name(script)), *map(str, arguments)],
                          capture_output=True, text=True, timeout=timeout, env=environment)
    test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    return done.stdout
