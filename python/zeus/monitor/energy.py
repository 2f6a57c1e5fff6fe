"""The monitor: named windows of time, and the energy that devices used in them."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from _thread import get_ident
from types import TracebackType
from typing import Any, Callable, Literal, Sequence, TypeVar

from zeus._core.monitor import DeviceEnergy, Measurement, Monitor

__all__ = ["DeviceEnergy", "Measurement", "Window", "ZeusMonitor"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Window:
    """A window that ends with the block, or the call, that it is around.

        with monitor.window("epoch") as epoch:
            ...
        print(epoch, epoch.total_energy)  # What its measurement has, it has.

        @monitor.window("step")
        def step(batch): ...

    It ends when an exception passes, too. It may be used again, also while it is open and by
    several threads at once: those besides the first are called "step (2)", ...
    """

    def __init__(self, monitor: ZeusMonitor, name: str, sync_execution: bool) -> None:
        self._monitor = monitor
        self._sync = sync_execution
        self._open: dict[int, list[str]] = {}  # By thread.
        self.name = name
        #: Of the last time that the window ended; None before.
        self.measurement: Measurement | None = None

    def __enter__(self) -> Window:
        key = self._monitor._begin_any(self.name, self._sync)
        self._open.setdefault(get_ident(), []).append(key)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        key = self._open[get_ident()].pop()
        if not self._monitor.closed and not self._monitor.in_forked_child:
            self.measurement = self._monitor.end_window(key, self._sync)

    def __call__(self, function: _Function) -> _Function:
        import inspect

        if inspect.iscoroutinefunction(function):

            async def measured(*arguments: Any, **options: Any) -> Any:
                # Coroutines of one thread do not end in the order in which they began.
                once = Window(self._monitor, self.name, self._sync)
                try:
                    with once:
                        return await function(*arguments, **options)
                finally:
                    self.measurement = once.measurement

        else:

            def measured(*arguments: Any, **options: Any) -> Any:  # type: ignore[misc]
                with self:
                    return function(*arguments, **options)

        functools.update_wrapper(measured, function)
        measured.window = self  # type: ignore[attr-defined]
        return measured  # type: ignore[return-value]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self.measurement is None:
            raise AttributeError(f"the window {self.name!r} has not ended: it has no {name} yet")
        return getattr(self.measurement, name)

    def __str__(self) -> str:
        return "not ended yet" if self.measurement is None else str(self.measurement)


class ZeusMonitor(Monitor):
    """Measures time and energy of the GPUs, CPUs and memory that this process may see.

        monitor = ZeusMonitor(gpu_indices=[0, 1])
        monitor.begin_window("epoch")
        ...
        print(monitor.end_window("epoch"))  # 1234 J ± 31 J over 10.2 s (gpu:0, gpu:1)

    Devices are recorded by one native thread; a window costs microseconds. Thread-safe. A process
    that was forked makes a monitor of its own.

    Args:
        gpu_indices: Positions among the GPUs that are visible to this process; None for all.
        cpu_indices: Positions among the CPU packages; None for all, [] for none.
        approx_instant_energy: Accepted and not needed: energy between two updates of a sensor is
            always estimated, with its uncertainty.
        log_file: Every window that ended is written there as a line of comma-separated values.
        sync_execution_with: The framework whose work is waited for at the edges of windows:
            "torch", "jax" or "cupy"; None for whichever the program imports.
        restart_windows: A window that is begun again while it is open is restarted instead of
            refused, as when a cell of a notebook that failed is run again. None: if interactive.

    Raises:
        NotFoundError: If there is no such GPU or CPU, or nothing at all that can be measured.
    """

    def __init__(
        self,
        gpu_indices: Sequence[int] | None = None,
        cpu_indices: Sequence[int] | None = None,
        approx_instant_energy: bool = False,
        log_file: str | os.PathLike[str] | None = None,
        sync_execution_with: Literal["torch", "jax", "cupy"] | None = None,
        *,
        restart_windows: bool | None = None,
    ) -> None:
        super().__init__(
            gpus=_indices(gpu_indices, "gpu_indices"),
            cpus=_indices(cpu_indices, "cpu_indices"),
            share=True,
            log_file="" if log_file is None else os.fspath(log_file),
            framework=sync_execution_with or "",
        )
        self._restart = _is_interactive() if restart_windows is None else restart_windows
        self.approx_instant_energy = approx_instant_energy
        self.log_file = log_file
        self.sync_with = sync_execution_with
        self.gpu_indices = _positions(self.device_names, "gpu")
        self.cpu_indices = _positions(self.device_names, "cpu")
        if gpu_indices is None and not self.gpu_indices:
            reasons = "; ".join(f"{what}: {why}" for what, why, _ in self.absent)
            warnings.warn(f"no GPU is measured: {reasons} (see zeus doctor)", stacklevel=2)
        if self._restart:
            # Found on the instance, so that programs do not pay for what notebooks want.
            self.begin_window = self._begin_or_restart  # type: ignore[assignment]

    def window(self, name: str, sync_execution: bool = True) -> Window:
        """A window around a block or a function: see `Window`."""
        return Window(self, name, sync_execution)

    def _begin_or_restart(
        self, key: str, sync_execution: bool = True, restart: bool = True
    ) -> None:
        super().begin_window(key, sync_execution, restart)

    def _begin_any(self, name: str, sync_execution: bool) -> str:
        """Begins a window of that name, or of the first free one after it: "step (2)"."""
        key, attempt = name, 1
        while True:
            try:
                super().begin_window(key, sync_execution)
                return key
            except ValueError:
                if attempt > 1000:
                    raise
                attempt += 1
                key = f"{name} ({attempt})"

    def __enter__(self) -> ZeusMonitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _indices(given: Sequence[int] | None, name: str) -> list[int] | None:
    if given is None:
        return None
    if isinstance(given, (str, bytes)) or not all(
        isinstance(index, int) and not isinstance(index, bool) for index in given
    ):
        raise TypeError(f"{name} is a list of whole numbers, not {given!r}")
    if negative := [index for index in given if index < 0]:
        raise ValueError(f"{name} has {negative[0]}: positions count from 0")
    return list(given)


def _positions(names: list[str], kind: str) -> list[int]:
    return [int(name.split(":")[1]) for name in names if name.startswith(kind + ":")]


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules
