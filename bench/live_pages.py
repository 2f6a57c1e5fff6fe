#!/usr/bin/env python3
"""Measures the page of a live node with eight simulated GPUs at ten readings a second: its size, what a viewer costs zeusd and
the browser, and how the fleet of a thousand nodes scrolls. Needs Chromium and the page (docs/web.md).

usage: live_pages [--seconds 20] [--viewers 200] [--day 24]

--day plays so many hours of readings to one page, ten a second and as fast as it reads them, and prints what it keeps.
"""
import argparse
import http.client
import json
import os
import pathlib
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

BUILD = pathlib.Path(os.environ.get("ZEUS_BUILD", pathlib.Path(__file__).resolve().parents[1]))
ZEUS, ZEUSD = BUILD / "bin" / "zeus", BUILD / "bin" / "zeusd"
SCRIPTS = BUILD / "bench" / "tools"
CONFIGURATION = '[defaults]\nscopes = ["gpu-read"]\n'


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def row(what: str, figure: str, goal: str) -> None:
    print(f"{what:<52} {figure:>22}   {goal}", flush=True)


class Node:
    """A simulated node whose GPUs have work that changes, and a daemon that answers on every loopback address."""

    def __init__(self, folder: pathlib.Path):
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("ZEUS_SIM")}
        self.environment |= {"ZEUS_SIM_DIR": str(folder), "ZEUS_KNOB_DIR": str(folder / "knobs"),
                             "ZEUS_ACTIVITY_DIR": str(folder)}
        subprocess.run([ZEUS, "sim", "start", "--gpus", "8xA100"], env=self.environment, check=True,
                       stdout=subprocess.DEVNULL)
        shell = subprocess.run(["sh", "-c", f'eval "$({ZEUS} sim env)" && env -0'], env=self.environment,
                               capture_output=True, check=True)
        self.environment = dict(entry.split("=", 1) for entry in shell.stdout.decode().split("\0") if "=" in entry)
        self.children = [subprocess.Popen([ZEUS, "sim", "load", "--gpu", str(gpu), "--watts", str(150 + 30 * gpu)],
                                          env=self.environment, stdout=subprocess.DEVNULL) for gpu in range(6)]
        config = folder / "zeusd.toml"
        config.write_text(CONFIGURATION)
        config.chmod(0o644)
        self.daemon = subprocess.Popen([ZEUSD, "serve", "--socket-path", folder / "zeusd.sock", "--config", config,
                                        "--tcp-bind-address", "0.0.0.0:0", "--insecure"],
                                       env=self.environment, stdout=subprocess.PIPE, text=True)
        self.children.append(self.daemon)
        ready = self.daemon.stdout.readline()
        if "http" not in ready:
            sys.exit("zeusd did not start")
        self.port = int(ready.rsplit(":", 1)[1])

    def stop(self) -> None:
        for child in self.children:
            child.terminate()
            child.wait()
        subprocess.run([ZEUS, "sim", "stop"], env=self.environment, check=False, stdout=subprocess.DEVNULL)


