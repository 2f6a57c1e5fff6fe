"""Simulated GPUs for notebooks and tests.

    import zeus.sim
    from zeus.monitor import ZeusMonitor

    with zeus.sim.Node("4xA100", time_scale=20) as node:
        monitor = ZeusMonitor()
        training = node.run("resnet50", batch_size=256)
        with monitor.window("epoch") as epoch:
            for _ in range(100):
                training.step()
    print(epoch.measurement)

While the node runs, this process and those that it starts see its GPUs and no others, through the
same NVML interface as real ones. It is in a directory of its own and ends with the process.
"""

from __future__ import annotations

import atexit
import os
import sys
from types import TracebackType
from typing import Any, Callable, NamedTuple, Sequence, TypeVar, overload

from zeus import _checks, _native_files
from zeus._core import sim as _sim
from zeus._simulated_environment import Surroundings, check_library_is_free
from zeus.errors import ConflictError, InvalidArgumentError, NotFoundError

__all__ = [
    "Draw", "GpuTruth", "Node", "Work", "attach", "here", "models", "start", "workloads",
]

_Result = TypeVar("_Result")
_NAME = "default"  # The default name of `zeus sim`.
_running: Node | None = None


class GpuTruth(NamedTuple):
    """The true values of the simulation, which no sensor shows."""

    gpu: int  #: Index on the node.
    model: str
    uuid: str
    energy: float  #: Joules since the node started.
    power: float  #: Watts at this moment.


class Work:
    """Training on GPUs of a node: made by `Node.run`.

    The GPUs compute during `step` and are idle otherwise.
    """

    def __init__(self, work: _sim.Work) -> None:
        self._work = work

    @overload
    def step(self, steps: float = 1) -> None: ...

    @overload
    def step(self, steps: Callable[[], _Result]) -> _Result: ...

    @overload
    def step(self, steps: float, compute: Callable[[], _Result]) -> _Result: ...

    def step(
        self,
        steps: float | Callable[[], _Result] = 1,
        compute: Callable[[], _Result] | None = None,
    ) -> _Result | None:
        """Returns when every GPU has done so many steps, at whatever limit and clock it has then.

            work.step()
            work.step(10)
            loss = work.step(lambda: train_on(batch))  # On the CPU, while the GPUs do one step.

        Other threads run meanwhile, and Ctrl-C ends it. What `compute` raises is raised here, and
        the GPUs stop. One thread at a time: another one makes work of its own.
        """
        count: float = 1
        if callable(steps):
            compute = steps
        else:
            count = _checks.positive("the number of steps", steps)
        result: _Result | None = self._work.step(count, compute)
        return result

    def close(self) -> None:
        """Ends the training; so does the end of the node."""
        self._work.close()


