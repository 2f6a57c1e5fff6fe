#!/usr/bin/env python3
"""Counts the test cases in ctest's report and lists those that failed, or were skipped and why.

ctest counts processes: suites of GoogleTest, programs of unittest. What they ran is in their output.
"""
import argparse
import collections
import dataclasses
import re
import sys
import xml.etree.ElementTree

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # Not allowed in XML.
GTEST = re.compile(r"^\[==========\] (\d+) tests? from .* ran\.", re.MULTILINE)
GTEST_CASE = re.compile(r"^\[  (FAILED |SKIPPED)  ?\] (\S+?)(?:,.*| \(\d+ ms\))?$", re.MULTILINE)
GTEST_REASON = re.compile(r": Skipped\n(.+)(?:\n.*)*?\n\[  SKIPPED \] (\S+)")
UNITTEST = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
UNITTEST_PART = re.compile(r"(?<!expected )\b(failures|errors|skipped)=(\d+)")
UNITTEST_VERDICT = re.compile(r"^(?:OK|FAILED)\b.*$", re.MULTILINE)
UNITTEST_REASON = re.compile(r"\.\.\. skipped (['\"])(.*)\1$", re.MULTILINE)
UNITTEST_CASE = re.compile(r"^(?:FAIL|ERROR): (\S+)", re.MULTILINE)


@dataclasses.dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)
    skips: list[str] = dataclasses.field(default_factory=list)

    def add(self, name: str, ran: int, failures: list[str], skips: list[str]) -> None:
        self.passed += ran - len(failures) - len(skips)
        self.failed += len(failures)
        self.skipped += len(skips)
        self.failures += [f"{name}: {case}" for case in failures]
        self.skips += [f"{name}: {case}" for case in skips]


def count_gtest(tally: Tally, name: str, output: str, ran: int) -> None:
    cases = {(kind.strip(), case) for kind, case in GTEST_CASE.findall(output) if "." in case}
    reasons = {case: reason for reason, case in GTEST_REASON.findall(output)}
    tally.add(name, ran, sorted(case for kind, case in cases if kind == "FAILED"),
              [f"{case}: {reasons.get(case, 'no reason given')}"
               for kind, case in sorted(cases) if kind == "SKIPPED"])


def count_unittest(tally: Tally, name: str, output: str, ran: int) -> None:
    verdict = UNITTEST_VERDICT.findall(output)[-1:]
    parts = {part: int(number) for part, number in UNITTEST_PART.findall(" ".join(verdict))}
    failures = (UNITTEST_CASE.findall(output) + ["?"] * ran)[
        :parts.get("failures", 0) + parts.get("errors", 0)]
    skipped = parts.get("skipped", 0)
    reasons = [reason for _, reason in UNITTEST_REASON.findall(output)]
    tally.add(name, max(ran, len(failures)), failures,
              (reasons + ["no reason given"] * skipped)[:skipped])


def count(report: str) -> Tally:
    tally = Tally()
    for test in xml.etree.ElementTree.fromstring(report).iter("testcase"):
        name, status = test.get("name", "?"), test.get("status", "?")
        output = test.findtext("system-out") or ""
        before = tally.failed
        reason = getattr(test.find("skipped"), "attrib", {}).get("message", "")
        if status == "disabled" or status == "notrun" and reason.startswith("SKIP"):
            tally.add(name, 1, [], [reason or status])
        elif status == "notrun":  # Its program is missing.
            tally.add(name, 1, [reason or "the program"], [])
        elif ran := GTEST.findall(output):
            count_gtest(tally, name, output, sum(map(int, ran)))
        elif ran := UNITTEST.findall(output):
            count_unittest(tally, name, output, sum(map(int, ran)))
        elif status == "run":
            tally.add(name, 1, [], [])
        if status == "fail" and tally.failed == before:  # It crashed, or ran out of time.
            tally.add(name, 1, ["the program"], [])
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", help="what ctest --output-junit wrote")
    options = parser.parse_args()
    try:
        with open(options.report, encoding="utf-8", errors="replace") as file:
            tally = count(CONTROL.sub("?", file.read()))
    except (OSError, xml.etree.ElementTree.ParseError) as problem:
        print(f"count_cases.py: {options.report}: {problem}: did ctest end before its report?")
        return 1
    for title, cases in (("skipped", tally.skips), ("failed", tally.failures)):
        for case, times in collections.Counter(cases).items():
            print(f"{title}: {case}" + (f" ({times} cases)" if times > 1 else ""))
    print(f"cases: {tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
