"""Clocks of pipeline-parallel training: `PipelineFrequencyOptimizer` sets, `Planner` plans them."""

from zeus._core.pipeline import Plan as Plan
from zeus._core.pipeline import PlannedInstruction as PlannedInstruction
from zeus._core.pipeline import Profile as Profile
from zeus.optimizer.pipeline_frequency.optimizer import (
    PipelineFrequencyOptimizer as PipelineFrequencyOptimizer,
)
from zeus.optimizer.pipeline_frequency.planner import Frontier as Frontier
from zeus.optimizer.pipeline_frequency.planner import Planner as Planner
from zeus.optimizer.pipeline_frequency.planner import load_profile as load_profile
from zeus.optimizer.pipeline_frequency.planner import (
    load_reference_schedule as load_reference_schedule,
)
from zeus.optimizer.pipeline_frequency.planner import plan as plan

__all__ = [
    "Frontier",
    "PipelineFrequencyOptimizer",
    "Plan",
    "PlannedInstruction",
    "Planner",
    "Profile",
    "load_profile",
    "load_reference_schedule",
    "plan",
]
