"""JobSpec: what it takes, and what it says of what it does not take."""

import dataclasses
import math
import unittest

from process_testing import without_sanitizer

from zeus.errors import InvalidArgumentError
from zeus.optimizer.batch_size import JobSpec

GOOD = {"job_id_prefix": "mnist", "batch_sizes": [32, 64, 128], "default_batch_size": 64}
HUGE = 10**10

WRONG_TYPES = {
    "job_id_prefix": [None, 3, b"mnist"],
    "batch_sizes": [None, 64, "64", [64.0], [True], ["64"]],
    "default_batch_size": [None, 64.0, "64", True],
    "job_id": [3, b"mnist-1"],
    "eta_knob": [None, "0.5", True],
    "beta_knob": ["2", True],
    "target_metric": [None, "0.5", False],
    "higher_is_better_metric": [None, 1, "yes"],
    "max_epochs": [None, 1.5, "3", True],
    "num_pruning_rounds": [None, 1.5, True],
    "window_size": [None, 1.5, True],
    "mab_prior_mean": [None, "0", True],
    "mab_prior_precision": [None, "0", True],
    "mab_num_explorations": [None, 1.5, True],
    "mab_seed": [1.5, "1", True],
    "policy": [1],
    "max_power": ["250", True],
    "number_of_gpus": [1.5, "1", True],
    "gpu_model": [3],
    "translate_gpu_models": [1],
    "deadline": ["10", True],
    "lease": ["10", True],
    "labels": [None, [], {"a": 1}, {1: "a"}],
}
WRONG_VALUES = {
    "job_id_prefix": ["", "a b", "a/b", "x" * 201, "ü"],
    "batch_sizes": [[], [0], [-1, 64], [HUGE, 64], list(range(1, 66))],
    "default_batch_size": [0, -64, 65, HUGE],
    "job_id": ["", "other-1", "mnist 1"],
    "eta_knob": [-0.1, 1.1, math.nan, math.inf],
    "beta_knob": [0, -1, math.nan, math.inf],
    "target_metric": [math.nan, math.inf, -math.inf],
    "max_epochs": [0, -1, HUGE],
    "num_pruning_rounds": [-1, HUGE],
    "window_size": [-1, HUGE],
    "mab_prior_mean": [math.nan, math.inf],
    "mab_prior_precision": [-1, math.nan, math.inf],
    "mab_num_explorations": [-1, HUGE],
    "mab_seed": [-1, 2**64],
    "policy": ["", "best"],
    "max_power": [0, -250, math.nan, 1e13],
    "number_of_gpus": [0, -1, HUGE],
    "gpu_model": ["", " "],
    "deadline": [0, -1, math.nan, 1e12],
    "lease": [0, -1, math.nan, 1e12],
    "labels": [{"": "a"}, {"a:b": "c"}],
}


class JobSpecTest(unittest.TestCase):
    def test_defaults_are_those_of_the_reference(self):
        spec = JobSpec(**GOOD)
        self.assertEqual(spec.eta_knob, 0.5)
        self.assertEqual(spec.beta_knob, 2.0)
        self.assertEqual(spec.target_metric, 0.5)
        self.assertTrue(spec.higher_is_better_metric)
        self.assertEqual(spec.max_epochs, 100)
        self.assertEqual((spec.num_pruning_rounds, spec.window_size), (2, 0))
        self.assertEqual((spec.mab_prior_mean, spec.mab_prior_precision), (0, 0))
        self.assertEqual(spec.mab_num_explorations, 2)
        self.assertIsNone(spec.mab_seed)
        self.assertIsNone(spec.job_id)

    def test_batch_sizes_are_sorted_and_each_is_there_once(self):
        spec = JobSpec(**{**GOOD, "batch_sizes": (128, 32, 64, 32)})
        self.assertEqual(spec.batch_sizes, [32, 64, 128])

    def test_every_field_is_checked(self):
        fields = {field.name for field in dataclasses.fields(JobSpec)}
        self.assertEqual(fields, set(WRONG_TYPES))
        self.assertEqual(
            fields - {"higher_is_better_metric", "translate_gpu_models"}, set(WRONG_VALUES)
        )

    def refused(self, kind: type, field: str, value: object) -> None:
        with self.subTest(field=field, value=value):
            with self.assertRaises(kind) as raised:
                JobSpec(**{**GOOD, field: value})
            self.assertIs(type(raised.exception), kind)
            message = str(raised.exception)
            self.assertIn("label" if field == "labels" else field, message)
            self.assertEqual(len(message.splitlines()), 1)

    def test_a_wrong_type_is_a_type_error_that_names_the_field(self):
        for field, values in WRONG_TYPES.items():
            for value in values:
                self.refused(TypeError, field, value)

    def test_a_wrong_value_is_a_value_error_that_names_the_field(self):
        for field, values in WRONG_VALUES.items():
            for value in values:
                self.refused(InvalidArgumentError, field, value)

    def test_a_misspelt_field_is_refused(self):
        with self.assertRaisesRegex(TypeError, "eta"):
            JobSpec(**GOOD, eta=0.5)

    def test_it_does_not_change_but_can_be_copied(self):
        spec = JobSpec(**GOOD)
        with self.assertRaises(dataclasses.FrozenInstanceError):
            spec.eta_knob = 1.0
        self.assertEqual(dataclasses.replace(spec, job_id="mnist-7").job_id, "mnist-7")
        self.assertEqual(JobSpec(**spec.to_dict()), spec)

    @without_sanitizer
    def test_numbers_of_numpy_are_numbers(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        spec = JobSpec(
            job_id_prefix="mnist",
            batch_sizes=numpy.array([32, 64]),
            default_batch_size=numpy.int64(64),
            target_metric=numpy.float32(0.5),
        )
        self.assertEqual(spec.to_dict()["batch_sizes"], [32, 64])
        self.assertIs(type(spec.target_metric), float)


if __name__ == "__main__":
    unittest.main()
