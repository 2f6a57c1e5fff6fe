#!/usr/bin/env python3
"""Fits the workload catalogue of the simulated GPUs to the traces of the Zeus paper (NSDI'23).

    tools/fit_workloads.py TRACE_DIRECTORY > zeus/device/sim/workload_data.cc

The traces are summary_power_{v100,a40,rtx6000,p100}.csv (time per epoch and average power of each
batch size and power limit) and summary_train.csv (epochs to the target). Only this script reads
them: the product ships the coefficients. Needs python3-numpy, python3-scipy and clang-format-16.
docs/workload-catalogue.md explains the model, zeus/device/sim/workload_data.h its coefficients.
"""

import csv
import math
import pathlib
import subprocess
import sys

import numpy
from scipy.optimize import least_squares, minimize
from scipy.stats import norm

# Catalogue name: rows of the traces, target metric (paper, table 1), samples of the training set.
WORKLOADS = {
    "deepspeech2": ("librispeech", "deepspeech2", "adamw", 40.0, 192, 281241),
    "bert_qa": ("squad", "bert_base_uncased", "adamw", 84.0, 32, 87599),
    "bert_sa": ("sentiment140", "bert_base_uncased", "adamw", 0.84, 128, 1600000),
    "resnet50": ("imagenet", "resnet50", "adadelta", 0.65, 256, 1281167),
    "shufflenet": ("cifar100", "shufflenetv2", "adadelta", 0.6, 1024, 50000),
    # Leave-one-out keeps 994 169 of the 1 000 209 ratings; each is joined by four negatives.
    "neumf": ("movielens-1m", "ncf", "adam", 0.41, 1024, 4970845),
}
# Idle power, lowest clock / highest clock, range of limits: as in zeus/device/sim/gpu_model.cc.
GPUS = {
    "V100": (25.0, 135 / 1380, 100.0, 250.0),
    "A40": (29.0, 210 / 1740, 100.0, 300.0),
    "RTX6000": (22.0, 300 / 2100, 100.0, 260.0),
    "P100": (27.0, 544 / 1328, 125.0, 250.0),
}

# Coefficients of an operating fit: start, lower bound, upper bound. Those marked LOG are searched
# in the logarithm. None: the start follows from the data.
LOG = True
COEFFICIENTS = {
    "step_overhead": (None, 1e-3, 1e7, LOG),
    "saturated_time": (None, 1e-2, 1e6, LOG),
    "growth": (None, 1e-9, 1e3, LOG),
    "sharpness": (1.5, 1.0, 8.0, not LOG),
    "clock_share": (0.5, 0.02, 1.0, not LOG),
    "share_batch": (None, 0.2, 1e4, LOG),
    "share_slope": (1.0, 0.3, 8.0, not LOG),
    "static_share": (0.25, 0.05, 0.6, not LOG),
    "voltage_slope": (0.5, 0.2, 0.9, not LOG),
    "regulation_low": (0.95, 0.6, 1.1, not LOG),
    "regulation_high": (0.9, 0.6, 1.0, not LOG),
    "regulation_sharpness": (8.0, 3.0, 40.0, not LOG),
    "floor_power": (None, 1e-1, 4e2, LOG),
    "batch_power": (None, 1e-2, 1e3, LOG),
    "power_batch": (None, 0.2, 1e4, LOG),
    "power_slope": (1.0, 0.3, 8.0, not LOG),
    "power_decline": (0.1, 0.0, 0.6, not LOG),
}
# Where limits hardly bind (neumf), the data say nothing about the clock axis; these weak
# expectations (value, spread) then decide, and nothing else does.
EXPECTED = {
    "clock_share": (0.5, 0.3),
    "static_share": (0.25, 0.15),
    "voltage_slope": (0.5, 0.2),
    "regulation_low": (0.97, 0.1),
    "regulation_high": (0.9, 0.1),
    "regulation_sharpness": (10.0, 10.0),
}
# A workload that would draw more than this times the highest limit at full clock would run far
# below it even without a limit. Boards are not built that way.
LARGEST_DEMAND = 1.1
PRIOR_WEIGHT = 0.02
STARTS = 12


def predict(k, gpu, batch, limit):
    """The same formulae as Predict() in zeus/device/sim/operating_point.cc."""
    idle, lowest_clock, lowest_limit, highest_limit = gpu
    unlimited = (
        (k["step_overhead"] / batch) ** k["sharpness"] + k["saturated_time"] ** k["sharpness"]
    ) ** (1 / k["sharpness"]) + k["growth"] * batch
    share = k["clock_share"] / (1 + (k["share_batch"] / batch) ** k["share_slope"])
    active = full_power(k, batch)
    position = (limit - lowest_limit) / (highest_limit - lowest_limit)
    lowest_average = k["regulation_low"] * lowest_limit
    regulated = lowest_average + (
        k["regulation_high"] * highest_limit - lowest_average
    ) * position
    q = k["regulation_sharpness"]
    allowed = (regulated**-q + (idle + active) ** -q) ** (-1 / q)
    dynamic = ((allowed - idle) / active - k["static_share"]) / (1 - k["static_share"])
    clock = numpy.clip(clock_of(numpy.clip(dynamic, 0, 1), k["voltage_slope"]), lowest_clock, 1)
    dynamic = clock * (1 - k["voltage_slope"] + k["voltage_slope"] * clock**2)
    power = idle + active * (k["static_share"] + (1 - k["static_share"]) * dynamic)
    return unlimited * (1 - share + share / clock), power


