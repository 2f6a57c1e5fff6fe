"""The energy monitor: named windows of time, and the energy of devices in them."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
import warnings
from contextvars import ContextVar
from types import TracebackType

from zeus import _checks
from zeus._core.monitor import DeviceEnergy, Measurement, Monitor
from zeus.errors import ConflictError, InvalidArgumentError

TYPE_CHECKING = False  # As in zeus/__init__.py.
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Literal, TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])

__all__ = ["DeviceEnergy", "Measurement", "Window", "ZeusMonitor"]

# The windows that are open in this thread or asyncio task, and their names.
_entered: ContextVar[tuple[tuple[Window, str], ...]] = ContextVar("_entered", default=())


class Window:
    """A window that ends with the block, or the call, that it is around.

        with monitor.window("epoch") as epoch:
            ...
        print(epoch, epoch.total_energy)  # It has all that its measurement has.

        @monitor.window("step")
        def step(batch): ...

    It ends when an exception passes, too. Functions may also be coroutines and generators. It may
    be used again, also while it is open, by several threads and tasks at once: those besides the
    first are called "step (2)", ...
    """

    def __init__(self, monitor: ZeusMonitor, name: str, sync_execution: bool) -> None:
        self._monitor = monitor
        self._sync = sync_execution
        self.name = name
        #: The measurement of the last end of the window; None before.
        self.measurement: Measurement | None = None

    def __enter__(self) -> Window:
        key = self._monitor._begin_any(self.name, self._sync)
        _entered.set((*_entered.get(), (self, key)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        entered = _entered.get()
        for position in reversed(range(len(entered))):
            window, key = entered[position]
            if window is self:
                break
        else:
            raise ConflictError(f"the window {self.name!r} was not entered here: use `with`")
        _entered.set(entered[:position] + entered[position + 1 :])
        self._end(key)

    def _end(self, key: str) -> None:
        self.measurement = None
        if self._monitor.closed or self._monitor.in_forked_child:
            return
        try:
            if self._sync:  # Passing one argument is several times faster.
                self.measurement = self._monitor.end_window(key)
            else:
                self.measurement = self._monitor.end_window(key, False)
        except BaseException:
            # The framework, which is waited for here, raised it: the window must not stay open.
            with contextlib.suppress(KeyError):
                self.measurement = self._monitor.end_window(key, False)
            raise

    def __call__(self, function: _Function) -> _Function:
        import inspect

        if not callable(function):
            raise TypeError(f"a window goes around a function, not {_checks.shown(function)}")
        measured: Any
        if inspect.isasyncgenfunction(function):

            async def measured(*arguments: Any, **options: Any) -> Any:
                key = self._monitor._begin_any(self.name, self._sync)
                try:
                    async for value in function(*arguments, **options):
                        yield value
                finally:
                    self._end(key)

        elif inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)
        ):

            async def measured(*arguments: Any, **options: Any) -> Any:
                with self:
                    return await function(*arguments, **options)

        elif inspect.isgeneratorfunction(function):

            def measured(*arguments: Any, **options: Any) -> Any:
                # The caller may consume the values in another context.
                key = self._monitor._begin_any(self.name, self._sync)
                try:
                    return (yield from function(*arguments, **options))
                finally:
                    self._end(key)

        else:

            def measured(*arguments: Any, **options: Any) -> Any:
                with self:
                    return function(*arguments, **options)

        functools.update_wrapper(measured, function)
        measured.window = self
        wrapped: _Function = measured
        return wrapped

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
        print(monitor.end_window("epoch"))  # 1234 ± 31 J over 10.2 s (gpu:0, gpu:1)

    One native thread records the devices; a window costs microseconds. Thread-safe. A forked
    process needs a monitor of its own.

    Args:
        gpu_indices: Indices among the GPUs that are visible to this process; None: all.
        cpu_indices: Indices among the CPU packages; None: all, []: none.
        approx_instant_energy: Accepted for compatibility: energy between two updates of a sensor is
            always estimated, with its uncertainty.
        log_file: A CSV file with one line per finished window. An existing log is replaced; any
            other file is an error.
        sync_execution_with: The framework whose work is waited for at the edges of windows:
            "torch", "jax" or "cupy"; None: any that the program imports.
        restart_windows: Beginning an open window again restarts it instead of being an error, as
            when a failed cell of a notebook is run again. None: only in interactive sessions.
        log_append: Continue an existing log, which must be of the same devices.
        log_columns: "reference" for times and GPUs, as earlier tools write them; "extended" for
            CPUs, memory, uncertainties and flags, too.

    Raises:
        NotFoundError: If there is no such GPU or CPU, or no device that can be measured.
    """

    def __init__(
        self,
        gpu_indices: Iterable[int] | None = None,
        cpu_indices: Iterable[int] | None = None,
        approx_instant_energy: bool = False,
        log_file: str | os.PathLike[str] | None = None,
        sync_execution_with: Literal["torch", "jax", "cupy"] | None = None,
        *,
        restart_windows: bool | None = None,
        log_append: bool = False,
        log_columns: Literal["reference", "extended"] = "reference",
    ) -> None:
        if sync_execution_with is not None:
            _checks.text("sync_execution_with", sync_execution_with)
        path = b"" if log_file is None else os.fsencode(log_file)
        if b"\0" in path:
            raise InvalidArgumentError(f"log_file has a NUL in its name: {path!r}")
        if log_columns not in ("reference", "extended"):
            raise InvalidArgumentError(
                f'log_columns is "reference" or "extended", not {log_columns!r}'
            )
        gpus = None if gpu_indices is None else _checks.indices("gpu_indices", gpu_indices)
        super().__init__(
            gpus=gpus,
            cpus=None if cpu_indices is None else _checks.indices("cpu_indices", cpu_indices),
            share=True,
            log=(path, log_columns == "extended", _checks.flag("log_append", log_append)),
            framework=sync_execution_with or "",
        )
        self._numbers = itertools.count(2)
        self._restart = _is_interactive() if restart_windows is None else restart_windows
        self.approx_instant_energy = approx_instant_energy
        self.log_file = log_file
        self.sync_with = sync_execution_with
        self.gpu_indices = _positions(self.device_names, "gpu") if gpus is None else gpus
        self.cpu_indices = _positions(self.device_names, "cpu")
        if gpu_indices is None and not self.gpu_indices:
            reasons = "; ".join(f"{what}: {why}" for what, why, _ in self.absent)
            warnings.warn(f"no GPU is measured: {reasons} (see zeus doctor)", stacklevel=2)
        elif gpu_indices is None:
            for what, why, _ in self.absent:
                if what.startswith("gpu:"):
                    warnings.warn(f"{what} is not measured: {why}", stacklevel=2)
        if self._restart:
            # These are set on the instance, so that only notebooks pay for them.
            self.begin_window = self._begin_or_restart  # type: ignore[assignment]

    def window(self, name: str, sync_execution: bool = True) -> Window:
        """Returns a window around a block or a function: see `Window`."""
        return Window(self, name, sync_execution)

    @property
    def measurement_states(self) -> dict[str, Measurement]:
        """The open windows by name, each with what it has used so far."""
        states: dict[str, Measurement] = {}
        for name in self.open_windows:
            with contextlib.suppress(KeyError):  # Another thread has just ended it.
                states[name] = self.peek_window(name)
        return states

    # The native begin_window() and end_window() delegate all but the simple case to these methods.

    def _begin_window(self, key: str, sync_execution: bool = True, restart: bool = False) -> None:
        super()._begin_window(key, bool(sync_execution), bool(restart))

    def _end_window(
        self, key: str, sync_execution: bool = True, cancel: bool = False
    ) -> Measurement:
        return super()._end_window(key, bool(sync_execution), bool(cancel))

    def _begin_or_restart(
        self, key: str, sync_execution: bool = True, restart: bool = True
    ) -> None:
        super().begin_window(key, sync_execution, restart)

    def _begin_any(self, name: str, sync_execution: bool) -> str:
        """Begins a window of that name, or of the next free one: "step (2)"."""
        key = name
        while True:
            try:
                if sync_execution:
                    super().begin_window(key)
                else:
                    super().begin_window(key, False)
                return key
            except InvalidArgumentError:
                if not self._is_open(key):
                    raise  # The name itself was rejected.
                key = f"{name} ({next(self._numbers)})"

    def _is_open(self, key: str) -> bool:
        try:
            self.peek_window(key)
        except KeyError:
            return False
        return True

    def __enter__(self) -> ZeusMonitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _positions(names: list[str], kind: str) -> list[int]:
    return [int(name.split(":")[1]) for name in names if name.startswith(kind + ":")]


def _is_interactive() -> bool:
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules
