"""Callbacks for trainers of other packages, driven as those drive them."""

import types
import unittest

from limit_testing import limits, quick
from trained_node_testing import TrainedNodeTestCase

from zeus.integration.huggingface import HFGlobalPowerLimitOptimizer, ZeusTrainerCallback
from zeus.integration.lightning import ZeusCallback
from zeus.optimizer.power_limit import Energy
from zeus.optimizer import power_limit


class HuggingFaceTrainer:
    """Calls its callbacks as `transformers.Trainer` does."""

    def __init__(self, callbacks, step):
        self.callbacks = callbacks
        self.step = step
        self.state = types.SimpleNamespace(epoch=0.0, global_step=0, log_history=[])

    def call(self, event, **more):
        control = types.SimpleNamespace(should_training_stop=False)
        for callback in self.callbacks:
            getattr(callback, event, lambda *_, **__: None)(
                types.SimpleNamespace(), self.state, control, model=None, optimizer=None, **more)

    def train(self, epochs, steps):
        self.call("on_train_begin")
        for epoch in range(epochs):
            self.call("on_epoch_begin")
            for _ in range(steps):
                self.call("on_step_begin")
                self.step()
                self.state.global_step += 1
                self.call("on_step_end")
            self.state.epoch = epoch + 1.0
            self.call("on_epoch_end")
            self.call("on_evaluate", metrics={"eval_loss": 1 / (epoch + 1)})
        self.call("on_train_end")


class LightningTrainer:
    """Calls its callbacks as `lightning.Trainer` does."""

    def __init__(self, callbacks, step):
        self.callbacks = callbacks
        self.step = step
        self.logged = []
        self.callback_metrics = {}

    def call(self, event, *arguments):
        module = types.SimpleNamespace(log_dict=self.logged.append)
        for callback in self.callbacks:
            getattr(callback, event, lambda *_: None)(self, module, *arguments)

    def fit(self, epochs, steps):
        try:
            self.call("on_train_start")
            for epoch in range(epochs):
                self.call("on_train_epoch_start")
                for step in range(steps):
                    self.call("on_train_batch_start", None, step)
                    self.step()
                    self.call("on_train_batch_end", None, None, step)
                self.callback_metrics["val_loss"] = 1 / (epoch + 1)
                self.call("on_validation_end")
                self.call("on_train_epoch_end")
            self.call("on_train_end")
        except Exception as exception:
            self.call("on_exception", exception)
            raise


class Listener:
    def __init__(self):
        self.metrics = []

    def on_evaluate(self, metric):
        self.metrics.append(metric)


class IntegrationTest(TrainedNodeTestCase):
    def test_hugging_face_measures_and_optimises(self):
        plo, listener = quick(self.monitor, Energy()), Listener()
        callback = ZeusTrainerCallback(self.monitor, [plo, listener], metric="eval_loss")
        trainer = HuggingFaceTrainer([callback], self.work.step)
        trainer.train(epochs=4, steps=20)
        self.assertTrue(plo.done)
        self.assertIsNone(plo.trouble)
        self.assertEqual(limits(), self.original)  # Training is over.
        self.assertEqual(len(callback.epochs), 4)
        epochs = sum(one.total_energy for one in callback.epochs)
        self.assertAlmostEqual(epochs / callback.training.total_energy, 1, delta=0.1)
        self.assertEqual(listener.metrics, [1, 1 / 2, 1 / 3, 1 / 4])
        self.assertEqual([entry["step"] for entry in trainer.state.log_history], [20, 40, 60, 80])
        self.assertGreater(trainer.state.log_history[0]["energy_joules"], 0)

    def test_a_second_training_begins_anew(self):
        callback = ZeusTrainerCallback(self.monitor)
        trainer = HuggingFaceTrainer([callback], self.work.step)
        trainer.call("on_train_begin")
        trainer.call("on_epoch_begin")  # And an exception that the trainer tells nobody of.
        trainer.train(epochs=2, steps=2)
        self.assertEqual(len(callback.epochs), 2)

    def test_the_references_callback_for_hugging_face(self):
        self.assertIs(power_limit.HFGlobalPowerLimitOptimizer, HFGlobalPowerLimitOptimizer)
        callback = HFGlobalPowerLimitOptimizer(
            self.monitor, Energy(), warmup_steps=1, profile_steps=4, pl_step=100)
        HuggingFaceTrainer([callback], self.work.step).train(epochs=4, steps=20)
        self.assertTrue(callback.optimizer.done)
        self.assertIsNone(callback.optimizer.trouble)

    def test_lightning_measures_and_optimises(self):
        plo, listener = quick(self.monitor, Energy()), Listener()
        callback = ZeusCallback(self.monitor, [plo, listener], metric="val_loss")
        trainer = LightningTrainer([callback], self.work.step)
        trainer.fit(epochs=4, steps=20)
        self.assertTrue(plo.done)
        self.assertEqual(len(callback.epochs), 4)
        self.assertEqual(len(trainer.logged), 4)
        self.assertEqual(listener.metrics, [1, 1 / 2, 1 / 3, 1 / 4])
        self.assertEqual(set(trainer.logged[0]),
                         {"energy_joules", "energy_sigma_joules", "energy_seconds"})

    def test_an_exception_in_lightning_puts_the_limit_back(self):
        plo = quick(self.monitor, Energy(), power_limits=[100])
        steps = iter(range(8))

        def step():
            next(steps)
            self.work.step()

        trainer = LightningTrainer([ZeusCallback(self.monitor, [plo])], step)
        with self.assertRaises(StopIteration):
            trainer.fit(epochs=1, steps=20)
        self.assertTrue(plo.closed)
        self.assertEqual(limits(), self.original)


if __name__ == "__main__":
    unittest.main()
