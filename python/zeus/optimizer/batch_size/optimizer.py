"""One run of a recurring job: which batch size to use, and what it cost."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Iterator

from zeus._core.batch_size import JobRun
from zeus.callback import Callback
from zeus.errors import InvalidArgumentError, ZeusError
from zeus.optimizer import _checks
from zeus.optimizer.batch_size.exceptions import (
    ZeusBSOBadOperationError,
    ZeusBSOOperationOrderError,
    ZeusBSOTrainFailError,
    translated,
)
from zeus.optimizer.batch_size.job_spec import JobSpec
from zeus.optimizer.batch_size.savings import JobSavings, savings_of

if TYPE_CHECKING:
    from zeus.monitor import ZeusMonitor
    from zeus.optimizer.power_limit import GlobalPowerLimitOptimizer
    from zeus.utils.distributed import Collective

#: The window of each epoch in the monitor's log, with the name that logs of earlier tools have.
_WINDOW = "BatciSizeOptimizerClient"


class BatchSizeOptimizer(Callback):
    """Asks a ``zeus serve`` which batch size to use, and reports what each epoch cost.

        optimizer = BatchSizeOptimizer(ZeusMonitor(), "http://zeus:8000", job)
        batch_size = optimizer.get_batch_size()
        optimizer.on_train_begin()
        for epoch in range(job.max_epochs):
            train(batch_size)
            optimizer.on_evaluate(validate())
            if optimizer.training_finished:
                break
        optimizer.on_train_end()

    One object is one run. Run by run the job gets cheaper, in the blend of time and energy that
    `JobSpec.eta_knob` asks for. As a context manager it ends the run, as a failed one when an
    exception passes; a run that nobody ends is given up at the end of the program, and one whose
    process was killed when its lease is over.

    A server that cannot be reached, goes away or hangs stops and delays nothing. The beginning of
    the run waits `start_timeout` for it; then the training begins with the batch size that the job
    last had here, or the default one. on_evaluate() does not wait: reports are sent in the
    background, so the answer to one epoch may be obeyed after the next. The end of the run waits
    at most `end_timeout`; results that the server has not confirmed by then are kept, and
    delivered by the next run on this machine.

    With several ranks all of them make the object and the same calls, and all get the same
    answers: the first rank talks to the server, energies are summed, the slowest rank's time
    counts. The trial then begins when the object is made.

    Args:
        monitor: Measures the GPUs of this process.
        server_url: ``http://host:8000``, ``https://host`` or ``unix:///path``.
        job: What is trained. If it has no id, the server's is printed, for later runs.
        rank: The rank of this process.
        token: The token that the server asks for, if it does.
        authorities: File of certificates to trust, for https; None for the system's.
        collective: How the ranks talk; None for torch.distributed, where it is in use.
        recurrence: Another try of this recurrence, after a run for which `retry` held.
        raise_on_failure: False: a run that failed is finished, and on_evaluate() does not raise.
        baseline: An undisturbed run of the default, which `savings` are measured against: the
            default batch size, never stopped early. Leave the power limits alone in such a run.
        needs_server: A server that cannot be reached is a ZeusBSORuntimeError, instead of a run
            without it.
        start_timeout: Seconds that the beginning of the run waits for a server that does not
            answer.
        end_timeout: Seconds that the end of the run waits for the server to confirm its results.

    Raises:
        TypeError, ValueError: What was given makes no sense. ZeusBSOConfigError, a ValueError, if
            it is the server that says so, as of a job that it knows differently.
        ZeusBSORuntimeError: The server cannot be reached, with `needs_server`; or it failed.
        PermissionError: It wants another token.
    """

    def __init__(
        self,
        monitor: ZeusMonitor,
        server_url: str,
        job: JobSpec,
        rank: int = 0,
        *,
        token: str | None = None,
        authorities: str | None = None,
        collective: Collective | None = None,
        recurrence: int | None = None,
        raise_on_failure: bool = True,
        baseline: bool = False,
        needs_server: bool = False,
        start_timeout: float = 10.0,
        end_timeout: float = 10.0,
    ) -> None:
        if not isinstance(job, JobSpec):
            raise TypeError(f"job is a JobSpec, not {job!r}")
        _checks.text("server_url", server_url)
        _checks.whole("rank", rank, 0)
        ranks = _checks.collective(collective, rank)
        if recurrence is not None:
            recurrence = _checks.whole("recurrence", recurrence, 0)
        self.monitor = monitor
        self.server_url = server_url
        self.job = job
        self.rank = rank
        self._raise_on_failure = _checks.flag("raise_on_failure", raise_on_failure)
        self._begun = False
        self._last_metric: float | None = None
        self._failure_raised = False
        with _our_exceptions(registering=True):
            self._run = JobRun(
                monitor=_checks.monitor(monitor),
                server=(
                    server_url,
                    "" if token is None else _checks.text("token", token),
                    "" if authorities is None else str(authorities),
                ),
                job=job.to_dict(),
                options={
                    "window": _WINDOW,
                    "recurrence": recurrence,
                    "baseline": _checks.flag("baseline", baseline),
                    "needs_server": _checks.flag("needs_server", needs_server),
                    "start_timeout": _checks.positive("start_timeout", start_timeout, 86400),
                    "end_timeout": _checks.positive("end_timeout", end_timeout, 86400),
                    "new_policy": "zeus" if job._speaks_of_the_papers_policy() else "",
                },
                collective=ranks,
            )
            if ranks is not None:
                # Later calls may then be made by one rank alone.
                self._run.begin_trial()
        if job.job_id is None and rank == 0:
            print(
                f"zeus: this job is {self.job_id}: give its next runs job_id={self.job_id!r}",
                file=sys.stderr,
            )

    def savings(
        self,
        *,
        carbon: str | os.PathLike[str] | None = None,
        price: str | os.PathLike[str] | None = None,
        carbon_token_file: str | os.PathLike[str] | None = None,
        carbon_fallback: str | None = None,
        carbon_url: str | None = None,
    ) -> JobSavings:
        """Returns the saving of the job against undisturbed runs of its default, on this GPU model.

        On the first rank only, and before the run is closed. Waits for the server, also for its
        answers to the reports of this run. The arguments are the options of
        ``zeus job savings``; without `carbon` and `price`, emissions and money are those of the
        server, if it was started with ``--carbon`` or ``--price``.

        Args:
            carbon: "350g/kWh", a country ("DE"), a file.csv, or "electricity-maps:ZONE".
            price: "0.31EUR" per kWh, a tariff.toml, or a file.csv.
            carbon_token_file: File with the token of electricity maps; else
                ELECTRICITY_MAPS_TOKEN.
            carbon_fallback: When electricity maps cannot be reached: "350g/kWh" or a country.
            carbon_url: Address of electricity maps, with its version.

        Raises:
            ValueError: An argument makes no sense.
            ZeusBSORuntimeError: The server cannot be reached.
        """
        named = {
            "carbon": carbon,
            "price": price,
            "carbon_token_file": carbon_token_file,
            "carbon_fallback": carbon_fallback,
            "carbon_url": carbon_url,
        }
        with _our_exceptions():
            return savings_of(
                self._run.savings(
                    {name: os.fspath(value) for name, value in named.items() if value is not None}
                )
            )

    def get_batch_size(self) -> int:
        """The batch size of this run, the same at every call. The first one begins the trial.

        Raises:
            ZeusBSORuntimeError: The server cannot be reached.
        """
        if not self._run.batch_size:
            with _our_exceptions():
                self._run.begin_trial()
        return self._run.batch_size

    def observe(self, power_limit_optimizer: GlobalPowerLimitOptimizer) -> None:
        """Names an optimiser that tries power limits during this run.

        Epochs before it has decided are not reported as typical ones.
        """
        for member in ("closed", "done"):
            if not hasattr(type(power_limit_optimizer), member):
                raise TypeError(
                    f"power_limit_optimizer is a GlobalPowerLimitOptimizer, not "
                    f"{power_limit_optimizer!r}"
                )
        with _our_exceptions():
            self._run.observe(power_limit_optimizer)

    def on_train_begin(self) -> None:
        """Begins to measure. The batch size is asked for, if it was not."""
        self.get_batch_size()
        self._begun = True
        with _our_exceptions():
            self._run.on_train_begin()

    def on_evaluate(self, metric: float) -> None:
        """After each epoch: reports its metric, and the time and energy used so far.

        The report is queued and sent in the background; answers that have arrived are obeyed.
        Sets `training_finished` when the target is reached. A metric that is infinite or not a
        number is that of a training that diverged: it counts as no progress. Nothing is reported
        once the training is finished.

        Raises:
            ZeusBSOTrainFailError: The run ends without the target: it has had its epochs, or costs
                too much. Raised once, by the first call that knows it. Never for a server that
                does not answer: see `trouble`.
            ZeusBSOOperationOrderError: on_train_begin() comes first.
        """
        if not self._begun:
            raise ZeusBSOOperationOrderError("on_train_begin() comes before on_evaluate()")
        if not self.training_finished:
            with _our_exceptions():
                self._run.on_evaluate(self._finite(metric))
        failed = self._run.stop and not self._run.converged
        if failed and self._raise_on_failure and not self._failure_raised:
            self._failure_raised = True
            raise ZeusBSOTrainFailError(self.message)

    def on_train_end(self) -> None:
        """The training came to its end by itself: what it cost without reaching the target counts.

        Without this call it is given up, which teaches nothing.
        """
        if not self._run.closed:
            self._run.on_train_end()
            self._run.close()

    def close(self) -> None:
        """Ends the run. One that was neither finished nor ended by on_train_end() is given up."""
        self._run.close()

    @property
    def job_id(self) -> str:
        """The id of the job on the server: JobSpec.job_id of its later runs."""
        return self._run.job_id

    @property
    def training_finished(self) -> bool:
        """Whether the training should end, or has: the target is reached, or out of reach."""
        return self._run.stop or self._run.closed

    @property
    def converged(self) -> bool:
        """Whether the target was reached."""
        return self._run.converged

    @property
    def message(self) -> str:
        """Why the training should end; empty before."""
        return self._run.message or ("it failed: rank 0 knows why" if self._run.stop else "")

    @property
    def retry(self) -> bool:
        """Whether the recurrence should go on with another run: give it `recurrence`."""
        return self._run.retry

    @property
    def recurrence(self) -> int | None:
        """The number of the job's recurrence, from 0; retries belong to the same. None before the trial begins."""
        return self._run.recurrence if self._run.trial else None

    @property
    def trouble(self) -> str | None:
        """The latest error of the server, a refusal included; None if there was none."""
        return self._run.trouble

    @property
    def max_epochs(self) -> int:
        """After so many epochs the server will end the run; 0 before the trial begins."""
        return self._run.max_epochs

    @property
    def current_batch_size(self) -> int:
        """As get_batch_size(); 0 before the trial begins."""
        return self._run.batch_size

    @current_batch_size.setter
    def current_batch_size(self, value: int) -> None:
        self._agree("current_batch_size", value, self._run.batch_size)

    @property
    def trial_number(self) -> int:
        """The number of this run among the job's trials; 0 before it begins."""
        return self._run.trial

    @trial_number.setter
    def trial_number(self, value: int) -> None:
        self._agree("trial_number", value, self._run.trial)

    def __enter__(self) -> BatchSizeOptimizer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.on_train_end()
        self.close()

    def __repr__(self) -> str:
        return f"BatchSizeOptimizer(job_id={self.job_id!r}, batch_size={self.current_batch_size})"

    def _agree(self, name: str, told: int, known: int) -> None:
        """Accepts the value that is known, for scripts that share the batch size by hand."""
        if told != known:
            raise ZeusBSOBadOperationError(f"{name} is {known} on all ranks, and cannot be {told}")

    def _finite(self, metric: float) -> float:
        try:
            return self._remembered(_checks.number("metric", metric))
        except InvalidArgumentError:
            better = 1 if self.job.higher_is_better_metric else -1
            warnings.warn(
                f"the metric is {metric}: the training has diverged, which counts as no progress",
                stacklevel=4,
            )
            if self._last_metric is not None:
                return self._last_metric
            target = self.job.target_metric
            return target - better * max(1.0, math.fabs(target))

    def _remembered(self, metric: float) -> float:
        self._last_metric = metric
        return metric


@contextlib.contextmanager
def _our_exceptions(registering: bool = False) -> Iterator[None]:
    try:
        yield
    except ZeusError as error:
        raise translated(error, registering) from None
