"""A job that is trained again and again, each time with a batch size that suits it better.

A `zeus serve` remembers what each run cost, in time and energy, and tells the next one which batch
size to use. Here it is started for the example; usually it runs somewhere for all jobs.
"""

from __future__ import annotations

import argparse

import zeus.sim
from digits import Learner
from zeus.monitor import ZeusMonitor
from zeus.optimizer.batch_size import BatchSizeOptimizer, JobSpec, LocalServer


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", default="V100", help="model to simulate (default: %(default)s)")
    parser.add_argument("--recurrences", type=int, default=6)
    parser.add_argument("--target", type=float, default=0.9, help="accuracy to reach")
    parser.add_argument("--eta", type=float, default=0.5, help="0: time counts, 1: energy counts")
    parser.add_argument("--server", help="URL of a zeus serve (default: one of its own)")
    return parser.parse_args()


def train(node: zeus.sim.Node, monitor: ZeusMonitor, server_url: str, job: JobSpec) -> float:
    """Runs until the target and returns the cost in joules."""
    with BatchSizeOptimizer(monitor, server_url, job, raise_on_failure=False) as optimizer:
        batch_size = optimizer.get_batch_size()
        learner = Learner(batch_size, seed=optimizer.recurrence)
        # Small batches leave the GPU waiting for its memory.
        gpu = node.run(operations=4e11 * batch_size, bytes=1e11)
        optimizer.on_train_begin()
        with monitor.window("run") as run:
            epochs = 0
            while not optimizer.training_finished:
                for batch in learner.batches():
                    gpu.step(lambda: learner.step(batch))
                optimizer.on_evaluate(learner.accuracy())
                epochs += 1
        gpu.close()
        print(f"run {optimizer.recurrence + 1}: batch size {batch_size:3}, {epochs} epochs, {run}: "
              f"{optimizer.message}")
        return run.measurement.total_energy


def main() -> None:
    args = parse()
    with zeus.sim.here(args.gpu, time_scale=50) as node, LocalServer() as server:
        monitor = ZeusMonitor(cpu_indices=[])
        job = JobSpec(
            job_id="digits",
            job_id_prefix="digits",
            batch_sizes=[16, 32, 64, 128],
            default_batch_size=16,
            target_metric=args.target,
            eta_knob=args.eta,
            max_epochs=20,
            mab_seed=1,
        )
        url = args.server or server.url
        costs = [train(node, monitor, url, job) for _ in range(args.recurrences)]
        print(f"first run {costs[0]:.0f} J, best {min(costs):.0f} J, last {costs[-1]:.0f} J")


if __name__ == "__main__":
    main()
