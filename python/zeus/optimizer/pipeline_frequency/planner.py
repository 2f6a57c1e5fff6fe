"""Plans for profiled pipelines: the least energy for a given time."""

from __future__ import annotations

import os
from typing import Any, Callable, NamedTuple, Sequence

from zeus._core import pipeline as core
from zeus._core.pipeline import Plan, Profile
from zeus.errors import InvalidArgumentError
from zeus.optimizer import _checks

_SCHEDULES = ("1f1b", "gpipe", "interleaved", "early_recompute")
_MOST_STAGES = 4096


class Frontier(NamedTuple):
    """The least energy for every time of an iteration; linear between its points."""

    #: Seconds, the fastest first.
    times: list[float]
    #: Joules of the iteration, including waiting.
    energies: list[float]


def load_profile(
    path: str | os.PathLike[str], blocking_power: float, tensor_parallel: int = 1
) -> Profile:
    """Reads a profile with the columns stage, instruction, frequency, time and energy.

    That is what profilers write, separated by commas: MHz, seconds and joules, a row for each clock
    that was tried. With the columns rank, dp_rank, pp_rank and tp_rank every rank has rows of its own.

    Args:
        path: Path of the file.
        blocking_power: Watts of a GPU that waits for another stage: about 70 for an A40.
        tensor_parallel: GPUs per stage, if the rows describe one of them.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a profile; the message names the line.
    """
    ranks = _checks.whole("tensor_parallel", tensor_parallel, 1, 1024)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    header = next((line for line in text.splitlines() if not line.startswith("#")), "")
    scale = 1 if "tp_rank" in header else ranks
    power = _power(blocking_power) * ranks
    return Profile.from_csv(text, power, scale)


def load_reference_schedule(path: str | os.PathLike[str]) -> list[list[tuple[str, float]]]:
    """Reads a schedule file of the Python implementation: lists of ("instruction", MHz) by stage.

    Only literals are read; nothing is ever evaluated.
    """
    with open(path, encoding="utf-8") as file:
        return core.parse_reference_schedule(file.read())


class Planner:
    """Solves a pipeline once, and then returns plans for any deadline quickly.

        profile = load_profile("profile.csv", blocking_power=70)
        planner = Planner(profile, microbatches=8)
        plan = planner.plan(slowdown=1.05)
        print(f"{plan.energy:.0f} J, {100 * planner.saving(plan):.1f} % saved")

    Args:
        profile: Time and energy of each instruction at each clock.
        schedule: "1f1b", "gpipe", "interleaved" or "early_recompute"; or the instructions
            themselves: a line for each stage as in "F0 F1 B0 B1".
        microbatches: Microbatches per iteration; None only if the schedule defines it.
        stages: A number of stages that is spread over the profile's, or a list of its stages.
        chunks: Chunks of layers per stage of an interleaved schedule.
        progress: Called periodically with the progress, 0 to 1. An exception ends the solver and
            is raised here.

    Solving takes milliseconds to minutes, without blocking other threads; Ctrl-C ends it.

    Raises:
        TypeError, ValueError: An argument is invalid, or the profile lacks an instruction.
    """

    def __init__(
        self,
        profile: Profile,
        schedule: str = "1f1b",
        microbatches: int | None = None,
        *,
        stages: int | Sequence[int] | None = None,
        chunks: int = 1,
        progress: Callable[[float], object] | None = None,
    ) -> None:
        if progress is not None and not callable(progress):
            raise TypeError(f"progress is a function, not {progress!r}")
        self._core = core.Planner(
            *_pipeline(profile, schedule, microbatches, stages, chunks), progress
        )

    @property
    def frontier(self) -> Frontier:
        """The least energy for every time."""
        return Frontier(self._core.frontier_times, self._core.frontier_energies)

    @property
    def baseline_time(self) -> float:
        """Seconds of an iteration with all instructions at their highest clock."""
        return self._core.baseline_time

    @property
    def baseline_energy(self) -> float:
        """Joules of an iteration with all instructions at their highest clock."""
        return self._core.baseline_energy

    @property
    def fastest_time(self) -> float:
        """Seconds of the fastest possible iteration."""
        return self._core.fastest_time

    @property
    def solver(self) -> str:
        """How the pipeline was solved, as `zeus plan` names it: "the whole frontier" or, of a large
        one, from pipelines of fewer microbatches."""
        return self._core.solver

    @property
    def stages(self) -> int:
        """The number of stages."""
        return self._core.stages

    @property
    def microbatches(self) -> int:
        """The number of microbatches of an iteration."""
        return self._core.microbatches

    def plan(
        self,
        deadline: float | None = None,
        *,
        slowdown: float | None = None,
        pace: float | None = None,
        least_instructions: int = 1,
        clock_latency: float = 0.0,
    ) -> Plan:
        """Returns the plan of least energy within a deadline; by default the baseline's time.

        Args:
            deadline: Seconds that an iteration may take.
            slowdown: Instead: how many times the baseline's time it may take.
            pace: Instead: seconds that iterations take anyway because of a straggler, until whose
                end this pipeline waits.
            least_instructions: Least number of instructions between two changes of a stage's clock.
            clock_latency: Seconds that an instruction takes longer after a change of the clock.

        Raises:
            ValueError: No plan is that fast.
        """
        asked = {"deadline": deadline, "slowdown": slowdown, "pace": pace}
        given = [name for name, value in asked.items() if value is not None]
        if len(given) > 1:
            raise InvalidArgumentError(
                f"give one of deadline, slowdown and pace, not {' and '.join(given)}"
            )
        rules = _rules(least_instructions, clock_latency)
        if pace is not None:
            return self._core.plan_for_pace(_checks.positive("pace", pace, 1e9), rules)
        if slowdown is not None:
            deadline = self.baseline_time * _checks.positive("slowdown", slowdown, 1000)
        elif deadline is None:
            deadline = self.baseline_time
        return self._core.plan(_checks.positive("deadline", deadline, 1e9), rules)

    def evaluate(
        self, clocks: Sequence[Sequence[tuple[str, float]]], clock_latency: float = 0.0
    ) -> Plan:
        """Evaluates clocks that another program chose, as load_reference_schedule() reads them."""
        if isinstance(clocks, (str, bytes)):
            raise TypeError("clocks is a list for each stage of (instruction, MHz), not text")
        stages = [[_clock(entry) for entry in stage] for stage in clocks]
        return self._core.evaluate(stages, _latency(clock_latency))

    def energy_within(self, time: float) -> float:
        """Returns joules on the frontier, for an iteration of at most that many seconds."""
        return self._core.energy_within(_checks.positive("time", time, 1e9))

    def saving(self, plan: Plan) -> float:
        """Returns the saving against the highest clocks, waiting for stragglers included: 0 to 1."""
        return self._core.saving(plan)