def full_power(k, batch):
    return k["floor_power"] + k["batch_power"] * batch ** -k["power_decline"] / (
        1 + (k["power_batch"] / batch) ** k["power_slope"]
    )


def clock_of(dynamic, slope):
    """Solves clock * (1 - slope + slope * clock^2) = dynamic."""
    scale = math.sqrt((1 - slope) / (3 * slope))
    return 2 * scale * numpy.sinh(numpy.arcsinh(1.5 * dynamic / ((1 - slope) * scale)) / 3)


def read_power_trace(path, rows):
    with open(path, newline="") as file:
        return numpy.array(
            [
                [float(row[column]) for column in
                 ("batch_size", "power_limit", "time_per_epoch", "average_power")]
                for row in csv.DictReader(file)
                if (row["dataset"], row["network"], row["optimizer"]) == rows
            ]
        ).T


def first_guess(batch, limit, time, power, idle):
    middle = math.exp(numpy.log(numpy.unique(batch)).mean())
    free = limit == limit.max()
    return {
        "step_overhead": time[free & (batch == batch[free].min())].mean() * batch[free].min() / 2,
        "saturated_time": time[free].min(),
        "growth": time[free].min() * 0.02 / middle,
        "share_batch": middle / 4,
        "floor_power": max(power[free].min() - idle, 1) * 0.7,
        "batch_power": max(numpy.ptp(power[free]), 2) * 1.3,
        "power_batch": middle,
    }


def fit_operating_point(gpu, trace, random):
    batch, limit, time, power = trace
    guess = first_guess(batch, limit, time, power, gpu[0])
    logs = [bounds[3] for bounds in COEFFICIENTS.values()]
    scale = lambda values: numpy.where(logs, numpy.log(numpy.maximum(values, 1e-12)), values)
    start = scale([guess.get(name, b[0]) for name, b in COEFFICIENTS.items()])
    low = scale([b[1] for b in COEFFICIENTS.values()])
    high = scale([b[2] for b in COEFFICIENTS.values()])

    def coefficients(x):
        return dict(zip(COEFFICIENTS, numpy.where(logs, numpy.exp(x), x)))

    def residuals(x):
        k = coefficients(x)
        with numpy.errstate(all="ignore"):
            model_time, model_power = predict(k, gpu, batch, limit)
            errors = [numpy.log(model_time / time), 1.5 * numpy.log(model_power / power)]
        prior = [(k[n] - mean) / sd for n, (mean, sd) in EXPECTED.items()]
        demand = (gpu[0] + full_power(k, batch).max()) / gpu[3]
        prior.append(max(demand - LARGEST_DEMAND, 0) / 0.05)
        prior = PRIOR_WEIGHT * numpy.array(prior)
        return numpy.nan_to_num(numpy.concatenate([*errors, prior]), nan=10, posinf=10, neginf=-10)

    best = None
    for attempt in range(STARTS):
        spread = random.normal(size=len(start)) * numpy.where(logs, 0.7, 0.25 * abs(start))
        x = numpy.clip(start + (attempt > 0) * spread, low + 1e-6, high - 1e-6)
        found = least_squares(residuals, x, bounds=(low, high), loss="soft_l1", f_scale=0.03,
                              max_nfev=500, x_scale=numpy.maximum(abs(start), 0.1))
        if best is None or found.cost < best.cost:
            best = found
    return coefficients(best.x)


def read_training_trace(path, rows, target):
    """Batch size -> epochs to the target of each run; NaN for a run that never reached it."""
    runs = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            key = (row["dataset"], row["network"], row["optimizer"])
            if key == rows and math.isclose(float(row["target_metric"]), target):
                runs.setdefault(int(row["batch_size"]), []).append(float(row["target_epoch"]))
    return dict(sorted(runs.items()))


