"""A monitor that replays the measurements of another one, for tests and analyses."""

from __future__ import annotations

import csv
import math
import os
import threading
from typing import Any, Iterator, List, Sequence, Tuple, cast

from zeus._core.monitor import Measurement
from zeus.errors import ConflictError, InvalidArgumentError, NotFoundError
from zeus.monitor.energy import Window, ZeusMonitor

__all__ = ["ReplayError", "ReplayWindowError", "ReplayZeusMonitor"]

_Line = Tuple[int, List[str]]  # The line number and the fields.

_NOTHING: _Line = (0, [])
_FIRST_COLUMNS = ["start_time", "window_name", "elapsed_time"]


class ReplayError(InvalidArgumentError, RuntimeError):
    """The replay was not used as a monitor is: a ValueError, and a RuntimeError as in earlier tools."""


class ReplayWindowError(NotFoundError, RuntimeError):
    """No such window is open: a KeyError and ValueError, and a RuntimeError as in earlier tools."""


class ReplayZeusMonitor:
    """Behaves like a ZeusMonitor, but replays the log of one, line by line.

        monitor = ReplayZeusMonitor(log_file="windows.csv")
        monitor.begin_window("epoch")
        print(monitor.end_window("epoch"))  # The recorded measurement.

    Every window that ends takes the next line, so windows must end in the order of the log; one
    that is cancelled takes none. It reads logs of `ZeusMonitor(log_file=...)`, of `zeus monitor`
    with their standard deviations, and those of earlier tools of this kind. Thread-safe.

    Args:
        gpu_indices: The GPUs of the log; None for what its header says.
        approx_instant_energy: Accepted and not needed.
        log_file: The log.
        ignore_sync_execution: Never wait for torch, JAX or CuPy at the edges of windows.
        match_window_name: Refuse a window whose name is not that of the log's next line.

    Raises:
        ConflictError: (a RuntimeError) when the log has other GPUs, other names, or ends too soon.
    """

    def __init__(
        self,
        gpu_indices: Sequence[int] | None = None,
        approx_instant_energy: bool = False,
        log_file: str | os.PathLike[str] | None = None,
        ignore_sync_execution: bool = False,
        match_window_name: bool = True,
    ) -> None:
        if log_file is None:
            raise ReplayError("log_file is missing: the log that is to be replayed")
        self.approx_instant_energy = approx_instant_energy
        self.log_file = log_file
        self.ignore_sync_execution = ignore_sync_execution
        self.match_window_name = match_window_name
        self._lines = _lines(log_file)
        self._columns = self._check_columns(next(self._lines, _NOTHING)[1])
        self.device_names = [name for name, column in self._columns if column == "energy"]
        self.gpu_indices = _positions(self.device_names, "gpu")
        self.cpu_indices = _positions(self.device_names, "cpu")
        if gpu_indices is not None and sorted(gpu_indices) != self.gpu_indices:
            raise ConflictError(
                f"{os.fspath(log_file)} has the GPUs {self.gpu_indices}, not {list(gpu_indices)}"
            )
        self.closed = False
        self.in_forked_child = False  # A fork loses nothing here.
        self._open: set[str] = set()
        self._lock = threading.Lock()

    def begin_window(self, key: str, sync_execution: bool = True, restart: bool = False) -> None:
        """Begins a window. ValueError if it is open, unless it is to be restarted."""
        if not isinstance(key, str):
            raise TypeError(f"the name of a window is a string, not {type(key).__name__}")
        self._synchronize(sync_execution)
        with self._lock:
            if key in self._open and not restart:
                raise ReplayError(f'the window "{key}" is open already')
            self._open.add(key)

    def end_window(
        self, key: str, sync_execution: bool = True, cancel: bool = False
    ) -> Measurement:
        """Returns the next line of the log. KeyError (also a ValueError) if it is not open."""
        self._synchronize(sync_execution)
        with self._lock:
            if key not in self._open:
                raise ReplayWindowError(f'no window "{key}" is open')
            self._open.remove(key)
            return self._cancelled(key) if cancel else self._next(key)

    def window(self, name: str, sync_execution: bool = True) -> Window:
        """Returns a window around a block or a function, as ZeusMonitor does."""
        return Window(cast(ZeusMonitor, self), name, sync_execution)

    @property
    def measurement_states(self) -> dict[str, None]:
        """The names of the open windows. What they used is not known before they end."""
        with self._lock:
            return dict.fromkeys(self._open)

    def reset_windows(self) -> None:
        """Forgets all open windows."""
        with self._lock:
            self._open.clear()

    def close(self) -> None:
        """Closes the log."""
        self.closed = True
        self._lines = iter(())

    def __enter__(self) -> ReplayZeusMonitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin_any(self, name: str, sync_execution: bool) -> str:
        self.begin_window(name, sync_execution)
        return name

    def _synchronize(self, sync_execution: bool) -> None:
        if sync_execution and not self.ignore_sync_execution:
            from zeus.utils.framework import sync_imported

            sync_imported(self.gpu_indices)

    def _check_columns(self, header: list[str]) -> list[tuple[str, str]]:
        """Returns the device and the kind of value of each column after the first three."""
        if header[:3] != _FIRST_COLUMNS:
            raise ConflictError(
                f"{os.fspath(self.log_file)} is no log of windows: its first columns are not "
                f"{', '.join(_FIRST_COLUMNS)}"
            )
        return [_column(name) for name in header[3:]]

    def _next(self, key: str) -> Measurement:
        line, row = next(self._lines, _NOTHING)
        if not row:
            raise ConflictError(f'{os.fspath(self.log_file)} has no line left for "{key}"')
        where = f"{os.fspath(self.log_file)}, line {line}"
        if len(row) != 3 + len(self._columns):
            raise ConflictError(
                f"{where}: {len(row)} columns, but the header has {3 + len(self._columns)}"
            )
        if self.match_window_name and row[1] != " ".join(key.split("\n")).replace("\r", " "):
            raise ConflictError(f'{where}: the window is "{row[1]}", not "{key}"')
        try:
            return _measurement(key, row, self._devices(row[3:]))
        except ValueError as error:
            raise ConflictError(f"{where}: {error}") from error

    def _devices(self, cells: list[str]) -> list[dict[str, Any]]:
        values = dict(zip(self._columns, cells))
        flags = values.get(("", "flags"), "").split()
        return [
            _device(name, values[name, "energy"], values.get((name, "sigma"), ""), flags)
            for name in self.device_names
        ]

    def _cancelled(self, key: str) -> Measurement:
        devices = [
            {"device": name, "in_total": True, "reason": "the window was cancelled"}
            for name in self.device_names
        ]
        return _measurement(key, ["0", key, "0"], devices)


