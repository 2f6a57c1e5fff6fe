"""How much energy does training take? Windows around epochs and validation.

A small network is trained for real on the CPU, while a simulated GPU does the steps of a large one.
On a machine with GPUs of its own: leave the node out, and train on them.
"""

from __future__ import annotations

import argparse

import zeus.sim
from digits import Learner
from zeus.monitor import ZeusMonitor


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", default="A100", help="model to simulate (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--log", help="write every window to this file")
    return parser.parse_args()


def main() -> None:
    args = parse()
    with zeus.sim.here(args.gpu, time_scale=20) as node:
        gpu = node.run("resnet50", batch_size=256)
        monitor = ZeusMonitor(log_file=args.log)
        learner = Learner(args.batch_size)

        monitor.begin_window("training")
        for epoch in range(1, args.epochs + 1):
            with monitor.window("epoch") as steps:
                for batch in learner.batches():
                    gpu.step(lambda: learner.step(batch))
            with monitor.window("validation") as validation:
                accuracy = gpu.step(0.3, learner.accuracy)
            print(f"epoch {epoch}: accuracy {accuracy:.3f}, {steps}, validation {validation}")

        training = monitor.end_window("training").refined()
        print(f"training: {training}")
        for name, device in training.devices.items():
            watts = device.energy / training.time
            print(f"{name}: {watts:.0f} W on average, seen by its {device.source}")


if __name__ == "__main__":
    main()
