"""``python -m zeus.monitor energy`` and ``python -m zeus.monitor power``: from now until Ctrl-C.

Exit code: 0 when it was ended by Ctrl-C or after ``--seconds``, 1 when nothing can be measured or
printed, 2 for a wrong command line, 130 for a Ctrl-C before anything was measured.
``zeus monitor`` and ``zeus run`` do more.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from typing import Sequence

from zeus import _core
from zeus.errors import ZeusError
from zeus.monitor import PowerDomain, PowerMonitor, ZeusMonitor
from zeus.show_env import printing

_WINDOW = "zeus.monitor.energy"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    return printing(lambda: _run(_parser().parse_args(arguments)))


def _run(options: argparse.Namespace) -> int:
    try:
        return _power(options) if options.what == "power" else _energy(options)
    except (ZeusError, ValueError) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # Nothing was measured yet.
        return 130


def _energy(options: argparse.Namespace) -> int:
    with ZeusMonitor(gpu_indices=options.gpu_indices) as monitor:
        monitor.begin_window(_WINDOW, sync_execution=False)
        _wait(options.seconds)
        measurement = monitor.end_window(_WINDOW, sync_execution=False).refined()
    print(measurement)
    for device in measurement.devices.values():
        known = _core.with_sigma(device.energy, device.sigma, "J")
        print(f"  {device.device}: {device.reason or known}")
    return 0


def _power(options: argparse.Namespace) -> int:
    domain = PowerDomain(options.power_domain)
    monitor = PowerMonitor(
        options.gpu_indices, update_period=options.update_period, power_domains=[domain]
    )
    with monitor:
        silent: set[int] = set()  # GPUs that failed to answer at least once.

        def ask() -> dict[int, float]:
            power = monitor.get_power(power_domain=domain) or {}
            silent.update(gpu for gpu, watts in power.items() if math.isnan(watts))
            return power

        begin = time.time()
        deadline = math.inf if options.seconds is None else begin + options.seconds
        try:
            while (left := deadline - time.time()) > 0:
                print(_line(ask()), flush=True)
                time.sleep(min(options.update_period, left))
        except KeyboardInterrupt:
            pass
        ask()
        energy = monitor.get_energy(begin, time.time(), domain) or {}
    print(_total(energy, silent))
    return 0


def _total(energy: dict[int, float], silent: set[int]) -> str:
    """Returns the total; a GPU that did not always answer counts with its known part."""
    known = {gpu: joules for gpu, joules in energy.items() if not math.isnan(joules)}
    parts = (
        f"gpu:{gpu} " + (f"{known[gpu]:.1f} J" if gpu in known else "unknown") for gpu in energy
    )
    total = f"Total energy: {sum(known.values()):.1f} J ({', '.join(parts)})"
    gaps = ", ".join(f"gpu:{gpu}" for gpu in energy if gpu in silent or gpu not in known)
    return f"{total}, incomplete: {gaps} did not always answer" if gaps else total


def _line(power: dict[int, float]) -> str:
    parts = (
        f"gpu:{gpu} {'does not answer' if math.isnan(watts) else f'{watts:.1f} W'}"
        for gpu, watts in power.items()
    )
    return time.strftime("%H:%M:%S  ") + "  ".join(parts)


def _wait(seconds: float | None) -> None:
    try:
        print("Measuring; Ctrl-C ends it.", flush=True)
        if seconds is not None:
            time.sleep(seconds)
        else:
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        pass


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 1e9:
        raise argparse.ArgumentTypeError(f"takes a number of seconds above 0, not {text!r}")
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m zeus.monitor", description="Measures from now until Ctrl-C."
    )
    verbs = parser.add_subparsers(dest="what", required=True)
    energy = verbs.add_parser("energy", help="time and energy of all devices")
    power = verbs.add_parser("power", help="the power of GPUs, again and again")
    for verb in (energy, power):
        verb.add_argument(
            "--gpu-indices",
            type=int,
            nargs="+",
            metavar="GPU",
            help="positions among the GPUs that can be seen (all)",
        )
        verb.add_argument("--seconds", type=_seconds, help="end after so long")
    power.add_argument(
        "--update-period", type=_seconds, default=1.0, help="seconds between two lines (1)"
    )
    power.add_argument(
        "--power-domain",
        choices=[domain.value for domain in PowerDomain],
        default=PowerDomain.DEVICE_INSTANT.value,
        help="which power (device_instant)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
