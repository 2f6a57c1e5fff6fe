"""Runs a command that trains, again and again, each time with a batch size that costs less.

What `zeus train` does, from Python, on a simulated GPU.
"""

import pathlib
import sys

import zeus
import zeus.sim

TRAIN = pathlib.Path(__file__).parents[1] / "train.py"

if __name__ == "__main__":
    with zeus.sim.here("V100"):
        result = zeus.train(
            [sys.executable, str(TRAIN), "--batch-size", "{batch_size}", "--lr", "{lr}"],
            job="digits", batch_sizes=[64, 128], default=128, lr=0.005, target=0.9, recurrences=2,
            metric_regex=r"val_acc=([0-9.]+)", database="sqlite:train_job.db")
        for run in result.trials:
            print(f"batch size {run.batch_size}: {run.energy:.0f} J, {run.time:.1f} s",
                  run.reason)
