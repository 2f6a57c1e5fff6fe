"""Ranks under mpirun agree with each other, and nobody waits for one that is gone."""

import os
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["MPI_PROGRAM"]
MPIRUN = os.environ["MPIRUN"]


class MpiTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="zmpi-")  # Short: sockets are in it.
        self.addCleanup(self.directory.cleanup)

    def start(self, ranks, *task):
        """Finished within the time limit, however it ends."""
        local = ["--mca", "plm", "isolated", "--mca", "btl", "self,vader",
                 "--mca", "oob_tcp_if_include", "lo"]
        return subprocess.run(
            [MPIRUN, "--allow-run-as-root", "--oversubscribe", *local, "-n", str(ranks),
             PROGRAM, *task],
            env=dict(os.environ, TMPDIR=self.directory.name), capture_output=True, text=True,
            timeout=60,
        )

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
            [PROGRAM, "combine"], env=dict(os.environ, TMPDIR=self.directory.name),
            capture_output=True, text=True, timeout=60,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("rank 0 of 1: "), done.stdout)

    def test_a_rank_that_does_not_exist_cannot_tell(self):
        done = self.start(2, "wrong-root")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("there is no rank 2", done.stderr)

    def test_nobody_waits_for_a_rank_that_is_gone(self):
        for death in ("killed", "exits"):
            for ranks in (2, 3):
                with self.subTest(death=death, ranks=ranks):
                    done = self.start(ranks, death)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn("met", done.stdout)


if __name__ == "__main__":
    unittest.main()
