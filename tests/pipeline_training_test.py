"""A pipeline of processes on simulated GPUs measures itself, plans its clocks and keeps to the plan."""

import contextlib
import fcntl
import glob
import json
import os
import signal
import subprocess
import unittest

from sim_testing import ZEUS, SimTestCase, wait_until

PROGRAM = os.environ.get("TRAIN_PIPELINE", "build/dev/examples/train_pipeline")


class VirtualTimeTest(unittest.TestCase):
    """Stages are processes with a GPU each; what they send each other carries the time."""

    def train(self, *arguments):
        done = subprocess.run([PROGRAM, "--json", *arguments], capture_output=True, text=True,
                              timeout=280)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check_plan(self, figures, least_saving):
        baseline, predicted, planned = (figures[k] for k in ("baseline", "predicted", "planned"))
        self.assertLess(abs(planned["energy_joules"] / predicted["energy_joules"] - 1), 0.03)
        self.assertLess(abs(planned["time_seconds"] / baseline["time_seconds"] - 1), 0.01)
        # The energy at the highest clock is the one that the profile has for it.
        self.assertLess(
            abs(predicted["baseline_energy_joules"] / baseline["energy_joules"] - 1), 0.03)
        for quantity in ("energy_joules", "exact_energy_joules"):
            self.assertGreater(1 - planned[quantity] / baseline[quantity], least_saving)

    def check_straggler(self, figures):
        straggler = figures["straggler"]
        self.assertEqual(straggler["iterations_until_new_plan"], 1)
        before, after = straggler["before"], straggler["after"]
        pace = straggler["pace_seconds"]
        self.assertLess(abs(pace / before["time_seconds"] - 1), 0.01)
        self.assertGreater(pace, 1.05 * figures["planned"]["time_seconds"])
        self.assertLess(pace, 1.21 * figures["planned"]["time_seconds"])
        # The others run slower than before, but the straggler does not wait for them for long.
        self.assertLess(after["energy_joules"], before["energy_joules"])
        self.assertLess(after["time_seconds"], 1.04 * pace)

    def test_a100_saves_without_slowing_down_and_follows_a_straggler(self):
        figures = self.train("--gpu", "A100", "--straggler", "3:1.2")
        self.check_plan(figures, 0.03)
        self.check_straggler(figures)

    def test_a40_saves_without_slowing_down(self):
        self.check_plan(self.train("--gpu", "A40"), 0.04)

    def test_bubbles_are_predicted(self):
        for stages, microbatches in (("16", "4"), ("8", "1")):
            figures = self.train("--stages", stages, "--microbatches", microbatches)
            predicted, planned = figures["predicted"], figures["planned"]
            self.assertLess(abs(planned["energy_joules"] / predicted["energy_joules"] - 1), 0.03)

    def test_a_plan_that_saves_nothing_predicts_nothing(self):
        predicted = self.train("--stages", "8", "--microbatches", "1")["predicted"]
        expected = 1 - predicted["energy_joules"] / predicted["baseline_energy_joules"]
        self.assertAlmostEqual(predicted["energy_saving"], expected, places=9)
        self.assertLess(predicted["energy_saving"], 0.005)

    def test_the_same_seed_gives_the_same_figures(self):
        self.assertEqual(self.train("--seed", "7"), self.train("--seed", "7"))

    def test_output_that_cannot_be_written_is_an_error(self):
        for arguments in (["--iterations", "1"], ["--help"]):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("cannot write the output", done.stderr)

    def test_nonsense_is_refused(self):
        for arguments in (["--straggler", "2"], ["--straggler", "2:0.5"], ["--straggler", "4:1.2"],
                          ["--gpu", "P100"],
                          ["--stages", "1"]):
            done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True,
                                  timeout=60)
            self.assertNotEqual(done.returncode, 0, arguments)


