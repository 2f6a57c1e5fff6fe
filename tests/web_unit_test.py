"""The parts of the page that need no browser: types, scales, ticks, thinning, sorting."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

WEB = pathlib.Path(os.environ.get("ZEUS_WEB", "build/release/web"))
SOURCE = pathlib.Path(__file__).resolve().parent.parent / "web"


class WebUnitTest(unittest.TestCase):
    def run_npm(self, folder, *words):
        done = subprocess.run(["npm", "run", *words], cwd=folder, capture_output=True, text=True,
                              timeout=100)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_types_are_right_and_unit_tests_pass(self):
        if not shutil.which("npm") or not (WEB / "node_modules").is_dir():
            self.skipTest("the page was not built: node and npm, or what they need, are missing")
        with tempfile.TemporaryDirectory(prefix="zeus-web-") as folder:
            copy = pathlib.Path(folder, "web")
            shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("node_modules", "dist", ".compiled"))
            (copy / "node_modules").symlink_to((WEB / "node_modules").resolve())
            self.run_npm(copy, "check")
            self.assertRegex(self.run_npm(copy, "test"), r"# fail 0\n")


if __name__ == "__main__":
    unittest.main()
