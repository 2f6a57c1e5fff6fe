"""Measurements as tables of pandas."""

from __future__ import annotations

import importlib
from typing import Any, Mapping

# Columns of a table, and the fields of Measurement.to_dict() that they show.
_COLUMNS = {
    "device": "device", "energy": "energy_joules", "sigma": "energy_sigma_joules",
    "attributed": "attributed_joules", "source": "source", "coverage": "coverage",
    "updates": "updates", "update_period": "update_period_seconds", "flags": "flags",
    "reason": "reason", "in_total": "in_total",
}  # fmt: skip
_WINDOW_COLUMNS = {
    "window": "window", "start_time": "start_time_seconds", "time": "elapsed_seconds",
}  # fmt: skip


def measurement_frame(measurement: Mapping[str, Any]) -> Any:
    """The result of Measurement.to_dict() as a DataFrame with a row for each device.

    The columns `window`, `start_time` and `time` are the same in every row, so that frames of many
    windows can be put together with pandas.concat().
    """
    try:
        pandas: Any = importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "to_pandas() needs pandas: install it, or use to_dict()", name="pandas"
        ) from error
    window = {column: measurement[field] for column, field in _WINDOW_COLUMNS.items()}
    rows = []
    for device in measurement["devices"]:
        row = {**window, **{column: device.get(field) for column, field in _COLUMNS.items()}}
        row["flags"] = " ".join(device.get("flags", ()))
        rows.append(row)
    frame = pandas.DataFrame(rows, columns=[*window, *_COLUMNS])
    numbers = ["energy", "sigma", "attributed", "coverage", "update_period"]
    frame[numbers] = frame[numbers].astype(float)  # Not None, but not a number, where unknown.
    return frame
