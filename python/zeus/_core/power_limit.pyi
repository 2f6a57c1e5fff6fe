"""Power limits just in time, selectors, profiles."""

from __future__ import annotations

from typing import Any

from zeus._core.monitor import Monitor
from zeus.errors import ZeusError

class JitOptimizer:
    """The optimiser of the library: see `zeus.optimizer.power_limit.GlobalPowerLimitOptimizer`."""

    def __init__(
        self,
        monitor: Monitor,
        selector: tuple[str, Any],
        meter: Any,
        collective: Any,
        options: dict[str, Any],
    ) -> None: ...
    def on_train_begin(self) -> None:
        """Training begins, or goes on after `on_train_end`. The first step does it, too."""
    def on_epoch_begin(self) -> None:
        """Nothing to do."""
    def on_step_begin(self) -> None:
        """Before every step. Once it is done, this counts the step and nothing else."""
    def on_step_end(self) -> None:
        """Nothing to do."""
    def on_epoch_end(self) -> None:
        """After an epoch's last step: what comes until the next step is not measured."""
    def on_train_end(self) -> None:
        """Restores everything and keeps what was learned. All ranks must call it."""
    def close(self) -> None:
        """Puts everything back and lets go of the devices; without the other ranks."""
    @property
    def closed(self) -> bool:
        """Whether everything was put back and the devices were let go."""
    @property
    def done(self) -> bool:
        """Whether all knobs are decided on."""
    @property
    def trouble(self) -> ZeusError | None:
        """Why a knob is not being optimised; None if all are."""
    def _on_step_begin(self) -> None: ...
    def _state(self) -> tuple[str, float | None, int, float]: ...
    def _chosen(self) -> list[float]: ...
    def _points(self, knob: int) -> list[tuple[Any, ...]]: ...
    def _used(self) -> tuple[float, float, float, float]: ...
    def _savings(self, knob: int) -> dict[str, Any]: ...
    def _save_profile(self, knob: int, file: str) -> None: ...

def select(selector: tuple[str, Any], points: list[Any], max_power: float) -> int:
    """The position of the best of these points, which are in order, fastest first."""

def read_profile(file: str) -> list[tuple[Any, ...]]:
    """The points of a profile: setting, energy, time, their sigmas, steps."""
