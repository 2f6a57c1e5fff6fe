"""Windows whose energy is accounted by the hour: the common part of carbon and price."""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from typing import Any, Callable, Sequence, Tuple, TypeVar

from zeus import _checks
from zeus._core.monitor import Measurement
from zeus.errors import ConflictError
from zeus.monitor.energy import ZeusMonitor

_Answer = TypeVar("_Answer")
#: Begin and end in seconds since 1970, and the energy in joules.
Piece = Tuple[float, float, float]


def ask(question: Callable[[], _Answer], timeout: float, who: str) -> _Answer:
    """Calls a function that may hang. TimeoutError after `timeout` seconds."""
    answers: list[_Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(question())
        except BaseException as error:  # Raised again below.
            errors.append(error)

    thread = threading.Thread(target=run, name="zeus-ask", daemon=True)
    thread.start()
    thread.join(timeout)
    if errors:
        raise errors[0]
    if not answers:
        raise TimeoutError(f"{who} did not answer within {timeout:g} s")
    return answers[0]


class _Window:
    """The energy of an open window at several moments."""

    def __init__(self) -> None:
        self.looks: list[Measurement] = []

    def pieces(self, device: str, end: Measurement) -> list[Piece]:
        """Returns the pieces of one device between these moments."""
        pieces = []
        begin, used = end.start_time, 0.0
        for look in (*self.looks, end):
            energy = look.devices[device].energy
            moment = end.start_time + look.time
            if math.isnan(energy):
                continue
            pieces.append((begin, max(begin, moment), energy - used))
            begin, used = max(begin, moment), energy
        return pieces


class AccountingMonitor:
    """A monitor that reads its open windows whenever the value of energy may change.

    That is done by one thread, only while a window is open. A fork()ed child makes a monitor of
    its own: there, close() does nothing, and all else is refused.
    """

    def __init__(
        self,
        gpu_indices: Sequence[int] | None,
        cpu_indices: Sequence[int] | None,
        sync_execution_with: Any,
        monitor: ZeusMonitor | None,
        timeout: float,
    ) -> None:
        self.timeout = _checks.positive("timeout", timeout)
        # Any object that measures windows is accepted, not only a ZeusMonitor.
        if monitor is not None and not hasattr(monitor, "begin_window"):
            raise TypeError(f"monitor is a ZeusMonitor, not {monitor!r}")
        self._owns_monitor = monitor is None
        self.zeus_monitor = (
            ZeusMonitor(gpu_indices, cpu_indices, sync_execution_with=sync_execution_with)
            if monitor is None
            else monitor
        )
        self.gpu_indices = self.zeus_monitor.gpu_indices
        self.cpu_indices = self.zeus_monitor.cpu_indices
        self._changed = threading.Condition()
        self._windows: dict[str, _Window] = {}
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def begin_window(self, key: str, sync_execution: bool = True) -> None:
        """Begins a window. ValueError if one of this name is open."""
        self._refuse_forked_child()
        self.zeus_monitor.begin_window(key, sync_execution)
        with self._changed:
            self._windows[key] = _Window()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name="zeus-accounting", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Forgets open windows, and closes the monitor if this object made it."""
        if os.getpid() != self._process:
            return  # The thread, which may hold the lock, belongs to the parent.
        with self._changed:
            self._windows.clear()
            self._changed.notify_all()
        if self._owns_monitor:
            self.zeus_monitor.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refuse_forked_child(self) -> None:
        if os.getpid() != self._process:
            raise ConflictError(
                "this monitor belongs to the process that was forked: make one of your own here"
            )

    def _end(self, key: str, sync_execution: bool) -> tuple[Measurement, _Window]:
        self._refuse_forked_child()
        measurement = self.zeus_monitor.end_window(key, sync_execution)
        with self._changed:
            window = self._windows.pop(key, _Window())
            self._changed.notify_all()
        return measurement, window

    def _period(self) -> float:
        """Seconds between two moments at which the value of energy may change."""
        return 3600.0

    def _on_boundary(self) -> None:
        """Called by the thread at each of these moments, without a lock."""

    def _watch(self) -> None:
        while True:
            with self._changed:
                period = self._period()
                self._changed.wait_for(
                    lambda: not self._windows, period - time.time() % period + 0.001
                )
                if not self._windows or self.zeus_monitor.closed:
                    self._thread = None
                    return
                self._look()
            self._on_boundary()

    def _look(self) -> None:
        for key, window in self._windows.items():
            try:
                window.looks.append(self.zeus_monitor.peek_window(key))
            except KeyError:  # The window is just being ended.
                pass


class Accounts:
    """The accounts of the devices of a window, in grams or money."""

    def __init__(self, measurement: Measurement, window: _Window | None = None) -> None:
        self._measurement = measurement
        self._window = window or _Window()
        self.sigma: dict[str, float] = {}
        self.notes: list[str] = []

    def of(self, kind: str, account: Callable[[Any, float], Any]) -> dict[int, float] | None:
        """Returns amounts by index of the devices of that kind; None if there are none.

        NaN for a device that could not be read, or for energy without a value.
        """
        energies: dict[int, float] | None = getattr(self._measurement, f"{kind}_energy")
        if energies is None:
            return None
        return {index: self._amount(f"{kind}:{index}", account) for index in energies}

    def together(self) -> list[Piece]:
        """Returns the pieces summed over all devices, oldest first."""
        energies: dict[tuple[float, float], float] = {}
        for device in self._measurement.devices:
            if device.partition(":")[0] in ("gpu", "cpu", "dram"):
                for begin, end, energy in self._window.pieces(device, self._measurement):
                    energies[begin, end] = energies.get((begin, end), 0.0) + energy
        return [(begin, end, energy) for (begin, end), energy in sorted(energies.items())]

    def _amount(self, device: str, account: Callable[[Any, float], Any]) -> float:
        energy = self._measurement.devices[device]
        if energy.reason is not None:
            self._note(f"{device}: {energy.reason}")
            self.sigma[device] = math.nan
            return math.nan
        amount, sigma, missing, notes = account(
            self._window.pieces(device, self._measurement), energy.sigma
        )
        for note in notes:
            self._note(note)
        if missing or math.isnan(amount):
            amount = sigma = math.nan
        self.sigma[device] = float(sigma)
        return float(amount)

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def warn_of(notes: list[str], what: str) -> None:
    """Shows notes as one warning: an incomplete account must not end the training."""
    if notes:
        warnings.warn(f"{what}: {'; '.join(notes)}", RuntimeWarning, stacklevel=3)
