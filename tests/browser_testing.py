"""Shared by the tests of the application in a browser: finds Chromium, node and playwright, and runs a script with them."""

import os
import pathlib
import shutil
import subprocess
import tempfile

WEB = os.environ.get("ZEUS_WEB", "build/release/web")


def run_in_browser(test, script, *arguments):
    """What the script wrote; skips the test where there is no browser."""
    browser, node = shutil.which("chromium"), shutil.which("node")
    playwright = pathlib.Path(WEB, "node_modules/playwright-core/index.mjs")
    if not browser or not node:
        test.skipTest("chromium or node is not installed")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip("v\n")
    if int(version.split(".")[0]) < 18:
        test.skipTest(f"playwright needs node 18, this is {version}")
    if not playwright.exists():
        test.skipTest("the page was built without node")
    with tempfile.TemporaryDirectory(prefix="zeus-browser-") as folder:
        # Files that the browser keeps go into the folder too.
        environment = {**os.environ, "HOME": folder, "CHROMIUM": browser, "PLAYWRIGHT": str(playwright.resolve())}
        path = pathlib.Path(__file__).with_name(script)
        done = subprocess.run([node, str(path), *arguments], capture_output=True, text=True, timeout=600,
                              env=environment)
    test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    return done.stdout
