import unittest

from context import RepositoryTest

import check_sizes


class CheckSizesTest(RepositoryTest):
    def test_a_file_at_the_limit_passes(self):
        self.add("zeus/a.cc", "\n" * check_sizes.LIMIT)
        self.assertEqual(check_sizes.mistakes(self.root, {}), [])

    def test_a_longer_file_fails_and_is_named(self):
        self.add("zeus/a.cc", "\n" * (check_sizes.LIMIT + 1))
        self.assertIn("zeus/a.cc: 701 lines", check_sizes.mistakes(self.root, {})[0])

    def test_an_exception_holds_only_while_it_is_needed(self):
        self.add("zeus/data.cc", "\n" * (check_sizes.LIMIT + 1))
        longer = {"zeus/data.cc": "generated"}
        self.assertEqual(check_sizes.mistakes(self.root, longer), [])
        self.add("zeus/data.cc", "\n")
        self.assertEqual(len(check_sizes.mistakes(self.root, longer)), 1)

    def test_documents_may_be_long(self):
        self.add("docs/a.md", "\n" * 1000)
        self.assertEqual(check_sizes.mistakes(self.root, {}), [])


if __name__ == "__main__":
    unittest.main()
