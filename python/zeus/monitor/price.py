"""The cost of the electricity of windows.

    client = OpenEIClient((38.6, -90.3), label="Residential Rate 1M", timezone="America/Chicago")
    monitor = EnergyCostMonitor(client, gpu_indices=[0])
    monitor.begin_window("epoch")
    ...
    print(monitor.end_window("epoch").gpu_energy_cost)  # {0: 0.0021}, dollars

A price holds for hours of the local day. No answer from the network means no number and a warning
that says why; the program neither ends nor waits for long.
"""

from __future__ import annotations

import json
import math
import os
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Sequence, Tuple
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from zeus import _checks
from zeus._core import carbon as _carbon
from zeus.errors import InvalidArgumentError, UnavailableError, ZeusError
from zeus.monitor._accounting import Accounts, AccountingMonitor, Piece, ask, warn_of
from zeus.monitor.carbon import check_location, check_secret
from zeus.monitor.energy import ZeusMonitor

__all__ = [
    "ElectricityPriceProvider",
    "EnergyCostMeasurement",
    "EnergyCostMonitor",
    "OpenEIClient",
    "ZeusElectricityPriceError",
    "ZeusElectricityPriceHTTPError",
    "ZeusElectricityPriceNotFoundError",
    "get_time_info",
]

_WEEKDAYS, _WEEKEND = 0b0111110, 0b1000001  # Bit 0 is Sunday.
_JOULES_PER_KWH = 3.6e6

# A month, counted from the year 0, and the joules that were used in it so far: they decide the
# tier. Of two, the greater is the later.
_Used = Tuple[int, float]


class ZeusElectricityPriceError(ZeusError, RuntimeError):
    """The price of electricity is unknown."""


class ZeusElectricityPriceHTTPError(ZeusElectricityPriceError):
    """The service did not answer, or rejected the request."""


class ZeusElectricityPriceNotFoundError(ZeusElectricityPriceError):
    """The service has no such rate."""


class ElectricityPriceProvider(ABC):
    """The interface of sources of prices. Programs may implement their own."""

    #: Currency of the prices (ISO 4217).
    currency = "USD"
    #: Time zone of the schedules: "Europe/Berlin"; None: this machine's.
    timezone: str | None = None

    @abstractmethod
    def get_current_electricity_prices(self) -> dict[str, list[Any]]:
        """``energy_rate_structure``, ``energy_weekday_schedule``, ``energy_weekend_schedule``.

        A schedule has 12 months of 24 hours, each the number of a rate in the structure. A rate
        is a list of tiers ``{"rate": price of a kWh, "adj": added to it, "max": kWh a month}``.
        """


class OpenEIClient(ElectricityPriceProvider):
    """Rates of utilities in the United States, from openei.org.

    Args:
        location: Latitude and longitude.
        label: Of the rate, or its name, as openei.org has it.
        sector: Of customers.
        radius: Miles around the location.
        api_key: Of an account there; None for the environment variable OPENEI_API_KEY.
        timezone: Of the location; None for this machine's.
        timeout: Seconds for finding the server, for connecting, and for its answer.
    """

    def __init__(
        self,
        location: tuple[float, float],
        label: str,
        sector: Literal["Residential", "Commercial", "Industrial", "Lighting"] = "Residential",
        radius: float = 0,
        *,
        api_key: str | None = None,
        timezone: str | None = None,
        timeout: float = 10.0,
        base_url: str = "https://api.openei.org",
    ) -> None:
        self.lat, self.long = check_location(location)
        if sector not in ("Residential", "Commercial", "Industrial", "Lighting"):
            raise InvalidArgumentError(
                f"sector is {sector!r}: Residential, Commercial, Industrial or Lighting"
            )
        self.label = _checks.text("label", label)
        self.sector = sector
        self.radius = _checks.not_negative("radius", radius)
        self.timezone = timezone
        self._key = check_secret("api_key", api_key, "OPENEI_API_KEY")
        self._timeout = _checks.positive("timeout", timeout)
        self._base_url = _checks.text("base_url", base_url)

    def get_current_electricity_prices(self) -> dict[str, list[Any]]:
        """Returns prices and schedules. ZeusElectricityPriceError if they are unknown."""
        rate = self.search_json(self._get())
        if rate is None:
            raise ZeusElectricityPriceNotFoundError(
                f'openei.org has no rate "{self.label}" at {self.lat}, {self.long}: '
                "compare the label with its list, or give a radius"
            )
        try:
            return {
                "energy_rate_structure": rate["energyratestructure"],
                "energy_weekday_schedule": rate["energyweekdayschedule"],
                "energy_weekend_schedule": rate["energyweekendschedule"],
            }
        except KeyError as error:
            raise ZeusElectricityPriceNotFoundError(
                f'the rate "{self.label}" of openei.org has no {error.args[0]}'
            ) from error

    def search_json(self, data: Any) -> dict[str, Any] | None:
        """Returns the first object with the label at any depth; None if there is none."""
        waiting = [data]
        while waiting:
            part = waiting.pop(0)
            if isinstance(part, dict):
                if self.label in (part.get("label"), part.get("name")):
                    return part
                waiting.extend(part.values())
            elif isinstance(part, list):
                waiting.extend(part)
        return None

    def _get(self) -> Any:
        query = urlencode(
            {
                "version": "latest",
                "format": "json",
                "detail": "full",
                "lat": self.lat,
                "lon": self.long,
                "sector": self.sector,
                "radius": self.radius,
                "limit": 500,
            }
        )
        try:
            status, body = _carbon.http_get(
                self._base_url, f"/utility_rates?{query}", "X-Api-Key", self._key, self._timeout
            )
            answer = json.loads(body) if status == 200 else None
        except (UnavailableError, ValueError, RecursionError) as error:
            raise ZeusElectricityPriceHTTPError(f"openei.org: {error}") from error
        if status in (401, 403):
            raise ZeusElectricityPriceHTTPError(
                f"openei.org refused the key ({status}): set OPENEI_API_KEY"
            )
        if status != 200:
            raise ZeusElectricityPriceHTTPError(f"openei.org answered {status}")
        return answer


