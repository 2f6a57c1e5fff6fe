"""zeus.utils, and tables of measurements."""

import io
import math
import os
import subprocess
import sys
import tempfile
import types
import unittest
from contextlib import redirect_stdout
from unittest import mock

from process_testing import without_sanitizer

from zeus.monitor import Measurement
from zeus.utils import framework
from zeus.utils.env import get_env
from zeus.utils.logging import FileAndConsole
from zeus.utils.lr_scaler import LinearScaler, SquareRootScaler
from zeus.utils.metric import avg_power, energy, zeus_cost


class LearningRateTest(unittest.TestCase):
    def test_the_rate_grows_with_the_batch_size_or_its_root(self):
        self.assertEqual(LinearScaler(bs=256, lr=0.1).compute_lr(new_bs=1024), 0.4)
        self.assertEqual(SquareRootScaler(256, 0.1).compute_lr(1024), 0.2)
        self.assertEqual(SquareRootScaler(256, 0.1).compute_lr(256), 0.1)

    def test_nonsense_is_refused(self):
        for arguments, error in {
            (0, 0.1): ValueError, (-1, 0.1): ValueError, (2, 0): ValueError,
            (2, math.nan): ValueError, (2, math.inf): ValueError, (2.5, 0.1): TypeError,
            (2, "x"): TypeError, ("2", 0.1): TypeError,
        }.items():
            with self.subTest(arguments), self.assertRaises(error):
                LinearScaler(*arguments)
        with self.assertRaisesRegex(ValueError, "the batch size is 1 or more, not 0"):
            LinearScaler(1, 0.1).compute_lr(0)
        with self.assertRaisesRegex(TypeError, "a whole number, not True"):
            SquareRootScaler(1, 0.1).compute_lr(True)


class CostTest(unittest.TestCase):
    def test_the_cost_weighs_energy_and_time(self):
        self.assertEqual(zeus_cost(energy=1000, time=10, eta_knob=0.5, max_power=300), 2000)
        self.assertEqual(zeus_cost(1000, 10, 1, 300), 1000)
        self.assertEqual(zeus_cost(1000, 10, 0, 300), 3000)

    def test_nonsense_is_refused(self):
        for arguments in ((1, 1, 1.5, 1), (1, 1, math.nan, 1), (-1, 1, 0, 1), (1, math.nan, 0, 1)):
            with self.subTest(arguments), self.assertRaises(ValueError):
                zeus_cost(*arguments)


class PowerLogTest(unittest.TestCase):
    def log(self, text):
        file = tempfile.NamedTemporaryFile("w", suffix=".csv")
        self.addCleanup(file.close)
        file.write(text)
        file.flush()
        return file.name

    def test_energy_is_the_area_under_the_power(self):
        path = self.log("Time,Power\n2023-01-01 00:00:00,100000\n2023-01-01 00:00:10,100000\n"
                        "2023-01-01 00:00:20,200000\n")
        self.assertAlmostEqual(energy(path), 1000 + 1500)
        self.assertAlmostEqual(avg_power(path), 125)
        self.assertAlmostEqual(energy(path, start=5, end=15), 500 + 125 * 5)
        self.assertAlmostEqual(avg_power(path, end=10), 100)
        self.assertEqual(energy(path, start=30), 0)
        with self.assertRaisesRegex(ValueError, "no time passes"):
            avg_power(path, start=30)
        with self.assertRaisesRegex(ValueError, "must not be after end"):
            energy(path, start=3, end=2)

    def test_a_line_cut_short_at_the_end_is_ignored_and_elsewhere_refused(self):
        begin = "Time,Power(mW)\n2023-01-01 00:00:00.0,1000\n2023-01-01 00:00:01.5,1000\n"
        self.assertAlmostEqual(energy(self.log(begin + "2023-01-0")), 1.5)
        with self.assertRaisesRegex(ValueError, "line 3: not a time and a power"):
            energy(self.log("Time,Power\n2023-01-01 00:00:00,1\nx,1\n2023-01-01 00:00:01,1\n"))
        with self.assertRaisesRegex(ValueError, "has no columns Time and Power"):
            energy(self.log("a,b\n1,2\n"))


class EnvironmentTest(unittest.TestCase):
    def test_variables_have_a_type(self):
        with mock.patch.dict(os.environ, {"N": "12", "F": "0.5", "B": "False", "S": "x"}):
            self.assertEqual(get_env("N", int), 12)
            self.assertEqual(get_env("F", float), 0.5)
            self.assertIs(get_env("B", bool), False)
            self.assertEqual(get_env("S", str), "x")
            self.assertEqual(get_env("ABSENT_VARIABLE", int, default=3), 3)
            with self.assertRaisesRegex(ValueError, "S is 'x': not a int"):
                get_env("S", int)
            with self.assertRaisesRegex(ValueError, "S is 'x': not a bool"):
                get_env("S", bool)
            with self.assertRaisesRegex(ValueError, "ABSENT_VARIABLE is not set"):
                get_env("ABSENT_VARIABLE", int)


class ConsoleTest(unittest.TestCase):
    def test_what_is_printed_is_in_the_file_too(self):
        with tempfile.TemporaryDirectory() as directory, redirect_stdout(io.StringIO()) as console:
            path = os.path.join(directory, "log")
            with FileAndConsole(path) as both:
                print("epoch 1")
                self.assertIs(sys.stdout, both)
                with open(path) as file:
                    self.assertEqual(file.read(), "epoch 1\n")
            print("after")
            self.assertEqual(console.getvalue(), "epoch 1\nafter\n")