class Draw:
    """A constant power draw on GPUs of a node, until it is stopped: made by `Node.draw`."""

    def __init__(self, work: _sim.Work) -> None:
        self._work = work

    def stop(self) -> None:
        """Makes the GPUs idle again."""
        self._work.close()

    def __enter__(self) -> Draw:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Node:
    """A simulated node, which runs until `stop`, the end of a ``with``, or that of the process.

    Args:
        gpus: For example "4xA100", "H100", "2xV100,2xA100". See `models`.
        time_scale: Node seconds per real second, 0.001 to 1e6. With 20, a minute of the GPUs
            takes three real seconds, and monitors measure a minute.
        seed: Determines the errors of the sensors and the UUIDs of the GPUs.
        ambient: Temperature of the air in degrees Celsius; None: the default of the models.

    Raises:
        ConflictError: If this process sees a simulated node already, or still uses the GPUs of an
            earlier one.
    """

    def __init__(
        self,
        gpus: str = "4xA100",
        *,
        time_scale: float = 1.0,
        seed: int = 0,
        ambient: float | None = None,
    ) -> None:
        global _running
        if not isinstance(gpus, str):
            raise TypeError(f'gpus is a text such as "4xA100", not {gpus!r}')
        scale = _checks.positive("time_scale", time_scale)
        seed = _checks.whole("seed", seed, 0, 2**64 - 1)
        if ambient is not None and not -50 <= _checks.number("ambient", ambient) <= 80:
            raise InvalidArgumentError(f"ambient is -50 to 80 degrees, not {ambient!r}")
        _refuse_node_in_node()
        library = _native_files.simulated_nvml()
        check_library_is_free(library)
        self._surroundings: Surroundings | None = Surroundings(_NAME, library)
        try:
            self._node = _sim.Node.start(_NAME, gpus, seed, scale, ambient)
        except BaseException:
            self._surroundings.leave()
            raise
        _running = self
        atexit.register(self.stop)

    @classmethod
    def current(cls) -> Node:
        """Returns the node of this process, or the one that its environment names.

        For processes that were started while a node runs, such as the ranks of a training; also
        after ``eval "$(zeus sim env)"``. `stop` does not end a node of another process.
        """
        global _running
        if _running is not None and not _running.stopped and not _running._is_of_parent():
            return _running
        name = os.environ.get("ZEUS_SIM_NODE")
        if not name:
            raise NotFoundError(
                "no simulated node is here: start one with zeus.sim.Node(), or with zeus sim start "
                'and eval "$(zeus sim env)"'
            )
        node = cls.__new__(cls)
        node._surroundings = None
        node._node = _sim.Node.attach(name)
        _running = node
        return node

    def stop(self) -> None:
        """Ends the node. First closes monitors and everything else that was made since it started.

        Restores the environment. A second call does nothing, nor does a call in a forked child,
        where the node belongs to the parent.
        """
        global _running
        if self._is_of_parent():
            return
        if (discovery := sys.modules.get("zeus.device.discovery")) is not None:
            discovery.forget()  # zeus.device.get_gpus() would keep these GPUs in use.
        self._node.stop()
        if self._surroundings is not None:
            self._surroundings.leave()
            self._surroundings = None
            atexit.unregister(self.stop)
        if _running is self:
            _running = None

    @property
    def stopped(self) -> bool:
        """Whether the node was stopped."""
        return self._node.closed

    @property
    def name(self) -> str:
        """The name by which other processes find it."""
        return self._node.name

    @property
    def time_scale(self) -> float:
        """Node seconds per real second."""
        return self._node.time_scale

    @property
    def now(self) -> float:
        """Seconds of node time since the node started."""
        return self._node.now

    def run(
        self,
        workload: str | None = None,
        *,
        batch_size: int | None = None,
        operations: float | None = None,
        bytes: float | None = None,
        gpus: Sequence[int] | None = None,
    ) -> Work:
        """Something to train: a job of the catalogue (see `workloads`), or steps of known work.

            node.run("resnet50", batch_size=256)
            node.run(operations=5e12, bytes=2e10, gpus=[0])

        Args:
            operations, bytes: Of one step on one GPU: floating-point operations of half precision,
                and bytes to and from its memory.
            gpus: Positions as `ZeusMonitor` counts them; None for all that this process may see.
        """
        positions = _positions(gpus)
        if workload is not None:
            if operations is not None or bytes is not None:
                raise InvalidArgumentError(
                    "a workload has its own operations and bytes: leave them out"
                )
            size = 0 if batch_size is None else _checks.whole("batch_size", batch_size, 1)
            return Work(_sim.Work.of_workload(self._node, positions, workload, size))
        if operations is None or bytes is None:
            raise InvalidArgumentError(
                "say what to run: the name of a workload, or the operations and bytes of a step"
            )
        if batch_size is not None:
            raise InvalidArgumentError(
                "batch_size belongs to a workload: operations are of a whole step"
            )
        return Work(
            _sim.Work.of_steps(
                self._node,
                positions,
                _checks.positive("operations", operations),
                _checks.positive("bytes", bytes),
            )
        )

    def draw(self, watts: float, *, gpus: Sequence[int] | None = None) -> Draw:
        """Draws a constant power on every GPU, within its limit, until the draw is stopped.

            with node.draw(250, gpus=[0]):
                ...
        """
        positions = _positions(gpus)
        work = _sim.Work.of_watts(self._node, positions, _checks.not_negative("watts", watts))
        work.launch(None)
        return Draw(work)

    def truth(self) -> list[GpuTruth]:
        """Returns exact energy and power of every GPU at the same moment."""
        return [GpuTruth(*gpu) for gpu in self._node.truth()]

    def fault(
        self, gpu: int, kind: str, *, at: float | None = None, probability: float | None = None
    ) -> None:
        """Injects a fault on a GPU (index on the node), from now or a given time on.

        The kinds are those of ``zeus sim fault``: "lost", "reset", "frozen", "na-power",
        "no-permission", "not-supported", "oob-cap:200W", "slow:50ms", "clock-reset", "mig"; and
        "clear" ends all faults of the GPU. `at` is node time, `probability` the share of calls.
        """
        index = _checks.index("gpu", gpu)
        if kind != "clear":
            self._node.fault(
                index,
                kind,
                None if at is None else _checks.not_negative("at", at),
                None if probability is None else _checks.positive("probability", probability),
            )
        elif at is None and probability is None:
            self._node.clear_faults(index)
        else:
            raise InvalidArgumentError(
                '"clear" ends all faults at once: it takes no time or probability'
            )

    def __enter__(self) -> Node:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _is_of_parent(self) -> bool:
        return self._surroundings is not None and self._surroundings.process != os.getpid()


def start(gpus: str = "4xA100", **options: Any) -> Node:
    """Starts a node that runs until `Node.stop`: the same as ``Node(gpus, ...)``."""
    return Node(gpus, **options)


def attach() -> Node:
    """Returns the node that the environment of this process names: see `Node.current`."""
    return Node.current()


def here(gpus: str = "4xA100", **options: Any) -> Node:
    """The node that this process finds in its environment, else a new one: ``Node(gpus, ...)``.

    For programs that bring a node along and also work after ``eval "$(zeus sim env)"``: then
    ``gpus`` and the options mean nothing, and the end of a ``with`` leaves the node running.
    """
    return Node.current() if os.environ.get("ZEUS_SIM_NODE") else Node(gpus, **options)


def models() -> list[dict[str, Any]]:
    """Returns the GPU models of the catalogue: id, name, power limits in watts, and so on."""
    return _sim.models()


def workloads() -> list[dict[str, Any]]:
    """Returns the training jobs that `Node.run` knows: name, batch sizes, size of the data."""
    return _sim.workloads()


def _refuse_node_in_node() -> None:
    if name := os.environ.get("ZEUS_SIM_NODE"):
        raise ConflictError(
            f'this process sees the simulated node "{name}" already: stop that one first, or work '
            "on it with zeus.sim.attach()"
        )


def _positions(gpus: Sequence[int] | None) -> list[int] | None:
    return None if gpus is None else _checks.indices("gpus", gpus)
