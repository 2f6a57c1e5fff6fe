"""The pages of `zeus serve` in a browser: jobs, savings, pipelines, live runs, tokens."""

import json
import pathlib
import tempfile
import unittest

from browser_testing import run_in_browser
from serve_plans_test import spec


class ServePagesTest(unittest.TestCase):
    def test_pages_answer_what_people_ask(self):
        with tempfile.TemporaryDirectory(prefix="zeus-serve-pages-") as folder:
            plan = pathlib.Path(folder, "spec.json")
            plan.write_text(json.dumps({**spec(), "id": "gpt"}), encoding="utf-8")
            output = run_in_browser(self, "serve_pages_browser.mjs", folder, plan, folder=folder,
                                    timeout=800)
            self.assertRegex(output, r"\d+ checks passed")


if __name__ == "__main__":
    unittest.main()
