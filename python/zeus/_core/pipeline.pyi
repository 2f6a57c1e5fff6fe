from __future__ import annotations

from typing import Any, Callable, Sequence

from zeus._core.monitor import Monitor

class Profile:
    """Time and energy of each instruction of each stage at every clock that was tried.

        Profile([(0, "forward", 1410, 0.031, 8.1), (0, "forward", 1200, 0.034, 7.2), ...],
                blocking_power=70)
    """

    def __init__(
        self, rows: Sequence[tuple[int, str, float, float, float]], blocking_power: float
    ) -> None:
        """Makes a profile from rows (stage, instruction, MHz, seconds, joules).

        `blocking_power` is what a stage takes, all of its GPUs together, while it waits for another
        one: watts. Numbers that cannot be true are a ValueError that names the row.
        """
    @staticmethod
    def from_csv(text: str, blocking_power: float, scale: float) -> Profile:
        """See zeus.optimizer.pipeline_frequency.load_profile()."""
    @staticmethod
    def from_json(text: str) -> Profile:
        """The profile of which to_json() is the text."""
    def to_csv(self) -> str:
        """``stage,instruction,frequency,time,energy``: MHz, seconds, joules."""
    def to_json(self) -> str:
        """All of it, for from_json() and for files."""
    def spread(self, wanted: int) -> Profile:
        """A pipeline of that many stages, each like one of these; the first and last are kept."""
    def with_stages(self, stages: Sequence[int]) -> Profile:
        """A pipeline of these stages of this one."""
    @property
    def rows(self) -> list[tuple[int, str, float, float, float]]:
        """(stage, instruction, MHz, seconds, joules)"""
    @property
    def stages(self) -> int:
        """The number of stages."""
    @property
    def blocking_power(self) -> float:
        """Watts of a stage that waits."""

class PlannedInstruction:
    """One instruction of a plan."""

    @property
    def instruction(self) -> str:
        """``forward``, ``backward``, ..."""
    @property
    def microbatch(self) -> int:
        """The microbatch that it works on, from 0."""
    @property
    def chunk(self) -> int:
        """The chunk of layers of its stage, from 0."""
    @property
    def frequency(self) -> float:
        """MHz; 0: leave the clock as it is."""
    @property
    def start(self) -> float:
        """Seconds since the iteration began."""
    @property
    def time(self) -> float:
        """Seconds that it takes."""
    @property
    def energy(self) -> float:
        """Joules that it takes."""

class Plan:
    """A clock for every instruction of every stage of an iteration."""

    @staticmethod
    def from_json(text: str) -> Plan:
        """The plan of which to_json() is the text."""
    def to_json(self) -> str:
        """All of it, for from_json() and for files."""
    def to_reference_schedule(self) -> str:
        """A Python list for each stage of ``("instruction", MHz)``, with figures as comments."""
    @property
    def deadline(self) -> float:
        """Seconds that were asked for."""
    @property
    def time(self) -> float:
        """Seconds that an iteration takes; never above the deadline."""
    @property
    def waits_until(self) -> float:
        """The pace of a straggler; `time` where there is none."""
    @property
    def energy(self) -> float:
        """Joules that an iteration takes, waiting included."""
    @property
    def bound(self) -> float:
        """Joules: no plan within the deadline takes less."""
    @property
    def gap(self) -> float:
        """How much more than the bound it takes: 0.003 is 0.3 %."""
    @property
    def clock_changes(self) -> int:
        """In all stages together, for each iteration."""
    @property
    def stages(self) -> list[list[PlannedInstruction]]:
        """For each stage, in order."""
    @property
    def clocks(self) -> list[list[tuple[str, float]]]:
        """For each stage, in order: instruction and MHz (0: leave the clock as it is)."""

class ClockChangeRules:
    """How often a clock may change, and what a change costs in seconds."""

    def __init__(self, least_instructions: int, latency: float) -> None: ...

class Planner:
    """Holds the frontier of a pipeline: see zeus.optimizer.pipeline_frequency.Planner."""

    def __init__(
        self,
        profile: Profile,
        schedule: tuple[str, int, int, str],
        progress: Callable[[float], object] | None,
    ) -> None: ...
    def plan(self, deadline: float, rules: ClockChangeRules) -> Plan: ...
    def plan_for_pace(self, pace: float, rules: ClockChangeRules) -> Plan: ...
    def evaluate(self, clocks: Sequence[Sequence[tuple[str, float]]], latency: float) -> Plan: ...
    def energy_within(self, time: float) -> float: ...
    def saving(self, plan: Plan) -> float: ...
    @property
    def frontier_times(self) -> list[float]: ...
    @property
    def frontier_energies(self) -> list[float]: ...
    @property
    def baseline_time(self) -> float: ...
    @property
    def baseline_energy(self) -> float: ...
    @property
    def fastest_time(self) -> float: ...
    @property
    def solver(self) -> str: ...
    @property
    def stages(self) -> int:
        """The number of stages."""
    @property
    def microbatches(self) -> int: ...

def parse_reference_schedule(text: str) -> list[list[tuple[str, float]]]:
    """Instructions and their clocks in MHz, by rank, of a file of the reference implementation."""

def plan_once(
    profile: Profile,
    schedule: tuple[str, int, int, str],
    rules: ClockChangeRules,
    slowdown: float,
) -> Plan:
    """One plan: of a large pipeline without its frontier."""

class PipelineRun:
    """See zeus.optimizer.pipeline_frequency.PipelineFrequencyOptimizer."""

    def __init__(
        self,
        monitor: Monitor,
        server: tuple[str, str, str],
        collective: Any,
        rank: dict[str, int],
        options: dict[str, Any],
    ) -> None: ...
    def on_instruction_begin(self, name: str) -> None: ...
    def on_instruction_end(self, name: str) -> None: ...
    def on_step_end(self) -> None: ...
    def report_straggler(self, slowdown: float) -> None: ...
    def close(self) -> None:
        """Unlocks the clocks."""
    @property
    def closed(self) -> bool: ...
    @property
    def plan(self) -> Plan | None: ...
    @property
    def plan_id(self) -> str | None: ...
    @property
    def plan_version(self) -> int | None: ...
    @property
    def baseline_time(self) -> float | None: ...
    @property
    def baseline_energy(self) -> float | None: ...
    @property
    def profile(self) -> Profile | None: ...
    @property
    def profiling_iterations(self) -> int: ...
    @property
    def clock_changes(self) -> int: ...
    @property
    def trouble(self) -> str | None: ...
