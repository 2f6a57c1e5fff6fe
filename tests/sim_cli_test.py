"""The verbs of `zeus sim`: what they print, and one clear sentence for every wrong input."""

import json
import os
import re
import signal
import subprocess
import unittest

from sim_testing import ZEUS, SimTestCase, wait_until

INVALID, NOT_FOUND, UNAVAILABLE = 2, 3, 6
IMAGENET = 1281167  # Images of an epoch of resnet50.


class SimCliTest(SimTestCase):
    def assert_refused(self, code, message, *arguments):
        done = self.run_sim(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)

    def truth(self, gpu=0, *arguments):
        return json.loads(self.sim("truth", "--json", *arguments))[gpu]

    def wait_for_power_above(self, watts):
        wait_until(lambda: self.truth()["power_watts"] > watts,
                   f"the GPU never drew more than {watts} W")

    def test_verbs_mean_the_node_of_the_environment(self):
        self.sim("start", "--gpus", "2xA100", "--name", "mine")
        self.addCleanup(self.run_sim, "stop", "--name", "mine")
        self.environment = self.evaluated_environment("--name", "mine")
        self.assertIn('node "mine"', self.sim("load", "--gpu", "1", "--watts", "200", "--seconds",
                                              "0.01"))
        self.assertEqual(len(json.loads(self.sim("truth", "--json"))), 2)
        self.assertIn('node "mine"', self.sim("fault", "--gpu", "0", "--kind", "lost"))
        self.assertIn("'mine'", self.sim("env"))
        # The command line beats the environment.
        self.assertIn("other", self.run_sim("truth", "--name", "other").stderr)
        self.sim("stop")
        self.assertEqual(json.loads(self.sim("list", "--json")), [])
        self.assertIn('"mine"', self.sim("start", "--gpus", "V100"))

    def test_a_node_lives_from_start_to_stop(self):
        self.assertIn("no simulated node is running", self.sim("list"))
        self.sim("start", "--name", "a", "--gpus", "4xV100,2xA100", "--seed", "7",
                 "--time-scale", "60")
        self.assertIn("4xV100,2xA100", self.sim("list"))
        (node,) = json.loads(self.sim("list", "--json"))
        self.assertEqual((node["name"], node["state"]), ("a", "running"))
        self.assertEqual((node["seed"], node["time_scale"]), (7, 60))
        self.assertEqual([gpu["model"] for gpu in node["gpus"]], ["V100"] * 4 + ["A100"] * 2)
        self.sim("stop", "--name", "a")
        self.assertEqual(os.listdir(self.directory.name), [])

    def test_the_same_seed_gives_the_same_gpus(self):
        for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
            self.sim("start", "--name", name, "--gpus", "V100", "--seed", seed)
        uuids = [self.truth(0, "--name", name)["uuid"] for name in "abc"]
        self.assertEqual(uuids[0], uuids[1])
        self.assertNotEqual(uuids[0], uuids[2])

    def test_a_second_start_is_refused(self):
        self.sim("start", "--gpus", "V100")
        self.assert_refused(
            UNAVAILABLE, 'a simulated node named "default" is running already; stop it with: '
            "zeus sim stop --name default", "start", "--gpus", "V100")

    def test_truth_is_exact(self):
        self.sim("start", "--gpus", "V100,A100", "--time-scale", "1000")
        gpus = json.loads(self.sim("truth", "--json"))
        self.assertEqual([list(gpu) for gpu in gpus],
                         [["index", "uuid", "energy_joules", "power_watts"]] * 2)
        # Idle at constant power: both meters have run for the same time.
        seconds = [gpu["energy_joules"] / gpu["power_watts"] for gpu in gpus]
        self.assertAlmostEqual(seconds[0], seconds[1], delta=1e-9 * seconds[0])

    def test_a_load_draws_its_power_for_its_time(self):
        self.sim("start", "--gpus", "V100", "--time-scale", "20")
        before = self.truth()
        output = self.sim("load", "--gpu", "0", "--watts", "200", "--seconds", "10")
        self.assertIn('GPU 0 of node "default": 200 W for 10.0 s: ', output)
        used = self.truth()["energy_joules"] - before["energy_joules"]
        self.assertGreater(used, 10 * 190)
        self.assertLess(self.truth()["power_watts"], 60)

    def test_a_workload_runs(self):
        self.sim("start", "--gpus", "V100", "--time-scale", "20")
        output = self.sim("load", "--gpu", "0", "--workload", "resnet50", "--batch-size", "256",
                          "--seconds", "10")
        self.assertIn("resnet50 with batch size 256 did ", output)
        self.assertIn(" in 10.0 s: ", output)
        point = json.loads(self.sim("predict", "--gpu", "V100", "--workload", "resnet50",
                                    "--batch-size", "256", "--json"))
        (steps,) = re.findall(r"did (\d+) steps", output)
        steps_per_second = -(-IMAGENET // 256) / point["time_per_epoch_seconds"]
        self.assertAlmostEqual(int(steps), 10 * steps_per_second, delta=1)

    def interrupt(self, number, *arguments):
        """The exit code and output of a load that gets a signal."""
        load = self.start_load("--gpu", "0", "--watts", "200", *arguments)
        self.wait_for_power_above(150)
        load.send_signal(number)
        output, errors = load.communicate(timeout=30)
        self.assertEqual(errors, "")
        self.assertLess(self.truth()["power_watts"], 60)
        return load.returncode, output

    def test_an_interrupted_load_ends_cleanly_and_says_so(self):
        self.sim("start", "--gpus", "V100")
        for number in (signal.SIGINT, signal.SIGTERM):
            code, output = self.interrupt(number, "--seconds", "1000")
            self.assertEqual(code, 128 + number)
            self.assertIn("of 1000 s (interrupted)", output)

    def test_a_load_without_an_end_is_ended_by_a_signal(self):
        self.sim("start", "--gpus", "V100")
        code, output = self.interrupt(signal.SIGINT)
        self.assertEqual(code, 0)
        self.assertNotIn("interrupted", output)

    def test_tables_have_a_heading_and_a_line_each(self):
        self.sim("start", "--gpus", "2xV100")
        heading, node = self.sim("list").splitlines()
        self.assertEqual(heading.split()[:3], ["NAME", "GPUS", "SEED"])
        self.assertEqual(node.split()[:3], ["default", "2xV100", "0"])
        heading, *gpus = self.sim("truth").splitlines()
        self.assertEqual(heading.split(), ["GPU", "UUID", "ENERGY", "[J]", "POWER", "[W]"])
        self.assertEqual([line.split()[:2] for line in gpus],
                         [[str(i), self.truth(i)["uuid"]] for i in range(2)])

    def test_a_load_ends_quietly_when_the_reader_of_its_progress_has_gone(self):
        self.sim("start", "--gpus", "V100")
        load = self.start_load("--gpu", "0", "--workload", "shufflenet", "--batch-size", "128",
                               "--progress")
        self.assertTrue(load.stdout.readline().startswith("step "))
        load.stdout.close()
        self.assertEqual(load.wait(timeout=60), 0)
        self.assertEqual(load.stderr.read(), "")

    def test_a_killed_load_ends_by_itself(self):
        self.sim("start", "--gpus", "V100")
        load = self.start_load("--gpu", "0", "--watts", "200", "--seconds", "1000")
        self.wait_for_power_above(150)
        load.kill()
        load.communicate()
        wait_until(lambda: self.truth()["power_watts"] < 60, "the load of a dead process goes on")
        self.sim("load", "--gpu", "0", "--watts", "100", "--seconds", "0.1")

    def test_a_load_notices_that_its_node_was_stopped(self):
        self.sim("start", "--gpus", "V100")
        load = self.start_load("--gpu", "0", "--watts", "200", "--seconds", "1000")
        self.wait_for_power_above(150)
        self.sim("stop")
        _, errors = load.communicate(timeout=30)
        self.assertEqual(load.returncode, UNAVAILABLE)
        self.assertIn("was stopped", errors)

    def test_env_names_the_node_and_the_library(self):
        self.sim("start", "--name", "a", "--gpus", "V100")
        self.environment["LD_LIBRARY_PATH"] = "/elsewhere"
        environment = self.evaluated_environment("--name", "a")
        self.assertEqual(environment["ZEUS_SIM_NODE"], "a")
        library = environment["ZEUS_NVML_LIBRARY"]
        self.assertTrue(os.path.isabs(library) and os.path.exists(library), library)
        self.assertEqual(environment["LD_LIBRARY_PATH"],
                         os.path.dirname(library) + ":/elsewhere")
        programs = os.path.join(os.path.dirname(library), "bin")
        self.assertEqual(environment["PATH"], programs + ":" + self.environment["PATH"])

    def test_env_can_be_undone_and_keeps_what_was_there(self):
        self.sim("start", "--name", "a", "--gpus", "V100")
        self.addCleanup(self.run_sim, "stop", "--name", "a")
        names = ("ZEUS_SIM_NODE", "ZEUS_NVML_LIBRARY", "LD_LIBRARY_PATH", "PATH")
        show = "; ".join(f'echo "${{{name}-unset}}"' for name in names)
        script = (f'eval "$({ZEUS} sim env --name a)"; {ZEUS} sim stop --name a >/dev/null; '
                  f'eval "$({ZEUS} sim env --unset)"; {show}; {ZEUS} sim start --name a --gpus V100')
        for before in (None, "/opt/one:/opt/it's two"):
            environment = {key: value for key, value in self.environment.items() if key not in names[:3]}
            if before is not None:
                environment["LD_LIBRARY_PATH"] = before
            done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True,
                                  text=True, timeout=60, check=True)
            self.assertEqual(done.stdout.splitlines()[:4],
                             ["unset", "unset", before or "unset", environment["PATH"]])
        # A library that somebody else chose is left alone.
        self.environment["ZEUS_NVML_LIBRARY"] = "/usr/lib/libnvidia-ml.so.1"
        self.assertEqual(self.sim("env", "--unset"), "unset ZEUS_SIM_NODE\n")

    def test_env_survives_a_directory_with_quotes_and_blanks(self):
        strange = os.path.join(self.directory.name, "it's a $HOME")
        os.mkdir(strange)
        self.environment["ZEUS_SIM_DIR"] = strange
        self.sim("start", "--gpus", "V100")
        self.assertEqual(self.evaluated_environment()["ZEUS_SIM_DIR"], strange)

    def test_predict_prints_three_numbers(self):
        point = json.loads(self.sim("predict", "--gpu", "V100", "--workload", "resnet50",
                                    "--batch-size", "256", "--power-limit", "150", "--json"))
        self.assertEqual(list(point), ["time_per_epoch_seconds", "average_power_watts",
                                       "epochs_to_target_mean"])
        self.assertGreater(point["time_per_epoch_seconds"], 0)
        self.assertLessEqual(point["average_power_watts"], 155)

    def test_a_damaged_file_is_named_and_can_be_removed(self):
        path = os.path.join(self.directory.name, "zeus-sim-broken")
        with open(path, "w", encoding="ascii") as file:
            file.write("x" * 10000)
        self.assertIn("damaged", self.sim("list"))
        for verb in (["truth"], ["env"], ["load", "--gpu", "0", "--watts", "1"],
                     ["fault", "--gpu", "0", "--kind", "lost"]):
            self.assert_refused(UNAVAILABLE, "remove it with: zeus sim stop --name broken",
                                *verb, "--name", "broken")
        self.sim("stop", "--name", "broken")
        self.assertFalse(os.path.exists(path))

    def test_nothing_runs_on_a_node_that_does_not_exist(self):
        self.sim("start", "--name", "a", "--gpus", "V100")
        for verb in (["stop"], ["env"], ["truth"], ["load", "--gpu", "0", "--watts", "1"],
                     ["fault", "--gpu", "0", "--kind", "lost"]):
            self.assert_refused(NOT_FOUND, 'no simulated node named "b" (running: a)',
                                *verb, "--name", "b")

    def test_a_gpu_that_does_not_exist_gives_the_range(self):
        self.sim("start", "--gpus", "2xV100")
        for verb in (["load", "--watts", "1"], ["fault", "--kind", "lost"],
                     ["fault", "--kind", "clear"]):
            self.assert_refused(NOT_FOUND, "has no GPU 2: it has GPUs 0 to 1", *verb, "--gpu", "2")

    def test_wrong_words_on_the_command_line_are_quoted(self):
        self.sim("start", "--gpus", "V100")
        fault = ("fault", "--gpu", "0", "--kind")
        load = ("load", "--gpu", "0")
        for message, arguments in (
            ('bad GPU list "4xFOO"', ("start", "--name", "b", "--gpus", "4xFOO")),
            ('bad GPU list "x"', ("start", "--name", "b", "--gpus", "x")),
            ('bad node name "a/b"', ("start", "--name", "a/b", "--gpus", "V100")),
            ("--time-scale: must be a number from 0.001 to 1000000, not \"0\"", ("start", "--name", "b", "--gpus", "V100", "--time-scale", "0")),
            ("--ambient: must be a number from -50 to 80, not \"500\"", ("start", "--name", "b", "--gpus", "V100", "--ambient", "500")),
            ('bad fault "melt"', (*fault, "melt")),
            ('bad fault "slow"', (*fault, "slow")),
            ('bad fault "slow:50"', (*fault, "slow:50")),
            ('bad fault "oob-cap:-5W"', (*fault, "oob-cap:-5W")),
            ('bad fault "lost:1s"', (*fault, "lost:1s")),
            ("--probability: must be a number from 1e-06 to 1, not \"2\"", (*fault, "lost", "--probability", "2")),
            ("clear takes neither", (*fault, "clear", "--at", "5")),
            ("either --watts W or --workload", load),
            ("either --watts W or --workload", (*load, "--watts", "1", "--workload", "resnet50")),
            ("needs --batch-size", (*load, "--workload", "resnet50")),
            ("--watts: must be a number from 0 to 100000", (*load, "--watts", "-5")),
            ("--seconds: must be a number from 0.001", (*load, "--watts", "5", "--seconds", "0")),
            ("--seconds: must be a number", (*load, "--watts", "5", "--seconds", "1e-300")),
            ("--seconds: must be a number", (*load, "--watts", "5", "--seconds", "")),
            ("--batch-size belongs to --workload", (*load, "--watts", "5", "--batch-size", "8")),
            ("--batch-size: must be a whole number from 1 to 1048576",
             (*load, "--workload", "resnet50", "--batch-size", "1048577")),
            ("--seed: must be a whole number",
             ("start", "--name", "b", "--gpus", "V100", "--seed", "-1")),
            ("--seed: must be a whole number",
             ("start", "--name", "b", "--gpus", "V100", "--seed", "18446744073709551616")),
            ("--seed: must be a whole number",
             ("start", "--name", "b", "--gpus", "V100", "--seed", "")),
            ("a call is slower by 0 to 60 s", (*fault, "slow:61s")),
            ("an out-of-band cap is 1 to 100000 W", (*fault, "oob-cap:1e9W")),
            *[("--probability means nothing", (*fault, kind, "--probability", "0.5"))
              for kind in ("oob-cap:200W", "reset", "frozen", "mig")],
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(INVALID, message, *arguments)
        for arguments in (
            (*load, "--workload", "sleep", "--batch-size", "8"),
            ("predict", "--gpu", "V100", "--workload", "sleep", "--batch-size", "8"),
            ("predict", "--gpu", "GTX", "--workload", "resnet50", "--batch-size", "8"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(NOT_FOUND, "known", *arguments)
        self.assertEqual(os.listdir(self.directory.name), ["zeus-sim-default"])

    @unittest.skipIf(os.geteuid() != 0, "only root can run a command as another user")
    def test_another_user_is_told_who_may_stop_a_node(self):
        self.sim("start", "--gpus", "V100")
        done = self.run_sim("stop", user=65534, group=65534, extra_groups=[])
        self.assertEqual(done.returncode, 5)
        self.assertIn("only root and the user who started it may stop it", done.stderr)

    def test_a_full_schedule_refuses_one_more_fault(self):
        self.sim("start", "--gpus", "V100")
        fault = ("fault", "--gpu", "0", "--kind", "lost", "--at", "1000000")
        for _ in range(16):
            self.sim(*fault)
        self.assert_refused(UNAVAILABLE, "16 faults are scheduled on GPU 0: clear them first",
                            *fault)

    def test_text_from_outside_cannot_reach_the_terminal(self):
        self.sim("start", "--gpus", "V100")
        for arguments in (("truth", "--name", "\x1b[31m" + "x" * 5000),
                          ("start", "--name", "b", "--gpus", "\x1b[31m"),
                          ("fault", "--gpu", "0", "--kind", "\x1b[31m" + "x" * 5000)):
            done = self.run_sim(*arguments)
            self.assertEqual(done.returncode, INVALID)
            self.assertNotIn("\x1b", done.stderr)
            self.assertLess(len(done.stderr), 400)

    def test_a_directory_that_does_not_exist_is_an_error(self):
        self.environment["ZEUS_SIM_DIR"] = os.path.join(self.directory.name, "nowhere")
        self.assert_refused(NOT_FOUND, "ZEUS_SIM_DIR", "list")

    def test_a_relative_directory_becomes_absolute(self):
        self.sim("start", "--gpus", "V100")
        self.environment["ZEUS_SIM_DIR"] = os.path.relpath(self.directory.name)
        place = self.evaluated_environment()["ZEUS_SIM_DIR"]
        self.assertTrue(os.path.isabs(place), place)
        self.assertTrue(os.path.samefile(place, self.directory.name))

    def test_a_stopped_process_goes_on_with_its_load(self):
        self.sim("start", "--gpus", "V100")
        load = self.start_load("--gpu", "0", "--watts", "200", "--seconds", "1000")
        self.wait_for_power_above(150)
        load.send_signal(signal.SIGSTOP)
        wait_until(lambda: self.truth()["power_watts"] < 60,
                   "the load of a stopped process goes on")
        load.send_signal(signal.SIGCONT)
        self.wait_for_power_above(150)

    def test_a_missing_option_is_a_wrong_command_line(self):
        for arguments in ((), ("start",), ("load",), ("fault", "--gpu", "0"), ("dance",),
                          ("load", "--gpu", "-1", "--watts", "5")):
            self.assertEqual(self.run_sim(*arguments).returncode, INVALID, arguments)

    def test_two_starts_at_once_make_one_node(self):
        starts = [
            subprocess.Popen(
                [os.environ["ZEUS_BINARY"], "sim", "start", "--gpus", "V100"],
                env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for _ in range(8)
        ]
        codes = sorted(start.wait(timeout=60) for start in starts)
        self.assertEqual(codes, [0] + [UNAVAILABLE] * 7)


if __name__ == "__main__":
    unittest.main()
