"""Programs that change a power limit end in every way there is; afterwards it is what it was."""

import glob
import json
import os
import shutil
import signal
import subprocess
import unittest

from sim_testing import ZEUS, SimTestCase

PROGRAM = os.environ.get("KNOB_PROGRAM", "build/dev/tests/knob_program")
C_PROGRAM = os.environ.get("KNOB_C_PROGRAM", "build/dev/tests/knob_c_program")
UNSHARE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


def can_unshare():
    return shutil.which("unshare") is not None and subprocess.run(
        [*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


class KnobsTest(SimTestCase):
    def setUp(self):
        super().setUp()
        for name in ("CUDA_VISIBLE_DEVICES", "ZEUS_NVML_LIBRARY"):
            self.environment.pop(name, None)
        self.sim("start", "--gpus", "2xV100")
        self.addCleanup(self.run_sim, "stop")
        self.environment = self.evaluated_environment()

    def zeus(self, *arguments):
        return subprocess.run([ZEUS, *arguments], env=self.environment, capture_output=True,
                              text=True, timeout=60)

    def doctor(self):
        return json.loads(self.zeus("doctor", "--json", "--seconds", "0").stdout)

    def limits(self):
        return [gpu["power_limit"]["current"] for gpu in self.doctor()["gpus"]]

    def start(self, *command, **variables):
        """A program that has set 150 W."""
        how = command if len(command) > 1 else (PROGRAM, *(command or ("wait",)))
        program = subprocess.Popen(how, env=self.environment | variables, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(
            lambda: (program.kill(), program.communicate()) if program.poll() is None else None)
        self.assertEqual(program.stdout.readline(), "set\n")
        return program

    def end(self, program):
        self.errors = program.communicate(timeout=60)[1]
        return program.returncode

    def kill_one(self, **variables):
        program = self.start(**variables)
        program.kill()
        self.end(program)
        return program

    def entries(self, pattern="*.json"):
        return glob.glob(os.path.join(self.environment["ZEUS_KNOB_DIR"], pattern))

    def test_signals_end_the_program_and_the_limit_comes_back(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            program = self.start()
            self.assertEqual(self.limits(), [150, 150])
            program.send_signal(number)
            self.assertEqual(self.end(program), -number)
            self.assertEqual(self.limits(), [250, 250])
            self.assertEqual(self.entries(), [])

    def test_other_ends_bring_the_limit_back_too(self):
        for how, code in (("return", 0), ("exit", 7), ("throw", 2), ("terminate", -signal.SIGABRT)):
            self.assertEqual(self.end(self.start(how)), code, how)
            self.assertEqual(self.limits(), [250, 250], how)
            self.assertEqual(self.entries(), [], how)

    def test_what_a_killed_program_left_is_told_and_put_back(self):
        program = self.kill_one()
        self.assertEqual(self.limits(), [150, 150])
        leftovers = self.doctor()["leftovers"]
        self.assertEqual([left["what"] for left in leftovers],
                         ["power limit of gpu:0", "power limit of gpu:1"])
        self.assertIn(f"process {program.pid}", leftovers[0]["reason"])
        self.assertEqual(leftovers[0]["fix"], "zeus knobs restore")
        listed = json.loads(self.zeus("knobs", "list", "--json").stdout)
        self.assertEqual([entry["state"] for entry in listed], ["left", "left"])
        done = self.zeus("knobs", "restore")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("power limit of gpu:0 put back to 250 W", done.stdout)
        self.assertEqual(self.limits(), [250, 250])
        self.assertEqual(self.doctor()["leftovers"], [])
        self.assertEqual(self.zeus("knobs", "restore").stdout, "nothing to restore\n")

    def test_the_next_start_repairs_what_a_killed_one_left(self):
        self.kill_one()
        self.assertEqual(self.end(self.start("return")), 0)
        self.assertEqual(self.limits(), [250, 250])

    def test_a_knob_has_one_holder(self):
        first = self.start(CUDA_VISIBLE_DEVICES="0")
        second = subprocess.run([PROGRAM, "return"], env=self.environment, capture_output=True,
                                text=True, timeout=60)
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"held by process {first.pid}", second.stderr)
        self.assertEqual(self.limits(), [150, 250])
        self.assertIn(f"held by process {first.pid}", self.zeus("knobs", "list").stdout)
        restored = self.zeus("knobs", "restore")
        self.assertIn(f"not put back: the power limit of gpu:0 is held by process {first.pid}",
                      restored.stdout)
        self.assertEqual(restored.returncode, 6)
        self.assertEqual(self.limits(), [150, 250])
        first.terminate()
        self.assertEqual(self.end(first), -signal.SIGTERM)
        self.assertEqual(self.limits(), [250, 250])

    def test_a_rank_that_dies_leaves_its_gpu_to_its_peers(self):
        peer = self.start(CUDA_VISIBLE_DEVICES="1")
        self.kill_one(CUDA_VISIBLE_DEVICES="0")
        self.assertEqual(self.limits(), [150, 150])
        peer.terminate()
        self.assertEqual(self.end(peer), -signal.SIGTERM)
        self.assertEqual(self.limits(), [250, 250])

    def test_after_a_reload_of_the_driver_there_is_nothing_to_put_back(self):
        self.kill_one(CUDA_VISIBLE_DEVICES="0")
        # A counter that has run for days, so that this test need not be fast.
        (entry,) = self.entries()
        with open(entry, encoding="utf-8") as file:
            content = json.load(file)
        content["energy_joules"] += 1e9
        with open(entry, "w", encoding="utf-8") as file:
            json.dump(content, file)
        self.sim("fault", "--gpu", "0", "--kind", "reset")
        done = self.zeus("knobs", "restore", "--json")
        self.assertEqual([entry["outcome"] for entry in json.loads(done.stdout)], ["discarded"])
        self.assertEqual(self.limits(), [250, 250])

    def test_a_damaged_entry_is_put_aside_with_one_warning(self):
        self.kill_one(CUDA_VISIBLE_DEVICES="0")
        (entry,) = self.entries()
        with open(entry, "r+", encoding="utf-8") as file:
            file.truncate(40)
        program = self.start("return", CUDA_VISIBLE_DEVICES="0")
        self.assertEqual(self.end(program), 0)
        self.assertEqual(self.errors.count("damaged"), 1, self.errors)
        self.assertEqual(self.entries("*.bad"), [entry + ".bad"])
        self.assertEqual(self.entries(), [])

    def test_damage_is_said_with_an_exit_code_until_the_default_is_set(self):
        self.kill_one(CUDA_VISIBLE_DEVICES="0")
        (entry,) = self.entries()
        with open(entry, "r+", encoding="utf-8") as file:
            file.truncate(40)
        for verb in ("list", "restore"):
            done = self.zeus("knobs", verb)
            self.assertEqual(done.returncode, 6, done.stdout)
            self.assertIn("is damaged", done.stdout)
        self.assertIn("damaged", self.doctor()["leftovers"][0]["reason"])
        self.assertEqual(json.loads(self.zeus("knobs", "list", "--json").stdout)[0]["state"],
                         "damaged")
        done = self.zeus("knobs", "restore", "--default")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("power limit of gpu:0 put to its default: 250 W", done.stdout)
        self.assertEqual(self.limits(), [250, 250])
        self.assertEqual(self.zeus("knobs", "list").stdout, "no knob is turned\n")
        self.assertEqual(self.doctor()["leftovers"], [])

    def test_scoped_limits_and_those_of_c_come_back_after_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for command in ((PROGRAM, "wait", "scoped"), (C_PROGRAM, "wait")):
                program = self.start(*command)
                self.assertEqual(self.limits()[0], 150)
                self.assertEqual(len(self.entries()), 2 if command[0] == PROGRAM else 1)
                program.send_signal(number)
                self.assertEqual(self.end(program), -number)
                self.assertEqual(self.limits(), [250, 250], (number, command))
                self.assertEqual(self.entries(), [])

    def test_scoped_limits_and_those_of_c_are_repaired_after_a_kill(self):
        for command in ((PROGRAM, "wait", "scoped"), (C_PROGRAM, "wait")):
            program = self.start(*command)
            program.kill()
            self.end(program)
            self.assertEqual(self.limits()[0], 150)
            self.assertIn("power limit of gpu:0 put back to 250 W",
                          self.zeus("knobs", "restore").stdout)
            self.assertEqual(self.limits(), [250, 250], command)

    def test_a_journal_that_is_lost_shows_at_every_start(self):
        self.kill_one(CUDA_VISIBLE_DEVICES="0")
        for entry in self.entries("*"):
            os.remove(entry)  # The folder of a container that is gone.
        (left,) = self.doctor()["leftovers"]
        self.assertEqual(left["what"], "power limit of gpu:0")
        self.assertIn("150 W, below its default of 250 W", left["reason"])
        self.assertIn("zeus knobs restore --default", left["fix"])
        warning = "the power limit of gpu:0 is 150 W, below its default of 250 W"
        self.assertIn(warning, self.zeus("run", "--", "true").stderr)
        profiled = self.zeus("profile", "--gpus", "0", "--limits", "150", "--slice", "100ms",
                             "--warmup", "0s", "--", "sleep", "1")
        self.assertIn(warning, profiled.stderr)
        self.assertEqual(self.zeus("knobs", "restore", "--default").returncode, 0)
        self.assertEqual(self.limits(), [250, 250])
        self.assertNotIn("warning", self.zeus("run", "--", "true").stderr)

    def test_force_puts_back_what_a_living_program_holds(self):
        program = self.start()
        done = self.zeus("knobs", "restore", "--force")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.limits(), [250, 250])
        program.terminate()
        self.assertEqual(self.end(program), -signal.SIGTERM)
        self.assertEqual(self.limits(), [250, 250])

    def test_an_old_entry_of_another_container_needs_force(self):
        self.kill_one(CUDA_VISIBLE_DEVICES="0")
        (entry,) = self.entries()
        with open(entry, encoding="utf-8") as file:
            content = json.load(file)
        for field in ("locked", "settings"):
            del content[field]  # As versions before the locks wrote it.
        content["owner"] |= {"pid": 1, "pid_namespace": "pid:[1]"}
        with open(entry, "w", encoding="utf-8") as file:
            json.dump(content, file)
        self.assertIn("process 1 of another pid namespace", self.zeus("knobs", "list").stdout)
        self.assertEqual(self.zeus("knobs", "restore").returncode, 6)
        self.assertEqual(self.limits(), [150, 250])
        self.assertEqual(self.zeus("knobs", "restore", "--force").returncode, 0)
        self.assertEqual(self.limits(), [250, 250])

    @unittest.skipUnless(can_unshare(), "pid namespaces are not allowed here")
    def test_a_holder_in_another_pid_namespace_counts_only_while_it_lives(self):
        program = self.start(*UNSHARE, PROGRAM, "wait")
        self.assertEqual(self.limits(), [150, 150])
        held = self.zeus("knobs", "restore")
        self.assertEqual(held.returncode, 6)
        self.assertIn("held by process 1 of another pid namespace", held.stdout)
        program.kill()  # And with it the namespace.
        self.end(program)
        listed = self.zeus("knobs", "list").stdout
        self.assertIn("left changed by process 1 of another pid namespace", listed)
        # The other way round: repaired from within a namespace.
        done = subprocess.run([*UNSHARE, ZEUS, "knobs", "restore"], env=self.environment,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.limits(), [250, 250])

    def test_a_gpu_that_refuses_is_told_and_kept_in_mind(self):
        self.kill_one()
        self.sim("fault", "--gpu", "0", "--kind", "no-permission")
        done = self.zeus("knobs", "restore")
        self.assertEqual(done.returncode, 6)
        self.assertIn("power limit of gpu:0 could not be put back", done.stdout)
        self.assertIn("power limit of gpu:1 put back to 250 W", done.stdout)
        self.assertEqual(len(self.entries()), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
