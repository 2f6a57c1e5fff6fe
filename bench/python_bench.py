#!/usr/bin/python3
"""Measures what Zeus costs a Python program, beside a bare function call in the same run.

usage: ./dev bench python [--json] [--rounds N]

Windows and steps run on eight simulated A100; importing is measured in fresh processes, in turns
with a bare interpreter.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Callable, Iterator

BUILD = pathlib.Path(__file__).resolve().parent.parent
ZEUS = BUILD / "bin/zeus"
sys.path.insert(0, str(BUILD / "python"))

# The promises of docs/python.md.
TARGETS = {
    "window p50": 3.0,
    "step when done p50": 0.3,
    "epoch, server hangs p99": 1000.0,
    "import time": 50.0,
    "import memory": 15.0,
}
IMPORT = """
import sys, time
sys.path.insert(0, sys.argv[1])
begin, worked = time.perf_counter(), time.process_time()
{statement}
took, worked = time.perf_counter() - begin, time.process_time() - worked
resident = next(line for line in open("/proc/self/status") if line.startswith("VmRSS"))
print(1e3 * took, 1e3 * worked, int(resident.split()[1]) / 1024)
"""


@contextlib.contextmanager
def simulated_node(gpus: str) -> Iterator[None]:
    """This process sees these GPUs and no others."""
    with tempfile.TemporaryDirectory(prefix="zeus-bench-") as folder:
        for variable in ("ZEUS_SIM_DIR", "ZEUS_ACTIVITY_DIR", "ZEUS_KNOB_DIR", "ZEUS_PROFILE_DIR"):
            os.environ[variable] = os.path.join(folder, variable.lower())
            os.mkdir(os.environ[variable])
        subprocess.run([ZEUS, "sim", "start", "--gpus", gpus], check=True, stdout=subprocess.DEVNULL)
        try:
            printed = subprocess.run([ZEUS, "sim", "env"], check=True, capture_output=True, text=True)
            for line in printed.stdout.splitlines():
                name, value = line.removeprefix("export ").split("=", 1)
                if name != "LD_LIBRARY_PATH":  # Too late for a process that runs.
                    os.environ[name] = value.strip("'")
            yield
        finally:
            subprocess.run([ZEUS, "sim", "stop"], check=True, stdout=subprocess.DEVNULL)


def microseconds(action: Callable[[], object], rounds: int) -> dict[str, float]:
    """Returns percentiles of the time of each call."""
    clock = time.perf_counter_ns
    took = []
    for _ in range(rounds):
        begin = clock()
        action()
        took.append(clock() - begin)
    cuts = statistics.quantiles(took, n=100)
    return {"p50": cuts[49] / 1e3, "p90": cuts[89] / 1e3, "p99": cuts[98] / 1e3}


def batched_microseconds(action: Callable[[], object], rounds: int, batch: int = 1000) -> dict[str, float]:
    """Returns percentiles of the means of batches, for calls that are shorter than reading the clock."""
    clock = time.perf_counter_ns
    turns = range(batch)
    took = []
    for _ in range(max(100, rounds // batch)):
        begin = clock()
        for _ in turns:
            action()
        took.append((clock() - begin) / batch)
    cuts = statistics.quantiles(took, n=100)
    return {"p50": cuts[49] / 1e3, "p90": cuts[89] / 1e3, "p99": cuts[98] / 1e3}


def window_figures(rounds: int) -> dict[str, dict[str, float]]:
    from zeus.monitor import ZeusMonitor
    with ZeusMonitor(cpu_indices=[]) as monitor:
        begin, end = monitor.begin_window, monitor.end_window

        def window() -> None:
            begin("step")
            end("step")

        def block() -> None:
            with monitor.window("step"):
                pass

        window()
        return {"window": microseconds(window, rounds), "with block": microseconds(block, rounds)}


def step_figures(rounds: int) -> dict[str, dict[str, float]]:
    """A step of the power-limit optimiser that has decided, as it is for most of a training."""
    from zeus.monitor import ZeusMonitor
    from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer
    with tempfile.TemporaryDirectory(prefix="zeus-bench-") as folder:
        profile = os.path.join(folder, "profile.json")
        measurements = [{"power_limit": limit, "energy": 1e3 + abs(limit - 250), "time": 500 / limit}
                        for limit in range(400, 99, -25)]
        with open(profile, "w") as file:
            json.dump({"measurements": measurements}, file)
        with ZeusMonitor(cpu_indices=[]) as monitor:
            optimizer = GlobalPowerLimitOptimizer(monitor, profile_path=profile)
            if type(optimizer.state).__name__ != "Done":
                raise SystemExit(f"the optimiser has not decided: {optimizer.state}")

            def step() -> None:  # As programs call it, with its name looked up each time.
                optimizer.on_step_begin()

            return {"step when done": batched_microseconds(step, rounds * 10)}


def epoch_figures(rounds: int) -> dict[str, dict[str, float]]:
    """on_evaluate() of a training whose server answers, and of one whose server hangs."""
    import signal

    from zeus.monitor import ZeusMonitor
    from zeus.optimizer.batch_size import BatchSizeOptimizer, JobSpec, LocalServer
    figures = {}
    for name in ("epoch, server answers", "epoch, server hangs"):
        job = JobSpec("bench", [32], 32, "bench-1", policy="default", beta_knob=None,
                      max_epochs=1_000_000)
        with tempfile.TemporaryDirectory(prefix="zeus-bench-") as folder:
            os.environ["XDG_DATA_HOME"] = folder
            with LocalServer() as server, ZeusMonitor([0], []) as monitor:
                optimizer = BatchSizeOptimizer(monitor, server.url, job, end_timeout=0.1)
                optimizer.on_train_begin()
                if name.endswith("hangs"):
                    # Its connections are accepted by the system, and never answered.
                    server.process.send_signal(signal.SIGSTOP)
                figures[name] = microseconds(lambda: optimizer.on_evaluate(0.1), rounds)
                optimizer.close()
                server.process.send_signal(signal.SIGCONT)
    return figures


def import_figures(rounds: int) -> dict[str, float]:
    """Milliseconds, those of them that it computes, and megabytes above a bare interpreter."""
    figures: dict[str, list[list[float]]] = {"pass": [], "import zeus.monitor": []}
    for _ in range(rounds):
        for statement, measured in figures.items():
            printed = subprocess.run(
                [sys.executable, "-I", "-c", IMPORT.format(statement=statement), BUILD / "python"],
                check=True, capture_output=True, text=True).stdout
            measured.append([float(figure) for figure in printed.split()])
    bare, imported = ([statistics.median(column) for column in zip(*rows)]
                      for rows in figures.values())
    names = ("import time", "import CPU time", "import memory")
    return {name: with_zeus - without for name, with_zeus, without in zip(names, imported, bare)}


def bare_call() -> None:
    pass


def measured(rounds: int) -> dict[str, float]:
    """All figures by name: microseconds, milliseconds for time and megabytes for memory."""
    with simulated_node("8xA100"):
        calls = {"bare call": batched_microseconds(bare_call, rounds * 10),
                 **window_figures(rounds), **step_figures(rounds),
                 **epoch_figures(max(100, rounds // 20))}
    flat = {f"{what} {percentile}": figure
            for what, row in calls.items() for percentile, figure in row.items()}
    return {**flat, **import_figures(max(5, min(15, rounds // 100)))}


def unit(name: str) -> str:
    return {"import time": "ms", "import CPU time": "ms", "import memory": "MB"}.get(name, "us")


def print_table(figures: dict[str, float]) -> None:
    call = figures["bare call p50"]
    print(f"{'what':26} {'figure':>12} {'target':>10} {'bare calls':>11}")
    for name, figure in figures.items():
        target = f"{TARGETS[name]:g} {unit(name)}" if name in TARGETS else ""
        ratio = f"{figure / call:.1f}" if unit(name) == "us" else ""
        missed = "  missed" if name in TARGETS and figure > TARGETS[name] else ""
        print(f"{name:26} {figure:9.3f} {unit(name)} {target:>10} {ratio:>11}{missed}")
    print("windows and steps on eight simulated A100; importing above a bare interpreter (medians)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="figures and targets as JSON")
    parser.add_argument("--rounds", type=int, default=20000, help="windows to measure (20000)")
    options = parser.parse_args()
    figures = measured(options.rounds)
    if options.json:
        print(json.dumps({"figures": figures, "targets": TARGETS}, indent=2))
    else:
        print_table(figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
