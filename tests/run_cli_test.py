"""`zeus run` around real commands on a simulated node: what it reports, and that the command does
not notice it."""

import csv
import json
import os
import signal
import stat
import subprocess
import sys
import time
import unittest

from sim_testing import ZEUS, SimTestCase

DEVICE_FIELDS = {"device", "energy_joules", "sigma_joules", "attributed_joules",
                 "average_power_watts", "source", "coverage", "updates", "flags"}


class RunTestCase(SimTestCase):
    def setUp(self):
        super().setUp()
        for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZEUS_NVML_LIBRARY"):
            self.environment.pop(name, None)

    def start(self, gpus="2xV100"):
        self.sim("start", "--gpus", gpus)
        self.addCleanup(self.run_sim, "stop")
        self.environment = self.evaluated_environment()

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def zeus(self, *arguments, **options):
        options.setdefault("env", self.environment)
        return subprocess.run([ZEUS, "run", *arguments], capture_output=True, text=True,
                              timeout=60, **options)

    def popen(self, *arguments, **options):
        process = subprocess.Popen([ZEUS, "run", *arguments], env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream and not stream.closed:
                stream.close()

    def result(self, *arguments, code=0):
        """The JSON of a run that ended with `code`."""
        file = self.path("result.json")
        done = self.zeus("--json", file, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        with open(file, encoding="utf-8") as text:
            return json.load(text)


class ResultTest(RunTestCase):
    def test_time_energy_and_power_of_every_gpu_are_told(self):
        self.start("A100,V100")
        load = self.start_load("--gpu", "1", "--watts", "200")
        before = json.loads(self.sim("truth", "--json"))
        result = self.result("--label", "a nap", "--", "sleep", "1.2")
        after = json.loads(self.sim("truth", "--json"))
        load.send_signal(signal.SIGTERM)
        load.wait(timeout=20)
        self.assertEqual(result["schema"], "zeus.run/1")
        self.assertEqual(result["command"], ["sleep", "1.2"])
        self.assertEqual(result["label"], "a nap")
        self.assertRegex(result["started"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertEqual(result["host"], os.uname().nodename)
        self.assertGreaterEqual(result["time_seconds"], 1.2)
        gpus = result["devices"]
        self.assertEqual([gpu["device"] for gpu in gpus], ["gpu:0", "gpu:1"])
        self.assertEqual([gpu["uuid"] for gpu in gpus], [gpu["uuid"] for gpu in before])
        for gpu, first, last in zip(gpus, before, after):
            self.assertLessEqual(DEVICE_FIELDS, set(gpu))
            self.assertEqual(gpu["source"], "counter")
            # The command ran between the two looks at the truth.
            spent = last["energy_joules"] - first["energy_joules"]
            self.assertGreater(gpu["energy_joules"], 0)
            self.assertLess(gpu["energy_joules"], spent + 3 * gpu["sigma_joules"])
            self.assertAlmostEqual(gpu["average_power_watts"],
                                   gpu["energy_joules"] / result["time_seconds"])
        total = result["total"]
        self.assertEqual(total["contains"], ["gpu:0", "gpu:1"])
        self.assertEqual(total["missing"], [])
        self.assertAlmostEqual(total["energy_joules"], sum(gpu["energy_joules"] for gpu in gpus))
        self.assertAlmostEqual(total["sigma_joules"],
                               sum(gpu["sigma_joules"] ** 2 for gpu in gpus) ** 0.5)

    def test_the_table_is_for_people_and_on_standard_error(self):
        self.start()
        done = self.zeus("--", "echo", "output")
        self.assertEqual(done.stdout, "output\n")
        for word in ("echo output", "gpu:0", "gpu:1", "total", " J", " W", "±",
                     "one standard deviation"):
            self.assertIn(word, done.stderr)
        self.assertEqual(self.zeus("--quiet", "--", "true").stderr, "")

    def test_json_may_go_to_standard_output(self):
        self.start()
        self.assertEqual(json.loads(self.zeus("--json", "-", "--", "true").stdout)["exit_code"], 0)

    def test_chosen_gpus_alone_are_measured(self):
        self.start()
        self.assertEqual(self.result("--gpus", "1", "--", "true")["total"]["contains"], ["gpu:1"])

    def test_a_lost_gpu_is_named_with_its_reason(self):
        self.start()
        self.sim("fault", "--gpu", "0", "--kind", "lost")
        result = self.result("--", "true")
        self.assertEqual(result["total"]["contains"], ["gpu:1"])
        self.assertEqual(result["total"]["missing"], ["gpu:0"])
        (lost,) = [gpu for gpu in result["devices"] if gpu["device"] == "gpu:0"]
        self.assertIsNone(lost["energy_joules"])
        self.assertIn("bus", lost["reason"])

    def test_a_gpu_that_is_lost_midway_leaves_a_flagged_or_reasoned_result(self):
        self.start()
        script = f"sleep 0.5; {ZEUS} sim fault --gpu 1 --kind lost; sleep 1"
        result = self.result("--", "sh", "-c", script)
        sound, lost = result["devices"]
        self.assertGreater(sound["energy_joules"], 0)
        self.assertTrue("reason" in lost or "partial" in lost["flags"], lost)

    def test_without_devices_the_command_runs_and_the_reasons_are_there(self):
        self.environment["ZEUS_NVML_LIBRARY"] = "/nonexistent/libnvidia-ml.so.1"
        result = self.result("--", "sh", "-c", "exit 3", code=3)
        if result["total"]["contains"]:
            self.skipTest("this machine has sensors of its own")
        self.assertIsNone(result["total"]["energy_joules"])
        self.assertGreater(result["time_seconds"], 0)
        self.assertTrue(all(device["reason"] for device in result["devices"]))
        done = self.zeus("--", "true")
        self.assertEqual(done.returncode, 0)
        self.assertIn("zeus doctor", done.stderr)

    def test_a_senseless_selection_of_devices_does_not_stop_the_command(self):
        self.start()
        self.environment["CUDA_VISIBLE_DEVICES"] = "0,seven"
        result = self.result("--", "true")
        self.assertIn("seven", result["devices"][0]["reason"])

    def test_idle_power_is_subtracted(self):
        self.start()
        result = self.result("--subtract-idle=20,25", "--", "sleep", "0.3")
        for gpu, idle in zip(result["devices"], (20, 25)):
            self.assertEqual(gpu["idle_power_watts"], idle)
            self.assertAlmostEqual(gpu["net_energy_joules"],
                                   gpu["energy_joules"] - idle * result["time_seconds"])
        measured = self.result("--subtract-idle", "--idle-seconds", "0.5", "--", "sleep", "0.5")
        for gpu in measured["devices"]:
            # Nothing runs on the GPUs: what is left is within the uncertainty.
            self.assertLess(abs(gpu["net_energy_joules"]), 4 * gpu["net_sigma_joules"])
        self.assertEqual(measured["total"]["net_contains"], ["gpu:0", "gpu:1"])

    def test_repeated_runs_are_told_one_by_one_and_together(self):
        self.start()
        counter = self.path("count")
        result = self.result("--repeat", "3", "--warmup", "2", "--", "sh", "-c",
                             f"echo run >> {counter}")
        with open(counter, encoding="utf-8") as runs:
            self.assertEqual(len(runs.readlines()), 5)
        self.assertEqual(len(result["runs"]), 3)
        times = [run["time_seconds"] for run in result["runs"]]
        summary = result["summary"]["time_seconds"]
        mean = sum(times) / 3
        self.assertAlmostEqual(summary["mean"], mean)
        self.assertAlmostEqual(summary["standard_deviation"],
                               (sum((t - mean) ** 2 for t in times) / 2) ** 0.5)
        self.assertLess(summary["interval_low"], mean)
        self.assertGreater(summary["interval_high"], mean)
        for run in result["runs"]:
            self.assertLessEqual({"exit_code", "time_seconds", "devices", "total"}, set(run))

    def test_a_failing_run_ends_the_series(self):
        self.start()
        result = self.result("--repeat", "5", "--", "sh", "-c",
                             f"test -e {self.path('been')} && exit 9; touch {self.path('been')}",
                             code=9)
        self.assertEqual([run["exit_code"] for run in result["runs"]], [0, 9])

    def test_csv_has_one_header_and_a_row_per_device_and_run(self):
        self.start()
        file = self.path("results.csv")
        for _ in range(2):
            done = self.zeus("--csv", file, "--repeat", "2", "--", "printf", 'a,"b"')
            self.assertEqual(done.returncode, 0, done.stderr)
        with open(file, encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(text))
        self.assertEqual([row["device"] for row in rows], ["gpu:0", "gpu:1", "total"] * 4)
        self.assertEqual({row["command"] for row in rows}, {'printf a,"b"'})
        self.assertEqual([row["run"] for row in rows], ["1"] * 3 + ["2"] * 3 + ["1"] * 3 + ["2"] * 3)


class RefusalTest(RunTestCase):
    def refuse(self, code, word, *arguments, **options):
        """Zeus says one sentence with the word and runs nothing."""
        ran = self.path("ran")
        done = self.zeus(*arguments, "--", "touch", ran, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn(word, done.stderr)
        self.assertFalse(os.path.exists(ran))

    def test_mistakes_are_one_sentence_and_nothing_runs(self):
        self.start()
        self.refuse(3, "gpu:7", "--gpus", "0,7")
        self.refuse(2, "zero", "--gpus", "zero")
        self.refuse(2, "--bogus", "--bogus")
        self.refuse(2, "--repeat", "--repeat", "0")
        self.refuse(2, "--cooldown", "--cooldown", "soon")
        self.refuse(2, "--subtract-idle", "--subtract-idle=1,2,3")
        self.refuse(3, "/nonexistent/x.json", "--json", "/nonexistent/x.json")
        self.refuse(6, self.directory.name, "--json", self.directory.name)
        self.refuse(3, "/nonexistent/x.csv", "--csv", "/nonexistent/x.csv")

    def test_a_write_protected_file_is_refused(self):
        if os.geteuid() == 0:
            self.skipTest("root may write everywhere")
        file = self.path("old.json")
        with open(file, "w", encoding="utf-8") as text:
            text.write("old")
        os.chmod(file, stat.S_IRUSR)
        self.refuse(5, "old.json", "--json", file)

    def test_no_command_is_a_mistake(self):
        for arguments in ([], ["--quiet"], ["--"], ["--", ""]):
            done = self.zeus(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("say what to run", done.stderr)

    def test_a_full_disk_keeps_the_old_file_and_says_so(self):
        self.start("V100")
        done = self.zeus("--quiet", "--json", "/dev/full", "--", "true")
        self.assertEqual(done.returncode, 6)
        self.assertIn("/dev/full", done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))
        # The command's own failure is more important.
        self.assertEqual(self.zeus("--json", "/dev/full", "--", "sh", "-c", "exit 4").returncode, 4)

    def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(self):
        self.start("V100")
        self.result("--", "true")
        link = self.path("link.json")
        os.symlink(self.path("result.json"), link)
        self.zeus("--json", link, "--", "true")
        self.assertTrue(os.path.islink(link))
        left = [name for name in os.listdir(self.directory.name) if name.endswith(".tmp")]
        self.assertEqual(left, [])


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
            script = (f"import signal, sys\nsignal.signal({int(number)}, lambda *_: sys.exit(42))\n"
                      "print('ready', flush=True)\nwhile True: signal.pause()")
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
        while not os.path.exists(self.path("result.json")):
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=30), 143)

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
        process = self.popen("--quiet", "--", "sh", "-c", "echo ready; read line; exit 8",
                             stdin=subprocess.PIPE)
        self.wait_for(process, "ready")
        process.send_signal(signal.SIGTSTP)
        pid, status = os.waitpid(process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        os.kill(pid, signal.SIGCONT)
        process.stdin.write("go\n")
        process.stdin.flush()
        self.assertEqual(process.wait(timeout=30), 8)


if __name__ == "__main__":
    unittest.main(verbosity=2)
