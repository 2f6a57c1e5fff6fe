"""Finds the best power limit while a network trains, and prints how much that saves.

The limits are tried between steps, a few steps each; then the best one stays, and the original
limit is restored when the training ends. Limits do not change what the network learns, only its
speed and its power.
"""

from __future__ import annotations

import argparse

import zeus.sim
from digits import Learner
from zeus.monitor import ZeusMonitor
from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer, MaxSlowdownConstraint, ZeusCost


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", default="V100", help="model to simulate (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--eta", type=float, default=0.5, help="0: time counts, 1: energy counts")
    parser.add_argument("--max-slowdown", type=float, help="instead: the least power within it")
    return parser.parse_args()


def main() -> None:
    args = parse()
    selector = MaxSlowdownConstraint(args.max_slowdown) if args.max_slowdown else ZeusCost(args.eta)
    with zeus.sim.here(args.gpu, time_scale=20) as node:
        gpu = node.run("resnet50", batch_size=256)
        monitor = ZeusMonitor(cpu_indices=[])
        optimizer = GlobalPowerLimitOptimizer(
            monitor, selector, warmup_steps=2, profile_steps=6)
        learner = Learner(args.batch_size)

        for epoch in range(1, args.epochs + 1):
            optimizer.on_epoch_begin()
            with monitor.window("epoch") as window:
                for batch in learner.batches():
                    optimizer.on_step_begin()
                    gpu.step(lambda: learner.step(batch))
                    optimizer.on_step_end()
            optimizer.on_epoch_end()
            print(f"epoch {epoch}: accuracy {learner.accuracy():.3f}, {window}")
        optimizer.on_train_end()

        for tried in optimizer.measurements:
            print(f"{tried.power_limit:4} W: {tried.time:.3f} s, {tried.energy:.1f} J")
        if optimizer.optimal_power_limit is None:
            raise SystemExit("limits are still being tried: train longer (--epochs)")
        print(f"chosen: {optimizer.optimal_power_limit} W")
        print(f"saved: {optimizer.savings()}")


if __name__ == "__main__":
    main()