@dataclass
class EnergyCostMeasurement:
    """Time, joules, and money by index of the device.

    Unknown numbers are NaN, and `notes` holds the reason.
    """

    time: float
    gpu_energy: dict[int, float] | None
    gpu_energy_cost: dict[int, float] | None
    cpu_energy: dict[int, float] | None = None
    cpu_energy_cost: dict[int, float] | None = None
    dram_energy: dict[int, float] | None = None
    dram_energy_cost: dict[int, float] | None = None
    currency: str = "USD"
    #: Standard deviation of the money by device: "gpu:0".
    sigma: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def total_energy_cost(self) -> float:
        """Cost of all devices together."""
        parts = (self.gpu_energy_cost, self.cpu_energy_cost, self.dram_energy_cost)
        return math.fsum(cost for part in parts for cost in (part or {}).values())


class EnergyCostMonitor(AccountingMonitor):
    """Measures energy and its cost.

    Prices are asked for once, at the end of the first window. Where they have tiers, the energy of
    all devices counts together, from window to window until the month ends; what windows share
    counts once. A device bears the cost by its share of the energy.

    Args:
        electricity_price_provider: The source of prices.
        gpu_indices, cpu_indices, sync_execution_with: As for ZeusMonitor.
        monitor: Used instead of a new one.
        timeout: Seconds that end_window() waits for the provider, at most.
        used_this_month: Kilowatt-hours before these windows: they decide the tier.
    """

    def __init__(
        self,
        electricity_price_provider: ElectricityPriceProvider,
        gpu_indices: Sequence[int] | None = None,
        cpu_indices: Sequence[int] | None = None,
        sync_execution_with: Literal["torch", "jax", "cupy"] | None = None,
        *,
        monitor: ZeusMonitor | None = None,
        timeout: float = 15.0,
        used_this_month: float = 0.0,
    ) -> None:
        if not hasattr(electricity_price_provider, "get_current_electricity_prices"):
            raise TypeError(
                f"electricity_price_provider is {electricity_price_provider!r}, which is no "
                "ElectricityPriceProvider"
            )
        zone = getattr(electricity_price_provider, "timezone", None)
        if zone is not None:
            _checks.text("timezone of the electricity_price_provider", zone)
        self.electricity_price_provider = electricity_price_provider
        self.used_this_month = _checks.not_negative("used_this_month", used_this_month)
        self._tariff: _carbon.Tariff | None = None
        self._has_tiers = False
        self._used: _Used = (self._month(time.time()), self.used_this_month * _JOULES_PER_KWH)
        self._used_at_begin: dict[str, _Used] = {}
        super().__init__(gpu_indices, cpu_indices, sync_execution_with, monitor, timeout)

    def begin_window(self, key: str, sync_execution: bool = True) -> None:
        """Begins a window. ValueError if one of this name is open."""
        self._refuse_forked_child()
        used = self._used_so_far()
        super().begin_window(key, sync_execution)
        self._used_at_begin[key] = used

    def end_window(self, key: str, sync_execution: bool = True) -> EnergyCostMeasurement:
        """Returns time, energy and cost since begin_window()."""
        measurement, window = self._end(key, sync_execution)
        used = self._used_at_begin.pop(key, self._used)
        accounts = Accounts(measurement, window)
        try:
            self._tariff = self._tariff or self._fetch()
        except Exception as error:
            accounts.notes.append(f"{type(error).__name__}: {error}")

        prices = self._prices(accounts.together(), used)

        def account(pieces: list[Piece], sigma: float) -> Any:
            cost = math.fsum(prices[begin, end] * joules for begin, end, joules in pieces)
            energy = math.fsum(joules for _, _, joules in pieces)
            return cost, abs(cost) * (sigma / energy) if energy else 0.0, 0.0, []

        result = EnergyCostMeasurement(
            time=measurement.time,
            gpu_energy=measurement.gpu_energy,
            gpu_energy_cost=accounts.of("gpu", account),
            cpu_energy=measurement.cpu_energy,
            cpu_energy_cost=accounts.of("cpu", account),
            dram_energy=measurement.dram_energy,
            dram_energy_cost=accounts.of("dram", account),
            currency=getattr(self.electricity_price_provider, "currency", "USD"),
            sigma=accounts.sigma,
            notes=accounts.notes,
        )
        warn_of(result.notes, f'cost of the window "{key}"')
        return result

    def _fetch(self) -> _carbon.Tariff:
        provider = self.electricity_price_provider
        name = type(provider).__name__
        prices = ask(provider.get_current_electricity_prices, self.timeout, name)
        rates = rates_of(prices)
        self._has_tiers = any(len(tiers) > 1 for *_, tiers in rates)
        return _carbon.Tariff(
            rates=rates,
            zone=self._zone(),
            currency=getattr(provider, "currency", "USD"),
            already_used=0.0,  # It is among the pieces.
            name=name,
        )

    def _used_so_far(self) -> _Used:
        """Returns the energy of ended windows and of the one that has been open longest."""
        with self._changed:
            used, oldest = self._used, next(iter(self._windows), None)
        if oldest not in self._used_at_begin:
            return used
        try:
            window = Accounts(self.zeus_monitor.peek_window(oldest))
        except (AttributeError, ZeusError):  # The window cannot be read, or was just ended.
            return used
        month, joules = self._used_at_begin.get(oldest, used)
        return max(used, (month, joules + sum(energy for _, _, energy in window.together())))

    def _prices(self, pieces: list[Piece], used: _Used) -> dict[tuple[float, float], float]:
        """Returns the price of a joule in each piece, given the energy used before the first."""
        prices: dict[tuple[float, float], float] = {}
        month, joules = used
        for begin, end, energy in pieces:
            if self._month(begin) > month:
                month, joules = self._month(begin), 0.0
            prices[begin, end] = self._price(begin, end, energy, joules)
            joules += energy
        with self._changed:
            self._used = max(self._used, (month, joules))
        return prices

    def _price(self, begin: float, end: float, energy: float, used: float) -> float:
        if self._tariff is None:
            return math.nan
        energy = energy or 1.0  # Pieces without energy get a price, too.
        # Earlier use is not paid again. Without tiers it is left out, for precision.
        before = [(begin, begin, used)] if self._has_tiers else []
        paid = self._tariff.cost(before, 0.0)[0]
        return (self._tariff.cost([*before, (begin, end, energy)], 0.0)[0] - paid) / energy

    def _zone(self) -> str:
        return getattr(self.electricity_price_provider, "timezone", None) or _local_zone()

    def _month(self, moment: float) -> int:
        try:
            local = datetime.fromtimestamp(moment, ZoneInfo(self._zone()))
        except (KeyError, OSError, ValueError):  # Only the C library knows some names.
            local = datetime.fromtimestamp(moment)
        return 12 * local.year + local.month


