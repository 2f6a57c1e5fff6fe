"""Python programs in processes of their own, for tests of how processes end."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

# Built with a sanitizer, whose run-time library the interpreter had to load first: torch and it do
# not get along, and memory is not given back as usual.
SANITIZED = os.environ.get("ZEUS_SANITIZED") == "1"
if SANITIZED:
    # Leaks are looked for in the programs of the tests themselves. In those that they start, which
    # are killed, forked, or end with threads at work, the search itself fails now and then.
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
without_sanitizer = unittest.skipIf(SANITIZED, "not under a sanitizer (ZEUS_SANITIZED=1)")

# The beginning of a program that starts a node of its own.
WITHOUT_NODE = """
import os
del os.environ["ZEUS_SIM_NODE"]
"""


def run_python(program: str, *, timeout: float = 120) -> str:
    """Runs the program, which must succeed without a word on stderr; what it printed."""
    done = subprocess.run([sys.executable, "-B", "-c", textwrap.dedent(program)],
                          capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"exit code {done.returncode}: {done.stderr}")
    return done.stdout


def run_script(program: str, *, timeout: float = 120) -> str:
    """The same from a file, which multiprocessing needs to start it again in its children."""
    with tempfile.TemporaryDirectory(prefix="zeus-python-test-") as directory:
        path = os.path.join(directory, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(program))
        done = subprocess.run([sys.executable, "-B", path], capture_output=True, text=True,
                              timeout=timeout)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"exit code {done.returncode}: {done.stderr}")
    return done.stdout


class Program:
    """A program that says a line when it is ready to be disturbed."""

    def __init__(self, program: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-B", "-c", textwrap.dedent(program)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        if first != "ready\n":
            self.process.kill()
            raise AssertionError(first + self.process.communicate()[1])

    def interrupt(self) -> None:
        """As Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)

    def finish(self, timeout: float = 60) -> tuple:
        """Exit code, output and errors."""
        try:
            out, errors = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode, out, errors
