"""The paper's data loader: a training loop that measures itself, saves energy and may stop early.

    from zeus import ZeusDataLoader

    train_loader = ZeusDataLoader(train_set, batch_size, max_epochs, target_metric)
    eval_loader = ZeusDataLoader(eval_set, batch_size)

    for epoch in train_loader.epochs():  # may early stop
        for batch in train_loader:
            ...  # Learn from batch
        for batch in eval_loader:
            ...  # Evaluate on batch
        train_loader.report_metric(validation_metric)
    print(train_loader.summary())
"""

from __future__ import annotations

import os
import sys
from typing import Any, Iterable, Iterator, Sequence

from zeus._batches import batches_of
from zeus._core.training import Training
from zeus._training_summary import EpochSummary, TrainingSummary, summary_of
from zeus.errors import InvalidArgumentError
from zeus.monitor import ZeusMonitor
from zeus.optimizer import _checks
from zeus.optimizer.power_limit import (
    GlobalPowerLimitOptimizer,
    OptimumSelector,
    Savings,
    ZeusCost,
)
from zeus.utils.distributed import Collective, check_collective

__all__ = ["EpochSummary", "TrainingSummary", "ZeusDataLoader"]


class ZeusDataLoader:
    """Batches of a data set or of another loader, epoch by epoch.

    A training loader, one with `max_epochs`, measures every epoch, evaluation included, finds the
    best power limit of the GPUs while it trains, and ends when the target is reached, when the job
    has cost too much, or after the last epoch. Leaving the loop by break or by an exception ends
    open windows and restores the power limit. An evaluation loader only yields batches.

    With several ranks (see `zeus.utils.distributed`) all make the same calls and all stop after the
    same epoch: energies are summed, the slowest rank's time and the metric of rank 0 count.

    Args:
        data: A torch DataLoader, or any iterable that yields the batches of each epoch. With a
            `batch_size`, the samples: a torch Dataset, for which a DataLoader is made, or any
            iterable, whose batches are lists.
        batch_size: Samples per batch; None if `data` already yields batches.
        max_epochs: The most epochs of training; None for an evaluation loader.
        target_metric: Training ends with the epoch whose metric is as good as this.
        higher_is_better: Whether a higher metric is better.
        eta: From 0 (only time counts) to 1 (only energy counts).
        cost_bound: Training ends when it has cost more than this, in joules weighted by eta.
        monitor: None: a new one of all GPUs that this process sees; with several ranks, of the one
            GPU of this rank.
        optimum_selector: The objective; None: `ZeusCost` with this eta.
        observer: Only try the limits and decide: `savings` reports the possible savings.
        seconds_per_limit: Seconds for which each limit is measured.
        pl_step: Watts from one limit to the next.
        profile_path, profile_folder, job: As for `GlobalPowerLimitOptimizer`.
        callbacks: Called at epochs and steps, see `zeus.callback.Callback`. If one raises, that is
            logged once, and it is called again only at the end of training.
        collective: Communication of the ranks; None: torch.distributed if it is initialised.
        **loader_options: For the torch DataLoader: shuffle, num_workers, sampler, ...
    """

    def __init__(
        self,
        data: Iterable[Any],
        batch_size: int | None = None,
        max_epochs: int | None = None,
        target_metric: float | None = None,
        *,
        higher_is_better: bool = True,
        eta: float = 0.5,
        cost_bound: float | None = None,
        monitor: ZeusMonitor | None = None,
        optimum_selector: OptimumSelector | None = None,
        observer: bool = False,
        seconds_per_limit: float = 5.0,
        pl_step: float = 25,
        profile_path: str | os.PathLike[str] | None = None,
        profile_folder: str | os.PathLike[str] | None = None,
        job: str = "",
        callbacks: Sequence[Any] = (),
        collective: Collective | None = None,
        **loader_options: Any,
    ) -> None:
        self._training: Training | None = None
        self._loader = batches_of(data, batch_size, loader_options)
        selector = optimum_selector or ZeusCost(eta)
        options = {
            "target_metric": _optional_number("target_metric", target_metric),
            "higher_is_better": _checks.flag("higher_is_better", higher_is_better),
            "eta": float(eta),
            "cost_bound": _optional_number("cost_bound", cost_bound),
            "max_power": None,
            "window": "epoch",
        }
        if max_epochs is None:
            _refuse_for_evaluation(target_metric, cost_bound, observer)
            return
        options["max_epochs"] = _checks.whole("max_epochs", max_epochs, 1)
        ranks = check_collective(collective)
        self.monitor = _monitor_of_rank(ranks) if monitor is None else monitor
        self._ranks = ranks
        self.optimizer = GlobalPowerLimitOptimizer(
            self.monitor,
            selector,
            pl_step=pl_step,
            profile_path=profile_path,
            profile_folder=profile_folder,
            job=job,
            batch_size=batch_size or 0,
            observe=observer,
            seconds_per_limit=seconds_per_limit,
            collective=ranks,
        )
        self._training = Training(self.monitor, [self.optimizer, *callbacks], ranks, options)

    def epochs(self) -> Iterator[int]:
        """Yields epochs from 0 while training should continue; after a break, from the next one."""
        training = self._in_training("epochs()")
        under_way = training.begin_training()
        try:
            while under_way:
                self._tell_sampler(training.epoch)
                yield training.epoch
                under_way = training.next_epoch()
        finally:
            if under_way and not training.closed:
                self._leave(training)

    def _leave(self, training: Training) -> None:
        if self._ranks is not None and self._ranks.size > 1:
            # An exception may have left only this rank, and then the others would not answer.
            self.optimizer.close()
        training.leave_training(by_exception=False)

    def __iter__(self) -> Iterator[Any]:
        if self._training is None or self._training.closed:
            yield from self._loader
            return
        training = self._training
        training.begin_batches()
        try:
            for batch in self._loader:
                if not training.may_step():
                    return
                training.begin_step()
                yield batch
                training.end_step()
        finally:
            if not training.closed:
                training.end_batches()

    def __len__(self) -> int:
        return len(self._loader)

    def report_metric(self, metric: float) -> None:
        """The validation metric of this epoch; of several the last one counts.

        With several ranks that of rank 0; the others need not report one.
        """
        if isinstance(metric, (bool, str, bytes)) or not hasattr(type(metric), "__float__"):
            raise TypeError(f"the metric is a number, not {metric!r}")
        self._in_training("report_metric()").report_metric(float(metric))

    def stop(self) -> None:
        """Ends training after this batch; with several ranks after this epoch. Thread-safe."""
        self._in_training("stop()").stop()

    def summary(self, timeout: float = 2.0) -> TrainingSummary:
        """Returns usage so far; waits up to `timeout` seconds for the last epoch's sensors."""
        training = self._in_training("summary()")
        return summary_of(training.summary(_checks.number("timeout", timeout)))

    def savings(self) -> Savings:
        """Returns the savings of the best power limit: see `GlobalPowerLimitOptimizer.savings`."""
        self._in_training("savings()")
        return self.optimizer.savings()

    def close(self) -> None:
        """Ends open windows and restores the power limit, as the end of the program does."""
        if self._training is not None:
            self._training.close()
            self.optimizer.close()

    def __enter__(self) -> ZeusDataLoader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        # Called only for attributes that this class lacks: dataset, sampler, num_workers, ...
        if name.startswith("_") or name in ("monitor", "optimizer"):
            raise AttributeError(f"a ZeusDataLoader without max_epochs has no {name}")
        return getattr(self._loader, name)

    def _in_training(self, call: str) -> Training:
        if self._training is None:
            raise InvalidArgumentError(f"{call} is of a training loader: give this one max_epochs")
        return self._training

    def _tell_sampler(self, epoch: int) -> None:
        """Samplers of torch.distributed shuffle by epoch and need its number."""
        set_epoch = getattr(getattr(self._loader, "sampler", None), "set_epoch", None)
        if callable(set_epoch):
            set_epoch(epoch)


def _optional_number(name: str, value: Any) -> float | None:
    return None if value is None else _checks.number(name, value)


def _refuse_for_evaluation(
    target_metric: float | None, cost_bound: float | None, observer: bool
) -> None:
    if target_metric is not None or cost_bound is not None or observer:
        raise InvalidArgumentError(
            "target_metric, cost_bound and observer are of training: give max_epochs, too"
        )


def _monitor_of_rank(ranks: Collective | None) -> ZeusMonitor:
    if ranks is None or ranks.size == 1:
        return ZeusMonitor()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return ZeusMonitor(gpu_indices=[torch.cuda.current_device()])
    if "LOCAL_RANK" in os.environ:
        return ZeusMonitor(gpu_indices=[int(os.environ["LOCAL_RANK"])])
    raise InvalidArgumentError(
        "each rank measures its own GPUs: pass monitor=ZeusMonitor(gpu_indices=[local_rank])"
    )
