"""The power of GPUs over time."""

from __future__ import annotations

import enum
import warnings
from typing import TYPE_CHECKING, Sequence, Union

from zeus._core.recording import Quantity
from zeus.errors import InvalidArgumentError
from zeus.monitor.recorded import RecordedGpus, check_count, check_period, check_time

if TYPE_CHECKING:
    from zeus.monitor.energy import ZeusMonitor

__all__ = ["PowerDomain", "PowerMonitor"]

# Tolerance in seconds between readings of different clocks.
_SAME_TIME = 0.05


class PowerDomain(enum.Enum):
    """The part of a device, and the averaging."""

    #: The whole device, as finely as its sensor reports.
    DEVICE_INSTANT = "device_instant"
    #: The whole device, averaged by its sensor over about a second.
    DEVICE_AVERAGE = "device_average"
    #: The memory alone, averaged.
    MEMORY_AVERAGE = "memory_average"


#: A domain, or its value: "device_instant".
Domain = Union[PowerDomain, str]


_QUANTITIES = {
    PowerDomain.DEVICE_INSTANT: Quantity.POWER,
    PowerDomain.DEVICE_AVERAGE: Quantity.AVERAGE_POWER,
    PowerDomain.MEMORY_AVERAGE: Quantity.MEMORY_POWER,
}


