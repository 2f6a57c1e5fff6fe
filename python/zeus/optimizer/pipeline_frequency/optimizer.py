"""Sets the clocks of one rank of a pipeline while it trains."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from zeus._core.pipeline import PipelineRun, Plan, Profile
from zeus.callback import Callback
from zeus.errors import InvalidArgumentError
from zeus.optimizer import _checks
from zeus.optimizer.pipeline_frequency.planner import schedule_of

if TYPE_CHECKING:
    from zeus.monitor import ZeusMonitor
    from zeus.utils.distributed import Collective

_IDENTIFIER_CHARACTERS = "-_."


class PipelineFrequencyOptimizer(Callback):
    """Trains a pipeline with less energy and no slowdown, by the clock of every instruction.

        optimizer = PipelineFrequencyOptimizer(
            rank, dp_rank, pp_rank, tp_rank, device_id, dp_degree, pp_degree, tp_degree,
            world_size, server_url="http://zeus:8000")
        for batch in loader:
            optimizer.on_step_begin()
            for instruction, work in schedule(batch):  # "forward", "backward", ...
                optimizer.on_instruction_begin(instruction)
                work()
                optimizer.on_instruction_end(instruction)
            optimizer.on_step_end()
        optimizer.on_train_end()

    During the first iterations the instructions are measured at different clocks; then a plan is
    made for the whole pipeline and followed. Each rank has its own object, and all ranks make the
    same calls: they share the plan. When a rank becomes slow (a straggler), the others get a new
    plan for its pace.

    No error of the optimiser stops the training; `trouble` holds it. Clocks are restored on every
    exit that code can notice, and after any other by the next Zeus program.

    Args:
        rank: Rank of this process among all.
        dp_rank: Index of its replica of the pipeline.
        pp_rank: Index of its stage.
        tp_rank: Index of its part of the stage.
        device_id: The GPU of this process, among those that are visible to it.
        dp_degree: Number of replicas.
        pp_degree: Number of stages.
        tp_degree: Number of parts of a stage.
        world_size: The product of the three.
        server_url: URL of a ``zeus serve`` that plans; None: the first rank plans.
        job_metadata: Becomes part of the id of the plan.
        monitor: Monitor of this rank's GPU; None: a new one for `device_id`.
        collective: Communication of the ranks; None: torch.distributed if it is initialised.
        token: Access token, if the server requires one.
        authorities: File of certificates to trust, for https; None: the system's.
        schedule: As for `Planner`.
        microbatches: Microbatches per iteration; None: they are counted.
        chunks: Chunks of layers per stage of an interleaved schedule.
        slowdown: How many times longer an iteration may take than at the highest clocks.
        plan_id: Id of a plan on the server, which is followed without measuring. If it does not
            exist, a plan is made under this id for later runs.
        frequency_stride: MHz between the clocks that are measured.
        may_raise: Also measure and set clocks above one that was found locked.
        straggler_threshold: A rank whose instructions take this many times longer than planned is
            a straggler; None: only ranks that call report_straggler() are.
        least_instructions: Least number of instructions between two changes of the clock.
        clock_latency: Seconds that an instruction takes longer after a change of the clock.
        poll_interval: Seconds between two requests for a new plan.

    Raises:
        TypeError, ValueError: For invalid arguments.
        UnavailableError: The server cannot be reached.
    """

    def __init__(
        self,
        rank: int,
        dp_rank: int,
        pp_rank: int,
        tp_rank: int,
        device_id: int,
        dp_degree: int,
        pp_degree: int,
        tp_degree: int,
        world_size: int,
        server_url: str | None = None,
        job_metadata: str | None = None,
        *,
        monitor: ZeusMonitor | None = None,
        collective: Collective | None = None,
        token: str | None = None,
        authorities: str | None = None,
        schedule: str = "1f1b",
        microbatches: int | None = None,
        chunks: int = 1,
        slowdown: float = 1.0,
        plan_id: str | None = None,
        frequency_stride: float = 60.0,
        straggler_threshold: float | None = 1.08,
        least_instructions: int = 1,
        clock_latency: float = 0.0,
        poll_interval: float = 1.0,
        may_raise: bool = False,
    ) -> None:
        place = _place(locals())
        _checks.whole("device_id", device_id, 0)
        name, count, chunks, custom = schedule_of(schedule, microbatches, chunks, counted=True)
        options = {
            "plan_id": _plan_id(plan_id, job_metadata, place),
            "schedule": name,
            "custom_schedule": custom,
            "microbatches": count,
            "chunks": chunks,
            "slowdown": _checks.positive("slowdown", slowdown, 1000),
            "least_instructions": _checks.whole("least_instructions", least_instructions, 1),
            "clock_latency": _checks.number("clock_latency", clock_latency),
            "frequency_stride": _checks.positive("frequency_stride", frequency_stride, 1e5),
            "may_raise": _checks.flag("may_raise", may_raise),
            "straggler_threshold": _threshold(straggler_threshold),
            "poll_interval": _checks.positive("poll_interval", poll_interval, 1e6),
        }
        ranks = _checks.collective(collective, rank, world_size)
        self._own_monitor = monitor is None
        self.monitor = _monitor(device_id) if monitor is None else monitor
        self.rank = rank
        self._stage = place["pp_rank"]
        try:
            self._run = PipelineRun(
                monitor=_checks.monitor(self.monitor),
                server=(
                    "" if server_url is None else _checks.text("server_url", server_url),
                    "" if token is None else _checks.text("token", token),
                    "" if authorities is None else os.fspath(authorities),
                ),
                collective=ranks,
                rank=place,
                options=options,
            )
        except BaseException:
            if self._own_monitor:
                self.monitor.close()
            raise

    def on_step_end(self) -> None:
        """Call at the end of an iteration. Ranks exchange a few numbers, and a new plan if any."""
        if not self._run.closed:
            self._run.on_step_end()

    def on_instruction_begin(self, name: str) -> None:
        """Call before an instruction: "forward", "backward", ... Sets its clock without waiting.

        A program that does other instructions than planned runs at the highest clock: `trouble`.
        """
        if not self._run.closed:
            self._run.on_instruction_begin(name)

    def on_instruction_end(self, name: str) -> None:
        """Call after the instruction."""
        if not self._run.closed:
            self._run.on_instruction_end(name)

    def on_train_end(self) -> None:
        """Restores the clocks; later calls do nothing."""
        self.close()

    def report_straggler(self, slowdown: float) -> None:
        """Reports that this rank is `slowdown` times slower at any clock; 1: no longer."""
        self._run.report_straggler(_checks.positive("slowdown", slowdown, 1000))

    def close(self) -> None:
        """Restores the clocks. A second call does nothing."""
        self._run.close()
        if self._own_monitor:
            self.monitor.close()

    @property
    def plan(self) -> Plan | None:
        """The plan in use; None while the pipeline is measured, or if there is `trouble`."""
        return self._run.plan

    @property
    def freq_schedule(self) -> list[tuple[str, float]]:
        """Instructions of this rank's stage in an iteration and their clocks in MHz, in order.

        0 leaves the clock as it is. Empty while there is no plan.
        """
        plan = self._run.plan
        return [] if plan is None else plan.clocks[self._stage]

    @property
    def plan_id(self) -> str | None:
        """The id of the plan on the server; None before there is a plan."""
        return self._run.plan_id

    @property
    def plan_version(self) -> int | None:
        """Increases when the plan changes, as for a straggler; None before there is one."""
        return self._run.plan_version

    @property
    def saving(self) -> float | None:
        """The plan's saving as a share of the energy at the highest clocks; None if none yet."""
        if self._run.plan is None or not self._run.baseline_energy:
            return None
        return 1 - self._run.plan.energy / self._run.baseline_energy

    @property
    def profile(self) -> Profile | None:
        """The profile of the whole pipeline, on every rank; None if it was not measured."""
        return self._run.profile

    @property
    def profiling_iterations(self) -> int:
        """The number of iterations that measuring took."""
        return self._run.profiling_iterations

    @property
    def clock_changes(self) -> int:
        """How often a clock was set in the driver, until the last iteration."""
        return self._run.clock_changes

    @property
    def trouble(self) -> str | None:
        """The reason why clocks are not set as planned; None if they are."""
        return self._run.trouble

    def __enter__(self) -> PipelineFrequencyOptimizer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _place(given: dict[str, Any]) -> dict[str, int]:
    """Returns ranks and degrees, after checking that they are consistent."""
    place: dict[str, int] = {}
    product = 1
    for kind in ("dp", "pp", "tp"):
        degree = _checks.whole(f"{kind}_degree", given[f"{kind}_degree"], 1, 1_000_000)
        index = _checks.whole(f"{kind}_rank", given[f"{kind}_rank"], 0, 1_000_000)
        if index >= degree:
            raise InvalidArgumentError(f"{kind}_rank {index} is not below {kind}_degree {degree}")
        place[f"{kind}_degree"], place[f"{kind}_rank"] = degree, index
        product *= degree
    world_size = _checks.whole("world_size", given["world_size"], 1)
    if world_size != product:
        raise InvalidArgumentError(
            f"world_size {world_size} is not dp_degree * pp_degree * tp_degree = {product}"
        )
    if _checks.whole("rank", given["rank"], 0) >= world_size:
        raise InvalidArgumentError(f"rank {given['rank']} is not below world_size {world_size}")
    return place


