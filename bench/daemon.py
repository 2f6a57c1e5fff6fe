#!/usr/bin/env python3
"""Measures zeusd on a simulated node of eight GPUs: requests, settings, the end of holders, streams, and what it costs when
nobody asks. Beside them in the same run: a bare ping-pong between two processes, which bounds every request.

Its files are in memory, as those of the unit in /run are.

usage: daemon [--seconds 5] [--leases 1000] [--streams 1000]
"""
import argparse
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("ZEUS_BUILD", pathlib.Path(__file__).resolve().parents[1]))
ZEUS, ZEUSD = BUILD / "bin" / "zeus", BUILD / "bin" / "zeusd"
LOAD = BUILD / "bench" / "tools" / "daemon_load"
SETS = 2000
# The benchmark sets a limit more often than a client may.
CONFIGURATION = """
[defaults]
scopes = ["gpu-read", "gpu-control"]
leases = 4000
sets_per_second = { gpu_power_limit = 10000 }
"""


def folder_in_memory() -> str | None:
    """A folder on a tmpfs; None where there is none."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "tmpfs" and place in ("/run", "/dev/shm") and os.access(place, os.W_OK):
            return place
    return None


def resident_of(pid: int, name: str) -> int:
    """Resident bytes of the mapped files of this name."""
    total, inside = 0, False
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match("[0-9a-f]+-", line):
            inside = name in line
        elif inside and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


def process_figures(pid: int) -> tuple[float, int]:
    """CPU seconds and resident bytes."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return ((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE"))


class Node:
    """A simulated node, and a daemon on it."""

    def __init__(self, folder: pathlib.Path):
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("ZEUS_SIM")}
        self.environment |= {"ZEUS_SIM_DIR": str(folder), "ZEUS_KNOB_DIR": str(folder / "knobs"),
                             "ZEUS_ACTIVITY_DIR": str(folder)}
        subprocess.run([ZEUS, "sim", "start", "--gpus", "8xV100"], env=self.environment, check=True,
                       stdout=subprocess.DEVNULL)
        shell = subprocess.run(["sh", "-c", f'eval "$({ZEUS} sim env)" && env -0'], env=self.environment,
                               capture_output=True, check=True)
        self.environment = dict(entry.split("=", 1) for entry in shell.stdout.decode().split("\0") if "=" in entry)
        config = folder / "zeusd.toml"
        config.write_text(CONFIGURATION)
        config.chmod(0o644)
        self.socket = str(folder / "zeusd.sock")
        started = time.monotonic()
        self.daemon = subprocess.Popen([ZEUSD, "serve", "--socket-path", self.socket, "--config", config],
                                       env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self.answers():
            if self.daemon.poll() is not None:
                sys.exit("zeusd ended by itself")
            time.sleep(0.001)
        self.started_within = time.monotonic() - started
        self.gpus = [gpu["uuid"] for gpu in self.get("/v1/node")["gpus"]]

    def answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.socket) == 0

    def get(self, target: str):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.socket)
        connection.request("GET", target)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def driver_seconds(self) -> float:
        """The time that drivers have needed to set knobs and to read them back."""
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.socket)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if line.startswith("zeus_daemon_device_call_seconds_sum"))

    def load(self, *words) -> dict:
        done = subprocess.run([LOAD, self.socket, *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"daemon_load {words}: {done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])

    def close(self) -> None:
        self.daemon.terminate()
        self.daemon.wait()
        subprocess.run([ZEUS, "sim", "stop"], env=self.environment, stdout=subprocess.DEVNULL, check=False)


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs"


def row(what: str, figure: str, goal: str) -> None:
    print(f"{what:<58} {figure:>28}   {goal}", flush=True)


def measure(node: Node, options: argparse.Namespace) -> None:
    row("start to the first answer", f"{node.started_within * 1e3:.0f} ms", "100 ms + the driver's")
    before, _ = process_figures(node.daemon.pid)
    time.sleep(options.seconds)
    after, resident = process_figures(node.daemon.pid)
    driver = resident_of(node.daemon.pid, "libnvidia-ml")
    row("idle daemon, without the simulated driver's file",
        f"{(after - before) / options.seconds:.3%}, {(resident - driver) / 2**20:.1f} MiB", "0.05 %, 15 MiB")

    ping = node.load("pingpong", options.seconds)
    row("ping-pong of two processes", f"p50 {microseconds(ping['p50_seconds'])}", "-")
    one = node.load("get", "/v1/readings", 1, options.seconds)
    row("GET /v1/readings, 8 GPUs, 1 client",
        f"p50 {microseconds(one['p50_seconds'])}, p99 {microseconds(one['p99_seconds'])}", "80, 400 µs")
    many = node.load("get", "/v1/readings", 64, options.seconds)
    row("the same, 64 clients", f"{many['per_second']:.0f} /s", "20000 /s")
    health = node.load("get", "/healthz", 64, options.seconds)
    row("GET /healthz, 64 clients", f"{health['per_second']:.0f} /s", "-")

    before = node.driver_seconds()
    sets = node.load("set", node.gpus[0], 200, 210, SETS)
    driver = (node.driver_seconds() - before) / SETS
    row("set a power limit (with the simulated driver)",
        f"p50 {microseconds(sets['p50_seconds'])}, p99 {microseconds(sets['p99_seconds'])}", "150 µs + the driver's")
    row("of it the simulated driver's, on average", microseconds(driver), "-")
    dies = node.load("die", node.gpus[1], 180, options.leases, 50)
    row(f"holder dies to knob written, {options.leases} leases",
        f"p50 {dies['p50_seconds'] * 1e3:.1f} ms, p99 {dies['p99_seconds'] * 1e3:.1f} ms", "20, 100 ms")

    recording, _, _ = measure_streams(node, 1, options.seconds)
    row("recording at full rate, for one stream", f"{recording:.2%}", "0.25 %")
    share, resident, sent = measure_streams(node, options.streams, options.seconds)
    row(f"{options.streams} streams at 10 Hz, {sent / 2**20:.0f} MiB sent",
        f"{share:.1%}, {resident / 2**20:.1f} MiB", "3 %, 64 MiB")
    sends = node.load("send", options.streams, sent // (10 * options.streams * int(options.seconds + 2)), 20)
    row("of it the kernel's, by bare send(2) of as many bytes", f"{10 * options.streams * sends['seconds']:.1%}", "-")


def measure_streams(node: Node, count: int, seconds: float) -> tuple[float, int, int]:
    """The daemon's share of a core and its resident bytes while clients follow readings, and the bytes sent."""
    load = subprocess.Popen([LOAD, node.socket, "streams", "/v1/stream?events=reading&period=0.1", str(count),
                             str(seconds + 2)], stdout=subprocess.PIPE, text=True)
    assert load.stdout is not None
    load.stdout.readline()
    time.sleep(1)
    before, _ = process_figures(node.daemon.pid)
    time.sleep(seconds)
    after, resident = process_figures(node.daemon.pid)
    return (after - before) / seconds, resident, json.loads(load.communicate()[0])["bytes"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--leases", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=1000)
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="zeusd-bench-", dir=folder_in_memory()))
    node = Node(folder)
    try:
        measure(node, options)
    finally:
        node.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
