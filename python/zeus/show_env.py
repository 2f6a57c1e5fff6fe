"""``python -m zeus.show_env``: shows what this Python and this machine offer, with reasons.

Exit code: 0 when the energy of at least one device can be read, 1 otherwise. ``zeus doctor`` also
watches the sensors at work.
"""

from __future__ import annotations

import importlib.util
import io
import os
import platform
import sys
from typing import TYPE_CHECKING, Callable

from zeus.errors import ZeusError

if TYPE_CHECKING:
    from zeus.device.gpu import GPU

__all__ = ["main", "printing", "show_env"]

_FRAMEWORKS = ("torch", "jax", "cupy")
_EXTRAS = ("pandas", "transformers", "lightning")
_VISIBILITY = (
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)


def show_env() -> str:
    """Returns the report."""
    sections: list[tuple[str, Callable[[], list[str]]]] = [
        ("Packages", _packages),
        ("Environment", _environment),
        ("GPUs", _gpus),
        ("CPUs", _cpus),
        ("Board", _board),
        ("zeusd", _zeusd),
        ("Not there", _absent),
    ]
    return "\n\n".join("\n".join([title, *_indented(lines)]) for title, lines in sections)


def main() -> int:
    """Prints the report."""

    def run() -> int:
        print(show_env())
        return 0 if _anything() else 1

    return printing(run)


def printing(command: Callable[[], int]) -> int:
    """Returns the exit code of a command that prints: 1 if nothing can be printed.

    Characters that a terminal cannot show are printed as Python would write them.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            return command()
        finally:
            if sys.stdout is not None:  # It is None after >&-.
                sys.stdout.flush()
    except ZeusError:  # Some are also errors of the system.
        raise
    except OSError as failure:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # The rest of the buffer must not fail again when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(failure, BrokenPipeError):  # The reader has seen enough.
            print(f"error: the output cannot be written: {failure.strerror}", file=sys.stderr)
        return 1


def _indented(lines: Callable[[], list[str]]) -> list[str]:
    try:
        found = lines()
    except ZeusError as failure:
        found = [str(failure)]
    return ["  " + line for line in found or ["none"]]


def _packages() -> list[str]:
    import zeus

    lines = [f"zeus {zeus.__version__}", f"Python {platform.python_version()} ({sys.executable})"]
    for name in _FRAMEWORKS + _EXTRAS:
        lines.append(f"{name} {_version(name) or 'is not installed (not needed)'}")
    return lines


def _environment() -> list[str]:
    """Returns variables that decide what is visible; possible secrets are hidden."""
    return [
        f"{name}={'(set)' if 'TOKEN' in name or 'KEY' in name else value}"
        for name, value in sorted(os.environ.items())
        if name in _VISIBILITY or name.startswith("ZEUS")
    ]


def _version(package: str) -> str | None:
    """Returns a version without importing the package: torch alone takes a second."""
    from importlib import metadata

    if importlib.util.find_spec(package) is None:
        return None
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _gpus() -> list[str]:
    from zeus.device import get_gpus

    lines: list[str] = []
    for gpu in get_gpus():
        lines += _gpu(gpu)
    return lines


def _gpu(gpu: GPU) -> list[str]:
    counts = _try(gpu.supports_get_total_energy_consumption)
    power = _try(lambda: f"{gpu.get_instant_power_usage() / 1000:.1f} W") or "not told"
    return [
        f"{gpu.gpu_index}: {gpu.get_name()}, {gpu.uuid} at {gpu.pci_address}",
        f"   energy counter: {'yes' if counts else 'no'}; power now: {power}",
        f"   power limit: {_try(lambda: _limit(gpu)) or 'not told'}",
    ]


def _limit(gpu: GPU) -> str:
    low, high = gpu.get_power_management_limit_constraints()
    now, default = gpu.get_power_management_limit(), gpu.get_default_power_management_limit()
    watts = [f"{milliwatts / 1000:g} W" for milliwatts in (now, low, high, default)]
    return "{} of {} to {}, {} by default".format(*watts)


def _cpus() -> list[str]:
    from zeus.device import get_cpus

    return [
        f"{cpu.cpu_index}: {cpu.model or 'unknown model'}, by {cpu.source}, "
        + ("with its memory" if cpu.supports_get_dram_energy_consumption() else "without memory")
        for cpu in get_cpus()
    ]


def _board() -> list[str]:
    from zeus.device.discovery import find_devices

    return [
        f"{rail.name}{' (the whole board)' if rail.is_total else ''}"
        for rail in find_devices().rails
    ]


def _zeusd() -> list[str]:
    from zeus.utils.zeusd import ZeusdClient, ZeusdConfig

    config = ZeusdConfig.from_env()
    if config is None:
        return ["none: ZEUSD_SOCK_PATH and ZEUSD_HOST_PORT are not set"]
    daemon = ZeusdClient(config)
    allowed = {
        "read GPUs": daemon.can_read_gpu,
        "control GPUs": daemon.can_control_gpu,
        "read CPUs": daemon.can_read_cpu,
    }
    return [
        f"{config.endpoint}, GPUs {daemon.gpu_ids}, CPUs {daemon.cpu_ids}",
        "may " + (", ".join(what for what, may in allowed.items() if may) or "do nothing here"),
    ]


def _absent() -> list[str]:
    from zeus.device.discovery import find_devices

    return [
        f"{what}: {why}" + (f"\n     to change it: {fix}" if fix else "")
        for what, why, fix in find_devices().absent
    ]


def _anything() -> bool:
    from zeus.device.discovery import find_devices

    try:
        devices = find_devices()
    except ZeusError:
        return False
    return bool(devices.gpus or devices.cpus or devices.rails)


def _try(question: Callable[[], object]) -> object:
    try:
        return question()
    except ZeusError:
        return None


if __name__ == "__main__":
    sys.exit(main())
