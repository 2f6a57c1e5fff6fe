"""`zeus replay job` and `sweep`: the fixed interface, the same bytes for any number of threads, honest about bad rows."""

import json
import lzma
import os
import subprocess
import tempfile
import unittest

ZEUS = os.environ.get("ZEUS_BINARY", "build/dev/bin/zeus")
TRAINING = "dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch\n"
POWER = "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"
NEUMF_RUN = "movielens-1m,ncf,{},adam,1e-3,{},0.41,{}\n"
NEUMF_LIMIT = "movielens-1m,ncf,{},adam,{},{},{}\n"


def training_rows(epochs="5"):
    return "".join(NEUMF_RUN.format(size, run, epochs) for size in (256, 1024) for run in (1, 2))


def power_rows():
    return "".join(NEUMF_LIMIT.format(size, limit, 10, limit) for size in (256, 1024) for limit in (100, 250))


class ReplayCliTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="zeus-replay-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def run_replay(self, *arguments):
        return subprocess.run([ZEUS, "replay", *arguments], capture_output=True, text=True, timeout=100)

    def replay(self, *arguments):
        done = self.run_replay(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def traces(self, training, power):
        """Traces of NeuMF on a V100 with these rows."""
        for name, content in (("summary_train.csv", training), ("summary_power_v100.csv", power)):
            with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
                file.write(content)
        return ["--trace-dir", self.directory, "--workload", "neumf", "--seeds", "2"]

    def job(self, arguments):
        done = self.replay("job", *arguments, "--json")
        self.assertNotIn("NaN", done.stdout)
        return json.loads(done.stdout), done.stderr

    def test_the_fixed_interface(self):
        result, _ = self.job(["--gpu", "v100", "--workload", "bert_sa", "--policy", "zeus,knowledge_gradient",
                              "--seeds", "5", "--eta", "0.5", "--beta", "2", "--histories"])
        self.assertEqual(set(result["policies"]), {"zeus", "knowledge_gradient"})
        for side in ("oracle", "default"):
            self.assertLessEqual({"batch_size", "power_limit_watts", "cost", "eta_joules", "tta_seconds"},
                                 set(result[side]))
        for policy in result["policies"].values():
            self.assertLessEqual({"eta5_vs_default", "tta5_vs_default", "cost5_vs_oracle", "regret50", "regret",
                                  "regret_sem"}, set(policy))
            self.assertEqual(len(policy["histories"]), 5)
            recurrences = {run["recurrence"] for run in policy["histories"][0]}
            self.assertEqual(recurrences, set(range(result["recurrences"])))

    def test_bytes_do_not_depend_on_threads(self):
        arguments = ["job", "--workload", "shufflenet", "--seeds", "12", "--json", "--histories",
                     "--policy", "default,grid,zeus,knowledge_gradient,zeus_no_pruning"]
        first = self.replay(*arguments, "--threads", "1").stdout
        for threads in ("1", "2", "8"):
            self.assertEqual(self.replay(*arguments, "--threads", threads).stdout, first)

    def test_regret_is_that_of_the_histories(self):
        result, _ = self.job(["--workload", "bert_qa", "--policy", "zeus", "--seeds", "1", "--histories"])
        zeus = result["policies"]["zeus"]
        paid = sum(run["cost"] for run in zeus["histories"][0])
        self.assertAlmostEqual(paid / result["oracle"]["cost"] - result["recurrences"], zeus["regret"], places=6)

    def test_a_sweep_has_a_row_for_each_setting(self):
        done = self.replay("sweep", "--gpu", "v100,a40", "--workload", "bert_qa,bert_sa", "--eta", "0,0.5,1",
                           "--beta", "2,none", "--policy", "zeus", "--seeds", "2", "--json")
        result = json.loads(done.stdout)
        self.assertEqual(len(result["rows"]), 2 * 2 * 3 * 2)
        self.assertEqual(len(result["geometric_means"]), 3 * 2)
        self.assertTrue(all(mean["settings"] == 4 for mean in result["geometric_means"]))

    def test_files_are_written(self):
        csv, figures = (os.path.join(self.directory, name) for name in ("out.csv", "figures"))
        self.replay("job", "--workload", "bert_sa", "--seeds", "2", "--csv", csv, "--figures", figures)
        with open(csv, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 3)
        self.assertIn("replay-job-regret.svg", os.listdir(figures))

    def test_bad_rows_are_told_or_refused(self):
        bad = (NEUMF_RUN.format(256, 3, -4) + NEUMF_RUN.format("many", 3, 4) + NEUMF_RUN.format(256, 3, "soon"))
        arguments = self.traces(TRAINING + training_rows() + bad,
                                POWER + power_rows() + NEUMF_LIMIT.format(256, 150, "nan", 100)
                                + NEUMF_LIMIT.format(256, 175, -1, 100))
        result, told = self.job(arguments)
        self.assertEqual(result["problems"]["rows_left_out"], 5)
        self.assertIn("summary_train.csv:6", told)
        refused = self.run_replay("job", *arguments, "--strict")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("summary_train.csv:6", refused.stderr)

    def test_a_batch_size_that_only_one_trace_knows_is_left_out(self):
        arguments = self.traces(TRAINING + training_rows() + NEUMF_RUN.format(4096, 1, 3),
                                POWER + power_rows() + NEUMF_LIMIT.format(8, 100, 10, 90))
        remarks = " ".join(self.job(arguments)[0]["remarks"])
        self.assertIn("without power rows are left out: 4096", remarks)
        self.assertIn("without training rows are left out: 8", remarks)

    def test_jobs_that_never_converge_degrade_to_the_default(self):
        arguments = self.traces(TRAINING + training_rows("nan"), POWER + power_rows())
        result, _ = self.job([*arguments, "--policy", "default,grid,zeus,knowledge_gradient,oracle"])
        self.assertIsNone(result["oracle"])
        self.assertIsNone(result["policies"]["zeus"]["regret"])
        self.assertIn("no oracle", " ".join(result["remarks"]))

        self.assertEqual(result["policies"]["default"]["runs"], result["recurrences"], "one try each")
        self.assertEqual(result["policies"]["zeus"]["unfinished_recurrences"], result["recurrences"])
        told = self.replay("job", *arguments, "--policy", "zeus").stdout
        self.assertIn("recurrences do not reach the target", told)

    def test_a_default_that_is_not_complete_is_named(self):
        limits = power_rows().replace(NEUMF_LIMIT.format(1024, 250, 10, 250), "")
        runs = training_rows() + NEUMF_RUN.format(1024, 3, "nan")
        remarks = " ".join(self.job(self.traces(TRAINING + runs, POWER + limits))[0]["remarks"])
        self.assertIn("was not recorded at 250 W", remarks)
        self.assertIn("reaches the target in 2 of 3 recorded runs", remarks)
        small = "".join(NEUMF_LIMIT.format(256, limit, 10, limit) for limit in (100, 250))
        remarks = " ".join(self.job(self.traces(TRAINING + training_rows(), POWER + small))[0]["remarks"])
        self.assertIn("batch size 256 stands in for the default, 1024", remarks)

    def test_a_sweep_and_a_cluster_tell_of_bad_rows_once(self):
        arguments = self.traces(TRAINING + training_rows() + NEUMF_RUN.format(256, 3, -4),
                                POWER + power_rows() + NEUMF_LIMIT.format(256, 150, "1e308", 100))
        done = self.replay("sweep", *arguments, "--gpu", "v100,V100", "--eta", "0,0.5,1,0.5", "--beta", "2,2.0",
                           "--policy", "zeus", "--json")
        result = json.loads(done.stdout)
        self.assertEqual(len(result["rows"]), 3)
        self.assertEqual(result["problems"]["rows_left_out"], 2)
        self.assertEqual(done.stderr.count("summary_train.csv"), 1)
        self.assertIn("time_per_epoch is not between", done.stderr)
        groups = os.path.join(self.directory, "groups.csv")
        with open(groups, "w", encoding="utf-8") as file:
            file.write("group,start_time,end_time,dataset,runtime_ratio\na,0,5,movielens-1m,1\n")
        done = self.replay("cluster", "--trace-dir", self.directory, "--groups", groups, "--json")
        self.assertEqual(json.loads(done.stdout)["problems"]["rows_left_out"], 2)

    def test_betas_below_one_are_refused(self):
        done = self.run_replay("job", "--workload", "neumf", "--beta", "0.5")
        self.assertEqual(done.returncode, 2)
        self.assertIn("it must be 1 or more", done.stderr)

    def test_what_cannot_be_read_is_refused(self):
        for training, power, reason in (
                ("", POWER + power_rows(), "summary_train.csv"),
                (TRAINING.replace("target_epoch", "epoch") + training_rows(), POWER + power_rows(), "target_epoch"),
                (TRAINING, POWER + power_rows(), "no batch size of any workload in common")):
            done = self.run_replay("job", *self.traces(training, power))
            self.assertIn(done.returncode, (2, 3), done.stderr)
            self.assertIn(reason, done.stderr)

    def test_a_truncated_archive_is_refused(self):
        arguments = self.traces(TRAINING + training_rows(), POWER + power_rows())
        path = os.path.join(self.directory, "summary_train.csv")
        with open(path, "rb") as file:
            packed = lzma.compress(file.read())
        os.remove(path)
        with open(path + ".xz", "wb") as file:
            file.write(packed)
        self.assertEqual(self.job(arguments)[0]["default"]["batch_size"], 1024)
        with open(path + ".xz", "wb") as file:
            file.write(packed[:len(packed) // 2])
        done = self.run_replay("job", *arguments)
        self.assertEqual(done.returncode, 2)
        self.assertIn("summary_train.csv.xz", done.stderr)

    def test_names_that_nobody_knows_are_refused_with_those_that_are_known(self):
        for arguments, known in ((["--workload", "gpt"], "deepspeech2"),
                                 (["--workload", "neumf", "--policy", "magic"], "knowledge_gradient"),
                                 (["--workload", "neumf", "--gpu", "abacus"], "V100")):
            done = self.run_replay("job", *arguments)
            self.assertIn(done.returncode, (2, 3))
            self.assertIn(known, done.stderr)


if __name__ == "__main__":
    unittest.main()