def _lines(path: str | os.PathLike[str]) -> Iterator[_Line]:
    """Yields lines lazily."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        for row in reader:
            if row:
                yield reader.line_num, row


def _column(name: str) -> tuple[str, str]:
    """("gpu:0", "energy") for "gpu0_energy", ("rail:VDD_IN", "sigma") for "railVDD_IN_sigma"."""
    device, _, kind = name.rpartition("_")
    for prefix in ("gpu", "cpu", "dram", "rail"):
        if device.startswith(prefix) and kind in ("energy", "sigma"):
            return f"{prefix}:{device[len(prefix):]}", kind
    return "", name


def _positions(names: Sequence[str], kind: str) -> list[int]:
    return [int(name.split(":")[1]) for name in names if name.startswith(kind + ":")]


def _device(name: str, energy: str, sigma: str, flags: list[str]) -> dict[str, Any]:
    if energy == "":
        return {"device": name, "in_total": True, "reason": "the log has no number for it"}
    return {
        "device": name,
        "in_total": True,
        "energy": float(energy),
        "sigma": float(sigma) if sigma else math.nan,
        # These values are not in the log; 0 is the cautious choice for comparisons.
        "shared_sigma": 0.0,
        "attributed": float(energy),
        "source": "counter",
        "updates": 0,
        "flags": flags,
    }


def _measurement(window: str, row: list[str], devices: list[dict[str, Any]]) -> Measurement:
    measurement: Any = Measurement.__new__(Measurement)
    measurement.__setstate__(
        {
            "window": window,
            "start_time": float(row[0]),
            "time": float(row[2]),
            "refined": True,
            "devices": devices,
        }
    )
    return cast(Measurement, measurement)
