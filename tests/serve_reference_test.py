"""A client that behaves as the reference implementation's does, against `zeus serve`.

Written from the documented contract: it registers when it is made, asks for a batch size once,
reports what it cost so far after every epoch, and patches its trial when the process ends.
"""

import unittest

from serve_testing import ServeTestCase

SPEC = {"job_id": None, "job_id_prefix": "mnist", "batch_sizes": [32, 64, 128, 256],
        "default_batch_size": 64, "eta_knob": 0.5, "beta_knob": 2.0, "target_metric": 0.9,
        "higher_is_better_metric": True, "max_epochs": 20, "num_pruning_rounds": 1,
        "window_size": 0, "mab_prior_mean": 0, "mab_prior_precision": 0,
        "mab_num_explorations": 2, "mab_seed": 3, "max_power": 250, "number_of_gpus": 1,
        "gpu_model": "Tesla V100-SXM2-16GB"}


class ReferenceClient:
    def __init__(self, server, spec):
        self.server = server
        answer = server.ask("POST", "/jobs", spec)
        if answer.status not in (200, 201):
            raise RuntimeError(answer.text)
        self.job = answer.json
        self.trial = None
        self.training_finished = False
        self.time = self.energy = 0.0
        self.epoch = 0

    def get_batch_size(self):
        answer = self.server.ask("GET", f"/jobs/batch_size?job_id={self.job['job_id']}")
        if answer.status != 200:
            raise RuntimeError(answer.text)
        self.trial = answer.json
        return self.trial["batch_size"]

    def on_evaluate(self, time, energy, metric):
        self.time += time
        self.energy += energy
        self.epoch += 1
        answer = self.server.ask("POST", "/report", self.trial | {
            "time": self.time, "energy": self.energy, "metric": metric,
            "current_epoch": self.epoch})
        if answer.status != 200:
            raise RuntimeError(answer.text)
        self.training_finished = answer.json["stop_train"]
        return answer.json

    def at_exit(self):
        return self.server.ask("PATCH", "/trials", self.trial)


def train(client, epochs_to_target):
    """A run whose metric grows evenly; an epoch takes 10 s and 1000 J."""
    size = client.get_batch_size()
    for epoch in range(1, 100):
        answer = client.on_evaluate(10, 1000, min(1.0, 0.9 * epoch / epochs_to_target[size]))
        if client.training_finished:
            return size, answer
    raise AssertionError("it never stops")


class ReferenceClientTest(ServeTestCase):
    def setUp(self):
        super().setUp()
        self.server = self.serve("--no-access-log")

    def test_recurrences_explore_then_settle_on_cheap_batch_sizes(self):
        epochs = {32: 8, 64: 4, 128: 5, 256: 100}
        job_id, sizes = None, []
        for _ in range(20):
            client = ReferenceClient(self.server, SPEC | {"job_id": job_id})
            job_id = client.job["job_id"]
            size, answer = train(client, epochs)
            sizes.append(size)
            self.assertEqual(answer["converged"], size != 256, answer)
            self.assertEqual(client.at_exit().status, 200)  # After the end it changes nothing.
        self.assertTrue(job_id.startswith("mnist-"))
        self.assertEqual(sizes[:4], [64, 32, 128, 256])  # The pruning stage, in its order.
        self.assertNotIn(256, sizes[4:])
        trials = self.server.ask("GET", f"/v1/jobs/{job_id}/trials").json["trials"]
        self.assertEqual([trial["status"] for trial in trials],
                         ["stopped" if size == 256 else "converged" for size in sizes])
        self.assertEqual({trial["lease_seconds"] for trial in trials}, {86400})

    def test_an_early_stop_does_not_claim_that_the_batch_size_is_gone_for_good(self):
        client = ReferenceClient(self.server, SPEC)
        self.assertEqual(client.get_batch_size(), 64)
        for _ in range(20):
            answer = client.on_evaluate(10, 1000, 0.1)
        self.assertTrue(answer["stop_train"])
        self.assertFalse(answer["converged"])
        self.assertNotIn("never", answer["message"])
        self.assertEqual(client.on_evaluate(0, 0, 0.1), answer)  # It is told how it ended.

    def test_who_crashes_frees_its_place(self):
        client = ReferenceClient(self.server, SPEC)
        first = client.get_batch_size()
        self.assertEqual(client.at_exit().status, 200)
        again = ReferenceClient(self.server, SPEC | {"job_id": client.job["job_id"]})
        self.assertEqual(again.get_batch_size(), first)

    def test_statuses_of_the_contract(self):
        ask = self.server.ask
        created = ask("POST", "/jobs", SPEC | {"job_id": "mnist-1"})
        self.assertEqual(created.status, 201)
        self.assertEqual(created.json, SPEC | {"job_id": "mnist-1"})
        self.assertEqual(ask("POST", "/jobs", SPEC | {"job_id": "mnist-1"}).status, 200)
        self.assertEqual(ask("POST", "/jobs", SPEC | {"job_id": "mnist-1", "eta_knob": 1}).status, 409)
        self.assertEqual(ask("POST", "/jobs", SPEC | {"job_id": "mnist-1", "gpu_model": "A40"}).status, 409)
        trial = ask("GET", "/jobs/batch_size?job_id=mnist-1").json
        result = trial | {"time": 1.0, "energy": 10.0, "metric": 0.1, "current_epoch": 1}
        table = (
            ("POST", "/jobs", SPEC | {"batch_sizes": []}, 422, ["body", "batch_sizes"]),
            ("POST", "/jobs", SPEC | {"default_batch_size": 65}, 422,
             ["body", "default_batch_size"]),
            ("POST", "/jobs", SPEC | {"job_id": "other"}, 422, ["body", "job_id"]),
            ("POST", "/jobs", SPEC | {"eta_knob": 2}, 422, ["body", "eta_knob"]),
            ("POST", "/report", result | {"energy": -1}, 422, ["body", "energy"]),
            ("POST", "/report", result | {"time": "1"}, 422, ["body", "time"]),
            ("POST", "/report", result | {"batch_size": 96}, 422, ["body", "batch_size"]),
            ("POST", "/report", result | {"current_epoch": 0}, 422, ["body", "current_epoch"]),
            ("GET", "/jobs/batch_size", None, 422, ["query", "job_id"]),
            ("DELETE", "/jobs", None, 422, ["query", "job_id"]))
        for method, path, body, status, place in table:
            with self.subTest(path=path, place=place):
                answer = ask(method, path, body)
                self.assertEqual(answer.status, status, answer.text)
                self.assertEqual(answer.json["detail"][0]["loc"], place)
        for method, path, body, status in (
                ("GET", "/jobs/batch_size?job_id=nobody", None, 400),
                ("POST", "/report", result | {"job_id": "nobody"}, 404),
                ("PATCH", "/trials", trial | {"trial_number": 99}, 404),
                ("DELETE", "/jobs?job_id=nobody", None, 404)):
            with self.subTest(path=path):
                answer = ask(method, path, body)
                self.assertEqual(answer.status, status, answer.text)
                self.assertIsInstance(answer.json["detail"], str)
        self.assertEqual(ask("POST", "/report", result).status, 200)
        late = result | {"current_epoch": 3, "time": 3.0, "energy": 30.0}
        self.assertEqual(ask("POST", "/report", late).status, 200)
        self.assertEqual(ask("POST", "/report", result).status, 409)
        self.assertEqual(ask("DELETE", "/jobs?job_id=mnist-1").status, 200)
        self.assertEqual(ask("GET", "/v1/jobs/mnist-1").status, 404)


if __name__ == "__main__":
    unittest.main()
