"""zeus.optimizer.batch_size against a real server, on simulated GPUs."""

import contextlib
import io
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
import urllib.request
from unittest import mock

from job_testing import JobTestCase, ask, spec
from node_testing import wait_until
from ranks_testing import Ranks

from zeus.device import get_gpus
from zeus.monitor import ZeusMonitor
from zeus.optimizer.batch_size import BatchSizeOptimizer, LocalServer
from zeus.optimizer.batch_size.exceptions import (
    ZeusBSOBadOperationError,
    ZeusBSORuntimeError,
    ZeusBSOTrainFailError,
)
from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer

WINDOW = "BatciSizeOptimizerClient"


def torch_that_waits(synchronize):
    """Returns a stand-in for torch with one GPU, which ends its work in `synchronize`."""
    cuda = types.SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        current_device=lambda: 0,
        device_count=lambda: 1,
        memory_reserved=lambda index: 0,
        synchronize=synchronize,
    )
    return types.SimpleNamespace(cuda=cuda)


class RunTest(JobTestCase):
    def test_a_run_until_the_target_is_measured_and_kept(self):
        optimizer = self.optimizer()
        self.assertEqual(optimizer.get_batch_size(), 64)
        self.assertEqual(optimizer.get_batch_size(), 64)
        optimizer.on_train_begin()
        self.assertGreaterEqual(self.monitor.peek_window(WINDOW).time, 0)
        for metric in (0.3, 0.6, 0.95):
            self.assertFalse(optimizer.training_finished)
            optimizer.on_evaluate(metric)
        self.assertTrue(optimizer.training_finished)
        self.assertTrue(optimizer.converged)
        self.assertIsNone(optimizer.trouble)
        self.assertTrue(optimizer.message)
        optimizer.on_train_end()
        trial = self.trial()
        self.assertEqual((trial["status"], trial["epochs"]), ("converged", 3))
        self.assertEqual(trial["batch_size"], 64)
        self.assertGreater(trial["energy_joules"], 0)
        self.assertEqual(len(ask(self.server, "/v1/jobs/mnist-1/trials")["trials"]), 1)
        self.assertTrue(optimizer.converged)  # Its knowledge can still be asked for.

    def test_the_monitor_learns_that_work_ended_at_the_edges_of_epochs(self):
        def work(_):
            """Keeps the caller waiting for longer than a GPU without work would."""
            end = time.perf_counter() + 1e-3
            while time.perf_counter() < end:
                pass

        optimizer = self.optimizer()
        with mock.patch.dict(sys.modules, torch=torch_that_waits(work)):
            optimizer.on_train_begin()
            self.assertEqual(self.monitor._edges_after_work, 1)
            optimizer.on_evaluate(0.3)  # One epoch ends, and the next one begins.
            self.assertEqual(self.monitor._edges_after_work, 3)
            optimizer.on_evaluate(0.95)
            self.assertEqual(self.monitor._edges_after_work, 4)
        optimizer.on_train_end()

    def test_savings_are_measured_against_runs_of_the_default(self):
        for baseline in (False, False, True, True):
            optimizer = self.optimizer(baseline=baseline)
            if baseline:
                self.assertEqual(optimizer.get_batch_size(), 64)
            optimizer.on_train_begin()
            optimizer.on_evaluate(0.3)
            optimizer.on_evaluate(0.95)
            savings = optimizer.savings()
            optimizer.on_train_end()
            if savings.baseline.count < 2:
                self.assertIsNone(savings.energy)
                self.assertIn("not known yet", str(savings))
        self.assertEqual((savings.baseline.count, savings.zeus.count), (2, 2))
        self.assertEqual([self.trial(number)["undisturbed"] for number in (1, 2, 3, 4)],
                         [False, False, True, True])
        answer = ask(self.server, "/v1/jobs/mnist-1/savings")
        self.assertEqual(savings.energy.percent, answer["saved"]["energy_percent"])
        self.assertEqual(savings.energy.kwh, answer["saved"]["energy_kwh"])
        self.assertGreater(savings.energy.percent_sigma, 0)
        self.assertIn("±", str(savings))
        self.assertIsNone(savings.carbon)
        self.assertIsNone(savings.money)

    def test_savings_are_also_emissions_and_money(self):
        for baseline in (False, False, True, True):
            optimizer = self.optimizer(baseline=baseline)
            optimizer.on_train_begin()
            optimizer.on_evaluate(0.3)
            optimizer.on_evaluate(0.95)
            savings = optimizer.savings(carbon="360g/kWh", price="2EUR")
            with self.assertRaisesRegex(ValueError, "carbon: .*like 350g/kWh"):
                optimizer.savings(carbon="350")
            optimizer.on_train_end()
        self.assertAlmostEqual(savings.carbon.grams_co2e, 360 * savings.energy.kwh)
        self.assertAlmostEqual(savings.carbon.sigma, 360 * savings.energy.kwh_sigma)
        self.assertEqual(savings.carbon.sources, ("constant",))
        self.assertAlmostEqual(savings.money.amount, 2 * savings.energy.kwh)
        self.assertAlmostEqual(savings.money.sigma, 2 * savings.energy.kwh_sigma)
        self.assertEqual(savings.money.currency, "EUR")

    def test_savings_have_the_emissions_and_money_of_the_server(self):
        with LocalServer(arguments=["--carbon", "360g/kWh", "--price", "2EUR"]) as server:
            for baseline in (False, False, True, True):
                optimizer = BatchSizeOptimizer(
                    self.monitor, server.url, spec(), baseline=baseline
                )
                optimizer.on_train_begin()
                optimizer.on_evaluate(0.3)
                optimizer.on_evaluate(0.95)
                savings = optimizer.savings()
                optimizer.on_train_end()
        self.assertAlmostEqual(savings.carbon.grams_co2e, 360 * savings.energy.kwh)
        self.assertAlmostEqual(savings.money.amount, 2 * savings.energy.kwh)

    def test_a_baseline_in_which_the_limit_was_turned_is_not_counted(self):
        optimizer = self.optimizer(baseline=True)
        optimizer.on_train_begin()
        optimizer.on_evaluate(0.3)
        gpu = get_gpus()
        before = gpu.get_power_management_limit(0)
        gpu.set_power_management_limit(0, before - 50_000)
        self.addCleanup(gpu.set_power_management_limit, 0, before, may_raise=True)
        optimizer.on_evaluate(0.95)
        self.assertEqual(optimizer.savings().baseline.count, 0)
        self.assertFalse(self.trial()["undisturbed"])
        optimizer.on_train_end()

    def test_every_epoch_is_in_the_log_of_the_monitor(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "windows.csv")
            with ZeusMonitor([0], [], log_file=path) as self.monitor:
                optimizer = self.optimizer()
                optimizer.on_train_begin()
                for metric in (0.3, 0.95):
                    optimizer.on_evaluate(metric)
                optimizer.on_train_end()
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read().count(WINDOW), 2)

    def test_a_run_without_the_target_raises_once_and_asks_for_a_retry(self):
        optimizer = self.optimizer(spec(max_epochs=2))
        optimizer.on_train_begin()
        optimizer.on_evaluate(0.1)
        with self.assertRaises(ZeusBSOTrainFailError) as raised:
            optimizer.on_evaluate(0.2)
        self.assertIn("epoch", str(raised.exception))
        self.assertTrue(optimizer.training_finished)
        self.assertFalse(optimizer.converged)
        self.assertTrue(optimizer.retry)
        optimizer.on_evaluate(0.3)  # The trial has ended: this is ignored.
        again = self.optimizer(spec(max_epochs=2), recurrence=optimizer.recurrence)
        self.assertIsNone(again.recurrence)
        again.get_batch_size()
        self.assertEqual(again.recurrence, optimizer.recurrence)
        self.assertEqual(again.trial_number, 2)

    def test_a_run_that_costs_too_much_raises_when_the_answer_has_arrived(self):
        job = spec(policy="zeus", batch_sizes=[64], max_epochs=1000)
        first = self.optimizer(job)
        first.on_train_begin()
        first.on_evaluate(0.95)  # Now there is a least cost.
        first.on_train_end()
        optimizer = self.optimizer(job)
        optimizer.on_train_begin()
        with self.assertRaisesRegex(ZeusBSOTrainFailError, "cost"):
            while True:
                self.spend(10)
                optimizer.on_evaluate(0.1)
        self.assertTrue(optimizer.training_finished)
        self.assertFalse(optimizer.converged)
        optimizer.on_evaluate(0.1)  # Raised once.
        self.assertEqual(self.trial(2)["status"], "stopped")

    def test_a_run_without_the_target_can_end_without_an_exception(self):
        optimizer = self.optimizer(spec(max_epochs=1), raise_on_failure=False)
        optimizer.on_train_begin()
        optimizer.on_evaluate(0.1)
        self.assertTrue(optimizer.training_finished)
        self.assertFalse(optimizer.converged)

    def test_a_power_limit_optimiser_is_asked_whether_it_has_decided(self):
        asked = []

        class Limits:
            closed = False
            done = property(lambda self: asked.append("done") or len(asked) > 2)

        optimizer = self.optimizer()
        optimizer.observe(Limits())
        optimizer.on_train_begin()
        optimizer.on_evaluate(0.1)
        optimizer.on_evaluate(0.2)
        self.assertEqual(len(asked), 3)
        with GlobalPowerLimitOptimizer(self.monitor) as limits:
            optimizer.observe(limits)
            optimizer.on_evaluate(0.3)
        optimizer.on_evaluate(0.95)  # One that is closed is not asked.
        self.assertTrue(optimizer.converged)
        self.assertIsNone(optimizer.trouble)
        with self.assertRaisesRegex(TypeError, "power_limit_optimizer"):
            optimizer.observe(3)

    def test_a_training_that_diverges_makes_no_progress(self):
        optimizer = self.optimizer(
            spec(higher_is_better_metric=False, target_metric=0.1, max_epochs=3))
        optimizer.on_train_begin()
        for metric in (math.nan, math.inf):
            with self.assertWarnsRegex(UserWarning, "diverged"):
                optimizer.on_evaluate(metric)
        self.assertFalse(optimizer.training_finished)
        self.assertIsNone(optimizer.trouble)
        wait_until(lambda: self.trial()["epochs"] == 2, "the reports do not arrive")

    def test_the_gpus_of_the_monitor_are_those_of_the_job(self):
        self.monitor = ZeusMonitor(cpu_indices=[])
        self.addCleanup(self.monitor.close)
        self.optimizer()
        job = ask(self.server, "/v1/jobs/mnist-1")["spec"]
        self.assertEqual(job["number_of_gpus"], 2)
        self.assertEqual(job["max_power_watts"], 2 * 400)
        self.assertIn("A100", job["gpu_model"])

    def test_all_fields_arrive_at_the_server(self):
        self.optimizer(spec(
            eta_knob=0.25, beta_knob=None, num_pruning_rounds=3, window_size=5, mab_prior_mean=-2.0,
            mab_prior_precision=0.5, mab_num_explorations=4, policy="zeus", max_power=123.0,
            number_of_gpus=3, gpu_model="V100", translate_gpu_models=False, deadline=50.0,
            lease=77.0, labels={"team": "vision"}, higher_is_better_metric=False))
        job = ask(self.server, "/v1/jobs/mnist-1")["spec"]
        expected = {
            "id": "mnist-1", "prefix": "mnist", "batch_sizes": [32, 64, 128],
            "default_batch_size": 64, "eta": 0.25, "beta": None, "target_metric": 0.9,
            "higher_is_better": False, "max_epochs": 6, "policy": "zeus", "pruning_rounds": 3,
            "window": 5, "prior_mean": -2.0, "prior_precision": 0.5, "explorations": 4, "seed": 7,
            "max_power_watts": 123.0, "number_of_gpus": 3, "gpu_model": "V100",
            "translate_gpu_models": False, "deadline_seconds": 50.0, "lease_seconds": 77.0,
            "labels": {"team": "vision"}}
        self.assertEqual(job, expected)

    def test_the_server_makes_up_an_id_which_later_runs_use(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            first = self.optimizer(spec(job_id=None))
        self.assertTrue(first.job_id.startswith("mnist-"))
        self.assertIn(f"job_id='{first.job_id}'", said.getvalue())
        with contextlib.redirect_stderr(io.StringIO()) as said:
            second = self.optimizer(spec(job_id=first.job_id))
        self.assertEqual(said.getvalue(), "")
        self.assertEqual(second.job_id, first.job_id)


    def test_a_job_that_the_reference_registered_goes_on(self):
        body = {"job_id": "mnist-1", "job_id_prefix": "mnist", "batch_sizes": [32, 64, 128],
                "default_batch_size": 64, "eta_knob": 0.5, "beta_knob": 2.0, "target_metric": 0.9,
                "higher_is_better_metric": True, "max_epochs": 6, "num_pruning_rounds": 2,
                "window_size": 0, "mab_prior_mean": 0.0, "mab_prior_precision": 0.0,
                "mab_num_explorations": 2, "mab_seed": 7, "max_power": 400.0, "number_of_gpus": 1,
                "gpu_model": get_gpus().get_name(0)}
        request = urllib.request.Request(self.server.url + "/jobs", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=30).close()
        self.assertEqual(self.optimizer().get_batch_size(), 64)
        self.assertEqual(ask(self.server, "/v1/jobs/mnist-1")["spec"]["policy"], "zeus")
        with self.assertRaisesRegex(ValueError, "policy"):
            self.optimizer(spec(policy="default"))

    def test_who_speaks_of_the_papers_policy_gets_it(self):
        self.optimizer(spec(mab_num_explorations=3))
        self.assertEqual(ask(self.server, "/v1/jobs/mnist-1")["spec"]["policy"], "zeus")
        self.optimizer(spec(job_id="mnist-2"))
        policy = ask(self.server, "/v1/jobs/mnist-2")["spec"]["policy"]
        self.assertEqual(policy, "knowledge_gradient")


class EndTest(JobTestCase):
    def test_a_block_that_ends_by_itself_teaches(self):
        with self.optimizer() as optimizer:
            optimizer.on_train_begin()
            optimizer.on_evaluate(0.1)
        self.assertEqual(self.trial()["status"], "stopped")

    def test_an_exception_in_a_block_teaches_nothing(self):
        with self.assertRaises(ZeroDivisionError), self.optimizer() as optimizer:
            optimizer.on_train_begin()
            optimizer.on_evaluate(0.1)
            raise ZeroDivisionError
        self.assertEqual(self.trial()["status"], "failed")

    def test_closing_the_monitor_gives_the_run_up(self):
        optimizer = self.optimizer()
        optimizer.on_train_begin()
        self.monitor.close()
        self.assertEqual(self.trial()["status"], "failed")
        self.assertTrue(optimizer.training_finished)
        optimizer.on_evaluate(0.5)
        optimizer.on_train_end()

    def program(self, text: str) -> subprocess.CompletedProcess:
        prologue = (
            "import os\n"
            "from zeus.monitor import ZeusMonitor\n"
            "from zeus.optimizer.batch_size import BatchSizeOptimizer, JobSpec\n"
            "optimizer = BatchSizeOptimizer(ZeusMonitor([0], []), os.environ['SERVER'],\n"
            "    JobSpec('mnist', [32, 64], 64, 'mnist-1', target_metric=0.9))\n"
            "optimizer.on_train_begin()\n"
            "optimizer.on_evaluate(0.1)\n")
        environment = {**os.environ, "SERVER": self.server.url}
        return subprocess.run([sys.executable, "-c", prologue + text], env=environment,
                              capture_output=True, text=True, timeout=60)

    def test_the_end_of_the_program_gives_the_run_up(self):
        self.assertEqual(self.program("").returncode, 0)
        self.assertEqual(self.trial()["status"], "failed")

    def test_a_forked_child_leaves_the_run_alone(self):
        done = self.program(
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    try:\n"
            "        optimizer.get_batch_size()\n"
            "        optimizer.on_evaluate(0.5)\n"
            "    except RuntimeError as error:\n"
            "        print(error, flush=True)\n"
            "    raise SystemExit\n"
            "os.waitpid(pid, 0)\n"
            "optimizer.on_evaluate(0.95)\n"
            "print(optimizer.converged)\n")
        self.assertEqual(done.stdout.splitlines()[1:], ["True"], done.stderr)
        self.assertIn("forked", done.stdout)
        self.assertEqual(self.trial()["status"], "converged")


class RanksTest(JobTestCase):
    def train(self, member, gpus=None) -> tuple:
        with ZeusMonitor(gpu_indices=gpus or [member.rank], cpu_indices=[]) as monitor:
            url = self.server.url if member.rank == 0 else "http://127.0.0.1:9"
            optimizer = BatchSizeOptimizer(
                monitor, url, spec(), rank=member.rank, collective=member)
            if member.rank == 0:  # The others know it anyway.
                optimizer.get_batch_size()
            optimizer.current_batch_size = 64
            optimizer.trial_number = 1
            optimizer.on_train_begin()
            epochs = 0
            while not optimizer.training_finished:
                epochs += 1
                optimizer.on_evaluate(0.4 * epochs)
            with contextlib.suppress(ZeusBSOBadOperationError):
                optimizer.current_batch_size = 32
                raise AssertionError("ranks disagree")
            optimizer.on_train_end()
            return optimizer.job_id, optimizer.current_batch_size, epochs, optimizer.converged

    def test_ranks_agree_and_are_one_trial(self):
        results = Ranks(2).run(self.train)
        self.assertEqual(results, [("mnist-1", 64, 3, True)] * 2)
        trial = self.trial()
        self.assertEqual(trial["status"], "converged")
        self.assertEqual(trial["max_power_watts"], 2 * 400)
        self.assertEqual(ask(self.server, "/v1/jobs/mnist-1")["spec"]["number_of_gpus"], 2)

    def test_gpus_that_all_ranks_measure_are_counted_once(self):
        before = sum(gpu.energy for gpu in self.node.truth())
        results = Ranks(2).run(lambda member: self.train(member, gpus=[0, 1]))
        used = sum(gpu.energy for gpu in self.node.truth()) - before
        self.assertEqual(results, [("mnist-1", 64, 3, True)] * 2)
        trial = self.trial()
        self.assertEqual(trial["max_power_watts"], 2 * 400)
        self.assertLess(trial["energy_joules"], used)
        self.assertEqual(ask(self.server, "/v1/jobs/mnist-1")["spec"]["number_of_gpus"], 2)

    def test_a_server_that_is_needed_and_not_there_fails_on_every_rank(self):
        self.server.stop()

        def construct(member):
            with ZeusMonitor(gpu_indices=[member.rank], cpu_indices=[]) as monitor:
                BatchSizeOptimizer(monitor, self.server.url, spec(), member.rank, collective=member,
                                   needs_server=True)

        for result in Ranks(2).run(construct):
            self.assertIsInstance(result, ZeusBSORuntimeError)

    def test_without_a_server_all_ranks_train_with_the_default(self):
        self.server.stop()

        def construct(member):
            with ZeusMonitor(gpu_indices=[member.rank], cpu_indices=[]) as monitor:
                with BatchSizeOptimizer(monitor, self.server.url, spec(), member.rank,
                                        collective=member, start_timeout=0.1,
                                        end_timeout=0.1) as optimizer:
                    return optimizer.get_batch_size()

        self.assertEqual(Ranks(2).run(construct), [64, 64])

    def test_a_rank_that_the_collective_does_not_know_is_refused(self):
        with self.assertRaisesRegex(ValueError, "rank"):
            self.optimizer(rank=1, collective=Ranks(2).member(0))


class LocalServerTest(unittest.TestCase):
    def test_jobs_stay_in_a_database_of_ones_own(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "jobs.db")
            with LocalServer(path) as server:
                self.assertTrue(server.running)
                self.assertEqual(ask(server, "/v1/jobs")["jobs"], [])
            self.assertFalse(server.running)
            self.assertTrue(os.path.exists(path))
            server.stop()

    def test_it_ends_with_a_program_that_is_killed(self):
        program = (
            "import os, threading, time\n"
            "from zeus.optimizer.batch_size import LocalServer\n"
            "servers = []\n"
            # The end of the thread that has started it is not the end of the program.
            "starter = threading.Thread(target=lambda: servers.append(LocalServer()))\n"
            "starter.start()\n"
            "starter.join()\n"
            # A child that holds on to everything that the program has opened.
            "child = os.fork()\n"
            "if child == 0:\n"
            "    time.sleep(600)\n"
            "    os._exit(0)\n"
            "print(servers[0].url, child, flush=True)\n"
            "time.sleep(600)\n"
        )
        for number in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signal=number), subprocess.Popen(
                [sys.executable, "-B", "-c", program], stdout=subprocess.PIPE, text=True
            ) as owner:
                url, child = owner.stdout.readline().split()
                self.addCleanup(os.kill, int(child), signal.SIGKILL)
                with urllib.request.urlopen(f"{url}/healthz") as answer:
                    self.assertEqual(answer.status, 200)
                owner.send_signal(number)
                owner.wait(60)
                self.assertTrue(self.goes_away(url), "zeus serve still answers")

    def goes_away(self, url):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{url}/healthz", timeout=10).close()
            except OSError:
                return True
            time.sleep(0.1)
        return False

    def test_a_server_that_cannot_start_says_why(self):
        with self.assertRaisesRegex(ZeusBSORuntimeError, "did not start: .*zeus.db"):
            LocalServer("/dev/null/zeus.db")


if __name__ == "__main__":
    unittest.main()
