"""A server that answers as a gateway in front of a language model does, for tests of zeus.llm."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from typing import Iterator

ENERGY = {"energy_joules": 92.4, "energy_kwh": 2.567e-05, "avg_power_watts": 51.2,
          "duration_seconds": 1.81, "attribution_method": "zeus-iterations",
          "attribution_ratio": 0.083, "sigma_joules": 2.1, "prefill_joules": 24.9,
          "decode_joules": 67.5, "joules_per_output_token": 0.438, "final": False,
          "source": "counter", "gpus": ["gpu:0"], "request": "r-1"}
FINAL = {**ENERGY, "energy_joules": 93.0, "sigma_joules": 0.5, "final": True}


def event(body: object) -> str:
    return f"data: {body if isinstance(body, str) else json.dumps(body)}\n\n"


def chunk(text: str) -> dict:
    return {"object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


USAGE = {"object": "chat.completion.chunk", "choices": [],
         "usage": {"completion_tokens": 2, "energy": ENERGY}, "energy": ENERGY}
STREAM = event(chunk("Hello")) + event(chunk(" energy")) + \
    f": energy {json.dumps(ENERGY)}\n\n" + event("[DONE]")
STREAM_WITH_USAGE = event(chunk("Hello")) + event(USAGE) + \
    f": energy {json.dumps(ENERGY)}\n\n" + event("[DONE]")
BODY = {"object": "chat.completion",
        "choices": [{"message": {"role": "assistant", "content": "Hello"}}],
        "usage": {"completion_tokens": 1, "energy": ENERGY}, "energy": ENERGY}
OLLAMA = json.dumps({"message": {"content": "Hi"}, "done": False}) + "\n" + \
    json.dumps({"message": {"content": ""}, "done": True, "energy": ENERGY}) + "\n"


class Gateway(http.server.ThreadingHTTPServer):
    """Knows the request r-1, whose energy is final when it is asked for the second time."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Gateway
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/zeus/requests/r-1":
            self.server.asked += 1
            record = FINAL if self.server.asked > 1 else ENERGY
            self.answer(200, json.dumps({**record, "model": "m", "status": 200}))
        elif self.path == "/zeus/requests/r-broken":
            self.answer(200, "<html>")
        elif self.path == "/zeus/requests/r-other":
            self.answer(200, "{}")
        elif self.path == "/zeus/requests/r-busy":
            self.answer(503, "{}")
        else:
            self.answer(404, "{}")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if asked.get("stream"):
            self.stream(STREAM_WITH_USAGE if "stream_options" in asked else STREAM)
        else:
            self.answer(200, json.dumps(BODY), {"x-zeus-energy-joules": "92.4",
                                                "x-zeus-energy-sigma-joules": "2.1"})

    def answer(self, status: int, text: str, headers: dict | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", "x-zeus-request": "r-1",
                            "content-length": str(len(text)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def stream(self, text: str) -> None:
        """One event in each part."""
        self.send_response(200)
        for name, value in {"content-type": "text/event-stream", "x-zeus-request": "r-1",
                            "transfer-encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        for part in text.split("\n\n"):
            data = f"{part}\n\n".encode() if part else b""
            if data:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")


@contextlib.contextmanager
def running_gateway() -> Iterator[Gateway]:
    with Gateway() as gateway:
        thread = threading.Thread(target=gateway.serve_forever)
        thread.start()
        try:
            yield gateway
        finally:
            gateway.shutdown()
            thread.join()
