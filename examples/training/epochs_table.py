#!/usr/bin/env python3
"""Prints, as a Markdown table, how many epochs the training examples need to their target.

usage: epochs_table.py TRAIN [SEEDS [MODEL ...]]

TRAIN is the program, as build/release/examples/train. Of train_digits, the only model is cnn.
"""
import json
import os
import subprocess
import sys
import tempfile

BATCH_SIZES = (16, 64, 256)


def epochs_to_target(train: str, model: str, batch_size: int, seed: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "outcome.json")
        subprocess.run([train, "--model", model, "--batch-size", str(batch_size), "--seed",
                        str(seed), "--knob", "none", "--json", file],
                       check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
        with open(file, encoding="utf-8") as text:
            outcome = json.load(text)
    epochs = str(len(outcome["epochs"]))
    return epochs if outcome["stopped"] == "target_reached" else f"not in {epochs}"


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    seeds = range(1, 1 + int(sys.argv[2] if len(sys.argv) > 2 else "3"))
    print("| model | batch size | " + " | ".join(f"seed {seed}" for seed in seeds) + " |")
    print("|---|---|" + "---|" * len(seeds))
    for model in sys.argv[3:] or ("cnn", "transformer"):
        for size in BATCH_SIZES:
            cells = [epochs_to_target(sys.argv[1], model, size, seed) for seed in seeds]
            print(f"| {model} | {size} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
