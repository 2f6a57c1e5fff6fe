"""The batch size of recurring jobs: see `BatchSizeOptimizer`."""

from zeus.optimizer.batch_size.job_spec import JobSpec as JobSpec
from zeus.optimizer.batch_size.optimizer import BatchSizeOptimizer as BatchSizeOptimizer
from zeus.optimizer.batch_size.savings import JobSavings as JobSavings
from zeus.optimizer.batch_size.savings import SavedCarbon as SavedCarbon
from zeus.optimizer.batch_size.savings import SavedMoney as SavedMoney
from zeus.optimizer.batch_size.server import LocalServer as LocalServer

__all__ = [
    "BatchSizeOptimizer",
    "JobSavings",
    "JobSpec",
    "LocalServer",
    "SavedCarbon",
    "SavedMoney",
]
