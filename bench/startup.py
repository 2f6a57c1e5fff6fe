#!/usr/bin/env python3
"""Measures how long `zeus` takes to start: processor time and page faults of short commands, in turns with `true`.

usage: ./dev bench startup [--zeus FILE] [--rounds N]
"""
import argparse
import os
import pathlib
import shutil
import statistics
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def spent(command: list[str], environment: dict[str, str]) -> tuple[float, float, int]:
    """Milliseconds of processor time and of wall time, and the page faults, of a command and its children."""
    silent = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)]
    begin = os.times().elapsed
    pid = os.posix_spawn(command[0], command, environment, file_actions=silent)
    _, status, usage = os.wait4(pid, 0)
    wall = os.times().elapsed - begin
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return 1e3 * (usage.ru_utime + usage.ru_stime), 1e3 * wall, usage.ru_minflt


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zeus", type=pathlib.Path, default=HERE.parent / "bin/zeus", metavar="FILE")
    parser.add_argument("--rounds", type=int, default=100, metavar="N")
    options = parser.parse_args()
    zeus = str(options.zeus)
    bare = [shutil.which("true") or "/bin/true"]
    commands = {
        "true": bare,
        "zeus --version": [zeus, "--version"],
        "zeus run -- true": [zeus, "run", "--", *bare],
        "zeus slurm prolog, without a daemon": [zeus, "slurm", "prolog"],
        "zeus --help (all options)": [zeus, "--help"],
    }
    with tempfile.TemporaryDirectory(prefix="zeus-startup-") as folder:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ZEUS")}
        environment |= {"ZEUS_SIM_DIR": folder, "XDG_DATA_HOME": folder, "SLURM_JOB_ID": "1", "SLURM_JOB_UID": "0",
                       "SLURM_JOB_USER": "root", "SLURM_JOB_PARTITION": "p", "SLURM_JOB_ACCOUNT": "a"}
        measured: dict[str, list[tuple[float, float, int]]] = {name: [] for name in commands}
        for _ in range(options.rounds):  # In turns: what else the machine does hits all of them.
            for name, command in commands.items():
                measured[name].append(spent(command, environment))
    true = statistics.median(row[0] for row in measured["true"])
    print(f"{'':38} {'CPU':>9} {'added':>9} {'of true':>8} {'least':>9} {'faults':>7}")
    for name, rows in measured.items():
        cpu = statistics.median(row[0] for row in rows)
        print(f"{name:38} {cpu:6.2f} ms {cpu - true:6.2f} ms {cpu / true:7.1f}x {min(row[0] for row in rows):6.2f} ms"
              f" {statistics.median(row[2] for row in rows):7.0f}")
    print(f"medians of {options.rounds} runs each, in turns; least: the fastest of them")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
