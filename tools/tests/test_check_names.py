import unittest

from context import RepositoryTest

import check_names


class CheckNamesTest(RepositoryTest):
    def duplicates(self, first: str, second: str) -> list[str]:
        self.add("apps/zeus/a.h", first)
        self.add("apps/zeus/b.h", second)
        return check_names.duplicates(self.root)

    def test_two_types_of_one_name_are_found(self):
        self.assertEqual(
            self.duplicates("namespace zeus::cli {\nstruct Options {\n};\n}\n",
                            "namespace zeus::cli {\n\nclass Options final : Base {\n};\n}\n"),
            ["zeus::cli::Options is defined in apps/zeus/a.h and in apps/zeus/b.h: "
             "rename one of them"])

    def test_another_namespace_is_another_type(self):
        self.assertEqual(self.duplicates("namespace zeus {\nstruct Options {\n};\n}\n",
                                         "namespace zeus::cli {\nstruct Options {\n};\n}\n"), [])

    def test_declarations_and_inner_types_do_not_count(self):
        self.assertEqual(self.duplicates(
            "namespace zeus {\nclass Gpu {\n  struct Options {\n  };\n};\n}\n",
            "namespace zeus {\nclass Gpu;\nclass Gpu::State {\n};\n"
            "struct Node {\n  struct Options {\n  };\n};\n}\n"), [])


if __name__ == "__main__":
    unittest.main()
