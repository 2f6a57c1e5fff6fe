"""Energy of trainings with Hugging Face's `Trainer`, and their power limits.

    from transformers import Trainer
    from zeus.integration.huggingface import ZeusTrainerCallback
    from zeus.monitor import ZeusMonitor
    from zeus.optimizer import GlobalPowerLimitOptimizer

    monitor = ZeusMonitor()
    trainer = Trainer(..., callbacks=[
        ZeusTrainerCallback(monitor, [GlobalPowerLimitOptimizer(monitor)])])
    trainer.train()

The classes derive from `transformers.TrainerCallback` where that package is installed. Elsewhere
they have its events all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zeus.integration._course import CourseCallback, logs_of
from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer

if TYPE_CHECKING:
    import os

    from zeus.monitor import ZeusMonitor
    from zeus.optimizer.power_limit import OptimumSelector

    _TrainerCallback = object
else:
    try:
        from transformers import TrainerCallback as _TrainerCallback
    except ImportError:
        _TrainerCallback = object

__all__ = ["HFGlobalPowerLimitOptimizer", "ZeusTrainerCallback"]


class ZeusTrainerCallback(CourseCallback, _TrainerCallback):
    """Measures every epoch and the whole training; passes epochs and steps to Zeus callbacks.

    The energy of an epoch goes to the trainer's log history: `energy_joules`,
    `energy_sigma_joules`, `energy_seconds`.

    Args:
        monitor: None: a new one of all devices.
        callbacks: For example a `GlobalPowerLimitOptimizer`; see `zeus.callback.Callback`.
        metric: The name of the metric for `on_evaluate` of the callbacks, such as "eval_loss".
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called by the trainer, as are the others."""
        self._course.train_begin()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An epoch begins."""
        self._course.epoch_begin()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A step begins."""
        self._course.step_begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A step ends."""
        self._course.step_end()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An epoch ends."""
        numbers = logs_of(self._course.epoch_end())
        history = getattr(state, "log_history", None)
        if numbers and isinstance(history, list):
            position = {
                name: getattr(state, source)
                for name, source in (("epoch", "epoch"), ("step", "global_step"))
                if hasattr(state, source)
            }
            history.append({**numbers, **position})

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any
    ) -> None:
        """The model was evaluated."""
        if self._metric is not None and metrics and self._metric in metrics:
            self._course.evaluate(float(metrics[self._metric]))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Training ends."""
        self._course.train_end()


class HFGlobalPowerLimitOptimizer(_TrainerCallback):
    """A `GlobalPowerLimitOptimizer` as a callback of the trainer, with the same arguments.

    The optimiser itself, with `state`, `savings` and so on, is `optimizer`.
    """

    def __init__(
        self,
        monitor: ZeusMonitor,
        optimum_selector: OptimumSelector | None = None,
        wait_steps: int = 1,
        warmup_steps: int = 10,
        profile_steps: int = 40,
        pl_step: int = 25,
        profile_path: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self.optimizer = GlobalPowerLimitOptimizer(
            monitor,
            optimum_selector,
            wait_steps,
            warmup_steps,
            profile_steps,
            pl_step,
            profile_path,
            **options,
        )

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Called by the trainer, as are the others."""
        self.optimizer.on_train_begin()

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A step begins."""
        self.optimizer.on_step_begin()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An epoch ends."""
        self.optimizer.on_epoch_end()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Training ends."""
        self.optimizer.on_train_end()
