"""Emissions and cost."""

from __future__ import annotations

#: Begin and end in seconds since 1970, and the joules that were used evenly between them.
Piece = tuple[float, float, float]
#: The amount, its standard deviation, joules for which there was no value, and notes.
Account = tuple[float, float, float, list[str]]
#: Months (bit 0 is January) and days (bit 0 is Sunday), begin and end in minutes since midnight,
#: and tiers: up to how many kilowatt-hours, and the price of one.
Rate = tuple[int, int, int, int, list[tuple[float, float]]]

def emissions(
    pieces: list[Piece], sigma: float, rows: list[tuple[float, float]], name: str
) -> Account:
    """Grams of carbon dioxide at an intensity (grams per kilowatt-hour) that holds from each row
    to the next."""

def http_get(
    base_url: str, path: str, header: str, value: str, timeout: float
) -> tuple[int, bytes]:
    """Status and body. Finding the address, connecting and reading have a limit each."""

class Tariff:
    """Prices by local month, day and time of day."""

    def __init__(
        self, rates: list[Rate], zone: str, currency: str, already_used: float, name: str
    ) -> None: ...
    def cost(self, pieces: list[Piece], sigma: float) -> Account: ...
    @property
    def currency(self) -> str: ...
