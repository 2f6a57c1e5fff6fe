"""The demo of the pages: its servers answer, the job learns, and its end leaves nothing behind."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

from browser_testing import run_in_browser

BUILD = pathlib.Path(os.environ["ZEUS_BUILD"]).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent
MARK = "ZEUS_DEMO_TEST_MARK"


def marked(value):
    """Processes of this machine that the demo with this mark has started, zombies left out."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if command and f"{MARK}={value}".encode() in environment.split(b"\0"):
            found.append(f"{process.name} {command}")
    return found


class DemoWebTest(unittest.TestCase):
    def setUp(self):
        for program in ("bin/zeusd", "examples/train_digits"):
            if not (BUILD / program).exists():
                self.skipTest(f"{program} was not built")
        directory = tempfile.TemporaryDirectory(prefix="zeus-demo-web-")
        self.addCleanup(directory.cleanup)
        self.home = pathlib.Path(directory.name)
        self.folder = self.home / "demo"
        self.mark = self.home.name

    def start(self):
        environment = {**os.environ, "ZEUS_DEMO_DIR": str(self.folder), MARK: self.mark}
        environment.pop("DISPLAY", None)
        environment.pop("WAYLAND_DISPLAY", None)
        self.demo = subprocess.Popen([ROOT / "examples" / "demo_web.sh", BUILD], env=environment,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                     start_new_session=True)
        self.addCleanup(self.demo.stdout.close)
        self.addCleanup(self.kill)
        addresses = {}
        said = ""
        for line in self.demo.stdout:
            said += line
            if found := re.match(r"  (\w[^(]*?)\s+(?:\(.*\)\s+)?(http://[\d.:]+)/", line):
                addresses[found[1]] = found[2]
            if "Press Ctrl-C" in line:
                return addresses
        raise AssertionError(said)

    def kill(self):
        if self.demo.poll() is None:
            os.killpg(self.demo.pid, signal.SIGKILL)
            self.demo.wait()

    def assert_nothing_is_left(self):
        # Its end does not depend on the script, which may be gone already.
        deadline = time.monotonic() + 120
        while (left := marked(self.mark)) or self.folder.exists():
            if time.monotonic() > deadline:
                self.fail("\n".join(left) or f"{self.folder} is still there")
            time.sleep(0.1)

    def ask(self, url):
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)

    def test_servers_answer_the_job_learns_and_ctrl_c_ends_everything(self):
        addresses = self.start()
        jobs = addresses["jobs, savings and pipelines"]
        features = self.ask(f"{jobs}/app.json")["features"]
        self.assertIn("jobs", features)
        self.assertEqual(self.ask(f"{jobs}/v1/plans")["plans"], ["gpt-demo"])
        self.assertIn("node", " ".join(addresses))
        models = self.ask(addresses["gateway"] + "/v1/models")["data"]
        self.assertEqual({model["id"] for model in models}, {"llama-3.1-8b", "qwen3-14b"})
        output = run_in_browser(self, "demo_web_browser.mjs", json.dumps(addresses), folder=self.home,
                                timeout=600)
        self.assertRegex(output, r"\d+ checks passed")
        self.assertGreater(len(marked(self.mark)), 10)
        # As a terminal does: to the whole foreground group.
        os.killpg(self.demo.pid, signal.SIGINT)
        self.assertEqual(self.demo.wait(timeout=90), 0)
        self.assert_nothing_is_left()

    def test_even_a_killed_group_leaves_nothing_behind(self):
        self.start()
        self.kill()
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
