"""Carbon emissions of windows.

    monitor = CarbonEmissionMonitor(ElectricityMapsClient((52.5, 13.4)), gpu_indices=[0])
    monitor.begin_window("epoch")
    ...
    print(monitor.end_window("epoch").gpu_carbon_emission)  # {0: 12.3}, grams of CO2

Energy is multiplied with the intensity of the hour in which it was used. No answer from the
network means no number and a warning that says why; the program neither ends nor waits for long.
"""

from __future__ import annotations

import json
import math
import os
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, Sequence

from zeus import _checks
from zeus._core import carbon as _carbon
from zeus.errors import InvalidArgumentError, UnavailableError, ZeusError
from zeus.monitor._accounting import Accounts, AccountingMonitor, ask, warn_of
from zeus.monitor.energy import ZeusMonitor

__all__ = [
    "CarbonEmissionMeasurement",
    "CarbonEmissionMonitor",
    "CarbonIntensityProvider",
    "ConstantCarbonIntensity",
    "ElectricityMapsClient",
    "ElectrictyMapsClient",
    "ZeusCarbonIntensityError",
    "ZeusCarbonIntensityHTTPError",
    "ZeusCarbonIntensityNotFoundError",
]


class ZeusCarbonIntensityError(ZeusError, RuntimeError):
    """The carbon intensity is unknown."""


class ZeusCarbonIntensityHTTPError(ZeusCarbonIntensityError):
    """The service did not answer, or rejected the request."""


class ZeusCarbonIntensityNotFoundError(ZeusCarbonIntensityError):
    """The service has no intensity for this place."""


class CarbonIntensityProvider(ABC):
    """The interface of sources of carbon intensity. Programs may implement their own."""

    @abstractmethod
    def get_current_carbon_intensity(self) -> float:
        """Returns the present intensity in gCO2eq/kWh."""

    @abstractmethod
    def get_recent_carbon_intensity(self) -> dict[datetime, float]:
        """Returns values by the moment from which they hold; UTC if it has no time zone."""

    @property
    def update_period(self) -> timedelta:
        """The time for which a value holds."""
        return timedelta(hours=1)

    @property
    def history_length(self) -> int:
        """The number of periods that get_recent_carbon_intensity() covers."""
        return 24


class ConstantCarbonIntensity(CarbonIntensityProvider):
    """A constant intensity, for example from a contract or a yearly report."""

    def __init__(self, grams_per_kwh: float) -> None:
        self.grams_per_kwh = _checks.not_negative("grams_per_kwh", grams_per_kwh)

    def get_current_carbon_intensity(self) -> float:
        """Returns the constant."""
        return self.grams_per_kwh

    def get_recent_carbon_intensity(self) -> dict[datetime, float]:
        """Returns the constant for every hour of the last day."""
        hour = datetime.now(timezone.utc).replace(minute=0, second=0, microsecond=0)
        return {hour - timedelta(hours=back): self.grams_per_kwh for back in range(25)}


