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

    def test_a_source_file_that_a_page_names_must_exist(self):
        self.add("zeus/base/README.md", "# base\n")
        self.add("zeus/base/a.h", "")
        self.assertEqual(self.mistakes("`a.h`, `base/a.h`, `zeus/base/a.h`, `x_test.cc`"), [])
        self.assertEqual(self.mistakes("`b.h`"), ["README.md: no such file: b.h"])
        self.assertEqual(len(self.mistakes("`job/a.h`")), 1)

    def test_a_source_file_that_a_comment_names_must_exist(self):
        self.add("zeus/base/README.md", "# base\n")
        self.add("zeus/base/a.h", "// See zeus/base/a.h.\n")
        self.assertEqual(check_docs.mistakes(self.root), [])
        self.add("zeus/base/a.h", "// See zeus/base/b.h.\n")
        self.assertEqual(check_docs.mistakes(self.root),
                         ["zeus/base/a.h: no such file: zeus/base/b.h"])

    def test_every_folder_has_a_readme_but_those_for_tests(self):
        self.add("zeus/base/a.h", "")
        self.add("zeus/base/testing/b.h", "")
        self.assertEqual(len(check_docs.mistakes(self.root)), 1)
        self.add("zeus/base/README.md", "# base\n")
        self.assertEqual(check_docs.mistakes(self.root), [])

    def test_a_comment_begins_with_its_subject(self):
        self.add("zeus/base/README.md", "# base\n")
        self.add("a.cc", "// A line\n// What goes on is no beginning.\nint a;  // The number.\n")
        self.add("a.py", '"""Returns it."""\n')
        self.assertEqual(check_docs.mistakes(self.root), [])
        self.add("a.cc", "// What it is.\nint a;  // Of both.\n")
        self.add("a.py", '"""Who asks."""\n')
        self.assertEqual([text.split(": ")[0] for text in check_docs.mistakes(self.root)],
                         ["a.cc:1", "a.cc:2", "a.py:1"])


if __name__ == "__main__":
    unittest.main()
