"""The environment in which programs see a simulated node: directories and variables."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile

from zeus.errors import ConflictError

_UNINITIALIZED = 1  # NVML's answer to calls before nvmlInit().


class Surroundings:
    """Own directories, and variables that point to them, until `leave`."""

    def __init__(self, node: str, library: str) -> None:
        #: The process that made them; a forked child must not touch them.
        self.process = os.getpid()
        shared_memory = "/dev/shm"
        self._directory = tempfile.mkdtemp(
            prefix="zeus-sim-python-",
            dir=shared_memory if os.access(shared_memory, os.W_OK) else None,
        )
        self._before: dict[str, str | None] = {}
        # Simulated GPUs of other nodes have the same UUIDs, so this node needs folders of its own.
        for variable in ("ZEUS_SIM_DIR", "ZEUS_ACTIVITY_DIR", "ZEUS_KNOB_DIR"):
            path = os.path.join(self._directory, variable.lower())
            os.mkdir(path)
            self._set(variable, path)
        self._set("ZEUS_SIM_NODE", node)
        self._set("ZEUS_NVML_LIBRARY", library)
        self._set("CUDA_VISIBLE_DEVICES", None)  # It selected GPUs of the machine, not of the node.
        # This comes too late for this process, but in time for its children.
        paths = [os.path.dirname(library), os.environ.get("LD_LIBRARY_PATH", "")]
        self._set("LD_LIBRARY_PATH", ":".join(path for path in paths if path))

    def _set(self, variable: str, value: str | None) -> None:
        self._before[variable] = os.environ.get(variable)
        _assign(variable, value)

    def leave(self) -> None:
        """Restores the environment and deletes the directories."""
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
        return  # The library is not loaded.
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
