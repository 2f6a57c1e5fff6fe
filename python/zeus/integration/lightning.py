"""Energy of trainings with Lightning's `Trainer`, and their power limits.

    from lightning import Trainer
    from zeus.integration.lightning import ZeusCallback
    from zeus.monitor import ZeusMonitor
    from zeus.optimizer import GlobalPowerLimitOptimizer

    monitor = ZeusMonitor()
    trainer = Trainer(callbacks=[ZeusCallback(monitor, [GlobalPowerLimitOptimizer(monitor)])])
    trainer.fit(model, data)

The class derives from Lightning's `Callback` where `lightning` or `pytorch_lightning` is installed.
Elsewhere it has its events all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zeus.integration._course import CourseCallback, logs_of

if TYPE_CHECKING:
    _Callback = object
else:
    try:
        from lightning.pytorch.callbacks import Callback as _Callback
    except ImportError:
        try:
            from pytorch_lightning.callbacks import Callback as _Callback
        except ImportError:
            _Callback = object

__all__ = ["ZeusCallback"]


class ZeusCallback(CourseCallback, _Callback):
    """Measures every epoch and the whole training; passes epochs and steps to Zeus callbacks.

    The energy of an epoch is logged through the module: `energy_joules`, `energy_sigma_joules`,
    `energy_seconds`.

    Args:
        monitor: None: a new one of all devices.
        callbacks: For example a `GlobalPowerLimitOptimizer`; see `zeus.callback.Callback`.
        metric: The name of the metric for `on_evaluate` of the callbacks, such as "val_loss".
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Called by the trainer, as are the others."""
        self._course.train_begin()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """An epoch begins."""
        self._course.epoch_begin()

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, *_: Any
    ) -> None:
        """A step begins."""
        self._course.step_begin()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, *_: Any
    ) -> None:
        """A step ends."""
        self._course.step_end()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """An epoch ends."""
        numbers = logs_of(self._course.epoch_end())
        if numbers and hasattr(pl_module, "log_dict"):
            pl_module.log_dict(numbers)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """The model was evaluated."""
        metrics = getattr(trainer, "callback_metrics", {})
        if self._metric is not None and self._metric in metrics:
            self._course.evaluate(float(metrics[self._metric]))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Training ends."""
        self._course.train_end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Training ends by an exception."""
        # Perhaps only this rank leaves, and then the others would not answer.
        for callback in self._course.callbacks:
            if hasattr(callback, "close"):
                callback.close()
        self._course.train_end()
