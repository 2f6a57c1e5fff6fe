"""The Colosseum's page in a browser: duels from the prompt to the leaderboard, with real servers behind them."""

import os
import tempfile
import unittest

from browser_testing import run_in_browser
from colosseum_testing import ColosseumTestCase, chat_answer


class ColosseumPageTest(ColosseumTestCase):
    def test_duels_in_a_browser(self):
        _, _, server = self.metered("--max-tokens", "120")
        # Earlier duels, so that the leaderboard has something to show.
        for number in range(8):
            duel = server.answered()
            if server.vote(duel, "ab"[number % 2])["stage"] == "weighing":
                server.json("POST", f"/zeus/duels/{duel}/worth", {"worth": number % 3 == 0})
        folder = os.environ.get("SCREENSHOTS") or tempfile.mkdtemp(dir=self.directory.name)
        output = run_in_browser(self, "colosseum_page_browser.mjs", server.url, "metered", folder, folder=self.directory.name,
                                timeout=600)
        self.assertIn("15 checks passed", output)

    def test_trouble_in_a_browser(self):
        fails = iter([True, False])

        async def fail(number, writer):
            if number == 1 and next(fails, False):
                writer.close()
                return False
        words = ["<img src=x onerror=alert(1)> ", "**bold** ", "x" * 300]
        server = self.scripted(left=chat_answer(words), right=chat_answer(words, before=fail))
        output = run_in_browser(self, "colosseum_page_browser.mjs", server.url, "trouble", self.directory.name,
                                folder=self.directory.name, timeout=600)
        self.assertIn("4 checks passed", output)


if __name__ == "__main__":
    unittest.main()
