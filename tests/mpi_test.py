"""Ranks under mpirun agree with each other, and nobody waits for one that is gone."""

import glob
import json
import os
import subprocess
import tempfile
import unittest

from sim_testing import ZEUS, SimTestCase

PROGRAM = os.environ["MPI_PROGRAM"]
MPIRUN = os.environ["MPIRUN"]


# Seconds from SIGTERM to SIGKILL for ranks that must put their GPUs back: one, which mpirun gives by itself, is too little on a
# busy machine. mpirun sleeps through this time twice whenever a rank fails, even if all ranks are gone at once.
TIME_TO_RESTORE = 10


def start_ranks(test, ranks, task, environment, *options):
    """Finished within the time limit, however it ends."""
    directory = tempfile.TemporaryDirectory(prefix="zmpi-")  # Short: sockets are in it.
    test.addCleanup(directory.cleanup)
    local = ["--mca", "plm", "isolated", "--mca", "btl", "self,vader",
             "--mca", "oob_tcp_if_include", "lo",
             # A rank that waits for another one lets it have the processor.
             "--mca", "mpi_yield_when_idle", "1", *options]
    return subprocess.run(
        [MPIRUN, "--allow-run-as-root", "--oversubscribe", *local, "-n", str(ranks),
         PROGRAM, *task],
        env=dict(environment, TMPDIR=directory.name), capture_output=True, text=True, timeout=300,
    )


class KilledRankTest(SimTestCase):
    def setUp(self):
        super().setUp()
        self.environment.pop("CUDA_VISIBLE_DEVICES", None)
        self.sim("start", "--gpus", "3xV100")
        self.addCleanup(self.run_sim, "stop")

    def test_a_rank_that_dies_does_not_leave_gpus_capped(self):
        self.assert_nothing_stays_capped()

    def test_nor_with_a_slow_driver_although_mpirun_kills_all_ranks_once_the_first_has_ended(self):
        self.sim("fault", "--gpu", "1", "--kind", "slow:5ms")
        self.assert_nothing_stays_capped()

    def assert_nothing_stays_capped(self):
        environment = self.evaluated_environment()

        done = start_ranks(self, 3, ["train-until-killed"], environment,
                           "--mca", "odls_base_sigkill_timeout", str(TIME_TO_RESTORE))

        self.assertIn("killed at", done.stdout, done.stderr)
        report = subprocess.run([ZEUS, "doctor", "--json", "--seconds", "0"], env=environment,
                                capture_output=True, text=True, timeout=60).stdout
        limits = [gpu["power_limit"]["current"] for gpu in json.loads(report)["gpus"]]
        self.assertEqual(limits, [250, 250, 250], done.stderr)
        self.assertEqual(glob.glob(os.path.join(environment["ZEUS_KNOB_DIR"], "*.json")), [])


class MpiTest(unittest.TestCase):
    def start(self, ranks, *task):
        return start_ranks(self, ranks, task, os.environ)

    def lines(self, ranks, *task):
        done = self.start(ranks, *task)
        self.assertEqual(done.returncode, 0, done.stderr)
        return sorted(done.stdout.splitlines())

    def test_numbers_are_combined_over_all_ranks(self):
        for ranks in (1, 2, 3, 4):
            lines = self.lines(ranks, "combine")
            self.assertEqual(len(lines), ranks)
            results = set()
            for rank, line in enumerate(lines):
                head, _, result = line.partition(": ")
                self.assertEqual(head, f"rank {rank} of {ranks}")
                results.add(result)
            total = ranks * (ranks - 1) // 2
            self.assertEqual(len(results), 1, results)  # To the last bit.
            words = results.pop().split()
            self.assertEqual([float(words[1]), float(words[2])], [total, ranks])
            self.assertAlmostEqual(float.fromhex(words[3]), 0.1 * total)
            told = 42 if ranks > 1 else 0
            self.assertEqual([float(words[i]) for i in (5, 6, 8)], [ranks - 1, 0, told])

    def test_without_mpirun_there_is_one_rank(self):
        done = subprocess.run(
            [PROGRAM, "combine"], capture_output=True, text=True, timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("rank 0 of 1: "), done.stdout)

    def test_a_rank_that_does_not_exist_cannot_tell(self):
        done = self.start(2, "wrong-root")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("there is no rank 2", done.stderr)

    def test_ranks_decide_alike_and_as_one_process_would_on_the_summed_data(self):
        for ranks in (2, 3, 4):
            decisions = set(self.lines(ranks, "power-limit"))
            self.assertEqual(len(decisions), 1, decisions)
            together = decisions.pop().split()
            summed = self.lines(1, f"power-limit-of-{ranks}")[0].split()
            self.assertEqual(together[:7], summed[:7])  # The limit, and of what.
            self.assertEqual(together[6], str(250 * ranks))
            self.assertLess(int(together[1]), 250)
            for here, there in zip(together[7:], summed[7:], strict=True):
                for a, b in zip(here.split(":"), there.split(":"), strict=True):
                    self.assertAlmostEqual(float(a), float(b), delta=1e-6 * float(b))

    def test_nobody_waits_for_a_rank_that_is_gone(self):
        for death in ("killed", "exits"):
            for ranks in (2, 3):
                with self.subTest(death=death, ranks=ranks):
                    done = self.start(ranks, death)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn("met", done.stdout)


if __name__ == "__main__":
    unittest.main()
