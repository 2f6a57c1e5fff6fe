"""`zeus run` around real commands: they do not notice it."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import unittest

from run_testing import RunTestCase
from sim_testing import ZEUS, wait_until


class CommandTest(RunTestCase):
    """The command does not notice Zeus."""

    def setUp(self):
        super().setUp()
        self.start("V100")

    def python(self, script, *options, **popen):
        return self.popen(*options, "--", sys.executable, "-c", script, **popen)

    def wait_for(self, process, line):
        self.assertEqual(process.stdout.readline().strip(), line)

    def test_words_reach_the_command_as_they_were(self):
        words = ["[1,2]", "", "--json", "--", "a b", "-h", "$HOME", "sim"]
        script = "import json, sys; print(json.dumps(sys.argv[1:]))"
        done = self.zeus("--quiet", "--", sys.executable, "-c", script, *words)
        self.assertEqual(json.loads(done.stdout), words)
        bare = self.zeus("--quiet", sys.executable, "-c", script, "--quiet", "--", "x")
        self.assertEqual(json.loads(bare.stdout), ["--quiet", "--", "x"])

    def test_exit_codes(self):
        for command, code in ((["true"], 0), (["sh", "-c", "exit 77"], 77),
                              (["sh", "-c", "kill -KILL $$"], 137),
                              (["sh", "-c", "kill -SEGV $$"], 139),
                              (["no-such-command-here"], 127), (["/nonexistent/thing"], 127),
                              (["/dev/null"], 126), ([self.directory.name], 126)):
            done = self.zeus("--quiet", "--", *command)
            self.assertEqual(done.returncode, code, (command, done.stderr))
            if code in (126, 127):
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
                self.assertIn(command[0], done.stderr)

    def test_standard_input_and_outputs_pass_through(self):
        done = self.zeus("--quiet", "--", "sh", "-c", "cat; echo problem >&2", input="through\n")
        self.assertEqual(done.stdout, "through\n")
        self.assertEqual(done.stderr, "problem\n")

    def test_a_descriptor_that_was_handed_over_stays_open(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        done = self.zeus("--quiet", "--", "sh", "-c", f"echo jobserver >&{writer}",
                         pass_fds=(writer,))
        os.close(writer)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.read(reader, 100), b"jobserver\n")

    def test_the_command_inherits_nothing_of_zeus(self):
        script = "import os; print(sorted(os.listdir('/proc/self/fd'))[:-1])"
        bare = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                              check=True, env=self.environment)
        done = self.zeus("--quiet", "--", sys.executable, "-c", script)
        self.assertEqual(done.stdout, bare.stdout)
        script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"
        bare = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual(self.zeus("--quiet", "--", "sh", "-c", script).stdout, bare.stdout)

    def test_signals_are_passed_on(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT,
                       signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGRTMIN + 3):
            script = (f"import signal, sys, time\nsignal.signal({int(number)}, lambda *_: sys.exit(42))\n"
                      "print('ready', flush=True)\nwhile True: time.sleep(0.02)")
            process = self.python(script, "--quiet")
            self.wait_for(process, "ready")
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=30), 42, number)

    def test_a_signal_that_kills_the_command_shows_in_the_exit_code(self):
        process = self.popen("--json", self.path("result.json"), "--", "sh", "-c",
                             "echo ready; exec sleep 60")
        self.wait_for(process, "ready")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 143)
        with open(self.path("result.json"), encoding="utf-8") as text:
            self.assertEqual(json.load(text)["exit_code"], 143)

    def test_an_interrupted_series_reports_what_it_has(self):
        process = self.popen("--repeat", "100", "--json", self.path("result.json"), "--", "sh", "-c",
                             "echo ready; exec sleep 60")
        self.wait_for(process, "ready")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 130)
        with open(self.path("result.json"), encoding="utf-8") as text:
            result = json.load(text)
        self.assertEqual([run["exit_code"] for run in result["runs"]], [130])
        self.assertEqual(result["planned_runs"], 100)

    def test_the_pause_between_runs_can_be_interrupted(self):
        process = self.popen("--repeat", "2", "--cooldown", "3600", "--json",
                             self.path("result.json"), "--", "true")
        wait_until(lambda: os.path.exists(self.path("result.json")), "no result was written")
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 143)

    def test_ctrl_c_reaches_the_command_once(self):
        terminal, line = os.openpty()
        self.addCleanup(os.close, terminal)
        script = ("import signal, sys\n"
                  "seen = []\n"
                  "signal.signal(signal.SIGINT, lambda *_: (seen.append(1), print('got')))\n"
                  "print('ready', flush=True)\n"
                  "while not sys.stdin.readline(): pass\n"
                  "sys.exit(10 + len(seen))")

        def own_the_terminal():
            os.setsid()
            fcntl.ioctl(line, termios.TIOCSCTTY, 0)

        process = subprocess.Popen(
            [ZEUS, "run", "--quiet", "--", sys.executable, "-u", "-c", script],
            env=self.environment, stdin=line, stdout=subprocess.PIPE, text=True,
            preexec_fn=own_the_terminal)
        self.addCleanup(self.end, process)
        os.close(line)
        self.wait_for(process, "ready")
        os.write(terminal, b"\x03")
        self.wait_for(process, "got")
        os.write(terminal, b"go\n")
        self.assertEqual(process.wait(timeout=30), 11)

    def test_ignored_signals_stay_ignored(self):
        process = self.popen("--quiet", "--", "sh", "-c", "kill -HUP $$; echo alive",
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual(process.communicate(timeout=30)[0], "alive\n")
        process = self.popen("--quiet", "--", "sh", "-c", "exit 5",
                             preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(process.wait(timeout=30), 5)

    def test_the_measurement_ends_with_the_command_unless_all_are_to_be_waited_for(self):
        # The descendant lives on until it reads a line; the command does not wait for it.
        script = "exec 3<&0; (read line <&3; echo late) & exit 6"
        for options in ([], ["--wait-all"]):
            process = self.popen("--quiet", *options, "--", "sh", "-c", script,
                                 stdin=subprocess.PIPE)
            if options:
                with self.assertRaises(subprocess.TimeoutExpired):
                    process.wait(timeout=0.3)
            else:
                self.assertEqual(process.wait(timeout=30), 6)
            self.assertEqual(process.communicate("go\n", timeout=30)[0], "late\n")
            self.assertEqual(process.returncode, 6)

    def test_the_command_survives_a_killed_zeus_unless_told_otherwise(self):
        for options, survives in (([], True), (["--kill-with-parent"], False)):
            process = self.popen("--quiet", *options, "--", "sh", "-c", "echo $$; exec sleep 60")
            child = int(process.stdout.readline())
            process.kill()
            process.wait(timeout=30)
            if survives:
                os.kill(child, 0)  # Raises when it is gone.
                os.kill(child, signal.SIGKILL)
            # The pipe ends when the last process that holds it has ended.
            self.assertEqual(process.stdout.read(), "")

    def test_a_stopped_job_stops_as_a_whole_and_continues(self):
        # The kernel stops only jobs that have a parent in their session, as those of a shell have;
        # the tests themselves may run without one.
        script = """if True:
            import os, signal, subprocess, sys
            job = subprocess.Popen(sys.argv[1:], process_group=0, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
            assert job.stdout.readline() == "ready\\n"
            job.send_signal(signal.SIGTSTP)
            _, status = os.waitpid(job.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status), status
            job.send_signal(signal.SIGCONT)
            job.stdin.write("go\\n")
            job.stdin.flush()
            sys.exit(job.wait(timeout=30))
        """
        shell = subprocess.run([sys.executable, "-c", script, ZEUS, "run", "--quiet", "--", "sh",
                                "-c", "echo ready; read line; exit 8"], env=self.environment,
                               start_new_session=True, capture_output=True, text=True, timeout=60)
        self.assertEqual(shell.returncode, 8, shell.stderr)


class SlowDriverTest(RunTestCase):
    """Each call of the driver takes a minute, the longest that can be simulated: whoever waits for
    one is stopped by the time limit of the test."""

    def setUp(self):
        super().setUp()
        self.start("2xV100")

    def slow_down(self):
        for gpu in ("0", "1"):
            self.sim("fault", "--gpu", gpu, "--kind", "slow:60s")

    @staticmethod
    def holds_signals_back(process):
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
            (blocked,) = [line.split()[1] for line in status if line.startswith("SigBlk")]
        return int(blocked, 16) >> (signal.SIGTERM - 1) & 1

    def test_the_command_runs_and_is_told_what_it_is_sent(self):
        self.slow_down()
        for number in (signal.SIGINT, signal.SIGTERM):
            script = ("import signal, sys, time\n"
                      f"signal.signal({int(number)}, lambda *_: sys.exit(7))\n"
                      "print('ready', flush=True)\ntime.sleep(600)")
            process = self.popen("--driver-timeout", "0.2", "--", sys.executable, "-c", script)
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(number)
            _, report = process.communicate(timeout=50)
            self.assertEqual(process.returncode, 7, report)
            self.assertIn("not measured: the driver did not answer within 0.2 s", report)

    def test_a_signal_ends_zeus_before_the_command_is_started(self):
        self.slow_down()
        marker = self.path("ran")
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.popen("--driver-timeout", "3600", "--", "touch", marker)
            wait_until(lambda: self.holds_signals_back(process), "zeus watches signals")
            process.send_signal(number)
            process.communicate(timeout=50)
            self.assertEqual(process.returncode, 128 + number)
            self.assertFalse(os.path.exists(marker))

    def test_a_driver_that_gets_slow_later_delays_nothing(self):
        script = ("import signal, sys, time\n"
                  "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
                  "print('ready', flush=True)\ntime.sleep(600)")
        process = self.popen("--json", self.path("late.json"), "--", sys.executable, "-c", script)
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.slow_down()
        process.send_signal(signal.SIGTERM)
        _, report = process.communicate(timeout=50)
        self.assertEqual(process.returncode, 7, report)
        with open(self.path("late.json"), encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual([gpu["device"] for gpu in result["devices"]], ["gpu:0", "gpu:1"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
