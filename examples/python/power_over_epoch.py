#!/usr/bin/env python3
# %% [markdown]
# # Power over an epoch
#
# Trains a small network, records the power of the GPU meanwhile, and plots it with the windows that
# were measured. Editors that know `# %%` (Jupytext, VS Code, Spyder) show this file as a notebook;
# as a program it is `python3 power_over_epoch.py [OUTPUT.svg]`.
#
# The network computes on the CPU and a simulated A100 draws the power that such steps would take,
# so it runs without a GPU. With one, leave out the two lines that speak of `node`.

# %%
import os
import sys
import time

try:
    import torch
except ModuleNotFoundError as missing:
    raise SystemExit(
        f"this example trains with torch, which is not installed ({missing}): apt install "
        "python3-torch, or pip install torch; examples/train.py needs no package"
    ) from None

import zeus.sim
from zeus.monitor import Measurement, PowerMonitor, ZeusMonitor

torch.manual_seed(1)
torch.set_num_threads(1)
output = sys.argv[1] if sys.argv[1:] and sys.argv[1].endswith((".svg", ".png")) else "power.svg"
steps = int(os.environ.get("STEPS", "40"))

node = zeus.sim.here("A100")
forward_and_backward = node.run(operations=9e12, bytes=4e10, gpus=[0])
forward_only = node.run(operations=1.2e12, bytes=4e10, gpus=[0])

# %% [markdown]
# ## Something to train
# Which of two clouds a point belongs to.

# %%
points = torch.randn(2048, 16)
labels = (points[:, 0] * points[:, 1] > 0).long()
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def train_step(batch: slice) -> float:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(points[batch]), labels[batch])
    loss.backward()
    optimizer.step()
    return float(loss)


def accuracy(batch: slice) -> float:
    with torch.no_grad():
        return float((model(points[batch]).argmax(dim=1) == labels[batch]).float().mean())


# %% [markdown]
# ## One epoch
# A window for the epoch, and one for each of its parts. `end_window` tells what is known at that
# moment, `refined()` waits until the sensor has shown the end of the window, too.

# %%
monitor = ZeusMonitor(gpu_indices=[0])
power = PowerMonitor(gpu_indices=[0])
windows: dict[str, Measurement] = {}

time.sleep(0.5)  # The picture then shows idle power, too.
with monitor.window("epoch") as epoch:
    with monitor.window("train") as train:
        for step in range(steps):
            batch = slice(step * 64 % 1536, step * 64 % 1536 + 64)
            loss = forward_and_backward.step(lambda: train_step(batch))
    with monitor.window("checkpoint") as checkpoint:
        time.sleep(0.8)  # The GPU waits for the disk.
    with monitor.window("validate") as validate:
        scores = [forward_only.step(lambda: accuracy(slice(1536, 2048))) for _ in range(steps)]
time.sleep(0.5)

for window in (epoch, train, checkpoint, validate):
    assert window.measurement is not None
    windows[window.name] = window.measurement.refined()
    print(f"{window.name:10} {windows[window.name]}")
print(f"loss {loss:.3f}, accuracy {scores[-1]:.2f}")

# %% [markdown]
# ## The picture
# A sample holds until the next one, so the line has steps.

# %%
timeline = power.get_power_timeline(gpu_index=0)[0]
begin = windows["epoch"].start_time
times = [moment - begin for moment, _ in timeline]
watts = [value for _, value in timeline]


def plot(path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4.2), constrained_layout=True)
    axes.step(times, watts, where="post", color="#1f4e79", linewidth=1.4)
    axes.fill_between(times, watts, step="post", color="#1f4e79", alpha=0.12, linewidth=0)
    top = max(watts) * 1.22
    for name, color in (("train", "#2e7d32"), ("checkpoint", "#8d6e63"), ("validate", "#c77700")):
        window = windows[name]
        first = window.start_time - begin
        last = first + window.time
        axes.axvspan(first, last, color=color, alpha=0.08, linewidth=0)
        mean = window.total_energy / window.time
        axes.plot([first, last], [mean, mean], color=color, linestyle="--", linewidth=1.2)
        label = f"{name}\n{str(window).partition(' over ')[0]}"  # "1234 ± 31 J".
        axes.text((first + last) / 2, top * 0.985, label, color=color, ha="center", va="top",
                  fontsize=9)
    whole = windows["epoch"]
    axes.set(xlim=(times[0], times[-1]), ylim=(0, top), xlabel="seconds since the epoch began",
             ylabel="power of gpu:0 (W)")
    axes.set_title(f"One epoch: {whole}; dashed: mean of a window", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
    pyplot.close(figure)


try:
    plot(output)
    print(f"wrote {output}")
except ImportError:
    print("matplotlib is not installed, so here are the numbers: seconds, watts")
    for moment, value in zip(times, watts):
        print(f"{moment:8.2f} {value:7.1f}")

# %%
power.stop()
monitor.close()