def _plan_id(plan_id: Any, metadata: Any, place: dict[str, int]) -> str:
    if plan_id is not None:
        return _checks.text("plan_id", plan_id)
    if metadata is None or place["dp_rank"] or place["pp_rank"] or place["tp_rank"]:
        return ""  # The id is generated, or this rank does not need it.
    import time

    label = "".join(
        letter if letter.isascii() and letter.isalnum() or letter in _IDENTIFIER_CHARACTERS else "-"
        for letter in _checks.text("job_metadata", metadata)
    )
    degrees = ".".join(f"{kind}{place[f'{kind}_degree']}" for kind in ("dp", "pp", "tp"))
    # The last part distinguishes jobs that begin in the same second.
    return f"{time.strftime('%Y-%m-%d-%H-%M-%S')}.{degrees}.{label}.{os.urandom(3).hex()}"[:200]


def _threshold(value: Any) -> float | None:
    if value is None:
        return None
    threshold = _checks.number("straggler_threshold", value)
    if threshold <= 1:
        raise InvalidArgumentError(f"straggler_threshold is greater than 1, not {threshold:g}")
    return threshold


def _monitor(device_id: int) -> ZeusMonitor:
    from zeus.monitor import ZeusMonitor

    return ZeusMonitor(gpu_indices=[device_id], cpu_indices=[])
