import unittest

from context import RepositoryTest

import check_docs


class CheckDocsTest(RepositoryTest):
    def mistakes(self, text: str) -> list[str]:
        self.add("README.md", text)
        return check_docs.mistakes(self.root)

    def test_a_link_to_a_file_that_exists_passes(self):
        self.add("docs/a.md", "# A\n")
        self.assertEqual(self.mistakes("[a](docs/a.md)"), [])

    def test_a_link_to_nowhere_fails(self):
        self.assertEqual(self.mistakes("[a](docs/b.md)"), ["README.md: no such file: docs/b.md"])

    def test_a_picture_must_exist_too(self):
        self.assertEqual(len(self.mistakes("![a](a.svg)")), 1)

    def test_a_fragment_must_be_a_heading(self):
        self.add("docs/a.md", "# The `zeus` command, today\n")
        self.assertEqual(self.mistakes("[a](docs/a.md#the-zeus-command-today)"), [])
        self.assertEqual(len(self.mistakes("[a](docs/a.md#tomorrow)")), 1)

    def test_code_is_not_a_link(self):
        self.assertEqual(self.mistakes("`[a](b)`\n\n```\n[a](b)\n```\n"), [])

    def test_a_link_out_of_the_repository_fails(self):
        self.assertIn("leads out", self.mistakes("[a](..)")[0])

    def test_other_sites_are_not_visited(self):
        self.assertEqual(self.mistakes("[a](https://example.org/none)"), [])

    def test_every_decision_is_listed(self):
        self.add("docs/adr/0001-a.md", "# A\n")
        self.add("docs/adr/README.md", "# Decisions\n")
        self.assertEqual(len(check_docs.mistakes(self.root)), 1)
        self.add("docs/adr/README.md", "[A](0001-a.md)\n")
        self.assertEqual(check_docs.mistakes(self.root), [])


if __name__ == "__main__":
    unittest.main()