def plan(
    profile: Profile,
    schedule: str = "1f1b",
    stages: int | Sequence[int] | None = None,
    microbatches: int | None = None,
    *,
    slowdown: float = 1.0,
    chunks: int = 1,
    least_instructions: int = 1,
    clock_latency: float = 0.0,
) -> Plan:
    """Makes one plan, for iterations of at most `slowdown` times the time at the highest clocks.

    The arguments are those of `Planner`, which is faster for several plans.
    """
    pipeline = _pipeline(profile, schedule, microbatches, stages, chunks)
    slowdown = _checks.positive("slowdown", slowdown, 1000)
    rules = _rules(least_instructions, clock_latency)
    return core.plan_once(*pipeline, rules, slowdown)


def schedule_of(
    schedule: Any, microbatches: Any, chunks: Any, *, counted: bool = False
) -> tuple[str, int, int, str]:
    """Returns name, microbatches, chunks and list of a schedule; counts microbatches if needed."""
    _checks.text("schedule", schedule)
    chunks = _checks.whole("chunks", chunks, 1, 1024)
    custom = schedule not in _SCHEDULES
    if custom and "0" not in schedule:
        raise InvalidArgumentError(
            f"schedule is one of {', '.join(_SCHEDULES)}, or a line for each stage as in "
            f"'F0 F1 B0 B1', not {schedule!r}"
        )
    if custom:
        return "custom", 0, chunks, schedule
    if microbatches is None and not counted:
        raise InvalidArgumentError(
            "microbatches is missing: how many go through the pipeline at a time"
        )
    count = 0 if microbatches is None else _checks.whole("microbatches", microbatches, 1, 1_000_000)
    return schedule, count, chunks, ""


def _pipeline(
    profile: Any, schedule: Any, microbatches: Any, stages: Any, chunks: Any
) -> tuple[Profile, tuple[str, int, int, str]]:
    if not isinstance(profile, Profile):
        raise TypeError(f"profile is a Profile, as load_profile() reads it, not {profile!r}")
    if isinstance(stages, (list, tuple, range)):
        wanted = [_checks.whole("each of stages", stage, 0, _MOST_STAGES) for stage in stages]
        if not wanted:
            raise InvalidArgumentError("stages is empty: a pipeline has at least 1")
        profile = profile.with_stages(wanted)
    elif stages is not None:
        profile = profile.spread(_checks.whole("stages", stages, 1, _MOST_STAGES))
    return profile, schedule_of(schedule, microbatches, chunks)


def _rules(least_instructions: Any, latency: Any) -> core.ClockChangeRules:
    least = _checks.whole("least_instructions", least_instructions, 1)
    return core.ClockChangeRules(least, _latency(latency))


def _latency(value: Any) -> float:
    latency = _checks.number("clock_latency", value)
    if not 0 <= latency <= 60:
        raise InvalidArgumentError(f"clock_latency is 0 to 60 seconds, not {latency:g}")
    return latency


def _power(value: Any) -> float:
    power = _checks.number("blocking_power", value)
    if power < 0:
        raise InvalidArgumentError(f"blocking_power is 0 or more watts, not {power:g}")
    return power


def _clock(entry: Any) -> tuple[str, float]:
    try:
        name, frequency = entry
    except (TypeError, ValueError):
        raise TypeError(f"a clock is (instruction, MHz), not {entry!r}") from None
    return _checks.text("an instruction", name), _checks.number("its MHz", frequency)
