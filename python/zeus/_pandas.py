"""Measurements as tables, for users of pandas."""

from __future__ import annotations

import importlib
from typing import Any, Mapping

_COLUMNS = (
    "device", "energy", "sigma", "attributed", "source", "coverage", "updates", "update_period",
    "flags", "reason", "in_total",
)  # fmt: skip


def measurement_frame(measurement: Mapping[str, Any]) -> Any:
    """Converts the result of Measurement.to_dict() to a DataFrame with a row for each device.

    The columns `window`, `start_time` and `time` are the same in every row, so that frames of many
    windows can be put together with pandas.concat().
    """
    try:
        pandas: Any = importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "to_pandas() needs pandas: install it, or use to_dict()", name="pandas"
        ) from error
    window = {name: measurement[name] for name in ("window", "start_time", "time")}
    rows = []
    for device in measurement["devices"]:
        row = {**window, **{name: device.get(name) for name in _COLUMNS}}
        row["flags"] = " ".join(device.get("flags", ()))
        rows.append(row)
    frame = pandas.DataFrame(rows, columns=[*window, *_COLUMNS])
    numbers = ["energy", "sigma", "attributed", "coverage", "update_period"]
    frame[numbers] = frame[numbers].astype(float)  # Unknown values become NaN instead of None.
    return frame