def rates_of(prices: dict[str, list[Any]]) -> list[_carbon.Rate]:
    """Returns the rates of all months and days of the week with their hours."""
    try:
        tiers = [_tiers(rate) for rate in prices["energy_rate_structure"]]
        rates: list[_carbon.Rate] = []
        for days, schedule in (
            (_WEEKDAYS, prices["energy_weekday_schedule"]),
            (_WEEKEND, prices["energy_weekend_schedule"]),
        ):
            if [len(month) for month in schedule] != [24] * 12:
                raise InvalidArgumentError("a schedule must have 12 months of 24 hours")
            for month, hours in enumerate(schedule):
                for hour, rate in enumerate(hours):
                    number = _checks.whole("a rate of a schedule", rate, 0, len(tiers) - 1)
                    rates.append((1 << month, days, 60 * hour, 60 * (hour + 1), tiers[number]))
        return rates
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"the prices make no sense: {error}") from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise ZeusElectricityPriceError(
            f"the prices make no sense: {type(error).__name__}: {error}"
        ) from error


def _tiers(rate: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Returns upper bounds in kilowatt-hours and prices; the last tier has no bound."""
    ends = [
        math.inf if tier.get("max", math.inf) == math.inf else _number("max", tier["max"])
        for tier in rate
    ]
    prices = [_number("rate", each["rate"]) + _number("adj", each.get("adj", 0)) for each in rate]
    if not rate:
        raise InvalidArgumentError("a rate has no tier")
    return list(zip([*ends[:-1], math.inf], prices))


def _number(name: str, value: Any) -> float:
    """Returns a number, which services may also send as text."""
    return _checks.number(f"{name} of a tier", float(value) if isinstance(value, str) else value)


def _local_zone() -> str:
    """Returns the name of this machine's time zone; UTC if it is not configured."""
    named = os.environ.get("TZ", "").lstrip(":")
    if named:
        return named
    _, found, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    return name if found else "UTC"


def get_time_info(moment: datetime | None = None) -> tuple[int, str, int]:
    """Returns month (0 is January), "Weekday" or "Weekend", and hour in local time."""
    moment = moment or datetime.now()
    return moment.month - 1, "Weekend" if moment.weekday() >= 5 else "Weekday", moment.hour
