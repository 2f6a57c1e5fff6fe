"""The pages of a live node in a browser: zeusd and `zeus monitor --serve`, with a simulated node behind them."""

import json
import os
import subprocess
import unittest

from browser_testing import run_in_browser
from zeusd_testing import ZEUSD, ZeusdTestCase

CONFIGURATION = """
[defaults]
scopes = ["gpu-read"]
"""


class LivePageTest(ZeusdTestCase):
    GPUS = "4xA100"

    def look(self, mode, **more):
        setting = os.path.join(self.folder, "setting.json")
        with open(setting, "w", encoding="utf-8") as file:
            json.dump({"environment": self.environment, "folder": self.folder, "zeusd": ZEUSD,
                       "config": self.config_path, "socket": self.socket_path, **more}, file)
        return run_in_browser(self, "live_page_browser.mjs", mode, setting, folder=self.folder, timeout=600)

    @unittest.skipUnless(os.geteuid() == 0, "leases of a site need root")
    def test_a_node_and_its_daemon(self):
        self.configure(CONFIGURATION)
        self.assertIn("23 checks passed", self.look("daemon"))

    @unittest.skipUnless(os.geteuid() == 0, "leases of a site need root")
    def test_a_daemon_that_wants_tokens(self):
        self.configure(CONFIGURATION)
        key = os.path.join(self.folder, "key")
        with open(key, "w", encoding="utf-8") as file:
            file.write("k" * 64)
        os.chmod(key, 0o600)
        issued = subprocess.run([ZEUSD, "token", "issue", "--signing-key-path", key, "--user", "ops", "--scope",
                                 "admin,gpu-read", "--expires", "1h"], capture_output=True, text=True, check=True)
        self.assertIn("5 checks passed", self.look("token", key=key, token=issued.stdout.strip()))

    def test_a_fleet(self):
        self.configure(CONFIGURATION)
        self.assertIn("9 checks passed", self.look("fleet"))

    def test_zeus_monitor(self):
        self.assertIn("6 checks passed", self.look("monitor"))


if __name__ == "__main__":
    unittest.main()
