"""The approximate location of this machine."""

from __future__ import annotations

from zeus.errors import UnavailableError

__all__ = ["get_ip_lat_long"]


def get_ip_lat_long(
    *, timeout: float = 5.0, base_url: str = "https://ipinfo.io"
) -> tuple[float, float]:
    """Returns latitude and longitude of this machine's address on the internet.

    Asks ipinfo.io, which so learns the address. UnavailableError if it does not say.
    """
    import json

    from zeus._core.carbon import http_get

    status, body = http_get(base_url, "/json", "Accept", "application/json", timeout)
    try:
        latitude, longitude = (float(part) for part in json.loads(body)["loc"].split(","))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UnavailableError(
            f"{base_url} did not say where this machine is (status {status})"
        ) from error
    return latitude, longitude
