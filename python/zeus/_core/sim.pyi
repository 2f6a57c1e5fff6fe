"""Simulated nodes: see zeus.sim, which is meant to be used."""

from __future__ import annotations

from typing import Any, Callable

def models() -> list[dict[str, Any]]:
    """GPU models that a node may have."""

def workloads() -> list[dict[str, Any]]:
    """Training jobs of the catalogue."""

class Node:
    """A node where ZEUS_SIM_DIR says."""

    @staticmethod
    def start(
        name: str, gpus: str, seed: int, time_scale: float, ambient: float | None
    ) -> Node:
        """A new node, which ends with this process."""
    @staticmethod
    def attach(name: str) -> Node:
        """A node that another process started."""
    def stop(self) -> None:
        """Closes what was made since it was, then the node if this process started it."""
    @property
    def closed(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def time_scale(self) -> float: ...
    @property
    def now(self) -> float:
        """Node time in seconds."""
    def truth(self) -> list[tuple[int, str, str, float, float]]:
        """Index, model, UUID, joules and watts of every GPU."""
    def fault(
        self, gpu: int, kind: str, at: float | None, probability: float | None
    ) -> None: ...
    def clear_faults(self, gpu: int) -> None: ...

class Work:
    """A load for GPUs of a node."""

    @staticmethod
    def of_workload(
        node: Node, gpus: list[int] | None, workload: str, batch_size: int
    ) -> Work:
        """Steps of a training job of the catalogue; batch size 0 is its default."""
    @staticmethod
    def of_steps(
        node: Node, gpus: list[int] | None, operations: float, bytes: float
    ) -> Work:
        """Steps of known work."""
    @staticmethod
    def of_watts(node: Node, gpus: list[int] | None, watts: float) -> Work:
        """A plain draw."""
    @property
    def gpus(self) -> list[int]:
        """As the node counts them."""
    def launch(self, steps: float | None) -> None:
        """Runs so many steps from now on, or, with None, until it is closed."""
    def step(self, steps: float, compute: Callable[[], Any] | None) -> Any:
        """Runs so many steps, calls `compute` meanwhile, and returns what it returned.

        Lets other threads run. Ctrl-C, and what `compute` raises, ends the steps.
        """
    def close(self) -> None: ...
    @property
    def closed(self) -> bool: ...
