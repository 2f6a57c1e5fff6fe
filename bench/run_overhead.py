#!/usr/bin/env python3
"""Measures what `zeus run -- true` adds to the bare command, both measured in turns in one run.

usage: bench/run_overhead.py [ZEUS [ROUNDS]]   in an environment with devices: eval "$(zeus sim env)"
"""
import resource
import statistics
import subprocess
import sys
import time


def spent(command: list[str]) -> tuple[float, float]:
    """Milliseconds of wall time and of CPU time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return 1e3 * wall, 1e3 * cpu


def main() -> int:
    zeus = sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/zeus"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    bare, wrapped = [], []
    for _ in range(rounds):  # In turns: what else the machine does hits both.
        bare.append(spent(["true"]))
        wrapped.append(spent([zeus, "run", "--", "true"]))
    for index, kind in enumerate(("wall", "CPU")):
        added = [with_zeus[index] - without[index] for with_zeus, without in zip(wrapped, bare)]
        quartiles = statistics.quantiles(added, n=4)
        print(f"{kind:4} time: true {statistics.median(row[index] for row in bare):6.2f} ms,"
              f" zeus run -- true {statistics.median(row[index] for row in wrapped):6.2f} ms,"
              f" added {statistics.median(added):6.2f} ms"
              f" (quartiles {quartiles[0]:.2f} to {quartiles[-1]:.2f}; mean"
              f" {statistics.mean(added):.2f})")
    print(f"medians of {rounds} runs each, in turns")
    return 0


if __name__ == "__main__":
    sys.exit(main())
