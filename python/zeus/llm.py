"""The energy of answers of language models, as `zeus llm gateway` reports it.

    client = openai.OpenAI(base_url="http://127.0.0.1:8080/v1")
    answer = client.chat.completions.create(model="llama", messages=messages)
    print(zeus.llm.energy(answer))  # 92.4 ± 2.1 J (prefill 24.9 J, decode 67.5 J), 0.438 J/token

    stream = zeus.llm.watch(client.chat.completions.create(..., stream=True))
    for chunk in stream:  # the chunks of the client, untouched
        ...
    print(stream.energy)

It works with the objects of the `openai` client, with dictionaries, with the lines of urllib,
requests and httpx, and with headers. No other Python package is needed.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Generic, Iterable, Iterator, Mapping, Optional, TypeVar

from zeus import _checks
from zeus.errors import InvalidArgumentError, NotFoundError, UnavailableError

__all__ = ["Energy", "Watched", "energy", "final", "request_id", "watch"]

Item = TypeVar("Item")

_COMMENT = re.compile(r"^:\s*energy\s+(\{.*\})\s*$")
_LINE_END = re.compile(r"\r\n|\n|\r")
_BEGINNINGS = ("data:", ": energy", "{", "\ufeff")  # Lines that can have it.
# A line that is longer than this cannot be the one with the energy.
_LONGEST_LINE = 1 << 24


@dataclasses.dataclass(frozen=True)
class Energy:
    """The energy of one request, in joules and seconds, under the names that the gateway sends.

    A number that the gateway did not send is None. `energy_joules` is None when it could not be
    known; `absent_reason` then says why.
    """

    energy_joules: Optional[float] = None
    sigma_joules: Optional[float] = None  # One standard deviation.
    prefill_joules: Optional[float] = None
    decode_joules: Optional[float] = None
    joules_per_output_token: Optional[float] = None
    energy_kwh: Optional[float] = None
    avg_power_watts: Optional[float] = None
    duration_seconds: Optional[float] = None
    attribution_method: str = ""
    attribution_ratio: Optional[float] = None
    carbon_grams: Optional[float] = None
    final: bool = False  # The sensors have seen the end of the request.
    source: str = ""
    gpus: tuple[str, ...] = ()
    request: str = ""
    tokens_estimated: bool = False
    absent_reason: str = ""

    def __str__(self) -> str:
        if self.energy_joules is None:
            return f"no energy: {self.absent_reason or 'the gateway gave no reason'}"
        from zeus import _core

        text = _core.with_sigma(self.energy_joules, self.sigma_joules or 0, "J")
        if self.prefill_joules is not None and self.decode_joules is not None:
            text += (f" (prefill {_core.with_sigma(self.prefill_joules, 0, 'J')}, "
                     f"decode {_core.with_sigma(self.decode_joules, 0, 'J')})")
        if self.joules_per_output_token is not None:
            text += f", {_core.with_sigma(self.joules_per_output_token, 0, 'J')}/token"
        return text


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def _from_object(found: Mapping[str, Any]) -> Energy:
    """Reads the gateway's object. Fields of other types than expected are left out."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Energy):
        value = found.get(field.name)
        if field.name == "gpus":
            if isinstance(value, (list, tuple)):
                values["gpus"] = tuple(str(gpu) for gpu in value)
        elif field.name == "tokens_estimated":
            values["tokens_estimated"] = found.get("tokens") == "estimated"
        elif isinstance(field.default, bool):
            values[field.name] = value is True
        elif isinstance(field.default, str):
            values[field.name] = value if isinstance(value, str) else ""
        else:
            values[field.name] = _number(value)
    return Energy(**values)


def _member(value: Any, name: str) -> Any:
    """Returns a member of a dictionary or an attribute of an object; None if there is none."""
    if isinstance(value, Mapping):
        return value.get(name)
    extra = getattr(value, "model_extra", None)  # Fields that a pydantic model does not know.
    if isinstance(extra, Mapping) and name in extra:
        return extra[name]
    return getattr(value, name, None)