class ElectricityMapsClient(CarbonIntensityProvider):
    """The intensity of the grid at a place, from electricitymaps.com.

    Args:
        location: Latitude and longitude.
        estimate: Whether estimates are accepted if there is no measurement.
        emission_factor_type: "direct" for what power stations emit, "lifecycle" for their making
            and fuel as well.
        token: Of an account there; None for the environment variable ELECTRICITY_MAPS_TOKEN.
        timeout: Seconds for finding the server, for connecting, and for its answer.
    """

    def __init__(
        self,
        location: tuple[float, float],
        estimate: bool = False,
        emission_factor_type: Literal["direct", "lifecycle"] = "direct",
        *,
        token: str | None = None,
        timeout: float = 5.0,
        base_url: str = "https://api.electricitymaps.com",
    ) -> None:
        self.lat, self.long = check_location(location)
        if emission_factor_type not in ("direct", "lifecycle"):
            raise InvalidArgumentError(
                f'emission_factor_type is {emission_factor_type!r}: "direct" or "lifecycle"'
            )
        self.estimate = estimate
        self.emission_factor_type = emission_factor_type
        self._token = check_secret("token", token, "ELECTRICITY_MAPS_TOKEN")
        self._timeout = _checks.positive("timeout", timeout)
        self._base_url = _checks.text("base_url", base_url)

    def get_current_carbon_intensity(self) -> float:
        """Returns the present intensity. ZeusCarbonIntensityError if it is unknown."""
        intensity = self._get("latest").get("carbonIntensity")
        if not isinstance(intensity, (int, float)):
            raise ZeusCarbonIntensityNotFoundError(
                f"no carbon intensity is known for {self.lat}, {self.long}: try estimate=True"
            )
        return self._intensity(intensity)

    def get_recent_carbon_intensity(self) -> dict[datetime, float]:
        """Returns the last 24 hours. ZeusCarbonIntensityError if they are unknown."""
        recent = {}
        answer = self._get("history")
        try:
            for entry in answer.get("history") or []:
                intensity = entry.get("carbonIntensity")
                if isinstance(intensity, (int, float)):
                    moment = str(entry["datetime"]).replace("Z", "+00:00")
                    recent[datetime.fromisoformat(moment)] = self._intensity(intensity)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ZeusCarbonIntensityHTTPError(
                f"the history of electricity maps makes no sense: {type(error).__name__}: {error}"
            ) from error
        if not recent:
            raise ZeusCarbonIntensityNotFoundError(
                f"no recent carbon intensity is known for {self.lat}, {self.long}: "
                "try estimate=True"
            )
        return recent

    def _intensity(self, value: float) -> float:
        try:
            return _checks.not_negative("the intensity of electricity maps", value)
        except (TypeError, InvalidArgumentError) as error:
            raise ZeusCarbonIntensityHTTPError(str(error)) from error

    def _get(self, what: str) -> Any:
        path = (
            f"/v3/carbon-intensity/{what}?lat={self.lat}&lon={self.long}"
            f"&disableEstimations={str(not self.estimate).lower()}"
            f"&emissionFactorType={self.emission_factor_type}"
        )
        try:
            status, body = _carbon.http_get(
                self._base_url, path, "auth-token", self._token, self._timeout
            )
            answer = json.loads(body) if status == 200 else None
        except (UnavailableError, ValueError, RecursionError) as error:
            raise ZeusCarbonIntensityHTTPError(f"electricity maps: {error}") from error
        if status in (401, 403):
            raise ZeusCarbonIntensityHTTPError(
                f"electricity maps refused the token ({status}): set ELECTRICITY_MAPS_TOKEN"
            )
        if status == 404:
            raise ZeusCarbonIntensityNotFoundError(
                f"electricity maps knows nothing about {self.lat}, {self.long}"
            )
        if not isinstance(answer, dict):
            raise ZeusCarbonIntensityHTTPError(f"electricity maps answered {status}")
        return answer


#: The name in scripts written for earlier tools of this kind.
ElectrictyMapsClient = ElectricityMapsClient


@dataclass
class CarbonEmissionMeasurement:
    """Time, joules, and grams of CO2 equivalents by index of the device.

    Unknown numbers are NaN, and `notes` holds the reason.
    """

    time: float
    gpu_energy: dict[int, float] | None
    gpu_carbon_emission: dict[int, float] | None
    cpu_energy: dict[int, float] | None = None
    cpu_carbon_emission: dict[int, float] | None = None
    dram_energy: dict[int, float] | None = None
    dram_carbon_emission: dict[int, float] | None = None
    #: Standard deviation of the grams by device: "gpu:0".
    sigma: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def total_carbon_emission(self) -> float:
        """Grams of all devices together."""
        parts = (self.gpu_carbon_emission, self.cpu_carbon_emission, self.dram_carbon_emission)
        return math.fsum(grams for part in parts for grams in (part or {}).values())


