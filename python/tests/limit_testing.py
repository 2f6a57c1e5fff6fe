"""Shared by the tests of power limits: a job on simulated GPUs, the limits, and the truth.

Also for processes that a test starts: importing it changes nothing.
"""

import warnings

from zeus.device import get_gpus
from zeus.monitor import ZeusMonitor
from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer, OptimumSelector

#: A step that is bound by computing: a lower limit makes it slower, and cheaper down to a point.
OPERATIONS, BYTES = 6e13, 2e11


class Lowest(OptimumSelector):
    """Certain, however noisy the measurements are."""

    def select(self, measurements):
        return min(one.power_limit for one in measurements)


def limits(gpus=None) -> list[float]:
    """Returns the limits of the GPUs in watts, as the driver has them now."""
    handles = get_gpus()
    indices = range(len(handles)) if gpus is None else gpus
    return [handles.get_power_management_limit(index) / 1000 for index in indices]


def train(plo, work, most: int = 2000) -> int:
    """Steps until the optimiser is done; how many."""
    for step in range(most):
        if plo.done:
            return step
        plo.on_step_begin()
        work.step()
    raise AssertionError(f"not done after {most} steps: {plo.state}")


def quick(monitor, selector=None, **options) -> GlobalPowerLimitOptimizer:
    """An optimiser that needs few steps."""
    options = {"warmup_steps": 1, "profile_steps": 4, "pl_step": 100, **options}
    return GlobalPowerLimitOptimizer(monitor, selector, **options)


def true_energy(node, gpus) -> float:
    """Joules of these GPUs since the node started."""
    truth = {gpu.gpu: gpu.energy for gpu in node.truth()}
    return sum(truth[index] for index in gpus)


def monitor_of(*gpus: int) -> ZeusMonitor:
    """Without what it has to say about CPUs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ZeusMonitor(gpu_indices=list(gpus))
