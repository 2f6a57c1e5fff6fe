"""The description of a recurring job."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Mapping, Sequence

from zeus.errors import InvalidArgumentError
from zeus.optimizer import _checks

_MOST_BATCH_SIZES = 64
_LONGEST_TIME = 10 * 365 * 24 * 3600.0
_IDENTIFIER = re.compile(r"[A-Za-z0-9_.:-]{1,200}")
_POLICIES = ("knowledge_gradient", "zeus", "default")
_OF_THE_PAPERS_POLICY = (
    "num_pruning_rounds",
    "mab_prior_mean",
    "mab_prior_precision",
    "mab_num_explorations",
)


@dataclasses.dataclass(frozen=True)
class JobSpec:
    """A job that is trained again and again, each time until it reaches a target.

        JobSpec(
            job_id_prefix="mnist",
            batch_sizes=[32, 64, 128],
            default_batch_size=64,
            target_metric=0.97,
            max_epochs=20,
        )

    A job never changes: for the same `job_id` the server accepts only the same spec. An invalid
    value raises ValueError, one of the wrong type TypeError; both name the field.

    Attributes:
        job_id_prefix: The beginning of the job's id.
        batch_sizes: The batch sizes to choose from.
        default_batch_size: One of them; the first one that is tried.
        job_id: The id of a job on the server, or a new one; it begins with the prefix. None: the
            server makes an id, which later runs pass here.
        eta_knob: From 0 (only time counts) to 1 (only energy counts).
        beta_knob: A run is stopped when it costs this many times the least cost; None: never.
        target_metric: The metric that on_evaluate() must reach.
        higher_is_better_metric: False for a loss.
        max_epochs: A run that needs more epochs has failed.
        num_pruning_rounds: Policy "zeus": how often all batch sizes are tried at first.
        window_size: Only this many of the last runs are taken into account; 0: all of them.
        mab_prior_mean: Policy "zeus": mean of the prior of the negated cost.
        mab_prior_precision: Policy "zeus": precision of that prior; 0: no prior.
        mab_num_explorations: Policy "zeus": least number of runs of each batch size.
        mab_seed: Seed of the server's random numbers; None: a random one.
        policy: How batch sizes are chosen: "knowledge_gradient" finds good ones in fewer runs,
            "zeus" is the paper's (pruning, then Thompson sampling), "default" always takes the
            default one. None: the policy of the job on the server; for a new job
            "knowledge_gradient", or "zeus" if a field of that policy is given.
        max_power: Watts of all GPUs of a run; None: the sum of the highest power limits of the
            GPUs that the monitors of all ranks measure.
        number_of_gpus: None: the number of GPUs that the monitors of all ranks measure.
        gpu_model: None: the model of the monitor's first GPU.
        translate_gpu_models: Whether results from one GPU model are used for others. None: as
            the job on the server has it; True for a new job.
        deadline: Seconds that a recurrence may take, including retries; None: no limit.
        lease: A run that does not report for this many seconds is considered dead. None: as the
            job on the server has it; 900 for a new job.
        labels: Names and values by which the job can be found.
    """

    job_id_prefix: str
    batch_sizes: Sequence[int]
    default_batch_size: int
    job_id: str | None = None
    eta_knob: float = 0.5
    beta_knob: float | None = 2.0
    target_metric: float = 0.5
    higher_is_better_metric: bool = True
    max_epochs: int = 100
    num_pruning_rounds: int = 2
    window_size: int = 0
    mab_prior_mean: float = 0.0
    mab_prior_precision: float = 0.0
    mab_num_explorations: int = 2
    mab_seed: int | None = None
    policy: str | None = None
    max_power: float | None = None
    number_of_gpus: int | None = None
    gpu_model: str | None = None
    translate_gpu_models: bool | None = None
    deadline: float | None = None
    lease: float | None = None
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        # Numbers of numpy become numbers of Python; sizes are sorted, without repetitions.
        for name, value in self._checked().items():
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields by name."""
        return dataclasses.asdict(self)

    def _speaks_of_the_papers_policy(self) -> bool:
        fields = {field.name: field.default for field in dataclasses.fields(self)}
        return any(getattr(self, name) != fields[name] for name in _OF_THE_PAPERS_POLICY)

    def _checked(self) -> dict[str, Any]:
        return {
            **self._checked_identity(),
            **self._checked_batch_sizes(),
            **self._checked_objective(),
            **self._checked_policy(),
            **self._checked_surroundings(),
        }

    def _checked_identity(self) -> dict[str, Any]:
        prefix = _identifier("job_id_prefix", self.job_id_prefix)
        if self.job_id is None:
            return {"job_id_prefix": prefix}
        job_id = _identifier("job_id", self.job_id)
        if not job_id.startswith(prefix):
            raise InvalidArgumentError(
                f"job_id {job_id!r} does not begin with job_id_prefix {prefix!r}"
            )
        return {"job_id_prefix": prefix, "job_id": job_id}

    def _checked_batch_sizes(self) -> dict[str, Any]:
        given = self.batch_sizes
        if isinstance(given, (str, bytes)) or not hasattr(type(given), "__iter__"):
            raise TypeError(f"batch_sizes is a list of whole numbers, not {given!r}")
        sizes = sorted({_checks.whole("each of batch_sizes", size, 1) for size in given})
        if not 1 <= len(sizes) <= _MOST_BATCH_SIZES:
            raise InvalidArgumentError(
                f"batch_sizes has 1 to {_MOST_BATCH_SIZES} of them, not {len(sizes)}"
            )
        default = _checks.whole("default_batch_size", self.default_batch_size, 1)
        if default not in sizes:
            raise InvalidArgumentError(
                f"default_batch_size {default} is not one of batch_sizes {sizes}"
            )
        return {"batch_sizes": sizes, "default_batch_size": default}

    def _checked_objective(self) -> dict[str, Any]:
        eta = _checks.number("eta_knob", self.eta_knob)
        if not 0 <= eta <= 1:
            raise InvalidArgumentError(f"eta_knob is between 0 (time) and 1 (energy), not {eta:g}")
        return {
            "eta_knob": eta,
            "beta_knob": None
            if self.beta_knob is None
            else _checks.positive("beta_knob", self.beta_knob),
            "target_metric": _checks.number("target_metric", self.target_metric),
            "higher_is_better_metric": _checks.flag(
                "higher_is_better_metric", self.higher_is_better_metric
            ),
            "max_epochs": _checks.whole("max_epochs", self.max_epochs, 1),
        }

    def _checked_policy(self) -> dict[str, Any]:
        if self.policy is not None and _checks.text("policy", self.policy) not in _POLICIES:
            raise InvalidArgumentError(
                f"policy is one of {', '.join(_POLICIES)}, not {self.policy!r}"
            )
        precision = _checks.number("mab_prior_precision", self.mab_prior_precision)
        if precision < 0:
            raise InvalidArgumentError(f"mab_prior_precision is 0 or more, not {precision:g}")
        seed = self.mab_seed
        return {
            "num_pruning_rounds": _checks.whole("num_pruning_rounds", self.num_pruning_rounds, 0),
            "window_size": _checks.whole("window_size", self.window_size, 0),
            "mab_prior_mean": _checks.number("mab_prior_mean", self.mab_prior_mean),
            "mab_prior_precision": precision,
            "mab_num_explorations": _checks.whole(
                "mab_num_explorations", self.mab_num_explorations, 0
            ),
            "mab_seed": None if seed is None else _checks.whole("mab_seed", seed, 0, 2**64 - 1),
        }

    def _checked_surroundings(self) -> dict[str, Any]:
        checked: dict[str, Any] = {"labels": _labels(self.labels)}
        if self.translate_gpu_models is not None:
            _checks.flag("translate_gpu_models", self.translate_gpu_models)
        if self.lease is not None:
            checked["lease"] = _checks.positive("lease", self.lease, _LONGEST_TIME)
        if self.max_power is not None:
            checked["max_power"] = _checks.positive("max_power", self.max_power, 1e12)
        if self.number_of_gpus is not None:
            checked["number_of_gpus"] = _checks.whole("number_of_gpus", self.number_of_gpus, 1)
        if self.gpu_model is not None and not _checks.text("gpu_model", self.gpu_model).strip():
            raise InvalidArgumentError(
                "gpu_model is empty: None takes that of the monitor's first GPU"
            )
        if self.deadline is not None:
            checked["deadline"] = _checks.positive("deadline", self.deadline, _LONGEST_TIME)
        return checked


def _identifier(name: str, value: Any) -> str:
    if not _IDENTIFIER.fullmatch(_checks.text(name, value)):
        raise InvalidArgumentError(
            f"{name} is 1 to 200 letters, digits and -_.: without anything else, not {value!r}"
        )
    return str(value)


def _labels(given: Any) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise TypeError(f"labels is a dict of strings, not {given!r}")
    for name, value in given.items():
        _checks.text("the name of a label", name)
        _checks.text(f"label {name}", value)
        if not name or ":" in name:
            raise InvalidArgumentError(
                f"the name of a label has no colon and is not empty, not {name!r}"
            )
    return dict(given)
