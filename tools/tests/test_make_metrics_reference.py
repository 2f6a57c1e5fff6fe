import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import context  # noqa: F401  (makes the tools importable)

import make_metrics_reference


class MakeMetricsReferenceTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.page = pathlib.Path(directory.name) / "metrics.md"
        self.zeus = pathlib.Path(directory.name) / "zeus"
        self.list_metrics("| `a_total` |")

    def list_metrics(self, table):
        """Makes a program that knows these metrics."""
        self.zeus.write_text(f"#!/bin/sh\necho '{table}'\n", encoding="utf-8")
        self.zeus.chmod(0o755)

    def run_tool(self, *arguments):
        command = ["tool", "--zeus", str(self.zeus), "--output", str(self.page), *arguments]
        with mock.patch.object(sys, "argv", command), contextlib.redirect_stdout(io.StringIO()):
            return make_metrics_reference.main()

    def test_what_was_written_is_fresh_until_the_program_knows_more(self):
        self.assertEqual(self.run_tool("--check"), 1)
        self.assertEqual(self.run_tool(), 0)
        self.assertIn("`a_total`", self.page.read_text(encoding="utf-8"))
        self.assertEqual(self.run_tool("--check"), 0)
        self.list_metrics("| `b_total` |")
        self.assertEqual(self.run_tool("--check"), 1)


if __name__ == "__main__":
    unittest.main()
