import unittest

from context import RepositoryTest

import run_clang_tidy


class FingerprintTest(RepositoryTest):
    def setUp(self):
        super().setUp()
        self.source = self.add("zeus/a.cc", '#include "zeus/a.h"\n#include <vector>\n')
        self.add("zeus/a.h", '#include "zeus/b.h"\n')
        self.add("zeus/b.h", "int b;\n")
        self.add("zeus/c.h", "int c;\n")

    def fingerprint(self, *settings: str) -> str:
        return run_clang_tidy.fingerprint(self.root, self.source, *settings)

    def test_stays_while_nothing_changes(self):
        self.assertEqual(self.fingerprint("checks"), self.fingerprint("checks"))

    def test_changes_with_a_header_of_a_header(self):
        before = self.fingerprint()
        self.add("zeus/b.h", "long b;\n")
        self.assertNotEqual(self.fingerprint(), before)

    def test_does_not_change_with_a_file_that_is_not_included(self):
        before = self.fingerprint()
        self.add("zeus/c.h", "long c;\n")
        self.assertEqual(self.fingerprint(), before)

    def test_changes_with_the_settings(self):
        self.assertNotEqual(self.fingerprint("checks"), self.fingerprint("other checks"))

    def test_survives_headers_that_include_each_other(self):
        self.add("zeus/b.h", '#include "zeus/a.h"\n')
        self.assertEqual(len(run_clang_tidy.closure(self.root, self.source)), 3)


class WorthCheckingTest(RepositoryTest):
    def test_tests_benchmarks_and_torch_are_left_out(self):
        for path, text, worth in (("zeus/a.cc", "int a;\n", True),
                                  ("zeus/a_test.cc", "int a;\n", False),
                                  ("bench/a.cc", "int a;\n", False),
                                  ("examples/a.cc", "#include <torch/torch.h>\n", False)):
            self.assertEqual(run_clang_tidy.worth_checking(self.add(path, text)), worth, path)


if __name__ == "__main__":
    unittest.main()
