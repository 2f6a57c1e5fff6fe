import unittest

import context  # noqa: F401: makes the tools importable.

import count_cases

GTEST = """[==========] Running 3 tests from 1 test suite.
[ RUN      ] ATest.Passes
[       OK ] ATest.Passes (0 ms)
[ RUN      ] ATest.Fails
[  FAILED  ] ATest.Fails (1 ms)
[ RUN      ] ATest.Skips
./a_test.cc:7: Skipped
needs root
[  SKIPPED ] ATest.Skips (0 ms)
[==========] 3 tests from 1 test suite ran. (1 ms total)
[  PASSED  ] 1 test.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] ATest.Skips
[  FAILED  ] 1 test, listed below:
[  FAILED  ] ATest.Fails
"""
UNITTEST = """test_a (b_test.BTest.test_a) ... skipped 'there is no network'
test_b (b_test.BTest.test_b) ... ERROR
ERROR: test_b (b_test.BTest)
----
Ran 5 tests in 0.1s

FAILED (errors=1, skipped=2)
"""


def report(*tests: tuple[str, str, str]) -> str:
    return "<testsuite>" + "".join(
        f'<testcase name="{name}" status="{status}"><system-out>{output}</system-out></testcase>'
        for name, status, output in tests) + "</testsuite>"


class CountTest(unittest.TestCase):
    def numbers(self, *tests: tuple[str, str, str]) -> tuple[int, int, int]:
        tally = count_cases.count(report(*tests))
        self.assertEqual(len(tally.failures), tally.failed)
        self.assertEqual(len(tally.skips), tally.skipped)
        return tally.passed, tally.failed, tally.skipped

    def test_cases_of_a_suite(self):
        self.assertEqual(self.numbers(("a", "fail", GTEST)), (1, 1, 1))

    def test_cases_of_a_python_program(self):
        self.assertEqual(self.numbers(("b", "fail", UNITTEST)), (2, 1, 2))

    def test_skipped_cases_are_listed_with_their_reasons(self):
        tally = count_cases.count(report(("a", "fail", GTEST), ("b", "fail", UNITTEST)))
        self.assertEqual(tally.skips, ["a: ATest.Skips: needs root", "b: there is no network",
                                       "b: no reason given"])

    def test_any_other_program_is_one_case(self):
        self.assertEqual(self.numbers(("c", "run", "fine"), ("d", "fail", "boom")), (1, 1, 0))

    def test_a_program_that_dies_after_its_last_case_has_failed(self):
        passed = "[==========] 2 tests from 1 test suite ran. (1 ms total)\n[  PASSED  ] 2 tests."
        self.assertEqual(self.numbers(("e", "fail", passed)), (2, 1, 0))

    def test_what_was_left_out_was_skipped(self):
        self.assertEqual(self.numbers(("g", "disabled", "")), (0, 0, 1))

    def test_a_program_that_is_missing_has_failed(self):
        self.assertEqual(self.numbers(("f", "notrun", "")), (0, 1, 0))

    def test_expected_failures_are_none(self):
        passed = "Ran 2 tests in 0.1s\n\nOK (expected failures=1)\n"
        self.assertEqual(self.numbers(("h", "run", passed)), (2, 0, 0))


if __name__ == "__main__":
    unittest.main()