class Viewers:
    """Clients that follow the stream as the page does, and read all of it."""

    def __init__(self, port: int, count: int):
        self.selector = selectors.DefaultSelector()
        self.bytes = 0
        self.over = False
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(b"GET /v1/stream?period=0.1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            client.setblocking(False)
            self.selector.register(client, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self) -> None:
        while not self.over:
            for key, _ in self.selector.select(0.2):
                self.bytes += len(key.fileobj.recv(1 << 16))

    def stop(self) -> None:
        self.over = True
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()


def page_size(port: int) -> int:
    size = 0
    for path in ("/", "/app.js", "/app.css"):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        size += len(connection.getresponse().read())
    return size


def busy(pid: int, seconds: float) -> float:
    """Share of a core."""
    before, start = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / (time.monotonic() - start)


def measure_server(node: Node, viewers: int, seconds: float) -> None:
    # One client makes the recorder look at full rate; what more clients add is theirs.
    first = Viewers(node.port, 1)
    time.sleep(2)
    alone = busy(node.daemon.pid, seconds)
    before = resident(node.daemon.pid)
    crowd = Viewers(node.port, viewers)
    time.sleep(2)
    start_bytes = crowd.bytes
    together = busy(node.daemon.pid, seconds)
    sent = (crowd.bytes - start_bytes) / seconds / 1e6
    row("zeusd with one viewer, recorder at full rate", f"{alone:.2%}", "-")
    row(f"each of {viewers} more viewers, {sent:.1f} MB/s in all", f"{(together - alone) / viewers:.4%}", "0.2 %")
    row(f"memory for {viewers} viewers", f"{(resident(node.daemon.pid) - before) / 2**20:.1f} MiB", "-")
    crowd.stop()
    first.stop()


def in_browser(folder: pathlib.Path, script: str, *words: str):
    """The JSON that a script prints, or None where there is no browser."""
    browser, javascript = shutil.which("chromium"), shutil.which("node")
    playwright = BUILD / "web" / "node_modules" / "playwright-core" / "index.mjs"
    if not browser or not javascript or not playwright.exists():
        print("the browser is left out: chromium, node or the page is missing")
        return None
    environment = {**os.environ, "HOME": str(folder), "CHROMIUM": browser, "PLAYWRIGHT": str(playwright.resolve())}
    done = subprocess.run([javascript, str(SCRIPTS / script), *words], capture_output=True, text=True, env=environment,
                          check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def measure_day(node: Node, folder: pathlib.Path, hours: float) -> None:
    for told in in_browser(folder, "live_day.mjs", f"http://127.0.0.1:{node.port}/", str(hours)) or []:
        row(f"page after {told['hours']:g} hours of readings: heap", f"{told['heap'] / 2**20:.1f} MiB", "flat")
        row("... nodes of the document, listeners", f"{told['nodes']:.0f}, {told['listeners']:.0f}", "flat")


def measure_browser(node: Node, folder: pathlib.Path, seconds: float) -> None:
    hosts = [f"http://127.0.{1 + number // 250}.{1 + number % 250}:{node.port}" for number in range(1000)]
    list_file = folder / "nodes"
    list_file.write_text("\n".join(hosts))
    fleet = subprocess.Popen([ZEUS, "fleet", "--nodes-file", list_file, "--listen", "127.0.0.1:0"],
                             stderr=subprocess.PIPE, text=True)
    try:
        address = fleet.stderr.readline().split()[-1]
        found = in_browser(folder, "live_pages.mjs", f"http://127.0.0.1:{node.port}/", address, str(seconds))
    finally:
        fleet.terminate()
        fleet.wait()
    if found is None:
        return
    row("browser, 8 GPUs at 10 Hz: the page's process", f"{found['renderer']:.2%} of a core", "5 %")
    row("browser, all its processes", f"{found['all']:.2%} of a core", "-")
    row("page, heap after this time", f"{found['heap'] / 2**20:.1f} MiB", "-")
    row("1000 nodes, scrolling: frames per second", f"{found['fps']:.0f}", "60")
    row("an empty box, scrolling: frames per second", f"{found['idealFps']:.0f}", "the most here")
    row("1000 nodes, scrolling: main thread for a frame", f"{1000 * found['cost']:.1f} ms", "16.7 ms")
    row("1000 nodes, scrolling: longest frame", f"{1000 * found['longest']:.0f} ms", "-")
    row("1000 nodes: rows that exist", f"{found['rows']}", "-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--day", type=float, metavar="HOURS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="zeus-live-pages-") as name:
        folder = pathlib.Path(name)
        node = Node(folder)
        try:
            if options.day:
                measure_day(node, folder, options.day)
                return
            row("page, script and style, compressed", f"{page_size(node.port) / 1000:.1f} kB", "150 kB")
            measure_server(node, options.viewers, options.seconds)
            measure_browser(node, folder, options.seconds)
        finally:
            node.stop()
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
