from __future__ import annotations

from typing import Any

class DeviceEnergy:
    """The energy of one device with one standard deviation, or the reason why it is unknown."""

    @property
    def device(self) -> str:
        """For example ``gpu:0``."""
    @property
    def energy(self) -> float:
        """Joules; not a number if the device could not be read."""
    @property
    def sigma(self) -> float:
        """One standard deviation, everything included, in joules."""
    @property
    def attributed(self) -> float:
        """This window's part where several windows or processes used the device at once."""
    @property
    def source(self) -> str | None:
        """``counter``, ``integrated`` or ``model``."""
    @property
    def coverage(self) -> float | None:
        """Share of the window that the sensor observed, 0 to 1."""
    @property
    def updates(self) -> int | None:
        """New values that the sensor showed inside the window."""
    @property
    def update_period(self) -> float | None:
        """Update period of the sensor in seconds."""
    @property
    def flags(self) -> list[str]:
        """Remarks on the quality: ``short_window``, ``throttled``, ..."""
    @property
    def reason(self) -> str | None:
        """Why there is no number; None if there is one."""
    @property
    def in_total(self) -> bool:
        """False for a rail that contains other devices of the list."""

class Measurement:
    """Time and energy of one window. Prints like ``1234 ± 31 J over 10.2 s (gpu:0)``."""

    def __init__(
        self,
        time: float,
        gpu_energy: dict[int, float],
        cpu_energy: dict[int, float] | None = None,
        dram_energy: dict[int, float] | None = None,
        soc_energy: dict[str, float] | None = None,
        window: str = "",
    ) -> None: ...
    @property
    def window(self) -> str:
        """Its name."""
    @property
    def start_time(self) -> float:
        """Seconds since 1970. Labels the record; `time` knows nothing of it."""
    @property
    def time(self) -> float:
        """Seconds of a monotonic clock."""
    @property
    def gpu_energy(self) -> dict[int, float]:
        """Joules by index; not a number for a GPU that could not be read: see `devices`."""
    @property
    def cpu_energy(self) -> dict[int, float] | None:
        """Joules by index of the package; None where no CPU is measured."""
    @property
    def dram_energy(self) -> dict[int, float] | None:
        """Joules by index of the package; None where no memory is measured."""
    @property
    def soc_energy(self) -> dict[str, float] | None:
        """Joules by name of the board's rail; None where there are none."""
    @property
    def total_energy(self) -> float:
        """Joules of all devices together; not a number when one of them could not be read."""
    @property
    def total_sigma(self) -> float:
        """One standard deviation of `total_energy`."""
    @property
    def devices(self) -> dict[str, DeviceEnergy]:
        """By name: ``measurement.devices["gpu:0"].sigma``."""
    @property
    def is_refined(self) -> bool:
        """False as long as the sensors have yet to show what happened at the window's end."""
    def refined(self, timeout: float = 2.0) -> Measurement:
        """The final result, which sensors show one to two updates later. Waits for it."""
    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON would have it."""
    def to_json(self) -> str:
        """One line; unknown numbers are null."""
    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each device. Needs pandas."""

class Monitor:
    """The native part of ZeusMonitor."""

    def __init__(
        self,
        gpus: list[int] | None,
        cpus: list[int] | None,
        share: bool,
        log: tuple[bytes, bool, bool],
        framework: str,
    ) -> None: ...
    def begin_window(
        self, key: str, sync_execution: bool = True, restart: bool = False
    ) -> None:
        """Begins to measure. Windows may nest and overlap, also between threads.

        `sync_execution` waits for the work of torch, JAX or CuPy first, if the program uses one of
        them. A window of this name that is open is a ValueError, unless it is to be restarted.
        """
    def end_window(
        self, key: str, sync_execution: bool = True, cancel: bool = False
    ) -> Measurement:
        """Time and energy since begin_window(), as well as known at this moment.

        Measurement.refined() is the final result. A window that is cancelled has no energy and
        leaves no line in the log. KeyError (a ValueError, too) if no such window is open.
        """
    def _begin_window(self, key: str, sync_execution: bool, restart: bool) -> None: ...
    def _end_window(self, key: str, sync_execution: bool, cancel: bool) -> Measurement: ...
    def peek_window(self, key: str) -> Measurement:
        """Returns the energy of an open window so far. It stays open."""
    @property
    def open_windows(self) -> list[str]:
        """The names of the open windows, sorted."""
    def reset_windows(self) -> None:
        """Forgets all open windows."""
    def close(self) -> None:
        """Ends the recording. Open windows are forgotten, and whatever uses the monitor ends."""
    @property
    def closed(self) -> bool:
        """Whether close() was called."""
    @property
    def in_forked_child(self) -> bool:
        """Whether this is a fork of the process that made it: then it cannot be used."""
    @property
    def _edges_after_work(self) -> int:
        """Number of edges of windows right before which a wait for work ended; for tests."""
    @property
    def device_names(self) -> list[str]:
        """For example ``["gpu:0", "cpu:0", "dram:0"]``."""
    @property
    def absent(self) -> list[tuple[str, str, str]]:
        """Devices that were looked for but are absent: what, reason, and fix."""
