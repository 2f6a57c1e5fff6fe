#!/usr/bin/env python3
"""A training program to copy, for `zeus train`: it needs Python and no package.

It learns to read noisy digits of a seven-segment display with softmax regression, on the CPU, and
prints val_acc=… after each epoch, which `zeus train --metric-regex` reads. In an environment with a
simulated GPU (eval "$(zeus sim env)") that GPU does the steps of ShuffleNet meanwhile, and an epoch
lasts as long as it needs for them at its present power limit. On a machine with a GPU of its own,
replace Gpu.run() by a training step there.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import subprocess

SEGMENTS = [
    "abcdef", "bc", "abdeg", "abcdg", "bcfg", "acdfg", "acdefg", "abc", "abcdefg", "abcdfg",
]
NOISE = 0.4
SAMPLES = 1024  # Samples per epoch.


class Gpu:
    """The first simulated GPU, loaded in the background; does nothing if there is none."""

    def __init__(self, batch_size: int) -> None:
        self.load = None
        self.steps = 0.0
        if "ZEUS_SIM_NODE" not in os.environ:
            return
        zeus = os.environ.get("ZEUS_COMMAND", "zeus")
        self.load = subprocess.Popen(
            [zeus, "sim", "load", "--gpu", "0", "--workload", "shufflenet",
             "--batch-size", str(batch_size), "--progress"],
            stdout=subprocess.PIPE, text=True)

    def run(self, steps: float) -> None:
        """Waits until the GPU has done `steps` more steps."""
        if self.load is None or self.load.stdout is None:
            return
        wanted = self.steps + steps
        while self.steps < wanted:
            line = self.load.stdout.readline()
            if not line:
                raise SystemExit("the load of the simulated GPU has ended")
            self.steps = float(line.split()[1])

    def close(self) -> None:
        if self.load is not None:
            self.load.terminate()
            self.load.communicate()


def digits(count: int, seed: int) -> list[tuple[list[float], int]]:
    """Returns lit segments with noise (and a 1 for the bias), and the digit that they show."""
    source = random.Random(seed)
    samples = []
    for _ in range(count):
        digit = source.randrange(10)
        lit = [1.0 if segment in SEGMENTS[digit] else -1.0 for segment in "abcdefg"]
        samples.append(([value + source.gauss(0, NOISE) for value in lit] + [1.0], digit))
    return samples


class Model:
    """Softmax regression, trained by gradient descent with momentum from random weights."""

    def __init__(self, source: random.Random) -> None:
        self.weights = [[source.gauss(0, 0.1) for _ in range(8)] for _ in range(10)]
        self.velocity = [[0.0] * 8 for _ in range(10)]

    def probabilities(self, inputs: list[float]) -> list[float]:
        scores = [sum(w * x for w, x in zip(row, inputs)) for row in self.weights]
        powers = [math.exp(score - max(scores)) for score in scores]
        return [power / sum(powers) for power in powers]

    def step(self, batch: list[tuple[list[float], int]], learning_rate: float) -> None:
        gradient = [[0.0] * 8 for _ in range(10)]
        for inputs, digit in batch:
            for k, probability in enumerate(self.probabilities(inputs)):
                error = probability - (k == digit)
                for j, value in enumerate(inputs):
                    gradient[k][j] += error * value / len(batch)
        for weights, velocity, slope in zip(self.weights, self.velocity, gradient):
            for j in range(8):
                velocity[j] = 0.9 * velocity[j] + slope[j]
                weights[j] -= learning_rate * velocity[j]

    def accuracy(self, samples: list[tuple[list[float], int]]) -> float:
        right = 0
        for inputs, digit in samples:
            probabilities = self.probabilities(inputs)
            right += probabilities.index(max(probabilities)) == digit
        return right / len(samples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.005, help="learning rate")
    parser.add_argument("--epochs", type=int, default=100, help="at most")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("ZEUS_SEED", "0")))
    args = parser.parse_args()
    training, validation = digits(SAMPLES, seed=1), digits(512, seed=2)
    source = random.Random(args.seed)
    model, gpu = Model(source), Gpu(args.batch_size)
    try:
        for epoch in range(1, args.epochs + 1):
            source.shuffle(training)
            batches = range(0, SAMPLES, args.batch_size)
            for first in batches:
                model.step(training[first:first + args.batch_size], args.lr)
            gpu.run(len(batches))
            accuracy = model.accuracy(validation)
            print(f"epoch {epoch}: val_acc={accuracy:.4f}", flush=True)
    finally:
        gpu.close()


if __name__ == "__main__":
    main()
