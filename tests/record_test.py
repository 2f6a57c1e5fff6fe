"""`zeus record` writes down what a driver says, and a replay says it again: to other programs, and after accidents."""

import json
import os
import signal
import subprocess
import sys
import unittest

from sim_testing import ZEUS, SimTestCase, wait_until

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "record_program.py")
NO_PERMISSION = 4


@unittest.skipIf("ZEUS_SANITIZED" in os.environ, "Python lacks the sanitizer's library")
class RecordTest(SimTestCase):
    def setUp(self):
        super().setUp()
        self.recording = os.path.join(self.directory.name, "machine.zst")

    def command(self, action):
        return [sys.executable, PROGRAM, action]

    def start_node(self):
        self.sim("start", "--gpus", "A100,V100", "--seed", "7")
        self.start_load("--gpu", "0", "--watts", "250", "--seconds", "600")
        return self.evaluated_environment()

    def zeus(self, *arguments, environment=None):
        return subprocess.run([ZEUS, *arguments], env=environment or self.environment, capture_output=True, text=True,
                              timeout=120, check=False)

    def record(self, environment, action, *options):
        done = self.zeus("record", "--out", self.recording, *options, "--", *self.command(action),
                         environment=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def show(self):
        done = self.zeus("recording", "show", "--json", self.recording)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def replay_environment(self, name="stranger"):
        self.sim("start", "--name", name, "--recording", self.recording)
        return self.evaluated_environment("--name", name)

    def replay(self, environment, action):
        done = subprocess.run(self.command(action), env=environment, capture_output=True, text=True, timeout=120,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def answers(self, name="stranger"):
        node = next(node for node in json.loads(self.sim("list", "--json")) if node["name"] == name)
        return {count["function"]: count for count in node["answers"]}

    def test_a_replay_gives_the_same_answers_and_the_same_energies_to_the_digit(self):
        environment = self.start_node()
        recorded = self.record(environment, "measure", "--keep-identities")
        self.assertGreater(recorded["energies"][0], 0)
        self.sim("stop")  # Nothing of the simulation is left.
        replayed = self.replay(self.replay_environment(), "measure")
        self.assertEqual(replayed, recorded)
        counts = self.answers()
        self.assertEqual([name for name, count in counts.items() if count["unknown"]], [])
        self.assertEqual(counts["nvmlDeviceGetName"]["in_order"], 2)
        # The recorded program can be played again, from its beginning.
        self.assertEqual(self.replay(self.evaluated_environment("--name", "stranger"), "measure"), recorded)
        self.assertIn("answers as recorded", self.sim("stop", "--name", "stranger"))

    def test_faults_of_the_machine_are_replayed(self):
        environment = self.start_node()
        self.sim("fault", "--gpu", "0", "--kind", "no-permission")
        self.sim("fault", "--gpu", "1", "--kind", "na-power")
        recorded = self.record(environment, "measure", "--keep-identities")
        self.assertEqual(recorded["facts"][0]["set"], NO_PERMISSION)
        self.assertNotEqual(recorded["facts"][1]["power"][0], 0)
        self.assertEqual(self.replay(self.replay_environment(), "measure"), recorded)

    def test_forked_processes_are_recorded_and_replayed(self):
        environment = self.start_node()
        recorded = self.record(environment, "fork")
        self.assertEqual(recorded["child"][0], 1)  # Not initialised: NVML does not survive a fork.
        self.assertEqual([process["parent"] for process in self.show()["processes"]], [0, 0])
        self.assertEqual(self.replay(self.replay_environment(), "fork"), recorded)

    def test_what_was_never_asked_is_answered_as_not_supported_and_counted(self):
        environment = self.start_node()
        self.record(environment, "measure")
        asked = self.replay(self.replay_environment(), "else")
        self.assertEqual(asked["temperature"], 3)
        self.assertEqual(asked["count"], [2])
        code, (power, memory_temperature) = asked["field"]
        self.assertEqual((code, power[0], memory_temperature[0]), (0, 0, 3))
        self.assertGreater(power[1], 10_000)  # Known from calls that asked for other fields as well.
        self.assertEqual(self.answers()["nvmlDeviceGetTemperature"]["unknown"], 1)
        self.assertIn("nvmlDeviceGetTemperature", self.sim("stop", "--name", "stranger"))

    def test_identities_are_hidden_consistently(self):
        environment = self.start_node()
        real = self.record(environment, "measure", "--keep-identities")["facts"]
        self.assertTrue(self.show()["identities_kept"])
        self.record(environment, "measure")
        summary = self.show()
        made_up = self.replay(self.replay_environment(), "measure")["facts"]
        for index, (before, after) in enumerate(zip(real, made_up)):
            self.assertEqual(before["name"], after["name"])
            for identity in ("uuid", "serial"):
                self.assertNotEqual(before[identity], after[identity])
                self.assertEqual(len(before[identity][1]), len(after[identity][1]))
            self.assertTrue(after["uuid"][1].startswith("GPU-"))
            self.assertEqual(summary["gpus"][index]["uuid"], after["uuid"][1])
        self.assertEqual([process["name"] for process in summary["processes"]], ["program-1"])
        unpacked = subprocess.run([ZEUS, "recording", "show", self.recording], env=self.environment, check=True,
                                  capture_output=True, text=True).stdout
        self.assertNotIn(real[0]["uuid"][1], unpacked)

    def test_a_program_that_calls_every_function_is_recorded_and_replayed(self):
        environment = self.start_node()
        command = [os.environ["NVML_LAZY_PROGRAM"], "call"]
        done = self.zeus("record", "--out", self.recording, "--", *command, environment=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.environ["NVML_FUNCTIONS"], encoding="utf-8") as functions:
            names = {line.split()[0] for line in functions if not line.startswith("#")}
        self.assertEqual({function["name"] for function in self.show()["functions"]} - names, set())
        self.assertGreater(len(self.show()["functions"]), 400)
        again = subprocess.run(command, env=self.replay_environment(), capture_output=True, text=True, timeout=120,
                               check=False)
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        self.assertEqual(again.stdout.count("\n"), done.stdout.count("\n"))
        different = [(one, other) for one, other in zip(done.stdout.splitlines(), again.stdout.splitlines())
                     if one != other and not one.startswith("nvmlErrorString")]  # It returns a pointer.
        self.assertEqual(different, [])

    def test_zeus_measures_on_a_replay(self):
        environment = self.start_node()
        environment["ZEUS_ACTIVITY_DIR"] = self.directory.name
        run = ["run", "--json", "-", "--no-cpu", "--", "sleep", "1.5"]
        done = self.zeus("record", "--out", self.recording, "--", ZEUS, *run, environment=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        replay = self.replay_environment()
        again = self.zeus(*run, environment=replay)
        self.assertEqual(again.returncode, 0, again.stderr)
        doctor = self.zeus("doctor", "--json", "--seconds", "0.2", environment=replay)
        self.assertEqual(len(json.loads(doctor.stdout)["gpus"]), 2, doctor.stdout)

    def test_a_killed_program_leaves_its_calls_behind(self):
        environment = self.start_node()
        recorder = subprocess.Popen([ZEUS, "record", "--out", self.recording, "--", *self.command("ever")],
                                    env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (recorder.kill(), recorder.communicate()) if recorder.poll() is None else None)
        self.assertEqual(recorder.stdout.readline(), "5000 calls\n")
        with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children", encoding="ascii") as children:
            os.kill(int(children.read().split()[0]), signal.SIGKILL)
        recorder.communicate(timeout=60)
        self.assertEqual(recorder.returncode, 128 + signal.SIGKILL)
        self.assertFalse(os.path.exists(self.recording + ".parts"))
        summary = self.show()
        self.assertTrue(summary["whole"])
        self.assertGreaterEqual(summary["calls"] + summary["lost_calls"], 5000)

    def test_a_killed_recorder_leaves_what_it_had_written(self):
        environment = self.start_node()
        recorder = subprocess.Popen([ZEUS, "record", "--out", self.recording, "--", *self.command("ever")],
                                    env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(recorder.stdout.readline(), "5000 calls\n")
        with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children", encoding="ascii") as children:
            program = int(children.read().split()[0])
        wait_until(lambda: os.path.getsize(self.recording) > 10_000, "calls reach the file")
        recorder.kill()
        os.kill(program, signal.SIGKILL)
        recorder.communicate(timeout=60)
        summary = self.show()
        self.assertFalse(summary["whole"])
        self.assertGreater(summary["calls"], 0)
        self.assertIn("replays", self.sim("start", "--name", "rest", "--recording", self.recording))

    def test_damaged_recordings_are_refused_with_a_sentence(self):
        environment = self.start_node()
        self.record(environment, "measure")
        with open(self.recording, "rb") as file:
            whole = file.read()
        flipped = bytearray(whole)
        flipped[100] ^= 0x10  # Inside of the first part.
        for content, words in ((b"", "it is empty"), (b"\x7fELF" * 100, "not a recording"), (flipped, "damaged"),
                               (whole[:20], "its beginning is missing"), (whole + b"more", "something follows its end")):
            with open(self.recording, "wb") as file:
                file.write(content)
            for verb in (("recording", "show", self.recording),
                         ("sim", "start", "--name", "bad", "--recording", self.recording)):
                done = self.zeus(*verb)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_mistakes_are_explained(self):
        self.start_node()
        self.assertIn("either --gpus 4xV100 or --recording FILE", self.run_sim("start").stderr)
        environment = {key: value for key, value in self.environment.items() if key != "LD_LIBRARY_PATH"}
        environment["ZEUS_NVML_LIBRARY"] = ""
        done = self.zeus("record", "--out", self.recording, "--", "true", environment=environment)
        if done.returncode != 0:  # A machine with a driver of its own records.
            self.assertIn("there is no driver to record", done.stderr)
        missing = self.zeus("record", "--out", self.recording, "--", "no-such-command",
                            environment=self.evaluated_environment())
        self.assertEqual(missing.returncode, 127)


if __name__ == "__main__":
    unittest.main()
