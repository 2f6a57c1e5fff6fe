"""`JobSpec`, at the place where earlier tools have it."""

from __future__ import annotations

from zeus.optimizer.batch_size.job_spec import JobSpec

__all__ = ["JobSpec"]
