"""The surroundings in which programs see a simulated node: directories and environment."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile

from zeus.errors import ConflictError

_UNINITIALIZED = 1  # What NVML answers to somebody who asks before nvmlInit().


class Surroundings:
    """Directories of its own and an environment that points there, until `leave`."""

    def __init__(self, node: str, library: str) -> None:
        #: The process whose surroundings they are; a child that was forked must leave them alone.
        self.process = os.getpid()
        shared_memory = "/dev/shm"
        self._directory = tempfile.mkdtemp(
            prefix="zeus-sim-python-",
            dir=shared_memory if os.access(shared_memory, os.W_OK) else None,
        )
        self._before: dict[str, str | None] = {}
        # Simulated GPUs of other nodes have the same UUIDs: who uses them is nobody else's business.
        for variable in ("ZEUS_SIM_DIR", "ZEUS_ACTIVITY_DIR", "ZEUS_KNOB_DIR"):
            path = os.path.join(self._directory, variable.lower())
            os.mkdir(path)
            self._set(variable, path)
        self._set("ZEUS_SIM_NODE", node)
        self._set("ZEUS_NVML_LIBRARY", library)
        self._set("CUDA_VISIBLE_DEVICES", None)  # Was meant for the GPUs of the machine.
        # Too late for this process, in time for those that it starts.
        paths = [os.path.dirname(library), os.environ.get("LD_LIBRARY_PATH", "")]
        self._set("LD_LIBRARY_PATH", ":".join(path for path in paths if path))

    def _set(self, variable: str, value: str | None) -> None:
        self._before[variable] = os.environ.get(variable)
        _assign(variable, value)

    def leave(self) -> None:
        """The environment is as it was, and the directories are gone."""
        for variable, value in self._before.items():
            _assign(variable, value)
        shutil.rmtree(self._directory, ignore_errors=True)


def check_library_is_free(library: str) -> None:
    """Raises ConflictError while something in this process still uses the GPUs of another node.

    The library shows one node from the first nvmlInit() to the last nvmlShutdown().
    """
    try:
        loaded = ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return  # Nobody has loaded it.
    count = ctypes.c_uint()
    if loaded.nvmlDeviceGetCount_v2(ctypes.byref(count)) != _UNINITIALIZED:
        raise ConflictError(
            "the GPUs of an earlier simulated node are still in use here: close what was opened "
            "on it (nvmlShutdown() for other users of NVML) before another node starts"
        )


def _assign(variable: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = value
