"""The page of a power budget in a browser: domains, who pays, targets, nodes that fall silent, budgets that are too small."""

import pathlib
import tempfile
import unittest

from browser_testing import run_in_browser

BUDGET = """
[budget]
watts = 1200
reserve = 0.0
valid_seconds = 30
report_seconds = 0.5
period_seconds = 1

[[domain]]
name = "rack-1"
watts = 1000
nodes = ["n1"]

[[domain]]
name = "rack-2"
watts = 500
nodes = ["n2"]
"""


class BudgetPageTest(unittest.TestCase):
    def test_the_page_answers_what_operators_ask(self):
        with tempfile.TemporaryDirectory(prefix="zeus-budget-page-") as folder:
            pathlib.Path(folder, "budget.toml").write_text(BUDGET, encoding="utf-8")
            output = run_in_browser(self, "budget_page_browser.mjs", folder, folder=folder, timeout=800)
            self.assertRegex(output, r"\d+ checks passed")


if __name__ == "__main__":
    unittest.main()
