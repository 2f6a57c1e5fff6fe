"""zeus.ZeusDataLoader on simulated GPUs, with torch and without it."""

import gc
import unittest

from limit_testing import Lowest, limits, true_energy
from process_testing import without_sanitizer
from trained_node_testing import TrainedNodeTestCase

from zeus import ZeusDataLoader
from zeus.optimizer.power_limit import Energy


class LoaderTestCase(TrainedNodeTestCase):
    def loader(self, data=range(40), batch_size=4, max_epochs=3, target_metric=None, **options):
        options = {"monitor": self.monitor, "seconds_per_limit": 1.0, "pl_step": 100, **options}
        return ZeusDataLoader(data, batch_size, max_epochs, target_metric, **options)


class TrainingTest(LoaderTestCase):
    def test_epochs_end_at_the_last_one_and_are_measured(self):
        loader = self.loader()
        before = true_energy(self.node, [0, 1])
        epochs = []
        for epoch in loader.epochs():
            epochs.append(epoch)
            for batch in loader:
                self.assertEqual(len(batch), 4)
                self.work.step()
        used = true_energy(self.node, [0, 1]) - before
        summary = loader.summary()
        self.assertEqual(epochs, [0, 1, 2])
        self.assertEqual((summary.epochs, summary.reason, summary.steps), (3, "max_epochs", 30))
        self.assertEqual([one.steps for one in summary.records], [10, 10, 10])
        self.assertAlmostEqual(summary.energy / used, 1, delta=0.08)
        self.assertGreater(summary.energy_sigma, 0)
        self.assertGreater(summary.cost, 0)
        self.assertIn("3 epochs (max epochs)", str(summary))

    def test_evaluation_counts_to_the_epoch(self):
        loader, evaluation = self.loader(max_epochs=1), ZeusDataLoader(range(40), 4)
        for _ in loader.epochs():
            for _ in loader:
                self.work.step()
            before = true_energy(self.node, [0, 1])
            for _ in evaluation:
                self.work.step()
            evaluated = true_energy(self.node, [0, 1]) - before
        self.assertGreater(loader.summary().energy, 1.1 * evaluated)
        self.assertEqual(loader.summary().steps, 10)

    def test_the_metric_may_be_better_when_it_is_lower(self):
        loader = self.loader(max_epochs=9, target_metric=0.35, higher_is_better=False)
        for epoch in loader.epochs():
            loader.report_metric(1 / (epoch + 1))
        self.assertEqual(loader.summary().reason, "target_reached")
        self.assertEqual(loader.summary().epochs, 3)
        self.assertAlmostEqual(loader.summary().best_metric, 1 / 3)

    def test_training_ends_when_it_has_cost_too_much(self):
        loader = self.loader(max_epochs=50, cost_bound=3000.0, eta=1.0)
        for _ in loader.epochs():
            for _ in loader:
                self.work.step()
        summary = loader.summary()
        self.assertEqual(summary.reason, "cost_bound")
        self.assertGreater(summary.cost, 3000)
        self.assertLess(summary.epochs, 50)

    def test_limits_are_tried_across_epochs(self):
        loader = self.loader(max_epochs=40, optimum_selector=Energy(), observer=False)
        for _ in loader.epochs():
            for _ in loader:
                self.work.step()
            if loader.optimizer.done:
                loader.stop()
        self.assertTrue(loader.optimizer.done)
        self.assertEqual(loader.summary().reason, "stopped_by_user")
        self.assertEqual([one.power_limit for one in loader.optimizer.measurements],
                         [400, 300, 200, 100])
        self.assertEqual(loader.savings().best, loader.optimizer.optimal_power_limit)

    def test_an_observer_changes_nothing_in_the_end(self):
        loader = self.loader(max_epochs=40, optimum_selector=Lowest(), observer=True)
        for _ in loader.epochs():
            for _ in loader:
                self.work.step()
            if loader.optimizer.done:
                self.assertEqual(limits(), self.original)
                loader.stop()
        self.assertEqual((loader.savings().best, loader.savings().original), (100, 400))
        self.assertGreater(loader.savings().change.time, 0)

    def test_callbacks_are_told_in_order(self):
        events = []

        class Listener:
            def __getattr__(self, name):
                if not name.startswith("on_"):
                    raise AttributeError(name)
                return lambda *arguments: events.append((name, *arguments))

        loader = self.loader(range(2), 1, max_epochs=1, callbacks=[Listener()])
        for _ in loader.epochs():
            for _ in loader:
                pass
            loader.report_metric(0.5)
        self.assertEqual([name for name, *_ in events],
                         ["on_train_begin", "on_epoch_begin", "on_step_begin", "on_step_end",
                          "on_step_begin", "on_step_end", "on_epoch_end", "on_evaluate",
                          "on_train_end"])
        self.assertIn(("on_evaluate", 0.5), events)


