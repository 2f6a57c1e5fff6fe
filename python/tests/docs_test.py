"""Every Python block of the documentation runs, page by page, on four simulated A100 in a hurry."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import docs_page
from node_testing import NodeTestCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNNER = pathlib.Path(__file__).with_name("docs_page.py")
PAGES = [ROOT / "README.md", ROOT / "python/README.md", *sorted(ROOT.glob("docs/python*.md"))]


class Page(NodeTestCase):
    """A process and a node of its own for a page."""

    TIME_SCALE = 20
    page = pathlib.Path()

    def runTest(self) -> None:
        text = self.page.read_text()
        written = list(docs_page.blocks(text))
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        if "<!-- starts its own nodes -->" in text:
            del environment["ZEUS_SIM_NODE"]
        with tempfile.TemporaryDirectory(prefix="zeus-docs-test-") as folder:
            done = subprocess.run([sys.executable, "-B", RUNNER, self.page], cwd=folder, text=True,
                                  capture_output=True, timeout=200,
                                  env=environment)
        self.assertEqual(done.returncode, 0, f"{self.page}:\n{done.stdout}\n{done.stderr}")
        run = sum(block.is_run for block in written)
        self.assertIn(f"docs_page: {run} blocks ran, {len(written) - run} were left out",
                      done.stdout)

    def __str__(self) -> str:
        return f"blocks of {self.page.relative_to(ROOT)}"


class BlocksTest(unittest.TestCase):
    def test_a_block_knows_its_line_and_whether_it_runs(self) -> None:
        text = "# A\n\n```python\na = 1\n```\n<!-- not run: why -->\n\n```python\nb\n```\n```sh\nc\n```\n"
        self.assertEqual(list(docs_page.blocks(text)),
                         [docs_page.Block(3, "a = 1", True), docs_page.Block(8, "b", False)])

    def test_a_block_that_fails_is_shown_with_its_line(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.md")
            page.write_text("# A\n\n```python\nanswer = 42\n```\n\n```python\n\nanswer / 0\n```\n")
            done = subprocess.run([sys.executable, "-B", RUNNER, page], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('page.md", line 9', done.stderr)
        self.assertIn("answer / 0", done.stderr)


def load_tests(loader: unittest.TestLoader, _: object, __: object) -> unittest.TestSuite:
    suite = loader.loadTestsFromTestCase(BlocksTest)
    for page in PAGES:
        # A class for each, since a node belongs to a class.
        name = re.sub(r"\W", "_", str(page.relative_to(ROOT)))
        suite.addTest(type(name, (Page,), {"page": page})())
    return suite


if __name__ == "__main__":
    unittest.main()