def fit_epochs(runs):
    """Maximum likelihood of round(lognormal) with median N0 (1 + (b/Bc)^ga) (1 + (bl/b)^de)."""
    batch, epochs = numpy.array(
        [(b, n) for b, values in runs.items() for n in values if not math.isnan(n)]
    ).T
    low, high = batch.min(), batch.max()

    def coefficients(x):
        return {"base": math.exp(x[0]), "large_batch": math.exp(x[1]), "large_slope": math.exp(x[2]),
                "small_batch": math.exp(x[3]), "small_slope": math.exp(x[4]),
                "spread": math.exp(x[5])}

    def loss(x):
        k = coefficients(x)
        median = numpy.log(median_epochs(k, batch))
        upper = norm.cdf((numpy.log(epochs + 0.5) - median) / k["spread"])
        # N = max(1, round(.)): everything below 1.5 counts as one.
        lower = numpy.where(
            epochs > 1, norm.cdf((numpy.log(epochs - 0.5) - median) / k["spread"]), 0
        )
        # Weak expectations for what few batch sizes leave open (slopes near 1).
        return -numpy.log(numpy.maximum(upper - lower, 1e-12)).sum() + 0.05 * (x[2]**2 + x[4]**2)

    bounds = [(math.log(0.3 * epochs.min()), math.log(epochs.max())),
              (math.log(low), math.log(high * 4096)), (-1.0, 1.5),
              (math.log(low / 64), math.log(high)), (-0.7, 1.5), (math.log(0.01), math.log(0.5))]
    best = None
    for large in (high, high * 64, math.sqrt(low * high)):
        for small in (low / 4, low, 2 * low):
            start = [math.log(epochs.min()), math.log(large), 0, math.log(small), 0.5, -2.3]
            found = minimize(loss, start, bounds=bounds, method="L-BFGS-B")
            if best is None or found.fun < best.fun:
                best = found
    return coefficients(best.x)


def median_epochs(k, batch):
    return (k["base"] * (1 + (batch / k["large_batch"]) ** k["large_slope"])
            * (1 + (k["small_batch"] / batch) ** k["small_slope"]))


def failing_share(runs):
    return {b: sum(map(math.isnan, values)) / len(values) for b, values in runs.items()}


def braces(coefficients):
    """In the order of the struct, whose fields carry the same names as the coefficients."""
    return "{" + ", ".join(f"{value:.6g}" for value in coefficients.values()) + "}"


def emit(name, batches, shares, epochs, fits):
    """One workload: its arrays and coefficients, and its entry of kWorkloads."""
    _, _, _, _, default, size = WORKLOADS[name]
    prefix = "k" + "".join(part.capitalize() for part in name.split("_"))
    operating = "".join(f"// {gpu}\nOperatingFit{braces(fit)},\n" for gpu, fit in fits.items())
    data = (
        f"constexpr std::array {prefix}Batches = {{{', '.join(f'{b}U' for b in batches)}}};\n"
        f"constexpr std::array {prefix}Failing = {{"
        + ", ".join(f"FailingShare{{{b}, {share:g}}}" for b, share in shares.items()) + "};\n"
        f"constexpr WorkloadFits {prefix}Fits = {{EpochsFit{braces(epochs)}, "
        f"{prefix}Failing, {{{operating}}}}};\n"
    )
    entry = (
        f"{{.name = \"{name}\", .dataset_size = {size}, .default_batch_size = {default}, "
        f".batch_sizes = {prefix}Batches, .fits = &{prefix}Fits}},\n"
    )
    return data, entry


def main(directory):
    random = numpy.random.default_rng(1)
    data, entries = [], []
    for name, (dataset, network, optimizer, target, _, _) in WORKLOADS.items():
        rows = (dataset, network, optimizer)
        batches, fits = set(), {}
        for gpu, facts in GPUS.items():
            trace = read_power_trace(directory / f"summary_power_{gpu.lower()}.csv", rows)
            fits[gpu] = fit_operating_point(facts, trace, random)
            batches |= {int(b) for b in trace[0]}
            time, power = predict(fits[gpu], facts, trace[0], trace[1])
            print(f"{name:12} {gpu:8} time {abs(time / trace[2] - 1).mean():.4f}"
                  f" power {abs(power / trace[3] - 1).mean():.4f}", file=sys.stderr)
        runs = read_training_trace(directory / "summary_train.csv", rows, target)
        coefficients, entry = emit(
            name, sorted(batches), failing_share(runs), fit_epochs(runs), fits
        )
        data.append(coefficients)
        entries.append(entry)
    text = (
        "// Generated by tools/fit_workloads.py from the traces of the Zeus paper. Do not edit.\n"
        "// Numbers stand in the order of the structs in workload_data.h.\n"
        '#include "zeus/device/sim/workload_data.h"\n\n#include <array>\n\n'
        '#include "zeus/device/sim/workload.h"\n\n'
        "namespace zeus::sim {\nnamespace {\n\n" + "\n".join(data)
        + f"\nconstexpr std::array<Workload, {len(entries)}> kWorkloads = {{{{\n"
        + "".join(entries) + "}};\n\n}  // namespace\n\n"
        "std::span<const Workload> Workloads() { return kWorkloads; }\n\n"
        "}  // namespace zeus::sim\n"
    )
    formatter = ["clang-format-16", "--assume-filename=zeus/device/sim/workload_data.cc"]
    print(subprocess.run(formatter, input=text, capture_output=True, text=True, check=True).stdout,
          end="")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
