import unittest

from context import RepositoryTest

import check_api


class CheckApiTest(RepositoryTest):
    def mistakes(self, listed: str, documented: str) -> list[str]:
        self.add("zeus/base/units.h", "")
        self.add("cmake/public_headers.cmake", f"set(ZEUS_PUBLIC_HEADERS\n{listed})\n")
        self.add("docs/api.md", documented)
        return check_api.mistakes(self.root)

    def test_both_lists_are_the_same(self):
        self.assertEqual(self.mistakes("  zeus/base/units.h", "| `zeus/base/units.h` | Units. |\n"), [])

    def test_a_header_that_nobody_described_is_named(self):
        self.assertIn("must say what it is for", self.mistakes("  zeus/base/units.h", "")[0])

    def test_a_header_that_is_described_and_not_public_is_named(self):
        found = self.mistakes("  zeus/base/units.h",
                              "| `zeus/base/units.h` | Units. |\n| `zeus/base/text.h` | Text. |\n")
        self.assertEqual(found, ["zeus/base/text.h is in docs/api.md and not public"])

    def test_a_header_that_does_not_exist_is_named(self):
        found = self.mistakes("  zeus/base/gone.h", "| `zeus/base/gone.h` | Gone. |\n")
        self.assertEqual(found, ["zeus/base/gone.h is public and does not exist"])


if __name__ == "__main__":
    unittest.main()
