"""Recurring jobs of foreign commands."""

from typing import Any

def run_job(fields: dict[str, Any]) -> dict[str, Any]:
    """Run a job. The fields are the arguments of `zeus.train()`, the result those of `TrainResult`."""