class NodeTest(SimTestCase):
    """The same on a node in real time, through NVML: what becomes of locked clocks."""

    def setUp(self):
        super().setUp()
        for name in ("CUDA_VISIBLE_DEVICES", "ZEUS_NVML_LIBRARY"):
            self.environment.pop(name, None)
        self.sim("start", "--gpus", "4xA100", "--time-scale", "10")
        self.addCleanup(self.run_sim, "stop")
        self.environment = self.evaluated_environment()

    def entries(self):
        return glob.glob(os.path.join(self.environment["ZEUS_KNOB_DIR"], "*.json"))

    def start(self):
        """A training that is being profiled: all clocks are locked."""
        program = subprocess.Popen(
            [PROGRAM, "--node", "default", "--iterations", "1"], env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.addCleanup(self.stop, program)
        wait_until(lambda: len(self.entries()) == 4 or program.poll() is not None,
                   "the training does not lock the clocks")
        self.assertIsNone(program.poll(), "the training ended before it locked all clocks")
        return program

    @contextlib.contextmanager
    def journal_locked(self):
        """As long as the block lasts, no other process reads or writes the journal of knobs."""
        with open(os.path.join(self.environment["ZEUS_KNOB_DIR"], "lock"), "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def freeze(self, processes):
        """Stops the processes; returns when they stand still."""
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        wait_until(lambda: all(self.state(process) == "T" for process in processes),
                   "the processes do not stop")

    @staticmethod
    def stop(program):
        try:
            os.killpg(program.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        program.communicate()

    @staticmethod
    def stages(program):
        path = f"/proc/{program.pid}/task/{program.pid}/children"
        with open(path, encoding="ascii") as children:
            return [int(child) for child in children.read().split()]

    def restore(self):
        done = subprocess.run([ZEUS, "knobs", "restore"], env=self.environment,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_sigterm_unlocks_at_once(self):
        program = self.start()
        for stage in self.stages(program):
            # The others end with the first one, maybe before it is their turn.
            with contextlib.suppress(ProcessLookupError):
                os.kill(stage, signal.SIGTERM)
        program.communicate(timeout=60)
        self.assertEqual(program.returncode, 128 + signal.SIGTERM)
        self.assertEqual(self.entries(), [])

    @staticmethod
    def state(process):
        """The letter of its state, as "T" if it was stopped; None when there is no such process."""
        try:
            with open(f"/proc/{process}/stat", encoding="ascii") as stat:
                return stat.read().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return None

    def runs(self, process):
        return self.state(process) not in (None, "Z")

    def check_nothing_is_left(self, program, stages):
        wait_until(lambda: not any(self.runs(stage) for stage in stages), "a stage lives on")
        program.communicate(timeout=60)
        self.assertEqual(self.entries(), [])

    def test_a_signal_to_the_job_ends_all_of_it(self):
        for ending in (signal.SIGTERM, signal.SIGINT):
            program = self.start()
            stages = self.stages(program)
            os.kill(program.pid, ending)
            self.check_nothing_is_left(program, stages)
            self.assertEqual(program.returncode, 128 + ending)

    def test_stages_do_not_outlive_a_job_that_was_killed(self):
        program = self.start()
        stages = self.stages(program)
        os.kill(program.pid, signal.SIGKILL)
        self.check_nothing_is_left(program, stages)

    def truth(self, quantity):
        """Returns the sum over all GPUs of the node."""
        return sum(gpu[quantity] for gpu in json.loads(self.sim("truth", "--json")))

    def node_time(self):
        return json.loads(self.sim("list", "--json"))[0]["time_seconds"]

    def test_a_second_job_finds_the_gpus_held_before_it_loads_them(self):
        first = self.start()
        stages = self.stages(first)
        with self.journal_locked():  # A stage that is stopped while it has the lock keeps it.
            self.freeze([first.pid, *stages])
        idle = 4 * 60.0
        # Loads end with the heartbeats of their processes.
        wait_until(lambda: self.truth("power_watts") < idle, "the load of a stopped job goes on")
        begin, energy = self.node_time(), self.truth("energy_joules")
        second = subprocess.run([PROGRAM, "--node", "default"], env=self.environment, text=True,
                                capture_output=True, timeout=60)
        energy = self.truth("energy_joules") - energy
        self.assertNotEqual(second.returncode, 0)
        self.assertIn("is held by process", second.stderr)
        self.assertLess(energy, idle * (self.node_time() - begin))

    def test_the_clock_of_a_killed_stage_is_unlocked_by_the_others(self):
        program = self.start()
        os.kill(self.stages(program)[2], signal.SIGKILL)
        program.communicate(timeout=60)
        self.assertNotEqual(program.returncode, 0)
        self.assertEqual(self.entries(), [])

    def test_clocks_of_a_job_that_was_killed_as_a_whole_are_unlocked_by_a_repair(self):
        program = self.start()
        stages = self.stages(program)
        with self.journal_locked():
            self.freeze(stages)  # None has the time to clean up behind another.
        for stage in stages:
            os.kill(stage, signal.SIGKILL)
        program.communicate(timeout=60)
        self.assertEqual(len(self.entries()), 4)
        self.assertIn("graphics clock", self.restore())
        self.assertEqual(self.entries(), [])


if __name__ == "__main__":
    unittest.main()