class CarbonEmissionMonitor(AccountingMonitor):
    """Measures energy and its emissions.

    Args:
        carbon_intensity_provider: The source of intensities.
        gpu_indices, cpu_indices, sync_execution_with: As for ZeusMonitor.
        monitor: Used instead of a new one.
        timeout: Seconds that end_window() waits for the provider, at most.
    """

    def __init__(
        self,
        carbon_intensity_provider: CarbonIntensityProvider,
        gpu_indices: Sequence[int] | None = None,
        cpu_indices: Sequence[int] | None = None,
        sync_execution_with: Literal["torch", "jax", "cupy"] | None = None,
        *,
        monitor: ZeusMonitor | None = None,
        timeout: float = 15.0,
    ) -> None:
        if not hasattr(carbon_intensity_provider, "get_recent_carbon_intensity"):
            raise TypeError(
                f"carbon_intensity_provider is {carbon_intensity_provider!r}, which is no "
                "CarbonIntensityProvider"
            )
        self.carbon_intensity_provider = carbon_intensity_provider
        self._seconds = _seconds_of(getattr(carbon_intensity_provider, "update_period", 3600.0))
        self._history_length = _checks.whole(
            "history_length", getattr(carbon_intensity_provider, "history_length", 24), 0
        )
        self._intensities: dict[float, float] = {}  # By seconds since 1970; NaN: unknown.
        self._nonsense: list[str] = []  # Invalid answers of the provider.
        self._fetched_at = -math.inf
        super().__init__(gpu_indices, cpu_indices, sync_execution_with, monitor, timeout)

    def end_window(self, key: str, sync_execution: bool = True) -> CarbonEmissionMeasurement:
        """Returns time, energy and emissions since begin_window()."""
        measurement, window = self._end(key, sync_execution)
        accounts = Accounts(measurement, window)
        try:
            self._fetch()
        except Exception as error:
            accounts.notes.append(f"{type(error).__name__}: {error}")
        rows = sorted(self._intensities.items())

        def account(pieces: Any, sigma: float) -> Any:
            grams, deviation, missing, notes = _carbon.emissions(pieces, sigma, rows, "provider")
            notes += self._nonsense if math.isnan(grams) else []
            return grams, deviation, missing, notes

        result = CarbonEmissionMeasurement(
            time=measurement.time,
            gpu_energy=measurement.gpu_energy,
            gpu_carbon_emission=accounts.of("gpu", account),
            cpu_energy=measurement.cpu_energy,
            cpu_carbon_emission=accounts.of("cpu", account),
            dram_energy=measurement.dram_energy,
            dram_carbon_emission=accounts.of("dram", account),
            sigma=accounts.sigma,
            notes=accounts.notes,
        )
        warn_of(result.notes, f'carbon emissions of the window "{key}"')
        return result

    def _period(self) -> float:
        return self._seconds

    def _on_boundary(self) -> None:
        # A window may be longer than the history of the provider.
        memory = self._seconds * max(1, self._history_length - 1)
        if time.monotonic() - self._fetched_at >= memory:
            try:
                self._fetch()
            except Exception as error:
                warn_of([str(error)], "carbon intensity")

    def _fetch(self) -> None:
        provider = self.carbon_intensity_provider
        recent = ask(provider.get_recent_carbon_intensity, self.timeout, type(provider).__name__)
        for moment, grams in recent.items():
            self._learn(_unix(moment), grams)
        now = time.time()
        if not recent or now >= max(map(_unix, recent)) + self._seconds:
            # Histories often end before the present hour.
            current = ask(
                provider.get_current_carbon_intensity, self.timeout, type(provider).__name__
            )
            self._learn(now - now % self._seconds, current)
        self._fetched_at = time.monotonic()

    def _learn(self, moment: float, grams: Any) -> None:
        """Stores an intensity; an invalid one is unknown, and ends the one before it."""
        name = type(self.carbon_intensity_provider).__name__
        try:
            self._intensities[moment] = _checks.not_negative(f"an intensity of {name}", grams)
        except (TypeError, InvalidArgumentError) as error:
            self._intensities[moment] = math.nan
            if str(error) not in self._nonsense:
                self._nonsense.append(str(error))


def _seconds_of(period: Any) -> float:
    """Some providers give their period as a number of seconds."""
    if isinstance(period, timedelta):
        period = period.total_seconds()
    return max(1.0, _checks.positive("update_period", period, 1e9))


def _unix(moment: datetime) -> float:
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def check_location(location: tuple[float, float]) -> tuple[float, float]:
    """Returns latitude and longitude, or raises an error of one sentence."""
    try:
        latitude, longitude = (float(degrees) for degrees in location)
    except (OverflowError, TypeError, ValueError) as error:
        raise TypeError(f"location is latitude and longitude, not {location!r}") from error
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        raise InvalidArgumentError(f"location is {location}: no such latitude and longitude")
    return latitude, longitude


def check_secret(name: str, value: str | None, variable: str) -> str:
    """Returns a secret for an HTTP header, given or from the environment. Never printed."""
    if value is None:
        name, value = variable, os.environ.get(variable, "")
    if not isinstance(value, str):
        raise TypeError(f"{name} is a string, not {type(value).__name__}")
    if not (value.isascii() and value.isprintable()):
        raise InvalidArgumentError(
            f"{name} has a line break or another character that no header can carry: remove it"
        )
    return value