def _as_mapping(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    dumped = dump() if callable(dump) else None
    return dumped if isinstance(dumped, Mapping) else None


def _in_body(body: Any) -> Energy | None:
    """Finds the object in an answer or a chunk: `energy`, `usage.energy`, or the object itself."""
    for candidate in (_member(body, "energy"), _member(_member(body, "usage"), "energy"), body):
        found = _as_mapping(candidate) if candidate is not None else None
        if found is not None and "energy_joules" in found:
            return _from_object(found)
    return None


def _header(headers: Any, name: str) -> str | None:
    get = getattr(headers, "get", None)
    value = get(name) if callable(get) else None
    if value is None and isinstance(headers, Mapping):  # A plain dictionary knows upper case.
        value = next((headers[key] for key in headers
                      if isinstance(key, str) and key.lower() == name), None)
    return value if isinstance(value, str) else None


def _in_headers(headers: Any) -> Energy | None:
    joules = _header(headers, "x-zeus-energy-joules")
    if joules is None:
        return None
    found: dict[str, Any] = {"request": _header(headers, "x-zeus-request")}
    for name, text in (("energy_joules", joules),
                       ("sigma_joules", _header(headers, "x-zeus-energy-sigma-joules")),
                       ("carbon_grams", _header(headers, "x-zeus-carbon-grams"))):
        try:
            found[name] = float(text) if text is not None else None
        except ValueError:
            pass
    return _from_object(found)


def _headers(response: Any) -> Any:
    """The headers of a response, of the response inside of a stream, or headers themselves."""
    for holder in (response, getattr(response, "response", None),
                   getattr(response, "http_response", None)):
        headers = getattr(holder, "headers", None)
        if headers is not None:
            return headers
    return response


def _payload(line: str) -> str:
    """The JSON of a comment with energy, of the data of an event, or of a line."""
    comment = _COMMENT.match(line)
    text = comment[1] if comment else line[5:] if line.startswith("data:") else line
    return text.strip().lstrip("\ufeff")


def _in_line(line: str) -> Energy | None:
    if "energy" not in line:
        return None
    try:
        return _in_body(json.loads(_payload(line)))
    except ValueError:
        return None


def _decoded(item: bytes | bytearray | str) -> str:
    return item if isinstance(item, str) else bytes(item).decode("utf-8", "replace")


def _is_complete(line: str) -> bool:
    """Whether a line without its end can be all of it, as with clients that cut the ends off."""
    if not line.startswith(_BEGINNINGS):
        return not any(beginning.startswith(line) for beginning in _BEGINNINGS)
    text = _payload(line)
    try:
        json.loads(text)
    except ValueError:
        return text == "[DONE]"
    return True


class _Text:
    """Finds the energy in a stream of text that arrives in lines, or in pieces of any size."""

    def __init__(self) -> None:
        self._rest = ""

    def find(self, item: bytes | bytearray | str) -> Energy | None:
        *lines, rest = _LINE_END.split(self._rest + _decoded(item))
        found = None
        for line in lines:
            found = _in_line(line) or found
        self._rest = rest
        if rest and (len(rest) > _LONGEST_LINE or _is_complete(rest)):
            found = _in_line(rest) or found
            self._rest = ""
        return found


class Watched(Generic[Item]):
    """An iterator over a stream that passes its items on and keeps the energy that it sees.

    Attributes:
        energy: The energy, once the stream has shown it; None before and for streams without.
    """

    def __init__(self, stream: Iterable[Item]) -> None:
        self.energy: Energy | None = None
        self._stream = stream
        self._items = iter(stream)
        self._text = _Text()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        item = next(self._items)
        if isinstance(item, (bytes, bytearray, str)):
            found = self._text.find(item)
        else:
            found = _in_body(item)
        self.energy = found or self.energy
        return item

    @property
    def request(self) -> str:
        """The gateway's identifier of the request; empty if the stream has not told it."""
        if self.energy is not None and self.energy.request:
            return self.energy.request
        return request_id(self._stream) or ""


def watch(stream: Iterable[Item]) -> Watched[Item]:
    """Returns an iterator over the same items that also finds the energy in them.

    The stream may be one of the `openai` client, an iterator of dictionaries, or the lines or bytes
    of a response of urllib, requests or httpx. The `openai` client does not show comments: it sees
    the energy only with ``stream_options={"include_usage": True}``; `final` is the other way.
    """
    return Watched(stream)


def energy(response: Any) -> Energy | None:
    """Returns the energy of an answer; None if there is none in it.

    The answer may be an object of the `openai` client, a dictionary, the text or bytes of a body or
    of a whole stream (server-sent events, or lines of JSON as those of Ollama), a response with
    headers, the headers, or a stream, which is then read to its end.
    """
    if response is None:
        raise InvalidArgumentError("response is None: pass the answer of the model")
    if isinstance(response, (bytes, bytearray, str)):
        return _in_text(_decoded(response))
    found = _in_body(response)
    if found is None:
        found = _in_headers(_headers(response))
    if found is None and isinstance(response, Watched):
        found = response.energy
    if found is None and _is_stream(response):
        watched = watch(response)
        for _ in watched:
            pass
        found = watched.energy
    return found


def _is_stream(response: Any) -> bool:
    """Pydantic models can be iterated over as well: over their fields."""
    if isinstance(response, Mapping) or hasattr(response, "model_dump"):
        return False
    return hasattr(response, "__iter__")


def _in_text(text: str) -> Energy | None:
    try:
        return _in_body(json.loads(text.lstrip("\ufeff")))
    except ValueError:
        pass
    found = None
    for line in _LINE_END.split(text):
        found = _in_line(line) or found
    return found


def request_id(response: Any) -> str | None:
    """Returns the gateway's identifier of a request from an answer, its stream or its headers."""
    found = _header(_headers(response), "x-zeus-request")
    if found is None and not isinstance(response, (bytes, bytearray, str)):
        body = _in_body(response)
        found = (body.request or None) if body is not None else None
    return found


def final(gateway: str, request: str | Energy, timeout: float = 10.0) -> Energy:
    """Asks the gateway for the final energy of a request, and waits until it is known.

    The figure in an answer is given the moment the answer ends. The sensors show the end of the
    request 20 to 100 ms later, and the final figure has the smaller sigma.

    Args:
        gateway: The gateway's address, with or without ``/v1``: ``http://127.0.0.1:8080``.
        request: The identifier, from `request_id` or an `Energy`.
        timeout: Seconds after which the figure is returned as it is then.

    Raises:
        NotFoundError: The gateway does not know the request, or has forgotten it.
        UnavailableError: The gateway does not answer.
    """
    identifier = request.request if isinstance(request, Energy) else request
    _checks.text("request", identifier)
    if not identifier:
        raise InvalidArgumentError("request is empty: pass what zeus.llm.request_id() returned")
    base = _checks.text("gateway", gateway).rstrip("/")
    base = base[:-3] if base.endswith("/v1") else base
    if not base.startswith(("http://", "https://")):
        raise InvalidArgumentError(
            f"gateway is an address like http://127.0.0.1:8080, not {_checks.shown(gateway)}")
    url = f"{base}/zeus/requests/{urllib.parse.quote(identifier, safe='')}"
    deadline = time.monotonic() + timeout
    while True:
        found = _fetch(url, max(0.1, deadline - time.monotonic()))
        if found.final or time.monotonic() >= deadline:
            return found
        time.sleep(min(0.05, max(0.0, deadline - time.monotonic())))


def _fetch(url: str, timeout: float) -> Energy:
    try:
        with urllib.request.urlopen(url, timeout=timeout) as response:
            body = json.load(response)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            raise NotFoundError(
                f"the gateway does not know {url}: it keeps the latest requests only") from None
        raise UnavailableError(f"{url} answered with status {error.code}") from None
    except (OSError, ValueError) as error:
        raise UnavailableError(f"{url} does not answer as a gateway does: {error}") from None
    found = _in_body(body)
    if found is None:
        raise UnavailableError(f"{url} has no energy in its answer: is it a gateway of Zeus?")
    return found