class AloneTest(unittest.TestCase):
    def test_a_process_alone_is_rank_0_of_1(self):
        self.assertEqual((framework.get_rank(), framework.get_world_size()), (0, 1))
        self.assertFalse(framework.is_distributed())
        self.assertEqual(framework.all_reduce([1, 2.5], "sum"), [1, 2.5])

    def test_nothing_is_imported_for_the_answer(self):
        code = ("import sys; from zeus.utils import framework as f; f.get_rank(); "
                "f.all_reduce([1], 'max'); f.sync_execution([0]); "
                "assert not {'torch', 'jax', 'cupy', 'numpy'} & set(sys.modules)")
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_an_unknown_operation_or_framework_is_refused(self):
        with self.assertRaisesRegex(ValueError, "operation is 'min'"):
            framework.all_reduce([1], "min")
        with self.assertRaisesRegex(ValueError, "sync_with is 'mxnet'"):
            framework.sync_execution([0], sync_with="mxnet")

    def test_a_framework_that_is_not_installed_is_a_runtime_error(self):
        with mock.patch("importlib.util.find_spec", return_value=None):
            with self.assertRaisesRegex(RuntimeError, "cupy is not installed"):
                framework.sync_execution([0], sync_with="cupy")


class JaxTest(unittest.TestCase):
    def use(self, **members):
        self.enterContext(mock.patch.dict(sys.modules, {"jax": types.SimpleNamespace(**members)}))

    def test_without_a_gpu_it_has_nothing_to_wait_for(self):
        def devices(kind):
            raise RuntimeError(f"Unknown backend {kind}")
        self.use(devices=devices, process_index=lambda: 0, process_count=lambda: 1)
        framework.sync_execution([0], sync_with="jax")
        self.assertEqual((framework.get_rank(), framework.get_world_size()), (0, 1))

    def test_without_any_backend_a_process_is_alone(self):
        def broken():
            raise RuntimeError("no backend")
        self.use(process_index=broken, process_count=broken)
        self.assertEqual((framework.get_rank(), framework.is_distributed()), (0, False))

    def test_several_processes_have_ranks_but_no_reduction(self):
        self.use(process_index=lambda: 3, process_count=lambda: 4)
        self.assertEqual((framework.get_rank(), framework.get_world_size()), (3, 4))
        with self.assertRaises(NotImplementedError):
            framework.all_reduce([1], "sum")


RANK = """
import sys, torch
from zeus.utils import framework as f
rank, rendezvous = int(sys.argv[1]), sys.argv[2]
assert f.get_world_size() == 1
torch.distributed.init_process_group("gloo", rank=rank, world_size=2,
                                     init_method="file://" + rendezvous)
assert (f.get_rank(), f.get_world_size(), f.is_distributed()) == (rank, 2, True)
assert f.all_reduce([0.1 + rank, 5.0], "sum") == [0.1 + 1.1, 10.0]
assert f.all_reduce([rank, 2**60 + rank], "max") == [1, 2**60 + 1]
torch.distributed.barrier()
"""


class TorchTest(unittest.TestCase):
    @without_sanitizer
    def test_numbers_are_reduced_over_processes(self):
        with tempfile.TemporaryDirectory() as directory:
            ranks = [subprocess.Popen([sys.executable, "-c", RANK, str(rank), directory + "/meet"])
                     for rank in range(2)]
            self.assertEqual([rank.wait(timeout=120) for rank in ranks], [0, 0])

    def test_nccl_gets_tensors_on_the_present_gpu(self):
        made = []

        class Tensor:
            def __init__(self, numbers, dtype, device):
                made.append((numbers, dtype, device))

            def cpu(self):
                return self

            def tolist(self):
                return [3.0]

        torch = types.SimpleNamespace(
            tensor=Tensor, int64="int64", float64="float64",
            device=lambda kind, index: f"{kind}:{index}",
            cuda=types.SimpleNamespace(current_device=lambda: 2),
            distributed=types.SimpleNamespace(
                is_available=lambda: True, is_initialized=lambda: True,
                get_backend=lambda group: "nccl", get_world_size=lambda: 2,
                ReduceOp=types.SimpleNamespace(SUM="sum", MAX="max"),
                all_reduce=lambda tensor, op: None))
        with mock.patch.dict(sys.modules, {"torch": torch}):
            self.assertEqual(framework.all_reduce([1.5], "sum"), [3.0])
        self.assertEqual(made, [([1.5], "float64", "cuda:2")])


class TableTest(unittest.TestCase):
    MEASUREMENT = Measurement(2.0, {0: 10.0, 1: 20.0}, {0: 5.0}, window="epoch")

    @without_sanitizer
    def test_a_row_for_each_device(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = self.MEASUREMENT.to_pandas()
        self.assertEqual(list(frame["device"]), ["gpu:0", "gpu:1", "cpu:0"])
        self.assertEqual(list(frame["energy"]), [10, 20, 5])
        self.assertEqual(set(frame["window"]), {"epoch"})
        self.assertEqual(frame["sigma"].dtype, float)
        self.assertTrue(frame["sigma"].isna().all())

    def test_without_pandas_one_sentence(self):
        with mock.patch.dict(sys.modules, {"pandas": None}):
            with self.assertRaisesRegex(ImportError, "needs pandas: install it, or use to_dict"):
                self.MEASUREMENT.to_pandas()


if __name__ == "__main__":
    unittest.main()