class PowerMonitor:
    """Records the power of GPUs, from its construction to `stop()`.

        monitor = PowerMonitor()
        start = time.time()
        train()
        print(monitor.get_energy(start, time.time()))  # {0: 2310.4, 1: 2287.1}

    One native thread records all GPUs, of any models, in bounded memory: recent readings in full,
    older ones more and more coarsely, preserving the mean. Energy comes from the same curve as that
    of windows (`ZeusMonitor`), so constant power counts, too. Times are seconds since 1970, as from
    ``time.time()``. Thread-safe.

    Args:
        gpu_indices: Indices among the GPUs that this process sees; None: all.
        update_period: Seconds between two readings of averages. The instant domain follows each
            sensor's own updates instead. None: 1.
        max_samples_per_gpu: Timelines hold at most this many of the newest samples; None: all.
        power_domains: Required domains, otherwise ValueError; None: all that are available. Here
            and in the methods a domain may also be given by its value, such as "device_instant".
        monitor: A `ZeusMonitor` whose recording is used instead of one of its own.
    """

    def __init__(
        self,
        gpu_indices: Sequence[int] | None = None,
        update_period: float | None = None,
        max_samples_per_gpu: int | None = None,
        power_domains: Sequence[Domain] | None = None,
        *,
        monitor: ZeusMonitor | None = None,
    ) -> None:
        period = check_period(update_period)
        self.max_samples_per_gpu = check_count(max_samples_per_gpu, "max_samples_per_gpu")
        wanted = _domains(power_domains)
        self._recorded = RecordedGpus(gpu_indices, period or 1.0, monitor)
        self.gpu_indices = list(self._recorded.positions)
        self.update_period = period or 1.0
        try:
            self.power_domains = self._supported(wanted)
        except ValueError:
            self.stop()
            raise

    def get_power(
        self,
        time: float | None = None,
        power_domain: Domain = PowerDomain.DEVICE_INSTANT,
    ) -> dict[int, float] | None:
        """Returns watts by GPU, at present or at a time; NaN for a GPU that was not readable then.

        The same holds for times before the recording. None if nothing was recorded at all.
        """
        quantity = self._quantity(power_domain)
        if time is not None:
            return self._recorded.at(quantity, check_time(time, "time"))
        return self._recorded.now(quantity)

    def get_energy(
        self, start_time: float, end_time: float, power_domain: Domain | None = None
    ) -> dict[int, float] | None:
        """Returns joules by GPU between two times; NaN for a GPU that was not always readable.

        Times before the recording, after its end (with a warning) and in the future do not count.
        None if the whole interval is before the recording.
        """
        both = self._energy(start_time, end_time, power_domain)
        return None if both is None else {gpu: energy for gpu, (energy, _) in both.items()}

    def get_energy_sigma(
        self, start_time: float, end_time: float, power_domain: Domain | None = None
    ) -> dict[int, float] | None:
        """Returns one standard deviation of `get_energy()`; NaN if it is unknown.

        It is known in the instant domain, as long as the monitor was not stopped.
        """
        both = self._energy(start_time, end_time, power_domain)
        return None if both is None else {gpu: sigma for gpu, (_, sigma) in both.items()}

    def get_power_timeline(
        self,
        power_domain: Domain = PowerDomain.DEVICE_INSTANT,
        gpu_index: int | None = None,
        start_time: float | None = None,
        end_time: float | None = None,
    ) -> dict[int, list[tuple[float, float]]]:
        """Times and watts by GPU, oldest first. A value holds from its time to the next.

        There is none for the time in which a GPU did not tell.
        """
        return self._recorded.timeline(
            self._quantity(power_domain), gpu_index, start_time, end_time, self.max_samples_per_gpu
        )

    def get_all_power_timelines(
        self,
        gpu_index: int | None = None,
        start_time: float | None = None,
        end_time: float | None = None,
    ) -> dict[PowerDomain, dict[int, list[tuple[float, float]]]]:
        """Returns `get_power_timeline()` of all available domains."""
        return {
            domain: self.get_power_timeline(domain, gpu_index, start_time, end_time)
            for domain in self.power_domains
        }

    def stop(self) -> None:
        """Ends the recording, unless it belongs to another monitor. It stays readable.

        A second call does nothing, nor does a call in a forked child.
        """
        self._recorded.stop()

    def __enter__(self) -> PowerMonitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _energy(
        self, start_time: float, end_time: float, power_domain: Domain | None
    ) -> dict[int, tuple[float, float]] | None:
        begin, until = check_time(start_time, "start_time"), check_time(end_time, "end_time")
        if begin > until:
            raise InvalidArgumentError(
                f"the end of a time span lies before its begin: {until} < {begin}"
            )
        instant = PowerDomain.DEVICE_INSTANT
        usual = instant if instant in self.power_domains else self.power_domains[0]
        quantity = self._quantity(power_domain or usual)
        since = self._recorded.since(quantity)
        if since is None or until < since:
            return None
        if begin < since - _SAME_TIME:
            warnings.warn(
                f"the first {since - begin:.2f} s are not in the energy: recording began then",
                stacklevel=3,
            )
        if (stopped := self._recorded.until(quantity)) < until - _SAME_TIME:
            warnings.warn(
                f"the last {until - stopped:.2f} s are not in the energy: recording was stopped",
                stacklevel=3,
            )
        return self._recorded.energy(quantity, begin, until)

    def _supported(self, wanted: list[PowerDomain] | None) -> list[PowerDomain]:
        missing = {
            domain: self._recorded.unsupported(quantity) for domain, quantity in _QUANTITIES.items()
        }
        for domain in wanted or []:
            for gpu, why in missing[domain].items():
                raise InvalidArgumentError(f"GPU {gpu} has no {domain.value} power: {why}")
        everywhere = len(self.gpu_indices)
        found = [domain for domain in PowerDomain if len(missing[domain]) < everywhere]
        if not found:
            raise InvalidArgumentError(
                f"no GPU tells its power: {missing[PowerDomain.DEVICE_INSTANT]}"
            )
        return wanted or found

    def _quantity(self, given: Domain) -> Quantity:
        domain = _domain(given)
        if domain not in self.power_domains:
            names = ", ".join(known.value for known in self.power_domains)
            raise InvalidArgumentError(f"{domain.value} is not recorded here: {names} is")
        return _QUANTITIES[domain]


def _domain(given: Domain) -> PowerDomain:
    if not isinstance(given, (PowerDomain, str)):
        raise TypeError(f"a power domain is a PowerDomain or its value, not {given!r}")
    try:
        return PowerDomain(given)
    except ValueError:
        names = ", ".join(f'"{known.value}"' for known in PowerDomain)
        raise InvalidArgumentError(f"there is no power domain {given!r}: use {names}") from None


def _domains(given: Sequence[Domain] | None) -> list[PowerDomain] | None:
    if given is None:
        return None
    if isinstance(given, (str, PowerDomain)):
        raise TypeError(f"power_domains is a list of domains, not {given!r}")
    domains = [_domain(domain) for domain in given]
    if not domains:
        raise InvalidArgumentError("power_domains is empty: leave it out for all that there are")
    return domains
