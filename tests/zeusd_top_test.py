"""`zeus top` on a terminal: the keys sort and filter, a resize is followed, a daemon that goes away is told, and the
terminal is as before when it ends. Without a terminal it prints lines."""

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

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class ZeusdTopTest(ZeusdTestCase):
    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.environment |= {"ZEUSD_SOCK_PATH": self.socket_path, "TERM": "xterm"}

    def begin(self, *arguments, columns=120):
        self.terminal, theirs = pty.openpty()
        self.addCleanup(os.close, self.terminal)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        self.addCleanup(os.close, theirs)
        process = subprocess.Popen([ZEUS, "top", "--interval", "0.2", *arguments], env=self.environment, stdin=theirs,
                                   stdout=theirs, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.text = ""
        return process

    def read_until(self, wanted):
        """Reads the terminal until the pattern was drawn after the last call; what was drawn since, without controls."""
        deadline, text = time.monotonic() + 60, ""
        while time.monotonic() < deadline:
            plain = CONTROL.sub("", text)
            if re.search(wanted, plain, re.DOTALL):
                return plain
            if select.select([self.terminal], [], [], 0.2)[0]:
                text += os.read(self.terminal, 65536).decode()
        raise AssertionError(f"{wanted!r} is not drawn: {CONTROL.sub('', text)[-2000:]!r}")

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def test_keys_sort_and_filter_and_q_ends_it(self):
        self.start_load("--gpu", "1", "--watts", "240")
        process = self.begin()
        self.read_until(r"gpu:0.*gpu:1")
        created = self.ask("POST", "/v1/leases", self.lease(200, holder="ttl", ttl_seconds=600) | {"name": "my run"})
        self.assertEqual(created.status, 201, created.text)
        self.read_until(r"gpu:0[^\n]*my run")
        # By power: the one with the load first.
        self.press("p")
        self.read_until(r"gpu:1[^\n]*\n[^\n]*gpu:0")
        self.press("d")
        self.read_until(r"gpu:0[^\n]*\n[^\n]*gpu:1")
        self.press("/my")
        drawn = self.read_until(r"my run.*my run")
        self.assertNotIn("gpu:1", drawn[drawn.rindex("my run"):])
        self.press("\n")
        # A "q" that is typed into a filter does not end it.
        self.press("/q\x1b")
        self.read_until(r"gpu:0[^\n]*\n[^\n]*gpu:1")
        self.assertIsNone(process.poll())
        self.press("q")
        self.assertEqual(process.wait(60), 0)
        self.assertEqual(termios.tcgetattr(self.theirs), self.before, "the terminal is as before")

    def test_a_signal_leaves_the_terminal_as_it_was(self):
        process = self.begin()
        self.read_until("gpu:0")
        self.assertNotEqual(termios.tcgetattr(self.theirs), self.before)
        process.send_signal(signal.SIGINT)
        process.wait(60)
        self.assertEqual(termios.tcgetattr(self.theirs), self.before)

    def test_a_resize_is_followed(self):
        process = self.begin(columns=120)
        self.read_until("gpu:0")
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
        process.send_signal(signal.SIGWINCH)
        self.read_until("gpu:0.*gpu:0")
        drawn = self.read_until("gpu:0.*gpu:0.*gpu:0")
        self.assertLessEqual(max(map(len, drawn[drawn.rindex("gpu:0"):].splitlines())), 40)

    def test_a_daemon_that_goes_away_and_returns_is_told(self):
        process = self.begin()
        self.read_until("gpu:0")
        self.daemon.stop()
        self.read_until(re.escape(self.socket_path))
        self.start_daemon()
        self.read_until("gpu:0.*gpu:1")
        self.assertIsNone(process.poll())

    def test_without_a_terminal_it_prints_lines(self):
        done = subprocess.run([ZEUS, "top", "--interval", "0.1", "--count", "2"], env=self.environment, capture_output=True,
                              text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("gpu:0"), 2)
        self.assertNotIn("\x1b", done.stdout)

    def test_without_a_daemon_it_says_so(self):
        self.daemon.stop()
        done = subprocess.run([ZEUS, "top", "--count", "1"], env=self.environment, capture_output=True, text=True, timeout=60,
                              check=False, stdin=subprocess.DEVNULL)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(self.socket_path, done.stderr)


if __name__ == "__main__":
    unittest.main()