class LeavingTest(LoaderTestCase):
    def train_until(self, leave) -> ZeusDataLoader:
        loader = self.loader(range(400), 1, max_epochs=40)
        for _ in loader.epochs():
            for step, _ in enumerate(loader):
                self.work.step()
                if step == 12:
                    self.assertIn("current_power_limit", loader.optimizer.state._fields)
                if leave(step):
                    break
            else:
                continue
            break
        return loader

    def test_by_break(self):
        loader = self.train_until(lambda step: step == 30)
        self.assertEqual(limits(), self.original)
        summary = loader.summary()
        self.assertEqual((summary.reason, summary.epochs), ("stopped_by_user", 1))

    def test_by_an_exception(self):
        def fail(step):
            if step == 30:
                raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            self.train_until(fail)
        gc.collect()
        self.assertEqual(limits(), self.original)

    def test_training_goes_on_with_the_next_epoch(self):
        loader = self.loader(max_epochs=4)
        for _ in loader.epochs():
            break
        self.assertEqual(list(loader.epochs()), [1, 2, 3])


class DataTest(LoaderTestCase):
    def test_any_iterable_is_batched(self):
        loader = ZeusDataLoader(range(10), 4)
        self.assertEqual(list(loader), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])
        self.assertEqual(len(loader), 3)
        self.assertEqual(loader.batch_size, 4)

    def test_a_loader_is_left_as_it_is(self):
        self.assertEqual(list(ZeusDataLoader([[1, 2], [3]])), [[1, 2], [3]])

    @without_sanitizer
    def test_a_torch_dataset_becomes_a_torch_loader(self):
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        data = TensorDataset(torch.arange(8.0))
        loader = ZeusDataLoader(data, 4, shuffle=False, drop_last=True)
        self.assertEqual([batch[0].tolist() for batch in loader], [[0, 1, 2, 3], [4, 5, 6, 7]])
        self.assertTrue(loader.drop_last)
        self.assertIs(loader.dataset, data)
        wrapped = self.loader(DataLoader(data, batch_size=2), None, max_epochs=1)
        steps = sum(1 for _ in wrapped.epochs() for _ in wrapped)
        self.assertEqual(steps, 4)
        with self.assertRaisesRegex(ValueError, "leave batch_size out"):
            ZeusDataLoader(DataLoader(data), 4)

    def test_what_means_nothing_is_refused(self):
        for error, call in (
            (TypeError, lambda: ZeusDataLoader(3, 4)),
            (ValueError, lambda: ZeusDataLoader([1], 0)),
            (TypeError, lambda: ZeusDataLoader([1], True)),
            (TypeError, lambda: ZeusDataLoader(iter([1]))),
            (TypeError, lambda: ZeusDataLoader([1], shuffel=True)),
            (ValueError, lambda: ZeusDataLoader([1], 1, target_metric=0.5)),
            (ValueError, lambda: self.loader(max_epochs=0)),
            (ValueError, lambda: self.loader(eta=2)),
            (ValueError, lambda: self.loader(target_metric=float("nan"))),
            (ValueError, lambda: list(ZeusDataLoader([1], 1).epochs())),
            (TypeError, lambda: self.loader().report_metric("good")),
        ):
            with self.assertRaises(error):
                call()
        with self.assertRaises(AttributeError):
            ZeusDataLoader([1], 1).no_such_thing


if __name__ == "__main__":
    unittest.main()
