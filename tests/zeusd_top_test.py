"""`zeus top` on a terminal: its keys, its size, and that the terminal is as before when it ends."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from sim_testing import ZEUS
from zeusd_testing import ZeusdTestCase

CLEAR = b"\x1b[2J"
CONTROL = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, command, environment, rows=24, columns=120):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(command, env=environment | {"TERM": "xterm"}, stdin=self.slave, stdout=self.slave,
                                        stderr=self.slave, start_new_session=True)
        self.text = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        self.read(0)
        self.text = b""  # All that is drawn later follows from the keys.
        os.write(self.master, keys.encode())

    def read(self, timeout):
        while select.select([self.master], [], [], timeout)[0]:
            self.text += os.read(self.master, 1 << 16)
            timeout = 0

    def wait_for(self, pattern, seconds=60):
        """Returns the text since the last keys once it matches."""
        until = time.monotonic() + seconds
        while True:
            text = CONTROL.sub(b"", self.text).decode(errors="replace").replace("\r", "")
            found = re.search(pattern, text, re.DOTALL)
            if found:
                return found
            if time.monotonic() > until:
                raise AssertionError(f"{pattern!r} is not on the terminal: {text!r}")
            self.read(0.1)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        os.close(self.master)
        os.close(self.slave)


class ZeusdTopTest(ZeusdTestCase):
    def setUp(self):
        super().setUp()
        self.start_daemon()

    def top(self, **size):
        terminal = Terminal([ZEUS, "top", "--socket", self.socket_path, "--interval", "0.2"],
                            self.environment | {"LC_ALL": "C.UTF-8"}, **size)
        self.addCleanup(terminal.end)
        terminal.wait_for("q quit")
        return terminal

    def load_second_gpu(self):
        load = subprocess.Popen([ZEUS, "sim", "load", "--gpu", "1", "--watts", "200"], env=self.environment,
                                stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (load.kill(), load.wait(60)))

    def test_keys_choose_the_order(self):
        self.load_second_gpu()
        terminal = self.top()
        terminal.wait_for(r"gpu:1 +[12]\d\d W")
        for key in "pt":
            terminal.press(key)
            terminal.wait_for(r"leases\n\s*gpu:1 .*?\n\s*gpu:0 ")
            terminal.press("d")
            terminal.wait_for(r"leases\n\s*gpu:0 .*?\n\s*gpu:1 ")

    def test_a_filter_is_typed_mended_and_cleared(self):
        terminal = self.top()
        terminal.press("/gpu:0\x7f1\r")
        terminal.wait_for(r"leases\n\s*gpu:1 [^\n]*\norder: [^\n]*\[gpu:1\]")
        # A key of the order is a letter of a filter that is being typed.
        terminal.press("/dq")
        terminal.wait_for(r"leases\norder: [^\n]*\[dq\]")
        terminal.press("\x1b")
        terminal.wait_for(r"gpu:0 .*?gpu:1 .*?/ filter; q quit")

    def test_q_ends_it_and_the_terminal_is_as_before(self):
        terminal = self.top()
        self.assertFalse(termios.tcgetattr(terminal.slave)[3] & (termios.ICANON | termios.ECHO))
        terminal.press("q")
        self.assertEqual(terminal.process.wait(60), 0)
        self.assertEqual(termios.tcgetattr(terminal.slave), terminal.before)

    def test_a_signal_ends_it_likewise(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            terminal = self.top()
            terminal.process.send_signal(number)
            terminal.process.wait(60)
            self.assertEqual(termios.tcgetattr(terminal.slave), terminal.before, number)

    def test_a_narrow_terminal_gets_narrow_rows(self):
        created = self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=600) | {"name": "n" * 60})
        self.assertEqual(created.status, 201, created.text)
        terminal = self.top()
        drawn = terminal.wait_for(r"gpu:0 [^\n]* n{60} \(uid:0\)[^\n]*\n").group()
        self.assertEqual(max(map(len, drawn.splitlines())), 120, drawn)
        terminal.resize(24, 40)
        terminal.process.send_signal(signal.SIGWINCH)
        while CLEAR not in terminal.text:  # All is drawn again, at the new width.
            terminal.read(1)
        terminal.press("d")
        drawn = terminal.wait_for(r"2 devices.*gpu:1[^\n]*\n").group()
        self.assertEqual(max(map(len, drawn.splitlines())), 40, drawn)

    def test_in_a_pipe_it_writes_lines(self):
        done = subprocess.run([ZEUS, "top", "--socket", self.socket_path, "--interval", "0.1", "--count", "2"],
                              env=self.environment, capture_output=True, text=True, timeout=60, check=False,
                              stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("2 devices"), 2)
        self.assertNotIn("\x1b", done.stdout)


if __name__ == "__main__":
    unittest.main()
