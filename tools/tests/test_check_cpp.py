import json
import os
import subprocess
import unittest
import unittest.mock

from context import RepositoryTest

import check_cpp


class FingerprintTest(RepositoryTest):
    def setUp(self):
        super().setUp()
        self.source = self.add("zeus/a.cc", '#include "zeus/a.h"\n#include <vector>\n')
        self.add("zeus/a.h", '#include "zeus/b.h"\n')
        self.add("zeus/b.h", "int b;\n")
        self.add("zeus/c.h", "int c;\n")

    def add(self, path: str, text: str):
        check_cpp.includes.cache_clear()
        return super().add(path, text)

    def fingerprint(self, *settings: str) -> str:
        task = check_cpp.Task("a", ("clang-tidy", str(self.source)), (self.source,))
        return check_cpp.fingerprint(self.root, task, *settings)

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
        self.assertEqual(len(check_cpp.closure(self.root, self.source)), 3)


class TasksTest(RepositoryTest):
    """A build that compiles two files at once, a test alone, and a file of torch."""

    def setUp(self):
        super().setUp()
        check_cpp.includes.cache_clear()
        self.add("zeus/a.h", "int a;\n")
        self.add("zeus/shared.h", "int shared;\n")
        first = self.add("zeus/a.cc", '#include "zeus/a.h"\n#include "zeus/shared.h"\n')
        second = self.add("zeus/b.cc", '#include "zeus/shared.h"\n')
        test = self.add("zeus/a_test.cc", "int t;\n")
        torch = self.add("examples/t.cc", "#include <torch/torch.h>\n")
        unity = self.add("build/unity_0_cxx.cxx", f'#include "{first}"\n#include "{second}"\n')
        self.add("build/compile_commands.json", json.dumps([
            {"file": str(file), "command": f"env A=1 ccache /usr/bin/c++ -O2 -o x.o -c {file}"}
            for file in (unity, test, torch)]))
        self.tasks = check_cpp.tasks(self.root, self.root / "build")

    def titles(self) -> list[str]:
        return [task.title.replace(f"{self.root}/", "") for task in self.tasks]

    def test_units_are_tidied_at_once_and_their_files_parsed_alone(self):
        self.assertEqual(sorted(self.titles()), [
            "clang-tidy build/unity_0_cxx.cxx", "zeus/a.cc alone", "zeus/b.cc alone",
            "zeus/shared.h alone"])

    def test_a_file_is_parsed_with_the_flags_of_its_unit(self):
        task = next(task for task in self.tasks if task.title.endswith("b.cc alone"))
        self.assertEqual(task.command[:2], ("clang++-16", "-O2"))
        self.assertNotIn("x.o", task.command)

    def test_the_files_of_a_unit_are_read_as_one_and_findings_name_the_file(self):
        task = next(task for task in self.tasks if task.title.startswith("clang-tidy"))
        self.assertIn(str(task.joined), task.command)
        check_cpp.join(task)
        lines = task.joined.read_text().splitlines()
        line = lines.index('#include "zeus/shared.h"', 2) + 1  # The first line of b.cc.
        self.assertEqual(check_cpp.name_inputs(task, f"{task.joined}:{line}:7: error\n"),
                         f"{self.root}/zeus/b.cc:1:7: error\n")

    def test_a_folder_adds_checks_of_its_own(self):
        self.add("zeus/.clang-tidy", "InheritParentConfig: true\nChecks: '-a,-b'\n")
        folders = [self.root / path for path in ("zeus/a.cc", "zeus/c/d.cc", "apps/e.cc")]
        self.assertEqual([check_cpp.folder_checks(self.root, path) for path in folders],
                         [["--checks=-a,-b"], ["--checks=-a,-b"], []])

    def test_a_file_borrows_only_headers_that_it_includes(self):
        result = self.add("zeus/base/result.h", "")
        check_cpp.includes.cache_clear()
        through = self.add("zeus/c.h", '#include "zeus/base/result.h"\n')
        both = self.add("zeus/c.cc", '#include "zeus/c.h"\n#include <fmt/format.h>\n')
        borrowed = {path: check_cpp.precompiled_headers(self.root, path)
                    for path in (result, through, both)}
        self.assertEqual(borrowed, {result: (), through: ("zeus/base/result.h",),
                                    both: ("zeus/base/result.h", "fmt/format.h")})

    def test_a_change_touches_what_includes_it(self):
        change = {self.root / "zeus/shared.h"}
        self.assertEqual([title for title, task in zip(self.titles(), self.tasks)
                          if check_cpp.touched(self.root, task, change)],
                         ["clang-tidy build/unity_0_cxx.cxx", "zeus/a.cc alone",
                          "zeus/b.cc alone", "zeus/shared.h alone"])

    def test_other_checks_touch_everything(self):
        change = {self.root / ".clang-tidy"}
        self.assertTrue(all(check_cpp.touched(self.root, task, change) for task in self.tasks))


class BaseCommitTest(RepositoryTest):
    def git(self, *words: str) -> str:
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
                              cwd=self.root, check=True, capture_output=True, text=True).stdout

    def setUp(self):
        super().setUp()
        self.git("init", "--quiet", "--initial-branch=main")
        for name in ("first", "second"):
            self.add(name, name)
            self.git("add", name)
            self.git("commit", "--quiet", "--message", name)

    def test_is_the_one_that_the_user_names(self):
        with unittest.mock.patch.dict(os.environ, ZEUS_LINT_BASE="HEAD~1"):
            base = check_cpp.base_commit(self.root)
        self.add("third", "new")
        self.assertEqual(check_cpp.changed(self.root, base),
                         {self.root / "second", self.root / "third"})

    def test_is_unknown_in_a_young_repository(self):
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("ZEUS_LINT_BASE", None)
            self.assertIsNone(check_cpp.base_commit(self.root))


if __name__ == "__main__":
    unittest.main()
